import type { CodegenConfig } from "@graphql-codegen/cli";

// Types of every operation on the page, from the schema as it is committed.
const config: CodegenConfig = {
  schema: "../schema/schema.graphql",
  documents: ["src/**/*.ts", "!src/gql/**"],
  generates: {
    "src/gql/": {
      preset: "client",
      presetConfig: { fragmentMasking: false },
      config: {
        documentMode: "string",
        useTypeImports: true,
        enumsAsTypes: true,
        strictScalars: true,
        scalars: {
          CurrencyCode: "string", Date: "string", DateTime: "string", Decimal: "string", SeatMapVersion: "string",
          TimeZone: "string", Version: "string",
        },
      },
    },
  },
};
export default config;
