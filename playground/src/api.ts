// How the page talks to the server: who this tab is, GraphQL over HTTP, and live streams.
import { type Client, createClient } from "graphql-ws";
import type { TypedDocumentString } from "./gql/graphql";

type Settings = { name?: string; token?: string; event?: string; organizer?: string };
type Buyer = { name: string; token: string | null };

export const $ = <T extends Element = HTMLElement>(id: string) => document.getElementById(id) as unknown as T;
export const settings: Settings = JSON.parse($("settings").textContent ?? "{}");

// A tab keeps its buyer over a reload; a new tab is somebody else.
const stored = sessionStorage.getItem("buyer");
export const buyer: Buyer = stored ? JSON.parse(stored) : { name: settings.name ?? "nobody", token: settings.token ?? null };
if (buyer.token) sessionStorage.setItem("buyer", JSON.stringify(buyer));

/** What the server says no to, in words for people. */
export class Refused extends Error {}

/** Sends an operation as this tab's buyer, or with another token. */
export async function ask<R, V>(document: TypedDocumentString<R, V>, variables: V, token = buyer.token): Promise<R> {
  const headers: Record<string, string> = { "content-type": "application/json", accept: "application/graphql-response+json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const response = await fetch("/graphql", { method: "POST", headers, body: JSON.stringify({ query: document.toString(), variables }) });
  const answer = await response.json();
  if (answer.errors) {
    const [error] = answer.errors;
    if (error.extensions?.code === "UNAUTHENTICATED") sessionStorage.removeItem("buyer");
    throw new Refused(error.message);
  }
  return answer.data;
}

/** A connection for streams that comes back by itself, sooner at first. */
export function connection(on: { opened: () => void; closed: () => void }): Client {
  const url = new URL("/graphql", location.href);
  url.protocol = url.protocol.replace("http", "ws");
  let socket: WebSocket | undefined, unanswered = 0;
  return createClient({
    url: url.href,
    keepAlive: 5_000,
    connectionParams: buyer.token ? { authorization: `Bearer ${buyer.token}` } : {},
    retryAttempts: Infinity,
    retryWait: (retries) => new Promise((done) => setTimeout(done, Math.min(500 * 2 ** retries, 8000) * (0.5 + Math.random()))),
    shouldRetry: () => true,
    on: {
      closed: () => { clearTimeout(unanswered); on.closed(); },
      connected: (opened) => { socket = opened as WebSocket; on.opened(); },
      // A line that went dead says nothing: who gets no answer hangs up.
      ping: (received) => { if (!received) unanswered = window.setTimeout(() => socket?.close(4408, "no answer"), 5_000); },
      pong: (received) => { if (received) clearTimeout(unanswered); },
    },
  });
}

export const price = (money: { amount: string; currency: string }) =>
  new Intl.NumberFormat(undefined, { style: "currency", currency: money.currency }).format(Number(money.amount));
export const when = (at: string, timeZone: string) =>
  new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", timeZone }).format(new Date(at));

/** An element with attributes and what is in it. */
export function make<K extends keyof HTMLElementTagNameMap>(tag: K, properties: Partial<HTMLElementTagNameMap[K]> = {}, ...children: (Node | string)[]): HTMLElementTagNameMap[K] {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** The same of SVG. */
export function svg<K extends keyof SVGElementTagNameMap>(tag: K, attributes: Record<string, string | number> = {}, ...children: Node[]): SVGElementTagNameMap[K] {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}
