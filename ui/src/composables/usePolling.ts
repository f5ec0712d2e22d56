// usePolling - something is asked again and again, as long as somebody can see
// the page; at once when they come back to it.

import { onScopeDispose } from 'vue';

/** everyMs() is asked before each pause. */
export function usePolling(ask: () => Promise<void>, everyMs: () => number): void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let over = false;
  const hidden = () => document.visibilityState === 'hidden';

  async function turn(): Promise<void> {
    clearTimeout(timer);
    timer = undefined;
    if (!hidden()) await ask();
    if (!over && !hidden() && timer === undefined)
      timer = setTimeout(() => void turn(), everyMs());
  }
  const back = () => {
    if (!hidden()) void turn();
  };
  document.addEventListener('visibilitychange', back);
  onScopeDispose(() => {
    over = true;
    clearTimeout(timer);
    document.removeEventListener('visibilitychange', back);
  });
  void turn();
}
