// Many calls of one script: each is stored, judged and recorded, none is lost,
// and the script is told where the limit is.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { House } from './talk_kit.mjs';

test('10,000 calls, and one more', async () => {
  const house = await House.start({ config: { approvals: { rules: [{ server: 'box', action: 'allow' }] } } });
  try {
    house.model.script.push({ calls: [{ name: 'run_script', args: { language: 'python', timeout: 170, code: `
import asyncio
import tools
async def many(n):
  out = await asyncio.gather(*[tools.aio.read_file(path="none") for i in range(n)], return_exceptions=True)
  return {type(x).__name__ for x in out}
async def main():
  kinds = set()
  for i in range(10):
    kinds |= await many(1000)
  print(kinds, await many(2))
asyncio.run(main())` } }] }, { text: 'end' });
    const tab = house.tab();
    await tab.ready();
    await tab.say('run it');
    const [text] = await tab.event('agent:response', 1, 170_000);
    assert.equal(text, 'end');
    assert.match(house.results()[0].text, /\{'Failed'\} \{'Limit'\}/);
    const [, entry] = tab.events.find(([e, d]) => e === 'session:entry' && d.role === 'tool');
    assert.equal(entry.scripts[0].total, 10_000);
    assert.ok(entry.scripts[0].calls.length <= 500, 'the entry names the first of them');
    const ids = tab.events.filter(([e, , m]) => e === 'tool:output' && m.parent).map(([, , m]) => m.callId);
    assert.equal(ids.length, 10_000);
    assert.equal(new Set(ids).size, 10_000, 'each has one outcome');
  } finally {
    await house.stop();
  }
});
