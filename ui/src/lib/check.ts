// check - checks of data received from the server.
//
// A Check takes any value and returns a T, or throws a WireError that names the
// wrong member. Unknown members are ignored: a newer server may send more.

export type Check<T> = (v: unknown, at: string) => T;

export class WireError extends Error {}

function wrong(at: string, wanted: string): never {
  throw new WireError(`${at}: expected ${wanted}`);
}

export const str: Check<string> = (v, at) =>
  typeof v === 'string' ? v : wrong(at, 'a string');
export const num: Check<number> = (v, at) =>
  typeof v === 'number' && Number.isFinite(v) ? v : wrong(at, 'a number');
export const bool: Check<boolean> = (v, at) =>
  typeof v === 'boolean' ? v : wrong(at, 'true or false');
export const any: Check<unknown> = (v) => v;

export const isRecord = (v: unknown): v is Record<string, unknown> =>
  typeof v === 'object' && v !== null && !Array.isArray(v);
export const record: Check<Record<string, unknown>> = (v, at) =>
  (isRecord(v) ? v : wrong(at, 'an object'));

export function list<T>(of: Check<T>): Check<T[]> {
  return (v, at) =>
    Array.isArray(v)
      ? v.map((x, i) => of(x, `${at}[${i}]`))
      : wrong(at, 'a list');
}

/** Absent and null become the given default. */
export function or<T, D>(of: Check<T>, otherwise: D): Check<T | D> {
  return (v, at) => (v === undefined || v === null ? otherwise : of(v, at));
}

type Shape = Record<string, Check<unknown>>;
type Of<S extends Shape> = { [K in keyof S]: ReturnType<S[K]> };

export function object<S extends Shape>(shape: S): Check<Of<S>> {
  return (v, at) => {
    const from = record(v, at);
    const out: Record<string, unknown> = {};
    for (const key of Object.keys(shape))
      out[key] = (shape[key] as Check<unknown>)(from[key], `${at}.${key}`);
    return out as Of<S>;
  };
}
