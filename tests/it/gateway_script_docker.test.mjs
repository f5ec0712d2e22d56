// Scripts of the gateway's clients in containers: a container for each call, of
// the image that is configured; an image without an interpreter says so.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { dockerd, noDocker } from '../lib/dockerd.mjs';
import { loadPython } from '../lib/egress.mjs';
import { Place, published } from '../lib/gateway.mjs';
import { until } from './server.mjs';

const TAG = 'script-python:1';
const python = (code) => ({ language: 'python', code: `import tools\n${code}` });

describe('in containers', { skip: noDocker }, () => {
  let engine;
  before(async () => {
    engine = await dockerd();
    await loadPython(engine, TAG);
  });
  after(() => engine?.cleanUp());

  /** A client whose scripts run in containers of that image. */
  async function connect(t, image) {
    const place = new Place({});
    place.files = join(place.dir, 'files');
    mkdirSync(place.files);
    place.write({ files: published('server-filesystem', place.files) }, {
      sandbox: { driver: 'docker', dockerHost: engine.host, ...(image ? { image } : {}) },
      gateway: { scripts: { enabled: true } },
    });
    const client = new Client({ name: 'it', version: '1' }, { capabilities: {} });
    await client.connect(new StdioClientTransport(place.command()));
    t.after(async () => {
      await client.close();
      place.close();
    });
    const script = (args) => client.callTool({ name: 'run_script', arguments: args }, undefined, { timeout: 60_000 });
    return { place, script };
  }

  const gone = () => until(async () => (await engine.api('GET', '/containers/json?all=1')).text.trim() === '[]', 'its container is gone');

  test('a script reads by a server outside, and writes nothing there', async (t) => {
    const { place, script } = await connect(t, TAG);
    for (const n of ['a', 'b']) writeFileSync(join(place.files, `${n}.txt`), `word ${n}`);
    const { structuredContent: out } = await script(python(`
import os
paths = ["${place.files}/" + n + ".txt" for n in "ab"]
print([tools.files.read_text_file(path=p)["content"] for p in paths])
print(os.getuid() != 0, os.path.exists("${place.files}"), sorted(os.listdir("/sys/class/net")))`));
    assert.equal(out?.stdout, "['word a', 'word b']\nTrue False ['lo']\n", JSON.stringify(out));
    assert.equal(out.calls, 2);
    await gone();
  });

  test('another language than those of the image', async (t) => {
    const { script } = await connect(t, TAG);
    const r = await script({ language: 'javascript', code: '1' });
    assert.equal(r.isError, true);
    assert.match(r.content[0].text, /there is no node in this box; there is: python/);
  });

  test('an image without an interpreter', async (t) => {
    const { script } = await connect(t);
    const r = await script(python('print(1)'));
    assert.equal(r.isError, true);
    assert.match(r.content[0].text, /image has Python or Node/);
    await gone();
  });
});
