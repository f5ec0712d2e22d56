// tex - LaTeX maths as a tree of known MathML elements.
//
// Temml reads the LaTeX. Its tree is copied here: only the elements, attributes
// and styles below, no links, no images, no HTML. An element that is not listed
// is left out and its content kept. This module is loaded with the first maths.

import temml from 'temml';
import 'temml/dist/Temml-Local.css';

export interface MathElement {
  tag: string;
  attrs: Record<string, string>;
  style: Record<string, string>;
  kids: (MathElement | string)[];
}

const TAGS = new Set(
  ('math semantics mrow mi mn mo ms mtext mspace mstyle mfrac msqrt mroot msub ' +
  'msup msubsup munder mover munderover mmultiscripts mprescripts none mtable mtr ' +
  'mtd mpadded mphantom menclose merror').split(' '),
);
const ATTRS = new Set(
  ('accent accentunder columnalign columnlines columnspacing depth dir display ' +
  'displaystyle fence form height largeop linethickness lspace mathcolor mathsize ' +
  'mathvariant maxsize minsize movablelimits notation rowlines rowspacing rspace ' +
  'scriptlevel separator stretchy symmetric voffset width').split(' '),
);
const STYLE = /^(color|background(Color)?|border\w*|display|font(Size|Style|Weight|Family)|height|margin\w*|math(Depth|Style)|min(Height|Width)|padding\w*|textAlign|transform|verticalAlign|width)$/;
const VALUE = /^[-\w#.,%() +"']*$/; // no url(), no comments
const CLASS = /^[\w-]+$/;
const SIZE_MAX = 20_000; // characters of LaTeX
const NODES_MAX = 20_000;

interface Raw {
  type?: string;
  text?: string;
  attributes?: Record<string, unknown>;
  classes?: string[];
  style?: Record<string, unknown>;
  children?: Raw[];
}

function picked(from: Record<string, unknown> | undefined, ok: (name: string, value: string) => boolean) {
  return Object.fromEntries(Object.entries(from ?? {})
    .map(([k, v]) => [k, String(v)] as const).filter(([k, v]) => ok(k, v)));
}

const isStyle = (name: string, value: string) =>
  STYLE.test(name) && VALUE.test(value) && !/url/i.test(value);

function copy(n: Raw, room: { left: number }): (MathElement | string)[] {
  if (--room.left < 0) throw new Error('too many elements');
  if (typeof n.text === 'string') return [n.text];
  const kids = (n.children ?? []).flatMap((k) => copy(k, room));
  const tag = n.type ?? '';
  if (!TAGS.has(tag)) return kids;
  const attrs = picked(n.attributes, (k) => ATTRS.has(k));
  const classes = (n.classes ?? []).filter((c) => CLASS.test(c));
  if (classes.length) attrs['class'] = classes.join(' ');
  return [{ tag, attrs, style: picked(n.style, isStyle), kids }];
}

/** The maths, or why there are none. */
export function readTex(tex: string, display: boolean): { math: MathElement } | { error: string } {
  if (tex.length > SIZE_MAX) return { error: 'too long' };
  try {
    const raw = temml.__renderToMathMLTree(tex, {
      displayMode: display, throwOnError: true, trust: false, annotate: false,
      maxSize: [100, 50], maxExpand: 500,
    }) as Raw;
    const math = copy(raw, { left: NODES_MAX })[0];
    if (typeof math === 'object' && math.tag === 'math') return { math };
    return { error: 'no maths' };
  } catch (e) {
    return { error: e instanceof Error ? e.message : String(e) };
  }
}
