//! Reads the schema, against which the queries in `main.rs` are checked when they are compiled.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    cynic_codegen::register_schema("parterre").from_sdl_file("../../../schema/schema.graphql")?.as_default()?;
    Ok(())
}
