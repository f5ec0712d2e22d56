// The files of a conversation over HTTP: listed, downloaded, uploaded, removed
// and archived, by the people who may; also from another process of the store.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtemp, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { promisify } from 'node:util';

import { Team } from '../lib/team.mjs';
import { Replicas } from './replicas_kit.mjs';
import { until } from './server.mjs';
import { run } from './talk_kit.mjs';

const tar = (...args) => promisify(execFile)('tar', args);

/** The files of one session at one server, as one person. */
class Files {
  constructor(url, id, headers = {}) {
    Object.assign(this, { url: `${url}/api/sessions/${id}/files`, headers });
  }

  at(path, more = {}) {
    return `${this.url}/content?${new URLSearchParams({ path, ...more })}`;
  }

  async list(path = '', more = {}) {
    const r = await fetch(`${this.url}?${new URLSearchParams({ ...(path && { path }), ...more })}`, { headers: this.headers });
    return { status: r.status, ...(await r.json()) };
  }

  async names(path) {
    return (await this.list(path)).entries.map((e) => e.name);
  }

  async put(path, body, headers = {}) {
    const r = await fetch(this.at(path), { method: 'PUT', body, duplex: 'half', headers: { ...this.headers, ...headers } });
    return { status: r.status, ...(await r.json()) };
  }

  async get(path, headers = {}, more = {}) {
    const r = await fetch(this.at(path, more), { headers: { ...this.headers, ...headers } });
    return { status: r.status, headers: r.headers, bytes: Buffer.from(await r.arrayBuffer()) };
  }

  async remove(path) {
    const r = await fetch(this.at(path), { method: 'DELETE', headers: this.headers });
    return { status: r.status, ...(await r.json()) };
  }
}

describe('a team', () => {
  let team, mine;
  const files = (who, id = 'one') => new Files(team.url, id, team.headers(who));
  before(async () => {
    team = await Team.start();
    (await team.socket('ann', 'one')).close();
    mine = files('ann');
  });
  after(() => team?.stop());

  test('bytes come back as they went, in any size', async () => {
    assert.deepEqual(await mine.names(), []);
    for (const size of [0, 1, 196608, 196609, 3_000_001]) {
      const bytes = randomBytes(size);
      const put = await mine.put(`sizes/${size}.bin`, bytes);
      assert.deepEqual(put, { status: 201, path: `sizes/${size}.bin`, size, created: true });
      const got = await mine.get(`sizes/${size}.bin`);
      assert.equal(got.status, 200);
      assert.equal(got.headers.get('content-length'), String(size));
      assert.ok(got.bytes.equals(bytes), `${size} bytes`);
    }
    const { entries, more } = await mine.list('sizes');
    assert.deepEqual(entries.map((e) => [e.name, e.type, e.size]), [0, 1, 196608, 196609, 3_000_001].map((n) => [`${n}.bin`, 'file', n]));
    assert.equal(more, false);
    assert.ok(entries.every((e) => Math.abs(e.mtime - Date.now()) < 600_000));
    const page = await mine.list('', { recursive: 'true', limit: 2 });
    assert.deepEqual([page.entries.map((e) => e.name), page.more], [['sizes', 'sizes/0.bin'], true]);
    const next = await mine.list('', { recursive: 'true', after: 'sizes/0.bin' });
    assert.deepEqual(next.entries.map((e) => e.name), ['sizes/1.bin', 'sizes/196608.bin', 'sizes/196609.bin', 'sizes/3000001.bin']);
    assert.deepEqual(await mine.put('sizes/1.bin', 'again'), { status: 200, path: 'sizes/1.bin', size: 5, created: false });
    assert.equal((await mine.get('sizes/1.bin')).bytes.toString(), 'again');
  });

  test('a body of unknown length, and a part of a file', async () => {
    const chunks = [randomBytes(300_000), randomBytes(5), randomBytes(400_000)];
    const whole = Buffer.concat(chunks);
    assert.equal((await mine.put('stream.bin', ReadableStream.from(chunks))).size, whole.length);
    for (const [range, from, to] of [['bytes=10-19', 10, 20], ['bytes=699990-', 699_990], ['bytes=-7', -7], ['bytes=5-9999999', 5]]) {
      const part = await mine.get('stream.bin', { range });
      assert.equal(part.status, 206, range);
      assert.ok(part.bytes.equals(whole.subarray(from, to)), range);
      assert.match(part.headers.get('content-range'), /^bytes \d+-\d+\/700005$/);
    }
    assert.equal((await mine.get('stream.bin', { range: 'bytes=700005-' })).status, 416);
    const head = await fetch(mine.at('stream.bin'), { method: 'HEAD', headers: mine.headers });
    assert.equal(head.headers.get('content-length'), '700005');
  });

  test('names with odd characters', async () => {
    const odd = ['a b&c=d#e?.txt', 'übung ☃ 雪.md', "quote\"'`.txt", 'line\nbreak', '-rf', '%41', '.hidden', `${'long'.repeat(60)}.txt`];
    for (const name of odd) assert.equal((await mine.put(`odd/${name}`, name)).status, 201, name);
    assert.deepEqual((await mine.names('odd')).sort(), [...odd].sort());
    for (const name of odd) assert.equal((await mine.get(`odd/${name}`)).bytes.toString(), name);
    const { headers } = await mine.get('odd/übung ☃ 雪.md');
    assert.equal(headers.get('content-disposition'), `attachment; filename="__bung ___ ___.md"; filename*=UTF-8''${encodeURIComponent('übung ☃ 雪.md')}`);
    const nothing = await mine.get("odd/quote\"'`.txt");
    assert.match(nothing.headers.get('content-disposition'), /^attachment; filename="quote___\.txt"; /);
  });

  test('the archive is read by tar', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'mo-files-'));
    const answer = await fetch(`${mine.url}/archive`, { headers: mine.headers });
    assert.equal(answer.headers.get('content-type'), 'application/x-tar');
    assert.match(answer.headers.get('content-disposition'), /filename="one\.tar"/);
    await writeFile(join(dir, 'a.tar'), Buffer.from(await answer.arrayBuffer()));
    await tar('-xf', join(dir, 'a.tar'), '-C', dir);
    await rm(join(dir, 'a.tar'));
    const all = await mine.list('', { recursive: 'true' });
    assert.deepEqual((await readdir(dir, { recursive: true })).sort(), all.entries.map((e) => e.name).sort());
    for (const e of all.entries.filter((x) => x.type === 'file')) {
      assert.ok((await readFile(join(dir, e.name))).equals((await mine.get(e.name)).bytes), e.name);
      assert.equal(Math.floor((await stat(join(dir, e.name))).mtimeMs / 1000), Math.floor(e.mtime / 1000), e.name);
    }
    await rm(dir, { recursive: true });
  });

  test('nothing of a box runs in our origin', async () => {
    await mine.put('evil.html', '<script>document.title = 1</script>');
    await mine.put('evil.js', 'alert(1)');
    await mine.put('evil.svg', '<svg xmlns="http://www.w3.org/2000/svg"><script>1</script></svg>');
    for (const view of ['true', 'false']) {
      const { headers } = await mine.get('evil.html', {}, { view });
      assert.match(headers.get('content-security-policy'), /^sandbox; default-src 'none';/);
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.match(headers.get('content-disposition'), view === 'true' ? /^inline;/ : /^attachment;/);
      assert.match((await mine.get('evil.js', {}, { view })).headers.get('content-type'), /^text\/plain/);
      assert.match((await mine.get('evil.svg', {}, { view })).headers.get('content-security-policy'), /^sandbox;/);
    }
    const page = await fetch(`${team.url}/`, { headers: mine.headers });
    assert.match(page.headers.get('content-security-policy'), /frame-ancestors 'none'/, 'the page keeps its own');
  });

  test('clear errors', async () => {
    const code = async (answer) => { const r = await answer; return [r.status, r.code ?? JSON.parse(r.bytes).code]; };
    assert.deepEqual(await code(mine.get('none.txt')), [404, 'no_such_file']);
    assert.deepEqual(await code(mine.get('sizes')), [409, 'is_directory']);
    assert.deepEqual(await code(mine.list('stream.bin')), [409, 'not_directory']);
    assert.deepEqual(await code(mine.put('sizes', 'x')), [409, 'is_directory']);
    assert.deepEqual(await code(mine.put('n'.repeat(300), 'x')), [400, 'name_too_long']);
    assert.deepEqual(await code(mine.put('../up', 'x')), [400, 'bad_path']);
    assert.deepEqual(await code(mine.get('/etc/passwd')), [400, 'bad_path']);
    assert.deepEqual(await code(mine.get('')), [400, 'bad_path']);
    assert.deepEqual(await code(mine.remove('none.txt')), [404, 'no_such_file']);
    assert.deepEqual(await code(mine.remove('.')), [400, 'bad_path']);
  });

  test('an upload that ends early leaves nothing', async () => {
    const { hostname, port, pathname } = new URL(mine.url);
    const socket = connect(Number(port), hostname);
    socket.write(`PUT ${pathname}/content?path=early%2Fcut.bin HTTP/1.1\r\nHost: ${hostname}:${port}\r\n` +
      `Authorization: ${mine.headers.authorization}\r\nContent-Length: 1000000\r\n\r\n`);
    socket.write(Buffer.alloc(500_000));
    await until(async () => (await mine.names()).includes('early'), 'the directory, so that the first part is written');
    assert.deepEqual(await mine.names('early'), [], 'a file that is being written is not listed');
    socket.destroy();
    const client = await team.socket('ann', 'one');
    client.close();
    await until(async () => (await mine.remove('early')).status === 200, 'the directory is removed');
    await until(async () => (await mine.list('early')).status === 404, 'and nothing makes it again');
  });

  test('who may', async () => {
    for (const who of ['bea', 'vera'])
      for (const answer of [await files(who).list(), await files(who).get('evil.js'), await files(who).remove('evil.js')])
        assert.ok(answer.status === 404 || (who === 'vera' && answer.status === 403), `${who}: ${answer.status}`);
    await team.api('ann', 'PUT', '/api/sessions/one/shares', { with: 'corp/guests', may: 'read' });
    await team.api('ann', 'PUT', '/api/sessions/one/shares', { with: 'corp:bea', may: 'approve' });
    for (const who of ['bea', 'vera']) {
      assert.ok((await files(who).names()).includes('evil.js'), who);
      assert.equal((await files(who).get('evil.js')).bytes.toString(), 'alert(1)');
      assert.equal((await fetch(`${files(who).url}/archive`, { headers: files(who).headers })).status, 200);
      for (const answer of [await files(who).put('theirs', 'x'), await files(who).remove('evil.js')])
        assert.equal(answer.status, who === 'bea' ? 404 : 403);
    }
    assert.equal((await files('operator', 'never').list()).status, 404);
    assert.equal((await files('operator').list()).status, 200);
    assert.equal((await fetch(mine.url)).status, 401);
    assert.ok((await mine.names()).includes('evil.js'));
    assert.ok(!(await mine.names()).includes('theirs'));
  });

  test('the audit log has who, what and how much', async () => {
    await mine.put('told.txt', 'twelve bytes');
    await mine.remove('told.txt');
    const rows = (await team.rows()).filter((r) => r.kind === 'file' && r.name === 'told.txt');
    assert.deepEqual(rows.map((r) => [r.action, r.session, r.decidedBy, r.count]), [['uploaded', 'one', 'corp:ann', 12], ['removed', 'one', 'corp:ann', undefined]]);
  });

  test('a directory is removed with everything in it', async () => {
    assert.deepEqual(await mine.remove('odd'), { status: 200, ok: true });
    assert.ok(!(await mine.names()).includes('odd'));
  });
});

test('links of a box lead nowhere else', async () => {
  const all = await Replicas.start({ count: 1 });
  try {
    const tab = all.v[0].tab();
    await tab.ready();
    all.model.script.push({ calls: [run('ln -s /etc/passwd p; ln -s / root; ln -s real here; echo yes > real')] }, { text: 'done' });
    await tab.say('link');
    const [card] = await tab.event('tool:approval_required');
    await tab.decide(card, true, { digest: card.digest });
    await tab.event('agent:response');
    const mine = new Files(`http://127.0.0.1:${all.v[0].server.port}`, tab.session);
    const { entries } = await mine.list();
    assert.deepEqual(entries.map((e) => [e.name, e.type]), [['here', 'symlink'], ['p', 'symlink'], ['real', 'file'], ['root', 'symlink']]);
    for (const path of ['p', 'root/etc/passwd', 'root']) assert.ok([400, 409].includes((await mine.get(path)).status), path);
    const changed = async (ms) => (await mine.list('', { recursive: 'true', changedMs: ms })).entries.map((e) => e.name);
    assert.deepEqual(await changed(600_000), ['real'], 'files that were changed');
    await until(async () => (await changed(1)).length === 0, 'the file is older than that');
    assert.equal((await mine.get('here')).bytes.toString(), 'yes\n', 'a link that stays inside is followed');
    assert.equal((await mine.put('root/tmp/x', 'x')).status, 400);
    assert.equal((await mine.put('p', 'x')).status, 400);
    assert.equal((await mine.remove('root')).status, 200, 'the link itself');
    assert.ok((await stat('/etc/passwd')).size > 0);
  } finally {
    await all.stop();
  }
});

test('a workspace that is full', async () => {
  const all = await Replicas.start({ count: 1, config: { sandbox: { driver: 'native', warm: 0, workspaceMb: 8 } } });
  try {
    const tab = all.v[0].tab();
    await tab.ready();
    const mine = new Files(`http://127.0.0.1:${all.v[0].server.port}`, tab.session);
    assert.equal((await mine.put('fits', Buffer.alloc(1_000_000))).status, 201);
    for (let i = 0; i < 3; i++) {
      const full = await mine.put('big', Buffer.alloc(20_000_000));
      assert.deepEqual([full.status, full.code], [507, 'workspace_full']);
    }
    assert.deepEqual(await mine.names(), ['fits'], 'and nothing is left');
    assert.equal((await mine.put('fits too', Buffer.alloc(4_000_000))).status, 201, 'its room is free again');
  } finally {
    await all.stop();
  }
});

test('the session is open in another process', async () => {
  const all = await Replicas.start({ count: 2 });
  try {
    const tab = all.v[0].tab(); // holds the session
    await tab.ready();
    const there = new Files(`http://127.0.0.1:${all.v[1].server.port}`, tab.session);
    const bytes = randomBytes(1_000_003);
    assert.equal((await there.put('far/away.bin', bytes)).status, 201);
    assert.deepEqual(await there.names('far'), ['away.bin']);
    assert.ok((await there.get('far/away.bin')).bytes.equals(bytes));
    assert.equal(Buffer.from(await (await fetch(`${there.url}/archive`)).arrayBuffer()).includes(bytes), true);
    assert.equal((await there.get('none')).status, 404);
    const here = new Files(`http://127.0.0.1:${all.v[0].server.port}`, tab.session);
    assert.ok((await here.get('far/away.bin')).bytes.equals(bytes));
    tab.close(); // nobody holds it: the other process takes it over
    await until(async () => (await there.get('far/away.bin')).bytes.equals(bytes), 'the file from a box that nobody holds');
    assert.equal((await there.remove('far')).status, 200);
  } finally {
    await all.stop();
  }
});
