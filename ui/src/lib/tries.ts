// tries - a tool that is being tried: its progress, the server's questions, and
// cancelling. The page asks while the call runs.

import { readTry, type RunningTry } from '../protocol';
import { get, post } from './http';

const at = (run: string): string => `/api/tries/${encodeURIComponent(run)}`;

export const fetchTry = (run: string): Promise<RunningTry> => get(at(run), readTry);
export const cancelTry = (run: string): Promise<unknown> =>
  post(at(run), (v) => v, { action: 'cancel' });
export const answerTry = (
  run: string, question: string, action: string, content?: Record<string, unknown>,
): Promise<unknown> =>
  post(at(run), (v) => v, { question, action, ...(content ? { content } : {}) });
