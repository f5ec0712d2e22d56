// A server at the usual port of Ollama, with these models. Two suites may want the
// port: the second waits until the first has closed it.
import { once } from 'node:events';
import net from 'node:net';

import { compatible } from '../fakes/openai.mjs';
import { until } from '../it/server.mjs';

/** silence(): nobody answers any more, and the port is still taken. */
export async function ollama(...models) {
  const list = { object: 'list', data: models.map((id) => ({ id, object: 'model' })) };
  const fake = await compatible({ list });
  const open = new Set();
  let silent = false;
  const door = net.createServer((a) => {
    if (silent) return a.destroy();
    const b = net.connect(new URL(fake.url).port, '127.0.0.1');
    open.add(a);
    for (const [from, to] of [[a, b], [b, a]]) from.on('error', () => to.destroy()).on('close', () => to.destroy()).pipe(to);
  });
  await until(async () => {
    door.listen(11434, '127.0.0.1');
    return once(door, 'listening').then(() => true, () => false); // another suite may have it
  }, 'the port of Ollama', 120_000);
  const silence = () => {
    silent = true;
    for (const a of open) a.destroy();
  };
  const close = async () => {
    silence();
    await new Promise((done) => { door.close(done); });
    await fake.close();
  };
  return { fake, silence, close };
}
