// Everything the page asks for. Its types are in gql/, generated from the schema.
import { graphql } from "./gql";

export const SEARCH = graphql(`
  query Search($query: String, $filter: EventFilter) {
    searchEvents(query: $query, filter: $filter, first: 30) {
      totalCount
      nodes { id title startsAt timeZone saleStatus venue { name city } priceRange { min { amount currency } } }
      facets { field buckets { value label count } }
    }
  }
`);

export const EVENT = graphql(`
  query Event($id: ID!) {
    event(id: $id) {
      id title saleStatus startsAt onSaleAt timeZone waitingRoomEnabled venue { name city }
      priceZones { name price { amount currency } } tiers { id name price { amount currency } available }
      layout { geometryUrl }
    }
  }
`);

export const WATCH = graphql(`
  subscription Watch($id: ID!, $after: SeatMapVersion) {
    seatMapChanged(eventId: $id, afterVersion: $after) {
      __typename
      ... on SeatMapSnapshot { version asOf sections { name statuses } tiers { id available } }
      ... on SeatMapDelta { version asOf changes { seatId status } tierChanges { tierId available } }
      ... on SeatMapResync { version reason }
    }
  }
`);

export const JOIN = graphql(`
  mutation Join($id: ID!) {
    joinWaitingRoom(input: { eventId: $id }) {
      waitingRoom { status position estimatedWaitSeconds admissionToken pollAfterMs }
      userErrors { message }
    }
  }
`);

export const STAND = graphql(`
  query Stand($id: ID!) {
    waitingRoom(eventId: $id) { status position estimatedWaitSeconds admissionToken pollAfterMs }
  }
`);

export const MINE = graphql(`
  query Mine($event: ID!) {
    holds(eventId: $event, status: [ACTIVE], first: 1) {
      nodes { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }
    }
    bookings(eventId: $event, first: 10) { nodes { ...BookingParts } }
  }
`);

export const HOLD = graphql(`
  mutation Hold($input: HoldSeatsInput!) {
    holdSeats(input: $input) {
      hold { id expiresInSeconds total { amount currency } items { quantity seat { seatId } tier { name } } }
      userErrors { message ... on SeatsUnavailableError { conflicts { seatId } alternativeSeatIds } }
    }
  }
`);

export const RELEASE = graphql(`
  mutation Release($id: ID!) { releaseHold(input: { holdId: $id }) { userErrors { code } } }
`);

export const CHECKOUT = graphql(`
  mutation Checkout($input: CheckoutInput!) {
    checkout(input: $input) { booking { ...BookingParts } userErrors { code message } }
  }
`);

export const CANCEL = graphql(`
  mutation Cancel($input: CancelInput!) {
    cancel(input: $input) { booking { ...BookingParts } userErrors { code message } }
  }
`);

export const BOOKING = graphql(`
  query Booking($id: ID!) { booking(id: $id) { ...BookingParts } }
`);

export const BOOKING_PARTS = graphql(`
  fragment BookingParts on Booking {
    id code status total { amount currency } tickets { id qrSvg } payment { status }
  }
`);

export const SALES = graphql(`
  query Sales($id: ID!) {
    event(id: $id) {
      sales {
        asOf capacity sold held gross { amount currency }
        bySection { name capacity sold gross { amount currency } }
        byHour { hour sold gross { amount currency } }
      }
    }
  }
`);
