// Everything crosses: the conversation that the official SDK clients have with
// the fixture, had with the gateway in front of it, for servers of both eras.
import assert from 'node:assert/strict';
import { after, before, describe } from 'node:test';
import { Place, fixtureServer } from '../lib/gateway.mjs';
import { converse, kinds } from '../lib/mcp_talk.mjs';

for (const era of ['legacy', 'modern']) {
  describe(`a ${era} server behind it`, () => {
    const place = new Place({ fixture: fixtureServer() });
    let serve;

    if (era === 'legacy') place.legacy(fixtureServer());
    before(async () => {
      serve = await place.serve();
    });
    after(async () => {
      const { code, log } = await serve.stop();
      place.close();
      assert.equal(code, 0, log);
      assert.doesNotMatch(log, /runtime error|Sanitizer/);
    });
    for (const kind of kinds(() => serve.url, () => place.command()))
      converse(kind, { front: true });
  });
}
