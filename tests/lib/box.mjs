// Boxes for tests: the program that drives either driver, as an object.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const top = fileURLToPath(new URL('../..', import.meta.url));
export const build = process.env.MO_BUILD ?? join(top, 'build-asan');
export const toolbox = join(build, 'toolbox/mo-toolbox');
const program = join(build, 'tests/it/box_driver');

/** One process with one driver. Events come in order; each is taken once. */
export class Boxes {
  constructor(args, env = {}) {
    this.events = [];
    this.waiting = [];
    this.child = spawn(program, args, {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { PATH: process.env.PATH, ASAN_OPTIONS: 'detect_leaks=0', ...env },
    });
    this.child.stdin.on('error', () => {});
    this.ended = once(this.child, 'close');
    createInterface({ input: this.child.stdout }).on('line', (line) => {
      this.events.push(JSON.parse(line));
      this.look();
    });
    this.ended.then(() => {
      this.over = true;
      this.look();
    });
    process.once('exit', (this.kill = () => this.child.kill('SIGKILL')));
  }

  look() {
    this.waiting = this.waiting.filter(({ test, resolve, reject }) => {
      const at = this.events.findIndex(test);
      if (at < 0 && this.over) reject(new Error(`ended: ${JSON.stringify(this.events)}`));
      if (at < 0) return !this.over;
      resolve(this.events.splice(at, 1)[0]);
      return false;
    });
  }

  tell(op, more = {}) {
    this.child.stdin.write(JSON.stringify({ op, ...more }) + '\n');
  }

  /** The next event of that kind and box (undefined: any), taken out. */
  next(ev, box, ok = () => true) {
    return new Promise((resolve, reject) => {
      const test = (e) =>
        (ev === undefined || e.ev === ev) && (box === undefined || e.box === box) && ok(e);
      this.waiting.push({ test, resolve, reject });
      this.look();
    });
  }

  /** Start a box and wait until it is ready; a refusal is thrown. */
  async start(box, how = {}) {
    this.tell(how.id ? 'adopt' : 'start', { box, ...how });
    return this.ready(box);
  }

  async ready(box) {
    const e = await new Promise((resolve, reject) => {
      const test = (x) => x.box === box && ['ready', 'gone', 'refused'].includes(x.ev);
      this.waiting.push({ test, resolve, reject });
      this.look();
    });
    if (e.ev !== 'ready') throw Object.assign(new Error(e.why), e);
    return e;
  }

  write(box, text) {
    this.tell('write', { box, text });
  }

  /** Collect a box's output until it holds the text (or what() says so). */
  async until(box, what, kind = 'out') {
    let all = '';
    for (;;) {
      all += (await this.next(kind, box)).text;
      if (typeof what === 'string' ? all.includes(what) : what(all)) return all;
    }
  }

  async stop(box) {
    this.tell('stop', { box });
    return this.next('gone', box);
  }

  /** All parts of a list ('list' or 'files'). */
  async list(op = 'list') {
    const all = [];
    for (let from; ;) {
      this.tell(op, { from });
      const { rows, next, why } = await this.next('rows');
      if (why) throw new Error(why);
      all.push(...rows);
      if (!next) return all;
      from = next;
    }
  }

  async remove(id) {
    this.tell('remove', { id });
    return this.next('removed');
  }

  /** Let go of all, and end: its exit status. */
  async close() {
    process.removeListener('exit', this.kill);
    if (!this.over) this.tell('close');
    return (await this.ended)[0];
  }

  async sigkill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }
}

export const docker = (engine, { store = 'test', instance = 'one', env } = {}) =>
  new Boxes(['--driver', 'docker', '--engine', engine.host, '--dir', engine.dir,
    '--store', store, '--instance', instance, '--toolbox', toolbox], env);
