// G7: arguments of another type than a rule is about. A server that is lenient
// reads "100" as a number and ["secret.txt"] as a text.
// Fails on 953b0b1e: the call with "limit": "100" ran although a rule denies
// limits over 50.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';

import { Place, fixtureServer } from '../lib/gateway.mjs';

const rules = [
  { tool: 'echo', args: { limit: '> 50' }, action: 'deny', reason: 'limit' },
  { tool: 'echo', args: { message: 'secret*' }, action: 'deny', reason: 'secret' },
  { tool: 'echo', args: { message: '! public*' }, action: 'deny', reason: 'not public' },
  { server: '*', args: { command: 'rm *' }, action: 'deny', reason: 'command' },
];

test('deny rules match what they cannot read', async (t) => {
  const place = new Place({ fixture: fixtureServer() }, { approvals: { rules } });
  t.after(() => place.close());
  const client = new Client({ name: 'it', version: '1' });
  await client.connect(new StdioClientTransport(place.command()));
  t.after(() => client.close());
  const said = async (args) => {
    try {
      return (await client.callTool({ name: 'echo', arguments: args })).content[0].text;
    } catch (e) {
      return `error: ${e.message}`;
    }
  };
  const message = 'public';
  for (const [args, why] of [
    [{ message, limit: 51 }, 'limit'],
    [{ message, limit: '100' }, 'limit'],
    [{ message, limit: '1' }, 'limit'],
    [{ message, limit: [100] }, 'limit'],
    [{ message, limit: { n: 1 } }, 'limit'],
    [{ message, limit: null }, 'limit'],
    [{ message, limit: true }, 'limit'],
    [{ limit: 1, message: 'secret.txt' }, 'secret'],
    [{ limit: 1, message: ['secret.txt'] }, 'secret'],
    [{ limit: 1, message: [[{ path: 'secret.txt' }]] }, 'secret'],
    [{ limit: 1, message: { 'secret.txt': 'public' } }, 'secret'],
    [{ limit: 1, message: null }, 'secret'],
    [{ limit: 1 }, 'secret'],
    [{ limit: 1, message: ['public', 'private'] }, 'not public'],
    [{ limit: 1, message, command: ['rm'] }, undefined], // whole texts are compared
    [{ limit: 1, message, command: ['rm x'] }, 'command'],
    [{ limit: 1, message, command: 7 }, undefined],
  ]) {
    const got = await said(args);
    if (why) assert.match(got, new RegExp(`not allowed here: ${why}\\.`), JSON.stringify(args));
    else assert.doesNotMatch(got, /not allowed here/, JSON.stringify(args));
  }
  assert.equal(await said({ message }), 'public', 'no limit: the tool has no such argument');
});
