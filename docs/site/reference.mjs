// Pages made from the tables of the program: commands and HTTP API.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const json = (top, name) => JSON.parse(readFileSync(join(top, 'data', name), 'utf8'));
const cell = (s) => String(s ?? '').replace(/\|/g, '\\|').replace(/\s*\n\s*/g, ' ');
/** A table without the columns that say nothing. */
function table(head, rows) {
  if (!rows.length) return '';
  const some = (row) => row.filter((_, i) => rows.some((r) => r[i]));
  const line = (row) => `| ${some(row).map(cell).join(' | ')} |\n`;
  return `${line(head)}|${'---|'.repeat(some(head).length)}\n${rows.map(line).join('')}\n`;
}
const code = (s) => `\`${s}\``;

// --- commands ---

const flag = (o) => code(`${o.letter ? `-${o.letter}, ` : ''}--${o.name}${o.arg ? ` ${o.arg}` : ''}`);
const options = (items, shared) => table(['option', 'meaning', 'configuration key'],
  items.map((o) => (typeof o === 'string' ? { name: o, ...shared[o] } : o)).filter((o) => !o.hidden)
    .map((o) => [flag(o), o.doc, o.key ? `[\`${o.key}\`](configuration.md)` : '']));

const command = (c, shared) => `## ${c.name}

${c.summary}.

\`\`\`
mcp-orchestrator ${c.name}${c.args ? ` ${c.args}` : ''}${c.options ? ' [OPTION...]' : ''}
\`\`\`

${c.text ?? ''}

${options(c.options ?? [], shared)}${c.example ? `Example, which ${c.exampleSays}:

\`\`\`sh
mcp-orchestrator ${c.example}
\`\`\`
` : ''}`;

export function commands(top) {
  const { commands: all, globals, shared } = json(top, 'commands.json');
  return `# Commands

Every command of the program, with its options. \`mcp-orchestrator help COMMAND\`
prints the same in a terminal, and the manual pages contain it. This page is made
from the table that the program reads its command line with.

## Options of every command

${options(globals, shared)}
${all.filter((c) => !c.hidden).map((c) => command(c, shared)).join('\n')}`;
}

// --- HTTP API ---

/** What follows "#/components/" in a reference. */
const deref = (doc, x) => (x?.$ref ? x.$ref.split('/').slice(1).reduce((at, key) => at[key], doc) : x);

function typeOf(doc, schema) {
  if (schema?.$ref) return schema.$ref.split('/').at(-1);
  if (schema?.enum) return schema.enum.map((v) => code(v)).join(', ');
  if (schema?.const !== undefined) return code(schema.const);
  if (schema?.type === 'array') return `list of ${typeOf(doc, schema.items)}`;
  const any = schema?.oneOf ?? schema?.anyOf;
  if (any) return any.map((s) => typeOf(doc, s)).join(' or ');
  return [schema?.type ?? 'any'].flat().join(' or ');
}

function fields(doc, schema) {
  const s = deref(doc, schema);
  return Object.entries(s?.properties ?? {}).map(([name, p]) => [code(name), typeOf(doc, p),
    [s.required?.includes(name) ? '' : 'optional', p.description ?? deref(doc, p)?.description ?? ''].filter(Boolean).join('; ')]);
}

const bodyOf = (x) => Object.values(x?.content ?? {})[0]?.schema;

function operation(doc, roles, path, method, op) {
  const at = `${method.toUpperCase()} ${path}`;
  const parameters = (op.parameters ?? []).map((p) => deref(doc, p));
  const body = bodyOf(deref(doc, op.requestBody));
  const answers = Object.entries(op.responses).filter(([status]) => status !== 'default');
  return `### ${at}

${op.summary}.${roles.get(at) ? ` Lowest role: ${roles.get(at)}.` : ''}

${table(['parameter', 'in', 'meaning'], parameters.map((p) => [code(p.name), p.in, p.description ?? '']))}${body ? `Body${body.$ref ? ` (${typeOf(doc, body)})` : ''}:

${table(['field', 'type', 'meaning'], fields(doc, body)) || `${typeOf(doc, body)}\n\n`}` : ''}${answers.map(([status, a]) => {
    const s = bodyOf(deref(doc, a));
    return `Answer ${status}: ${deref(doc, a).description}${s?.$ref ? ` (${typeOf(doc, s)})` : ''}.\n\n${s?.$ref ? '' : table(['field', 'type', 'meaning'], fields(doc, s))}`;
  }).join('')}`;
}

/** The table of docs/roles.md: the lowest role of each route. */
const lowest = (top) => new Map([...readFileSync(join(top, 'docs/roles.md'), 'utf8')
  .matchAll(/^\| (\w+) \| `(\S+)` \| (\w+) \|/gm)].map(([, kind, path, role]) => [`${kind} ${path}`, role]));

const groupOf = (path) => path.match(/^\/\.?(?:api\/)?([^/.]+)/)[1];

export function api(top) {
  const doc = json(top, 'openapi.json');
  const roles = lowest(top);
  const groups = Map.groupBy(Object.keys(doc.paths), groupOf);
  return `# HTTP API

Requests that programs may send to the server. The server describes the same for
tools at \`/api/openapi.json\`. A request carries \`Authorization: Bearer TOKEN\`
([access.md](access.md)); [roles.md](roles.md) lists who may do what.

An error is \`application/problem+json\` with a stable \`code\`; see
[troubleshooting.md](troubleshooting.md).

${[...groups].map(([name, paths]) => `## ${name}

${paths.flatMap((p) => Object.entries(doc.paths[p]).map(([m, op]) => operation(doc, roles, p, m, op))).join('\n')}`).join('\n')}
## Types

${Object.entries(doc.components.schemas).map(([name, s]) => `### ${name}

${s.description ? `${s.description}\n\n` : ''}${table(['field', 'type', 'meaning'], fields(doc, s)) || `${typeOf(doc, s)}\n`}`).join('\n')}`;
}
