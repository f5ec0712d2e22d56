// Shared by the tests of the page: a real browser and a real server.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, readdir, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { DatabaseSync } from 'node:sqlite';

import { chromium } from 'playwright-core';

import { BIN, Server, missing } from '../it/server.mjs';

export const CHROMIUM = process.env.MO_CHROMIUM ?? '/usr/bin/chromium';
export const FLAGS = [
  '--headless', '--no-sandbox', '--disable-gpu', '--no-first-run',
  '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
];
export const WAIT = 30_000; // ms; only ends a test that has failed anyway

/** The published server that has one of everything, as the configuration has it. */
export const everything = {
  command: process.execPath,
  args: [fileURLToPath(new URL('../node_modules/@modelcontextprotocol/server-everything/dist/index.js', import.meta.url))],
};

/** A wide screen by mouse and a phone's by touch, in light and dark; a tablet's. */
export const VIEWS = [[1440, 'light'], [1440, 'dark'], [1024, 'light'], [390, 'light'], [390, 'dark']]
  .map(([width, colorScheme]) => ({ viewport: { width, height: 900 }, colorScheme, hasTouch: width < 1440 }));

/** The missing prerequisite, or false. */
export async function lacking() {
  if (!existsSync(CHROMIUM)) return `${CHROMIUM} is not installed`;
  return missing(BIN);
}

const axeSource = readFile(
  createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

export class Bench {
  /** A server in an empty directory and a browser with an empty profile.
   *  model: a fake one of tests/fakes that answers instead of the demo;
   *  config(dir): what its configuration says; env(dir): more variables; hosts:
   *  names it resolves. */
  static async open({ model, config, env, hosts } = {}) {
    const bench = new Bench();
    bench.model = model;
    bench.env = model
      ? { ANTHROPIC_API_KEY: model.key, ANTHROPIC_BASE_URL: model.url }
      : {};
    bench.dir = await mkdtemp(join(tmpdir(), 'mo-page-'));
    Object.assign(bench.env, env?.(bench.dir));
    if (config)
      await writeFile(join(bench.dir, 'mcp-orchestrator.json'),
        JSON.stringify(config(bench.dir)));
    bench.server = await Server.start([], {
      dir: bench.dir, env: bench.env, house: true, hosts,
    });
    bench.browser = await chromium.launch({
      executablePath: CHROMIUM, args: FLAGS,
    });
    return bench;
  }

  /** A server with a model and these MCP servers, whose calls need no approval;
   *  the servers are running. */
  static async withServers(model, mcpServers) {
    const bench = await Bench.open({
      model,
      config: () => ({
        llm: { tools: 'all' },
        approvals: { rules: [{ server: '*', action: 'allow' }] },
        mcpServers,
      }),
    });
    for (const name of Object.keys(mcpServers))
      assert.equal((await fetch(`${bench.server.url}/api/servers/${name}/test`, { method: 'POST' })).status, 200);
    return bench;
  }

  /** Prints what a failed test left open; that is only shown when a file fails. */
  async show() {
    for (const page of this.browser?.contexts().flatMap((c) => c.pages()) ?? []) {
      const text = await page.locator('body').innerText({ timeout: 2000 }).catch((e) => e.message);
      console.log(`left open: ${page.url()}\n${text.slice(-2000)}\n${page.sins?.join('\n') ?? ''}`);
      console.log(`the server's log:\n${this.server?.log.slice(-4000)}`);
    }
  }

  async close() {
    await this.show();
    await this.browser?.close();
    await this.endSessions();
    await this.stopServer();
    await this.model?.close();
    await rm(this.dir, { recursive: true, force: true, maxRetries: 10 });
  }

  /** Boxes outlive the server, so they are stopped first. */
  async endSessions() {
    const { sessions } = await (await fetch(`${this.server.url}/api/sessions`)).json();
    for (const { id } of sessions)
      await fetch(`${this.server.url}/api/sessions/${id}?forget=true`, { method: 'DELETE' });
  }

  async stopServer() {
    if (!this.server?.alive) return;
    this.server.signal('SIGTERM');
    await this.server.stop();
  }

  /** Restarts the server in the same directory and on the same port. */
  async startServer() {
    const { port } = this.server;
    this.server = await Server.start(['--port', String(port)], {
      dir: this.dir, env: this.env, house: true,
    });
  }

  /** Inserts n messages at the start of a session; the server is stopped. */
  async seed(session, n) {
    const files = await readdir(this.dir, { recursive: true });
    const db = new DatabaseSync(join(this.dir, files.find((f) => f.endsWith('.db'))));
    const said = (i) => (i % 2
      ? { role: 'user', id: `m${i}`, blocks: [{ type: 'text', text: `question ${i}` }] }
      : { role: 'assistant', stop: 'end', usage: { input: 9, output: 9 }, blocks: [{ type: 'text', text: `Answer **${i}**.\n\n- one\n- \`two\`\n\n${'More words. '.repeat(i % 40)}` }] });
    const { number } = db.prepare('SELECT max(number) AS number FROM conversation WHERE session = ?').get(session);
    const put = db.prepare("INSERT INTO entry (session, conversation, seq, at, doc, text) VALUES (?, ?, ?, ?, ?, '')");
    db.exec('BEGIN');
    db.prepare('UPDATE entry SET seq = -(seq + ?) WHERE session = ?').run(n, session);
    db.prepare('UPDATE entry SET seq = -seq WHERE session = ?').run(session); // a place is taken once
    db.prepare('DELETE FROM place WHERE session = ?').run(session);
    db.prepare('INSERT INTO place (session, conversation, seq, n) SELECT session, conversation, seq, n FROM entry ' +
      'WHERE session = ? AND n <= (SELECT n FROM indexed)').run(session);
    for (let i = 1; i <= n; i++) put.run(session, number, i, Date.now() - (n - i) * 1000, JSON.stringify(said(i)));
    db.prepare('UPDATE conversation SET seq = seq + ? WHERE session = ? AND number = ?').run(n, session, number);
    db.exec('COMMIT');
    db.close();
  }

  /** Makes a session idle for so long; the server is stopped. */
  async age(session, ms) {
    const files = await readdir(this.dir, { recursive: true });
    const db = new DatabaseSync(join(this.dir, files.find((f) => f.endsWith('.db'))));
    db.prepare('UPDATE session SET at = at - ? WHERE id = ?').run(ms, session);
    db.close();
  }

  /** A page of a new visitor; path '/' is a new conversation. */
  async visit(path = '/', { panel = 'open', ...options } = {}) {
    const context = await this.browser.newContext({
      viewport: { width: 1440, height: 900 }, ...options,
    });
    // Most have opened the panel before.
    if (panel) await context.addInitScript((how) => {
      if (window === top) localStorage['mo.panel'] ??= how; // a sandboxed frame has none
    }, panel);
    context.setDefaultTimeout(WAIT);
    return this.look(context, path);
  }

  /** Opens another tab of the same visitor. Everything a page must not do is
   *  collected in page.sins. */
  async look(context, path) {
    const page = await context.newPage();
    page.sins = [];
    page.on('pageerror', (e) => page.sins.push(`error: ${e.message}`));
    page.on('dialog', (d) => {
      page.sins.push(`dialog: ${d.message()}`);
      void d.dismiss();
    });
    page.on('console', (m) => {
      if (/Content Security Policy|Trusted/i.test(m.text()))
        page.sins.push(`csp: ${m.text()}`);
    });
    page.on('request', (r) => {
      const to = new URL(r.url());
      if (/^(http|ws)/.test(to.protocol) && to.host !== `localhost:${this.server.port}`)
        page.sins.push(`request: ${r.url()}`);
    });
    await page.addInitScript(() => {
      const add = EventTarget.prototype.addEventListener;
      const heard = new WeakMap(); // element -> what it listens to
      EventTarget.prototype.addEventListener = function listen(type, ...more) {
        if (this instanceof Element) heard.set(this, [...(heard.get(this) ?? []), type]);
        return add.call(this, type, ...more);
      };
      window.hears = (el, ...types) => types.some((x) => heard.get(el)?.includes(x));
      document.addEventListener('securitypolicyviolation', (e) =>
        console.error(`Content Security Policy: ${e.violatedDirective}`));
    });
    await page.goto(this.server.url + path);
    return page;
  }
}

/** Closes the visitor of a page and fails if the page misbehaved, but for what is
 *  pardoned; that may come late. */
export async function leave(page, pardoned = null) {
  const pwned = await page.evaluate(() => window.pwned ?? null);
  await page.context().close();
  assert.equal(pwned, null, 'foreign text was executed');
  assert.deepEqual(page.sins.filter((s) => !pardoned?.test(s)), []);
}

// --- actions of a user ---

export const field = (page) => page.getByLabel('Message', { exact: true });
export const card = (page) => page.locator('[data-card]');
/** The Approve button of the first card. */
export const approve = (page) =>
  card(page).first().getByRole('button', { name: 'Approve', exact: true });
/** The same by keys alone. */
export async function approveByKey(page) {
  await page.keyboard.press('F6');
  await card(page).first().locator('button:enabled', { hasText: /^\s*Approve/ }).waitFor();
  await page.keyboard.press('a');
}
export const calls = (page, state) =>
  page.locator(`[role=log] [data-call][data-state=${state}]`);

/** Waits until the sandbox is ready. */
export async function ready(page) {
  await page.locator('[data-ready]').waitFor();
}

export async function say(page, text) {
  await field(page).fill(text);
  await field(page).press('Enter');
}

/** Waits until the turn has ended, and that of a message that was just sent. */
export async function rest(page) {
  await page.locator('[role=log]').first().waitFor(); // loaded with the first message
  await page.locator('[data-sent]').first().waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Stop' }).waitFor({ state: 'hidden' });
}

// --- accessibility ---

/** Every control has a listener or a link. */
export async function assertAlive(page, what) {
  const dead = await page.evaluate(() => {
    const alive = (el) => {
      if (el.matches('a')) return /^(\/|#.|https?:|mailto:|blob:)/.test(el.getAttribute('href') ?? '');
      if (el.matches('button')) return window.hears(el, 'click') || (el.type === 'submit' && window.hears(el.form, 'submit'));
      return window.hears(el, 'input', 'change');
    };
    return [...document.querySelectorAll('a, button, input, select, textarea')]
      .filter((el) => !alive(el)).map((el) => el.outerHTML.slice(0, 200));
  });
  assert.deepEqual(dead, [], `${what}: dead controls`);
}

/** No violation of a WCAG 2 A or AA rule of axe, and no dead control. */
export async function assertAccessible(page, what) {
  await assertAlive(page, what);
  // What is only just arriving is paler than it will be.
  await page.evaluate(() => Promise.all(document.getAnimations()
    .filter((a) => Number.isFinite(a.effect?.getComputedTiming().endTime))
    .map((a) => a.finished.catch(() => {}))));
  // Not by a script tag: the page's own policy forbids it, as it should.
  await page.evaluate(await axeSource);
  const { violations } = await page.evaluate(() =>
    window.axe.run(document, {
      runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'],
    }));
  const told = violations.map((v) =>
    `${v.id}: ${v.nodes.map((n) => `${n.target} ${n.failureSummary}`).join('; ')}`);
  assert.deepEqual(told, [], what);
}
