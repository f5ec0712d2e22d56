// serverEntry - the entry of a server in the configuration file as fields of a
// form, and the change that turns the entry into the edited one.

import { splitWords } from './commandLine';

type JsonObject = Record<string, unknown>;

export type Kind = 'stdio' | 'http' | 'image';

/** A row of `env` or `headers`. kept: its stored value, which is not shown. */
export interface Pair { id: number; name: string; value: string; secret: boolean; own: boolean; kept: boolean }

export interface Fields {
  kind: Kind;
  target: string; // command line, URL or image
  description: string;
  pairs: Pair[];
  rest: JsonObject; // all other members
}

const MASK = '***';
const OWN = ['command', 'args', 'url', 'image', 'description', 'env', 'headers'];
const TARGETS = { stdio: 'command', http: 'url', image: 'image' } as const;

const isObject = (v: unknown): v is JsonObject => typeof v === 'object' && v !== null && !Array.isArray(v);
const textOf = (v: unknown): string => (typeof v === 'string' ? v : '');

/** The inverse of splitWords. */
export const joinWords = (words: string[]): string =>
  words.map((w) => (/^[^\s'"\\]+$/.test(w) ? w : `'${w.replaceAll("'", `'\\''`)}'`)).join(' ');

/** True if the page cannot show the value: it is a literal, or a reference. */
const isHidden = (value: string): boolean => value.includes(MASK) || /\$\{(secret|file|env):/.test(value);

export function fieldsOf(entry: JsonObject): Fields {
  const kind: Kind = 'url' in entry ? 'http' : 'image' in entry ? 'image' : 'stdio';
  const args = Array.isArray(entry['args']) ? entry['args'].map(String) : [];
  const map = entry[kind === 'http' ? 'headers' : 'env'];
  return {
    kind,
    target: kind === 'stdio' ? joinWords([textOf(entry['command']), ...args]) : textOf(entry[TARGETS[kind]]),
    description: textOf(entry['description']),
    pairs: Object.entries(isObject(map) ? map : {}).map(([name, v], i) => {
      const kept = isHidden(textOf(v));
      return { id: -1 - i, name, value: kept ? '' : textOf(v), secret: kept, own: true, kept };
    }),
    rest: Object.fromEntries(Object.entries(entry).filter(([k]) => !OWN.includes(k))),
  };
}

const same = (a: unknown, b: unknown): boolean => JSON.stringify(a) === JSON.stringify(b);

/** Members that differ; null: to be removed. */
function differences(old: JsonObject, now: JsonObject): JsonObject {
  const out: JsonObject = {};
  for (const k of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const a = old[k];
    const b = now[k];
    if (same(a, b)) continue;
    out[k] = b === undefined ? null : isObject(a) && isObject(b) ? differences(a, b) : b;
  }
  return out;
}

function pairChanges(old: Pair[], now: Pair[]): JsonObject {
  const given = now.filter((p) => p.name.trim());
  const out: JsonObject = {};
  for (const p of old) if (!given.some((x) => x.name.trim() === p.name)) out[p.name] = null;
  for (const p of given) {
    const was = old.find((x) => x.name === p.name.trim());
    if (p.kept && was?.kept && !p.value) continue;
    if (!was || was.kept || was.value !== p.value || p.secret !== was.secret) out[p.name.trim()] = p.value;
  }
  return out;
}

/** What PATCH /api/mcp/NAME needs; nested objects are merged by the server. */
export function changesOf(old: Fields, now: Fields): JsonObject {
  const isOther = old.kind !== now.kind;
  const map = now.kind === 'http' ? 'headers' : 'env';
  const [program = '', ...args] = now.kind === 'stdio' ? splitWords(now.target) ?? [] : [];
  const out = differences(old.rest, now.rest);
  if (isOther) {
    out[TARGETS[old.kind]] = null;
    if (old.kind === 'stdio') out['args'] = null;
    if ((old.kind === 'http') !== (now.kind === 'http')) out[old.kind === 'http' ? 'headers' : 'env'] = null;
  }
  if (isOther || old.target !== now.target) {
    out[TARGETS[now.kind]] = now.kind === 'stdio' ? program : now.target.trim();
    if (now.kind === 'stdio') out['args'] = args.length ? args : null;
  }
  if (old.description !== now.description.trim()) out['description'] = now.description.trim() || null;
  const keepsMap = (old.kind === 'http') === (now.kind === 'http');
  const pairs = pairChanges(keepsMap ? old.pairs : [], now.pairs);
  if (Object.keys(pairs).length) out[map] = pairs;
  return out;
}

/** The error without the excerpt of the output, which is shown as a whole, and
 *  the line that names the cause. */
export function causeOf(error: string, stderr: string): { what: string; cause: string } {
  const at = error.indexOf('; it said: ');
  if (at < 0 || !stderr.trim()) return { what: error, cause: '' };
  const lines = stderr.split('\n').map((l) => l.trimEnd()).filter((l) => l && !/^\s/.test(l));
  const cause = lines.find((l) => /(error|exception|panic):/i.test(l) || /\bERROR\b|FATAL|npm error (?!code|path|errno|syscall)/.test(l)) ?? lines.at(-1) ?? '';
  return { what: error.slice(0, at), cause };
}
