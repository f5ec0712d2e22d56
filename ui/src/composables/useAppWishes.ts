// useAppWishes - what apps of servers want to say: a message, which is put into the
// composer, and context, which goes with the person's next message. Nothing is sent
// before the person sends it.

import { ref, shallowReactive } from 'vue';
import { withAttached } from '../lib/attached';

export interface AppContext {
  server: string;
  uri: string;
  text: string;
}

const contexts = shallowReactive(new Map<string, AppContext>()); // by call
const message = ref(''); // the last one, until the composer has taken it
const draft = ref(''); // what the composer holds
let taken = ''; // and what of it an app has put there

export function useAppWishes() {
  return {
    contexts,
    message,
    draft,
    /** True if the composer may hold this text of an app: it replaces nothing that
     *  the person wrote. */
    wish(text: string): boolean {
      if (draft.value.trim() && draft.value !== taken) return false;
      taken = text;
      message.value = text;
      return true;
    },
    /** The message with the context of all apps, which is used up. */
    withContexts(text: string): string {
      const all = [...contexts.values()].map((c) => ({ ...c, mimeType: 'text/plain' }));
      contexts.clear();
      return withAttached(text, all);
    },
  };
}
