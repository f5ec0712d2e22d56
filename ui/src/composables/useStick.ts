// useStick - a scrolled box that stays at its end while things are added,
// until the person scrolls away; and goes on when they come back.

import { onScopeDispose, ref, watch, type Ref } from 'vue';

const NEAR = 48; // px from the end that still count as the end

export function useStick(box: Ref<HTMLElement | null>) {
  const atEnd = ref(true);
  let watcher: ResizeObserver | null = null;
  let from: HTMLElement | null = null;

  let last = 0;

  // Only a person scrolls up: growing content never does.
  const look = () => {
    const b = box.value;
    if (!b) return;
    const near = b.scrollHeight - b.scrollTop - b.clientHeight < NEAR;
    if (near) atEnd.value = true;
    else if (b.scrollTop < last - 1) atEnd.value = false;
    last = b.scrollTop;
  };
  const toEnd = () => {
    const b = box.value;
    if (b) b.scrollTop = b.scrollHeight;
    atEnd.value = true;
  };
  const stop = () => {
    watcher?.disconnect();
    from?.removeEventListener('scroll', look);
  };
  watch(box, (b) => {
    stop();
    from = b;
    if (!b) return;
    b.addEventListener('scroll', look, { passive: true });
    watcher = new ResizeObserver(() => {
      if (atEnd.value) b.scrollTop = b.scrollHeight;
    });
    watcher.observe(b);
    if (b.firstElementChild) watcher.observe(b.firstElementChild);
  }, { immediate: true, flush: 'post' });
  onScopeDispose(stop);
  return { atEnd, toEnd };
}
