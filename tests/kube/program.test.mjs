// The program with boxes in pods: the image it writes, a command in a box, and
// what `doctor --sandbox` says of the cluster.
import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { claimRules, loadFile, Namespace, noKube, rules } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';

const skip = noKube;
let ns;
let tag;

/** { code, out, err } of the program with this kind of sandbox. */
const run = (args, kubernetes = {}) => new Promise((resolve) => {
  const config = join(ns.dir, 'config.json');
  writeFileSync(config, JSON.stringify({ sandbox: { driver: 'kubernetes', kubernetes:
    { kubeconfig: ns.kubeconfig, image: tag, pullPolicy: 'Never', ...kubernetes } },
  store: { dir: join(ns.dir, 'state') } }));
  execFile(process.env.MO_BIN, [...args.slice(0, 2), '--config', config, ...args.slice(2)],
    { env: { PATH: process.env.PATH, HOME: ns.dir, ASAN_OPTIONS: 'detect_leaks=0' } },
    (e, out, err) => resolve({ code: e?.code ?? 0, out, err }));
});

before(async () => {
  if (skip) return;
  ns = await Namespace.open();
  const file = join(ns.dir, 'image.tar');
  const said = execFileSync(process.env.MO_BIN, ['box', 'image', '--out', file],
    { encoding: 'utf8', env: { PATH: process.env.PATH, HOME: ns.dir, ASAN_OPTIONS: 'detect_leaks=0' } });
  tag = `docker.io/library/${/^image (mo-toolbox:[0-9a-f]{12}) written/.exec(said)[1]}`;
  loadFile(file);
}, { timeout: 60_000 });

after(() => ns?.close());

test('one command in a box', { skip }, async () => {
  const { code, out, err } = await run(['box', 'run', '--', 'sh', '-c', 'echo "hello from $(hostname)"; echo no >&2; exit 3']);
  assert.deepEqual([code, out, err], [3, 'hello from box\n', 'no\n']);
  assert.deepEqual(await ns.pods(), []);
});

test('doctor tries every promise', { skip }, async () => {
  const { out } = await run(['doctor', '--sandbox']);
  const rows = out.split('\n').filter((l) => l.includes('kubernetes'));
  assert.ok(rows.length > 15, out);
  const bad = out.split('\n').filter((l) => /\bFAIL\b|fail/i.test(l) && l.includes('kubernetes'));
  // This old cluster does not give a volume in memory its size.
  assert.ok(bad.every((l) => l.includes('workspace size')), bad.join('\n'));
  assert.deepEqual(await ns.pods(), []);
});

test('doctor tries a claim, and says why it has no volume', { skip }, async () => {
  const row = async (kubernetes) => {
    const { out } = await run(['doctor', '--sandbox'], { claims: true, ...kubernetes });
    return out.split('\n').find((l) => l.includes('kept files')) ?? out;
  };
  await ns.grant([...rules, ...claimRules]);
  await ns.volumes(1, `${ns.name}-disk`, 'n1');
  assert.match(await row({ storageClass: `${ns.name}-disk` }), /^pass .*outlive their box/);
  assert.match(await row({ storageClass: 'no-such' }), /there is no such StorageClass/);
  await ns.grant(rules);
  assert.match(await row({}), /no right to create persistentvolumeclaims/);
  await eventually('nothing is left', async () => (await ns.claims()).length === 0 && (await ns.pods()).length === 0);
});

const refusals = [
  ['a missing right', async () => ns.grant(rules.slice(0, 1)), {}, /no right to get pods\/attach/],
  ['no image', async () => ns.grant(rules), { image: undefined }, /set 'sandbox\.kubernetes\.image'/],
  ['a namespace without rights', async () => {}, { namespace: 'default' }, /no right to create pods in namespace default/],
  ['no such context', async () => {}, { context: 'other' }, /there is no context 'other'/],
  ['no kubeconfig', async () => {}, { kubeconfig: '/no/such' }, /kubeconfig \/no\/such/],
];
for (const [name, prepare, how, why] of refusals)
  test(`refused, with the reason: ${name}`, { skip }, async () => {
    await prepare();
    const { code, err } = await run(['box', 'run', '--', 'true'], how);
    assert.notEqual(code, 0);
    assert.match(err, why);
    assert.deepEqual(await ns.pods(), []);
  });
