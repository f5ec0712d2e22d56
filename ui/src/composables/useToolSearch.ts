// useToolSearch - asks the router for matching tools while the user types. The
// query is kept in the URL.

import { ref, shallowRef, watch } from 'vue';

import { fetchRoute, forgetLearnt, teachRoute } from '../lib/gateway';
import { errorOf, errorText } from '../lib/http';
import type { Hit, Routed } from '../protocol';

const PAUSE_MS = 300;

export function useToolSearch() {
  const words = ref(new URLSearchParams(location.search).get('q') ?? '');
  const found = shallowRef<Routed | null>(null);
  const error = ref('');
  let round = 0;

  async function look(): Promise<void> {
    const text = words.value.trim();
    const mine = ++round;
    if (!text) {
      found.value = null;
      error.value = '';
      return;
    }
    try {
      const got = await fetchRoute(text);
      if (mine !== round) return;
      found.value = got;
      error.value = '';
    } catch (e) {
      if (mine === round) error.value = errorText(e);
    }
  }
  async function change(done: Promise<unknown>): Promise<void> {
    const failed = await errorOf(done);
    await look();
    error.value = failed || error.value;
  }
  const teach = (h: Hit, right: boolean): Promise<void> =>
    change(teachRoute({ words: words.value.trim(), server: h.server, tool: h.tool, right }));
  const forget = (): Promise<void> => change(forgetLearnt());

  watch(words, (w, _old, onCleanup) => {
    const q = w.trim();
    history.replaceState(null, '', q ? `/router?q=${encodeURIComponent(q)}` : '/router');
    const timer = setTimeout(() => void look(), PAUSE_MS);
    onCleanup(() => clearTimeout(timer));
  });
  void look();
  return { words, found, error, look, teach, forget };
}
