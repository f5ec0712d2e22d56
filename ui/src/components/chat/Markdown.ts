// Markdown - renders the tree of lib/markdown.ts as elements. No HTML is parsed,
// so text of a model can only become the elements below.

import { defineComponent, h, type VNode, type VNodeArrayChildren } from 'vue';

import CodeBlock from './CodeBlock.vue';
import DiagramBlock from './DiagramBlock.vue';
import MathText from './MathText';
import TableBlock from './TableBlock.vue';
import { toCsv } from '../../lib/csv';
import {
  plainText, readMarkdown, type Block, type Inline, type Item, type Table,
} from '../../lib/markdown';
import { settle } from '../../lib/streaming';
import { t } from '../../lang';

function inline(n: Inline): VNode | string {
  switch (n.t) {
    case 'text': return n.text;
    case 'code': return h('code', { class: 'inline' }, n.text);
    case 'break': return h('br');
    case 'math': return h(MathText, { tex: n.tex, display: n.display });
    case 'ref': return h('sup', `[${n.n}]`);
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

function table(b: Table): VNode {
  const cell = (tag: string) => (c: Inline[], i: number) =>
    h(tag, b.align[i] ? { class: `text-${b.align[i]}` } : {}, inlines(c));
  const csv = () => toCsv([b.head, ...b.rows].map((r) => r.map(plainText)));
  return h(TableBlock, { csv: csv() }, () => [
    h('table', [
      h('thead', h('tr', b.head.map(cell('th')))),
      h('tbody', b.rows.map((r) => h('tr', r.map(cell('td'))))),
    ]),
  ]);
}

function code(b: Extract<Block, { t: 'code' }>): VNode {
  return b.lang.toLowerCase() === 'mermaid'
    ? h(DiagramBlock, { code: b.text, open: b.open })
    : h(CodeBlock, { code: b.text, lang: b.lang });
}

function block(b: Block): VNode {
  switch (b.t) {
    case 'p': return h('p', { class: 'whitespace-pre-line' }, inlines(b.kids));
    case 'h': return h(`h${Math.min(b.level + 1, 6)}`, inlines(b.kids));
    case 'code': return code(b);
    case 'math': return h(MathText, { tex: b.tex, display: true, open: b.open });
    case 'notes':
      return h('ol', { class: 'notes', 'aria-label': t('content.footnotes') },
        b.notes.map((n) => h('li', inlines(n))));
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
  props: {
    text: { type: String, required: true },
    live: Boolean, // still being written
  },
  setup: (props) => () => h('div', { class: 'md break-words' },
    readMarkdown(props.live ? settle(props.text) : props.text).map(block)),
});
