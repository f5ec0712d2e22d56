// approvals - calls of other programs that wait at the gateway for a person, and
// tools that changed. Tabs tell each other when one of them has decided.

import { defineStore } from 'pinia';
import { computed, ref, shallowRef } from 'vue';

import { acceptChanged, decidePendingCall, fetchApprovals } from '../lib/gateway';
import type { ChangedTool, Decision, PendingCall } from '../protocol';

export const useApprovalsStore = defineStore('approvals', () => {
  const calls = shallowRef<PendingCall[]>([]);
  const changed = shallowRef<ChangedTool[]>([]);
  const known = ref(false);
  const why = ref(''); // it is not known
  // Those a person can decide here; the others are asked by their client.
  const waiting = computed(() => calls.value.filter((c) => !c.byClient).length);
  const tabs = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('mo.approvals');

  async function load(): Promise<void> {
    try {
      const found = await fetchApprovals();
      calls.value = found.approvals.toSorted((a, b) => a.expiresAt - b.expiresAt);
      changed.value = found.changed;
      known.value = true;
      why.value = '';
    } catch (e) {
      why.value = e instanceof Error ? e.message : String(e);
    }
  }
  async function tell(done: Promise<unknown>): Promise<string> {
    const failed = await done.then(() => '', (e: Error) => e.message);
    await load();
    tabs?.postMessage('');
    return failed;
  }
  /** Why it did not work, or nothing. */
  const decide = (c: PendingCall, d: Decision): Promise<string> =>
    tell(decidePendingCall(c.id, c.digest, d));
  const accept = (c: ChangedTool): Promise<string> =>
    tell(acceptChanged(c.server, c.tool, c.digest));

  tabs?.addEventListener('message', () => void load());
  return { calls, changed, known, why, waiting, load, decide, accept };
});
