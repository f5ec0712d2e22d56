// schema - form fields for a JSON Schema object, and the values from the form.
//
// Nested objects, lists and unions are entered as JSON. The form catches simple
// mistakes; the server validates the values.

import { t } from '../lang';
import { isRecord } from './check';
import { readJson } from './json';

export type FieldKind =
  | 'text' | 'number' | 'integer' | 'boolean' | 'choice' | 'choices' | 'json';

export interface Choice {
  value: unknown;
  label: string;
}

export interface Field {
  key: string;
  title: string;
  about: string;
  kind: FieldKind;
  required: boolean;
  choices: Choice[];
  input: string; // the type of a text field: text, email, url, date, ...
  long: boolean;
  initial: string | boolean | number[];
}

/** Text as typed; choices by index, because a choice can be any JSON value. */
export type Draft = Record<string, string | boolean | number[]>;

type Node = Record<string, unknown>;

const nodeOf = (v: unknown): Node => (isRecord(v) ? v : {});
const listOf = (v: unknown): unknown[] => (Array.isArray(v) ? v : []);
const textOf = (v: unknown): string => (typeof v === 'string' ? v : '');
const say = (v: unknown): string =>
  typeof v === 'string' ? v : JSON.stringify(v);

const INPUTS: Record<string, string> = {
  email: 'email', uri: 'url', date: 'date', 'date-time': 'datetime-local',
};

/** The type besides null; empty if there are several or none. */
function typeOf(p: Node): string {
  const all = (Array.isArray(p['type']) ? p['type'] : [p['type']])
    .filter((t) => t !== 'null');
  return all.length === 1 ? textOf(all[0]) : '';
}

function choicesOf(p: Node): Choice[] {
  if (Array.isArray(p['enum'])) {
    const names = listOf(p['enumNames']);
    return p['enum'].map((value: unknown, i) => ({
      value, label: textOf(names[i]) || say(value),
    }));
  }
  const titled = [...listOf(p['oneOf']), ...listOf(p['anyOf'])].map(nodeOf);
  if (!titled.length || titled.some((o) => !('const' in o))) return [];
  return titled.map((o) => ({
    value: o['const'], label: textOf(o['title']) || say(o['const']),
  }));
}

const YES_NO: Choice[] = [
  { value: true, label: t('form.yes') }, { value: false, label: t('form.no') },
];

function shapeOf(p: Node, required: boolean): [FieldKind, Choice[]] {
  const choices = choicesOf(p);
  if (choices.length) return ['choice', choices];
  const type = typeOf(p);
  if (type === 'array') {
    const many = choicesOf(nodeOf(p['items']));
    return many.length ? ['choices', many] : ['json', []];
  }
  if (type === 'boolean')
    return required || typeof p['default'] === 'boolean'
      ? ['boolean', []]
      : ['choice', YES_NO]; // “not set” is a third choice
  if (type === 'number' || type === 'integer') return [type, []];
  return [type === 'string' ? 'text' : 'json', []];
}

function initialOf(kind: FieldKind, choices: Choice[], value: unknown) {
  const at = (v: unknown) => choices.findIndex((c) => say(c.value) === say(v));
  if (kind === 'boolean') return value === true;
  if (kind === 'choices') return listOf(value).map(at).filter((i) => i >= 0);
  if (value === undefined || value === null) return '';
  if (kind === 'choice') return at(value) >= 0 ? String(at(value)) : '';
  if (kind === 'json') return JSON.stringify(value, null, 2);
  return say(value);
}

export function fieldsOf(schema: unknown): Field[] {
  const root = nodeOf(schema);
  const required = new Set(listOf(root['required']));
  return Object.entries(nodeOf(root['properties'])).map(([key, v]) => {
    const p = nodeOf(v);
    const [kind, choices] = shapeOf(p, required.has(key));
    const format = textOf(p['format']);
    return {
      key, kind, choices,
      title: textOf(p['title']),
      about: textOf(p['description']),
      required: required.has(key),
      input: kind === 'text' ? (INPUTS[format] ?? 'text') : '',
      long: kind === 'text' && !format && !p['pattern'] &&
        !(typeof p['maxLength'] === 'number' && p['maxLength'] <= 200),
      initial: initialOf(kind, choices, p['default']),
    };
  });
}

export function draftOf(fields: Field[]): Draft {
  return Object.fromEntries(fields.map((f) => [f.key, f.initial]));
}

interface Read {
  value?: unknown; // undefined: not given
  wrong?: string;
}

function readNumber(f: Field, text: string): Read {
  const n = Number(text);
  if (!text.trim() || !Number.isFinite(n)) return { wrong: t('form.noNumber') };
  if (f.kind === 'integer' && !Number.isSafeInteger(n))
    return { wrong: t('form.noInteger') };
  return { value: n };
}

function readText(f: Field, text: string): Read {
  if (f.kind === 'choice') return { value: f.choices[Number(text)]?.value };
  if (f.kind === 'json') return readJson(text);
  if (f.kind !== 'text') return readNumber(f, text);
  // datetime-local has no time zone; the one of the browser is used.
  if (f.input === 'datetime-local') {
    const at = new Date(text);
    return Number.isNaN(at.getTime())
      ? { wrong: t('form.noTime') } : { value: at.toISOString() };
  }
  return { value: text };
}

function readField(f: Field, v: Draft[string] | undefined): Read {
  if (f.kind === 'boolean') return { value: v === true };
  if (f.kind === 'choices') {
    const picked = Array.isArray(v) ? v : [];
    if (!picked.length && !f.required) return {};
    return { value: picked.map((i) => f.choices[i]?.value) };
  }
  const text = typeof v === 'string' ? v : '';
  if (text === '') return f.required ? { wrong: t('form.needed') } : {};
  return readText(f, text);
}

export interface Values {
  values: Record<string, unknown>;
  wrong: Record<string, string>; // error by field; empty: all values are valid
}

export function valuesOf(fields: Field[], draft: Draft): Values {
  const out: Values = { values: {}, wrong: {} };
  for (const f of fields) {
    const { value, wrong } = readField(f, draft[f.key]);
    if (wrong) out.wrong[f.key] = wrong;
    else if (value !== undefined) out.values[f.key] = value;
  }
  return out;
}

/** The definition of a tool as text, for a diff. */
export function definitionText(tool: unknown): string {
  const def = nodeOf(tool);
  const parts = [textOf(def['description'])];
  for (const key of ['inputSchema', 'annotations'])
    if (def[key]) parts.push(`${key}: ${JSON.stringify(def[key], null, 2)}`);
  return parts.filter(Boolean).join('\n\n');
}
