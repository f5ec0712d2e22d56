// sampling - the messages of a sampling request as text and images, and the changes
// of the person who approves it. Pure.

import { any, list, object, or, str } from './check';

const part = object({ type: str, text: or(str, ''), mimeType: or(str, ''), data: or(str, '') });
const parts = list(part);

export interface Piece {
  role: string;
  text: string;
  image: string; // a data: URL, or ''
  isText: boolean; // it can be changed
}

const IMAGE = /^image\/(png|jpeg|gif|webp)$/;

export function samplePieces(message: { role: string; content: unknown }): Piece[] {
  const { role, content } = message;
  try {
    const all = parts(Array.isArray(content) ? content : [content], 'content');
    return all.map((p) => ({
      role,
      text: p.type === 'text' ? p.text : `[${p.type} ${p.mimeType}]`,
      image: p.type === 'image' && IMAGE.test(p.mimeType) ? `data:${p.mimeType};base64,${p.data}` : '',
      isText: p.type === 'text',
    }));
  } catch {
    return [{ role, text: JSON.stringify(any(content, '')), image: '', isText: false }];
  }
}

interface Asked {
  messages: { role: string; content: unknown }[];
  systemPrompt: string;
  maxTokens: number;
}

export interface SampleForm {
  system: string;
  texts: string[]; // of all messages, in order
  maxTokens: number | ''; // '': the field is empty
}

export function sampleForm(s: Asked): SampleForm {
  const texts = s.messages.flatMap((m) => samplePieces(m)).filter((p) => p.isText).map((p) => p.text);
  return { system: s.systemPrompt, texts, maxTokens: s.maxTokens };
}

/** The parts that differ; null: none. */
export function sampleEdit(s: Asked, form: SampleForm): Record<string, unknown> | null {
  const was = sampleForm(s);
  const edit = {
    ...(form.system !== was.system && { systemPrompt: form.system }),
    ...(form.texts.some((text, i) => text !== was.texts[i]) && { texts: form.texts }),
    ...(form.maxTokens !== was.maxTokens && { maxTokens: form.maxTokens }),
  };
  return Object.keys(edit).length ? edit : null;
}
