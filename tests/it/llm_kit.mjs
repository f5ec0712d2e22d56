// The real providers, driven by lines: tests/it/llm_driver.c.
import { Peer } from './peer.mjs';

/** Every tool of these tests. */
export const tools = [
  { name: 'get_weather', description: 'The weather of a place',
    schema: { type: 'object', properties: { place: { type: 'string' } }, required: ['place'] } },
  { name: 'list_files', description: 'What files there are', schema: { type: 'object' } },
];

export const user = (text) => ({ role: 'user', blocks: [{ type: 'text', text }] });
export const results = (calls, answer = (c) => `did ${c.name}`) => ({
  role: 'tool',
  results: calls.map((c, i) => ({
    key: c.key, name: c.name, isError: false,
    content: [{ type: 'text', text: answer(c, i) }],
  })),
});

export class Driver {
  constructor() {
    this.peer = new Peer('llm_driver');
    this.said = ''; // all it ever printed, to look for keys in
  }

  /** {events, texts, thoughts, waits, done, failed, refused, cpu, deltas} */
  async run(request) {
    this.peer.send(JSON.stringify({ op: 'reply', model: 'm', ...request }));
    const events = [];
    for (;;) {
      const line = await this.peer.line();
      if (line === undefined) throw new Error('the driver died');
      this.said += line;
      const event = JSON.parse(line);
      events.push(event);
      if ('end' in event) break;
    }
    const only = (key) => events.filter((e) => key in e).map((e) => e[key]);
    const [done] = only('done'), [failed] = only('failed'), [refused] = only('refused');
    return {
      events, done, failed, refused, texts: only('text'), thoughts: only('thinking'),
      waits: only('wait'), models: only('models')[0], local: only('local')[0],
      cpu: events.at(-1).end, deltas: events.at(-1).deltas,
    };
  }

  close() {
    return this.peer.stop();
  }
}
