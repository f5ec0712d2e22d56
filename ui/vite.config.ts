import { createHash } from 'node:crypto';
import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import tailwind from '@tailwindcss/vite';
import vue from '@vitejs/plugin-vue';
import { build, defineConfig, type Plugin } from 'vite';

const PACKED = /\.(html|js|css|svg)$/;

// bytes; above, there is no brotli file: gzip must do, but for the first load
const LARGE = 150 * 1024;
const FIRST = 'first', THREAD = 'thread';

/** Writes a gzip and a brotli file beside each file, at the highest level. */
function pack(dir: string): void {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) pack(path);
    else if (PACKED.test(name)) {
      const data = readFileSync(path);
      writeFileSync(`${path}.gz`, gzipSync(data, { level: 9 }));
      if (data.length <= LARGE || name.startsWith(`${FIRST}-`)) writeFileSync(
        `${path}.br`,
        brotliCompressSync(data, {
          params: { [constants.BROTLI_PARAM_QUALITY]: 11 },
        }),
      );
    }
  }
}

/** Marks the scripts of the first load for eager compilation, which runs beside
 *  the main thread instead of on it when a function is first called. */
function compileFirst(dir: string): void {
  const html = readFileSync(join(dir, 'index.html'), 'utf8');
  const assets = join(dir, 'assets');
  for (const name of readdirSync(assets)) {
    const isFirst = html.includes(name) || name.startsWith(`${THREAD}-`);
    if (!isFirst || !name.endsWith('.js')) continue;
    const path = join(assets, name);
    writeFileSync(path, `//# allFunctionsCalledOnLoad\n${readFileSync(path, 'utf8')}`);
  }
}

function packed(): Plugin {
  let dir = '';
  return {
    name: 'packed',
    apply: 'build',
    configResolved: (config) => {
      dir = config.build.outDir;
    },
    closeBundle: () => {
      compileFirst(dir);
      pack(dir);
    },
  };
}

/** The npm package that a module belongs to, or nothing: its path below
 *  node_modules, as in the lock file. Compilers call theirs \0vite/NAME. */
function packageOf(id: string): string | undefined {
  return (/.*?\/node_modules\/((?:.*\/node_modules\/)?(?:@[^/]+\/)?[^/]+)\//.exec(`/${id}`)
    ?? /^\0((?:@[^/]+\/)?[\w.-]+)\//.exec(id))?.[1];
}

// The diagrams that the page draws. The others would double its size; they are
// shown as source.
const DIAGRAMS = /(flow|sequence|class|state|er|gantt|pie|gitGraph|timeline|journey|quadrant|xychart)(Diagram|-definition)/;
const HEAVY = /^(katex|elkjs.*|cytoscape(-.*)?)$/;
const LEFT_OUT = '\0left-out';

/** Mermaid without the diagrams that are not listed. */
function fewerDiagrams(): Plugin {
  return {
    name: 'fewer-diagrams',
    enforce: 'pre',
    resolveId: (id) =>
      (HEAVY.test(id) || (/mermaid\.core\/.*(diagram-|Diagram-|definition-|cose-|elk-|swimlanes-|bpmnIcons-)/.test(id) && !DIAGRAMS.test(id))
        ? LEFT_OUT : null),
    load: (id) => (id === LEFT_OUT
      ? 'export default null; export const diagram = { get db() { throw new Error("this kind of diagram is not supported"); } };'
      : null),
  };
}

/** The document of diagrams, with its only script inside: a sandboxed frame has
 *  no origin and can load nothing. Only the script with this checksum runs. */
function diagramFrame(found: Set<string>): Plugin {
  return {
    name: 'diagram-frame',
    apply: 'build',
    enforce: 'pre',
    async generateBundle() {
      const made = await build({
        configFile: false, publicDir: false, logLevel: 'error',
        plugins: [fewerDiagrams()],
        build: {
          write: false, target: 'es2022', modulePreload: false, reportCompressedSize: false,
          rolldownOptions: {
            input: 'src/diagram/main.ts',
            output: { format: 'iife', codeSplitting: false },
            checks: { emptyImportMeta: false, pluginTimings: false },
          },
        },
      });
      const chunk = [made].flat().flatMap((m) => ('output' in m ? m.output : []))[0];
      if (chunk?.type !== 'chunk') throw new Error('no script for diagrams');
      for (const [id, m] of Object.entries(chunk.modules)) {
        const name = m.renderedLength > 0 ? packageOf(id) : undefined;
        if (name) found.add(name);
      }
      const script = chunk.code.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
      const sum = createHash('sha256').update(script).digest('base64');
      this.emitFile({
        type: 'asset',
        fileName: 'diagram.html',
        source: '<!doctype html><html lang="en"><meta charset="utf-8"><title>Diagram</title>'
          + `<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'sha256-${sum}'; style-src 'unsafe-inline'">`
          + '<meta name="color-scheme" content="light dark">'
          + '<style>body{margin:0;overflow:hidden;font-family:system-ui,sans-serif}svg{display:block;margin:0 auto;max-width:100%}</style>'
          + `<body><script>${script}</script>`,
      });
    },
  };
}

/** Writes dist.packages beside the page: the npm packages with code, styles or
 *  fonts in it, a name a line. scripts/sbom reads it. */
function listPackages(also: Set<string>): Plugin {
  const styles = new Set<string>();
  let file = '';
  return {
    name: 'list-packages',
    apply: 'build',
    enforce: 'pre', // before the styles are compiled
    configResolved: (config) => {
      file = `${config.build.outDir}.packages`;
    },
    // `@import` is resolved by the compiler of styles; no module remains of it.
    transform(code, id) {
      if (!/\.css(\?|$)/.test(id)) return;
      for (const [, name] of code.matchAll(/@import\s+["']([^."'/][^"']*)["']/g))
        styles.add(name.startsWith('@') ? name.split('/', 2).join('/') : name.split('/')[0]);
    },
    generateBundle(_options, bundle) {
      const found = new Set([...styles, ...also]);
      for (const part of Object.values(bundle)) {
        const files = part.type === 'asset'
          ? part.originalFileNames
          : Object.entries(part.modules).filter(([, m]) => m.renderedLength > 0).map(([id]) => id);
        for (const name of files.map(packageOf)) if (name) found.add(name);
      }
      writeFileSync(file, [...found].sort().map((name) => `${name}\n`).join(''));
    },
  };
}

/** Preloads the font of the page, so that text is laid out only once. That of code
 *  is loaded with the first code. */
function fontFirst(): Plugin {
  return {
    name: 'font-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle }) => Object.keys(bundle ?? {})
        .filter((name) => /inter.*\.woff2$/.test(name))
        .map((name) => ({
          tag: 'link',
          attrs: {
            rel: 'preload', href: `/${name}`, as: 'font', type: 'font/woff2',
            crossorigin: true,
          },
          injectTo: 'head',
        })),
    },
  };
}

/** One file for a module and all that it needs: each file of its own costs a
 *  request, and the first load would have thirty. */
function oneFile(name: string, path: string): { name: (id: string, modules: ModuleInfos) => string | null } {
  const needed = new Set<string>();
  const collect = (id: string, modules: ModuleInfos): void => {
    if (needed.has(id)) return;
    needed.add(id);
    for (const next of modules.getModuleInfo(id)?.importedIds ?? []) collect(next, modules);
  };
  return {
    name: (id, modules) => {
      if (!needed.size) collect(resolve(import.meta.dirname, path), modules);
      return needed.has(id) ? name : null;
    },
  };
}
type ModuleInfos = { getModuleInfo: (id: string) => { importedIds: string[] } | null };

const inDiagrams = new Set<string>();

export default defineConfig({
  plugins: [diagramFrame(inDiagrams), listPackages(inDiagrams), vue(), tailwind(), fontFirst(), packed()],
  define: {
    __VUE_OPTIONS_API__: 'false',
    __VUE_PROD_DEVTOOLS__: 'false',
  },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    rolldownOptions: {
      checks: { pluginTimings: false }, // diagrams take seconds
      output: { codeSplitting: { groups: [oneFile(FIRST, 'src/main.ts'), oneFile(THREAD, 'src/components/chat/Thread.vue')] } },
    },
  },
  server: {
    // `npm run dev` beside a running server.
    proxy: {
      '/socket.io': { target: 'http://localhost:3000', ws: true },
      '/api': 'http://localhost:3000',
      '/readyz': 'http://localhost:3000',
    },
  },
});
