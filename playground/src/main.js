// GraphiQL with the example operations in its tabs. The server puts them, and a development token, into the page.
import "graphiql/setup-workers/vite";
import "graphiql/style.css";
import { GraphiQL } from "graphiql";
import { createGraphiQLFetcher } from "@graphiql/toolkit";
import { createClient } from "graphql-ws";
import { createElement } from "react";
import { createRoot } from "react-dom/client";

const settings = JSON.parse(document.getElementById("settings").textContent);
const { token = null, tabs = [] } = typeof settings === "object" ? settings : {};
const headers = token ? JSON.stringify({ Authorization: `Bearer ${token}` }, null, 2) : undefined;
const url = new URL("/graphql", location.href);
const socketUrl = new URL(url);
socketUrl.protocol = url.protocol === "https:" ? "wss:" : "ws:";

/** An operation's variables stand in its file as a comment: `# variables: {"first": 3}`. */
function tab(text) {
  const variables = /^# variables: (.*)$/m.exec(text)?.[1];
  return { query: text, headers, variables: variables && JSON.stringify(JSON.parse(variables), null, 2) };
}

/** Each subscription connects with the headers of its own tab, so that two tabs can be two people. */
function fetcher(params, options) {
  const authorization = options?.headers?.Authorization ?? options?.headers?.authorization;
  const wsClient = createClient({ url: socketUrl.href, connectionParams: authorization ? { authorization } : {} });
  return createGraphiQLFetcher({ url: url.href, wsClient })(params, options);
}

createRoot(document.getElementById("graphiql")).render(
  createElement(GraphiQL, {
    fetcher,
    defaultTabs: tabs.length ? tabs.map(tab) : undefined,
    defaultHeaders: headers,
    shouldPersistHeaders: false,
  }),
);
