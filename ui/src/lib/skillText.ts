// skillText - the entry of a skill as text: its frontmatter, then a line per file
// with the beginning of its digest.

type Node = Record<string, unknown>;
const nodeOf = (v: unknown): Node => (typeof v === 'object' && v !== null ? v as Node : {});
const textOf = (v: unknown): string => (typeof v === 'string' ? v : '');
const DIGEST = 7 + 12; // "sha256:" and as many digits

/** pin: a pinned definition; the entry is its schema. */
export function skillTextOf(pin: unknown): string {
  const entry = nodeOf(nodeOf(pin)['inputSchema']);
  const front = Object.entries(nodeOf(entry['frontmatter']))
    .map(([k, v]) => `${k}: ${typeof v === 'string' ? v : JSON.stringify(v)}`);
  const files = Array.isArray(entry['resources']) ? entry['resources'] : [];
  const lines = files.map((f) => {
    const file = nodeOf(f);
    return `${textOf(file['uri'])}  ${textOf(file['digest']).slice(0, DIGEST)}`;
  });
  return [...front, '', ...lines].join('\n');
}
