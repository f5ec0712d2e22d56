// seen - whether an element can be seen by a person, for keys that act on it.

const SHARE = 0.5; // of the view, for an element that is larger than it

/** The part of a rectangle inside of another, in px of height. */
export function shownHeight(
  el: { top: number; bottom: number }, view: { top: number; bottom: number },
): number {
  return Math.max(0, Math.min(el.bottom, view.bottom) - Math.max(el.top, view.top));
}

/** True if the element is in view: whole, or filling half of the view. */
export function isInView(
  el: { top: number; bottom: number }, view: { top: number; bottom: number },
): boolean {
  const height = el.bottom - el.top;
  const shown = shownHeight(el, view);
  return shown > 0 && shown >= Math.min(height - 1, SHARE * (view.bottom - view.top));
}

function scrollerOf(el: HTMLElement): HTMLElement | null {
  for (let up = el.parentElement; up; up = up.parentElement)
    if (/(auto|scroll)/.test(getComputedStyle(up).overflowY)) return up;
  return null;
}

/** True if the element is in the part of its scroll container, and of the
 *  window, that is shown. */
export function isSeen(el: HTMLElement | null): boolean {
  if (!el) return false;
  const box = scrollerOf(el)?.getBoundingClientRect() ?? { top: 0, bottom: innerHeight };
  const view = { top: Math.max(0, box.top), bottom: Math.min(innerHeight, box.bottom) };
  return isInView(el.getBoundingClientRect(), view);
}
