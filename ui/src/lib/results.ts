// results - the content of a tool's result, in parts as they are shown. Pure.
//
// Media are shown from data: URLs only, and only of types that hold no script.

import type { Content } from '../protocol';

export interface Grid {
  columns: string[];
  rows: string[][];
}

export type Part =
  | { kind: 'text'; text: string }
  | { kind: 'image' | 'audio'; src: string; mimeType: string }
  | { kind: 'data'; grid: Grid; text: string }
  | { kind: 'link'; uri: string; name: string; about: string; mimeType: string; size: number }
  | { kind: 'resource'; uri: string; name: string; mimeType: string; text: string; blob: string; size: number };

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;
const AUDIO = /^audio\/[\w.+-]+$/;
const ROWS_MAX = 500;
const COLUMNS_MAX = 30;
const JSON_MAX = 2_000_000; // characters

/** The bytes that so much base64 stands for. */
export function decodedSize(base64: string): number {
  const padding = base64.endsWith('==') ? 2 : base64.endsWith('=') ? 1 : 0;
  return Math.max(0, Math.floor((base64.length * 3) / 4) - padding);
}

const cell = (v: unknown): string => {
  if (v === undefined || v === null) return '';
  return typeof v === 'object' ? JSON.stringify(v) : String(v);
};
const isObject = (v: unknown): v is Record<string, unknown> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);

function gridOfList(list: Record<string, unknown>[]): Grid | null {
  const columns = [...new Set(list.slice(0, ROWS_MAX).flatMap((r) => Object.keys(r)))];
  if (list.length > ROWS_MAX || columns.length === 0 || columns.length > COLUMNS_MAX) return null;
  return { columns, rows: list.map((r) => columns.map((c) => cell(r[c]))) };
}

/** A list of objects as rows; an object with one such list likewise; another
 *  object as its members. null: it is no table. */
export function gridOf(value: unknown): Grid | null {
  if (Array.isArray(value))
    return value.length > 0 && value.every(isObject) ? gridOfList(value) : null;
  if (!isObject(value)) return null;
  const members = Object.entries(value);
  const only = members.length === 1 ? members[0]?.[1] : undefined;
  if (Array.isArray(only)) {
    const inner = gridOf(only);
    if (inner) return inner;
  }
  if (members.length === 0 || members.length > ROWS_MAX) return null;
  return { columns: [], rows: members.map(([k, v]) => [k, cell(v)]) };
}

function textPart(text: string): Part {
  const trimmed = text.trim();
  if (/^[[{]/.test(trimmed) && trimmed.length <= JSON_MAX) {
    try {
      const grid = gridOf(JSON.parse(trimmed) as unknown);
      if (grid) return { kind: 'data', grid, text };
    } catch {
      // It only looks like JSON.
    }
  }
  return { kind: 'text', text };
}

const lastName = (uri: string): string => uri.split(/[/\\]/).findLast(Boolean) ?? uri;

function resourcePart(r: NonNullable<Content['resource']>): Part {
  const size = r.blob ? decodedSize(r.blob) : new TextEncoder().encode(r.text).length;
  return { kind: 'resource', name: lastName(r.uri), size, uri: r.uri, mimeType: r.mimeType, text: r.text, blob: r.blob };
}

function partOf(c: Content): Part {
  if (c.type === 'image' && IMAGE.test(c.mimeType))
    return { kind: 'image', src: `data:${c.mimeType};base64,${c.data}`, mimeType: c.mimeType };
  if (c.type === 'audio' && AUDIO.test(c.mimeType))
    return { kind: 'audio', src: `data:${c.mimeType};base64,${c.data}`, mimeType: c.mimeType };
  if (c.type === 'resource' && c.resource) return resourcePart(c.resource);
  if (c.type === 'resource_link')
    return {
      kind: 'link', uri: c.uri, name: c.title || c.name || lastName(c.uri), about: c.description,
      mimeType: c.mimeType, size: c.size,
    };
  if (c.type === 'text') return textPart(c.text);
  return { kind: 'text', text: `[${c.type} ${c.mimeType || c.uri}]` };
}

/** The parts in order; texts that follow each other are one. */
export function partsOf(content: Content[]): Part[] {
  const out: Part[] = [];
  for (const p of content.map(partOf)) {
    const last = out.at(-1);
    if (p.kind === 'text' && last?.kind === 'text') last.text += `\n${p.text}`;
    else out.push(p);
  }
  return out;
}

