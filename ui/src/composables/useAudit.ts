// useAudit - the newest rows of the audit log, polled incrementally, and the
// statistics of a time range, in BARS parts.

import { computed, onScopeDispose, ref, shallowRef, watch } from 'vue';

import { fetchAudit, fetchMetrics, fetchOlderAudit } from '../lib/http';
import { gaugeOf, mergeRows, minutesOf } from '../lib/stats';
import type { Audit } from '../protocol';

const EVERY_MS = 5000;
const BARS = 60;
const MINUTE_MS = 60_000;
const PAGES_MAX = 10; // of older rows that a longer range loads
const ROWS_MAX = 2000; // plus the older ones the user loaded
const SAMPLES = 60;

export function useAudit() {
  const rows = shallowRef<Audit['rows']>([]);
  const known = ref(false);
  const more = ref(false); // the server has older rows
  let most = ROWS_MAX;
  const now = ref(Date.now());
  const memory = shallowRef<number[]>([]); // bytes, one sample per poll
  const range = ref(60); // minutes
  const barMs = computed(() => (range.value / BARS) * MINUTE_MS);
  // The statistics are per minute: times are scaled so that a bar is one.
  const minutes = computed(() => {
    const scale = barMs.value / MINUTE_MS;
    const scaled = scale === 1 ? rows.value
      : rows.value.map((r) => ({ ...r, at: now.value - (now.value - r.at) / scale }));
    return minutesOf(scaled, now.value, BARS);
  });

  // The same of the gateway's calls alone.
  const gateway = computed(() => {
    const scale = barMs.value / MINUTE_MS;
    return minutesOf(rows.value.filter((r) => r.what?.['kind'] === 'call')
      .map((r) => ({ ...r, at: now.value - (now.value - r.at) / scale })), now.value, BARS);
  });

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
  /** The times of a bar; null: of all. */
  function spanOf(bar: number | null): { from: number; to: number } {
    const first = Math.floor(now.value / MINUTE_MS) - BARS + 1;
    const start = (i: number) => now.value - (now.value - (first + i) * MINUTE_MS) * (barMs.value / MINUTE_MS);
    return { from: start(bar ?? 0), to: start(bar === null ? BARS : bar + 1) };
  }
  watch(range, async () => {
    for (let i = 0; i < PAGES_MAX && more.value && (rows.value.at(-1)?.at ?? 0) > spanOf(null).from; i++)
      await older();
  });
  void load();
  const timer = setInterval(() => void load(), EVERY_MS);
  onScopeDispose(() => clearInterval(timer));
  return { rows, known, more, minutes, gateway, memory, older, range, spanOf };
}
