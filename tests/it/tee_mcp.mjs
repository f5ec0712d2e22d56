// Between a client and a server on stdio: tee_mcp.mjs FILE COMMAND ARG... passes
// every byte on, and keeps what the server said in FILE.
import { spawn } from 'node:child_process';
import { openSync, writeSync } from 'node:fs';

const [file, command, ...args] = process.argv.slice(2);
const kept = openSync(file, 'a');
const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });

process.stdin.pipe(child.stdin);
child.stdout.on('data', (bytes) => {
  writeSync(kept, bytes);
  process.stdout.write(bytes);
});
child.on('exit', (code) => process.exit(code ?? 1));
