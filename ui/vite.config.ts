import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';

import tailwind from '@tailwindcss/vite';
import vue from '@vitejs/plugin-vue';
import { defineConfig, type Plugin } from 'vite';

const PACKED = /\.(html|js|css|svg)$/;

/** Writes a gzip and a brotli file beside each file, at the highest level. */
function pack(dir: string): void {
  for (const name of readdirSync(dir)) {
    const path = join(dir, name);
    if (statSync(path).isDirectory()) pack(path);
    else if (PACKED.test(name)) {
      const data = readFileSync(path);
      writeFileSync(`${path}.gz`, gzipSync(data, { level: 9 }));
      writeFileSync(
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
    const isFirst = html.includes(name) || name.startsWith('Thread-');
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

/** The npm package that a module belongs to, or nothing. Compilers call theirs
 *  \0vite/NAME. */
function packageOf(id: string): string | undefined {
  return (/.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(`/${id}`)
    ?? /^\0((?:@[^/]+\/)?[\w.-]+)\//.exec(id))?.[1];
}

/** Writes dist.packages beside the page: the npm packages with code, styles or
 *  fonts in it, a name a line. scripts/sbom reads it. */
function listPackages(): Plugin {
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
      const found = new Set(styles);
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

/** Preloads the fonts with the page, so that text is laid out only once. */
function fontsFirst(): Plugin {
  return {
    name: 'fonts-first',
    apply: 'build',
    transformIndexHtml: {
      order: 'post',
      handler: (_html, { bundle }) => Object.keys(bundle ?? {})
        .filter((name) => name.endsWith('.woff2'))
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

export default defineConfig({
  plugins: [listPackages(), vue(), tailwind(), fontsFirst(), packed()],
  define: {
    __VUE_OPTIONS_API__: 'false',
    __VUE_PROD_DEVTOOLS__: 'false',
  },
  build: {
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
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
