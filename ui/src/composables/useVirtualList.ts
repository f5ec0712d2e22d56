// useVirtualList - renders only the rows of a long list near the visible part.
//
// Short lists are rendered whole, so that the browser's search finds all text.
// Rendered rows are measured (pass each to `row`). If an estimated height was
// wrong, the browser's scroll anchoring keeps the position.

import {
  computed, onScopeDispose, shallowRef, triggerRef, watch, type Ref,
} from 'vue';

import { visibleRange, layoutRows } from '../lib/visibleRows';

const WHOLE = 150; // rows up to which a list is rendered whole
const EXTRA = 1200; // px rendered above and below
const GUESS = 90;
const STEP = 200; // px; smaller scroll steps are ignored

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
