// What both clients ask for. The types are in gql/: `npm run types` makes them from the schema.
import { graphql } from "./gql";

export const FIND = graphql(`
  query Find($words: String) {
    searchEvents(query: $words, filter: { saleStatus: [ON_SALE] }, first: 5) { nodes { id title inventoryMode } }
  }
`);

export const WATCH = graphql(`
  subscription WatchMap($event: ID!) {
    seatMapChanged(eventId: $event) {
      __typename
      ... on SeatMapSnapshot { version sections { name statuses } }
      ... on SeatMapDelta { fromVersion version changes { seatId status } }
      ... on SeatMapResync { reason }
    }
  }
`);

export const HOLD = graphql(`
  mutation HoldTwo($event: ID!, $key: String!) {
    holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) {
      hold { id expiresInSeconds total { amount currency } items { seat { seatId } } }
      userErrors { code message }
    }
  }
`);

export const PAY = graphql(`
  mutation Pay($hold: ID!, $key: String!) {
    checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: "pm_card_visa" }) {
      booking { id status }
      userErrors { code message }
    }
  }
`);

export const BOOKING = graphql(`
  subscription FollowBooking($id: ID!) {
    bookingUpdated(id: $id) { id code status tickets { id code } }
  }
`);

/** Where the server is and who is asking. */
export const settings = {
  url: process.env.PARTERRE_URL ?? "http://127.0.0.1:8000",
  token: process.env.PARTERRE_TOKEN ?? "",
  event: process.env.PARTERRE_EVENT,
};
if (!settings.token) throw new Error("set PARTERRE_TOKEN: ./dev token buyer ada");

/** A mutation's answer, or what was wrong with it, in words. */
export function done<T extends { userErrors: { code: string; message: string }[] }>(payload: T | null | undefined): T {
  const error = payload?.userErrors[0];
  if (!payload || error) throw new Error(error ? `${error.code}: ${error.message}` : "no answer");
  return payload;
}
