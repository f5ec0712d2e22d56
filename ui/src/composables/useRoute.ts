// useRoute - the view named by the URL. So few views need no router library.

import { readonly, ref } from 'vue';

export type View =
  | 'chat' | 'servers' | 'views' | 'router' | 'approvals' | 'overview' | 'settings' | 'missing';

export interface Route {
  view: View;
  session: string; // of the chat view; empty: a new one
  server: string; // selected server; empty: none
  tool: string; // selected tool; empty: none
}

const SESSION = /^\/s\/([A-Za-z0-9_-]{1,64})\/?$/;
const SERVER = /^\/servers\/([^/]+)(?:\/tools\/([^/]+))?\/?$/;

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function readPath(path: string): Route {
  const route: Route = { view: 'chat', session: '', server: '', tool: '' };
  const session = SESSION.exec(path);
  const server = SERVER.exec(path);
  if (session) return { ...route, session: session[1] ?? '' };
  if (server)
    return {
      ...route, view: 'servers', server: decoded(server[1] ?? ''),
      tool: decoded(server[2] ?? ''),
    };
  const plain = path.replace(/\/+$/, '');
  for (const view of ['servers', 'views', 'router', 'approvals', 'overview', 'settings'] as const)
    if (plain === `/${view}`) return { ...route, view };
  if (plain === '/connections') return { ...route, view: 'settings' };
  return plain === '' || plain === '/index.html' ? route : { ...route, view: 'missing' };
}

export const serverPath = (name: string): string =>
  `/servers/${encodeURIComponent(name)}`;
export const toolPath = (server: string, tool: string): string =>
  `${serverPath(server)}/tools/${encodeURIComponent(tool)}`;
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

/** Click handler for links; modified clicks are left to the browser. */
export function follow(e: MouseEvent, path: string): void {
  if (e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  go(path);
}

export function useRoute() {
  return readonly(route);
}
