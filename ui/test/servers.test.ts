import { describe, expect, it } from 'vitest';

import { snippetsFor } from '../src/lib/clientConfig';
import { soundsSecret, splitWords } from '../src/lib/commandLine';
import { causeOf, changesOf, fieldsOf, joinWords } from '../src/lib/serverEntry';

describe('a command line', () => {
  it.each([
    ['npx -y server', ['npx', '-y', 'server']],
    ['  a   b\t c ', ['a', 'b', 'c']],
    [`x 'a b' "c d"`, ['x', 'a b', 'c d']],
    [`x a\\ b`, ['x', 'a b']],
    [`x 'a\\b' "a\\"b"`, ['x', 'a\\b', 'a"b']],
    [`x '' y`, ['x', '', 'y']],
    ['', []],
    [`x $HOME *.txt | y`, ['x', '$HOME', '*.txt', '|', 'y']],
    [`x 'open`, null],
    [`x "open`, null],
  ])('%s', (line, words) => {
    expect(splitWords(line)).toEqual(words);
  });
});

describe('names that sound like secrets', () => {
  it.each(['API_KEY', 'GITHUB_TOKEN', 'Authorization', 'DB_PASSWORD', 'x-api-key', 'Cookie', 'clientSecret'])('%s', (name) => {
    expect(soundsSecret(name)).toBe(name !== 'clientSecret');
  });
  it.each(['DEBUG', 'PORT', 'MONKEY', 'KEYBOARD', ''])('not %s', (name) => {
    expect(soundsSecret(name)).toBe(false);
  });
});

describe('entries for other programs', () => {
  const from = { command: '/opt/mo', args: ['gateway', '--config', '/etc/a b.json'], url: 'http://localhost:3000/mcp', needsToken: false, token: '' };
  const entry = (client: string, way: string, s = from) =>
    JSON.parse(snippetsFor(s).find((x) => x.client === client && x.way === way)?.text ?? 'null') as unknown;

  it('are what each of them reads', () => {
    const start = { command: from.command, args: from.args };
    expect(entry('Claude Desktop', 'start')).toEqual({ mcpServers: { orchestrator: start } });
    expect(entry('Cursor', 'address')).toEqual({ mcpServers: { orchestrator: { url: from.url } } });
    expect(entry('Windsurf', 'address')).toEqual({ mcpServers: { orchestrator: { serverUrl: from.url } } });
    expect(entry('VS Code', 'start')).toEqual({ servers: { orchestrator: { type: 'stdio', ...start } } });
    expect(entry('VS Code', 'address')).toEqual({ servers: { orchestrator: { type: 'http', url: from.url } } });
  });
  it('carry the token, where one is needed', () => {
    expect(entry('Cursor', 'address', { ...from, needsToken: true, token: 'abc' })).toEqual({
      mcpServers: { orchestrator: { url: from.url, headers: { Authorization: 'Bearer abc' } } },
    });
  });
});

describe('the entry of a server as a form', () => {
  const entry = {
    command: 'npx', args: ['-y', 'a b', "it's"], description: 'x', cwd: '/srv', network: { allow: ['a'], maxSeconds: 5 },
    env: { DEBUG: '1', API_KEY: '***', TOKEN: '${secret:x.TOKEN}' },
  };
  it('command lines survive', () => {
    for (const words of [['a'], ['npx', '-y', 'a b'], ["it's", '"', '\\', ''], ['ü', '$HOME']])
      expect(splitWords(joinWords(words))).toEqual(words);
  });
  it('hides what may be secret', () => {
    const f = fieldsOf(entry);
    expect(f.pairs.map((p) => [p.name, p.value, p.kept])).toEqual([['DEBUG', '1', false], ['API_KEY', '', true], ['TOKEN', '', true]]);
    expect(f.rest).toEqual({ cwd: '/srv', network: { allow: ['a'], maxSeconds: 5 } });
  });
  it('an unchanged form changes nothing', () => {
    expect(changesOf(fieldsOf(entry), fieldsOf(entry))).toEqual({});
  });
  it('says only what differs', () => {
    const old = fieldsOf(entry);
    const now = fieldsOf(entry);
    now.target = 'uvx server';
    now.description = '';
    now.rest = { network: { allow: ['b'] }, instances: 2 };
    now.pairs = now.pairs.filter((p) => p.name !== 'API_KEY').map((p) => ({ ...p, value: p.kept ? 'new' : '2' }));
    expect(changesOf(old, now)).toEqual({
      command: 'uvx', args: ['server'], description: null, cwd: null, instances: 2,
      network: { allow: ['b'], maxSeconds: null }, env: { API_KEY: null, DEBUG: '2', TOKEN: 'new' },
    });
  });
  it('another kind replaces the old members', () => {
    const now = { ...fieldsOf(entry), kind: 'http' as const, target: 'https://a.example/mcp', pairs: [] };
    expect(changesOf(fieldsOf(entry), now)).toEqual({ command: null, args: null, env: null, url: 'https://a.example/mcp' });
  });
  it('the cause comes first', () => {
    const stderr = 'npm error code E404\nnpm error 404 Not Found - GET /nosuch\nnpm error 404\nnpm error A complete log';
    expect(causeOf('the server ended (exit 1); it said: a|b', stderr)).toEqual({ what: 'the server ended (exit 1)', cause: 'npm error 404 Not Found - GET /nosuch' });
    expect(causeOf('timed out', stderr)).toEqual({ what: 'timed out', cause: '' });
  });
});
