// H1: another user of the machine tries the whole list: every request with every
// credential they may think of, the local sockets, all files, the process.
import assert from 'node:assert/strict';
import { chmod, readFile, stat } from 'node:fs/promises';
import { after, before, test } from 'node:test';

import { DOORS, GUESS, KNOCK, NOBODY, TOUCH, Target, VIEWS, as, attempts, forged, notRoot } from '../lib/attack.mjs';

const skip = notRoot;
let it;
before(async () => { it = skip ? undefined : await Target.start(); });
after(() => it?.remove());
const json = JSON.stringify;
let knocked;

test('no request of theirs does anything', { skip }, async () => {
  knocked = await as(NOBODY, `${KNOCK}
    console.log(JSON.stringify(await knock('${it.url}', ${json(DOORS)}, ${json(forged(it.port))}, ${json(it.body)})));`);
  // after thirty refusals in a minute the answer is "wait"
  for (const [name, method, path, status] of knocked) assert.ok([401, 429].includes(status), `${name} ${method} ${path}: ${status}`);
});

test('the page says how to sign in; no link or form of theirs does', { skip }, async () => {
  const got = await as(NOBODY, `
    const all = [];
    const ask = async (path, options) => {
      const r = await fetch('${it.url}' + path, { redirect: 'manual', ...options });
      all.push([path, r.status, r.headers.get('set-cookie'), r.headers.get('location'), /id="app"/.test(await r.text())]);
    };
    for (const path of ${json(VIEWS)}) await ask(path);
    for (const token of ['${GUESS}', '', '%00', 'x'.repeat(5000)]) {
      await ask('/?token=' + token);
      await ask('/sign-in', { method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' }, body: ('token=' + token).slice(0, 2000) });
    }
    console.log(JSON.stringify(all));`);
  for (const [path, status, cookie, location, app] of got) {
    assert.ok([401, 429, 303].includes(status), `${path}: ${status}`);
    if (status === 303) assert.equal(location, '/sign-in.html#wrong');
    assert.equal(cookie, null);
    assert.equal(app, false);
  }
});

test('no websocket opens', { skip }, async () => {
  const got = await as(NOBODY, `
    const http = await import('node:http');
    const r = await new Promise((done) => http.get({ port: ${it.port}, host: '127.0.0.1', path: '/socket.io/?EIO=4&transport=websocket',
      headers: { host: 'localhost:${it.port}', connection: 'Upgrade', upgrade: 'websocket', 'sec-websocket-version': '13',
        'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==' } }, (r) => done(r.resume().statusCode))
      .on('upgrade', () => done(101)));
    console.log(r);`);
  assert.ok([401, 429].includes(got), String(got));
});

test('no file, socket or part of the process is theirs', { skip }, async () => {
  const { dirs, files, sockets } = it.below();
  assert.ok(files.some((f) => f.endsWith('/audit.key')) && sockets.length >= 1);
  const got = await as(NOBODY, `${TOUCH}
    const net = await import('node:net');
    const got = touch(${json({ dirs, files: [...files, it.file], pids: [it.server.pid] })});
    for (const path of ${json(sockets)})
      got.push(await new Promise((done) => net.connect(path).on('connect', () => done('connect ' + path)).on('error', () => done(null))));
    console.log(JSON.stringify(got.filter(Boolean)));`);
  assert.deepEqual(got, [`read ${it.file}`], 'the configuration has no secret and may be read');
  assert.ok(!(await readFile(`/proc/${it.server.pid}/cmdline`, 'latin1')).includes(it.token));
});

test('nor behind directories that were opened by mistake', { skip }, async () => {
  const { dirs, sockets } = it.below();
  const doors = sockets.filter((s) => s.includes('approvals-'));
  const others = sockets.filter((s) => !doors.includes(s)); // of boxes, and for control
  const control = others.filter((s) => s.startsWith(`${it.state}/run/`) && s.endsWith('.sock') && !/\/(approvals|worker)-[^/]*$/.test(s));
  const workers = Number(process.env.MO_WORKERS ?? 1);
  assert.equal(doors.length, workers);
  assert.equal(control.length, workers);
  assert.equal(others.filter((s) => s.endsWith('.peer')).length, workers);
  const opened = [...dirs, ...sockets];
  const modes = await Promise.all(opened.map(async (f) => (await stat(f)).mode & 0o777));
  for (const f of opened) await chmod(f, 0o777);
  try {
    for (const path of doors) {
      const got = await as(NOBODY, `
      const http = await import('node:http');
      const all = [];
      for (const [method, target] of [['GET', '/link'], ['GET', '/api/approvals'], ['POST', '/api/approvals/x']])
        all.push(await new Promise((done) => http.request({ socketPath: '${path}', path: target, method },
          (r) => { let text = ''; r.on('data', (d) => text += d).on('end', () => done([r.statusCode, text.includes('token=')])); }).end()));
      console.log(JSON.stringify(all));`);
      assert.deepEqual(got, [[403, false], [403, false], [403, false]]);
    }
    const said = (uid, paths) => as(uid, `
      const net = await import('node:net');
      const all = [];
      for (const path of ${json(paths)})
        all.push(await new Promise((done) => {
          let text = '';
          const s = net.connect(path, () => s.write('{"op":"end","session":"x","forget":true}\\n'));
          s.on('data', (d) => { text += d; s.end(); }).on('error', () => {}).on('close', () => done(text));
        }));
      console.log(JSON.stringify(all));`);
    assert.deepEqual(await said(NOBODY, others), others.map(() => ''));
    assert.match((await said(0, control))[0], /there is no session x/, 'the owner is answered');
  } finally {
    for (const [i, f] of opened.entries()) await chmod(f, modes[i]);
  }
});

test('every attempt is in the audit log, in a few rows', { skip }, async () => {
  const rows = await it.end();
  const sent = (name) => knocked.filter(([n]) => n === name).length;
  const none = { reason: 'token_required', peer: '127.0.0.1' };
  // 4 links and 4 forms, 1 websocket; views without a credential are none
  assert.equal(attempts(rows, none) + attempts(rows, { ...none, peer: '[::1]' }), knocked.length + 4 + 4 + 1);
  assert.ok(sent('token') >= 45);
  assert.equal(attempts(rows, { reason: 'not_yours', peer: `unix uid ${NOBODY}`, door: 'socket' }), 3 * Number(process.env.MO_WORKERS ?? 1));
  assert.ok(rows.length < 12, `${rows.length} rows`);
});
