// useKeys - single keys as commands, where nobody is writing.

import { onScopeDispose } from 'vue';

export type Keys = Record<string, (e: KeyboardEvent) => unknown>;

/** A field that takes letters; a box to tick does not. */
function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement)
    return target.type !== 'radio' && target.type !== 'checkbox';
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

/** A handler that returns false leaves the key to others. Escape is heard
 *  everywhere, the rest only outside of fields and dialogs. */
export function useKeys(keys: Keys): void {
  const on = (e: KeyboardEvent) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey) return;
    const run = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!run || document.querySelector('dialog[open]')) return;
    if (e.key !== 'Escape' && isWriting(e.target)) return;
    if (run(e) !== false) e.preventDefault();
  };
  window.addEventListener('keydown', on);
  onScopeDispose(() => window.removeEventListener('keydown', on));
}
