/* eslint-disable */
import type { DocumentTypeDecoration } from '@graphql-typed-document-node/core';
export type Maybe<T> = T | null;
export type InputMaybe<T> = Maybe<T>;
export type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
export type MakeOptional<T, K extends keyof T> = Omit<T, K> & { [SubKey in K]?: Maybe<T[SubKey]> };
export type MakeMaybe<T, K extends keyof T> = Omit<T, K> & { [SubKey in K]: Maybe<T[SubKey]> };
export type MakeEmpty<T extends { [key: string]: unknown }, K extends keyof T> = { [_ in K]?: never };
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
/** All built-in and custom scalars, mapped to their actual values */
export type Scalars = {
  ID: { input: string; output: string; }
  String: { input: string; output: string; }
  Boolean: { input: boolean; output: boolean; }
  Int: { input: number; output: number; }
  Float: { input: number; output: number; }
  /** An ISO 4217 currency code: `"EUR"`. */
  CurrencyCode: { input: string; output: string; }
  /** A local calendar date of the venue, `YYYY-MM-DD`. */
  Date: { input: string; output: string; }
  /** An instant, RFC 3339. Answers are in UTC with milliseconds; an input may carry any offset. */
  DateTime: { input: string; output: string; }
  /** An exact decimal number as text: `"125.00"`, `"1500"`, `"1.234"`. */
  Decimal: { input: string; output: string; }
  /** An opaque position in a seat map's history. Compare for equality, hand back as `afterVersion` to resume. */
  SeatMapVersion: { input: string; output: string; }
  /** An IANA time zone name: `"Europe/Berlin"`. */
  TimeZone: { input: string; output: string; }
  /** An unsigned 64-bit counter as text. Hand it back as `expectedVersion` to edit what you saw. */
  Version: { input: string; output: string; }
};

/** Some admissions of one tier. */
export type AdmissionInput = {
  /** How many, 1 to 100. */
  quantity: Scalars['Int']['input'];
  /** The tier. */
  tierId: Scalars['ID']['input'];
};

/** General admission at one price. */
export type AdmissionTier = {
  __typename?: 'AdmissionTier';
  /** Admissions left, approximately: a hold decides. */
  available: Scalars['Int']['output'];
  /** Admissions in all. */
  capacity: Scalars['Int']['output'];
  /** `tier_…`, unique per event. */
  id: Scalars['ID']['output'];
  /** Unique in the event. */
  name: Scalars['String']['output'];
  /** Of one admission. */
  price: Money;
};

/** A failure that needs no more than its code. */
export type BasicError = UserError & {
  __typename?: 'BasicError';
  /** What to switch on. */
  code: UserErrorCode;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** Seats chosen by the server: best row first, side by side, leaving no single seat where another choice exists. */
export type BestAvailableInput = {
  /** How many of them must be accessible. Accessible seats are never chosen unasked. */
  accessibleCount?: InputMaybe<Scalars['Int']['input']>;
  /** Side by side. Off, the group may be split. */
  adjacent?: InputMaybe<Scalars['Boolean']['input']>;
  /** Only in these price zones. */
  priceZoneIds?: InputMaybe<Array<Scalars['ID']['input']>>;
  /** How many, 1 to 100. */
  quantity: Scalars['Int']['input'];
  /** Only in these sections. */
  sectionIds?: InputMaybe<Array<Scalars['ID']['input']>>;
};

/** Takes available seats off sale, or puts them back. */
export type BlockSeatsInput = {
  /** True: off sale. False: back. */
  blocked: Scalars['Boolean']['input'];
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** Up to 10,000 seats. */
  seatIds: Array<Scalars['ID']['input']>;
};

/** The answer to blockSeats. */
export type BlockSeatsPayload = {
  __typename?: 'BlockSeatsPayload';
  /** The event. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** A hold turned into something paid. Who owns seats, what was paid and what goes back are told apart. */
export type Booking = Node & {
  __typename?: 'Booking';
  /** Whether it can be cancelled now, under the terms frozen at checkout. */
  cancellation?: Maybe<CancellationTerms>;
  /** When it was cancelled. */
  cancelledAt?: Maybe<Scalars['DateTime']['output']>;
  /** What people read out at the door. */
  code: Scalars['String']['output'];
  /** When it was paid. */
  confirmedAt?: Maybe<Scalars['DateTime']['output']>;
  /** When it was made. */
  createdAt: Scalars['DateTime']['output'];
  /** Of which event. */
  event: Event;
  /** What it was made of. */
  hold?: Maybe<Hold>;
  /** `bkg_…` */
  id: Scalars['ID']['output'];
  /** What it covers. */
  items: Array<HoldItem>;
  /** Its payment; null for a free booking. */
  payment?: Maybe<Payment>;
  /** Money on its way back, oldest first. */
  refunds: Array<Refund>;
  /** Where it stands. */
  status: BookingStatus;
  /** One for each admission; a moment after the booking is confirmed. */
  tickets: Array<Ticket>;
  /** Every transition with its time and cause, oldest first. */
  timeline: Array<TimelineEntry>;
  /** What it costs. */
  total: Money;
  /** Counts its changes: hand it back as `expectedVersion`. */
  version: Scalars['Version']['output'];
};

/** Bookings, newest first. */
export type BookingConnection = {
  __typename?: 'BookingConnection';
  /** With cursors. */
  edges: Array<BookingEdge>;
  /** Without. */
  nodes: Array<Booking>;
  /** Where this page stands. */
  pageInfo: PageInfo;
};

/** An entry and its place. */
export type BookingEdge = {
  __typename?: 'BookingEdge';
  /** Its place. */
  cursor: Scalars['String']['output'];
  /** The entry. */
  node: Booking;
};

/** Where a booking stands. Says nothing about money by itself: see `payment` and `refunds`. */
export type BookingStatus =
  /** Undone: the seats are released. Refunds may be on their way. */
  | 'CANCELLED'
  /** Being undone. */
  | 'CANCELLING'
  /** Paid; the seats are the buyer's. */
  | 'CONFIRMED'
  /** Nothing was paid and nothing is owned. */
  | 'FAILED'
  /** Waiting for the payment's outcome. */
  | 'PAYMENT_PENDING'
  /** The provider says the money is back. */
  | 'REFUNDED'
  /** Money came in without seats; a refund is on its way. */
  | 'REFUND_REQUIRED';

/** Cancels the event for good and refunds every confirmed booking in full. */
export type CancelEventInput = {
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Kept in the audit. */
  reason?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to cancelEvent. */
export type CancelEventPayload = {
  __typename?: 'CancelEventPayload';
  /** The event as it is now. */
  event?: Maybe<Event>;
  /** How far undoing its bookings has come. */
  progress?: Maybe<CancelEventProgress>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** How far undoing a cancelled event's bookings has come. */
export type CancelEventProgress = {
  __typename?: 'CancelEventProgress';
  /** Bookings that were confirmed. */
  bookings: Scalars['Int']['output'];
  /** Of those, cancelled. */
  cancelled: Scalars['Int']['output'];
  /** Of those, refunded. */
  refunded: Scalars['Int']['output'];
};

/** Cancels a booking under its terms. */
export type CancelInput = {
  /** Your booking. */
  bookingId: Scalars['ID']['input'];
  /** Refuse if the booking has changed since. */
  expectedVersion?: InputMaybe<Scalars['Version']['input']>;
  /** Yours. 1 to 128 characters. */
  idempotencyKey: Scalars['String']['input'];
  /** Kept in the booking's timeline. */
  reason?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to cancel. */
export type CancelPayload = {
  __typename?: 'CancelPayload';
  /** The booking as it is now. */
  booking?: Maybe<Booking>;
  /** Whether an earlier request had this result already. */
  replayed: Scalars['Boolean']['output'];
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** The terms of cancellation. */
export type CancellationPolicy = {
  __typename?: 'CancellationPolicy';
  /** Null: until the start. */
  allowedUntil?: Maybe<Scalars['DateTime']['output']>;
  /** Share given back. */
  refundPercent: Scalars['Decimal']['output'];
  /** Whether cancelled seats go back on sale. */
  resell: Scalars['Boolean']['output'];
};

/** Omitted: cancellation until the start, 100 %, resold. Rounding: per booking, half-even, in minor units. */
export type CancellationPolicyInput = {
  /** A buyer may cancel until so many seconds before the start; null: until the start. */
  allowedUntilSecondsBeforeStart?: InputMaybe<Scalars['Int']['input']>;
  /** Share given back, "0" to "100", up to four decimals. */
  refundPercent?: InputMaybe<Scalars['Decimal']['input']>;
  /** Whether cancelled seats go back on sale. */
  resell?: InputMaybe<Scalars['Boolean']['input']>;
};

/** What a cancellation now would mean. */
export type CancellationTerms = {
  __typename?: 'CancellationTerms';
  /** Whether it is allowed now. */
  allowed: Scalars['Boolean']['output'];
  /** What would go back now. */
  refundNow?: Maybe<Money>;
  /** Share given back. */
  refundPercent: Scalars['Decimal']['output'];
  /** Until when it is. */
  until?: Maybe<Scalars['DateTime']['output']>;
};

/** Pays a hold. */
export type CheckoutInput = {
  /** Where the confirmation goes. */
  contactEmail?: InputMaybe<Scalars['String']['input']>;
  /** Your hold. */
  holdId: Scalars['ID']['input'];
  /** Yours: the same key with the same hold and payment method gives the same booking. 1 to 128 characters. */
  idempotencyKey: Scalars['String']['input'];
  /** BCP 47, for messages. */
  locale?: InputMaybe<Scalars['String']['input']>;
  /** A token of the payment provider, never card data. */
  paymentMethod: Scalars['String']['input'];
  /** Where the provider sends the buyer after a redirect. */
  returnUrl?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to checkout. After a decline it has both the booking, FAILED, and the error. */
export type CheckoutPayload = {
  __typename?: 'CheckoutPayload';
  /** The booking as it is after a short wait. */
  booking?: Maybe<Booking>;
  /** Whether an earlier request had this result already. */
  replayed: Scalars['Boolean']['output'];
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** A new event, a draft until it is published. */
export type CreateEventInput = {
  /** The terms. */
  cancellation?: InputMaybe<CancellationPolicyInput>;
  /** One word or two, as in facets. */
  category?: InputMaybe<Scalars['String']['input']>;
  /** Of every price. */
  currency: Scalars['CurrencyCode']['input'];
  /** Free text. */
  description?: InputMaybe<Scalars['String']['input']>;
  /** Refuse picks that leave one seat alone between others. */
  forbidSingleSeats?: InputMaybe<Scalars['Boolean']['input']>;
  /** How long a hold lasts, 1 to 86,400 seconds. */
  holdSeconds?: InputMaybe<Scalars['Int']['input']>;
  /** What is sold. */
  inventoryMode: InventoryMode;
  /** A layout of the venue; needed for assigned seats, forbidden for general admission only. */
  layoutId?: InputMaybe<Scalars['ID']['input']>;
  /** Seats and admissions that one buyer may have, 1 to 1,000. */
  maxSeatsPerBuyer?: InputMaybe<Scalars['Int']['input']>;
  /** When the sale closes. */
  offSaleAt: Scalars['DateTime']['input'];
  /** When the sale opens. */
  onSaleAt: Scalars['DateTime']['input'];
  /** The bill, in order. */
  performerIds?: InputMaybe<Array<Scalars['ID']['input']>>;
  /** When it starts. */
  startsAt: Scalars['DateTime']['input'];
  /** General admission. */
  tiers?: InputMaybe<Array<TierInput>>;
  /** Its title. */
  title: Scalars['String']['input'];
  /** Your venue. */
  venueId: Scalars['ID']['input'];
  /** A queue before the sale. */
  waitingRoom?: InputMaybe<WaitingRoomInput>;
  /** A price for every zone of the layout. */
  zonePrices?: InputMaybe<Array<ZonePriceInput>>;
};

/** The answer to createEvent. */
export type CreateEventPayload = {
  __typename?: 'CreateEventPayload';
  /** The event, a draft. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** A new immutable layout: sections, or a seating-plan document, one of the two. */
export type CreateLayoutInput = {
  /** Its name. */
  name: Scalars['String']['input'];
  /** A pretix seating-plan document, as JSON text. */
  pretixPlan?: InputMaybe<Scalars['String']['input']>;
  /** Sections, in order. */
  sections?: InputMaybe<Array<SectionInput>>;
  /** Your venue. */
  venueId: Scalars['ID']['input'];
};

/** The answer to createLayout. */
export type CreateLayoutPayload = {
  __typename?: 'CreateLayoutPayload';
  /** The layout. */
  layout?: Maybe<Layout>;
  /** What an import changed or left out. */
  notes: Array<LayoutNote>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** A new performer. */
export type CreatePerformerInput = {
  /** Free text. */
  genre?: InputMaybe<Scalars['String']['input']>;
  /** Its name. */
  name: Scalars['String']['input'];
};

/** The answer to createPerformer. */
export type CreatePerformerPayload = {
  __typename?: 'CreatePerformerPayload';
  /** The performer. */
  performer?: Maybe<Performer>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** A new place. */
export type CreateVenueInput = {
  /** Its city. */
  city: Scalars['String']['input'];
  /** ISO 3166-1 alpha-2. */
  countryCode: Scalars['String']['input'];
  /** Degrees; with longitude or not at all. */
  latitude?: InputMaybe<Scalars['Float']['input']>;
  /** Degrees; with latitude or not at all. */
  longitude?: InputMaybe<Scalars['Float']['input']>;
  /** Its name. */
  name: Scalars['String']['input'];
  /** Decides the local dates of its events; can't be changed later. */
  timeZone: Scalars['TimeZone']['input'];
};

/** The answer to createVenue. */
export type CreateVenuePayload = {
  __typename?: 'CreateVenuePayload';
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
  /** The venue. */
  venue?: Maybe<Venue>;
};

/** Something at a venue at a time, and the rules by which it is sold. Copy may be a minute old behind a cache. */
export type Event = Node & {
  __typename?: 'Event';
  /** The terms for new bookings. */
  cancellationPolicy: CancellationPolicy;
  /** As in facets. */
  category?: Maybe<Scalars['String']['output']>;
  /** Free text. */
  description?: Maybe<Scalars['String']['output']>;
  /** Whether picks that leave one seat alone are refused. */
  forbidSingleSeats: Scalars['Boolean']['output'];
  /** How long a new hold lasts, in seconds. */
  holdSeconds: Scalars['Int']['output'];
  /** `evt_…` */
  id: Scalars['ID']['output'];
  /** What is sold. */
  inventoryMode: InventoryMode;
  /** Its seating plan. */
  layout?: Maybe<Layout>;
  /** The calendar date at the venue on which it starts. */
  localDate: Scalars['Date']['output'];
  /** Seats and admissions that one buyer may have at once. */
  maxSeatsPerBuyer: Scalars['Int']['output'];
  /** When the sale closes. */
  offSaleAt: Scalars['DateTime']['output'];
  /** When the sale opens. */
  onSaleAt: Scalars['DateTime']['output'];
  /** Who sells it. */
  organizer: Organizer;
  /** The bill, in order. */
  performers: Array<Performer>;
  /** Cheapest and dearest. */
  priceRange?: Maybe<PriceRange>;
  /** Prices of seats; empty for general admission. */
  priceZones: Array<PriceZone>;
  /** Where the sale stands now. */
  saleStatus: SaleStatus;
  /** How it sells: for its organizer only, null to others. A few seconds old. */
  sales?: Maybe<EventSales>;
  /** For URLs; never changes. */
  slug: Scalars['String']['output'];
  /** When it starts. */
  startsAt: Scalars['DateTime']['output'];
  /** General admission; empty for assigned seating. */
  tiers: Array<AdmissionTier>;
  /** The venue's time zone. */
  timeZone: Scalars['TimeZone']['output'];
  /** Its title. */
  title: Scalars['String']['output'];
  /** Where it is. */
  venue: Venue;
  /** Counts edits of the catalogue, not sales: hand it back as `expectedVersion`. */
  version: Scalars['Version']['output'];
  /** Whether a new hold needs an admission token. */
  waitingRoomEnabled: Scalars['Boolean']['output'];
};

/** Events, newest first. */
export type EventConnection = {
  __typename?: 'EventConnection';
  /** With cursors. */
  edges: Array<EventEdge>;
  /** Without. */
  nodes: Array<Event>;
  /** Where this page stands. */
  pageInfo: PageInfo;
};

/** An entry and its place. */
export type EventEdge = {
  __typename?: 'EventEdge';
  /** Its place. */
  cursor: Scalars['String']['output'];
  /** The entry. */
  node: Event;
};

/** Narrows a search. Values of one list are alternatives; different fields must all hold. */
export type EventFilter = {
  /** Category names as in facets. */
  categories?: InputMaybe<Array<Scalars['String']['input']>>;
  /** City names as in facets. */
  cities?: InputMaybe<Array<Scalars['String']['input']>>;
  /** ISO 3166-1 alpha-2. */
  countryCodes?: InputMaybe<Array<Scalars['String']['input']>>;
  /** Only events priced in this currency. */
  currency?: InputMaybe<Scalars['CurrencyCode']['input']>;
  /** First local date of the venue, inclusive. */
  dateFrom?: InputMaybe<Scalars['Date']['input']>;
  /** Last local date of the venue, inclusive. */
  dateTo?: InputMaybe<Scalars['Date']['input']>;
  /** Around a place. */
  near?: InputMaybe<NearInput>;
  /** Performers. */
  performerIds?: InputMaybe<Array<Scalars['ID']['input']>>;
  /** The event has something at this price or below. Needs `currency`. */
  priceMax?: InputMaybe<Scalars['Decimal']['input']>;
  /** The event has something at this price or above. Needs `currency`. */
  priceMin?: InputMaybe<Scalars['Decimal']['input']>;
  /** Without it, drafts, ended and cancelled events are left out. */
  saleStatus?: InputMaybe<Array<SaleStatus>>;
  /** Venues. */
  venueIds?: InputMaybe<Array<Scalars['ID']['input']>>;
};

/** How an event sells. */
export type EventSales = {
  __typename?: 'EventSales';
  /** When this was counted. */
  asOf: Scalars['DateTime']['output'];
  /** Off sale. */
  blocked: Scalars['Int']['output'];
  /** By the hour of confirmation, the cancelled too. */
  byHour: Array<HourSales>;
  /** By section and tier. */
  bySection: Array<SectionSales>;
  /** Seats and admissions in all. */
  capacity: Scalars['Int']['output'];
  /** What all bookings paid that were ever confirmed. */
  gross: Money;
  /** Held or being paid. */
  held: Scalars['Int']['output'];
  /** What of it went back. */
  refunded: Money;
  /** Sold now. */
  sold: Scalars['Int']['output'];
};

/** Events that match a search. */
export type EventSearchConnection = {
  __typename?: 'EventSearchConnection';
  /** Sale status was derived for this time; the index is a few seconds behind the catalogue. */
  asOf: Scalars['DateTime']['output'];
  /** With cursors and scores. */
  edges: Array<EventSearchEdge>;
  /** Counts over all that match. */
  facets: Array<Facet>;
  /** Without. */
  nodes: Array<Event>;
  /** Where this page stands. */
  pageInfo: PageInfo;
  /** All that match. */
  totalCount?: Maybe<Scalars['Int']['output']>;
};

/** An event and how well it matches. */
export type EventSearchEdge = {
  __typename?: 'EventSearchEdge';
  /** Its place. */
  cursor: Scalars['String']['output'];
  /** The event. */
  node: Event;
  /** How well the text matches; null without a text. Comparable within one answer only. */
  score?: Maybe<Scalars['Float']['output']>;
};

/** A seat of an event: A-14 of tonight is not A-14 of tomorrow. */
export type EventSeat = {
  __typename?: 'EventSeat';
  /** A place for a wheelchair. */
  accessible: Scalars['Boolean']['output'];
  /** Row and number, for people. */
  label: Scalars['String']['output'];
  /** The number, as printed. */
  number: Scalars['String']['output'];
  /** Its price. */
  priceZone: PriceZone;
  /** The row's name. */
  row: Scalars['String']['output'];
  /** Unique within its event, stable, readable. `holdSeats` takes it as it is. */
  seatId: Scalars['ID']['output'];
  /** `sec_…`, unique per event. */
  sectionId: Scalars['ID']['output'];
  /** What people call the section. */
  sectionName: Scalars['String']['output'];
  /** What it showed a moment ago: a hold decides. */
  status: SeatStatus;
  /** In the layout's unit. */
  x: Scalars['Float']['output'];
  /** In the layout's unit, downwards. */
  y: Scalars['Float']['output'];
};

/** How search results are ordered. Ties are broken by id. */
export type EventSort =
  /** Soonest first. */
  | 'DATE'
  /** Nearest first; needs `filter.near`. */
  | 'DISTANCE'
  /** Cheapest first; needs `filter.currency`. */
  | 'PRICE'
  /** Best match first; without a text, popular events first. */
  | 'RELEVANCE';

/** Counts by one field. */
export type Facet = {
  __typename?: 'Facet';
  /** Most frequent first. */
  buckets: Array<FacetBucket>;
  /** The field. */
  field: FacetField;
};

/** A value and how many match. */
export type FacetBucket = {
  __typename?: 'FacetBucket';
  /** How many. */
  count: Scalars['Int']['output'];
  /** For people. */
  label: Scalars['String']['output'];
  /** For the filter. */
  value: Scalars['String']['output'];
};

/** What a facet counts by. */
export type FacetField =
  /** The event's category. */
  | 'CATEGORY'
  /** The venue's city. */
  | 'CITY'
  /** The venue's country, ISO 3166-1 alpha-2. */
  | 'COUNTRY'
  /** The venue-local month, `YYYY-MM`. */
  | 'MONTH'
  /** Performer ids. */
  | 'PERFORMER'
  /** Sale status at the time of the query. */
  | 'SALE_STATUS'
  /** Venue ids. */
  | 'VENUE';

/** Seats and admissions set aside for one buyer until a deadline that never moves. */
export type Hold = Node & {
  __typename?: 'Hold';
  /** The newest booking made of it. */
  booking?: Maybe<Booking>;
  /** When it was made. */
  createdAt: Scalars['DateTime']['output'];
  /** Of which event. */
  event: Event;
  /** The deadline: checkout must be called before. */
  expiresAt: Scalars['DateTime']['output'];
  /** Seconds until then, 0 when it has passed. */
  expiresInSeconds: Scalars['Int']['output'];
  /** `hold_…` */
  id: Scalars['ID']['output'];
  /** What it covers, with the price when it was made. */
  items: Array<HoldItem>;
  /** Where it stands now. */
  status: HoldStatus;
  /** What will be paid. */
  total: Money;
};

/** Holds, newest first. */
export type HoldConnection = {
  __typename?: 'HoldConnection';
  /** With cursors. */
  edges: Array<HoldEdge>;
  /** Without. */
  nodes: Array<Hold>;
  /** Where this page stands. */
  pageInfo: PageInfo;
};

/** An entry and its place. */
export type HoldEdge = {
  __typename?: 'HoldEdge';
  /** Its place. */
  cursor: Scalars['String']['output'];
  /** The entry. */
  node: Hold;
};

/** A seat, or some admissions of a tier. */
export type HoldItem = {
  __typename?: 'HoldItem';
  /** How many. */
  quantity: Scalars['Int']['output'];
  /** The seat, or */
  seat?: Maybe<EventSeat>;
  /** the tier. */
  tier?: Maybe<AdmissionTier>;
  /** The price of one when the hold was made. */
  unitPrice: Money;
};

/** Any mix of seats, admissions and one best-available request: all of it is held, or nothing. */
export type HoldSeatsInput = {
  /** From the waiting room, where the event has one. */
  admissionToken?: InputMaybe<Scalars['String']['input']>;
  /** General admission. */
  admissions?: InputMaybe<Array<AdmissionInput>>;
  /** Let the server choose seats. */
  bestAvailable?: InputMaybe<BestAvailableInput>;
  /** The event. */
  eventId: Scalars['ID']['input'];
  /** Yours: the same key with the same request gives the same hold, however often it is sent. 1 to 128 characters. */
  idempotencyKey: Scalars['String']['input'];
  /** Seats by their `seatId`, in any order. */
  seatIds?: InputMaybe<Array<Scalars['ID']['input']>>;
};

/** The answer to holdSeats. */
export type HoldSeatsPayload = {
  __typename?: 'HoldSeatsPayload';
  /** All that was asked for; null if anything was in the way. */
  hold?: Maybe<Hold>;
  /** Whether an earlier request had this result already. */
  replayed: Scalars['Boolean']['output'];
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Where a hold stands. */
export type HoldStatus =
  /** Its seats are set aside until `expiresAt`. */
  | 'ACTIVE'
  /** A booking has taken its seats over. */
  | 'CONVERTED'
  /** The deadline passed. */
  | 'EXPIRED'
  /** Given back by the buyer, or after a failed payment. */
  | 'RELEASED';

/** How an hour sold. */
export type HourSales = {
  __typename?: 'HourSales';
  /** What they paid. */
  gross: Money;
  /** Its beginning. */
  hour: Scalars['DateTime']['output'];
  /** Sold in it. */
  sold: Scalars['Int']['output'];
};

/** What an event sells. */
export type InventoryMode =
  /** Seats of a layout. */
  | 'ASSIGNED'
  /** Admissions counted by tier. */
  | 'GENERAL_ADMISSION'
  /** Both. */
  | 'MIXED';

/** Joins an event's waiting room. */
export type JoinWaitingRoomInput = {
  /** The event. */
  eventId: Scalars['ID']['input'];
};

/** The answer to joinWaitingRoom. */
export type JoinWaitingRoomPayload = {
  __typename?: 'JoinWaitingRoomPayload';
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
  /** Where the buyer stands now. */
  waitingRoom?: Maybe<WaitingRoom>;
};

/** An immutable seating plan of a venue. */
export type Layout = Node & {
  __typename?: 'Layout';
  /** When it was made. */
  createdAt: Scalars['DateTime']['output'];
  /** Where the places of its seats are: JSON, immutable, cacheable for a year. Relative to this server. */
  geometryUrl: Scalars['String']['output'];
  /** `lay_…` */
  id: Scalars['ID']['output'];
  /** What people call it. */
  name: Scalars['String']['output'];
  /** How many seats it has. */
  seatCount: Scalars['Int']['output'];
  /** Its sections, in order. */
  sectionNames: Array<Scalars['String']['output']>;
  /** Its venue. */
  venue: Venue;
  /** Its price zones: an event sets a price for each. */
  zones: Array<Scalars['String']['output']>;
};

/** Something that an import changed or left out. */
export type LayoutNote = {
  __typename?: 'LayoutNote';
  /**
   * A word to switch on: `CATEGORY_RENAMED, GUID_REPEATED`, `ROW_NAMED`, `ROWS_JOINED`, `SEAT_NUMBERED`, `SEAT_RENAMED`, `SECTION_RENAMED`,
   * `EMPTY_ROW`, `UNKNOWN_PROPERTY`. More may come.
   */
  code: Scalars['String']['output'];
  /** For people. */
  message: Scalars['String']['output'];
  /** Where in the document. */
  path: Array<Scalars['String']['output']>;
};

/** Leaves an event's waiting room. */
export type LeaveWaitingRoomInput = {
  /** The event. */
  eventId: Scalars['ID']['input'];
};

/** The answer to leaveWaitingRoom. */
export type LeaveWaitingRoomPayload = {
  __typename?: 'LeaveWaitingRoomPayload';
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** More than one buyer may have. */
export type LimitExceededError = UserError & {
  __typename?: 'LimitExceededError';
  /** What to switch on. */
  code: UserErrorCode;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** What one buyer may have. */
  limit: Scalars['Int']['output'];
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** An amount of money in one currency. */
export type Money = {
  __typename?: 'Money';
  /** Exact, with as many decimals as the currency has. */
  amount: Scalars['Decimal']['output'];
  /** ISO 4217. */
  currency: Scalars['CurrencyCode']['output'];
};

/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type Mutation = {
  __typename?: 'Mutation';
  /** Takes available seats off sale, or puts blocked ones back. All of them, or none and the list of those in the way. */
  blockSeats?: Maybe<BlockSeatsPayload>;
  /**
   * Cancels a confirmed booking under its terms: tickets are revoked, the refund is on its way, the seats are released.
   * CANCELLED says nothing about money: `refunds` does.
   */
  cancel?: Maybe<CancelPayload>;
  /**
   * Calls an event off for good: nothing is sold from then on, and every confirmed booking is refunded in full,
   * whatever its terms.
   */
  cancelEvent?: Maybe<CancelEventPayload>;
  /**
   * Pays a hold and answers after a short wait: CONFIRMED, FAILED with the reason, or `PAYMENT_PENDING` when the
   * payment's outcome is not known yet; then ask again or subscribe to `bookingUpdated`. A hold that has a booking
   * already answers with it, `replayed`.
   */
  checkout?: Maybe<CheckoutPayload>;
  /** Creates an event with all its seats and tiers: a draft, seen by its organization only. */
  createEvent?: Maybe<CreateEventPayload>;
  /** Creates a new immutable layout of one's venue. */
  createLayout?: Maybe<CreateLayoutPayload>;
  /** Creates a performer. */
  createPerformer?: Maybe<CreatePerformerPayload>;
  /** Creates a venue of one's organization. */
  createVenue?: Maybe<CreateVenuePayload>;
  /**
   * Holds seats and admissions for the event's `holdSeconds`: all that is asked for, or nothing. The same key with the
   * same request gives the same hold, `replayed`, even after the sale has closed. A buyer's own. An event with a
   * waiting room asks for its admission token.
   */
  holdSeats?: Maybe<HoldSeatsPayload>;
  /** Joins an event's waiting room, or keeps the place one has. OVERLOADED while the queue is away. */
  joinWaitingRoom?: Maybe<JoinWaitingRoomPayload>;
  /** Leaves an event's waiting room and gives the place up, or the admission. */
  leaveWaitingRoom?: Maybe<LeaveWaitingRoomPayload>;
  /** Stops new holds. Holds and bookings that exist go on. */
  pauseSales?: Maybe<PauseSalesPayload>;
  /** Shows a draft to everyone and sells it inside its sale window. */
  publishEvent?: Maybe<PublishEventPayload>;
  /** Gives a hold back. One that was released or ran out is returned as it is. */
  releaseHold?: Maybe<ReleaseHoldPayload>;
  /** Ends a pause. */
  resumeSales?: Maybe<ResumeSalesPayload>;
  /** Edits an event. Prices and rules hold for new holds; what is held or sold keeps its own. */
  updateEvent?: Maybe<UpdateEventPayload>;
  /** Edits a performer that one's organization created. */
  updatePerformer?: Maybe<UpdatePerformerPayload>;
  /** Edits one's venue. Its time zone never changes. */
  updateVenue?: Maybe<UpdateVenuePayload>;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationBlockSeatsArgs = {
  input: BlockSeatsInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCancelArgs = {
  input: CancelInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCancelEventArgs = {
  input: CancelEventInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCheckoutArgs = {
  input: CheckoutInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCreateEventArgs = {
  input: CreateEventInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCreateLayoutArgs = {
  input: CreateLayoutInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCreatePerformerArgs = {
  input: CreatePerformerInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationCreateVenueArgs = {
  input: CreateVenueInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationHoldSeatsArgs = {
  input: HoldSeatsInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationJoinWaitingRoomArgs = {
  input: JoinWaitingRoomInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationLeaveWaitingRoomArgs = {
  input: LeaveWaitingRoomInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationPauseSalesArgs = {
  input: PauseSalesInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationPublishEventArgs = {
  input: PublishEventInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationReleaseHoldArgs = {
  input: ReleaseHoldInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationResumeSalesArgs = {
  input: ResumeSalesInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationUpdateEventArgs = {
  input: UpdateEventInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationUpdatePerformerArgs = {
  input: UpdatePerformerInput;
};


/**
 * Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
 * valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
 */
export type MutationUpdateVenueArgs = {
  input: UpdateVenueInput;
};

/** A circle on the earth. */
export type NearInput = {
  /** Degrees, -90 to 90. */
  latitude: Scalars['Float']['input'];
  /** Degrees, -180 to 180. */
  longitude: Scalars['Float']['input'];
  /** Kilometres, above 0 and up to 20,038 (half the earth's circumference). */
  radiusKm: Scalars['Float']['input'];
};

/** Something with a globally unique id. */
export type Node = {
  /** Opaque; a prefix tells people the kind. */
  id: Scalars['ID']['output'];
};

/** Who sells: an organization with its venues and events. */
export type Organizer = Node & {
  __typename?: 'Organizer';
  /** Its events, newest first. Drafts are for the organization itself. */
  events?: Maybe<EventConnection>;
  /** `org_…` */
  id: Scalars['ID']['output'];
  /** What people call it. */
  name: Scalars['String']['output'];
  /** Its venues, newest first. */
  venues?: Maybe<VenueConnection>;
};


/** Who sells: an organization with its venues and events. */
export type OrganizerEventsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  status?: InputMaybe<Array<SaleStatus>>;
};


/** Who sells: an organization with its venues and events. */
export type OrganizerVenuesArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
};

/** Where a page stands. */
export type PageInfo = {
  __typename?: 'PageInfo';
  /** Of the last entry: hand it back as `after`. */
  endCursor?: Maybe<Scalars['String']['output']>;
  /** Whether entries follow. */
  hasNextPage: Scalars['Boolean']['output'];
  /** Whether entries precede. */
  hasPreviousPage: Scalars['Boolean']['output'];
  /** Of the first entry. */
  startCursor?: Maybe<Scalars['String']['output']>;
};

/** Stops new holds; holds and bookings that exist go on. */
export type PauseSalesInput = {
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Kept in the audit. */
  reason?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to pauseSales. */
export type PauseSalesPayload = {
  __typename?: 'PauseSalesPayload';
  /** The event as it is now. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** The money side of one booking. */
export type Payment = Node & {
  __typename?: 'Payment';
  /** What is paid. */
  amount: Money;
  /** The provider's word for why it declined. */
  declineCode?: Maybe<Scalars['String']['output']>;
  /** `pay_…` */
  id: Scalars['ID']['output'];
  /** What the buyer has to do, while the status is `REQUIRES_ACTION`. */
  nextAction?: Maybe<PaymentAction>;
  /** When the provider is asked next. */
  nextCheckAt?: Maybe<Scalars['DateTime']['output']>;
  /** Ours, also in the provider's metadata. */
  operationId: Scalars['String']['output'];
  /** Where it stands. */
  status: PaymentStatus;
  /** Since when the provider's answer is not known. */
  unknownSince?: Maybe<Scalars['DateTime']['output']>;
};

/** What the buyer has to do before the hold's deadline. */
export type PaymentAction = {
  __typename?: 'PaymentAction';
  /** hand this to the provider's own library. */
  clientSecret?: Maybe<Scalars['String']['output']>;
  /** Before then. */
  expiresAt: Scalars['DateTime']['output'];
  /** Go there, or */
  redirectUrl?: Maybe<Scalars['String']['output']>;
};

/** The provider declined the payment method. */
export type PaymentDeclinedError = UserError & {
  __typename?: 'PaymentDeclinedError';
  /** What to switch on. */
  code: UserErrorCode;
  /** The provider's word for why. */
  declineCode?: Maybe<Scalars['String']['output']>;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** Whether another payment method may be tried with the same hold. */
  holdStillActive: Scalars['Boolean']['output'];
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** Where a payment stands. */
export type PaymentStatus =
  /** Money is reserved. */
  | 'AUTHORIZED'
  /** Sent to the provider. */
  | 'AUTHORIZING'
  /** Collected. */
  | 'CAPTURED'
  /** Being collected. */
  | 'CAPTURING'
  /** Not sent yet. */
  | 'CREATED'
  /** Declined by the provider. */
  | 'DECLINED'
  /** Ended without money having moved. */
  | 'FAILED'
  /** Amount or currency do not match; a person decides. */
  | 'NEEDS_REVIEW'
  /** The buyer has to do something: see `nextAction`. */
  | 'REQUIRES_ACTION'
  /** The provider's answer is not known; it is being asked, and the seats are protected meanwhile. */
  | 'UNKNOWN'
  /** The reservation was given back. */
  | 'VOIDED'
  /** The reservation is being given back. */
  | 'VOIDING';

/** Who is on stage: edited by the organization that created it, billed by all. */
export type Performer = Node & {
  __typename?: 'Performer';
  /** Free text. */
  genre?: Maybe<Scalars['String']['output']>;
  /** `prf_…` */
  id: Scalars['ID']['output'];
  /** The name on the bill. */
  name: Scalars['String']['output'];
  /** Counts edits: hand it back as `expectedVersion`. */
  version: Scalars['Version']['output'];
};

/** Cheapest and dearest. */
export type PriceRange = {
  __typename?: 'PriceRange';
  /** Dearest. */
  max: Money;
  /** Cheapest. */
  min: Money;
};

/** What seats of a zone cost. */
export type PriceZone = {
  __typename?: 'PriceZone';
  /** `zon_…`, unique per event. */
  id: Scalars['ID']['output'];
  /** Its name in the layout. */
  name: Scalars['String']['output'];
  /** Of one seat. */
  price: Money;
};

/** Shows a draft to everyone. */
export type PublishEventInput = {
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Kept in the audit. */
  reason?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to publishEvent. */
export type PublishEventPayload = {
  __typename?: 'PublishEventPayload';
  /** The event as it is now. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type Query = {
  __typename?: 'Query';
  /** A buyer's own booking by exactly one of id and code. */
  booking?: Maybe<Booking>;
  /** A buyer's own bookings, newest first. */
  bookings?: Maybe<BookingConnection>;
  /** An event by exactly one of id and slug. A draft is its organization's own. */
  event?: Maybe<Event>;
  /** A buyer's own hold, also when it ran out. */
  hold?: Maybe<Hold>;
  /** A buyer's own holds, newest first. */
  holds?: Maybe<HoldConnection>;
  /** A seating plan. */
  layout?: Maybe<Layout>;
  /** Any object by its id. */
  node?: Maybe<Node>;
  /** Objects by their ids, in order; null where there is none. At most 100. */
  nodes: Array<Maybe<Node>>;
  /** An organization that sells. */
  organizer?: Maybe<Organizer>;
  /** A performer. */
  performer?: Maybe<Performer>;
  /**
   * Finds events: free text with typos and prefixes, filters, facets. A few seconds behind the catalogue;
   * `SEARCH_UNAVAILABLE` while the index is being rebuilt.
   */
  searchEvents?: Maybe<EventSearchConnection>;
  /**
   * An event's seat map: from memory, approximate by contract, at most 2 seconds old. Sections that the event does not
   * have are `BAD_USER_INPUT`.
   */
  seatMap?: Maybe<SeatMap>;
  /** A venue. */
  venue?: Maybe<Venue>;
  /** Where the buyer stands in an event's waiting room. Null: not in it; join. Asking renews an admission. */
  waitingRoom?: Maybe<WaitingRoom>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryBookingArgs = {
  code?: InputMaybe<Scalars['String']['input']>;
  id?: InputMaybe<Scalars['ID']['input']>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryBookingsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  eventId?: InputMaybe<Scalars['ID']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  status?: InputMaybe<Array<BookingStatus>>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryEventArgs = {
  id?: InputMaybe<Scalars['ID']['input']>;
  slug?: InputMaybe<Scalars['String']['input']>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryHoldArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryHoldsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  eventId?: InputMaybe<Scalars['ID']['input']>;
  first?: InputMaybe<Scalars['Int']['input']>;
  status?: InputMaybe<Array<HoldStatus>>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryLayoutArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryNodeArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryNodesArgs = {
  ids: Array<Scalars['ID']['input']>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryOrganizerArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryPerformerArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QuerySearchEventsArgs = {
  after?: InputMaybe<Scalars['String']['input']>;
  filter?: InputMaybe<EventFilter>;
  first?: InputMaybe<Scalars['Int']['input']>;
  query?: InputMaybe<Scalars['String']['input']>;
  sort?: InputMaybe<EventSort>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QuerySeatMapArgs = {
  eventId: Scalars['ID']['input'];
  sectionIds?: InputMaybe<Array<Scalars['ID']['input']>>;
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryVenueArgs = {
  id: Scalars['ID']['input'];
};


/** Every read. What does not exist, is malformed or is somebody else's is null, without an error. */
export type QueryWaitingRoomArgs = {
  eventId: Scalars['ID']['input'];
};

/** Money on its way back. */
export type Refund = Node & {
  __typename?: 'Refund';
  /** How much. */
  amount: Money;
  /** When it was saved. */
  createdAt: Scalars['DateTime']['output'];
  /** `rfd_…` */
  id: Scalars['ID']['output'];
  /** Why. */
  reason: RefundReason;
  /** Where it stands. */
  status: RefundStatus;
};

/** Why money goes back. */
export type RefundReason =
  /** The buyer cancelled. */
  | 'BUYER_CANCELLED'
  /** The same seats were paid twice. */
  | 'DUPLICATE_CHARGE'
  /** The event was cancelled. */
  | 'EVENT_CANCELLED'
  /** Anything else. */
  | 'OTHER'
  /** The payment succeeded after the seats were gone. */
  | 'SEATS_LOST';

/** Where a refund stands. */
export type RefundStatus =
  /** The provider could not; another try follows. */
  | 'FAILED'
  /** With the provider. */
  | 'PENDING'
  /** Saved, not sent yet. */
  | 'REQUESTED'
  /** The provider says the money is back. */
  | 'SUCCEEDED';

/** Gives a hold back. */
export type ReleaseHoldInput = {
  /** Your hold. */
  holdId: Scalars['ID']['input'];
};

/** The answer to releaseHold. */
export type ReleaseHoldPayload = {
  __typename?: 'ReleaseHoldPayload';
  /** The hold as it is now. */
  hold?: Maybe<Hold>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Ends a pause. */
export type ResumeSalesInput = {
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Kept in the audit. */
  reason?: InputMaybe<Scalars['String']['input']>;
};

/** The answer to resumeSales. */
export type ResumeSalesPayload = {
  __typename?: 'ResumeSalesPayload';
  /** The event as it is now. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Too much at once, or a part of the system is away: repeat the same request with the same key. */
export type RetryLaterError = UserError & {
  __typename?: 'RetryLaterError';
  /** What to switch on. */
  code: UserErrorCode;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
  /** Wait so long before. */
  retryAfterMs: Scalars['Int']['output'];
};

/** A row of seats. */
export type RowInput = {
  /** Unique in the section. */
  name: Scalars['String']['input'];
  /** In the order of adjacency. */
  seats: Array<SeatInput>;
};

/**
 * Where the sale of an event stands. The first that applies, in the order CANCELLED, DRAFT, ENDED, PAUSED,
 * SCHEDULED, SOLD_OUT, ON_SALE.
 */
export type SaleStatus =
  /** The event will not take place; bookings are refunded. */
  | 'CANCELLED'
  /** Not published: only its organization sees it. */
  | 'DRAFT'
  /** The sale is over. */
  | 'ENDED'
  /** On sale. */
  | 'ON_SALE'
  /** Published, sale stopped for now by its organizer. */
  | 'PAUSED'
  /** Published, on sale later. */
  | 'SCHEDULED'
  /** On sale, nothing left, and nothing that could come back from a hold. */
  | 'SOLD_OUT';

/** A seat that shows something else now. */
export type SeatChange = {
  __typename?: 'SeatChange';
  /** The seat. */
  seatId: Scalars['ID']['output'];
  /** Its section. */
  sectionId: Scalars['ID']['output'];
  /** What it shows. */
  status: SeatStatus;
};

/** A seat or tier that was in the way of a hold. */
export type SeatConflict = {
  __typename?: 'SeatConflict';
  /** What is left of the tier. */
  available?: Maybe<Scalars['Int']['output']>;
  /** When the hold that has the seat runs out, at the latest. */
  availableAgainAt?: Maybe<Scalars['DateTime']['output']>;
  /** The seat, or */
  seatId?: Maybe<Scalars['ID']['output']>;
  /** What the seat is. */
  status?: Maybe<SeatStatus>;
  /** the tier. */
  tierId?: Maybe<Scalars['ID']['output']>;
};

/** A seat. */
export type SeatInput = {
  /** A place for a wheelchair. */
  accessible?: InputMaybe<Scalars['Boolean']['input']>;
  /** An aisle follows: the next seat is no neighbour. */
  gapAfter?: InputMaybe<Scalars['Boolean']['input']>;
  /** Unique in the row. */
  number: Scalars['String']['input'];
  /** In any unit, the same in the whole layout; with y or not at all. */
  x?: InputMaybe<Scalars['Float']['input']>;
  /** In any unit; with x or not at all. */
  y?: InputMaybe<Scalars['Float']['input']>;
  /** The price zone's name. */
  zone: Scalars['String']['input'];
};

/** A seat map, approximate by contract: at most 2 seconds old, and a hold decides. */
export type SeatMap = {
  __typename?: 'SeatMap';
  /** The database's time of this map. */
  asOf: Scalars['DateTime']['output'];
  /** Seats that show as available, of the sections asked for. */
  availableCount: Scalars['Int']['output'];
  /** Whose map it is. */
  event: Event;
  /** In the layout's order. */
  sections: Array<SeatMapSection>;
  /** General admission. */
  tiers: Array<AdmissionTier>;
  /** Equal versions mean equal statuses. Hand it to `seatMapChanged` as `afterVersion` to go on from here. */
  version: Scalars['SeatMapVersion']['output'];
};

/** What changed since the message before: apply it to what you have if `fromVersion` is your version. */
export type SeatMapDelta = {
  __typename?: 'SeatMapDelta';
  /** The database's time of this version. */
  asOf: Scalars['DateTime']['output'];
  /** Seats that show something else now. */
  changes: Array<SeatChange>;
  /** The version of the message before. */
  fromVersion: Scalars['SeatMapVersion']['output'];
  /** Tiers that have another count now. */
  tierChanges: Array<TierChange>;
  /** The version after this one. */
  version: Scalars['SeatMapVersion']['output'];
};

/** Something was missed. A snapshot follows; after `SLOW_CONSUMER` the stream ends: subscribe again. */
export type SeatMapResync = {
  __typename?: 'SeatMapResync';
  /** Why. */
  reason: SeatMapResyncReason;
  /** The version now. */
  version: Scalars['SeatMapVersion']['output'];
};

/** Why a subscriber of a seat map missed something. */
export type SeatMapResyncReason =
  /** It read too slowly; the stream ends. Subscribe again. */
  | 'SLOW_CONSUMER'
  /** The server lost its own source for a moment; a snapshot follows. */
  | 'SOURCE_LOST'
  /** `afterVersion` is not known any more; a snapshot follows. */
  | 'VERSION_UNKNOWN';

/** One section of a seat map. */
export type SeatMapSection = {
  __typename?: 'SeatMapSection';
  /** Seats that show as available. */
  availableCount: Scalars['Int']['output'];
  /** Where the places of the seats are: JSON, immutable, cacheable for a year. Relative to this server. */
  geometryUrl: Scalars['String']['output'];
  /** `sec_…`, unique per event. */
  id: Scalars['ID']['output'];
  /** What people call it. */
  name: Scalars['String']['output'];
  /** Every seat as an object. Large: prefer `statuses` with the geometry. */
  seats: Array<EventSeat>;
  /** One character a seat, in the geometry's order: A available, H held, S sold, B blocked. */
  statuses: Scalars['String']['output'];
  /** The version of this section alone. */
  version: Scalars['SeatMapVersion']['output'];
};

/** The whole map: forget what you had. */
export type SeatMapSnapshot = {
  __typename?: 'SeatMapSnapshot';
  /** The database's time of this map. */
  asOf: Scalars['DateTime']['output'];
  /** Sections asked for, in the layout's order. */
  sections: Array<SeatMapSection>;
  /** General admission. */
  tiers: Array<AdmissionTier>;
  /** The version of this map. */
  version: Scalars['SeatMapVersion']['output'];
};

/** What a subscriber of a seat map gets: a snapshot first, then deltas. */
export type SeatMapUpdate = SeatMapDelta | SeatMapResync | SeatMapSnapshot;

/** One seat on a map, approximate by contract: a hold decides. */
export type SeatStatus =
  /** Free when the map was made. */
  | 'AVAILABLE'
  /** Off sale. */
  | 'BLOCKED'
  /** Set aside by a hold, or being paid. */
  | 'HELD'
  /** Sold. */
  | 'SOLD';

/** Seats or admissions that were in the way. Nothing was held. */
export type SeatsUnavailableError = UserError & {
  __typename?: 'SeatsUnavailableError';
  /** As many seats like those asked for, side by side, the nearest that were free a moment ago. Null: there are none. */
  alternativeSeatIds?: Maybe<Array<Scalars['ID']['output']>>;
  /** What to switch on. */
  code: UserErrorCode;
  /** Each seat or tier in the way, and when it may be free again. */
  conflicts: Array<SeatConflict>;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** A block of rows. */
export type SectionInput = {
  /** Unique in the layout. */
  name: Scalars['String']['input'];
  /** Front to back: the best row first. */
  rows: Array<RowInput>;
};

/** How a section or tier sells. */
export type SectionSales = {
  __typename?: 'SectionSales';
  /** In all. */
  capacity: Scalars['Int']['output'];
  /** What those who have it paid. */
  gross: Money;
  /** Its name. */
  name: Scalars['String']['output'];
  /** A section, or */
  sectionId?: Maybe<Scalars['ID']['output']>;
  /** Sold now. */
  sold: Scalars['Int']['output'];
  /** a tier. */
  tierId?: Maybe<Scalars['ID']['output']>;
};

/** Somebody edited it meanwhile. */
export type StaleVersionError = UserError & {
  __typename?: 'StaleVersionError';
  /** What to switch on. */
  code: UserErrorCode;
  /** The version now. */
  currentVersion: Scalars['Version']['output'];
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** Streams. Each sends where things stand first, then what changes. */
export type Subscription = {
  __typename?: 'Subscription';
  /** A buyer's own booking: as it is now, then whenever it, its payment, refunds or tickets change. */
  bookingUpdated: Booking;
  /**
   * An event's seat map: a snapshot first, then deltas, at most ten a second, each starting at the version of the
   * message before. Public, from memory, approximate by contract.
   */
  seatMapChanged: SeatMapUpdate;
  /**
   * Where the buyer stands in an event's waiting room: now, then whenever that changes; at once when let in. Renews the
   * admission for as long as it is open. Join first.
   */
  waitingRoomUpdated: WaitingRoom;
};


/** Streams. Each sends where things stand first, then what changes. */
export type SubscriptionBookingUpdatedArgs = {
  id: Scalars['ID']['input'];
};


/** Streams. Each sends where things stand first, then what changes. */
export type SubscriptionSeatMapChangedArgs = {
  afterVersion?: InputMaybe<Scalars['SeatMapVersion']['input']>;
  eventId: Scalars['ID']['input'];
  sectionIds?: InputMaybe<Array<Scalars['ID']['input']>>;
};


/** Streams. Each sends where things stand first, then what changes. */
export type SubscriptionWaitingRoomUpdatedArgs = {
  eventId: Scalars['ID']['input'];
};

/** One admission. */
export type Ticket = Node & {
  __typename?: 'Ticket';
  /** Of which booking. */
  booking: Booking;
  /** What it is admitted by: signed, unguessable. */
  code: Scalars['String']['output'];
  /** For which event. */
  event: Event;
  /** `tkt_…` */
  id: Scalars['ID']['output'];
  /** The code as a QR code: an SVG document. */
  qrSvg: Scalars['String']['output'];
  /** Its seat, or */
  seat?: Maybe<EventSeat>;
  /** Whether it admits. */
  status: TicketStatus;
  /** its tier. */
  tier?: Maybe<AdmissionTier>;
};

/** Whether a ticket admits. */
export type TicketStatus =
  /** It does. */
  | 'ISSUED'
  /** It does not: its booking was cancelled. */
  | 'REVOKED';

/** A tier that has another count now. */
export type TierChange = {
  __typename?: 'TierChange';
  /** Admissions left. */
  available: Scalars['Int']['output'];
  /** The tier. */
  tierId: Scalars['ID']['output'];
};

/** A count of admissions at one price. */
export type TierInput = {
  /** How many, 1 to 1,000,000. */
  capacity: Scalars['Int']['input'];
  /** Unique in the event. */
  name: Scalars['String']['input'];
  /** In the event's currency. */
  price: Scalars['Decimal']['input'];
};

/** One transition of a booking or its money. */
export type TimelineEntry = {
  __typename?: 'TimelineEntry';
  /** When. */
  at: Scalars['DateTime']['output'];
  /** What caused it, in a word. */
  cause: Scalars['String']['output'];
  /** More, for people. */
  detail?: Maybe<Scalars['String']['output']>;
  /** From where; null at the beginning. */
  from?: Maybe<Scalars['String']['output']>;
  /** Of what. */
  kind: TimelineKind;
  /** To where. */
  to: Scalars['String']['output'];
};

/** Which part of a booking a timeline entry is about. */
export type TimelineKind =
  /** The booking itself. */
  | 'BOOKING'
  /** Its payment. */
  | 'PAYMENT'
  /** One of its refunds. */
  | 'REFUND'
  /** Its tickets. */
  | 'TICKET';

/**
 * Edits an event. Null or absent: unchanged; `""` and `[]` clear; a nested object replaces the whole object, defaults
 * included; `zonePrices` and `tiers` match by name, unnamed ones stay, a new tier name adds one.
 */
export type UpdateEventInput = {
  /** For new bookings. */
  cancellation?: InputMaybe<CancellationPolicyInput>;
  /** As in facets. */
  category?: InputMaybe<Scalars['String']['input']>;
  /** Free text. */
  description?: InputMaybe<Scalars['String']['input']>;
  /** Your event. */
  eventId: Scalars['ID']['input'];
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** For new holds. */
  forbidSingleSeats?: InputMaybe<Scalars['Boolean']['input']>;
  /** For new holds. */
  holdSeconds?: InputMaybe<Scalars['Int']['input']>;
  /** For new holds. */
  maxSeatsPerBuyer?: InputMaybe<Scalars['Int']['input']>;
  /** When the sale closes. */
  offSaleAt?: InputMaybe<Scalars['DateTime']['input']>;
  /** When the sale opens. */
  onSaleAt?: InputMaybe<Scalars['DateTime']['input']>;
  /** The whole bill. */
  performerIds?: InputMaybe<Array<Scalars['ID']['input']>>;
  /** When it starts. */
  startsAt?: InputMaybe<Scalars['DateTime']['input']>;
  /** A capacity below what is taken is `INVALID_INPUT`. */
  tiers?: InputMaybe<Array<TierInput>>;
  /** Its title. */
  title?: InputMaybe<Scalars['String']['input']>;
  /** Switches the queue on or changes it. */
  waitingRoom?: InputMaybe<WaitingRoomInput>;
  /** For new holds. */
  zonePrices?: InputMaybe<Array<ZonePriceInput>>;
};

/** The answer to updateEvent. */
export type UpdateEventPayload = {
  __typename?: 'UpdateEventPayload';
  /** The event as it is now. */
  event?: Maybe<Event>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Edits a performer. Null or absent: unchanged; `""` clears the genre. */
export type UpdatePerformerInput = {
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Free text. */
  genre?: InputMaybe<Scalars['String']['input']>;
  /** Its name. */
  name?: InputMaybe<Scalars['String']['input']>;
  /** A performer your organization created. */
  performerId: Scalars['ID']['input'];
};

/** The answer to updatePerformer. */
export type UpdatePerformerPayload = {
  __typename?: 'UpdatePerformerPayload';
  /** The performer as it is now. */
  performer?: Maybe<Performer>;
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
};

/** Edits a venue. Null or absent: unchanged. */
export type UpdateVenueInput = {
  /** Its city. */
  city?: InputMaybe<Scalars['String']['input']>;
  /** ISO 3166-1 alpha-2. */
  countryCode?: InputMaybe<Scalars['String']['input']>;
  /** The version you saw. */
  expectedVersion: Scalars['Version']['input'];
  /** Degrees. */
  latitude?: InputMaybe<Scalars['Float']['input']>;
  /** Degrees. */
  longitude?: InputMaybe<Scalars['Float']['input']>;
  /** Its name. */
  name?: InputMaybe<Scalars['String']['input']>;
  /** Your venue. */
  venueId: Scalars['ID']['input'];
};

/** The answer to updateVenue. */
export type UpdateVenuePayload = {
  __typename?: 'UpdateVenuePayload';
  /** What went wrong; empty if all went well. */
  userErrors: Array<UserError>;
  /** The venue as it is now. */
  venue?: Maybe<Venue>;
};

/** A failure as data. Clients switch on `code` and keep a default branch. */
export type UserError = {
  /** What to switch on. */
  code: UserErrorCode;
  /** The path of the input at fault, from the argument on. */
  field?: Maybe<Array<Scalars['String']['output']>>;
  /** For people: what is wrong and what to do. */
  message: Scalars['String']['output'];
};

/** What went wrong with a mutation, as data in its payload's `userErrors`. */
export type UserErrorCode =
  /** This event has a waiting room: join it and hand in the admission token. */
  | 'ADMISSION_REQUIRED'
  /** This mutation is for another role, such as organizers. */
  | 'FORBIDDEN'
  /** The hold's deadline has passed. */
  | 'HOLD_EXPIRED'
  /** The hold was released, or a booking has taken it over. */
  | 'HOLD_NOT_ACTIVE'
  /** This idempotency key was used for another request. Use a new key. */
  | 'IDEMPOTENCY_KEY_REUSED'
  /** A field is missing, malformed, out of range, or contradicts another. `field` says which one. */
  | 'INVALID_INPUT'
  /** More than a buyer may have at once. */
  | 'LIMIT_EXCEEDED'
  /** The booking can't be cancelled: the terms do not allow it, or its payment is not settled yet. */
  | 'NOT_CANCELLABLE'
  /** No such thing, or it is somebody else's: the two look the same. */
  | 'NOT_FOUND'
  /** Too much at once. Repeat the same request with the same key after `retryAfterMs`. */
  | 'OVERLOADED'
  /** The payment provider declined the payment method. The hold may still be active. */
  | 'PAYMENT_DECLINED'
  /** The payment provider does not answer. The hold stays; try again in a moment. */
  | 'PAYMENT_UNAVAILABLE'
  /** The event is not selling now: not yet, not any more, paused or cancelled. */
  | 'SALE_NOT_OPEN'
  /** At least one of the seats is not free. Nothing was held; the error lists the seats in the way. */
  | 'SEATS_UNAVAILABLE'
  /** The pick would leave a single seat between others, which this event does not allow. */
  | 'SINGLE_SEAT_LEFT'
  /** Too few are left in the tier, or for best available, now. */
  | 'SOLD_OUT'
  /** Somebody edited it since `expectedVersion`. Read it again and decide anew. */
  | 'STALE_VERSION';

/** A place where events happen. Its time zone decides their local dates. */
export type Venue = Node & {
  __typename?: 'Venue';
  /** Its city. */
  city: Scalars['String']['output'];
  /** ISO 3166-1 alpha-2. */
  countryCode: Scalars['String']['output'];
  /** `ven_…` */
  id: Scalars['ID']['output'];
  /** Degrees. */
  latitude?: Maybe<Scalars['Float']['output']>;
  /** Its seating plans, oldest first, at most 100. */
  layouts?: Maybe<Array<Layout>>;
  /** Degrees. */
  longitude?: Maybe<Scalars['Float']['output']>;
  /** What people call it. */
  name: Scalars['String']['output'];
  /** IANA name. */
  timeZone: Scalars['TimeZone']['output'];
  /** Counts edits: hand it back as `expectedVersion`. */
  version: Scalars['Version']['output'];
};

/** Venues, newest first. */
export type VenueConnection = {
  __typename?: 'VenueConnection';
  /** With cursors. */
  edges: Array<VenueEdge>;
  /** Without. */
  nodes: Array<Venue>;
  /** Where this page stands. */
  pageInfo: PageInfo;
};

/** An entry and its place. */
export type VenueEdge = {
  __typename?: 'VenueEdge';
  /** Its place. */
  cursor: Scalars['String']['output'];
  /** The entry. */
  node: Venue;
};

/** Where a buyer stands in an event's waiting room. */
export type WaitingRoom = {
  __typename?: 'WaitingRoom';
  /** Until when; renewed by asking again. */
  admissionExpiresAt?: Maybe<Scalars['DateTime']['output']>;
  /** For a new hold, while admitted. Bound to buyer and event. */
  admissionToken?: Maybe<Scalars['String']['output']>;
  /** An honest estimate, while waiting; null while nobody can say. */
  estimatedWaitSeconds?: Maybe<Scalars['Int']['output']>;
  /** The event. */
  eventId: Scalars['ID']['output'];
  /** Ask again after so long. */
  pollAfterMs: Scalars['Int']['output'];
  /** The place in line, 1 being next, while waiting. */
  position?: Maybe<Scalars['Int']['output']>;
  /** Where the buyer stands. */
  status: WaitingRoomStatus;
};

/** How a waiting room lets people in. */
export type WaitingRoomInput = {
  /** Shoppers inside at once for each seat that is left. */
  activePerRemainingSeat?: InputMaybe<Scalars['Float']['input']>;
  /** How long an admitted shopper may stay, 60 to 86,400; the token itself is short and renewed. */
  admissionSeconds?: InputMaybe<Scalars['Int']['input']>;
  /** People a minute, 1 to 1,000,000. */
  admitPerMinute: Scalars['Int']['input'];
};

/** Where a buyer stands in an event's waiting room. */
export type WaitingRoomStatus =
  /** Let in: `admissionToken` is needed for a new hold. */
  | 'ADMITTED'
  /** The sale is over. */
  | 'CLOSED'
  /** There is no queue: hold seats without an admission token. */
  | 'OPEN_ACCESS'
  /** Nothing is left, and nothing can come back. */
  | 'SOLD_OUT'
  /** In the queue. */
  | 'WAITING';

/** What seats of a price zone cost. */
export type ZonePriceInput = {
  /** In the event's currency. */
  price: Scalars['Decimal']['input'];
  /** The zone's name in the layout. */
  zone: Scalars['String']['input'];
};

export type SearchQueryVariables = Exact<{
  query?: InputMaybe<Scalars['String']['input']>;
  filter?: InputMaybe<EventFilter>;
}>;


export type SearchQuery = { __typename?: 'Query', searchEvents?: { __typename?: 'EventSearchConnection', totalCount?: number | null, nodes: Array<{ __typename?: 'Event', id: string, title: string, startsAt: string, timeZone: string, saleStatus: SaleStatus, venue: { __typename?: 'Venue', name: string, city: string }, priceRange?: { __typename?: 'PriceRange', min: { __typename?: 'Money', amount: string, currency: string } } | null }>, facets: Array<{ __typename?: 'Facet', field: FacetField, buckets: Array<{ __typename?: 'FacetBucket', value: string, label: string, count: number }> }> } | null };

export type EventQueryVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type EventQuery = { __typename?: 'Query', event?: { __typename?: 'Event', id: string, title: string, saleStatus: SaleStatus, startsAt: string, onSaleAt: string, timeZone: string, waitingRoomEnabled: boolean, venue: { __typename?: 'Venue', name: string, city: string }, priceZones: Array<{ __typename?: 'PriceZone', name: string, price: { __typename?: 'Money', amount: string, currency: string } }>, tiers: Array<{ __typename?: 'AdmissionTier', id: string, name: string, available: number, price: { __typename?: 'Money', amount: string, currency: string } }>, layout?: { __typename?: 'Layout', geometryUrl: string } | null } | null };

export type WatchSubscriptionVariables = Exact<{
  id: Scalars['ID']['input'];
  after?: InputMaybe<Scalars['SeatMapVersion']['input']>;
}>;


export type WatchSubscription = { __typename?: 'Subscription', seatMapChanged: { __typename: 'SeatMapDelta', version: string, asOf: string, changes: Array<{ __typename?: 'SeatChange', seatId: string, status: SeatStatus }>, tierChanges: Array<{ __typename?: 'TierChange', tierId: string, available: number }> } | { __typename: 'SeatMapResync', version: string, reason: SeatMapResyncReason } | { __typename: 'SeatMapSnapshot', version: string, asOf: string, sections: Array<{ __typename?: 'SeatMapSection', name: string, statuses: string }>, tiers: Array<{ __typename?: 'AdmissionTier', id: string, available: number }> } };

export type JoinMutationVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type JoinMutation = { __typename?: 'Mutation', joinWaitingRoom?: { __typename?: 'JoinWaitingRoomPayload', waitingRoom?: { __typename?: 'WaitingRoom', status: WaitingRoomStatus, position?: number | null, estimatedWaitSeconds?: number | null, admissionToken?: string | null, pollAfterMs: number } | null, userErrors: Array<{ __typename?: 'BasicError', message: string } | { __typename?: 'LimitExceededError', message: string } | { __typename?: 'PaymentDeclinedError', message: string } | { __typename?: 'RetryLaterError', message: string } | { __typename?: 'SeatsUnavailableError', message: string } | { __typename?: 'StaleVersionError', message: string }> } | null };

export type StandQueryVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type StandQuery = { __typename?: 'Query', waitingRoom?: { __typename?: 'WaitingRoom', status: WaitingRoomStatus, position?: number | null, estimatedWaitSeconds?: number | null, admissionToken?: string | null, pollAfterMs: number } | null };

export type MineQueryVariables = Exact<{
  event: Scalars['ID']['input'];
}>;


export type MineQuery = { __typename?: 'Query', holds?: { __typename?: 'HoldConnection', nodes: Array<{ __typename?: 'Hold', id: string, expiresInSeconds: number, total: { __typename?: 'Money', amount: string, currency: string }, items: Array<{ __typename?: 'HoldItem', quantity: number, seat?: { __typename?: 'EventSeat', seatId: string } | null, tier?: { __typename?: 'AdmissionTier', name: string } | null }> }> } | null, bookings?: { __typename?: 'BookingConnection', nodes: Array<{ __typename?: 'Booking', id: string, code: string, status: BookingStatus, total: { __typename?: 'Money', amount: string, currency: string }, tickets: Array<{ __typename?: 'Ticket', id: string, qrSvg: string }>, payment?: { __typename?: 'Payment', status: PaymentStatus } | null }> } | null };

export type HoldMutationVariables = Exact<{
  input: HoldSeatsInput;
}>;


export type HoldMutation = { __typename?: 'Mutation', holdSeats?: { __typename?: 'HoldSeatsPayload', hold?: { __typename?: 'Hold', id: string, expiresInSeconds: number, total: { __typename?: 'Money', amount: string, currency: string }, items: Array<{ __typename?: 'HoldItem', quantity: number, seat?: { __typename?: 'EventSeat', seatId: string } | null, tier?: { __typename?: 'AdmissionTier', name: string } | null }> } | null, userErrors: Array<{ __typename?: 'BasicError', message: string } | { __typename?: 'LimitExceededError', message: string } | { __typename?: 'PaymentDeclinedError', message: string } | { __typename?: 'RetryLaterError', message: string } | { __typename?: 'SeatsUnavailableError', alternativeSeatIds?: Array<string> | null, message: string, conflicts: Array<{ __typename?: 'SeatConflict', seatId?: string | null }> } | { __typename?: 'StaleVersionError', message: string }> } | null };

export type ReleaseMutationVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type ReleaseMutation = { __typename?: 'Mutation', releaseHold?: { __typename?: 'ReleaseHoldPayload', userErrors: Array<{ __typename?: 'BasicError', code: UserErrorCode } | { __typename?: 'LimitExceededError', code: UserErrorCode } | { __typename?: 'PaymentDeclinedError', code: UserErrorCode } | { __typename?: 'RetryLaterError', code: UserErrorCode } | { __typename?: 'SeatsUnavailableError', code: UserErrorCode } | { __typename?: 'StaleVersionError', code: UserErrorCode }> } | null };

export type CheckoutMutationVariables = Exact<{
  input: CheckoutInput;
}>;


export type CheckoutMutation = { __typename?: 'Mutation', checkout?: { __typename?: 'CheckoutPayload', booking?: { __typename?: 'Booking', id: string, code: string, status: BookingStatus, total: { __typename?: 'Money', amount: string, currency: string }, tickets: Array<{ __typename?: 'Ticket', id: string, qrSvg: string }>, payment?: { __typename?: 'Payment', status: PaymentStatus } | null } | null, userErrors: Array<{ __typename?: 'BasicError', code: UserErrorCode, message: string } | { __typename?: 'LimitExceededError', code: UserErrorCode, message: string } | { __typename?: 'PaymentDeclinedError', code: UserErrorCode, message: string } | { __typename?: 'RetryLaterError', code: UserErrorCode, message: string } | { __typename?: 'SeatsUnavailableError', code: UserErrorCode, message: string } | { __typename?: 'StaleVersionError', code: UserErrorCode, message: string }> } | null };

export type CancelMutationVariables = Exact<{
  input: CancelInput;
}>;


export type CancelMutation = { __typename?: 'Mutation', cancel?: { __typename?: 'CancelPayload', booking?: { __typename?: 'Booking', id: string, code: string, status: BookingStatus, total: { __typename?: 'Money', amount: string, currency: string }, tickets: Array<{ __typename?: 'Ticket', id: string, qrSvg: string }>, payment?: { __typename?: 'Payment', status: PaymentStatus } | null } | null, userErrors: Array<{ __typename?: 'BasicError', code: UserErrorCode, message: string } | { __typename?: 'LimitExceededError', code: UserErrorCode, message: string } | { __typename?: 'PaymentDeclinedError', code: UserErrorCode, message: string } | { __typename?: 'RetryLaterError', code: UserErrorCode, message: string } | { __typename?: 'SeatsUnavailableError', code: UserErrorCode, message: string } | { __typename?: 'StaleVersionError', code: UserErrorCode, message: string }> } | null };

export type BookingQueryVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type BookingQuery = { __typename?: 'Query', booking?: { __typename?: 'Booking', id: string, code: string, status: BookingStatus, total: { __typename?: 'Money', amount: string, currency: string }, tickets: Array<{ __typename?: 'Ticket', id: string, qrSvg: string }>, payment?: { __typename?: 'Payment', status: PaymentStatus } | null } | null };

export type BookingPartsFragment = { __typename?: 'Booking', id: string, code: string, status: BookingStatus, total: { __typename?: 'Money', amount: string, currency: string }, tickets: Array<{ __typename?: 'Ticket', id: string, qrSvg: string }>, payment?: { __typename?: 'Payment', status: PaymentStatus } | null };

export type SalesQueryVariables = Exact<{
  id: Scalars['ID']['input'];
}>;


export type SalesQuery = { __typename?: 'Query', event?: { __typename?: 'Event', sales?: { __typename?: 'EventSales', asOf: string, capacity: number, sold: number, held: number, gross: { __typename?: 'Money', amount: string, currency: string }, bySection: Array<{ __typename?: 'SectionSales', name: string, capacity: number, sold: number, gross: { __typename?: 'Money', amount: string, currency: string } }>, byHour: Array<{ __typename?: 'HourSales', hour: string, sold: number, gross: { __typename?: 'Money', amount: string, currency: string } }> } | null } | null };

export class TypedDocumentString<TResult, TVariables>
  extends String
  implements DocumentTypeDecoration<TResult, TVariables>
{
  __apiType?: NonNullable<DocumentTypeDecoration<TResult, TVariables>['__apiType']>;
  private value: string;
  public __meta__?: Record<string, any> | undefined;

  constructor(value: string, __meta__?: Record<string, any> | undefined) {
    super(value);
    this.value = value;
    this.__meta__ = __meta__;
  }

  override toString(): string & DocumentTypeDecoration<TResult, TVariables> {
    return this.value;
  }
}
export const BookingPartsFragmentDoc = new TypedDocumentString(`
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}
    `, {"fragmentName":"BookingParts"}) as unknown as TypedDocumentString<BookingPartsFragment, unknown>;
export const SearchDocument = new TypedDocumentString(`
    query Search($query: String, $filter: EventFilter) {
  searchEvents(query: $query, filter: $filter, first: 30) {
    totalCount
    nodes {
      id
      title
      startsAt
      timeZone
      saleStatus
      venue {
        name
        city
      }
      priceRange {
        min {
          amount
          currency
        }
      }
    }
    facets {
      field
      buckets {
        value
        label
        count
      }
    }
  }
}
    `) as unknown as TypedDocumentString<SearchQuery, SearchQueryVariables>;
export const EventDocument = new TypedDocumentString(`
    query Event($id: ID!) {
  event(id: $id) {
    id
    title
    saleStatus
    startsAt
    onSaleAt
    timeZone
    waitingRoomEnabled
    venue {
      name
      city
    }
    priceZones {
      name
      price {
        amount
        currency
      }
    }
    tiers {
      id
      name
      price {
        amount
        currency
      }
      available
    }
    layout {
      geometryUrl
    }
  }
}
    `) as unknown as TypedDocumentString<EventQuery, EventQueryVariables>;
export const WatchDocument = new TypedDocumentString(`
    subscription Watch($id: ID!, $after: SeatMapVersion) {
  seatMapChanged(eventId: $id, afterVersion: $after) {
    __typename
    ... on SeatMapSnapshot {
      version
      asOf
      sections {
        name
        statuses
      }
      tiers {
        id
        available
      }
    }
    ... on SeatMapDelta {
      version
      asOf
      changes {
        seatId
        status
      }
      tierChanges {
        tierId
        available
      }
    }
    ... on SeatMapResync {
      version
      reason
    }
  }
}
    `) as unknown as TypedDocumentString<WatchSubscription, WatchSubscriptionVariables>;
export const JoinDocument = new TypedDocumentString(`
    mutation Join($id: ID!) {
  joinWaitingRoom(input: {eventId: $id}) {
    waitingRoom {
      status
      position
      estimatedWaitSeconds
      admissionToken
      pollAfterMs
    }
    userErrors {
      message
    }
  }
}
    `) as unknown as TypedDocumentString<JoinMutation, JoinMutationVariables>;
export const StandDocument = new TypedDocumentString(`
    query Stand($id: ID!) {
  waitingRoom(eventId: $id) {
    status
    position
    estimatedWaitSeconds
    admissionToken
    pollAfterMs
  }
}
    `) as unknown as TypedDocumentString<StandQuery, StandQueryVariables>;
export const MineDocument = new TypedDocumentString(`
    query Mine($event: ID!) {
  holds(eventId: $event, status: [ACTIVE], first: 1) {
    nodes {
      id
      expiresInSeconds
      total {
        amount
        currency
      }
      items {
        quantity
        seat {
          seatId
        }
        tier {
          name
        }
      }
    }
  }
  bookings(eventId: $event, first: 10) {
    nodes {
      ...BookingParts
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`) as unknown as TypedDocumentString<MineQuery, MineQueryVariables>;
export const HoldDocument = new TypedDocumentString(`
    mutation Hold($input: HoldSeatsInput!) {
  holdSeats(input: $input) {
    hold {
      id
      expiresInSeconds
      total {
        amount
        currency
      }
      items {
        quantity
        seat {
          seatId
        }
        tier {
          name
        }
      }
    }
    userErrors {
      message
      ... on SeatsUnavailableError {
        conflicts {
          seatId
        }
        alternativeSeatIds
      }
    }
  }
}
    `) as unknown as TypedDocumentString<HoldMutation, HoldMutationVariables>;
export const ReleaseDocument = new TypedDocumentString(`
    mutation Release($id: ID!) {
  releaseHold(input: {holdId: $id}) {
    userErrors {
      code
    }
  }
}
    `) as unknown as TypedDocumentString<ReleaseMutation, ReleaseMutationVariables>;
export const CheckoutDocument = new TypedDocumentString(`
    mutation Checkout($input: CheckoutInput!) {
  checkout(input: $input) {
    booking {
      ...BookingParts
    }
    userErrors {
      code
      message
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`) as unknown as TypedDocumentString<CheckoutMutation, CheckoutMutationVariables>;
export const CancelDocument = new TypedDocumentString(`
    mutation Cancel($input: CancelInput!) {
  cancel(input: $input) {
    booking {
      ...BookingParts
    }
    userErrors {
      code
      message
    }
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`) as unknown as TypedDocumentString<CancelMutation, CancelMutationVariables>;
export const BookingDocument = new TypedDocumentString(`
    query Booking($id: ID!) {
  booking(id: $id) {
    ...BookingParts
  }
}
    fragment BookingParts on Booking {
  id
  code
  status
  total {
    amount
    currency
  }
  tickets {
    id
    qrSvg
  }
  payment {
    status
  }
}`) as unknown as TypedDocumentString<BookingQuery, BookingQueryVariables>;
export const SalesDocument = new TypedDocumentString(`
    query Sales($id: ID!) {
  event(id: $id) {
    sales {
      asOf
      capacity
      sold
      held
      gross {
        amount
        currency
      }
      bySection {
        name
        capacity
        sold
        gross {
          amount
          currency
        }
      }
      byHour {
        hour
        sold
        gross {
          amount
          currency
        }
      }
    }
  }
}
    `) as unknown as TypedDocumentString<SalesQuery, SalesQueryVariables>;