// http - the few things that are asked for by plain requests.

import {
  readAudit, readModels, readReadiness, readSessions, type Audit, type Models,
  type Readiness, type Session,
} from '../protocol';

export class HttpError extends Error {
  constructor(readonly status: number, message: string) {
    super(message);
  }
}

async function reason(r: Response): Promise<string> {
  const body: unknown = await r.json().catch(() => null);
  const detail =
    typeof body === 'object' && body !== null && 'detail' in body
      ? body.detail
      : '';
  return typeof detail === 'string' && detail ? detail : `HTTP ${r.status}`;
}

async function get<T>(path: string, read: (v: unknown) => T): Promise<T> {
  const r = await fetch(path, { headers: { accept: 'application/json' } });
  if (!r.ok) throw new HttpError(r.status, await reason(r));
  return read(await r.json());
}

export const fetchSessions = (): Promise<Session[]> =>
  get('/api/sessions', readSessions);
export const fetchModels = (): Promise<Models> =>
  get('/api/models/available', readModels);
export const fetchAudit = (): Promise<Audit> =>
  get('/api/audit?limit=200', readAudit);

/** 503 is an answer too: it says what is missing. */
export async function fetchReadiness(): Promise<Readiness> {
  return readReadiness(await (await fetch('/readyz')).json());
}

export async function forgetSession(id: string): Promise<void> {
  const path = `/api/sessions/${encodeURIComponent(id)}?forget=true`;
  const r = await fetch(path, { method: 'DELETE' });
  if (!r.ok && r.status !== 404)
    throw new HttpError(r.status, await reason(r));
}

export const exportPath = (id: string): string =>
  `/api/sessions/${encodeURIComponent(id)}/history?format=markdown`;
