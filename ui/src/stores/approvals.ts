// approvals - calls of MCP clients that wait at the gateway for approval, and
// tools whose definition changed. Tabs notify each other after a decision.

import { defineStore } from 'pinia';
import { computed, ref, shallowRef } from 'vue';

import { acceptChanged, decidePendingCall, fetchApprovals } from '../lib/gateway';
import { errorOf, errorText } from '../lib/http';
import { CONNECT, type ChangedTool, type Decision, type PendingCall } from '../protocol';

export const useApprovalsStore = defineStore('approvals', () => {
  const calls = shallowRef<PendingCall[]>([]);
  const changed = shallowRef<ChangedTool[]>([]);
  const known = ref(false);
  const error = ref(''); // the error of the last load
  // Without the calls whose client asks its own user.
  const waiting = computed(() => calls.value.filter((c) => !c.byClient).length);
  const tabs = typeof BroadcastChannel === 'undefined' ? null : new BroadcastChannel('mo.approvals');

  async function load(): Promise<void> {
    try {
      const found = await fetchApprovals();
      calls.value = found.approvals.toSorted((a, b) => a.expiresAt - b.expiresAt);
      changed.value = found.changed;
      known.value = true;
      error.value = '';
    } catch (e) {
      error.value = errorText(e);
    }
  }
  async function tell(done: Promise<unknown>): Promise<string> {
    const failed = await errorOf(done);
    await load();
    tabs?.postMessage('');
    return failed;
  }
  /** Resolves to an error message, or to an empty string. */
  const decide = (c: PendingCall, d: Decision): Promise<string> =>
    tell(decidePendingCall(c.id, c.digest, d, c.tool === CONNECT));
  const accept = (c: ChangedTool): Promise<string> =>
    tell(acceptChanged(c.server, c.tool, c.digest));

  tabs?.addEventListener('message', () => void load());
  return { calls, changed, known, error, waiting, load, decide, accept };
});
