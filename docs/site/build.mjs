// Builds the documents as static pages: `scripts/docs` calls it.
//
//   build.mjs OUT
//
// pages.json gives the sections and their pages. A page is docs/NAME.md, a file
// of the top folder (SECURITY, CHANGES), or made from a table (reference.mjs).
// Every link is resolved: one to a page that is not here becomes plain text, one
// to an anchor that is not there ends the build.
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { constants, crc32, deflateRawSync, gzipSync } from 'node:zlib';

import { Marked } from '../../ui/node_modules/marked/lib/marked.esm.js';
import { api, commands } from './reference.mjs';
import { buildIndex } from './words.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const top = resolve(here, '../..');
const out = resolve(process.argv[2]);
const made = { commands, api };
const { sections, leftOut } = JSON.parse(readFileSync(join(here, 'pages.json'), 'utf8'));

const fail = (why) => {
  console.error(`docs: ${why}`);
  process.exit(1);
};
const escape = (s) => s.replace(/[&<>"]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' })[c]);

/** The address of a page by the name in pages.json. */
const address = (name) => (name === 'README' ? '/docs' : `/docs/${name.toLowerCase()}`);

/** The anchor of a heading, as code hosts make it from the same Markdown. */
const slug = (text) => text.trim().toLowerCase().replace(/[^\p{L}\p{N}\s_-]/gu, '').replace(/\s/g, '-');

// --- reading ---

function source(name) {
  if (made[name]) return { path: join(top, 'docs', `${name}.md`), text: made[name](top) };
  const path = ['docs', '.'].map((d) => join(top, d, `${name}.md`)).find((p) => existsSync(p));
  if (!path) fail(`pages.json names ${name}, and there is no such file`);
  return { path, text: readFileSync(path, 'utf8') };
}

const pages = sections.flatMap((s) => s.pages.map(([name, title]) =>
  ({ name, title, section: s.title, url: address(name), ...source(name) })));
const byPath = new Map(pages.map((p) => [p.path, p]));

for (const file of readdirSync(join(top, 'docs')).filter((f) => f.endsWith('.md'))) {
  const name = file.slice(0, -3);
  if (!pages.some((p) => p.name === name) && !leftOut.includes(name))
    fail(`docs/${file} is not in docs/site/pages.json`);
}

/** The words of a token without marks. */
const plain = (tokens) => (tokens ?? []).map((t) =>
  (t.tokens ? plain(t.tokens) : t.type === 'br' ? ' ' : t.type === 'image' ? '' : (t.text ?? ''))).join('');

/** A list of links to headings of its own page; each page gets one made. */
const isContents = (t) => t.type === 'list' && t.items.every((i) => {
  const [only, more] = (i.tokens[0]?.tokens ?? []);
  return only?.type === 'link' && !more && only.href.startsWith('#');
});

function read(page) {
  const tokens = new Marked().lexer(page.text).filter((t) => !isContents(t));
  const seen = new Map();
  page.tokens = tokens;
  page.headings = tokens.filter((t) => t.type === 'heading').map((t) => {
    const text = plain(t.tokens);
    const n = seen.get(slug(text)) ?? 0;
    seen.set(slug(text), n + 1);
    return Object.assign(t, { words: text, id: n ? `${slug(text)}-${n}` : slug(text) });
  });
  if (page.headings[0]?.depth !== 1) fail(`${page.name}: the first heading must be the title`);
  page.about = plain(tokens.find((t) => t.type === 'paragraph')?.tokens).replace(/\s+/g, ' ');
}
pages.forEach(read);

// --- links ---

/** The address on the site, or null if it is not there. */
function resolveLink(page, href) {
  if (/^[a-z]+:/.test(href)) return href;
  const [path, anchor] = href.split('#');
  const to = path === '' ? page : byPath.get(resolve(dirname(page.path), path));
  if (!to) return null;
  if (anchor && !to.headings.some((h) => h.id === anchor))
    fail(`${relative(top, page.path)}: ${href}: there is no such heading`);
  return (path === '' ? '' : to.url) + (anchor ? `#${anchor}` : '');
}

/** A link that shows the name of a file shows the title of its page instead. */
function fileTitle(page, href, text) {
  const [path, anchor] = href.split('#');
  const to = path && byPath.get(resolve(dirname(page.path), path));
  if (!to || !/^[\w./-]+\.md$/.test(text)) return null;
  const heading = to.headings.find((h) => h.id === anchor)?.words;
  return escape(heading ? `${to.title}: ${heading}` : to.title);
}

// --- rendering ---

function renderer(page) {
  return {
    heading({ tokens, depth, id, words }) {
      const text = this.parser.parseInline(tokens);
      if (depth === 1) return `<h1>${text}</h1>\n`;
      return `<h${depth} id="${id}">${text}<a class="anchor" href="#${id}" aria-label="Link to: ${escape(words)}">#</a></h${depth}>\n`;
    },
    link({ href, tokens, raw }) {
      const text = this.parser.parseInline(tokens);
      if (!raw.startsWith('[')) return text; // an address that is only mentioned
      const to = resolveLink(page, href);
      return to ? `<a href="${escape(to)}">${fileTitle(page, href, plain(tokens)) ?? text}</a>` : text;
    },
    image: () => '', // pictures are not carried
    html({ text }) {
      if (!/^\s*<!--[^]*-->\s*$/.test(text)) fail(`${page.name}: HTML is not allowed: ${text}`);
      return '';
    },
    code: ({ text }) => `<pre tabindex="0"><code>${escape(text)}</code></pre>\n`,
    table({ header, rows }) {
      const cell = (c, tag) => `<${tag}>${this.parser.parseInline(c.tokens)}</${tag}>`;
      // A heading without text is none.
      const head = header.some((c) => c.text)
        ? `<thead><tr>${header.map((c) => cell(c, c.text ? 'th' : 'td')).join('')}</tr></thead>` : '';
      return `<div class="table" tabindex="0"><table>${head}<tbody>\n${rows.map((r) => `<tr>${r.map((c) => cell(c, 'td')).join('')}</tr>\n`).join('')}</tbody></table></div>\n`;
    },
  };
}

const contents = (page) => {
  const items = page.headings.filter((h) => h.depth === 2 || (h.depth === 3 && page.headings.length < 40));
  if (items.length < 2) return '';
  return `<nav class="toc" aria-labelledby="toc"><p id="toc">On this page</p><ul>\n${items.map((h) =>
    `<li${h.depth === 3 ? ' class="sub"' : ''}><a href="#${h.id}">${escape(h.words)}</a></li>\n`).join('')}</ul></nav>\n`;
};

/** The same on every page, so the program has it once; search.js marks the page. */
const menu = () => sections.map((s) => `<h2>${s.title}</h2><ul>\n${s.pages.map(([name, title]) =>
  `<li><a href="${address(name)}">${escape(title)}</a></li>\n`).join('')}</ul>`).join('\n');

function beside(page) {
  const at = pages.indexOf(page);
  const link = (p, rel, says) => (p ? `<a rel="${rel}" href="${p.url}"><span>${says}</span> ${escape(p.title)}</a>` : '');
  return `<nav class="beside" aria-label="Neighbouring pages">${link(pages[at - 1], 'prev', 'Before:')}${link(pages[at + 1], 'next', 'Next:')}</nav>`;
}

const frame = readFileSync(join(here, 'page.html'), 'utf8');
// The parts that all pages have: start, middle and end.
const common = [[0, '<title>'], ['</head>', '{{section}}'], ['</main>', null]].map(([from, to]) =>
  frame.slice(from && frame.indexOf(from), to ? frame.indexOf(to) : undefined));

const fill = (values) => frame.replace(/\{\{(\w+)\}\}/g, (_, key) => values[key]);

/** The title stands before the table of contents. */
function split(html) {
  const end = html.indexOf('</h1>\n') + '</h1>\n'.length;
  return { head: html.slice(0, end), body: html.slice(end) };
}

const render = (page) => fill({
  title: page.name === 'README' ? 'Documentation' : escape(page.headings[0].words),
  about: escape(page.about.slice(0, 200)),
  section: page.name === 'README' ? '' : `<p class="section">${page.section}</p>`,
  toc: contents(page),
  ...split(new Marked({ renderer: renderer(page) }).parser(page.tokens)),
  beside: beside(page),
  menu: menu(),
});

const notFound = () => fill({
  title: 'Page not found', head: '<h1>Page not found</h1>\n', about: '', section: '', toc: '', beside: '', menu: menu(),
  body: `<p>There is no such page in the documentation of this version. Search for a word above, choose a page of the contents, or begin here:</p>
<ul><li><a href="/docs">Overview</a></li><li><a href="/docs/start">Start in a minute</a></li>
<li><a href="/docs/connect">Connect a client</a></li><li><a href="/docs/troubleshooting">Troubleshooting by symptom</a></li></ul>`,
});

// --- writing ---

common[2] = common[2].replace('{{menu}}', menu());
const squeeze = (text, finishFlush = constants.Z_FULL_FLUSH) => deflateRawSync(text, { level: 9, memLevel: 9, finishFlush });

/** The two parts of a page that are its own; the second one is followed by the
 *  trailer of the gzip file that all five parts make together. */
function pack(text) {
  const [start, middle, end] = common;
  const at = text.indexOf(middle);
  const trailer = Buffer.alloc(8);
  trailer.writeUInt32LE(crc32(text), 0);
  trailer.writeUInt32LE(Buffer.byteLength(text), 4);
  return [squeeze(text.slice(start.length, at)),
    Buffer.concat([squeeze(text.slice(at + middle.length, -end.length)), trailer])];
}

rmSync(out, { recursive: true, force: true });
mkdirSync(out, { recursive: true });
function writePage(name, text) {
  if (!text.startsWith(common[0]) || !text.endsWith(common[2]) || text.split(common[1]).length !== 2)
    fail(`${name}: the parts of every page are not there`);
  writeFileSync(join(out, `${name}.html`), text);
  pack(text).forEach((part, i) => writeFileSync(join(out, `${name}.html.${i + 1}`), part));
}
function write(name, text) {
  writeFileSync(join(out, name), text);
  writeFileSync(join(out, `${name}.gz`), gzipSync(text, { level: 9, memLevel: 9 }));
}
const HEAD = Buffer.from([31, 139, 8, 0, 0, 0, 0, 0, 2, 255]); // of every gzip file
writeFileSync(join(out, 'common.1'), Buffer.concat([HEAD, squeeze(common[0])]));
writeFileSync(join(out, 'common.2'), squeeze(common[1]));
writeFileSync(join(out, 'common.3'), squeeze(common[2], constants.Z_FINISH));
for (const page of pages)
  writePage(page.name === 'README' ? 'index' : page.name.toLowerCase(), render(page));
writePage('404', notFound());
for (const name of ['style.css', 'search.js']) write(name, readFileSync(join(here, name), 'utf8'));
write('words.json', JSON.stringify(buildIndex(pages, plain)));
