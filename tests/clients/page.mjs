// The box office in real browsers: two buyers, one seat. Run by tests/page.rs, which hands over how to start the server.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readFileSync, mkdirSync } from 'node:fs';
import { after, afterEach, before, test } from 'node:test';
import { chromium } from 'playwright-core';

const { SERVER, LISTEN, EVENT, ARENA, CHROMIUM, SCREENSHOTS } = process.env;
const url = `http://${LISTEN}/?event=${EVENT}`;
let server, browser;

async function start() {
  server = spawn(SERVER, ['serve'], { stdio: 'ignore' });
  for (let tries = 0; tries < 2400; tries++) {
    if (await fetch(`http://${LISTEN}/readyz`).then((answer) => answer.ok, () => false)) return;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error('the server was not ready');
}

const kill = () => new Promise((done) => { server.once('exit', done); server.kill('SIGKILL'); });

before(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  await start();
  browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
});

after(async () => {
  await browser?.close();
  await kill();
});

// Whatever a page complains of fails its test.
let complaints = [];
afterEach(() => {
  const heard = complaints;
  complaints = [];
  assert.deepEqual(heard, []);
});

async function opened(context) {
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => { if (/Content Security Policy|Refused to/.test(message.text())) complaints.push(message.text()); });
  return page;
}

/** A buyer with the map before them. */
async function buyer(options = {}) {
  const page = await opened(await browser.newContext(options));
  await page.goto(url);
  await page.locator('[data-seat="A-1"][data-letter]').waitFor();
  await page.locator('#state', { hasText: 'Live.' }).waitFor();
  return page;
}

const seat = (page, id, letter) => page.locator(`[data-seat="${id}"][data-letter="${letter}"]`);

test('two buyers: one sees the other’s seats go, one wins a race, the tickets come', { timeout: 300000 }, async () => {
  const [mina, leo] = await Promise.all([buyer(), buyer()]);
  assert.notEqual(await mina.locator('#who').textContent(), await leo.locator('#who').textContent());

  // Leo has picked what Mina holds.
  await seat(leo, 'A-1', 'A').click();
  await seat(mina, 'A-1', 'A').click();
  await seat(mina, 'A-2', 'A').click();
  await mina.locator('#hold').click();
  await mina.locator('#pay').waitFor({ state: 'visible' });
  await seat(leo, 'A-1', 'H').waitFor();
  assert.match(await leo.locator('#message').textContent(), /faster: A-1 is gone/);
  assert.match(await mina.locator('[data-seat="A-1"]').getAttribute('aria-label'), /row A, seat 1, .*25.*, yours/);
  assert.match(await leo.locator('[data-seat="A-1"]').getAttribute('aria-label'), /held/);

  // A declined card keeps the hold; another pays, and the tickets come.
  await mina.locator('#method').selectOption('pm_card_chargeDeclined');
  await mina.locator('#checkout').click();
  await mina.locator('#message', { hasText: 'declined' }).waitFor();
  await mina.locator('#method').selectOption('pm_card_visa');
  await mina.locator('#checkout').click();
  await mina.locator('#bookings img').nth(1).waitFor();
  await seat(leo, 'A-1', 'S').waitFor();
  assert.match(await leo.locator('#deltas').textContent(), /\d+ ms: .*A-1 SOLD/);

  // Both at once: one wins, the other is told which seat and offered another.
  const third = await buyer();
  await seat(leo, 'A-4', 'A').click();
  await seat(third, 'A-4', 'A').click();
  await Promise.all([leo, third].map((page) => page.evaluate(() => document.getElementById('hold').click())));
  const outcome = async (page) => (await page.locator('#pay').isVisible() ? 'held' : await page.locator('#message').textContent());
  await leo.waitForFunction(() => !document.getElementById('pay').hidden || document.getElementById('message').textContent);
  await third.waitForFunction(() => !document.getElementById('pay').hidden || document.getElementById('message').textContent);
  const outcomes = [await outcome(leo), await outcome(third)];
  assert.equal(outcomes.filter((one) => one === 'held').length, 1, outcomes.join(' / '));
  assert.match(outcomes.find((one) => one !== 'held'), /A-4|not free|like them/);

  // Cancelling gives the seats back to everybody's map.
  await mina.locator('#bookings button', { hasText: 'Cancel' }).click();
  await mina.locator('#bookings h3', { hasText: /cancel|refund/ }).waitFor();
  await seat(leo, 'A-1', 'A').waitFor();
});

test('finding by words and facets, and the organizer sees what was sold', { timeout: 300000 }, async () => {
  const page = await buyer({ bypassCSP: true });
  await page.locator('#found', { hasText: '2 events' }).waitFor();
  await page.locator('#query').fill('stadum');
  await page.locator('#found', { hasText: '1 event' }).waitFor();
  await page.locator('#query').fill('');
  await page.locator('details', { hasText: 'Narrow down' }).locator('summary').click();
  await page.getByLabel('rock (1)').check();
  await page.locator('#found', { hasText: '1 event' }).waitFor();
  assert.deepEqual(await page.locator('#events button').evaluateAll((all) => all.map((one) => one.firstChild.textContent)), ['Stadium night']);
  assert.equal(await page.evaluate(() => document.activeElement.id), 'facet-CATEGORY-Rock', 'and keeps the focus');
  await page.getByLabel('rock (1)').uncheck();
  await page.locator('#found', { hasText: '2 events' }).waitFor();

  // One seat is sold while the organizer looks on.
  await page.locator('#organize').click();
  await page.locator('#sales-state', { hasText: 'of 24 sold' }).waitFor();
  const sold = async () => Number((await page.locator('#sales-state').textContent()).split(' ')[0]);
  const before = await sold();
  await seat(page, 'C-8', 'A').click();
  await page.locator('#hold').click();
  await page.locator('#checkout').click();
  await page.locator('#bookings img').first().waitFor();
  await page.waitForFunction((before) => Number(document.getElementById('sales-state').textContent.split(' ')[0]) === before + 1, before, { timeout: 120000 });
  assert.match(await page.locator('#by-section svg').getAttribute('aria-label'), /Main: \d+ of 24/);
  assert.match(await page.locator('#by-hour svg').getAttribute('aria-label'), /Sold by hour: .*: \d+, /);
  await accessible(page, 'with tickets and sales');
});

test('fifty thousand seats: sections first, then seats, by pointer and by keyboard', { timeout: 300000 }, async () => {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, bypassCSP: true });
  const page = await opened(context);
  await page.addInitScript(() => {
    window.long = [];
    new PerformanceObserver((list) => window.long.push(...list.getEntries().map(({ duration }) => Math.round(duration)))).observe({ entryTypes: ['longtask'] });
  });
  await page.goto(`http://${LISTEN}/?event=${ARENA}`);
  await page.locator('canvas#map').waitFor();
  await page.locator('#state', { hasText: 'Live.' }).waitFor();
  const painted = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(Math.round(performance.now()))))));
  await page.screenshot({ path: `${SCREENSHOTS}/arena.png` });

  // Something is drawn, and not in one colour.
  const colours = () => page.evaluate(() => {
    const canvas = document.querySelector('canvas#map');
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let i = 0; i < data.length; i += 400) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    return seen.size;
  });
  assert.ok(await colours() > 3);

  // Dragging and zooming with the wheel.
  const box = await page.locator('canvas#map').boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.evaluate(() => { window.long.length = 0; });
  await page.mouse.move(x, y);
  for (let i = 0; i < 6; i++) await page.mouse.wheel(0, -200);
  await page.mouse.down();
  for (let i = 0; i < 60; i++) await page.mouse.move(x + 4 * (i % 30), y + 3 * (i % 20));
  await page.mouse.up();
  const long = await page.evaluate(() => window.long);
  console.log(`arena: first paint after ${painted} ms; long tasks while panning: ${long.join(', ') || 'none'} ms`);
  assert.equal(await page.locator('#picked').textContent(), 'Pick seats on the map.', 'dragging picks nothing');

  // A section by its name, its seats by arrow keys; another buyer's hold shows in it.
  await page.locator('#sections').selectOption({ label: 'Block 7' });
  await page.screenshot({ path: `${SCREENSHOTS}/arena-section.png` });
  await page.locator('canvas#map [tabindex="0"]').focus();
  await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Space');
  const focused = await page.evaluate(() => document.activeElement.dataset.seat);
  assert.equal(focused, 'Block_7-1-2');
  assert.match(await page.locator('#picked').textContent(), /Block_7-1-2/);
  assert.match(await page.evaluate(() => document.activeElement.getAttribute('aria-label')), /Block 7, row 1, seat 2, .*25.*, picked by you/);
  await page.locator('#hold').click();
  await page.locator('#pay').waitFor({ state: 'visible' });
  const other = await opened(await browser.newContext({ viewport: { width: 1280, height: 900 } }));
  await other.goto(`http://${LISTEN}/?event=${ARENA}`);
  await other.locator('canvas#map').waitFor();
  await other.locator('#sections').selectOption({ label: 'Block 7' });
  await other.locator('canvas#map [data-seat="Block_7-1-2"][data-letter="H"]').waitFor({ state: 'attached' });

  // By pointer: a click in the middle of the section picks the seat that is there.
  await other.mouse.click(x, y);
  await other.locator('#picked', { hasText: /Block_7-/ }).waitFor();
  await accessible(page, 'an arena with a hold');

  // A reload finds the hold again; another event does not lose it.
  await page.reload();
  await page.locator('#pay').waitFor({ state: 'visible' });
  assert.match(await page.locator('#picked').textContent(), /Block_7-1-2/);
  await page.locator('#release').click();
  await page.locator('#pay').waitFor({ state: 'hidden' });
});

test('two fingers pinch the map', { timeout: 300000 }, async () => {
  const page = await buyer({ viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  const wide = () => page.evaluate(() => Number(document.getElementById('map').getAttribute('viewBox').split(' ')[2]));
  const before = await wide();
  await page.locator('#legend').scrollIntoViewIfNeeded();
  const { x, y, width, height } = await page.locator('#map').boundingBox();
  const touch = await page.context().newCDPSession(page);
  const fingers = (apart) => [-apart, apart].map((by, id) => ({ x: x + width / 2 + by, y: y + height / 2, id }));
  await touch.send('Input.dispatchTouchEvent', { type: 'touchStart', touchPoints: fingers(20) });
  for (let apart = 25; apart <= 80; apart += 5) await touch.send('Input.dispatchTouchEvent', { type: 'touchMove', touchPoints: fingers(apart) });
  await touch.send('Input.dispatchTouchEvent', { type: 'touchEnd', touchPoints: [] });
  assert.ok(await wide() < before * 0.7, `${before} became ${await wide()}`);
  await page.locator('#whole').click();
  assert.equal(await wide(), before);
});

test('the keyboard is enough', { timeout: 300000 }, async () => {
  const page = await buyer();
  await page.locator('#map [tabindex="0"]').focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowRight');
  assert.equal(await page.evaluate(() => document.activeElement.dataset.seat), 'B-2');
  await page.keyboard.press('Space');
  assert.equal(await page.locator('[data-seat="B-2"]').getAttribute('aria-pressed'), 'true');
  assert.match(await page.locator('#picked').textContent(), /B-2/);
  assert.match(await page.locator('[data-seat="B-2"]').getAttribute('aria-label'), /^row B, seat 2, .*25.*, picked by you$/);

  // To the ticket, without a pointer: after each step the focus is where one goes on.
  await page.locator('#hold').focus();
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.id === 'checkout');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.activeElement.tagName === 'ARTICLE');
  await page.locator('#bookings img').first().waitFor();
  await page.reload();
  await page.locator('#bookings img').first().waitFor();
});

test('of two events that are opened in a row, the one opened last is shown, however late the first answers', { timeout: 300000 }, async () => {
  const page = await buyer();
  let release;
  const held = new Promise((done) => { release = done; });
  await page.route('**/graphql', async (route) => {
    const { query, variables } = route.request().postDataJSON() ?? {};
    if (query?.includes('query Event') && variables.id === ARENA) await held;
    await route.continue();
  });
  await page.locator('#events button', { hasText: 'Stadium night' }).click();
  await page.locator('#events button', { hasText: 'Aida' }).click();
  await seat(page, 'A-8', 'A').waitFor();
  release();
  await page.waitForResponse((response) => response.request().postData()?.includes('query Event'));
  await page.locator('#state', { hasText: 'Live.' }).waitFor();
  assert.equal(await page.locator('#title').textContent(), 'Aida');
});

test('a server that was killed and comes back: the page recovers by itself', { timeout: 300000 }, async () => {
  const page = await buyer();
  await kill();
  await page.locator('#state', { hasText: 'reconnecting' }).waitFor();
  await start();
  await page.locator('#state', { hasText: 'Live.' }).waitFor({ timeout: 120000 });
  const other = await buyer();
  await seat(other, 'C-3', 'A').click();
  await other.locator('#hold').click();
  await seat(page, 'C-3', 'H').waitFor();
});

const axe = readFileSync(new URL('node_modules/axe-core/axe.min.js', import.meta.url), 'utf8');

/** axe finds nothing serious. */
async function accessible(page, name) {
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
  assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), [], name);
}

test('nothing serious for axe, on a desk and in a hand', { timeout: 300000 }, async () => {
  for (const [name, options] of [
    ['desktop', { viewport: { width: 1280, height: 800 } }],
    ['dark', { viewport: { width: 1280, height: 800 }, colorScheme: 'dark' }],
    ['phone', { viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true }],
  ]) {
    const page = await buyer({ ...options, bypassCSP: true });
    await accessible(page, name);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
    assert.equal(wide, false, `${name}: nothing sticks out`);
    await page.screenshot({ path: `${SCREENSHOTS}/${name}.png`, fullPage: true });
  }
});
