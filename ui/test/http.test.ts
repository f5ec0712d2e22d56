import { afterEach, expect, test, vi } from 'vitest';
import { errorOf, errorText, get, deleteSession, HttpError } from '../src/lib/http';
import { readArgs } from '../src/lib/rules';
import { readObject } from '../src/lib/json';

const answer = (status: number, body: unknown) =>
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(body), { status })));
afterEach(() => vi.unstubAllGlobals());

test('a server that cannot be reached is named, not the browser’s error', async () => {
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('Failed to fetch')));
  const e: unknown = await get('/api/x', (v) => v).catch((x: unknown) => x);
  expect(e).toMatchObject({ status: 0 });
  expect(errorText(e)).toMatch(/cannot be reached/);
});

test('the detail of a problem is its message', async () => {
  answer(409, { detail: 'the name is taken' });
  expect(await errorOf(get('/api/x', (v) => v))).toBe('the name is taken');
  answer(500, 'x');
  expect(await errorOf(get('/api/x', (v) => v))).toBe('HTTP 500');
  answer(200, 'x');
  expect(await errorOf(get('/api/x', (v) => v))).toBe('');
});

test('deleting what does not exist works, other failures do not', async () => {
  answer(404, {});
  expect(await errorOf(deleteSession('a'))).toBe('');
  answer(403, {});
  await expect(deleteSession('a')).rejects.toThrow(HttpError);
});

test('an edited call must be an object; an empty text is none', () => {
  expect(readObject('').wrong).toMatch(/^This is not valid JSON: ./);
  expect(readObject('[]').wrong).toMatch(/one JSON object/);
  expect(readObject('{"a":1}').value).toEqual({ a: 1 });
  expect(readArgs('').value).toEqual({});
});
