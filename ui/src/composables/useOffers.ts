// useOffers - the menu of the composer: `/` at its beginning lists the prompts of
// the servers, `@` the resources. The lists are loaded when a menu opens.

import { computed, ref, shallowRef, watch, type Ref } from 'vue';
import { errorText } from '../lib/http';
import type { Choice, Kind, Offers } from '../lib/offers';

const SHOWN = 50;

export function useOffers(text: Ref<string>, caret: () => number, session: () => string) {
  const offers = shallowRef<Offers | null>(null);
  let choices: (typeof import('../lib/offers'))['choices'] = () => [];
  const error = ref('');
  const kind = ref<Kind | ''>('');
  const words = ref('');
  const at = ref(0); // of the chosen row
  const closed = ref(''); // the text for which the menu was closed

  function look() {
    const before = text.value.slice(0, caret());
    const slash = /^\/([^\s/]*)$/.exec(before);
    const mention = /(?:^|\s)@([^\s@[\]]*)$/.exec(before);
    const next: Kind | '' = slash ? 'prompt' : mention ? 'resource' : '';
    words.value = (slash?.[1] ?? mention?.[1] ?? '').toLowerCase();
    if (closed.value !== text.value) closed.value = '';
    if (next && kind.value !== next) void load();
    kind.value = next;
    at.value = 0;
  }
  async function load() {
    error.value = '';
    try {
      const lib = await import('../lib/offers');
      choices = lib.choices;
      offers.value = await lib.fetchOffers(session());
    } catch (e) {
      error.value = errorText(e);
    }
  }
  const rows = computed<Choice[]>(() => {
    if (!kind.value || !offers.value) return [];
    return choices(kind.value, offers.value).filter(({ offer: o }) =>
      `${o.server} ${o.name} ${o.title} ${o.id}`.toLowerCase().includes(words.value)).slice(0, SHOWN);
  });
  const isOpen = computed(() => kind.value !== '' && closed.value === '');
  function move(by: number) {
    if (rows.value.length) at.value = (at.value + by + rows.value.length) % rows.value.length;
  }
  /** Replaces what opened the menu. */
  function replace(by: string): void {
    const end = caret();
    const begin = end - words.value.length - 1;
    text.value = text.value.slice(0, begin) + by + text.value.slice(end);
    kind.value = '';
  }
  function close() {
    closed.value = text.value || ' ';
  }
  watch(text, look, { flush: 'post' });
  return { kind, rows, at, isOpen, isLoading: computed(() => !offers.value && !error.value), error, move, replace, close };
}
