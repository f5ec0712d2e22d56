// server - sessions, models, MCP servers and readiness of this server. Where an
// older server answers 404, the controls for it are hidden.

import { defineStore } from 'pinia';
import { computed, ref, shallowRef } from 'vue';

import { newId } from '../lib/format';
import {
  changeSession, deleteSession, errorText, fetchModels, fetchReadiness, fetchSessions, type About,
} from '../lib/http';
import { fetchManaged } from '../lib/serverApi';
import { inOrder } from '../lib/sessions';
import type { McpServer, Model, Models, Readiness, Session } from '../protocol';

const DRAFT = 'mo.draft';

export const useServerStore = defineStore('server', () => {
  const sessions = shallowRef<Session[]>([]);
  const hasSessions = ref(false);
  const models = shallowRef<Models | null>(null);
  const modelsFailed = ref(false);
  const readiness = shallowRef<Readiness | null>(null);
  const servers = shallowRef<McpServer[]>([]);
  const serversKnown = ref(false);
  const serversError = ref(''); // the error of the last load
  const canManage = ref(false); // the page may change them
  const configFile = ref('');
  const justSaved = ref(''); // the server that was added or changed last

  const titledSessions = computed(() => inOrder(sessions.value.filter((s) => s.title)));
  const modelList = computed<Model[]>(() => models.value?.models ?? []);

  async function loadSessions(): Promise<void> {
    try {
      sessions.value = await fetchSessions();
      hasSessions.value = true;
    } catch {
      hasSessions.value = false;
    }
  }
  async function loadModels(): Promise<void> {
    try {
      models.value = await fetchModels();
      modelsFailed.value = false;
    } catch {
      modelsFailed.value = true;
    }
  }
  async function loadReadiness(): Promise<void> {
    readiness.value = await fetchReadiness().catch(() => null);
  }
  async function loadServers(): Promise<void> {
    try {
      const all = await fetchManaged();
      servers.value = all.servers;
      canManage.value = all.manage;
      configFile.value = all.file;
      serversKnown.value = true;
      serversError.value = '';
    } catch (e) {
      serversError.value = errorText(e);
    }
  }
  async function removeSession(id: string): Promise<void> {
    await deleteSession(id);
    sessions.value = sessions.value.filter((s) => s.id !== id);
  }

  const titleOf = (id: string): string =>
    sessions.value.find((s) => s.id === id)?.title ?? '';
  async function change(id: string, about: About): Promise<void> {
    await changeSession(id, about);
    await loadSessions();
  }

  /** The id of a new conversation. An unused one is reused, so that opening the
   *  page does not leave empty conversations behind. */
  function draftId(): string {
    const old = localStorage.getItem(DRAFT) ?? '';
    const used = sessions.value.some((s) => s.id === old && s.title);
    const id = /^[0-9a-f]{32}$/.test(old) && !used ? old : newId();
    localStorage.setItem(DRAFT, id);
    return id;
  }
  const isDraft = (id: string): boolean => localStorage.getItem(DRAFT) === id;
  function forgetDraft(id: string): void {
    if (isDraft(id)) localStorage.removeItem(DRAFT);
  }

  return {
    sessions, hasSessions, models, modelsFailed, readiness, servers,
    serversKnown, serversError, canManage, configFile, justSaved, titledSessions, modelList, loadSessions, loadModels,
    loadReadiness, loadServers, removeSession, titleOf, change, draftId, isDraft, forgetDraft,
  };
});
