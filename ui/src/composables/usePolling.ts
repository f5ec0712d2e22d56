// usePolling - repeats a request while the page is visible, and at once when it
// becomes visible again.

import { onScopeDispose } from 'vue';

/** everyMs() is evaluated before each pause. */
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
