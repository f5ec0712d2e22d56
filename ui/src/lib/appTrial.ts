// appTrial - remembers in the tab which apps are shown. If the browser ends the tab
// meanwhile, they are not shown again by themselves when it is loaded again: an app
// could otherwise keep a person out of the conversation. A browser ends a tab whose
// app tries WebRTC against its policy, or takes all memory.

const KEY = 'mo.apps';
const MAX = 50; // apps that are remembered

function read(): string[] {
  try {
    const v: unknown = JSON.parse(sessionStorage.getItem(KEY) ?? '[]');
    return Array.isArray(v) ? v.filter((x) => typeof x === 'string') : [];
  } catch {
    return [];
  }
}
function write(ids: Iterable<string>): void {
  try {
    sessionStorage.setItem(KEY, JSON.stringify([...ids].slice(-MAX)));
  } catch {
    // Without storage nothing is remembered.
  }
}

const left = new Set(read()); // by a tab that did not end by itself
const shown = new Set<string>();
write(shown);
addEventListener('pagehide', () => write([]));
addEventListener('pageshow', () => write(shown));

/** True if the tab ended while this app was shown; once. */
export const endedTab = (id: string): boolean => left.delete(id);
export function beginApp(id: string): void {
  shown.add(id);
  write(shown);
}
export function endApp(id: string): void {
  shown.delete(id);
  write(shown);
}
