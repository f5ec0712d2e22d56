// idle - what can wait until the page has nothing better to do.

const LATEST_MS = 200;

/** Safari has no requestIdleCallback: there it is simply a little later. */
export function whenIdle(act: () => void): void {
  if ('requestIdleCallback' in window)
    requestIdleCallback(act, { timeout: LATEST_MS });
  else setTimeout(act, LATEST_MS / 4);
}
