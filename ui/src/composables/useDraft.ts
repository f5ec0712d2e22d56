// useDraft - the unsent message of the open conversation. It outlives a switch,
// the way back and a reload, in this tab only.

import { ref, watch, type Ref } from 'vue';

const KEY = 'mo.draft.';

// Without storage (a browser that forbids it) a draft lives as long as the view.
function read(session: string): string {
  try {
    return sessionStorage.getItem(KEY + session) ?? '';
  } catch {
    return '';
  }
}
function keep(session: string, text: string): void {
  try {
    if (text) sessionStorage.setItem(KEY + session, text);
    else sessionStorage.removeItem(KEY + session);
  } catch { /* full, or forbidden */ }
}

export function useDraft(session: () => string): Ref<string> {
  const text = ref(read(session()));
  watch(session, (now) => {
    text.value = read(now);
  }, { flush: 'sync' });
  watch(text, (now) => keep(session(), now), { flush: 'sync' });
  return text;
}
