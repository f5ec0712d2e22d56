// A package runner for tests, called npx in a directory of its own:
//
//   npx DIR NAME ...
//
// It "downloads" until DIR/go exists, then runs the moody server NAME as npm
// does; DIR/installs gets a line when it begins and one when it is done. Asked to
// stop before that, it rolls back for a second and says so in DIR/rolled-back.
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [dir, name] = process.argv.slice(2);
const moody = fileURLToPath(new URL('moody.mjs', import.meta.url));

const note = (word) => appendFileSync(join(dir, 'installs'), `${word}\n`);

note('begins');
process.stderr.write('npm http fetch GET 200 a-large-package\n');
process.on('SIGTERM', () => setTimeout(() => {
  writeFileSync(join(dir, 'rolled-back'), '');
  process.exit(1);
}, 1000));

const waiting = setInterval(() => {
  if (!existsSync(join(dir, 'go'))) return;
  clearInterval(waiting);
  note('is done');
  spawn(process.execPath, [moody, name, join(dir, 'mood'), join(dir, 'log')], {
    stdio: 'inherit', env: { ...process.env, npm_lifecycle_event: 'npx' },
  }).on('exit', (code) => process.exit(code));
}, 20);
