// useAttached - gets prompts, and reads the resources that a message names.

import { ref } from 'vue';
import { errorText } from '../lib/http';
import { markOf, markedIn, withAttached, type Attached } from '../lib/attached';
import type { Choice, Offers } from '../lib/offers';
import { t } from '../lang';

const load = () => import('../lib/offers');

function serverOf(offers: Offers, uri: string): string {
  const listed = offers.resources.find((r) => r.id === uri);
  if (listed) return listed.server;
  const begins = (template: string) => uri.startsWith(template.split('{')[0] ?? template);
  return offers.templates.find((r) => begins(r.id))?.server ?? '';
}

export function useAttached(session: () => string) {
  const error = ref('');
  const isReading = ref(false);

  async function guarded<T>(work: () => Promise<T>): Promise<T | null> {
    error.value = '';
    isReading.value = true;
    try {
      return await work();
    } catch (e) {
      error.value = errorText(e);
      return null;
    } finally {
      isReading.value = false;
    }
  }

  /** The text that a choice puts into the message; null: it failed. */
  const use = (choice: Choice, values: Record<string, string>): Promise<string | null> =>
    guarded(async () => {
      if (choice.kind === 'prompt') {
        const given = Object.fromEntries(Object.entries(values).filter(([, v]) => v !== ''));
        return (await load()).fetchPrompt(session(), choice.offer.id, given);
      }
      return `${markOf(choice.isTemplate ? (await load()).expand(choice.offer.id, values) : choice.offer.id)} `;
    });

  /** The message with the content of the resources that it names; null: one could
   *  not be read. */
  const read = (text: string): Promise<string | null> => {
    const uris = markedIn(text);
    if (!uris.length) return Promise.resolve(text);
    return guarded(async () => {
      const { fetchOffers, readResource } = await load();
      const offers = await fetchOffers(session());
      const all = await Promise.all(uris.map(async (uri): Promise<Attached> => {
        const got = await readResource(session(), uri);
        if (!got.text) throw new Error(t('offers.notText', { uri }));
        return { uri, server: serverOf(offers, uri), ...got };
      }));
      return withAttached(text, all);
    });
  };
  return { use, read, error, isReading };
}
