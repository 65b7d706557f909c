// Buys two seats with urql: queries and mutations over HTTP, live updates over graphql-ws.
import { Client, fetchExchange, subscriptionExchange } from "@urql/core";
import { randomUUID } from "node:crypto";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { BOOKING, FIND, HOLD, PAY, WATCH, done, settings } from "./operations";

const authorization = `Bearer ${settings.token}`;
const sockets = createClient({
  url: `${settings.url.replace("http", "ws")}/graphql`,
  connectionParams: { authorization },
  webSocketImpl: WebSocket,
});
const client = new Client({
  url: `${settings.url}/graphql`,
  preferGetMethod: false,
  fetchOptions: { headers: { authorization } },
  exchanges: [
    fetchExchange,
    subscriptionExchange({
      forwardSubscription: ({ query, variables }) => ({
        subscribe: (sink) => ({ unsubscribe: sockets.subscribe({ query: query ?? "", variables }, sink) }),
      }),
    }),
  ],
});

const found = await client.query(FIND, { words: null });
if (found.error) throw found.error;
const event = settings.event ?? found.data?.searchEvents?.nodes.find(({ inventoryMode }) => inventoryMode === "ASSIGNED")?.id;
if (!event) throw new Error("no event is on sale");

// Each delta starts at the version of the message before.
let version = "";
const deltas = new Promise<string[]>((seen, failed) => {
  client.subscription(WATCH, { event }).subscribe(({ data, error }) => {
    if (error) return failed(error);
    const update = data?.seatMapChanged;
    if (update?.__typename === "SeatMapDelta") {
      if (update.fromVersion !== version) return failed(new Error("a delta is missing"));
      seen(update.changes.map(({ seatId, status }) => `${seatId} ${status}`));
    }
    if (update && "version" in update) version = update.version;
    if (update?.__typename === "SeatMapSnapshot") void buy().catch(failed);
  });
});

let bought: (booking: string) => void;
const booking = new Promise<string>((resolve) => { bought = resolve; });

async function buy() {
  const held = await client.mutation(HOLD, { event: event!, key: randomUUID() });
  if (held.error) throw held.error;
  const { hold } = done(held.data?.holdSeats);
  console.log(`held ${hold!.items.map(({ seat }) => seat?.seatId).join(" and ")} for ${hold!.total.amount} ${hold!.total.currency}`);
  const paid = await client.mutation(PAY, { hold: hold!.id, key: randomUUID() });
  if (paid.error) throw paid.error;
  bought(done(paid.data?.checkout).booking!.id);
}

console.log(`the map says: ${(await deltas).join(", ")}`);
const id = await booking;
const { code, status, tickets } = await new Promise<{ code: string; status: string; tickets: unknown[] }>((resolve, failed) => {
  client.subscription(BOOKING, { id }).subscribe(({ data, error }) => {
    if (error) return failed(error);
    const now = data?.bookingUpdated;
    if (now?.status === "FAILED") return failed(new Error("the payment failed"));
    if (now?.status === "CONFIRMED" && now.tickets.length) resolve(now);
  });
});
console.log(`${code}: ${status}, ${tickets.length} tickets`);
process.exit(0);
