// Odd documents, answered by graphql-js over the same schema and by the server: the data (values, nulls, order of keys),
// the paths of errors, and whether the document was executed at all have to be the same. Messages are each one's own.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { buildSchema, graphql } from 'graphql';

const { URL_HTTP, VENUE } = process.env;
const venue = JSON.parse(VENUE);
const schema = buildSchema(readFileSync('../../schema/schema.graphql', 'utf8'));
const unauthenticated = () => { throw new Error('a valid bearer token is needed'); };
const node = (id) => (id === venue.id ? { __typename: 'Venue', ...venue } : null);
const rootValue = {
  node: ({ id }) => node(id),
  nodes: ({ ids }) => ids.map(node),
  venue: ({ id }) => node(id),
  event: () => null,
  performer: () => null,
  booking: unauthenticated,
  bookings: unauthenticated,
  hold: unauthenticated,
  holds: unauthenticated,
  releaseHold: unauthenticated,
  cancel: unauthenticated,
};

const id = venue.id;
const V = `venue(id: "${id}")`;
const CORPUS = [
  // Shapes and orders
  '{ __typename }',
  '{ b: __typename a: __typename }',
  `{ ${V} { name city } ${V} { countryCode name } }`,
  `{ ...Z y: __typename } fragment Z on Query { z: __typename x: __typename }`,
  `{ a: ${V} { name } ...F } fragment F on Query { b: __typename a: ${V} { city name } }`,
  `{ ... { x: __typename ... on Query { y: __typename } } }`,
  `{ node(id: "${id}") { __typename id ... on Venue { name } ... on Event { title } } }`,
  `{ node(id: "${id}") { ... on Node { id } ... on Performer { name } } }`,
  `{ nodes(ids: ["x", "${id}", "evt_1"]) { id } }`,
  `{ nodes(ids: "${id}") { __typename } }`,
  '{ nodes(ids: []) { id } }',
  `{ ${V} { latitude longitude } }`,
  ',,,{ , __typename , } ,,',
  '# nothing\n{ __typename } # and nothing',
  '\uFEFF{ __typename }',
  `{ venue(id: """${id}""") { name } }`,
  `{ venue(id: "${id.replace('v', '\\u0076')}") { name } }`,
  '{ venue(id: "😀 \\n \\t \\\\ \\"") { name } }',
  '{ venue(id: 5) { name } }',
  'query Named { __typename }',
  // Nulls and errors
  '{ performer(id: "x") { name } event(id: "x", slug: null) { title } }',
  '{ booking(id: "x") { id } }',
  `{ first: booking(id: "x") { id } ${V} { name } second: booking(code: "y") { id } }`,
  '{ bookings { nodes { id } } holds { nodes { id } } }',
  'mutation { releaseHold(input: { holdId: "x" }) { hold { id } } }',
  'mutation { b: releaseHold(input: { holdId: "x" }) { __typename } a: cancel(input: { bookingId: "x", idempotencyKey: "k" }) { __typename } }',
  'mutation { __typename }',
  // Directives
  `query ($yes: Boolean!) { a: __typename @include(if: $yes) b: __typename @skip(if: $yes) }`,
  '{ __typename @skip(if: false) @include(if: true) }',
  '{ a: __typename @skip(if: true) @include(if: true) b: __typename }',
  '{ ...F @include(if: false) a: __typename } fragment F on Query { b: __typename }',
  '{ ... @skip(if: true) { b: __typename } a: __typename }',
  '{ __typename @skip(if: true) }',
  '{ __typename @unknown }',
  '{ __typename @skip }',
  '{ __typename @skip(if: "yes") }',
  '{ __typename @include(if: true) @include(if: true) }',
  'query @skip(if: true) { __typename }',
  // Variables
  ['query ($id: ID!) { venue(id: $id) { name } }', { id }],
  ['query ($id: ID!) { venue(id: $id) { name } }', { id: 7 }],
  ['query ($id: ID!) { venue(id: $id) { name } }', {}],
  ['query ($id: ID!) { venue(id: $id) { name } }', { id: null }],
  ['query ($id: ID!) { venue(id: $id) { name } }', { id: true }],
  ['query ($id: ID!) { venue(id: $id) { name } }', { id: ['x'] }],
  ['query ($id: ID!) { venue(id: $id) { name } }', { id, more: 1 }],
  [`query ($id: ID! = "${id}") { venue(id: $id) { name } }`, {}],
  [`query ($id: ID = "${id}") { venue(id: $id) { name } }`, {}],
  ['query ($id: ID) { venue(id: $id) { name } }', { id }],
  ['query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: ['x'] }],
  ['query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: 'x' }],
  ['query ($ids: [ID!]!) { nodes(ids: $ids) { id } }', { ids: [null] }],
  ['query ($one: ID!) { nodes(ids: [$one, "y"]) { id } }', { one: id }],
  ['query ($n: Int) { bookings(first: $n) { nodes { id } } }', { n: 2147483648 }],
  ['query ($n: Int) { bookings(first: $n) { nodes { id } } }', { n: 1.5 }],
  ['query ($n: Int) { bookings(first: $n) { nodes { id } } }', { n: '1' }],
  ['query ($n: Int) { bookings(first: $n) { nodes { id } } }', { n: null }],
  ['query ($yes: Boolean!) { __typename @include(if: $yes) }', { yes: 'true' }],
  ['mutation ($input: ReleaseHoldInput!) { releaseHold(input: $input) { __typename } }', { input: { holdId: 'x' } }],
  ['mutation ($input: ReleaseHoldInput!) { releaseHold(input: $input) { __typename } }', { input: { holdId: 'x', more: 1 } }],
  ['mutation ($input: ReleaseHoldInput!) { releaseHold(input: $input) { __typename } }', { input: {} }],
  ['mutation ($input: ReleaseHoldInput!) { releaseHold(input: $input) { __typename } }', { input: 'x' }],
  ['query ($status: [BookingStatus!]) { bookings(status: $status) { nodes { id } } }', { status: ['CONFIRMED'] }],
  ['query ($status: [BookingStatus!]) { bookings(status: $status) { nodes { id } } }', { status: ['confirmed'] }],
  ['query ($status: [BookingStatus!]) { bookings(status: $status) { nodes { id } } }', { status: 'CONFIRMED' }],
  'query ($unused: ID) { __typename }',
  '{ venue(id: $nobody) { name } }',
  'query ($a: ID, $a: ID) { venue(id: $a) { name } }',
  'query ($a: Venue) { venue(id: $a) { name } }',
  'query ($a: Unknown) { venue(id: $a) { name } }',
  // Documents that do not fit
  '', '   ', '{}', '{', '}', '{ a', '{ __typename } }', 'query', 'fragment F on Query { __typename }', '{ ...F }', '{ nope }',
  '{ venue { name } }',
  '{ venue(id: "x") }',
  '{ venue(id: "x") { name { first } } }',
  '{ venue(id: "x", more: 1) { name } }',
  '{ venue(id: "x", id: "y") { name } }',
  '{ venue(id: null) { name } }',
  '{ venue(id: {a: 1}) { name } }',
  '{ venue(id: 1.5) { name } }',
  '{ venue(id: true) { name } }',
  '{ venue(id: ENUM) { name } }',
  '{ bookings(first: 99999999999) { nodes { id } } }',
  '{ bookings(first: "1") { nodes { id } } }',
  '{ bookings(first: 1.0) { nodes { id } } }',
  '{ bookings(status: [confirmed]) { nodes { id } } }',
  '{ bookings(status: ["CONFIRMED"]) { nodes { id } } }',
  '{ bookings(status: CONFIRMED) { nodes { id } } }',
  'mutation { releaseHold(input: { holdId: "x", holdId: "y" }) { __typename } }',
  'mutation { releaseHold(input: { }) { __typename } }',
  'mutation { releaseHold(input: { holdId: null }) { __typename } }',
  'mutation { releaseHold(input: null) { __typename } }',
  'mutation { releaseHold { __typename } }',
  'mutation { nope }',
  '{ node(id: "x") { title } }',
  '{ node(id: "x") { ... on Money { amount } } }',
  '{ node(id: "x") { ... on Unknown { id } } }',
  '{ node(id: "x") { ... on SeatStatus { id } } }',
  `{ a: ${V} { name } a: venue(id: "x") { name } }`,
  `{ ${V} { a: name a: city } }`,
  `{ ${V} { ...A ...B } } fragment A on Venue { x: name } fragment B on Venue { x: city }`,
  `{ node(id: "${id}") { ... on Venue { x: name } ... on Event { x: title } } }`,
  `{ node(id: "${id}") { ... on Venue { x: version } ... on Event { x: startsAt } } }`,
  '{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }',
  '{ ...A } fragment A on Query { ...A }',
  '{ __typename } fragment F on Query { __typename }',
  '{ ...F } fragment F on Query { __typename } fragment F on Query { __typename }',
  'query A { __typename } query A { __typename }',
  '{ __typename } { __typename }',
  '{ __typename } query A { __typename }',
  'query A { __typename } query B { __typename }',
  'type Query { a: Int }',
  '{ __typename } type A { a: Int }',
  '{ venue(id: "x) { name } }',
  '{ venue(id: "\\x") { name } }',
  '{ venue(id: "\\uD800") { name } }',
  '{ venue(id: 01) { name } }',
  '{ venue(id: 1e) { name } }',
  '{ a: }', '{ : a }', '{ a b: }', '{ @skip(if: true) }', '{ ... }', '{ ...on }', '{ .. a }', '{ ♥ }', '{ "a" }',
  'query ($a: ID = $b) { venue(id: $a) { name } }',
  'query ($a: [ID!!]) { __typename }',
  'subscription { nope }',
  // Introspection
  '{ __schema { queryType { name } mutationType { name } subscriptionType { name } } }',
  '{ __type(name: "Venue") { kind name interfaces { name } } }',
  '{ __type(name: "Nobody") { name } }',
  '{ __type(name: "BookingStatus") { kind fields { name } inputFields { name } possibleTypes { name } } }',
  '{ __type { name } }',
  '{ __schema { nope } }',
  `{ ${V} { __typename __schema { queryType { name } } } }`,
].map((entry) => (Array.isArray(entry) ? { query: entry[0], variables: entry[1] } : { query: entry }));

// Known to differ, and so not here: "\\u{…}" escapes of newer drafts are a syntax error; an explicit null for a variable
// with a default, where a value is needed, makes `data` null and not the field alone.

/** What can be compared of an answer. */
function told({ data, errors }) {
  const executed = data !== undefined && !(data === null && (errors ?? []).every((error) => !error.path));
  return {
    executed,
    data: executed ? JSON.stringify(data) : undefined,
    paths: executed ? (errors ?? []).map((error) => JSON.stringify(error.path)).sort() : undefined,
    failed: (errors ?? []).length > 0,
  };
}

for (const { query, variables } of CORPUS) {
  test(`${query.slice(0, 100)} ${variables ? JSON.stringify(variables) : ''}`, async () => {
    const expected = told(await graphql({ schema, source: query, rootValue, variableValues: variables }));
    const response = await fetch(`${URL_HTTP}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query, variables }),
    });
    const answer = await response.json();
    assert.deepEqual(told(answer), expected, JSON.stringify(answer));
  });
}
