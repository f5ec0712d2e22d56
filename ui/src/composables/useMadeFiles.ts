// useMadeFiles - the files that the turns of the conversation made or changed, by
// the id of the item that ends the turn. Computed from the workspace as it is now:
// a file that a later turn changed belongs to that one.

import { computed, ref, watch } from 'vue';
import { filesOfTurns, listChanged, type FileEntry, type Turn } from '../lib/workspace';
import { useConversationStore } from '../stores/conversation';

const SLACK_MS = 5 * 60_000; // between the clocks of the page and of the box

export function useMadeFiles() {
  const chat = useConversationStore();
  const made = ref(new Map<string, FileEntry[]>());

  /** Turns that are over and called tools. */
  const turns = computed<Turn[]>(() => {
    const out: Turn[] = [];
    let from = 0, called = false;
    for (const e of chat.entries) {
      if (e.role === 'user') {
        from = e.at;
        called = false;
      } else if (e.role === 'assistant' && e.blocks.some((b) => b.type === 'call')) called = true;
      else if (e.role === 'assistant' && called && from) out.push({ id: `${e.seq}.end`, from, to: e.at });
    }
    return out;
  });
  async function look(): Promise<void> {
    const first = turns.value[0];
    const session = chat.sessionId;
    if (!first || !chat.isOpen) return;
    const found = await listChanged(session, Date.now() - first.from + SLACK_MS).catch(() => null);
    if (found && session === chat.sessionId) made.value = filesOfTurns(turns.value, found.entries);
  }
  // A running turn is looked at when it is over.
  watch(() => [chat.sessionId, chat.isOpen && !chat.isTurnRunning, turns.value.length], () => {
    if (!turns.value.length) made.value = new Map();
    if (!chat.isTurnRunning) void look();
  }, { immediate: true });
  return { made };
}
