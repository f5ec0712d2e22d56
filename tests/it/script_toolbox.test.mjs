// run_script of mo-toolbox: real interpreters, and a small host in this test
// that answers the calls of scripts.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { programs, until, withToolbox } from '../lib/toolbox.mjs';

const data = fileURLToPath(new URL('../../data/script', import.meta.url));
const library = Object.fromEntries(['tools.py', 'tools_shared.py', 'tools.mjs']
  .map((name) => [name, readFileSync(join(data, name), 'utf8')]));
const NOTE = 'notifications/mcp-orchestrator/script';
const ANSWER = 'mcp-orchestrator/script/answer';

/** The host's tools; each gets the arguments and returns a part of the answer. */
const text = (t) => ({ result: { content: [{ type: 'text', text: t }] } });
const error = (kind, message) => ({ error: { kind, message } });
const TOOLS = {
  echo: (a) => ({ result: { content: [], structuredContent: a } }),
  say: (a) => text(a.text),
  picture: () => ({ result: { content: [{ type: 'image', data: 'AA==', mimeType: 'image/png' }] } }),
  broken: () => ({ result: { content: [{ type: 'text', text: 'no disk' }], isError: true } }),
  reject: () => error('rejected', 'not today'),
  deny: () => error('denied', 'rule 3'),
  fail: () => error('failed', 'no server'),
  vanish: () => error('unknown', 'the server died'),
  many: () => error('limit', '10000 calls'),
  'create-issue': (a) => text(`made ${a.title}`),
  big: (a) => text('x'.repeat(a.bytes)),
  never: () => null,
};

/** A host of scripts for one toolbox. */
class Host {
  constructor(toolbox, tools = TOOLS) {
    this.t = toolbox;
    this.tools = tools;
    this.asked = [];
    this.closed = [];
    this.tokens = 0;
    this.open = 0;
    this.mostOpen = 0;
    toolbox.messages.push = (m) => (m.method === NOTE ? this.take(m.params) : 0);
  }

  take(p) {
    if (p.closed) return this.closed.push(p.progressToken);
    this.asked.push(p);
    this.mostOpen = Math.max(this.mostOpen, ++this.open);
    const answer = p.find === undefined
      ? (this.tools[p.tool] ?? (() => error('failed', `no tool ${p.tool}`)))(p.arguments, p)
      : { result: { tools: [{ name: p.find, description: 'd', confidence: 1 / p.limit }] } };
    return answer && this.answer(p, answer);
  }

  async answer({ progressToken, id }, answer) {
    this.open--;
    const m = await this.t.request(ANSWER, { arguments: { progressToken, id, ...answer } });
    return m.result?.delivered ?? m;
  }

  start(language, code, args = {}, files = library) {
    const id = ++this.t.id;
    const progressToken = `t${++this.tokens}`;
    const done = this.t.call('run_script', { language, code, ...args },
      { id, _meta: { progressToken, 'mcp-orchestrator/script': { files } } });
    return { id, progressToken, done };
  }

  async run(language, code, args, files) {
    const r = await this.start(language, code, args, files).done;
    return { ...r.structuredContent, isError: r.isError, text: r.content[0].text };
  }

  /** What a script prints that must end well. */
  async prints(language, code, args, files) {
    const r = await this.run(language, code, args, files);
    assert.equal(r.exit_code, 0, r.text);
    assert.equal(r.isError, false);
    return r.stdout;
  }
}

const scripts = () => readdirSync('/tmp').filter((n) => n.startsWith('mo-script-'));

for (const program of Object.keys(programs)) {
  describe(program, () => {
    const box = (name, body) => test(name, () =>
      withToolbox({ program }, (t) => body(new Host(t), t)));
    // Long ones: of the program that runs in boxes.
    const long = program === 'musl' ? box : () => {};

    box('both languages: names, servers, exact names, values', async (h) => {
      const names = { ...library, 'names.json': JSON.stringify({ create_issue: 'create-issue', github_create_issue: 'create-issue' }) };
      const py = await h.prints('python', `
import tools, os
print(tools.echo(a=1, b={"c": [None, True, "ü"]}))
print(tools.say({"text": "hi"}))
print(tools.picture()["content"][0]["mimeType"])
print(tools.call("create-issue", {"title": "A"}), tools.create_issue(title="B"), tools.github.create_issue(title="C"))
print(tools.call("say", {"text": "r"}, raw=True)["content"][0]["text"])
print(tools.find("send mail", limit=4))
`, {}, names);
      assert.equal(py, `{'a': 1, 'b': {'c': [None, True, 'ü']}}
hi
image/png
made A made B made C
r
[{'name': 'send mail', 'description': 'd', 'confidence': 0.25}]
`);
      const js = await h.prints('javascript', `
import tools from './tools.mjs';
console.log(JSON.stringify(await tools.echo({ a: 1, b: { c: [null, true, 'ü'] } })));
console.log(await tools.say({ text: 'hi' }));
console.log((await tools.picture()).content[0].mimeType);
console.log(await tools.call('create-issue', { title: 'A' }), await tools.create_issue({ title: 'B' }), await tools.github.create_issue({ title: 'C' }));
console.log((await tools.call('say', { text: 'r' }, { raw: true })).content[0].text);
console.log(JSON.stringify(await tools.find('send mail', 4)));
`, {}, names);
      assert.equal(js, `{"a":1,"b":{"c":[null,true,"ü"]}}
hi
image/png
made A made B made C
r
[{"name":"send mail","description":"d","confidence":0.25}]
`);
      assert.deepEqual(h.asked.slice(0, 2).map((a) => [a.id, a.tool, a.line]), [[1, 'echo', 3], [2, 'say', 4]]);
      assert.deepEqual(h.asked.filter((a) => a.tool === 'picture').map((a) => a.line), [5, 5]);
    });

    box('each kind of error has its class', async (h) => {
      const py = await h.prints('python', `
import tools
for name in ("reject", "deny", "fail", "vanish", "many", "broken", "nothing"):
    try:
        tools.call(name)
    except tools.ToolError as e:
        print(type(e).__name__, e.kind, e, getattr(e, "reason", ""), bool(e.result))
`);
      const want = ['Rejected rejected not today not today', 'Denied denied rule 3', 'Failed failed no server',
        'Unknown unknown the server died', 'Limit limit 10000 calls', 'Failed failed no disk',
        'Failed failed no tool nothing'];
      assert.deepEqual(py.trim().split('\n'), want.map((w, i) =>
        (i === 0 ? `${w} False` : `${w}  ${i === 5 ? 'True' : 'False'}`)));
      const js = await h.prints('javascript', `
import tools, { ToolError, Rejected } from './tools.mjs';
for (const name of ['reject', 'deny', 'fail', 'vanish', 'many', 'broken', 'nothing']) {
  try { await tools.call(name); } catch (e) {
    if (!(e instanceof ToolError)) throw e;
    console.log([e.name, e.kind, e.message, e instanceof Rejected ? e.reason : ''].join(' ').trim());
  }
}`);
      assert.deepEqual(js.trim().split('\n'), want);
      const uncaught = await h.run('python', 'import tools\ntools.reject()');
      assert.deepEqual([uncaught.exit_code, uncaught.isError, uncaught.calls], [1, true, 1]);
      assert.match(uncaught.stderr, /Rejected: not today/);
    });

    box('calls at the same time: threads, asyncio, promises', async (h) => {
      const held = [];
      h.tools = { ...TOOLS, wait: (a, p) => { held.push(p); if (held.length === 8) held.splice(0).reverse().forEach((q) => h.answer(q, text(String(q.arguments.n)))); return null; } };
      assert.equal(await h.prints('python', `
import asyncio, tools
async def main():
    print(await asyncio.gather(*(tools.aio.wait(n=n) for n in range(8))), await tools.aio.find("x"))
    try:
        await tools.aio.deny()
    except tools.Denied as e:
        print(e)
asyncio.run(main())
print(tools.say(text="after"))
`), "['0', '1', '2', '3', '4', '5', '6', '7'] [{'name': 'x', 'description': 'd', 'confidence': 0.1}]\nrule 3\nafter\n");
      assert.deepEqual(h.asked.slice(0, 8).map((a) => a.line), Array(8).fill(4));
      assert.equal(await h.prints('python', `
from concurrent.futures import ThreadPoolExecutor
import tools
with ThreadPoolExecutor(8) as pool:
    print(list(pool.map(lambda n: tools.wait(n=n), range(8))))
`), "['0', '1', '2', '3', '4', '5', '6', '7']\n");
      assert.equal(await h.prints('javascript', `
import tools from './tools.mjs';
console.log((await Promise.all([0, 1, 2, 3, 4, 5, 6, 7].map((n) => tools.wait({ n })))).join());
`), '0,1,2,3,4,5,6,7\n');
    });

    box('threads and event loops that share the connection', async (h) => {
      assert.equal(await h.prints('python', `
import asyncio, threading, tools
got = []
def work(n):
    for i in range(100): got.append(tools.echo(n=n, i=i)["i"])
async def main(n):
    async def one(i): got.append((await tools.aio.echo(n=n, i=i))["i"])
    await asyncio.gather(*(one(i) for i in range(100)))
    late = asyncio.ensure_future(tools.aio.never())
    await asyncio.sleep(0)
    late.cancel()
threads = [threading.Thread(target=work, args=(n,)) for n in range(6)]
threads += [threading.Thread(target=lambda n=n: asyncio.run(main(n))) for n in range(3)]
for t in threads: t.start()
for t in threads: t.join()
print(len(got), sum(got), tools.say(text="end"))
import os
if os.fork() == 0:
    try: tools.say(text="child")
    except tools.Gone as e: print(e, flush=True)
    os._exit(0)
os.wait()
print(tools.say(text="parent"))
try: tools.echo(a=object())
except TypeError as e: print(e)
try: tools.echo(a=float("nan"))
except ValueError: print("no number")
`), '900 44550 end\nthere is no connection to the tools\nparent\nobject is no JSON value\nno number\n');
    });

    box('a call that the script gave up: the next has its own answer', async (h) => {
      let slow;
      h.tools = { ...TOOLS,
        slow: (a, p) => { slow = p; process.kill(a.pid, 'SIGUSR1'); return null; },
        next: (a) => { h.answer(slow, text('late')); return text(`${a.n}`); } };
      assert.equal(await h.prints('python', `
import os, signal, threading, tools
class GivenUp(Exception): pass
def give_up(*_): raise GivenUp
signal.signal(signal.SIGUSR1, give_up)
try: tools.slow(pid=os.getpid())
except GivenUp: print("given up")
print(tools.next(n=1), tools.say(text="a"))
t = threading.Thread(target=lambda: print(tools.say(text="b")))
t.start()
t.join()
print(tools.say(text="c"))
`), 'given up\n1 a\nb\nc\n');
    });

    long('10,000 calls in each language, at most 64 open', async (h) => {
      const py = await h.prints('python', `
import asyncio, tools
async def main():
    got = await asyncio.gather(*(tools.aio.echo(n=n) for n in range(5000)))
    print(sum(g["n"] for g in got) == sum(range(5000)))
asyncio.run(main())
print(sum(tools.echo(n=n)["n"] for n in range(5000)) == sum(range(5000)))
`, { timeout: 120 });
      assert.equal(py, 'True\nTrue\n');
      assert.equal(h.asked.length, 10_000);
      const js = await h.prints('javascript', `
import tools from './tools.mjs';
const got = await Promise.all(Array.from({ length: 10000 }, (_, n) => tools.echo({ n })));
console.log(got.every((g, n) => g.n === n));
`, { timeout: 120 });
      assert.equal(js, 'true\n');
      assert.equal(h.asked.length, 20_000);
      assert.ok(h.mostOpen <= 64, `${h.mostOpen} open`);
    });

    box('64 are open, more wait', async (h) => {
      const run = h.start('javascript', `
import tools from './tools.mjs';
await Promise.all(Array.from({ length: 100 }, () => tools.never()));
console.log('all');
`);
      await until(() => h.asked.length === 64, '64 calls');
      await h.answer(h.asked[0], text('1'));
      await until(() => h.asked.length === 65, 'one more');
      assert.equal(await h.answer(h.asked[0], text('again')), false);
      for (let i = 1; i < 100; i++) {
        await until(() => h.asked.length > i, 'the next');
        assert.equal(await h.answer(h.asked[i], text('1')), true);
      }
      const r = (await run.done).structuredContent;
      assert.deepEqual([r.stdout, r.calls], ['all\n', 100]);
    });

    box('large arguments and results', async (h) => {
      assert.equal(await h.prints('python', `
import tools
print(len(tools.big(bytes=3000000)), len(tools.echo(t="y" * 1000000)["t"]))
try:
    tools.echo(t="y" * 1100000)
except tools.Failed as e:
    print(e)
`), '3000000 1000000\nthe arguments are longer than 1 MiB\n');
      assert.equal(await h.prints('javascript', `
import tools from './tools.mjs';
console.log((await tools.big({ bytes: 3000000 })).length, (await tools.echo({ t: 'y'.repeat(1000000) })).t.length);
await tools.echo({ t: 'y'.repeat(1100000) }).catch((e) => console.log(e.message));
`), '3000000 1000000\nthe arguments are longer than 1 MiB\n');
    });

    long('100 MB printed: the ends are kept', async (h) => {
      for (const [language, code] of [
        ['python', 'import sys\nfor _ in range(100): sys.stdout.write("z" * 999999 + "\\n")\nprint("last")'],
        ['javascript', 'import { writeSync } from "node:fs";\nconst s = "z".repeat(999999) + "\\n";\nfor (let i = 0; i < 100; i++) { let at = 0; while (at < s.length) { try { at += writeSync(1, s.slice(at)); } catch (e) { if (e.code !== "EAGAIN") throw e; } } }\nconsole.log("last");'],
      ]) {
        const r = await h.run(language, code, { timeout: 100 });
        assert.deepEqual([r.exit_code, r.stdout_bytes, r.truncated], [0, 100_000_005, true], r.text.slice(-300));
        assert.ok(r.stdout.length < 70_000 && r.stdout.endsWith('zz\nlast\n'));
      }
    });

    long('an endless loop ends at its timeout, and keeps what it printed', async (h) => {
      for (const [language, code] of [['python', 'print("begun")\nwhile True: pass'],
        ['javascript', 'console.log("begun"); for (;;);']]) {
        let r; // the first may end before it has begun
        for (const timeout of [2, 15]) if ((r = await h.run(language, code, { timeout })).stdout) break;
        assert.deepEqual([r.timed_out, r.isError, r.stdout, r.signal], [true, true, 'begun\n', 'SIGKILL']);
      }
    });

    box('the timeout does not run while a call is open', async (h) => {
      const run = h.start('python', 'import tools\nprint(tools.never())\nwhile True: pass', { timeout: 4 });
      await until(() => h.asked.length === 1, 'the call');
      const after = Date.now() + 5500;
      await until(() => Date.now() > after, 'more than its timeout');
      assert.equal(await h.answer(h.asked[0], text('late')), true);
      const r = (await run.done).structuredContent;
      assert.deepEqual([r.timed_out, r.stdout], [true, 'late\n']);
    });

    long('a memory limit is the script\'s own', async (h) => {
      const r = await h.run('python', 'x = bytearray(300 * 1024 * 1024)', { memory_mb: 100 });
      assert.equal(r.exit_code, 1);
      assert.match(r.stderr, /MemoryError/);
      assert.equal(await h.prints('python', 'x = bytearray(300 * 1024 * 1024)\nprint(len(x))'), '314572800\n');
    });

    box('nothing survives a script', async (h, t) => {
      const daemon = `
import os, subprocess, sys, time
subprocess.Popen(["sleep", "600"], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.Popen(["sleep", "600"])
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
print("left")
`;
      assert.equal(await h.prints('python', daemon), 'left\n');
      assert.deepEqual(t.processes(), []);
      assert.equal((await h.prints('javascript', `
import { spawn } from 'node:child_process';
spawn('sleep', ['600'], { detached: true, stdio: 'ignore' }).unref();
console.log('left');`)), 'left\n');
      assert.deepEqual(t.processes(), []);
    });

    long('a script that forks without end is killed with all of it', async (h, t) => {
      const r = await h.run('python', `
import os, time
print("begun")
for _ in range(300):
    if os.fork() == 0:
        while True:
            try:
                if os.fork() == 0: break
                time.sleep(0.05)
            except OSError:
                time.sleep(0.01)
            if len(os.listdir("/proc")) > 1500: time.sleep(600)
        time.sleep(600)
time.sleep(600)
`, { timeout: 2 });
      assert.equal(r.timed_out, true);
      await until(() => t.processes().length === 0, 'all of it to end');
      assert.equal(await h.prints('python', 'print(1)'), '1\n');
    });

    box('a descriptor that is closed: the script goes on', async (h) => {
      const r = await h.run('python', `
import os
fd = int(os.environ["MO_TOOLS_FD"])
import tools
print(tools.say(text="hi"))
os.close(fd)
try:
    tools.say(text="x")
except tools.Gone as e:
    print(e)
`);
      assert.deepEqual([r.exit_code, r.stdout, r.calls], [0, 'hi\nthe connection to the tools ended\n', 1]);
      assert.deepEqual(h.closed, ['t1']);
    });

    const forged = [
      ['no JSON', 'b"nonsense\\n"', /./],
      ['no object', 'b"[1]\\n"', /no JSON object/],
      ['no id', 'b\'{"tool":"say"}\\n\'', /id is no integer/],
      ['a text as id', 'b\'{"id":"1","tool":"say"}\\n\'', /id is no integer/],
      ['an id too large', 'b\'{"id":9007199254740993,"tool":"say"}\\n\'', /id is no integer/],
      ['an id that is open', 'b\'{"id":1,"tool":"never"}\\n{"id":1,"tool":"never"}\\n\'', /open already/],
      ['an answer to itself', 'b\'{"id":1,"result":{}}\\n\'', /either a tool or a find/],
      ['a tool and a find', 'b\'{"id":1,"tool":"a","find":"b"}\\n\'', /either a tool or a find/],
      ['arguments that are no object', 'b\'{"id":1,"tool":"a","arguments":[1]}\\n\'', /wrong type/],
      ['no UTF-8', 'b\'{"id":1,"tool":"\\xff"}\\n\'', /./],
      ['a line without end', 'b"x" * (2 << 20)', /longer than 1 MiB/],
      ['a deep line', 'b\'{"id":1,"tool":"a","arguments":{"a":\' + b"[" * 500 + b"]" * 500 + b"}}\\n"', /./],
    ];
    box('forged lines end the channel, not the script', async (h) => {
      for (const [what, bytes, why] of forged) {
        h.closed.length = 0;
        const r = await h.run('python', `
import os
fd = int(os.environ["MO_TOOLS_FD"])
try:
    os.write(fd, ${bytes})
    while True:
        got = os.read(fd, 100)
        if not got: break
        print(got)
except OSError: pass
print("on")
`);
        assert.deepEqual([r.exit_code, r.stdout, r.isError], [0, 'on\n', false], `${what}: ${r.text}`);
        assert.match(r.text, /a wrong line to the tools/, what);
        assert.match(r.text, why, what);
        assert.equal(h.closed.length, 1, what);
      }
      const last = h.start('python', 'import tools\nprint(tools.say(text="still here"))');
      assert.equal((await last.done).structuredContent.stdout, 'still here\n');
    });

    box('a line cannot pretend to be another message', async (h, t) => {
      const before = t.messages.length;
      const r = await h.run('python', `
import os, json
fd = int(os.environ["MO_TOOLS_FD"])
evil = {"id": 1, "tool": "say\\n{\\"jsonrpc\\":\\"2.0\\",\\"id\\":1,\\"result\\":{}}", "arguments": {"text": "x"}, "progressToken": "other", "method": "initialize", "closed": True}
os.write(fd, json.dumps(evil).encode() + b"\\n")
print(os.read(fd, 1000))
`);
      assert.match(r.stdout, /no tool say/);
      assert.deepEqual([h.asked[0].progressToken, h.asked[0].closed, h.asked[0].method], ['t1', undefined, undefined]);
      assert.equal(t.messages.length, before);
    });

    box('a library that the script changes changes only the script', async (h) => {
      assert.equal(await h.prints('python', `
import tools
tools._connection.ask = lambda frame: {"result": {"structuredContent": "forged"}}
print(tools.echo(a=1))
`), 'forged\n');
      assert.equal(h.asked.length, 0);
      assert.equal(await h.prints('python', 'import tools\nprint(tools.echo(a=1))'), "{'a': 1}\n");
    });

    box('two scripts: own directory, own descriptor', async (h, t) => {
      const first = h.start('python', `
import os, tools
print(os.path.dirname(tools.__file__), os.environ.get("MO_TOOLS_FD"))
tools.never()
`);
      await until(() => h.asked.length === 1, 'the first to call');
      const second = await h.prints('python', `
import os, stat, sys, tools
here = os.path.dirname(tools.__file__)
print(here, oct(os.stat(here).st_mode & 0o777))
sockets = []
for fd in range(3, 1000):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode): sockets.append(fd)
    except OSError: pass
print(sockets == [tools._connection.fd])
for pid in os.listdir("/proc"):
    try:
        for fd in os.listdir(f"/proc/{pid}/fd") if pid.isdigit() and int(pid) != os.getpid() else []:
            if os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:"):
                os.close(os.open(f"/proc/{pid}/fd/{fd}", os.O_RDWR))
                print("reached", pid, fd)
    except OSError: pass
`);
      const [dir, mode] = second.split('\n')[0].split(' ');
      assert.equal(mode, '0o700');
      assert.equal(second.split('\n')[1], 'True');
      assert.ok(!second.includes('reached'), second);
      assert.ok(!existsSync(dir));
      await h.answer(h.asked[0], text('x'));
      const said = (await first.done).structuredContent.stdout;
      assert.match(said, /^\/tmp\/mo-script-\S+ None\n/); // the library took it
      assert.notEqual(said.split(' ')[0], dir);
      assert.equal(await h.answer(h.asked[0], text('x')), false);
    });

    box('kill -9 of the script, cancellation, the end of its files', async (h, t) => {
      const before = scripts();
      const killed = h.start('python', 'import os, tools\ntools.echo(pid=os.getpid())\ntools.never()');
      await until(() => h.asked.length === 2, 'its calls');
      process.kill(h.asked[0].arguments.pid, 'SIGKILL');
      const r = (await killed.done).structuredContent;
      assert.deepEqual([r.signal, r.calls], ['SIGKILL', 2]);
      assert.equal(await h.answer(h.asked[1], text('x')), false);

      const canceled = h.start('python', 'import tools\ntools.never()');
      await until(() => h.asked.length === 3, 'its call');
      t.waiting.get(canceled.id).reject(new Error('cancelled'));
      t.waiting.delete(canceled.id);
      await assert.rejects(canceled.done, /cancelled/);
      t.send({ method: 'notifications/cancelled', params: { requestId: canceled.id } });
      await until(() => t.processes().length === 0, 'its end');
      assert.equal(await h.answer(h.asked[2], text('x')), false);

      // Files that the script put there, more than one step removes.
      assert.equal(await h.prints('python', `
import os
here = os.path.dirname(os.path.abspath(__file__))
for i in range(2500): open(f"{here}/{i}", "w").close()
os.makedirs(f"{here}/a/b/c")
os.symlink("/etc", f"{here}/link")
print("ok")`), 'ok\n');
      await until(() => scripts().every((n) => before.includes(n)), 'no directory');
      assert.ok(existsSync('/etc/passwd'));
    });

    box('without the host\'s files there are no tools', async (h, t) => {
      const r = await t.ok('run_script', { language: 'python', code: 'import os\nprint(os.environ.get("MO_TOOLS_FD"))' });
      assert.deepEqual([r.stdout, r.calls], ['None\n', 0]);
      const js = await t.ok('run_script', { language: 'javascript', code: 'console.log(process.env.MO_TOOLS_FD, process.cwd())' });
      assert.equal(js.stdout, `undefined ${t.place.root}\n`);
    });

    box('wrong arguments and files', async (h, t) => {
      const wrong = [
        [{ language: 'ruby', code: '' }, {}, /language must be one of "python", "javascript"/],
        [{ language: 'python' }, {}, /code is missing/],
        [{ language: 'python', code: '', timeout: 0 }, {}, /timeout/],
        [{ language: 'python', code: '', memory_mb: 1 }, {}, /between 16/],
        [{ language: 'python', code: '' }, { '../x': '' }, /impossible/],
        [{ language: 'python', code: '' }, { '': '' }, /impossible/],
        [{ language: 'python', code: '' }, { '..': '' }, /impossible/],
        [{ language: 'python', code: '' }, { x: 1 }, /impossible/],
        [{ language: 'python', code: '' }, { 'main.py': '' }, /main.py cannot be written/],
        [{ language: 'python', code: '' }, { x: 'y'.repeat((1 << 20) + 1) }, /more than 64 files or 1 MiB/],
        [{ language: 'python', code: '' }, Object.fromEntries(Array.from({ length: 65 }, (_, i) => [`f${i}`, ''])), /more than 64/],
      ];
      const before = scripts();
      for (const [args, files, why] of wrong) {
        const r = await t.call('run_script', args, { _meta: { progressToken: 1, 'mcp-orchestrator/script': { files } } });
        assert.equal(r.isError, true);
        assert.match(r.content[0].text, why);
      }
      assert.deepEqual(scripts().filter((n) => !before.includes(n)), []);
      const noToken = await t.call('run_script', { language: 'python', code: '' }, { _meta: { 'mcp-orchestrator/script': { files: {} } } });
      assert.match(noToken.content[0].text, /progressToken/);
      for (const bad of [{}, { id: 1 }, { id: 1, result: 2 }, { id: 1, result: {}, error: {} }]) {
        const m = await t.request(ANSWER, { arguments: { progressToken: 't', ...bad } });
        assert.equal(m.error.code, -32602);
      }
    });

    test('without an interpreter the tool is not listed', async () => {
      await withToolbox({ program, env: { PATH: '/nowhere' } }, async (t) => {
        const names = (await t.request('tools/list')).result.tools.map((x) => x.name);
        assert.ok(names.includes('execute_command') && !names.includes('run_script'), names.join());
      });
    });

    long('answers that nobody reads end the channel', async (h) => {
      h.t.place.file('wait', '');
      const run = h.start('python', `
import os, json, time
fd = int(os.environ["MO_TOOLS_FD"])
for i in range(40):
    os.write(fd, json.dumps({"id": i, "tool": "big", "arguments": {"bytes": 3000000}}).encode() + b"\\n")
while os.path.exists("wait"): time.sleep(0.05)
`);
      await until(() => h.closed.length === 1, 'the end of the channel');
      rmSync(join(h.t.place.root, 'wait'));
      assert.match((await run.done).content[0].text, /does not read its answers/);
    });
  });
}
