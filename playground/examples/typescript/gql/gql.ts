/* eslint-disable */
import * as types from './graphql';
import type { TypedDocumentNode as DocumentNode } from '@graphql-typed-document-node/core';

/**
 * Map of all GraphQL operations in the project.
 *
 * This map has several performance disadvantages:
 * 1. It is not tree-shakeable, so it will include all operations in the project.
 * 2. It is not minifiable, so the string of a GraphQL query will be multiple times inside the bundle.
 * 3. It does not support dead code elimination, so it will add unused operations.
 *
 * Therefore it is highly recommended to use the babel or swc plugin for production.
 * Learn more about it here: https://the-guild.dev/graphql/codegen/plugins/presets/preset-client#reducing-bundle-size
 */
type Documents = {
    "\n  query Find($words: String) {\n    searchEvents(query: $words, filter: { saleStatus: [ON_SALE] }, first: 5) { nodes { id title inventoryMode } }\n  }\n": typeof types.FindDocument,
    "\n  subscription WatchMap($event: ID!) {\n    seatMapChanged(eventId: $event) {\n      __typename\n      ... on SeatMapSnapshot { version sections { name statuses } }\n      ... on SeatMapDelta { fromVersion version changes { seatId status } }\n      ... on SeatMapResync { reason }\n    }\n  }\n": typeof types.WatchMapDocument,
    "\n  mutation HoldTwo($event: ID!, $key: String!) {\n    holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) {\n      hold { id expiresInSeconds total { amount currency } items { seat { seatId } } }\n      userErrors { code message }\n    }\n  }\n": typeof types.HoldTwoDocument,
    "\n  mutation Pay($hold: ID!, $key: String!) {\n    checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: \"pm_card_visa\" }) {\n      booking { id status }\n      userErrors { code message }\n    }\n  }\n": typeof types.PayDocument,
    "\n  subscription FollowBooking($id: ID!) {\n    bookingUpdated(id: $id) { id code status tickets { id code } }\n  }\n": typeof types.FollowBookingDocument,
};
const documents: Documents = {
    "\n  query Find($words: String) {\n    searchEvents(query: $words, filter: { saleStatus: [ON_SALE] }, first: 5) { nodes { id title inventoryMode } }\n  }\n": types.FindDocument,
    "\n  subscription WatchMap($event: ID!) {\n    seatMapChanged(eventId: $event) {\n      __typename\n      ... on SeatMapSnapshot { version sections { name statuses } }\n      ... on SeatMapDelta { fromVersion version changes { seatId status } }\n      ... on SeatMapResync { reason }\n    }\n  }\n": types.WatchMapDocument,
    "\n  mutation HoldTwo($event: ID!, $key: String!) {\n    holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) {\n      hold { id expiresInSeconds total { amount currency } items { seat { seatId } } }\n      userErrors { code message }\n    }\n  }\n": types.HoldTwoDocument,
    "\n  mutation Pay($hold: ID!, $key: String!) {\n    checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: \"pm_card_visa\" }) {\n      booking { id status }\n      userErrors { code message }\n    }\n  }\n": types.PayDocument,
    "\n  subscription FollowBooking($id: ID!) {\n    bookingUpdated(id: $id) { id code status tickets { id code } }\n  }\n": types.FollowBookingDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 *
 *
 * @example
 * ```ts
 * const query = graphql(`query GetUser($id: ID!) { user(id: $id) { name } }`);
 * ```
 *
 * The query argument is unknown!
 * Please regenerate the types.
 */
export function graphql(source: string): unknown;

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Find($words: String) {\n    searchEvents(query: $words, filter: { saleStatus: [ON_SALE] }, first: 5) { nodes { id title inventoryMode } }\n  }\n"): (typeof documents)["\n  query Find($words: String) {\n    searchEvents(query: $words, filter: { saleStatus: [ON_SALE] }, first: 5) { nodes { id title inventoryMode } }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  subscription WatchMap($event: ID!) {\n    seatMapChanged(eventId: $event) {\n      __typename\n      ... on SeatMapSnapshot { version sections { name statuses } }\n      ... on SeatMapDelta { fromVersion version changes { seatId status } }\n      ... on SeatMapResync { reason }\n    }\n  }\n"): (typeof documents)["\n  subscription WatchMap($event: ID!) {\n    seatMapChanged(eventId: $event) {\n      __typename\n      ... on SeatMapSnapshot { version sections { name statuses } }\n      ... on SeatMapDelta { fromVersion version changes { seatId status } }\n      ... on SeatMapResync { reason }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation HoldTwo($event: ID!, $key: String!) {\n    holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) {\n      hold { id expiresInSeconds total { amount currency } items { seat { seatId } } }\n      userErrors { code message }\n    }\n  }\n"): (typeof documents)["\n  mutation HoldTwo($event: ID!, $key: String!) {\n    holdSeats(input: { eventId: $event, idempotencyKey: $key, bestAvailable: { quantity: 2 } }) {\n      hold { id expiresInSeconds total { amount currency } items { seat { seatId } } }\n      userErrors { code message }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Pay($hold: ID!, $key: String!) {\n    checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: \"pm_card_visa\" }) {\n      booking { id status }\n      userErrors { code message }\n    }\n  }\n"): (typeof documents)["\n  mutation Pay($hold: ID!, $key: String!) {\n    checkout(input: { holdId: $hold, idempotencyKey: $key, paymentMethod: \"pm_card_visa\" }) {\n      booking { id status }\n      userErrors { code message }\n    }\n  }\n"];
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  subscription FollowBooking($id: ID!) {\n    bookingUpdated(id: $id) { id code status tickets { id code } }\n  }\n"): (typeof documents)["\n  subscription FollowBooking($id: ID!) {\n    bookingUpdated(id: $id) { id code status tickets { id code } }\n  }\n"];

export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}

export type DocumentType<TDocumentNode extends DocumentNode<any, any>> = TDocumentNode extends DocumentNode<  infer TType,  any>  ? TType  : never;