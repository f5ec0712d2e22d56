// The published example servers of MCP Apps, their apps rendered in Chromium: each
// directly, and behind a gateway that has the server twice, so that all its names and
// URIs collide (make long). MO_SHOTS=DIR keeps pictures.
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';

import { appOf, close, inside, open, shoot } from '../browser/apps_kit.mjs';
import { Bench, lacking } from '../browser/kit.mjs';
import { claude } from '../fakes/claude.mjs';
import { until } from '../it/server.mjs';
import { Place } from '../lib/gateway.mjs';

const skip = await lacking();
const here = fileURLToPath(new URL('./apps/node_modules/@modelcontextprotocol/', import.meta.url));
const AT_ONCE = 4; // examples on one server: each runs three times

/** A document of one page with a line of text. */
function pdf(text) {
  const page = `BT /F1 24 Tf 40 100 Td (${text}) Tj ET`;
  const parts = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 400 200] /Contents 4 0 R /Resources << /Font << /F1 5 0 R >> >> >>',
    `<< /Length ${page.length} >>\nstream\n${page}\nendstream`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>',
  ];
  let out = '%PDF-1.4\n';
  const at = parts.map((p, i) => {
    const from = out.length;
    out += `${i + 1} 0 obj\n${p}\nendobj\n`;
    return from;
  });
  const table = out.length;
  out += `xref\n0 6\n0000000000 65535 f \n${at.map((n) => `${String(n).padStart(10, '0')} 00000 n \n`).join('')}`;
  return `${out}trailer << /Size 6 /Root 1 0 R >>\nstartxref\n${table}\n%%EOF\n`;
}

const place = new Place({});
const document = join(place.dir, 'letter.pdf');
writeFileSync(document, pdf('Dear reader'));
after(() => place.close());

const SHADER = 'void mainImage(out vec4 c, in vec2 p) { c = vec4(p / iResolution.xy, 0.5, 1.0); }';
const MELODY = 'X:1\nT:Scale\nM:4/4\nL:1/4\nK:C\nC D E F | G A B c |';

const time = (app) => app.getByText(/Server Time/i);
/** [server, tool, arguments, what its app shows, more arguments of its command, its
 *  state] */
const EXAMPLES = [
  ['basic-preact', 'get-time', {}, time],
  ['basic-react', 'get-time', {}, time],
  ['basic-solid', 'get-time', {}, time],
  ['basic-svelte', 'get-time', {}, time],
  ['basic-vanillajs', 'get-time', {}, time],
  ['basic-vue', 'get-time', {}, time],
  ['budget-allocator', 'get-budget-data', {}, (app) => app.getByText(/Budget/i)],
  ['cohort-heatmap', 'get-cohort-data', {}, (app) => app.getByText('M11')],
  ['customer-segmentation', 'get-customer-data', {}, (app) => app.locator('canvas')],
  ['debug', 'debug-tool', {}, (app) => app.getByText('Callback Status')],
  // It needs a library from the net, and is not ready without it.
  ['map', 'show-map', { west: 10, south: 59, east: 11, north: 60 }, (app) => app.getByText(/Failed to load CesiumJS/), [], 'waiting'],
  ['pdf', 'display_pdf', { url: document }, (app) => app.locator('canvas'), [document]],
  ['scenario-modeler', 'get-scenario-data', {}, (app) => app.locator('canvas')],
  ['shadertoy', 'render-shadertoy', { fragmentShader: SHADER }, (app) => app.locator('canvas')],
  ['sheet-music', 'play-sheet-music', { abcNotation: MELODY }, (app) => app.locator('svg path')],
  ['system-monitor', 'get-system-info', {}, (app) => app.locator('canvas')],
  ['threejs', 'show_threejs_scene', {}, (app) => app.locator('canvas')],
  ['transcript', 'transcribe', {}, (app) => app.getByText('Your speech will appear here')],
  ['video-resource', 'play_video', {}, (app) => app.locator('video, :text("Fetching video")')],
  ['wiki-explorer', 'get-first-degree-links', {}, (app) => app.locator('canvas')],
];

const server = ([name, , , , more = []]) => ({
  command: process.execPath, args: [join(here, `server-${name}`, 'dist/index.js'), '--stdio', ...more],
});

for (let from = 0; from < EXAMPLES.length; from += AT_ONCE) {
  const some = EXAMPLES.slice(from, from + AT_ONCE);
  describe(`apps of ${some[0][0]} to ${some.at(-1)[0]}`, { skip }, () => {
    let bench, twins;
    before(async () => {
      twins = new Place(Object.fromEntries(some.flatMap((x) => [[x[0], server(x)], [`${x[0]}2`, server(x)]])));
      const { command, args, env } = twins.command();
      bench = await Bench.withServers(await claude({ key: 'sk-ant-0123456789' }), {
        ...Object.fromEntries(some.map((x) => [x[0], server(x)])), gw: { command, args, env },
      });
    });
    after(async () => {
      await bench?.close();
      twins?.close();
    });

    for (const [name, tool, args, shows, , state = 'shown'] of some)
      for (const [how, full] of [['directly', `${name}_${tool}`], ['through the gateway', `gw_${name}2_${tool}`]])
        test(`${name} ${how}`, async () => {
          const page = await open(bench, {}, [{ name: full, args }]);
          await shows(inside(page)).first().waitFor();
          await until(async () => (await appOf(page).getAttribute('data-app-state')) === state, state);
          await shoot(page, `app-${name}-${how.split(' ').at(-1)}`);
          await close(page);
        });
  });
}
