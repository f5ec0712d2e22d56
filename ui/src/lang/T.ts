// T - renders a text with elements in it: one slot per {placeholder}.

import { defineComponent, type PropType, type VNodeArrayChildren } from 'vue';

import { textOf, type Key } from '.';

export default defineComponent({
  name: 'PageText',
  props: { k: { type: String as PropType<Key>, required: true } },
  setup: (props, { slots }) => (): VNodeArrayChildren =>
    textOf(props.k).split(/\{(\w+)\}/).map((part, i) =>
      (i % 2 ? slots[part]?.() : part)),
});
