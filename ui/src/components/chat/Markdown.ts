// Markdown - renders the tree of lib/markdown.ts as elements. No HTML is parsed,
// so text of a model can only become the elements below.

import { defineComponent, h, type VNode, type VNodeArrayChildren } from 'vue';

import CodeBlock from './CodeBlock.vue';
import {
  readMarkdown, type Block, type Inline, type Item,
} from '../../lib/markdown';

function inline(n: Inline): VNode | string {
  switch (n.t) {
    case 'text': return n.text;
    case 'code': return h('code', { class: 'inline' }, n.text);
    case 'break': return h('br');
    case 'link':
      return h(
        'a',
        { href: n.href, target: '_blank', rel: 'noopener noreferrer nofollow' },
        inlines(n.kids),
      );
    default: return h(n.t, inlines(n.kids));
  }
}

const inlines = (all: Inline[]): VNodeArrayChildren => all.map(inline);

function item(it: Item, tight: boolean): VNode {
  const only = it.kids[0];
  const kids = tight && only?.t === 'p'
    ? [...inlines(only.kids), ...it.kids.slice(1).map(block)]
    : it.kids.map(block);
  if (!it.task) return h('li', kids);
  const mark = it.task === 'done' ? '☑ ' : '☐ ';
  return h('li', { class: 'task' }, [mark, ...kids]);
}

function table(b: Extract<Block, { t: 'table' }>): VNode {
  return h('div', { class: 'table', tabindex: 0 }, [
    h('table', [
      h('thead', h('tr', b.head.map((c) => h('th', inlines(c))))),
      h('tbody', b.rows.map((r) =>
        h('tr', r.map((c) => h('td', inlines(c)))))),
    ]),
  ]);
}

function block(b: Block): VNode {
  switch (b.t) {
    case 'p': return h('p', { class: 'whitespace-pre-line' }, inlines(b.kids));
    case 'h': return h(`h${Math.min(b.level + 1, 6)}`, inlines(b.kids));
    case 'code': return h(CodeBlock, { code: b.text, lang: b.lang });
    case 'quote': return h('blockquote', b.kids.map(block));
    case 'hr': return h('hr');
    case 'table': return table(b);
    case 'list':
      return h(
        b.ordered ? 'ol' : 'ul',
        b.ordered && b.start !== 1 ? { start: b.start } : {},
        b.items.map((it) => item(it, true)),
      );
  }
}

export default defineComponent({
  name: 'ModelText',
  props: { text: { type: String, required: true } },
  setup: (props) => () =>
    h('div', { class: 'md break-words' }, readMarkdown(props.text).map(block)),
});
