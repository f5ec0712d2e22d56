// useKeys - single-key shortcuts, active outside of text fields.

import { onScopeDispose } from 'vue';

export type Keys = Record<string, (e: KeyboardEvent) => unknown>;

/** True in a field that accepts text. */
function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement)
    return target.type !== 'radio' && target.type !== 'checkbox';
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

/** A handler that returns false does not consume the key. Escape also works in
 *  text fields; no key works while a dialog is open. */
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
