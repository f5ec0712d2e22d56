// offers - prompts and resources of the servers, for the composer. Loaded when
// they are first used.

import { any, list, num, object, or, str, type Check } from './check';
import { get, post } from './http';

type Checked<C> = C extends Check<infer T> ? T : never;

const argument = object({ name: str, description: or(str, ''), required: any });
const offer = object({
  server: str, id: str, name: or(str, ''), title: or(str, ''), description: or(str, ''),
  mimeType: or(str, ''), size: or(num, 0), arguments: or(list(argument), []),
});
export type Offer = Checked<typeof offer>;
const offers = object({ prompts: list(offer), resources: list(offer), templates: list(offer) });
export type Offers = Checked<typeof offers>;

const part = object({
  type: or(str, 'text'), text: or(str, ''), uri: or(str, ''),
  resource: or(object({ uri: or(str, ''), text: or(str, ''), mimeType: or(str, '') }), null),
});
const prompt = object({ messages: list(object({ role: or(str, 'user'), content: any })) });
const resource = object({
  contents: list(object({ uri: or(str, ''), mimeType: or(str, ''), text: or(str, ''), blob: or(str, '') })),
});
const completion = object({ completion: object({ values: or(list(str), []) }) });

const at = (session: string, what: string) => `/api/sessions/${encodeURIComponent(session)}/${what}`;

export const fetchOffers = (session: string): Promise<Offers> =>
  get(at(session, 'offers'), (v) => offers(v, ''));
export const switchTools = (session: string, off: { server: string; tool?: string }[]): Promise<unknown> =>
  post(at(session, 'tools'), (v) => v, { off }, 'PUT');
export const completeArgument = async (session: string, ref: object, name: string, value: string, args: Record<string, string>): Promise<string[]> =>
  (await post(at(session, 'complete'), (v) => completion(v, ''),
    { ref, argument: { name, value }, context: { arguments: args } })).completion.values;

/** The text of a prompt's messages; those of the assistant are marked. */
export function promptText(messages: { role: string; content: unknown }[]): string {
  return messages.map(({ role, content }) => {
    const p = part(content, '');
    const text = p.resource ? `${p.resource.uri}\n${p.resource.text}` : p.text || p.uri;
    return role === 'assistant' ? `Assistant: ${text}` : text;
  }).filter(Boolean).join('\n\n');
}
export const fetchPrompt = async (session: string, name: string, args: Record<string, string>): Promise<string> =>
  promptText((await post(at(session, 'prompt'), (v) => prompt(v, ''), { name, arguments: args })).messages);

/** Reads a resource; '' if it is not text. The server reports changes from now on. */
export async function readResource(session: string, uri: string): Promise<{ text: string; mimeType: string }> {
  const { contents } = await post(at(session, 'resource'), (v) => resource(v, ''), { uri, subscribe: true });
  return {
    text: contents.map((c) => c.text).join('\n'),
    mimeType: contents[0]?.mimeType ?? '',
  };
}

// --- templates -------------------------------------------------------------------

const VARIABLE = /\{([+/]?)([\w.]+)\*?\}/g;

/** The variables of a URI template; null: it has some that we cannot fill. */
export function variablesOf(template: string): string[] | null {
  if (template.replace(VARIABLE, '').includes('{')) return null;
  return [...new Set([...template.matchAll(VARIABLE)].map((m) => m[2] ?? ''))];
}
export function expand(template: string, values: Record<string, string>): string {
  return template.replace(VARIABLE, (_m, kind: string, name: string) => {
    const value = values[name] ?? '';
    if (kind === '+') return encodeURI(value);
    return (kind === '/' ? '/' : '') + encodeURIComponent(value);
  });
}

// --- the rows of a menu --------------------------------------------------------------

export type Kind = 'prompt' | 'resource';

export interface Choice {
  kind: Kind;
  offer: Offer;
  fields: { name: string; about: string; required: boolean }[]; // to ask for
  isTemplate: boolean;
}

export function choices(kind: Kind, all: Offers): Choice[] {
  if (kind === 'prompt')
    return all.prompts.map((offer) => ({
      kind, offer, isTemplate: false,
      fields: offer.arguments.map((a) => ({ name: a.name, about: a.description, required: a.required === true })),
    }));
  const plain = all.resources.map((offer) => ({ kind, offer, fields: [], isTemplate: false }));
  const templates = all.templates.flatMap((offer) => {
    const names = variablesOf(offer.id);
    return names ? [{ kind, offer, isTemplate: true, fields: names.map((name) => ({ name, about: '', required: true })) }] : [];
  });
  return [...plain, ...templates];
}
