// useStickToEnd - keeps a scroll container at its end while content is added,
// until the user scrolls up; continues when they scroll back to the end. An element
// that must be seen (`head`) is not scrolled past.
//
// Row heights change while scrolling to the end, so the position is set again
// for a few frames, unless the user interacts.

import { onScopeDispose, ref, watch, type Ref } from 'vue';

const NEAR = 48; // px from the end that count as the end
const FRAMES = 10; // until row heights are stable
const HAND_MS = 3000; // inertial scrolling lasts so long
const ABOVE = 12; // px between the head and the top

const HANDS = ['wheel', 'touchmove', 'pointerdown', 'keydown'] as const;

export function useStickToEnd(box: Ref<HTMLElement | null>, head = (): Element | null => null) {
  const atEnd = ref(true);
  let watcher: ResizeObserver | null = null;
  let from: HTMLElement | null = null;
  let frame = 0;
  let left = 0; // frames left to set the position

  let last = 0;
  let handAt = -HAND_MS;

  // Only input of the user leaves the end: a replaced or re-measured list may
  // also move the scroll position.
  const look = () => {
    const b = box.value;
    if (!b || left > 0) return;
    const near = b.scrollHeight - b.scrollTop - b.clientHeight < NEAR;
    if (near) atEnd.value = true;
    else if (b.scrollTop < last - 1 && performance.now() - handAt < HAND_MS)
      atEnd.value = false;
    last = b.scrollTop;
  };
  const target = (b: HTMLElement): number => {
    const first = head();
    if (!first) return b.scrollHeight;
    const above = first.getBoundingClientRect().top - b.getBoundingClientRect().top + b.scrollTop;
    return Math.min(b.scrollHeight, above - ABOVE);
  };
  const go = () => {
    const b = box.value;
    frame = 0;
    if (!b || left <= 0) return;
    b.scrollTop = target(b);
    last = b.scrollTop;
    left--;
    frame = requestAnimationFrame(go);
  };
  const settle = () => {
    left = FRAMES;
    if (!frame) go();
  };
  const toEnd = () => {
    atEnd.value = true;
    settle();
  };
  const hand = () => {
    left = 0;
    handAt = performance.now();
  };
  const stop = () => {
    watcher?.disconnect();
    cancelAnimationFrame(frame);
    frame = left = 0;
    from?.removeEventListener('scroll', look);
    for (const e of HANDS) from?.removeEventListener(e, hand);
  };
  watch(box, (b) => {
    stop();
    from = b;
    if (!b) return;
    b.addEventListener('scroll', look, { passive: true });
    for (const e of HANDS) b.addEventListener(e, hand, { passive: true });
    watcher = new ResizeObserver(() => {
      if (atEnd.value) settle();
    });
    watcher.observe(b);
    if (b.firstElementChild) watcher.observe(b.firstElementChild);
  }, { immediate: true, flush: 'post' });
  onScopeDispose(stop);
  return { atEnd, toEnd };
}
