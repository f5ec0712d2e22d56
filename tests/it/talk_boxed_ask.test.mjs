// A server that runs in a box asks the person in the middle of a call: the
// call is approved, the question answered or declined, over the published
// socket.io-client, and the server in its box hears it.
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';

import { noNative } from '../lib/sessions.mjs';
import { House } from './talk_kit.mjs';

const SERVER = `
import json, os, sys
def send(**m):
    sys.stdout.write(json.dumps({'jsonrpc': '2.0', **m}) + '\\n')
    sys.stdout.flush()
FORM = {'type': 'object', 'required': ['branch'], 'properties': {
    'branch': {'type': 'string', 'minLength': 2}, 'force': {'type': 'boolean', 'default': False}}}
waiting = {}
for line in sys.stdin:
    m = json.loads(line)
    method, id = m.get('method'), m.get('id')
    if method == 'initialize':
        send(id=id, result={'protocolVersion': '2025-11-25', 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'asks', 'version': '1'}})
    elif method == 'tools/list':
        send(id=id, result={'tools': [{'name': 'deploy', 'inputSchema': {'type': 'object'}}]})
    elif method == 'tools/call':
        waiting['q%d' % id if isinstance(id, int) else 'q'] = id
        send(id='q%d' % id if isinstance(id, int) else 'q', method='elicitation/create', params={'message': 'Which branch?', 'requestedSchema': FORM})
    elif method is None and id in waiting:
        where = '%s, user %d, %d programs' % (os.getcwd(), os.getuid(), len([p for p in os.listdir('/proc') if p.isdigit()]))
        send(id=waiting.pop(id), result={'content': [{'type': 'text', 'text': json.dumps(m.get('result', m.get('error')), sort_keys=True) + ' in ' + where}]})
    elif id is not None:
        send(id=id, error={'code': -32601, 'message': 'no'})
`;

const skip = noNative ? `needs ${noNative}` : false;
let house;
before(async () => {
  if (skip) return;
  house = await House.start({
    env: { ASAN_OPTIONS: 'detect_leaks=0:quarantine_size_mb=4' },
    config: { mcpServers: { asks: { command: 'python3', args: ['-c', SERVER], sandbox: 'native', memoryMb: 128 } } },
  });
});
after(async () => {
  if (!house) return;
  house.server.fresh.fds += 16; // the box stays open for the next
  house.server.fresh.children += 3;
  await house.stop();
});

/** The model wants to call it; approved, it asks. */
async function asked(tab) {
  house.model.script.push({ calls: [{ name: 'asks_deploy', args: { what: 'it' } }] }, { text: 'I see.' });
  await tab.say('deploy it');
  const [card] = await tab.event('tool:approval_required');
  assert.equal(card.server, 'asks');
  assert.equal(tab.count('elicitation:required'), 0, 'nothing runs before it is approved');
  assert.deepEqual(await tab.decide(card, true, { digest: card.digest }), { ok: true });
  const [q] = await tab.event('elicitation:required');
  assert.equal(q.server, 'asks');
  assert.equal(q.callId, card.callId);
  assert.equal(q.message, 'Which branch?');
  assert.deepEqual(q.schema.required, ['branch']);
  return q;
}

async function result(tab, q, action, content) {
  assert.deepEqual(await tab.emit('elicitation:response', { requestId: q.requestId, action, content }), { ok: true });
  assert.deepEqual((await tab.event('elicitation:resolved'))[0], { requestId: q.requestId, action, by: 'person' });
  assert.equal((await tab.event('agent:response'))[0], 'I see.');
  const [{ text, error }] = house.results();
  assert.equal(error, false);
  assert.match(text, / in \/workspace, user 2\d{4}, [0-3] programs$/, 'it was in a box');
  const rows = await house.audit(tab.session);
  assert.ok(rows.some((r) => JSON.stringify(r).includes(action)), JSON.stringify(rows));
  return JSON.parse(text.slice(0, text.lastIndexOf(' in ')));
}

test('approved and answered', { skip }, async () => {
  const tab = house.tab();
  await tab.ready();
  const q = await asked(tab);
  const wrong = await tab.emit('elicitation:response', { requestId: q.requestId, action: 'accept', content: { branch: 'x' } });
  assert.equal(wrong.code, 'bad_request');
  assert.deepEqual(await result(tab, q, 'accept', { branch: 'main' }), { action: 'accept', content: { branch: 'main', force: false } });
});

test('approved and declined', { skip }, async () => {
  const tab = house.tab();
  await tab.ready();
  const q = await asked(tab);
  assert.deepEqual(await result(tab, q, 'decline'), { action: 'decline' });
  const again = await tab.emit('elicitation:response', { requestId: q.requestId, action: 'accept', content: { branch: 'main' } });
  assert.equal(again.code, 'unknown_request');
});
