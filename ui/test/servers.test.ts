import { describe, expect, it } from 'vitest';

import { snippetsFor } from '../src/lib/clientConfig';
import { soundsSecret, splitWords } from '../src/lib/commandLine';

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
