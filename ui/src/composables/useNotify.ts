// useNotify - browser notifications of calls that wait while the tab is hidden.
//
// The browser asks for the permission only after a click on the page. A
// notification names server and tool, never arguments: a lock screen may show it.
// It closes itself when the call is decided, wherever that was.

import { computed, onScopeDispose, ref, watch } from 'vue';
import { countOdd } from '../lib/reveal';
import { useConversationStore } from '../stores/conversation';
import { t } from '../lang';

const ON = 'mo.notify';
const OFFERED = 'mo.notify.offered';
const NAME_MAX = 60;

const isSupported = typeof Notification !== 'undefined';
const permission = ref(isSupported ? Notification.permission : 'denied');

function read(key: string): boolean {
  try {
    return localStorage.getItem(key) === 'yes';
  } catch {
    return false;
  }
}
function keep(key: string, on: boolean): void {
  try {
    localStorage.setItem(key, on ? 'yes' : 'no');
  } catch { /* forbidden: it holds until the page is left */ }
}
const wanted = ref(read(ON));
const offered = ref(read(OFFERED));

/** The switch, and whether the page offers it. */
export function useNotifySwitch() {
  const isOn = computed(() => wanted.value && permission.value === 'granted');
  const isOffered = computed(() =>
    isSupported && permission.value !== 'denied' && !isOn.value && !offered.value);
  /** After a click: asks the browser if need be. */
  async function turn(on: boolean): Promise<void> {
    if (on && permission.value === 'default')
      permission.value = await Notification.requestPermission();
    wanted.value = on && permission.value === 'granted';
    keep(ON, wanted.value);
    dismiss();
  }
  function dismiss(): void {
    offered.value = true;
    keep(OFFERED, true);
  }
  return { isSupported, permission, isOn, isOffered, turn, dismiss };
}

/** A name of a server as text for a notification, which cannot mark odd
 *  characters: they are left out. */
export function plainName(name: string): string {
  const shown = [...name].filter((c) => countOdd(c) === 0).join('');
  return shown.length > NAME_MAX ? `${shown.slice(0, NAME_MAX)}…` : shown;
}

/** Brings the card of a call into view. */
export function showCard(callId: string): void {
  const card = document.querySelector<HTMLElement>(`[data-card="${CSS.escape(callId)}"]`);
  card?.scrollIntoView({ block: 'center' });
  card?.focus({ preventScroll: true });
}

/** Notifies while the calling component lives. show: opens the conversation. */
export function useNotify(show: (session: string) => void): void {
  const chat = useConversationStore();
  const { isOn } = useNotifySwitch();
  const open = new Map<string, Notification>(); // by call

  function notify(callId: string, server: string, tool: string): void {
    const session = chat.sessionId;
    const n = new Notification(t('notify.title'), {
      body: t('notify.body', { tool: plainName(tool), server: plainName(server) }), tag: callId,
    });
    n.onclick = () => {
      window.focus();
      show(session);
      showCard(callId);
      n.close();
    };
    open.set(callId, n);
  }
  watch(() => chat.decidable.map((a) => a.callId).join(' '), () => {
    const waiting = new Set(chat.decidable.map((a) => a.callId));
    for (const [id, n] of open) {
      if (waiting.has(id)) continue;
      n.close();
      open.delete(id);
    }
    if (!isOn.value || !document.hidden) return;
    for (const a of chat.decidable)
      if (!open.has(a.callId)) notify(a.callId, a.server, a.name);
  });
  onScopeDispose(() => {
    for (const n of open.values()) n.close();
  });
}
