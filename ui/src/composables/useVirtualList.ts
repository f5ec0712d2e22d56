// useVirtualList - of a long list only the rows near the eye are elements.
//
// Short lists are shown whole: the browser's own search finds everything in
// them. Rows are measured while they are elements (give each to `row`); the
// browser's scroll anchoring keeps what is read in place when a guess above it
// was wrong.

import {
  computed, onScopeDispose, shallowRef, triggerRef, watch, type Ref,
} from 'vue';

import { visibleRange, layoutRows } from '../lib/visibleRows';

const WHOLE = 150; // rows
const EXTRA = 1200; // px kept ready above and below
const GUESS = 90;
const STEP = 200; // px; finer moves change nothing

export function useVirtualList<T extends { id: string }>(
  box: Ref<HTMLElement | null>, items: Ref<readonly T[]>,
) {
  const heights = shallowRef(new Map<string, number>());
  const top = shallowRef(0);
  const height = shallowRef(800);
  const idOf = new WeakMap<Element, string>();
  let frame = 0;

  const rows = computed(() =>
    layoutRows(items.value.map((i) => i.id), heights.value, GUESS));
  const range = computed(() => {
    const n = items.value.length;
    return n <= WHOLE
      ? { from: 0, to: n, before: 0, after: 0 }
      : visibleRange(rows.value, top.value, height.value, EXTRA);
  });
  const shown = computed(() => items.value.slice(range.value.from, range.value.to));

  const measure = new ResizeObserver((all) => {
    let changed = false;
    for (const { target, borderBoxSize } of all) {
      const id = idOf.get(target);
      const h = borderBoxSize[0]?.blockSize ?? 0;
      if (!id || !target.isConnected || heights.value.get(id) === h) continue;
      heights.value.set(id, h);
      changed = true;
    }
    if (changed && items.value.length > WHOLE) triggerRef(heights);
  });
  const row = (el: unknown, id: string): void => {
    if (!(el instanceof Element) || idOf.get(el) === id) return;
    idOf.set(el, id);
    measure.observe(el);
  };

  const look = () => {
    frame = 0;
    const b = box.value;
    if (!b) return;
    height.value = b.clientHeight;
    const at = Math.floor(b.scrollTop / STEP) * STEP;
    if (at !== top.value) top.value = at;
  };
  const soon = () => {
    if (!frame) frame = requestAnimationFrame(look);
  };
  watch(box, (b, old) => {
    old?.removeEventListener('scroll', soon);
    b?.addEventListener('scroll', soon, { passive: true });
    if (b) look();
  }, { immediate: true, flush: 'post' });
  onScopeDispose(() => {
    measure.disconnect();
    cancelAnimationFrame(frame);
    box.value?.removeEventListener('scroll', soon);
  });
  return { shown, range, row, top };
}
