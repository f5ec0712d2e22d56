// Files of sessions in pods that stay: PersistentVolumeClaims on a real cluster.
// It has no provisioner, so the volumes are made by hand.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { api, claimRules, Namespace, noKube, ownImage, rules } from '../lib/kube.mjs';
import { eventually } from '../lib/outside.mjs';
import { Home } from '../lib/sessions.mjs';

const skip = noKube;
const sh = (script) => ['/bin/sh', '-c', script];
const NAME = /^mo-files-\d{6,10}-[0-9a-f]{16}$/;
const homes = [];
const open = [];
let ns;
let klass;

before(async () => {
  if (skip) return;
  ownImage.load();
  ns = await Namespace.open();
  klass = `${ns.name}-disk`;
  await ns.grant([...rules, ...claimRules]);
  await ns.volumes(24, klass, 'n1');
  await ns.volumes(24, klass, 'n2');
}, { timeout: 60_000 });

after(async () => {
  for (const us of open) await us.sigkill();
  homes.forEach((h) => h.removeAll());
  await ns?.close();
});

/** A state directory whose sessions run in pods with claims. */
function home({ warm = 0, ...kubernetes } = {}) {
  const h = new Home({ sandbox: { driver: 'kubernetes', warm, memoryMb: 64, workspaceMb: 8, cpus: 0.5, pids: 32,
    kubernetes: { kubeconfig: ns.kubeconfig, image: ownImage.tag, pullPolicy: 'Never', claims: true, storageClass: klass,
      ...kubernetes } } });
  homes.push(h);
  return h;
}

/** One process with boxes that keep files. */
function boxes(more = {}) {
  const us = ns.boxes({ store: 'plain', more: ['--claims', klass], ...more });
  open.push(us);
  return us;
}

const claim = async (name) => (await api('GET', `${ns.path}/persistentvolumeclaims/${name}`)).json;
const nothingLeft = () => eventually('no claim and no pod is left', async () =>
  (await ns.claims()).length === 0 && (await ns.pods()).length === 0);

/** The janitor takes the box of a session that nobody has used for a while. */
async function sleepNow(h, s, hold, id) {
  s.tell('release', { h: hold });
  await eventually('it is let go', async () => (await s.stats()).open === 0);
  h.age(id, 16);
  await s.sweep();
  const row = h.sessions().find((r) => r.id === id);
  assert.deepEqual([row.box, row.asleep], [null, true]);
}

async function end(s, id) {
  s.tell('end', { session: id, forget: true });
  assert.equal((await s.next((e) => e.ev === 'ended' && e.session === id)).why, null);
}

test('the cluster is judged with claims', { skip }, async () => {
  const us = boxes();
  us.tell('check');
  const { ok, what, why } = await us.next('check');
  assert.deepEqual([ok, why], [true, '']);
  assert.match(what, new RegExp(`namespace ${ns.name}, files in claims ${klass}$`));
  assert.equal(await us.close(), 0);
  assert.deepEqual(await ns.claims(), [], 'nothing was created');
});

test('an idle pod goes, its files stay until the conversation is deleted', { skip }, async () => {
  const h = home();
  const s = await h.server();
  const { box, workspace, keepsFiles } = await s.hold('a', 'one');
  assert.deepEqual([workspace, keepsFiles], ['fresh', true]);
  await s.sh('a', 'echo precious > file; chmod 600 file; mkdir -m 700 d; echo x > d/in; ln -s /etc/shadow s');
  const seen = await s.sh('a', 'id -u; ls -lnd file d | cut -c 1-10');
  const [{ metadata: m, spec }] = await ns.claims();
  assert.match(m.name, NAME);
  assert.equal(m.name.split('-')[2], seen.split('\n')[0], 'its name has the user id');
  assert.deepEqual([m.labels['mo.role'], m.annotations['mo.session'], m.annotations['mo.instance']],
    ['files', 'one', s.instance]);
  assert.deepEqual([spec.storageClassName, spec.resources.requests.storage, spec.accessModes], [klass, '8Mi', ['ReadWriteOnce']]);

  await sleepNow(h, s, 'a', 'one');
  assert.deepEqual(await ns.pods(), []);
  const again = await s.hold('b', 'one');
  assert.deepEqual([again.workspace, again.box === box], ['kept', false]);
  assert.equal(await s.sh('b', 'id -u; ls -lnd file d | cut -c 1-10'), seen, 'modes as they were');
  assert.equal(await s.sh('b', 'cat file d/in; readlink s; echo more >> file'), 'precious\nx\n/etc/shadow\n');

  await s.hold('c', 'two');
  assert.equal(await s.sh('c', 'ls -A'), '', 'another session sees nothing of it');
  assert.notEqual(await s.sh('c', 'id -u'), `${seen.split('\n')[0]}\n`);
  assert.equal((await ns.claims()).length, 2);
  await end(s, 'two');
  await eventually('its claim is gone', async () => (await ns.claims()).length === 1);
  await s.sweep();
  assert.deepEqual((await ns.claims()).map((c) => c.metadata.name), [m.name]);
  await end(s, 'one');
  await nothingLeft();
  assert.equal(await s.close(), 0);
});

test('files survive kill -9 of the server, with and without their pod', { skip }, async () => {
  const h = home();
  const first = await h.server();
  const { box } = await first.hold('a', 'one');
  await first.sh('a', 'echo precious > file; sync');
  first.tell('hold', { h: 'b', session: 'halfway' }); // its claim may be made, its row is not
  await first.kill();
  const second = await h.server();
  const ready = await second.hold('a', 'one');
  assert.deepEqual([ready.box, ready.workspace], [box, 'kept']);
  assert.equal(await second.sh('a', 'cat file; echo and more >> file'), 'precious\n');
  await second.kill();
  await api('DELETE', `${ns.path}/pods/${box}?gracePeriodSeconds=0`);
  const third = await h.server();
  const anew = await third.hold('a', 'one');
  assert.deepEqual([anew.workspace, anew.box === box], ['kept', false]);
  assert.equal(await third.sh('a', 'cat file'), 'precious\nand more\n');
  await eventually('the claim of nobody is swept', async () => {
    await third.sweep();
    return (await ns.claims()).length === 1;
  });
  await end(third, 'one');
  await nothingLeft();
  await third.close();
});

test('the pod is killed under a session: it goes on with its files', { skip }, async () => {
  const h = home();
  const s = await h.server();
  const { box } = await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await api('DELETE', `${ns.path}/pods/${box}?gracePeriodSeconds=0`);
  await s.next((e) => e.ev === 'lost');
  s.tell('use', { h: 'a' });
  const used = await s.next((e) => e.ev === 'used');
  assert.deepEqual([used.why, used.workspace], [null, 'kept']);
  assert.equal(await s.sh('a', 'cat file'), 'precious\n');
  await end(s, 'one');
  await nothingLeft();
  await s.close();
});

test('a warm pod brings its own claim, and takes it along if nobody came', { skip }, async () => {
  const h = home({ warm: 1 });
  const s = await h.server();
  await eventually('a warm box', async () => (await s.stats()).warm === 1);
  const [before] = await ns.claims();
  assert.equal(before.metadata.annotations['mo.session'], '');
  await s.hold('a', 'one');
  await s.sh('a', 'echo precious > file');
  await eventually('its claim says whose it is', async () =>
    (await claim(before.metadata.name)).metadata.annotations['mo.session'] === 'one');
  await sleepNow(h, s, 'a', 'one');
  await eventually('the next is warm', async () => (await s.stats()).warm === 1);
  await s.hold('a', 'one');
  assert.equal(await s.sh('a', 'cat file'), 'precious\n');
  await s.kill(); // with a warm pod and its claim
  const t = await h.server();
  assert.equal((await t.hold('a', 'one')).workspace, 'kept');
  await end(t, 'one');
  await t.close(); // and this one in good order
  const u = await home().server(); // of another store: none of its business
  await u.sweep();
  await u.close();
  const v = await h.server();
  await eventually('only the new warm claim is left', async () => {
    await v.sweep();
    return (await v.stats()).warm === 1 && (await ns.claims()).length === 1 && (await ns.pods()).length === 1;
  });
  await v.close();
  await nothingLeft();
});

test('the claim of another session or store is not mounted', { skip }, async () => {
  const us = boxes();
  const keep = { keep: true, session: 's-a', argv: sh('echo mine > /workspace/f; echo ok; exec sh') };
  const { files, old } = await us.start('a', keep);
  assert.match(files, NAME);
  assert.equal(old, false);
  await us.until('a', 'ok\n');
  const look = { keep: true, argv: sh('ls -A /workspace; echo end; cat') };
  const b = await us.start('b', { ...look, session: 's-b', files });
  assert.deepEqual([b.files === files, b.old], [false, false]);
  assert.equal(await us.until('b', 'end\n'), 'end\n');
  const other = boxes({ store: 'other' });
  const c = await other.start('c', { ...look, session: 's-a', files });
  assert.deepEqual([c.files === files, c.old], [false, false]);
  other.tell('forget', { id: files });
  assert.match((await other.next('removed')).why, /not one of ours/);
  other.tell('files');
  assert.deepEqual((await other.next('rows')).rows, [], 'its own is in use, the other is not its');
  for (const name of ['../pods/x', 'mo-files-1-0', 'data']) {
    us.tell('forget', { id: name });
    assert.match((await us.next('refused')).why, /no such workspace/);
  }
  await us.stop('a');
  await us.stop('b');
  await other.stop('c');
  us.tell('files');
  assert.deepEqual((await us.next('rows')).rows.map((r) => [r.id, r.session, r.instance]).sort(),
    [[files, 's-a', 'one'], [b.files, 's-b', 'one']].sort());
  const again = await us.start('a', { ...look, session: 's-a', files });
  assert.deepEqual([again.files, again.old], [files, true]);
  assert.equal(await us.until('a', 'end\n'), 'f\nend\n');
  await us.stop('a');
  for (const [who, id] of [[us, files], [us, b.files], [other, c.files]]) {
    who.tell('forget', { id });
    assert.deepEqual(await who.next('removed'), { ev: 'removed' });
    who.tell('forget', { id });
    assert.deepEqual(await who.next('removed'), { ev: 'removed' }, 'unknown is as good');
  }
  await us.close();
  await other.close();
  await nothingLeft();
});

test('a pod whose claim is not the one it names is not adopted', { skip }, async () => {
  const us = boxes();
  const a = await us.start('a', { keep: true, session: 'a' });
  const b = await us.start('b', { keep: true, session: 'b' });
  us.tell('letgo', { box: 'a' });
  await us.next('gone', 'a');
  await api('PATCH', `${ns.path}/pods/${a.id}`, { metadata: { annotations: { 'mo.files': b.files } } },
    'application/merge-patch+json');
  await assert.rejects(us.start('a', { id: a.id }), /changed volumes of the pod/);
  await us.stop('b');
  for (const id of [a.files, b.files]) {
    us.tell('forget', { id });
    assert.deepEqual(await us.next('removed'), { ev: 'removed' });
  }
  await us.close();
  await nothingLeft();
});

test('stopped at any moment of its start: no claim is left', { skip }, async () => {
  const us = boxes();
  for (const wait of [/persistentvolumeclaims/, /pods/, null]) {
    us.tell('start', { box: 'm', keep: true });
    if (wait) await eventually('it has begun', async () =>
      (await (String(wait).includes('pods') ? ns.pods() : ns.claims())).length > 0);
    assert.equal((await us.stop('m')).cause, 'stopped');
    await nothingLeft();
  }
  await us.close();
});

const unbindable = [
  ['no such class', async () => 'no-such-class', /claim mo-files-\S+: there is no such StorageClass, and no free volume that names it/],
  ['no default class', async () => '', /claim mo-files-\S+: the cluster has no default StorageClass.*set 'sandbox\.kubernetes\.storageClass'/],
  ['a class that makes none', async () => {
    const name = `${ns.name}-none`;
    const { status, text } = await api('POST', '/apis/storage.k8s.io/v1/storageclasses',
      { metadata: { name }, provisioner: 'kubernetes.io/no-provisioner', volumeBindingMode: 'Immediate' });
    assert.equal(status, 201, text);
    return name;
  }, /its StorageClass makes no volumes, and none of those that exist is free/],
];
for (const [name, prepare, why] of unbindable)
  test(`a claim that is not bound is told with its cause: ${name}`, { skip }, async () => {
    const us = boxes({ store: 'un', more: ['--claims', await prepare()] });
    await assert.rejects(us.start('u', { keep: true }), (e) => {
      assert.equal(e.cause, 'refused');
      assert.match(e.why, why);
      return true;
    });
    await us.close();
    await nothingLeft();
    await api('DELETE', `/apis/storage.k8s.io/v1/storageclasses/${ns.name}-none`);
  });

test('the quota is used up: told at once', { skip }, async () => {
  await api('POST', `${ns.path}/resourcequotas`, { metadata: { name: 'q' }, spec: { hard: { persistentvolumeclaims: '0' } } });
  await eventually('it counts', async () =>
    (await api('GET', `${ns.path}/resourcequotas/q`)).json.status?.hard?.persistentvolumeclaims === '0');
  const us = boxes();
  try {
    await eventually('it is enforced', async () => {
      const e = await us.start('q', { keep: true }).then(() => us.stop('q'), (x) => x);
      return /the namespace's quota is used up.*exceeded quota: q/.test(e.why);
    });
    us.tell('check');
    assert.match((await us.next('check')).why, /a claim for files is not admitted.*exceeded quota/);
  } finally {
    await api('DELETE', `${ns.path}/resourcequotas/q`);
  }
  await us.close();
  await nothingLeft();
});

test('a missing right is named; only patch and events may be missing', { skip }, async () => {
  const [claims] = claimRules;
  for (const verb of ['create', 'get', 'list', 'delete']) {
    await ns.grant([...rules, { ...claims, verbs: claims.verbs.filter((v) => v !== verb) }]);
    const us = boxes();
    await eventually(`${verb} is missed`, async () => {
      us.tell('check');
      return (await us.next('check')).why.startsWith(`no right to ${verb} persistentvolumeclaims in`);
    });
    await us.close();
  }
  await ns.grant([...rules, { ...claims, verbs: ['create', 'get', 'list', 'delete'] }]);
  const us = boxes();
  await eventually('it is enough', async () => {
    us.tell('check');
    return (await us.next('check')).ok;
  });
  us.tell('warm', { n: 1, keep: true });
  await eventually('one is warm', async () => {
    us.tell('warm?');
    return (await us.next('warm')).n === 1;
  });
  const { files } = await us.start('a', { keep: true, session: 'a' });
  us.tell('warm', { n: 0, keep: true });
  await us.stop('a');
  us.tell('forget', { id: files });
  assert.deepEqual(await us.next('removed'), { ev: 'removed' });
  await us.close();
  await nothingLeft();
  await ns.grant([...rules, ...claimRules]);
});

test('claims are off: no right is used, and files end with the pod', { skip }, async () => {
  await ns.grant(rules);
  const us = boxes({ store: 'off', more: [] });
  us.tell('check');
  assert.equal((await us.next('check')).ok, true);
  assert.equal((await us.start('a', { keep: true, session: 'a' })).files, '');
  us.tell('files');
  assert.match((await us.next('refused')).why, /'sandbox\.kubernetes\.claims' is off/);
  await us.stop('a');
  await us.close();
  await nothingLeft();
  await ns.grant([...rules, ...claimRules]);
});
