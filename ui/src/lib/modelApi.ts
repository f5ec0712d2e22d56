// modelApi - requests that set the providers of models: key, address, default.

import { readProviderChange, readProviderSetup, type ProviderSetup, type ProviderTest } from '../protocol';
import { get, post } from './http';

/** Members that are absent stay as they are; an empty text removes one. */
export interface ProviderWish {
  key?: string;
  baseUrl?: string;
}

const at = (name: string): string => `/api/providers/${encodeURIComponent(name)}`;

export const fetchProviderSetup = (): Promise<ProviderSetup> =>
  get('/api/providers', readProviderSetup);
/** Asks the provider for its models; nothing is saved. */
export const testProvider = async (name: string, wish: ProviderWish): Promise<ProviderTest> => {
  const { test } = await post(`${at(name)}?dryRun=true&test=true`, readProviderChange, wish, 'PUT');
  if (!test) throw new Error('the answer has no test');
  return test;
};
export const saveProvider = (name: string, wish: ProviderWish): Promise<unknown> =>
  post(at(name), readProviderChange, wish, 'PUT');
export const removeProvider = (name: string): Promise<unknown> =>
  post(at(name), readProviderChange, {}, 'DELETE');
/** provider '': a model on this machine, whose name begins with its server. */
export const saveDefaultModel = (provider: string, model: string): Promise<unknown> =>
  post('/api/models/default', readProviderChange,
    { ...(provider ? { provider } : {}), model: model || null }, 'PUT');

/** The words of a model's id for the default: provider and own name. */
export function defaultOf(id: string, provider: string, isLocal: boolean): { provider: string; model: string } {
  if (isLocal) return { provider: '', model: id };
  const prefix = `${provider}:`;
  return { provider, model: id.startsWith(prefix) ? id.slice(prefix.length) : id };
}
