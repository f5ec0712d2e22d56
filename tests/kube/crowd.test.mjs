// A crowd (lib/crowd.mjs) whose boxes are pods with claims: pods are deleted, and
// programs in them killed. Tools write to the claims, which are folders of this
// machine. At the end all conversations are deleted, and no pod and no claim may be
// left. One minute; ten with MO_LONG=1 (make long).
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, test } from 'node:test';

import { until } from '../it/server.mjs';
import { crowd, limit, missing } from '../lib/crowd.mjs';
import { problemsOf } from '../lib/crowd_check.mjs';
import { api, claimRules, Namespace, noKube, ownImage, rules, toolboxOf } from '../lib/kube.mjs';

const TALKERS = Number(process.env.MO_CROWD ?? 16);
const skip = noKube || missing;
let ns;

before(async () => {
  if (skip) return;
  ownImage.load();
  ns = await Namespace.open();
  await ns.grant([...rules, ...claimRules]);
  for (const node of ['n1', 'n2']) await ns.volumes(2 * TALKERS, `${ns.name}-disk`, node);
}, { timeout: 60_000 });

after(() => ns?.close());

let killed = 0;

/** Deletes a pod that runs, or kills its program. */
async function killPod() {
  const running = (await ns.pods()).filter((p) => p.status.phase === 'Running' && !p.metadata.deletionTimestamp);
  const pod = running[Math.floor(Math.random() * running.length)];
  if (!pod) return 0;
  const pid = killed++ % 2 ? await toolboxOf(pod.metadata.uid) : undefined;
  if (pid) process.kill(pid, 'SIGKILL');
  else await api('DELETE', `${ns.path}/pods/${pod.metadata.name}?gracePeriodSeconds=0`);
  return 1;
}

const house = {
  talkers: TALKERS,
  sandbox: () => ({ driver: 'kubernetes', warm: 0, memoryMb: 64, workspaceMb: 8, cpus: 0.2, pids: 32, kubernetes: {
    kubeconfig: ns.kubeconfig, image: ownImage.tag, pullPolicy: 'Never', claims: true, storageClass: `${ns.name}-disk` } }),
  effects: '/workspace/effects',
  written: () => ns.pvs.map((name) => join(ns.dir, name, 'effects')),
  killBox: killPod,
  more: { sessions: { sweepSeconds: 5 } },
};

test('nothing is lost, doubled, mixed up or out of order while pods die', { skip, timeout: limit }, async (t) => {
  const place = await crowd(t, house);
  await t.test('the check finds: a failure told twice, or told and then answered', () => {
    const copy = structuredClone(place.records);
    const one = copy.log.find((r) => r.what === 'event' && r.name === 'agent:response' && r.turn);
    for (const name of ['agent:error', 'agent:response'])
      assert.match(problemsOf({ ...copy, log: [...copy.log.filter((r) => r !== one), { ...one, name: 'agent:error', args: [''], words: [] }, { ...one, name }] }).join('\n'),
        new RegExp(`turn ${one.turn} failed, and then ${name} was told`));
  });
  for (let who = 1; who <= TALKERS; who++)
    await until(async () => [200, 204, 404].includes((await fetch(`${place.url}/api/sessions/crowd-${who}?forget=true`,
      { method: 'DELETE', headers: { authorization: `Bearer ${place.tokens[who]}` } })).status), `the end of crowd-${who}`, 60_000);
  await until(async () => (await ns.pods()).length === 0 && (await ns.claims()).length === 0,
    'no pod and no claim is left', 120_000);
});
