// Scripts of the gateway's clients: run_script over stdio and HTTP, with the
// official SDKs and published servers. Each call of a script is a call of its
// client: judged, asked about and recorded as one.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import * as v2 from '@modelcontextprotocol/client';
import { StdioClientTransport as Stdio2 } from '@modelcontextprotocol/client/stdio';
import { Client as Client1 } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport as Stdio1 } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport as Http1 } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import * as types from '@modelcontextprotocol/sdk/types.js';
import { Place, bin, fixtureServer, published, slay } from '../lib/gateway.mjs';

const WAIT_MS = 60_000;
const info = { name: 'it', version: '1' };
const run = promisify(execFile);
const python = (code, more) => ({ language: 'python', code: `import tools\n${code}`, ...more });
const node = (code, more) => ({ language: 'javascript', code: `import tools from './tools.mjs';\n${code}`, ...more });

async function until(check, what) {
  for (const end = Date.now() + WAIT_MS; ; await sleep(20)) {
    const got = await check();
    if (got) return got;
    assert.ok(Date.now() < end, `never: ${what ?? check}`);
  }
}

/** A configuration with scripts, the filesystem server and the fixture. */
function placeFor(t, { gateway = {}, ...more } = {}) {
  const place = new Place({}, more);
  place.files = join(place.dir, 'files');
  mkdirSync(place.files);
  place.write(
    { files: published('server-filesystem', place.files), fixture: fixtureServer() },
    { ...more, gateway: { scripts: { enabled: true }, ...gateway } },
  );
  t.after(() => place.close());
  return place;
}

async function serveFor(t, place, ...args) {
  const serve = await place.serve(...args);
  t.after(async () => {
    const { code, log } = await serve.stop();
    assert.equal(code, 0, log);
    assert.doesNotMatch(log, /runtime error|Sanitizer/);
  });
  return serve;
}

async function connect1(t, transport, capabilities = {}) {
  const client = new Client1(info, { capabilities });
  await client.connect(transport);
  t?.after(() => client.close());
  const script = (args, options = {}) =>
    client.callTool({ name: 'run_script', arguments: args }, undefined, { timeout: WAIT_MS, ...options });
  return { client, script };
}

async function connect2(t, transport) {
  const client = new v2.Client(info, { capabilities: {}, versionNegotiation: { mode: 'auto' } });
  await client.connect(transport);
  t.after(() => client.close());
  const script = (args, options = {}) =>
    client.callTool({ name: 'run_script', arguments: args }, { timeout: WAIT_MS, ...options });
  return { client, script };
}

/** Output of a script that ended well. */
function said(result) {
  const out = result.structuredContent;
  assert.ok(out, JSON.stringify(result));
  assert.equal(out.exit_code, 0, JSON.stringify(out));
  return out.stdout.trim();
}

async function command(place, ...args) {
  const { stdout } = await run(bin, [...args, '--config', place.file], { env: place.env });
  return stdout;
}
const listed = async (place) => JSON.parse(await command(place, 'approvals', 'list', '--json'));
const held = (place, n = 1) => until(async () => {
  const all = await listed(place);
  return all.length >= n && all;
}, `${n} calls wait`);

/** What is in the file of the audit log by now; it is written a moment later. */
const rows = (place) => (existsSync(join(place.state, 'audit.jsonl')) ? readFileSync(join(place.state, 'audit.jsonl'), 'utf8') : '')
  .split('\n').slice(0, -1).map((l) => JSON.parse(l).what);
const rowsOf = (place, n, check) => until(() => {
  const found = rows(place).filter(check);
  return found.length >= n && found;
}, `${n} rows`);

/** Processes with this word among theirs. */
function withWord(word) {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false;
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').includes(word);
    } catch {
      return false;
    }
  });
}

/** A script that starts a process with that word, then waits for it. */
const waits = (word) => python(`
import subprocess, sys
print(tools.echo(message="begun"))
subprocess.run([sys.executable, "-c", "import time; time.sleep(600)", "${word}"])`);

// --- every kind of client

describe('every kind of client', () => {
  const kinds = [
    ['sdk 1.x, stdio', async (t, place) => connect1(t, new Stdio1(place.command()))],
    ['sdk 1.x, http', async (t, place) => connect1(t, new Http1((await serveFor(t, place)).url))],
    ['client 2.x, stdio', async (t, place) => connect2(t, new Stdio2(place.command()))],
    ['client 2.x, http', async (t, place) =>
      connect2(t, new v2.StreamableHTTPClientTransport((await serveFor(t, place)).url))],
  ];
  for (const [name, open] of kinds)
    test(name, async (t) => {
      const place = placeFor(t);
      const { client, script } = await open(t, place);
      const tools = await until(async () => {
        const all = (await client.listTools()).tools;
        return all.some((x) => x.name === 'write_file') && all;
      }, 'its tools');
      const tool = tools.find((x) => x.name === 'run_script');
      assert.deepEqual(tool.inputSchema.properties.language.enum, ['python', 'javascript']);

      const a = join(place.files, 'a.txt');
      const py = await script(python(`
tools.write_file(path="${a}", content="from python")
print(tools.files.read_text_file(path="${a}")["content"])
print([t["name"] for t in tools.find("list the files of a directory")][0])`));
      const [read, found] = said(py).split('\n');
      assert.equal(read, 'from python');
      assert.match(found, /^list_directory|^directory_tree/);
      assert.equal(py.structuredContent.calls, 3);

      const js = await script(node(`
await tools.write_file({ path: '${a}', content: 'from javascript' });
const [one, two] = await Promise.all([tools.echo({ message: 'one' }), tools.fixture.echo({ message: 'two' })]);
console.log(one, two);`));
      assert.equal(said(js), 'one two');
      assert.equal(readFileSync(a, 'utf8'), 'from javascript');
    });
});

test('off by default, and a tool of this name keeps it', async (t) => {
  const place = new Place({ fixture: fixtureServer() });
  t.after(() => place.close());
  const { client } = await connect1(t, new Stdio1(place.command()));
  const names = (await client.listTools()).tools.map((x) => x.name);
  assert.ok(!names.includes('run_script'), names.join());
  await assert.rejects(client.callTool({ name: 'run_script', arguments: python('') }), /no such tool/);

  const other = new Place(
    { box: { command: 'mo-toolbox', sandbox: 'native' } }, { gateway: { scripts: { enabled: true } } });
  t.after(() => other.close());
  const both = await connect1(t, new Stdio1(other.command()));
  const list = (await both.client.listTools()).tools.map((x) => x.name);
  assert.ok(list.includes('run_script') && list.includes('scripts_run_script'), list.join());
  const own = await both.client.callTool({
    name: 'scripts_run_script', arguments: python('print(tools.read_file.__class__.__name__)'),
  });
  assert.equal(said(own), '_Tool');
});

test('the words of --expose', async (t) => {
  const place = placeFor(t);
  const offered = async (...args) => {
    const { client } = await connect1(t, new Stdio1(place.command(...args)));
    const names = (await client.listTools()).tools.map((x) => x.name).sort();
    return { client, names };
  };
  const four = ['execute', 'explain_tool', 'find_tool', 'list_capabilities', 'run_script'];
  const search = await offered('--expose', 'search');
  assert.deepEqual(search.names, four);
  const code = await offered('--expose', 'code');
  assert.deepEqual(code.names, four);
  const ask = { name: 'find_tool', arguments: { query: 'write a file', limit: 3 } };
  const plain = (await search.client.callTool(ask)).structuredContent.results;
  const declared = (await code.client.callTool(ask)).structuredContent.results;
  assert.ok(plain.every((r) => !r.declaration));
  const write = declared.find((r) => r.tool === 'write_file');
  assert.match(write.declaration, /def write_file\(.*path: str.*content: str/s);
  const all = await code.client.callTool({ name: 'explain_tool', arguments: { server: 'fixture', tool: 'echo' } });
  assert.match(all.structuredContent.declaration, /def echo\(/);
  const done = await code.client.callTool({
    name: 'run_script', arguments: node("console.log(await tools.echo({ message: 'hidden' }));"),
  });
  assert.equal(said(done), 'hidden');
});

// --- decisions

const RULES = [
  { tool: 'echo', args: { message: 'ask*' }, action: 'ask' },
  { tool: 'echo', args: { message: 'deny*' }, action: 'deny', reason: 'not that' },
];

test('a call that is denied, held, approved, rejected; and the audit log', async (t) => {
  const place = placeFor(t, { approvals: { rules: RULES } });
  const { script } = await connect1(t, new Stdio1(place.command()));
  const args = python(`
try:
    tools.echo(message="deny it")
except tools.Denied as e:
    print("denied", e)
print(tools.echo(message="ask one"))
try:
    tools.echo(message="ask two")
except tools.Rejected as e:
    print("rejected", e.reason)
print(tools.echo(message="free"))`, { timeout: 5 });
  const progress = [];
  const result = script(args, { onprogress: (p) => progress.push(p) });
  const [one] = await held(place);
  assert.deepEqual(one.args, { message: 'ask one' });
  const digest = createHash('sha256').update(args.code).digest('hex');
  assert.equal(one.script, digest);
  assert.equal(one.line, 7);
  await until(() => progress.some((p) => /waiting for a person/.test(p.message ?? '')), 'a sign of life');
  await command(place, 'approvals', 'approve', one.id);
  const [two] = await held(place);
  await command(place, 'approvals', 'reject', two.id, '--reason', 'not today');
  const out = said(await result);
  assert.match(out, /^denied .*not that/);
  assert.match(out, /\nask one\nrejected not today\nfree$/);
  const made = await rowsOf(place, 4, (r) => r.kind === 'call' && r.server === 'fixture');
  assert.deepEqual(made.map((r) => [r.outcome, r.line, r.script === digest]),
    [['denied', 4, true], ['ok', 7, true], ['denied', 9, true], ['ok', 12, true]]);
  await rowsOf(place, 1, (r) => r.server === 'scripts' && r.tool === 'run_script' && r.outcome === 'ok');
});

test('an approval that times out raises; run_script itself can be denied', async (t) => {
  const place = placeFor(t, { approvals: { rules: RULES, timeoutSeconds: 1 } });
  const { script } = await connect1(t, new Stdio1(place.command()));
  const out = said(await script(node(`
try { await tools.echo({ message: 'ask me' }); } catch (e) { console.log(e.name, e instanceof tools.Rejected); }`)));
  assert.equal(out, 'Rejected true');
  const [row] = await rowsOf(place, 1, (r) => r.server === 'fixture');
  assert.deepEqual([row.outcome, row.by, row.line], ['denied', 'time', 3]);

  const strict = placeFor(t, { approvals: { rules: [{ server: 'scripts', action: 'deny', reason: 'no scripts' }] } });
  const it = await connect1(t, new Stdio1(strict.command()));
  const no = await it.script(python('print(1)'));
  assert.equal(no.isError, true);
  assert.match(no.content[0].text, /no scripts/);
});

test('asked through the client, during the script', async (t) => {
  const place = placeFor(t, { approvals: { rules: [{ ...RULES[0], approver: 'client' }] } });
  const serve = await serveFor(t, place);
  for (const transport of [new Stdio1(place.command()), new Http1(serve.url)]) {
    const { client, script } = await connect1(t, transport, { elicitation: {} });
    const asked = [];
    client.setRequestHandler(types.ElicitRequestSchema, ({ params }) => {
      asked.push(params.message);
      const decision = /ask two/.test(params.message) ? 'reject' : 'approve';
      return { action: 'accept', content: { decision, reason: 'my reason' } };
    });
    const out = said(await script(python(`
print(tools.echo(message="ask one"))
try:
    tools.echo(message="ask two")
except tools.Rejected as e:
    print(e.reason)`)));
    assert.equal(out, 'ask one\nmy reason');
    assert.equal(asked.length, 2);
  }
});

// --- wrong and endless scripts

test('wrong arguments and scripts run nothing', async (t) => {
  const place = placeFor(t, { gateway: { scripts: { enabled: true, maxSeconds: 20 } } });
  const { script } = await connect1(t, new Stdio1(place.command()));
  const refused = async (args, why) => {
    const r = await script(args);
    assert.equal(r.isError, true, JSON.stringify(r));
    assert.match(r.content[0].text, why);
  };
  await refused({ language: 'ruby', code: 'puts 1' }, /python or javascript/);
  await refused({ language: 'python' }, /code must be/);
  await refused(python('', { timeout: 21 }), /at most 20 seconds/);
  await refused(python(`#${'x'.repeat(1024 * 1024)}`), /longer than 1048576 bytes/);
  assert.ok(!rows(place).some((r) => r.server === 'scripts'), 'nothing was begun');
  assert.equal(said(await script(python(`
for wrong in (lambda: tools.echo(message=1), lambda: tools.echo(), lambda: tools.nothing(),
              lambda: tools.run_script(language="python", code="")):
    try:
        wrong()
        print("ran")
    except tools.Failed as e:
        print(e.kind)`))), 'failed\nfailed\nfailed\nfailed');
});

test('an endless loop ends at its timeout, and too much memory is refused', async (t) => {
  const place = placeFor(t);
  const { script } = await connect1(t, new Stdio1(place.command()));
  const word = randomUUID();
  const looped = await script(python(`
import subprocess, sys
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "${word}"], start_new_session=True)
while True: pass`, { timeout: 1 }));
  assert.equal(looped.structuredContent.timed_out, true);
  await until(() => withWord(word).length === 0, 'its processes are gone');
  const greedy = await script(python('print(len(bytearray(300 << 20)))', { memory_mb: 64 }));
  assert.notEqual(greedy.structuredContent.exit_code, 0);
  assert.match(greedy.structuredContent.stderr, /MemoryError/);
});

// --- ends

describe('nothing is left', () => {
  test('cancelled by its client', async (t) => {
    const place = placeFor(t, { approvals: { rules: RULES } });
    const serve = await serveFor(t, place);
    for (const transport of [new Stdio1(place.command()), new Http1(serve.url)]) {
      const { script } = await connect1(t, transport);
      const word = randomUUID();
      const stop = new AbortController();
      const result = script(waits(word), { signal: stop.signal });
      await until(() => withWord(word).length > 0, 'it runs');
      stop.abort();
      await assert.rejects(result);
      await until(() => withWord(word).length === 0, 'it is gone');

      const asks = new AbortController();
      const pending = script(python('tools.echo(message="ask it")'), { signal: asks.signal });
      await held(place);
      asks.abort();
      await assert.rejects(pending);
      await until(async () => (await listed(place)).length === 0, 'its call is not asked about any more');
      await until(() => rows(place).some((r) => r.server === 'fixture' && r.outcome === 'cancelled'), 'its row');
    }
  });

  test('the client goes away', async (t) => {
    const place = placeFor(t);
    const serve = await serveFor(t, place);
    for (const transport of [new Stdio1(place.command()), new Http1(serve.url)]) {
      const { client, script } = await connect1(null, transport);
      const word = randomUUID();
      const result = script(waits(word));
      result.catch(() => {});
      await until(() => withWord(word).length > 0, 'it runs');
      await transport.terminateSession?.();
      await client.close();
      await until(() => withWord(word).length === 0, 'it is gone');
    }
  });

  test('the server is killed', async (t) => {
    const place = placeFor(t);
    const serve = await place.serve();
    const { script } = await connect1(null, new Http1(serve.url));
    const word = randomUUID();
    const result = script(waits(word));
    result.catch(() => {});
    await until(() => withWord(word).length > 0, 'it runs');
    slay(serve.pid);
    await serve.stop('SIGKILL');
    await until(() => withWord(word).length === 0, 'it is gone');
  });
});

// --- many

test('a thousand calls, one by one and together', async (t) => {
  const place = placeFor(t);
  const { script } = await connect1(t, new Stdio1(place.command()));
  const py = await script(python(`
n = 0
for i in range(1000):
    n += tools.echo(message=str(i)) == str(i)
print(n)`));
  assert.equal(said(py), '1000');
  const js = await script(node(`
let n = 0;
for (let k = 0; k < 20; k++) {
  const all = await Promise.all(Array.from({ length: 50 }, (_, i) => tools.echo({ message: String(i) })));
  n += all.filter((m, i) => m === String(i)).length;
}
console.log(n);`));
  assert.equal(said(js), '1000');
  const made = await rowsOf(place, 2000, (r) => r.server === 'fixture' && r.kind === 'call');
  assert.equal(made.length, 2000, 'each once');
});

test('two scripts at once do not see each other, and too many wait for none', async (t) => {
  const place = placeFor(t, { gateway: { scripts: { enabled: true, max: 2 } }, approvals: { rules: RULES } });
  const { script } = await connect1(t, new Stdio1(place.command()));
  const code = (name) => python(`
import os, tempfile
open("${name}", "w").write("mine")
open(os.path.join(tempfile.gettempdir(), "${name}"), "w").write("mine")
tools.echo(message="ask ${name}")
print(sorted(os.listdir(".")), sorted(n for n in os.listdir(tempfile.gettempdir()) if not n.startswith("mo-script")))
print(len([p for p in os.listdir("/proc") if p.isdigit() and b"main.py" in open(f"/proc/{p}/cmdline", "rb").read()]))`);
  const one = script(code('one'));
  const two = script(code('two'));
  const calls = await held(place, 2);
  const third = await script(python('print(3)'));
  assert.match(third.content[0].text, /2 scripts are running/);
  for (const { id } of calls) await command(place, 'approvals', 'approve', id);
  assert.equal(said(await one), "['one'] ['one']\n1");
  assert.equal(said(await two), "['two'] ['two']\n1");
  assert.equal(said(await script(python('import os; print(os.listdir("."))'))), '[]');
});
