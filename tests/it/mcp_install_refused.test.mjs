// `mcp install` of npm packages that must not be installed.
import { spawn } from 'node:child_process';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';

import { dir, fails } from '../lib/install.mjs';

describe('refused', () => {
  for (const [name, args, code, says] of [
    ['a library', ['npm:library'], 2, /has no program/],
    ['several programs', ['npm:two-bins'], 2, /several programs: choose one with --bin/],
    ['a program that is none for Node', ['npm:binary'], 1, /it\.js is not one for Node/],
    ['a program that is missing', ['npm:no-program'], 1, /lacks its program missing\.js/],
    ['no such package', ['npm:nobody-has-this'], 4, /npm: /],
    ['no such version', ['npm:@ada/weather@9.9.9'], 4, /npm: /],
    ['a dependency that is not of the registry', ['npm:from-git'], 4, /npm failed/],
    ['a range', ['npm:@ada/weather@^1.0.0'], 2, /is no version/],
    ['an option as a name', ['npm:--prefix=/tmp'], 2, /no name of an npm package/],
    ['an address as a name', ['npm:https://x.example.com/x.tgz'], 2, /no name of an npm package/],
    ['a path as a name', ['npm:../x'], 2, /no name of an npm package/],
    ['a git repository', ['npm:ada/weather'], 2, /no name of an npm package/],
    ['control characters', ['npm:x\u001b[2J'], 2, /no name of an npm package/],
    ['a bad --name', ['npm:@ada/weather', '--name', '../x'], 2, /a name has/],
    ['a secret on the command line', ['npm:@ada/weather', '--env', 'API_KEY=abc'], 2, /sounds like a secret/],
    ['arguments without --', ['npm:@ada/weather', 'x'], 2, /stand after --/],
    ['nuget', ['nuget:weather'], 2, /nuget packages are not supported yet/],
    ['mcpb', ['mcpb:weather'], 2, /the address of its bundle is not https/],
    ['a word', ['weather'], 2, /neither a name of the registry/],
  ])
    test(name, () => fails(['install', ...args, ...(args.includes('x') ? [] : ['--yes'])], code, says));

  // An npm that writes what a hostile one could.
  for (const [name, script, says] of [
    ['a link out of the folder', 'ln -s ../../../../../../etc node_modules/@ada/weather/out', /the link .*out leads out of its folder/],
    ['an absolute link', 'ln -s /etc/passwd node_modules/x', /leads out of its folder/],
    ['a setuid program', 'touch node_modules/su && chmod 4755 node_modules/su', /is setuid/],
    ['a pipe', 'mkfifo node_modules/p', /is no file/],
    ['another integrity', 'sed -i s/sha512-/sha512-A/ package-lock.json', /integrity of @ada\/weather@1\.0\.0 differs/],
    ['a package without integrity', `sed -i 's|"node_modules/@ada/weather": {|"node_modules/x": {"version":"1"},&|' package-lock.json`, /node_modules\/x has no integrity/],
    ['no package-lock.json', 'rm package-lock.json', /package-lock\.json of npm/],
  ])
    test(`an npm that leaves ${name}`, async () => {
      const tools = join(dir, 'tools');
      const { stdout: real } = await new Promise((done) => {
        const child = spawn('sh', ['-c', 'command -v npm']);
        let stdout = '';
        child.stdout.on('data', (d) => (stdout += d)).on('close', () => done({ stdout: stdout.trim() }));
      });
      await mkdir(tools);
      await writeFile(join(tools, 'npm'), `#!/bin/sh\n${real} "$@" || exit\n[ "$1" = install ] || exit 0\n${script}\n`);
      await chmod(join(tools, 'npm'), 0o755);
      await fails(['install', 'npm:@ada/weather@1.0.0', '--yes'], 1, says, { PATH: `${tools}:${process.env.PATH}` });
    });
});
