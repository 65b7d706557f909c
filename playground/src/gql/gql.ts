/* eslint-disable */
import * as types from './graphql';



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
    "\n  query Search($query: String, $filter: EventFilter) {\n    searchEvents(query: $query, filter: $filter, first: 30) {\n      totalCount\n      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }\n      facets { field buckets { value label count } }\n    }\n  }\n": typeof types.SearchDocument,
    "\n  query Event($id: ID!) {\n    event(id: $id) {\n      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }\n      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }\n      layout { geometryUrl }\n    }\n  }\n": typeof types.EventDocument,
    "\n  subscription Watch($id: ID!, $after: SeatMapVersion) {\n    seatMapChanged(eventId: $id, afterVersion: $after) {\n      __typename\n      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }\n      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }\n      ... on SeatMapResync { version reason }\n    }\n  }\n": typeof types.WatchDocument,
    "\n  mutation Join($id: ID!) {\n    joinWaitingRoom(input: { eventId: $id }) {\n      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }\n      userErrors { message }\n    }\n  }\n": typeof types.JoinDocument,
    "\n  query Stand($id: ID!) {\n    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }\n  }\n": typeof types.StandDocument,
    "\n  query Mine($event: ID!) {\n    holds(eventId: $event, status: [ACTIVE], first: 1) {\n      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n    }\n    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }\n  }\n": typeof types.MineDocument,
    "\n  mutation Hold($input: HoldSeatsInput!) {\n    holdSeats(input: $input) {\n      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }\n    }\n  }\n": typeof types.HoldDocument,
    "\n  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }\n": typeof types.ReleaseDocument,
    "\n  mutation Checkout($input: CheckoutInput!) {\n    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n": typeof types.CheckoutDocument,
    "\n  mutation Cancel($input: CancelInput!) {\n    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n": typeof types.CancelDocument,
    "\n  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }\n": typeof types.BookingDocument,
    "\n  fragment BookingParts on Booking {\n    id code status total { amount currency } tickets { id qrSvg } payment { status }\n  }\n": typeof types.BookingPartsFragmentDoc,
    "\n  query Sales($id: ID!) {\n    event(id: $id) {\n      sales {\n        asOf capacity sold held gross { amount currency }\n        bySection { name capacity sold gross { amount currency } }\n        byHour { hour sold gross { amount currency } }\n      }\n    }\n  }\n": typeof types.SalesDocument,
};
const documents: Documents = {
    "\n  query Search($query: String, $filter: EventFilter) {\n    searchEvents(query: $query, filter: $filter, first: 30) {\n      totalCount\n      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }\n      facets { field buckets { value label count } }\n    }\n  }\n": types.SearchDocument,
    "\n  query Event($id: ID!) {\n    event(id: $id) {\n      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }\n      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }\n      layout { geometryUrl }\n    }\n  }\n": types.EventDocument,
    "\n  subscription Watch($id: ID!, $after: SeatMapVersion) {\n    seatMapChanged(eventId: $id, afterVersion: $after) {\n      __typename\n      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }\n      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }\n      ... on SeatMapResync { version reason }\n    }\n  }\n": types.WatchDocument,
    "\n  mutation Join($id: ID!) {\n    joinWaitingRoom(input: { eventId: $id }) {\n      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }\n      userErrors { message }\n    }\n  }\n": types.JoinDocument,
    "\n  query Stand($id: ID!) {\n    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }\n  }\n": types.StandDocument,
    "\n  query Mine($event: ID!) {\n    holds(eventId: $event, status: [ACTIVE], first: 1) {\n      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n    }\n    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }\n  }\n": types.MineDocument,
    "\n  mutation Hold($input: HoldSeatsInput!) {\n    holdSeats(input: $input) {\n      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }\n    }\n  }\n": types.HoldDocument,
    "\n  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }\n": types.ReleaseDocument,
    "\n  mutation Checkout($input: CheckoutInput!) {\n    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n": types.CheckoutDocument,
    "\n  mutation Cancel($input: CancelInput!) {\n    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n": types.CancelDocument,
    "\n  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }\n": types.BookingDocument,
    "\n  fragment BookingParts on Booking {\n    id code status total { amount currency } tickets { id qrSvg } payment { status }\n  }\n": types.BookingPartsFragmentDoc,
    "\n  query Sales($id: ID!) {\n    event(id: $id) {\n      sales {\n        asOf capacity sold held gross { amount currency }\n        bySection { name capacity sold gross { amount currency } }\n        byHour { hour sold gross { amount currency } }\n      }\n    }\n  }\n": types.SalesDocument,
};

/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Search($query: String, $filter: EventFilter) {\n    searchEvents(query: $query, filter: $filter, first: 30) {\n      totalCount\n      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }\n      facets { field buckets { value label count } }\n    }\n  }\n"): typeof import('./graphql').SearchDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Event($id: ID!) {\n    event(id: $id) {\n      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }\n      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }\n      layout { geometryUrl }\n    }\n  }\n"): typeof import('./graphql').EventDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  subscription Watch($id: ID!, $after: SeatMapVersion) {\n    seatMapChanged(eventId: $id, afterVersion: $after) {\n      __typename\n      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }\n      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }\n      ... on SeatMapResync { version reason }\n    }\n  }\n"): typeof import('./graphql').WatchDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Join($id: ID!) {\n    joinWaitingRoom(input: { eventId: $id }) {\n      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }\n      userErrors { message }\n    }\n  }\n"): typeof import('./graphql').JoinDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Stand($id: ID!) {\n    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }\n  }\n"): typeof import('./graphql').StandDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Mine($event: ID!) {\n    holds(eventId: $event, status: [ACTIVE], first: 1) {\n      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n    }\n    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }\n  }\n"): typeof import('./graphql').MineDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Hold($input: HoldSeatsInput!) {\n    holdSeats(input: $input) {\n      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }\n      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }\n    }\n  }\n"): typeof import('./graphql').HoldDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }\n"): typeof import('./graphql').ReleaseDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Checkout($input: CheckoutInput!) {\n    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n"): typeof import('./graphql').CheckoutDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  mutation Cancel($input: CancelInput!) {\n    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }\n  }\n"): typeof import('./graphql').CancelDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }\n"): typeof import('./graphql').BookingDocument;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  fragment BookingParts on Booking {\n    id code status total { amount currency } tickets { id qrSvg } payment { status }\n  }\n"): typeof import('./graphql').BookingPartsFragmentDoc;
/**
 * The graphql function is used to parse GraphQL queries into a document that can be used by GraphQL clients.
 */
export function graphql(source: "\n  query Sales($id: ID!) {\n    event(id: $id) {\n      sales {\n        asOf capacity sold held gross { amount currency }\n        bySection { name capacity sold gross { amount currency } }\n        byHour { hour sold gross { amount currency } }\n      }\n    }\n  }\n"): typeof import('./graphql').SalesDocument;


export function graphql(source: string) {
  return (documents as any)[source] ?? {};
}
