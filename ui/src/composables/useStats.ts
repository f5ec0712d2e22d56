// useStats - polls /api/stats and keeps a history of the sums for charts.

import { onScopeDispose, shallowRef } from 'vue';

import { fetchStats } from '../lib/http';
import { sumOf } from '../lib/stats';
import type { Stats } from '../protocol';

const FIRST_MS = 1500; // CPU is known from the second sample on
const EVERY_MS = 5000;
const SAMPLES = 60;

export function useStats() {
  const stats = shallowRef<Stats | null>(null);
  const memory = shallowRef<number[]>([]); // bytes
  const cpu = shallowRef<number[]>([]); // percent of one core
  const waiting = shallowRef<number[]>([]); // calls that wait for approval
  const children = shallowRef<number[]>([]); // running server processes
  const queue = shallowRef<number[]>([]); // calls that wait for a server
  let timer: ReturnType<typeof setTimeout> | undefined;

  function take(s: Stats): void {
    stats.value = s;
    memory.value = [...memory.value, sumOf(s.boxes, (b) => b.memoryBytes)].slice(-SAMPLES);
    waiting.value = [...waiting.value, s.approvals.length + (s.gateway?.waiting ?? 0)].slice(-SAMPLES);
    if (s.gateway) {
      children.value = [...children.value, s.gateway.children].slice(-SAMPLES);
      queue.value = [...queue.value, s.gateway.queue].slice(-SAMPLES);
    }
    if (s.boxes.every((b) => b.cpuPercent !== null))
      cpu.value = [...cpu.value, sumOf(s.boxes, (b) => b.cpuPercent ?? 0)].slice(-SAMPLES);
  }
  async function load(next: number): Promise<void> {
    const s = await fetchStats().catch(() => null);
    if (s) take(s);
    if (timer !== undefined) timer = setTimeout(() => void load(EVERY_MS), next);
  }
  timer = setTimeout(() => void load(FIRST_MS), 0);
  onScopeDispose(() => {
    clearTimeout(timer);
    timer = undefined;
  });
  return { stats, memory, cpu, waiting, children, queue };
}
