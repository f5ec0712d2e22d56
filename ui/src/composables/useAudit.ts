// useAudit - the newest rows of the audit log, polled incrementally, and the
// statistics of the last hour.

import { computed, onScopeDispose, ref, shallowRef } from 'vue';

import { fetchAudit, fetchMetrics, fetchOlderAudit } from '../lib/http';
import { gaugeOf, mergeRows, minutesOf } from '../lib/stats';
import type { Audit } from '../protocol';

const EVERY_MS = 5000;
const MINUTES = 60;
const ROWS_MAX = 2000; // plus the older ones the user loaded
const SAMPLES = 60;

export function useAudit() {
  const rows = shallowRef<Audit['rows']>([]);
  const known = ref(false);
  const more = ref(false); // the server has older rows
  let most = ROWS_MAX;
  const now = ref(Date.now());
  const memory = shallowRef<number[]>([]); // bytes, one sample per poll
  const minutes = computed(() => minutesOf(rows.value, now.value, MINUTES));

  async function load(): Promise<void> {
    const since = rows.value[0]?.at ?? 0;
    const [audit, metrics] = await Promise.all([
      fetchAudit(since ? since - 1 : 0).catch(() => null),
      fetchMetrics().catch(() => ''),
    ]);
    now.value = Date.now();
    const size = gaugeOf(metrics, 'process_resident_memory_bytes');
    if (size) memory.value = [...memory.value, size].slice(-SAMPLES);
    if (!audit) return;
    if (!known.value) more.value = audit.more;
    known.value = true;
    rows.value = mergeRows(rows.value, audit.rows, since).slice(0, most);
  }
  async function older(): Promise<void> {
    const before = rows.value.at(-1)?.at ?? 0;
    const audit = await fetchOlderAudit(before + 1).catch(() => null);
    if (!audit) return;
    more.value = audit.more;
    most += audit.rows.length;
    rows.value = [...rows.value.filter((r) => r.at > before), ...audit.rows];
  }
  void load();
  const timer = setInterval(() => void load(), EVERY_MS);
  onScopeDispose(() => clearInterval(timer));
  return { rows, known, more, minutes, memory, older };
}
