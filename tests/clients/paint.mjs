// How long the page takes to show an arena, and the longest task while it is zoomed and dragged. Run by `./dev bench page`.
import { existsSync } from 'node:fs';
import { chromium } from 'playwright-core';

const executablePath = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync);
if (!executablePath) throw new Error('Chromium is needed (Debian: apt-get install chromium)');
const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
await page.addInitScript(() => {
  window.long = [];
  new PerformanceObserver((list) => window.long.push(...list.getEntries().map(({ duration }) => duration))).observe({ entryTypes: ['longtask'] });
});
await page.goto(process.env.URL);
await page.locator('canvas#map').waitFor();
await page.locator('#state', { hasText: 'Live.' }).waitFor();
const painted_ms = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => setTimeout(() => done(performance.now())))));
await page.waitForTimeout(1000);
await page.evaluate(() => { window.long.length = 0; });
const { x, y, width, height } = await page.locator('canvas#map').boundingBox();
await page.mouse.move(x + width / 2, y + height / 2);
for (let turn = 0; turn < 4; turn++) {
  for (let i = 0; i < 5; i++) await page.mouse.wheel(0, turn % 2 ? 250 : -250);
  await page.mouse.down();
  for (let i = 0; i < 60; i++) await page.mouse.move(x + width / 2 + 4 * (i % 30), y + height / 2 + 3 * (i % 20));
  await page.mouse.up();
}
const longest_ms = await page.evaluate(() => Math.max(0, ...window.long));
await browser.close();
console.log(JSON.stringify({ painted_ms, longest_ms }));
