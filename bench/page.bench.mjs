// page.bench.mjs - the page in Chromium: how long until an empty page and one
// of 10,000 messages can be used, on a processor made four times slower; then
// at full speed scrolling through all of them, and how long a key waits while
// 10,000 lines stream in.
//
// Floors, measured in turns with it: a document of one button from a small server,
// and a key in the same page at rest. Ratios to them say what the page costs.
//
// Needs the parts of tests/ (playwright-core) and chromium.
import { createServer } from 'node:http';
import { once } from 'node:events';

import { Bench, approve, card, field, lacking, ready, rest, say } from '../tests/browser/kit.mjs';

const SLOW = 4;
const MESSAGES = 10_000;
// A new window loads the browser's own parts (that of its address bar) in another
// process, which takes a core from the page for a second.
const WINDOW_MS = 2000;
const TURNS = 5;
const STREAM = 'run "for i in $(seq 100); do seq $((i * 100 - 99)) $((i * 100)); sleep 0.03; done"';

const line = (what, figure, goal) => console.log(`${what.padEnd(52)} ${figure.padStart(12)}   goal ${goal}`);
const ms = (n) => `${n.toFixed(0)} ms`;
const sorted = (v) => v.toSorted((a, b) => a - b);
const median = (v) => sorted(v)[v.length >> 1] ?? NaN;
const p95 = (v) => sorted(v)[Math.floor(v.length * 0.95)] ?? NaN;

/** The page notes by itself when it was seen first: asking it from outside
 *  costs a slowed browser 0.1 to 0.3 s, which nobody waits for who uses it. */
function seen(selector) {
  window.seenAt = new Promise((done) => {
    const look = new MutationObserver(() => {
      if (!document.querySelector(selector)) return;
      look.disconnect();
      requestAnimationFrame(() => setTimeout(() => done(performance.now())));
    });
    look.observe(document, { childList: true, subtree: true, attributeFilter: ['data-ready'] });
  });
}

async function visitor(bench, rate) {
  // Not the kit's visit: its watchers have a price, too.
  const context = await bench.browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  page.cdp = await context.newCDPSession(page);
  await page.cdp.send('Emulation.setCPUThrottlingRate', { rate });
  await page.waitForTimeout(WINDOW_MS);
  return page;
}

/** From the address to the frame with the thing that is waited for, in the
 *  page's own time. */
async function loaded(bench, page, path, selector) {
  await page.addInitScript(seen, selector);
  await page.goto(path.startsWith('http') ? path : bench.server.url + path, { waitUntil: 'commit' });
  return page.evaluate(() => window.seenAt);
}

/** The least that a page can be. */
async function floor() {
  const server = createServer((rq, rs) => rs.end('<!doctype html><title>floor</title><button>x</button>')).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() };
}

/** Of somebody who was never here, and of one who comes back. */
async function loads(bench, path, selector) {
  const first = [];
  const again = [];
  const least = [];
  const small = await floor();
  for (let i = 0; i < TURNS; i++) {
    const other = await visitor(bench, SLOW);
    least.push(await loaded(bench, other, small.url, 'button'));
    await other.context().close();
    const page = await visitor(bench, SLOW);
    first.push(await loaded(bench, page, path, selector));
    await page.goto('about:blank');
    again.push(await loaded(bench, page, path, selector));
    await page.context().close();
  }
  small.close();
  return { first: median(first), again: median(again), least: median(least) };
}
const both = (l) => `${ms(l.first)}, ${ms(l.again)}`;
const ratios = (l) => line('  a document of one button; ratios to it', `${ms(l.least)}; ${(l.first / l.least).toFixed(1)}, ${(l.again / l.least).toFixed(1)}`, 'as few');

/** What the main thread works until then, at full speed: a busy machine does
 *  not change it as it does the time. */
async function worked(bench, path, selector) {
  const all = [];
  for (let i = 0; i < TURNS; i++) {
    const page = await visitor(bench, 1);
    const before = await busy(page);
    await loaded(bench, page, path, selector);
    const { TaskDuration } = await busy(page);
    all.push((TaskDuration > before.TaskDuration ? TaskDuration - before.TaskDuration : TaskDuration) * 1000);
    await page.context().close();
  }
  return median(all);
}

/** The longest time without a frame while everything is scrolled through. */
async function scroll(page) {
  return page.evaluate(async () => {
    const log = document.querySelector('[role=log]');
    const frame = () => new Promise((r) => requestAnimationFrame(r));
    const gaps = [];
    let last = await frame();
    let elements = 0;
    for (let still = 0; still < 60;) {
      const before = log.scrollTop;
      log.dispatchEvent(new WheelEvent('wheel')); // without a hand the page stays at its end
      log.scrollTop = before - 400;
      const now = await frame();
      gaps.push(now - last);
      last = now;
      elements = Math.max(elements, log.getElementsByTagName('*').length);
      still = log.scrollTop === before ? still + 1 : 0;
    }
    return { gaps, elements };
  });
}

/** For each key: from the event to the frame after it. */
async function typing(page, while_) {
  await page.evaluate(() => {
    const first = window.waits === undefined;
    window.waits = [];
    if (first) document.addEventListener('input', (e) => {
      requestAnimationFrame(() => setTimeout(() => window.waits.push(performance.now() - e.timeStamp)));
    }, true);
  });
  await field(page).focus();
  for (let i = 0; i < 200 && (await while_()); i++) {
    await page.keyboard.press('x');
    await page.waitForTimeout(25);
  }
  return page.evaluate(() => window.waits);
}

/** What the main thread has worked so far, in s. */
async function busy(page) {
  await page.cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const { metrics } = await page.cdp.send('Performance.getMetrics');
  return Object.fromEntries(metrics.map((m) => [m.name, m.value]));
}

const why = await lacking();
if (why) {
  console.log(`page: left out, ${why}`);
  process.exit(0);
}
const bench = await Bench.open();
try {
  const empty = await loads(bench, '/', '[data-example]');
  line('empty page until it can be used, first, again', both(empty), '900 ms');
  ratios(empty);
  line('  until its box is there, likewise', both(await loads(bench, '/', '[data-ready]')), 'as few');

  line('  the main thread worked for it, not slowed', ms(await worked(bench, '/', '[data-example]')), '250 ms');

  const page = await bench.visit();
  await ready(page);
  await say(page, 'hello');
  await rest(page);
  const path = new URL(page.url()).pathname;
  await page.context().close();
  await bench.stopServer();
  await bench.seed(path.split('/').at(-1), MESSAGES);
  await bench.startServer();
  const full = await loads(bench, path, '[role=log] .md');
  line(`${MESSAGES} messages until the last is seen, likewise`, both(full), '1000 ms');
  ratios(full);

  const long = await visitor(bench, 1);
  await long.addInitScript(() => {
    localStorage['mo.panel'] = 'open'; // the console shows the lines, too
  });
  await loaded(bench, long, path, '[role=log] .md');
  const { gaps, elements } = await scroll(long);
  line('scrolling through all of them, frames p50, p95', `${ms(median(gaps))}, ${ms(p95(gaps))}`, '50 ms');
  line('elements of the conversation at most', String(elements), 'as few as fit');

  let keys = 60;
  const rested = await typing(long, () => keys-- > 0);
  await say(long, STREAM);
  await card(long).waitFor();
  await approve(long).click();
  const state = long.locator('[role=log] [data-state=running]');
  await state.waitFor();
  const began = await busy(long);
  const waits = await typing(long, () => state.count());
  const used = await busy(long);
  line(`a key while 10,000 lines stream (${waits.length}), p50, p95`, `${ms(median(waits))}, ${ms(p95(waits))}`, '50 ms');
  line(`  the same at rest (${rested.length}); ratio of the p95`, `${ms(median(rested))}, ${ms(p95(rested))}; ${(p95(waits) / p95(rested)).toFixed(1)}`, 'as few');
  line('the main thread worked for it', ms((used.TaskDuration - began.TaskDuration) * 1000), 'none');
  await long.context().close();
} finally {
  await bench.close();
}
