// The document of a diagram: draws Mermaid in a sandboxed frame.
//
// It has no origin, no network and no other file (docs/page.md). The page sends the
// source of one diagram and the theme; it answers with the height, or why it
// failed. Links inside a diagram lead nowhere.

import mermaid from 'mermaid';

const box = document.createElement('main');
document.body.append(box);

const tell = (message: Record<string, unknown>) => parent.postMessage(message, '*');

function measure(): void {
  const svg = box.querySelector('svg');
  if (svg) tell({ kind: 'drawn', height: Math.ceil(svg.getBoundingClientRect().height) });
}

async function draw(code: string, isDark: boolean): Promise<void> {
  document.documentElement.style.colorScheme = isDark ? 'dark' : 'light';
  mermaid.initialize({
    startOnLoad: false, securityLevel: 'strict', suppressErrorRendering: true,
    look: 'classic', theme: isDark ? 'dark' : 'neutral', darkMode: isDark,
    fontFamily: 'system-ui, sans-serif', maxTextSize: 50_000, maxEdges: 500,
    layout: 'dagre', // the only one that is included; a diagram cannot choose
    secure: ['secure', 'securityLevel', 'startOnLoad', 'maxTextSize', 'maxEdges', 'suppressErrorRendering', 'layout'],
  });
  const { svg } = await mermaid.render('diagram', code);
  box.replaceChildren(document.createRange().createContextualFragment(svg));
  for (const a of box.querySelectorAll('a')) {
    a.removeAttribute('href');
    a.removeAttribute('xlink:href');
  }
  measure();
}

window.addEventListener('message', (e: MessageEvent<unknown>) => {
  const { data } = e;
  if (e.source !== parent || typeof data !== 'object' || data === null) return;
  if (!('code' in data) || typeof data.code !== 'string' || !('isDark' in data)) return;
  draw(data.code, data.isDark === true).catch((why: unknown) =>
    tell({ kind: 'failed', why: why instanceof Error ? why.message : String(why) }));
});
new ResizeObserver(measure).observe(box);
tell({ kind: 'ready' });
