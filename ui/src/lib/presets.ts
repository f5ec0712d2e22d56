// presets - a person's named settings for new conversations.
//
// A preset gives no right: each part is set in the conversation as the person
// would do it, and the server judges it. Parts that are refused are reported.

import { ref } from 'vue';
import { list, object, or, str, type Check } from './check';
import { errorText, get, post, setMode } from './http';

export interface Settings {
  model?: string | undefined;
  system?: string | undefined;
  toolsOff?: { server: string; tool?: string | undefined }[] | undefined;
  mode?: string | undefined;
}
export interface Preset extends Settings {
  id: string;
  name: string;
}

const off = object({ server: str, tool: or(str, undefined) });
const preset: Check<Preset> = object({
  id: str, name: str, model: or(str, undefined), system: or(str, undefined),
  toolsOff: or(list(off), undefined), mode: or(str, undefined),
});
const presets = object({ presets: list(preset) });
export const readPreset = (v: unknown): Preset => preset(v, 'preset');
export const readPresets = (v: unknown): Preset[] => presets(v, 'presets').presets;

const at = (id: string): string => `/api/presets/${encodeURIComponent(id)}`;
export const fetchPresets = (): Promise<Preset[]> => get('/api/presets', readPresets);
/** How often this tab has changed them: who shows them fetches them again. */
export const presetChanges = ref(0);
async function changed<T>(answer: Promise<T>): Promise<T> {
  const value = await answer;
  presetChanges.value++;
  return value;
}
export const savePreset = (wish: Settings & { name: string }): Promise<Preset> => changed(post('/api/presets', readPreset, wish));
export const renamePreset = (id: string, name: string): Promise<Preset> => changed(post(at(id), readPreset, { name }, 'PATCH'));
export const deletePreset = (id: string): Promise<unknown> => changed(post(at(id), (v) => v, {}, 'DELETE'));

/** Sets everything but the model in a conversation that is open. Resolves to why
 *  a part was refused, or to ''. */
export async function usePreset(session: string, p: Preset, change: (about: { system: string }) => Promise<unknown>): Promise<string> {
  const steps = [
    p.system ? () => change({ system: p.system ?? '' }) : null,
    p.toolsOff?.length ? async () => {
      const { switchTools } = await import('./offers'); // not of the first load
      await switchTools(session, (p.toolsOff ?? []).map((x) => ({ server: x.server, ...(x.tool && { tool: x.tool }) })));
    } : null,
    p.mode && p.mode !== 'ask' ? () => setMode(session, p.mode ?? 'ask') : null,
  ];
  const why: string[] = [];
  for (const step of steps)
    await step?.().catch((e: unknown) => why.push(errorText(e)));
  return why.join(' ');
}
