// Buys two seats with Apollo Client: a split link, queries and mutations over HTTP, subscriptions over graphql-ws.
import { ApolloClient, ApolloLink, HttpLink, InMemoryCache } from "@apollo/client";
import { GraphQLWsLink } from "@apollo/client/link/subscriptions";
import { OperationTypeNode } from "graphql";
import { randomUUID } from "node:crypto";
import { createClient } from "graphql-ws";
import WebSocket from "ws";
import { BOOKING, FIND, HOLD, PAY, WATCH, done, settings } from "./operations";

const authorization = `Bearer ${settings.token}`;
const client = new ApolloClient({
  cache: new InMemoryCache({
    possibleTypes: {
      SeatMapUpdate: ["SeatMapSnapshot", "SeatMapDelta", "SeatMapResync"],
      UserError: ["BasicError", "SeatsUnavailableError", "PaymentDeclinedError", "LimitExceededError", "StaleVersionError", "RetryLaterError"],
    },
  }),
  link: ApolloLink.split(
    ({ operationType }) => operationType === OperationTypeNode.SUBSCRIPTION,
    new GraphQLWsLink(createClient({
      url: `${settings.url.replace("http", "ws")}/graphql`,
      connectionParams: { authorization },
      webSocketImpl: WebSocket,
    })),
    new HttpLink({ uri: `${settings.url}/graphql`, headers: { authorization } }),
  ),
});

const found = await client.query({ query: FIND, variables: { words: null } });
const event = settings.event ?? found.data?.searchEvents?.nodes.find(({ inventoryMode }) => inventoryMode === "ASSIGNED")?.id;
if (!event) throw new Error("no event is on sale");

const deltas = new Promise<string[]>((seen, failed) => {
  client.subscribe({ query: WATCH, variables: { event } }).subscribe({
    next: ({ data, error }) => {
      if (error) return failed(error);
      const update = data?.seatMapChanged;
      if (update?.__typename === "SeatMapSnapshot") void buy().catch(failed);
      if (update?.__typename === "SeatMapDelta") seen(update.changes.map(({ seatId, status }) => `${seatId} ${status}`));
    },
    error: failed,
  });
});

let bought: (booking: string) => void;
const booking = new Promise<string>((resolve) => { bought = resolve; });

async function buy() {
  const held = await client.mutate({ mutation: HOLD, variables: { event: event!, key: randomUUID() } });
  const { hold } = done(held.data?.holdSeats);
  console.log(`held ${hold!.items.map(({ seat }) => seat?.seatId).join(" and ")} for ${hold!.total.amount} ${hold!.total.currency}`);
  const paid = await client.mutate({ mutation: PAY, variables: { hold: hold!.id, key: randomUUID() } });
  bought(done(paid.data?.checkout).booking!.id);
}

console.log(`the map says: ${(await deltas).join(", ")}`);
const id = await booking;
const { code, status, tickets } = await new Promise<{ code: string; status: string; tickets: readonly unknown[] }>((resolve, failed) => {
  client.subscribe({ query: BOOKING, variables: { id } }).subscribe({
    next: ({ data }) => {
      const now = data?.bookingUpdated;
      if (now?.status === "FAILED") return failed(new Error("the payment failed"));
      if (now?.status === "CONFIRMED" && now.tickets.length) resolve(now);
    },
    error: failed,
  });
});
console.log(`${code}: ${status}, ${tickets.length} tickets`);
process.exit(0);
