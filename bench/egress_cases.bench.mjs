// egress_cases.bench.mjs - the same programs in a box of ours and in npm's
// @anthropic-ai/sandbox-runtime: which allowed hosts work, and what else is
// reached. Prints a table (docs/network.md).
//
// Hosts are servers on this machine. Both parties resolve names with the hosts
// file of a mount namespace, in which this script starts itself again.
import { execFile, execFileSync, spawnSync } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:tls';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const self = fileURLToPath(import.meta.url);
const missing = ['/usr/bin/bwrap', '/usr/bin/socat', '/usr/bin/rg', '/usr/bin/psql', '/usr/sbin/sshd'].find((p) => !existsSync(p));
const { noNative } = await import('../tests/lib/sessions.mjs');
if (missing || noNative) {
  console.log(`needs ${missing ?? noNative}`);
  process.exit();
}
const NAMES = 'api.test web.test db.test ssh.test other.test loop.test';
if (!process.env.MO_CASES) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-cases-'));
  writeFileSync(join(dir, 'hosts'), `127.0.0.1 localhost ${NAMES}\n`);
  const { status } = spawnSync('unshare', ['-m', 'sh', '-c', `mount --bind ${dir}/hosts /etc/hosts && exec "$@"`, 'sh',
    process.execPath, self], { stdio: 'inherit', env: { ...process.env, MO_CASES: dir } });
  rmSync(dir, { recursive: true });
  process.exit(status ?? 1);
}

const { Hosts, NetBox, certificate } = await import('../tests/lib/egress.mjs');
const { postgres, sshd } = await import('../tests/lib/daemons.mjs');
const { median, program, say } = await import('./kit.mjs');

const dir = process.env.MO_CASES;
const srt = join(dirname(self), 'node_modules/@anthropic-ai/sandbox-runtime');
const version = (p) => JSON.parse(readFileSync(join(p, 'package.json'))).version;

// --- the hosts -----------------------------------------------------------------

const hosts = new Hosts();
const pair = certificate(NAMES.split(' '));
const seen = new Set(); // what reached a host that was not allowed
const repo = join(dir, 'repo');
execFileSync('sh', ['-ec', `git init -q -b main work; cd work; echo x > f; git add .
git -c user.name=a -c user.email=a@b commit -qm one; git clone -q --bare . ../repo; cd ../repo; git update-server-info`], { cwd: dir });
const answer = (q, r) => {
  const file = join(repo, q.url.replace(/^\/repo/, '').split('?')[0]);
  if (q.url.startsWith('/repo/')) return existsSync(file) ? r.end(readFileSync(file)) : r.writeHead(404).end();
  return r.end(q.url.startsWith('/-/ping') ? '{}' : 'hello');
};
const tls = await hosts.tls(pair, answer);
const echo = await hosts.tcp((s) => s.pipe(s));
const loop = await hosts.http((q, r) => { seen.add('loop'); r.end('hello'); });
const other = await hosts.tls(pair, (q, r) => { seen.add('other'); r.end('hello'); });
const sni = await hosts.listen(createServer(pair, (s) => {
  s.on('error', () => {});
  seen.add(s.servername ? `sni ${s.servername}` : 'no sni');
  s.end('hello');
}).on('tlsClientError', () => {}));
const db = await postgres(pair);
const ssh = await sshd('ssh.test');
const udp = createSocket('udp4', () => seen.add('udp'));
udp.bind(0, '127.0.0.1');
await once(udp, 'listening');

// --- the parties ---------------------------------------------------------------

const files = { 'ca.pem': pair.cert, key: ssh.key, known: ssh.known };
const allowed = [['api.test', tls], ['web.test', echo], ['api.test', sni], ['db.test', db.port], ['ssh.test', ssh.port]];

async function ours() {
  const box = await NetBox.open({ allow: [...allowed.map(([name, port]) => `${name}=127.0.0.1:${port}`), `loop.test:${loop}`] },
    { env: { CA: pair.cert, KEY: ssh.key, KNOWN: ssh.known } });
  await box.run('umask 077; printf %s "$CA" > ca.pem; printf %s "$KEY" > key; printf %s "$KNOWN" > known');
  return {
    name: 'this program',
    async run(command) {
      const said = await box.run(command);
      return { ok: said.endsWith('exit 0'), said };
    },
    close: () => box.close(),
  };
}

function theirs() {
  const at = mkdtempSync(join(dir, 'srt-'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(at, name), text, { mode: 0o600 });
  writeFileSync(join(at, 'settings.json'), JSON.stringify({
    network: { allowedDomains: [...allowed.flatMap(([name, port]) => [`${name}:${port}`, `127.0.0.1:${port}`]), `loop.test:${loop}`], deniedDomains: [] },
    filesystem: { denyRead: [], allowWrite: [at, '/tmp'], denyWrite: [] },
  }));
  const run = (command) => new Promise((done) => execFile(process.execPath,
    [join(srt, 'dist/cli.js'), '--settings', join(at, 'settings.json'), '-c', command],
    { cwd: at, timeout: 60_000 }, (e, stdout, stderr) => done({ ok: !e, said: `${stdout}${stderr}` })));
  return { name: `sandbox-runtime ${version(srt)}`, run, close() {} };
}

// --- the cases -----------------------------------------------------------------

const python = (code) => `/usr/bin/python3 -c '${code}'`;
const ssh1 = '-i key -o IdentitiesOnly=yes -o UserKnownHostsFile=known';
const nodeVersion = execFileSync('/usr/bin/node', ['-p', 'process.versions.node.split(`.`)[0]'], { encoding: 'utf8' }).trim();
const me = execFileSync('id', ['-un'], { encoding: 'utf8' }).trim();
// [what, command, and for a case that must fail what a host then has not seen]
const WORKS = [
  ['curl, HTTPS', `curl -sSf --cacert ca.pem https://api.test:${tls}/`],
  ['wget, HTTPS', `wget -qO- --ca-certificate=ca.pem https://api.test:${tls}/`],
  ['git clone, HTTPS', `rm -rf w1; GIT_SSL_CAINFO=ca.pem git clone -q https://api.test:${tls}/repo w1`],
  ['npm ping', `npm_config_cafile=ca.pem npm_config_cache=c npm ping --fetch-retries=0 --registry https://api.test:${tls}/`],
  ['Python urllib, HTTPS', python(`import ssl, urllib.request as u
u.urlopen("https://api.test:${tls}/", context=ssl.create_default_context(cafile="ca.pem")).read()`)],
  [`Node ${nodeVersion} fetch, HTTPS`, `NODE_EXTRA_CA_CERTS=ca.pem /usr/bin/node -e 'fetch("https://api.test:${tls}/").then((r) => r.text())'`],
  ['a program without proxy support, TCP', python(`import socket
s = socket.create_connection(("web.test", ${echo})); s.sendall(b"x"); assert s.recv(1) == b"x"`)],
  ['curl that ignores proxy settings', `curl -sSf --noproxy "*" --cacert ca.pem https://api.test:${tls}/`],
  ['psql', `psql -At "host=db.test port=${db.port} user=postgres" -c "select 1"`],
  ['ssh', `ssh ${ssh1} -p ${ssh.port} ${me}@ssh.test true`],
  ['git clone, SSH', `rm -rf w2; GIT_SSH_COMMAND="\${GIT_SSH_COMMAND:-ssh} ${ssh1}" git clone -q ssh://${me}@ssh.test:${ssh.port}${repo} w2`],
];
const FAILS = [
  ['a host that is not allowed', `curl -sSfk https://other.test:${other}/`, 'other'],
  ['another port of an allowed host', `curl -sSfk https://api.test:${other}/`, 'other'],
  ['the address in place of the name', `curl -sSfk --noproxy "" https://127.0.0.1:${other}/`, 'other'],
  ['the address, without the proxy', `curl -sSfk --noproxy "*" https://127.0.0.1:${other}/`, 'other'],
  ['an allowed name at a loopback address', `curl -sSf http://loop.test:${loop}/`, 'loop'],
  ['TLS to an allowed host that names another', `curl -sSfk --http0.9 --connect-to other.test:443:api.test:${sni} https://other.test/`, 'sni other.test'],
  ['TLS to an allowed host that names none', `P=\${https_proxy#http://}; U=$(echo "\${P%%:*}" | sed s/%3D/=/g); W=\${P%@*}; export W=\${W#*:}
openssl s_client -quiet -noservername \${P:+-proxy "\${P#*@}" -proxy_user "$U" -proxy_pass env:W} -connect api.test:${sni} < /dev/null`, 'no sni'],
  ['UDP', python(`import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
s.connect(("127.0.0.1", ${udp.address().port})); s.send(b"x"); s.recv(1)`), 'udp'],
  ['a raw socket', python('import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)'), ''],
  ['DNS to a server on the Internet', python(`import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(2)
s.sendto(bytes.fromhex("123401000001000000000000") + b"\\\\7example\\\\3org\\\\0\\\\0\\\\1\\\\0\\\\1", ("9.9.9.9", 53))
assert s.recv(512)[7] > 0`), ''],
];

// --- the table -----------------------------------------------------------------

const parties = [await ours(), theirs()];
const cell = async (party, command, mark) => {
  seen.clear();
  const since = performance.now();
  const { ok, said } = await party.run(command);
  const ms = Math.round(performance.now() - since);
  if (process.env.MO_CASES_SAY) console.error(`${party.name}: ${command}\n${said}\n${[...seen]}\n`);
  if (mark === undefined) return ok ? 'works' : `fails after ${ms} ms`;
  return ok || seen.has(mark) ? 'REACHED' : 'refused';
};
const row = (...cells) => say(`| ${cells.join(' | ')} |`);
row('case', ...parties.map((p) => p.name));
row('---', ...parties.map(() => '---'));
for (const [what, command, mark] of [...WORKS, ...FAILS]) {
  const cells = [];
  for (const p of parties) cells.push(await cell(p, command, mark));
  row(what, ...cells);
}

// A command in a new sandbox with a network.
const config = join(dir, 'config.json');
writeFileSync(config, JSON.stringify({ sandbox: { driver: 'native', network: { allow: ['api.test'] } } }));
const took = [[], []];
for (let i = 0; i < 7; i++) {
  let since = performance.now();
  execFileSync(program, ['--config', config, 'box', 'run', '--', 'true'],
    { env: { PATH: process.env.PATH, MCP_ORCHESTRATOR_STATE_DIR: join(dir, 'state') } });
  took[0].push(performance.now() - since);
  since = performance.now();
  await parties[1].run('true');
  took[1].push(performance.now() - since);
}
row('`true` in a new sandbox, median', ...took.map((v) => `${median(v).toFixed(0)} ms`));

for (const p of parties) await p.close();
hosts.close();
udp.close();
await db.close();
await ssh.close();
