// The clients that people use, driven against a real server. Run by tests/clients.rs, which hands over where it is.
import { createHmac } from 'node:crypto';
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { auditServer } from 'graphql-http';
import { createClient as createWsClient } from 'graphql-ws';
import { createClient as createSseClient } from 'graphql-sse';
import WebSocket from 'ws';

const { URL_HTTP, EVENT, SECRET } = process.env;
const graphql = `${URL_HTTP}/graphql`;
const socketUrl = graphql.replace('http', 'ws');
const MAP = `subscription ($id: ID!) { seatMapChanged(eventId: $id) { __typename
  ... on SeatMapSnapshot { version sections { statuses } } ... on SeatMapDelta { fromVersion version changes { seatId status } } } }`;

/** A buyer's token, good for so many seconds. */
function token(seconds) {
  const part = (value) => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + seconds;
  const signed = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub: 'mina', iss: 'parterre', aud: 'parterre', exp })}`;
  return `${signed}.${createHmac('sha256', SECRET).update(signed).digest('base64url')}`;
}

const TOKEN = token(3600);

async function hold(seat) {
  const query = 'mutation ($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } userErrors { code } } }';
  const input = { eventId: EVENT, idempotencyKey: `js-${seat}`, seatIds: [seat] };
  const response = await fetch(graphql, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ query, variables: { input } }),
  });
  const answer = await response.json();
  assert.deepEqual(answer.data.holdSeats.userErrors, []);
}

test('graphql over http: every audit passes', async () => {
  const results = await auditServer({ url: graphql, fetchFn: fetch });
  const failed = results.filter((result) => result.status !== 'ok');
  for (const { name, reason } of failed) console.log(`not ok: ${name}: ${reason}`);
  assert.equal(failed.length, 0);
  assert.ok(results.length > 50, `${results.length} audits`);
});

/** Opens a socket, sends what is given, and waits for the close. */
function closing(messages, { protocol = 'graphql-transport-ws', headers = {} } = {}) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(socketUrl, protocol ? [protocol] : [], { headers });
    const said = [];
    socket.on('open', () => {
      for (const message of messages) socket.send(typeof message === 'string' ? message : JSON.stringify(message));
    });
    socket.on('message', (data) => said.push(JSON.parse(data.toString())));
    socket.on('close', (code) => resolve({ code, said }));
    socket.on('error', reject);
  });
}

const init = (token) => ({ type: 'connection_init', payload: token ? { authorization: `Bearer ${token}` } : undefined });
const watch = (id) => ({ id, type: 'subscribe', payload: { query: MAP, variables: { id: EVENT } } });

for (const [code, why, messages, options] of [
  [4400, 'no JSON', ['{']],
  [4400, 'no known message', [{ type: 'hello' }]],
  [4400, 'an id is missing', [init(), { type: 'subscribe', payload: { query: MAP } }]],
  [4400, 'a payload that is no object', [{ type: 'connection_init', payload: 'x' }]],
  [4401, 'not said who one is', [watch('1')]],
  [4403, 'a token that is not valid', [init('nonsense')]],
  [4403, 'a token that runs out', [init(token(2)), watch('1')]],
  [4406, 'another protocol', [init()], { protocol: 'graphql-ws' }],
  [4408, 'silent at the beginning', []],
  [4409, 'an id that is in use', [init(), watch('1'), watch('1')]],
  [4429, 'said twice who one is', [init(), init()]],
  [1009, 'a message of more than 64 KiB', [init(), { type: 'ping', payload: { text: 'x'.repeat(70_000) } }]],
]) {
  test(`graphql-transport-ws: ${code} for ${why}`, async () => {
    const closed = await closing(messages, options).catch((error) => ({ code: 4406, error }));
    assert.equal(closed.code, code, JSON.stringify(closed));
  });
}

test('graphql-transport-ws: pings are answered, queries and mutations are refused, and streams are bounded', async () => {
  const said = await new Promise((resolve) => {
    const socket = new WebSocket(socketUrl, ['graphql-transport-ws']);
    const said = [];
    socket.on('open', () => {
      for (const message of [
        { type: 'ping', payload: { n: 1 } },
        init(),
        { id: 'q', type: 'subscribe', payload: { query: '{ __typename }' } },
        { id: 'v', type: 'subscribe', payload: { query: 'subscription { nope }' } },
        { id: 'two', type: 'subscribe', payload: { query: 'subscription { a: __typename b: __typename }' } },
        { id: 'x', type: 'subscribe', payload: { query: MAP, variables: { id: 'evt_nope' } } },
        ...Array.from({ length: 51 }, (_, n) => watch(`s${n}`)),
        { id: 's0', type: 'complete' },
        { type: 'ping' },
      ]) socket.send(JSON.stringify(message));
    });
    socket.on('message', (data) => {
      const message = JSON.parse(data.toString());
      said.push(message);
      if (message.type === 'pong' && !message.payload) socket.close();
    });
    socket.on('close', () => resolve(said));
  });
  assert.deepEqual(said[0], { type: 'pong', payload: { n: 1 } });
  assert.equal(said[1].type, 'connection_ack');
  const error = (id) => said.find((message) => message.id === id && message.type === 'error')?.payload[0].extensions.code;
  assert.equal(error('q'), 'BAD_USER_INPUT');
  assert.equal(error('v'), 'GRAPHQL_VALIDATION_FAILED');
  assert.equal(error('two'), 'GRAPHQL_VALIDATION_FAILED');
  assert.equal(error('x'), 'BAD_USER_INPUT');
  assert.equal(error('s50'), 'RATE_LIMITED');
});

test('another Origin is refused', async () => {
  const refused = await new Promise((resolve) => {
    const socket = new WebSocket(socketUrl, ['graphql-transport-ws'], { headers: { origin: 'https://evil.example' } });
    socket.on('unexpected-response', (request, response) => {
      resolve(response.statusCode);
      request.destroy();
    });
    socket.on('open', () => resolve('open'));
  });
  assert.equal(refused, 403);
  const answer = await fetch(graphql, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'https://evil.example' },
    body: '{"query":"{ __typename }"}',
  });
  assert.equal(answer.status, 403);
  assert.equal((await answer.json()).errors[0].extensions.code, 'FORBIDDEN');
});

test('graphql-ws: a snapshot, deltas that chain, and a new connection with a new token when the old one runs out', async () => {
  const tokens = [token(2), TOKEN];
  let connections = 0;
  const client = createWsClient({
    url: socketUrl,
    webSocketImpl: WebSocket,
    retryAttempts: 5,
    retryWait: async () => {},
    shouldRetry: () => true,
    connectionParams: () => ({ authorization: `Bearer ${tokens[Math.min(connections++, 1)]}` }),
  });
  let version;
  let snapshots = 0;
  for await (const { data, errors } of client.iterate({ query: MAP, variables: { id: EVENT } })) {
    assert.equal(errors, undefined);
    const update = data.seatMapChanged;
    if (update.__typename === 'SeatMapSnapshot') {
      version = update.version;
      snapshots += 1;
      if (snapshots === 1) continue;
      await hold('A-1');
    } else {
      assert.equal(update.fromVersion, version);
      assert.deepEqual(update.changes, [{ seatId: 'A-1', status: 'HELD' }]);
      break;
    }
  }
  assert.equal(snapshots, 2, 'it came again after its token had run out');
  assert.equal(connections, 2);
  await client.dispose();
});

test('graphql-sse: a snapshot and a delta over one request, errors as results, queries refused', async () => {
  const client = createSseClient({ url: `${URL_HTTP}/graphql/stream`, headers: { authorization: `Bearer ${TOKEN}` }, retryAttempts: 0 });
  let version;
  for await (const { data } of client.iterate({ query: MAP, variables: { id: EVENT } })) {
    const update = data.seatMapChanged;
    if (update.__typename === 'SeatMapSnapshot') {
      version = update.version;
      await hold('A-3');
    } else {
      assert.equal(update.fromVersion, version);
      assert.deepEqual(update.changes, [{ seatId: 'A-3', status: 'HELD' }]);
      break;
    }
  }
  for (const [query, variables, code] of [
    ['subscription { nope }', {}, 'GRAPHQL_VALIDATION_FAILED'],
    ['{ __typename }', {}, 'BAD_USER_INPUT'],
    [MAP, { id: 'evt_nope' }, 'BAD_USER_INPUT'],
  ]) {
    const results = [];
    for await (const result of client.iterate({ query, variables })) results.push(result);
    assert.equal(results.length, 1);
    assert.equal(results[0].errors[0].extensions.code, code);
  }
  client.dispose();
});
