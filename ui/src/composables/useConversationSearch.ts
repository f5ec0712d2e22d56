// useConversationSearch - full-text search of conversations while the user types.

import { ref, shallowRef, watch, type Ref } from 'vue';

import { excerptOf, type Excerpt } from '../lib/searchExcerpt';
import { searchAll } from '../lib/http';

const PAUSE_MS = 200;
const SHORTEST = 2;

export interface Hit {
  sessionId: string;
  at: number;
  excerpt: Excerpt;
}

/** Returns the best hit of each conversation. */
export function useConversationSearch(words: Ref<string>) {
  const hits = shallowRef<Hit[]>([]);
  const busy = ref(false);
  let round = 0;

  async function look(text: string, mine: number): Promise<void> {
    const rows = await searchAll(text).catch(() => []);
    if (mine !== round) return;
    const seen = new Map<string, Hit>();
    for (const r of rows)
      if (!seen.has(r.sessionId))
        seen.set(r.sessionId, {
          sessionId: r.sessionId, at: r.at, excerpt: excerptOf(r.what, text),
        });
    hits.value = [...seen.values()];
    busy.value = false;
  }
  watch(words, (w, _old, onCleanup) => {
    const text = w.trim();
    const mine = ++round;
    hits.value = [];
    busy.value = text.length >= SHORTEST;
    if (!busy.value) return;
    const timer = setTimeout(() => void look(text, mine), PAUSE_MS);
    onCleanup(() => clearTimeout(timer));
  });
  return { hits, busy };
}
