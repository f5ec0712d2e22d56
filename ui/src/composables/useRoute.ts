// useRoute - which view the address names. Four views need no router.

import { readonly, ref } from 'vue';

export type View = 'chat' | 'overview' | 'settings';

export interface Route {
  view: View;
  session: string; // of the chat; empty: a new one
}

const SESSION = /^\/s\/([A-Za-z0-9_-]{1,64})\/?$/;

export function readPath(path: string): Route {
  const m = SESSION.exec(path);
  if (m) return { view: 'chat', session: m[1] ?? '' };
  if (path === '/overview') return { view: 'overview', session: '' };
  if (path === '/settings') return { view: 'settings', session: '' };
  return { view: 'chat', session: '' };
}

export const pathOf = (session: string): string => `/s/${session}`;

const route = ref(readPath(location.pathname));

window.addEventListener('popstate', () => {
  route.value = readPath(location.pathname);
});

export function go(path: string, replace = false): void {
  if (path !== location.pathname)
    history[replace ? 'replaceState' : 'pushState'](null, '', path);
  route.value = readPath(path);
}

export function useRoute() {
  return readonly(route);
}
