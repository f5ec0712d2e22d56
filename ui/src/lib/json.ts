// json - reads JSON that the user typed.

import { t } from '../lang';
import { isRecord } from './check';

export interface ReadJson<T> {
  value: T | null; // null: invalid, see wrong
  wrong: string;
}

export function readJson(text: string): ReadJson<unknown> {
  try {
    return { value: JSON.parse(text) as unknown, wrong: '' };
  } catch (e) {
    const why = e instanceof Error ? e.message : '';
    return { value: null, wrong: t('form.noJson', { why }) };
  }
}

/** Arguments of a call: one JSON object. */
export function readObject(text: string): ReadJson<Record<string, unknown>> {
  const { value, wrong } = readJson(text);
  if (isRecord(value)) return { value, wrong };
  return { value: null, wrong: wrong || t('form.noObject') };
}
