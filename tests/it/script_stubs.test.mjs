// Declarations of tools for scripts: Python and TypeScript must accept them,
// for the tools of real servers and for definitions made at random from hostile
// parts. Nothing of a definition may get out of its comment or string.
import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { helper, within } from '../lib/toolbox.mjs';

const top = fileURLToPath(new URL('../..', import.meta.url));
const tsc = join(top, 'ui/node_modules/typescript/bin/tsc');
const SEED = Number(process.env.MO_SEED ?? 20261117);
const ROUNDS = Number(process.env.MO_ROUNDS ?? 60);

// Lines end with LF only: readline would also end one at U+2028.
const driver = spawn(helper('stubs_driver'), { stdio: ['pipe', 'pipe', 'inherit'] });
let rest = '';
const waiting = [];
driver.stdout.setEncoding('utf8').on('data', (d) => {
  const lines = (rest + d).split('\n');
  rest = lines.pop();
  for (const line of lines) waiting.shift()(line);
});

let dir;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'mo-stubs-'));
});
after(() => {
  driver.stdin.end();
  rmSync(dir, { recursive: true, force: true });
});

async function files(language, tools, code) {
  driver.stdin.write(`${JSON.stringify({ language, tools, code: code ?? tools.map((t) => t.name).join(' ; ') })}\n`);
  return JSON.parse(await within(new Promise((resolve) => waiting.push(resolve)), 'the files'));
}

/** Files of one round, written to be checked together. */
const python = [];
const typescript = [];
async function make(name, tools, code) {
  const py = await files('python', tools, code);
  const js = await files('javascript', tools, code);
  writeFileSync(join(dir, `${name}.py`), py['stubs.py']);
  writeFileSync(join(dir, `${name}.d.mts`), js['tools.d.mts']);
  python.push(join(dir, `${name}.py`));
  typescript.push(join(dir, `${name}.d.mts`));
  assert.deepEqual(JSON.parse(py['names.json']), JSON.parse(js['names.json']));
  return { py: py['stubs.py'], js: js['tools.d.mts'], names: JSON.parse(py['names.json']) };
}

// Names of everything that the file declares; executing it must declare no more.
const LOOK = `
import ast, json, sys
allowed = {"Any", "Literal", "Optional", "TypedDict", "Union", "overload"}
seen = {}
for path in sys.argv[1:]:
    tree = ast.parse(open(path, encoding="utf-8").read(), path)
    names = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            assert len(node.body) == 1 and isinstance(node.body[0].value, ast.Constant), path
            names.append(node.name)
        elif isinstance(node, ast.Assign):
            call = node.value
            assert isinstance(call, ast.Call) and call.func.id == "TypedDict", path
        else:
            assert isinstance(node, (ast.ImportFrom, ast.Expr)), (path, ast.dump(node)[:200])
            if isinstance(node, ast.Expr): assert isinstance(node.value, ast.Constant), path
    for node in ast.walk(tree):
        assert not isinstance(node, (ast.Lambda, ast.Await, ast.Yield, ast.For, ast.While, ast.If)), path
        if isinstance(node, ast.Call): assert node.func.id == "TypedDict", path
    exec(compile(tree, path, "exec"), {})
    seen[path] = names
print(json.dumps(seen))
`;

function checkPython() {
  const r = spawnSync('python3', ['-W', 'error', '-c', LOOK, ...python], { encoding: 'utf8', maxBuffer: 1 << 26 });
  assert.equal(r.status, 0, r.stderr.slice(-2000));
  return JSON.parse(r.stdout);
}

function checkTypeScript() {
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify({
    compilerOptions: { strict: true, noEmit: true, skipLibCheck: false, module: 'nodenext', target: 'es2022', types: [] },
    files: typescript,
  }));
  const r = spawnSync(join(top, 'scripts/node'), [tsc, '-p', dir], { encoding: 'utf8' });
  assert.equal(r.status, 0, r.stdout.slice(0, 3000) + r.stderr);
}

// --- real servers -----------------------------------------------------------

const modules = join(top, 'tests/node_modules/@modelcontextprotocol');
const servers = {
  everything: ['server-everything/dist/index.js'],
  filesystem: ['server-filesystem/dist/index.js', tmpdir()],
  memory: ['server-memory/dist/index.js'],
  gitlab: ['server-gitlab/dist/index.js'],
};

async function toolsOf(server, [program, ...args]) {
  const client = new Client({ name: 'stubs', version: '1' });
  await client.connect(new StdioClientTransport({
    command: join(top, 'scripts/node'), args: [join(modules, program), ...args], stderr: 'ignore',
    env: { ...process.env, GITLAB_PERSONAL_ACCESS_TOKEN: 'none', MEMORY_FILE_PATH: join(dir, 'memory') },
  }));
  try {
    return (await client.listTools()).tools.map((t) => ({ ...t, server }));
  } finally {
    await client.close();
  }
}

test('tools of published servers', async () => {
  const all = [];
  for (const [name, how] of Object.entries(servers)) {
    const tools = await toolsOf(name, how);
    assert.ok(tools.length > 1, name);
    all.push(...tools);
    const { js } = await make(`server_${name}`, tools);
    for (const t of tools) assert.ok(js.includes(t.name.replaceAll('-', '_')), t.name);
  }
  assert.ok(all.length > 30, `${all.length}`);
  const { py } = await make('server_all', all, 'tools.read_text_file() tools.memory.create_entities()');
  assert.match(py, /^def read_text_file\(\*, path: str, .*\) -> \w+:$/m);
  assert.match(py, /^def create_entities\(\*, entities: list\[create_entities_1\]\) -> /m);
  assert.ok(!py.includes('def write_file('));
});

// --- random and hostile -----------------------------------------------------

let state = SEED;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const times = (n, f) => Array.from({ length: n }, f);

const parts = ['a', 'tool', '"', "'", '"""', "'''", '\\', '\\"', '*/', '/*', '//', '#', '\n', '\r', '\r\n', '\0', '\t',
  '`', '${x}', '{', '}', '(', ')', ';', ':', ' ', 'import os', 'class', 'def', 'None', 'new', 'constructor', '__debug__',
  '__proto__', 'ü', '文', '😀', '\u2028', '\u202e', '\ufeff', '\u0085', '-', '_', '.', '1', '<', '>', '\\N{BULLET}', '\\u0022',
  '\\x', '*', '/', 'self', 'from', 'print', 'list', 'str', 'Any', 'x'.repeat(100)];
const hostile = (max = 6) => times(1 + below(max), () => pick(parts)).join('');
const kinds = ['string', 'integer', 'number', 'boolean', 'null', 'array', 'object', 'strange', 7];
const value = () => pick([hostile(), 0, -1, 1.5, 1e300, true, false, null, [], {}, 2 ** 60]);

function schema(depth = 0) {
  if (depth > 5 || random() < 0.05) return pick([true, false, null, {}, [], 7, 'x']);
  const s = { description: random() < 0.5 ? hostile(20) : pick([undefined, 1]) };
  const kind = below(8);
  if (kind === 0) s.enum = times(below(5), value);
  else if (kind === 1) s.const = value();
  else if (kind === 2) s[pick(['anyOf', 'oneOf', 'allOf'])] = times(below(4), () => schema(depth + 1));
  else if (kind === 3) s.type = times(1 + below(3), () => pick(kinds));
  else s.type = pick(kinds);
  if (random() < 0.2) s.nullable = pick([true, 'yes']);
  if (random() < 0.7) s.items = schema(depth + 1);
  if (random() < 0.7) {
    s.properties = Object.fromEntries(times(below(6), () => [hostile(3), schema(depth + 1)]));
    s.required = pick([Object.keys(s.properties), Object.keys(s.properties).slice(1), [hostile(), 1], 'x', undefined]);
  }
  if (random() < 0.3) s.additionalProperties = schema(depth + 1);
  return s;
}

test('hostile names, descriptions and schemas', async () => {
  for (let round = 0; round < ROUNDS; round++) {
    const tools = times(1 + below(5), () => ({
      name: hostile(4), server: hostile(2), description: hostile(30), inputSchema: schema(), outputSchema: pick([schema(), undefined]),
    }));
    await make(`round_${round}`, tools);
  }
  assert.ok(python.length >= ROUNDS);
});

test('each hostile part by itself, everywhere', async () => {
  for (const [i, p] of parts.entries())
    await make(`part_${i}`, [{
      name: p, server: p, description: p,
      inputSchema: { type: 'object', properties: { [p]: { enum: [p], description: p }, plain: { type: 'object', properties: { [p]: {} } } }, required: [p] },
      outputSchema: { type: 'object', properties: { [p]: { const: p } } },
    }]);
});

test('two names of one identifier are called by their exact name', async () => {
  const { py, js, names } = await make('twins', [{ name: 'a-b', server: 's' }, { name: 'a.b' }, { name: 'c-d' }]);
  assert.ok(py.includes('Literal["a-b"]') && py.includes('Literal["a.b"]') && !py.includes('def a_b('));
  assert.ok(js.includes('call(name: "a-b"') && !js.includes(' a_b('));
  assert.deepEqual(names, { s_a_b: 'a-b', c_d: 'c-d' });
});

test('many tools and large ones stay small', async () => {
  const tools = times(200, (_, i) => ({ name: `tool_${i}`, description: 'd'.repeat(5000), inputSchema: { type: 'object', properties: Object.fromEntries(times(20, (__, k) => [`p${k}`, { enum: times(60, (___, n) => `value ${n} ${'v'.repeat(50)}`) }])) } }));
  const { py, js } = await make('many', tools);
  assert.ok(py.length < 400_000 && js.length < 400_000, `${py.length} ${js.length}`);
  assert.match(py, /# 1\d\d more tools are not declared here/);
});

test('Python and TypeScript accept all of them', () => {
  const seen = checkPython();
  assert.equal(Object.keys(seen).length, python.length);
  assert.deepEqual(seen[join(dir, 'twins.py')], ['call', 'call', 'c_d']);
  checkTypeScript();
});
