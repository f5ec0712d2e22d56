// viewApi - requests that list, preview, save and remove views of the gateway.

import {
  readGatewayView, readGatewayViews, readViewChange,
  type GatewayView, type GatewayViews, type ViewChange,
} from '../protocol';
import { get, post } from './http';

const at = (name: string): string => `/api/views/${encodeURIComponent(name)}`;

/** The part of an entry that the page edits. */
export interface ViewForm {
  description: string;
  servers: string[]; // empty: all
  tools: string; // patterns, one a line
  readOnly: boolean;
}

export const fetchViews = (): Promise<GatewayViews> =>
  get('/api/views', readGatewayViews);
export const fetchView = (name: string): Promise<GatewayView> =>
  get(at(name), readGatewayView);
/** What a client would see; saves nothing. */
export const previewView = (name: string, entry: unknown): Promise<ViewChange> =>
  post(`${at(name)}?dryRun=true`, readViewChange, entry, 'PUT');
export const saveView = (name: string, entry: unknown): Promise<ViewChange> =>
  post(at(name), readViewChange, entry, 'PUT');
export const removeView = (name: string): Promise<ViewChange> =>
  post(at(name), readViewChange, {}, 'DELETE');

export function formOf(view: GatewayView | null): ViewForm {
  return {
    description: view?.description ?? '',
    servers: view?.onlyServers ?? [],
    tools: (view?.patterns ?? []).join('\n'),
    readOnly: view?.readOnly ?? false,
  };
}

/** The entry with the form's values; members the page does not know stay. */
export function entryOf(
  form: ViewForm, old: Record<string, unknown>,
): Record<string, unknown> {
  const tools = form.tools.split('\n').map((x) => x.trim()).filter(Boolean);
  const description = form.description.trim();
  const known = ['description', 'servers', 'tools', 'readOnly'];
  return {
    ...Object.fromEntries(Object.entries(old).filter(([key]) => !known.includes(key))),
    ...(description ? { description } : {}),
    ...(form.servers.length ? { servers: form.servers } : {}),
    ...(tools.length ? { tools } : {}),
    ...(form.readOnly ? { readOnly: true } : {}),
  };
}
