// Search in the documents. Pages work without it. words.json (made by words.mjs)
// is loaded at the first use of the field.
(() => {
  'use strict';
  const MOST = 12; // results shown

  // The theme that was chosen on the page, before anything is painted.
  try {
    const theme = localStorage.getItem('mo.theme');
    if (theme === 'dark' || theme === 'light') document.documentElement.dataset.theme = theme;
  } catch { /* storage is refused: the system decides */ }

  let index = null;
  async function load() {
    index ??= fetch('/docs/words.json').then((r) => {
      if (!r.ok) throw new Error(String(r.status));
      return r.json();
    });
    try {
      return await index;
    } catch (e) {
      index = null; // the next key tries again
      throw e;
    }
  }

  const stem = (w) => (w.length > 3 && /[^s]s$/.test(w) ? w.slice(0, -1) : w);

  /** Sections with a word that begins so, and how well it fits. */
  function sectionsOf({ words }, start) {
    const found = new Map();
    for (const [word, list] of Object.entries(words)) {
      if (!word.startsWith(start)) continue;
      const steps = list.split(' ');
      const weight = (word === start ? 2 : 1) / Math.log2(2 + steps.length);
      let at = 0;
      for (const step of steps) {
        at += parseInt(step, 36);
        found.set(at, Math.max(found.get(at) ?? 0, weight));
      }
    }
    return found;
  }

  /** Sections that have every word, the best first. */
  function search(data, text) {
    const asked = text.toLowerCase().match(/[\p{L}\p{N}]+(?:[._-][\p{L}\p{N}]+)*/gu)?.map(stem) ?? [];
    const known = asked.map((w) => sectionsOf(data, w)).filter((m, i) => m.size > 0 || asked[i].length > 3);
    if (!known.length) return [];
    const hits = [];
    for (const at of known[0].keys()) {
      if (!known.every((m) => m.has(at))) continue;
      const [page, , heading = ''] = data.sections[at];
      const title = data.pages[page][1].toLowerCase();
      let score = known.reduce((sum, m) => sum + m.get(at), 0);
      for (const w of asked) {
        if (title.includes(w)) score += heading ? 1 : 2;
        if (heading.toLowerCase().includes(w)) score += 1.5;
      }
      hits.push({ at, score });
    }
    return hits.sort((a, b) => b.score - a.score || a.at - b.at);
  }

  function row({ pages, sections }, at) {
    const [page, anchor, heading] = sections[at];
    const link = document.createElement('a');
    const small = document.createElement('small');
    link.href = pages[page][0] + (anchor ? `#${anchor}` : '');
    link.textContent = heading ?? pages[page][1];
    small.textContent = heading ? pages[page][1] : 'Page';
    link.append(small);
    const item = document.createElement('li');
    item.append(link);
    return item;
  }

  /** Marks the page in the menu, and scrolls the menu there. */
  function markPage() {
    const menu = document.getElementById('menu');
    const link = menu.querySelector(`a[href="${location.pathname.replace(/\/$/, '')}"]`);
    if (!link) return;
    link.setAttribute('aria-current', 'page');
    menu.scrollTop = link.offsetTop - menu.clientHeight / 2;
  }

  function start() {
    const form = document.querySelector('form[role=search]');
    const input = form.querySelector('input');
    const results = document.getElementById('results');
    const status = document.getElementById('found');
    const list = results.querySelector('ul');
    const links = () => [...list.querySelectorAll('a')];
    const hide = () => { results.hidden = true; };

    async function show() {
      const text = input.value.trim();
      if (!text) {
        hide();
        return;
      }
      let hits = [], says;
      try {
        const data = await load();
        if (text !== input.value.trim()) return; // a later key asks again
        hits = search(data, text);
        says = !hits.length ? 'Nothing found. Try fewer or other words.'
          : hits.length > MOST ? `${hits.length} results, the best ${MOST} are shown` : `${hits.length} result${hits.length > 1 ? 's' : ''}`;
        list.replaceChildren(...hits.slice(0, MOST).map((h) => row(data, h.at)));
      } catch {
        list.replaceChildren();
        says = 'The search index cannot be loaded. Try again.';
      }
      results.hidden = false;
      status.textContent = says;
    }

    function move(by) {
      const all = links();
      const to = all.indexOf(document.activeElement) + by;
      (to < 0 ? input : all[Math.min(to, all.length - 1)])?.focus();
    }

    markPage();
    form.hidden = false;
    form.addEventListener('submit', (e) => {
      e.preventDefault();
      links()[0]?.click();
    });
    input.addEventListener('input', () => void show());
    input.addEventListener('focus', () => {
      if (input.value.trim() && results.hidden) void show();
    });
    form.addEventListener('keydown', (e) => {
      if (e.key === 'ArrowDown' || e.key === 'ArrowUp') {
        if (results.hidden) return;
        e.preventDefault();
        move(e.key === 'ArrowDown' ? 1 : -1);
      } else if (e.key === 'Escape' && !results.hidden) {
        e.preventDefault();
        input.focus();
        hide();
      }
    });
    form.addEventListener('focusout', (e) => {
      if (e.relatedTarget && !form.contains(e.relatedTarget)) hide();
    });
    list.addEventListener('click', hide);
    document.addEventListener('click', (e) => {
      if (!form.contains(e.target)) hide();
    });
    document.addEventListener('keydown', (e) => {
      if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || form.contains(document.activeElement)) return;
      e.preventDefault();
      input.focus();
    });
  }

  document.addEventListener('DOMContentLoaded', start);
})();
