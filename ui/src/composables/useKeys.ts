// useKeys - single-key shortcuts, active outside of text fields.

import { onScopeDispose } from 'vue';

export type Keys = Record<string, (e: KeyboardEvent) => unknown>;

/** True in a field that accepts text. */
export function isWriting(target: EventTarget | null): boolean {
  if (target instanceof HTMLInputElement)
    return target.type !== 'radio' && target.type !== 'checkbox';
  return target instanceof HTMLElement &&
    (target.isContentEditable || /^(TEXTAREA|SELECT)$/.test(target.tagName));
}

const IN_FIELDS = ['Escape', 'F6']; // these also work in text fields

/** A handler that returns false does not consume the key. A key that is held
 *  down counts once. No key works while a dialog is open. */
export function useKeys(keys: Keys): void {
  const on = (e: KeyboardEvent) => {
    if (e.defaultPrevented || e.ctrlKey || e.metaKey || e.altKey || e.repeat) return;
    const run = keys[e.key.length === 1 ? e.key.toLowerCase() : e.key];
    if (!run || document.querySelector('dialog[open]')) return;
    if (!IN_FIELDS.includes(e.key) && isWriting(e.target)) return;
    if (run(e) !== false) e.preventDefault();
  };
  window.addEventListener('keydown', on);
  onScopeDispose(() => window.removeEventListener('keydown', on));
}
