// A stored conversation of the crowd, and whether its turn is over.
import assert from 'node:assert/strict';

/** All that is stored of a person's conversation. */
export async function historyOf({ url, tokens }, who) {
  const all = [];
  for (let after = 0, more = true; more; after = all.at(-1)?.seq) {
    const r = await fetch(`${url}/api/sessions/crowd-${who}/history?limit=1000&after=${after}`, { headers: { authorization: `Bearer ${tokens[who]}` } });
    if (r.status === 404) return all; // nobody got that far
    assert.equal(r.status, 200, `the history of ${who}`);
    const body = await r.json();
    all.push(...body.messages);
    more = body.more && body.messages.length > 0;
  }
  return all;
}

export const isOver = (list) => list.length === 0 || list.at(-1).role === 'note' ||
  (list.at(-1).role === 'assistant' && !list.at(-1).blocks.some((b) => b.type === 'call'));
