// format - numbers, sizes and times in the language of the page.

import { lang, t } from '../lang';

/** Created when first needed, because Intl objects are slow to create. */
function lazy<T>(make: () => T): () => T {
  let made: T | null = null;
  return () => (made ??= make());
}
const number = (o: Intl.NumberFormatOptions) =>
  lazy(() => new Intl.NumberFormat(lang, o));
const tenths = number({ minimumFractionDigits: 1, maximumFractionDigits: 1 });
const compact = number({ notation: 'compact', maximumFractionDigits: 1 });
const singleBytes = number({ style: 'unit', unit: 'byte', unitDisplay: 'long' });
const kilobytes = number({ style: 'unit', unit: 'kilobyte', maximumFractionDigits: 0 });
const megabytes = number({ style: 'unit', unit: 'megabyte', maximumFractionDigits: 1 });
const shares = number({ style: 'percent', maximumFractionDigits: 1 });
const date = (o: Intl.DateTimeFormatOptions) =>
  lazy(() => new Intl.DateTimeFormat(lang, o));
const days = date({ day: 'numeric', month: 'long' });
const daysOfYears = date({ day: 'numeric', month: 'long', year: 'numeric' });
const times = date({
  hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23',
});

export function duration(ms: number): string {
  if (ms < 1000) return t('time.ms', { v: Math.round(ms) });
  if (ms < 60_000) return t('time.s', { v: tenths().format(ms / 1000) });
  const s = Math.round(ms / 1000);
  if (s < 3600)
    return t('time.min', { min: Math.floor(s / 60), s: s % 60 });
  return t('time.hours', {
    h: Math.floor(s / 3600), min: Math.floor((s % 3600) / 60),
  });
}

/** Minutes and seconds: 9:41 */
export function countdown(ms: number): string {
  const s = Math.max(0, Math.ceil(ms / 1000));
  return `${Math.floor(s / 60)}:${String(s % 60).padStart(2, '0')}`;
}

export function count(n: number): string {
  return compact().format(n);
}

export function bytes(n: number): string {
  if (n < 1024) return singleBytes().format(n);
  return n < 1024 * 1024
    ? kilobytes().format(n / 1024) : megabytes().format(n / 1024 / 1024);
}

/** n: 50 for one half. */
export function percent(n: number): string {
  return shares().format(n / 100);
}

/** Today, Yesterday, or a date. */
export function dayOf(at: number, now = Date.now()): string {
  const day = (x: number) => new Date(x).setHours(0, 0, 0, 0);
  const ago = Math.round((day(now) - day(at)) / 86_400_000);
  if (ago <= 0) return t('day.today');
  if (ago === 1) return t('day.yesterday');
  return (ago > 300 ? daysOfYears() : days()).format(at);
}

export function clock(at: number): string {
  return times().format(at);
}

/** An unguessable id: 128 random bits. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
}

export function firstLine(text: string, max = 80): string {
  const line = text.trim().split('\n', 1)[0] ?? '';
  return line.length > max ? `${line.slice(0, max - 1)}…` : line;
}
