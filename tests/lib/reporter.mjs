// One JSON object a line for scripts/test: every test that begins, and every
// one that ends and is no mere group, with the reason when it failed or was
// skipped.
import { inspect } from 'node:util';

function reason(error) {
  const cause = error?.cause ?? error;
  return typeof cause === 'string' ? cause : inspect(cause, { depth: 4 });
}

export default async function* report(events) {
  for await (const { type, data } of events) {
    if (type === 'test:stdout' || type === 'test:stderr') {
      yield JSON.stringify({ output: data.message }) + '\n';
      continue;
    }
    if (type === 'test:dequeue') {
      yield JSON.stringify({ begins: data.name }) + '\n';
      continue;
    }
    if (type !== 'test:pass' && type !== 'test:fail') continue;
    // A group that fails only because a test in it did is not counted twice.
    const group = data.details?.type === 'suite';
    const inherited = data.details?.error?.failureType === 'subtestsFailed';
    if (inherited || (group && type === 'test:pass')) continue;
    const skip = data.skip ?? data.todo;
    yield JSON.stringify({
      name: data.name,
      ok: type === 'test:pass',
      skip: skip === undefined ? null : String(skip),
      why: type === 'test:fail' ? reason(data.details.error) : null,
    }) + '\n';
  }
}
