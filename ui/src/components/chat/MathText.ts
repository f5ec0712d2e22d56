// MathText - LaTeX as MathML; its source until the reader of LaTeX is loaded, and
// where it is not valid.

import { computed, defineComponent, h, shallowRef, type VNode } from 'vue';

import type { MathElement } from '../../lib/tex';

type Reader = (typeof import('../../lib/tex'))['readTex'];

const reader = shallowRef<Reader>();
let loading = false;

function load(): void {
  if (loading) return;
  loading = true;
  void import('../../lib/tex').then((m) => {
    reader.value = m.readTex;
  }, () => {
    loading = false; // the next maths try again
  });
}

function element(n: MathElement): VNode {
  const style = Object.keys(n.style).length ? { style: n.style } : {};
  return h(n.tag, { ...n.attrs, ...style },
    n.kids.map((k) => (typeof k === 'string' ? k : element(k))));
}

export default defineComponent({
  name: 'MathText',
  props: {
    tex: { type: String, required: true },
    display: Boolean,
    open: Boolean, // still being written
  },
  setup(props) {
    load();
    const read = computed(() => (props.open ? undefined : reader.value?.(props.tex, props.display)));
    return () => {
      const got = read.value;
      const body = got && 'math' in got
        ? element(got.math)
        : h('code', { class: 'tex', ...(got ? { title: got.error } : {}) }, props.tex);
      return props.display
        ? h('span', { class: 'math-block', tabindex: 0, 'data-math': '' }, [body])
        : h('span', { class: 'math-inline', 'data-math': '' }, [body]);
    };
  },
});
