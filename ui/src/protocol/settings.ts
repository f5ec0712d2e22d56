// settings - responses over HTTP about providers, tokens and a person's connections.

import { bool, list, num, object, or, str } from '../lib/check';
import { type Checked } from './parts';

const keyState = object({
  name: str, variable: or(str, ''), key: str, from: or(str, ''),
  why: or(str, ''),
  baseUrl: or(str, ''),
  fixed: or(list(str), [] as string[]), // set by the environment
});
export type Provider = Checked<typeof keyState>;
const providerSetup = object({
  providers: list(keyState), editable: or(bool, false), modelFixed: or(bool, false),
});
export type ProviderSetup = Checked<typeof providerSetup>;
const CAUSES = ['key', 'credit', 'address', 'network', 'busy'] as const;
const providerTest = object({
  ok: bool,
  models: or(list(object({ id: str, name: or(str, '') })), []),
  cause: or(str, 'busy'),
  error: or(str, ''),
});
export type ProviderTest = Omit<Checked<typeof providerTest>, 'cause'> & { cause: typeof CAUSES[number] };

const tokenMembers = {
  id: str, owner: str, name: str, role: str, views: list(str),
  created: num, expires: num, used: or(num, 0),
};
const token = object(tokenMembers);
export type Token = Checked<typeof token>;
const newToken = object({ ...tokenMembers, token: str });
export type NewToken = Checked<typeof newToken>;
const me = object({ name: str, role: str });
export type Me = Checked<typeof me>;
const ownConnection = object({
  server: str, connected: bool, description: or(str, ''), error: or(str, ''),
});
export type OwnConnection = Checked<typeof ownConnection>;

export const readProviderSetup = (v: unknown): ProviderSetup => providerSetup(v, 'providers');
export const readProviderChange = (v: unknown): { saved: boolean; test: ProviderTest | undefined } => {
  const { saved, test } = object({ saved: bool, test: or(providerTest, undefined) })(v, 'provider');
  return { saved, test: test && { ...test, cause: CAUSES.find((c) => c === test.cause) ?? 'busy' } };
};
export const readTokens = (v: unknown): Token[] =>
  object({ tokens: list(token) })(v, 'tokens').tokens;
export const readNewToken = (v: unknown): NewToken => newToken(v, 'token');
export const readMe = (v: unknown): Me => me(v, 'me');
export const readConnections = (v: unknown): OwnConnection[] =>
  object({ connections: list(ownConnection) })(v, 'connections').connections;
export const readConnectUrl = (v: unknown): string =>
  object({ url: str })(v, 'connection').url;
