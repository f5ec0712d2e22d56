// idle - runs a function when the browser is idle.

const LATEST_MS = 200;

/** Safari has no requestIdleCallback; a short timeout replaces it. */
export function whenIdle(act: () => void): void {
  if ('requestIdleCallback' in window)
    requestIdleCallback(act, { timeout: LATEST_MS });
  else setTimeout(act, LATEST_MS / 4);
}
