// A row of spend: an unknown cost is never shown as 0.
import { expect, test } from 'vitest';
import { costOf, usedOf } from '../src/lib/spend';
import { readSpend } from '../src/protocol';

const rows = readSpend({
  day: '2026-11-16',
  people: [
    { name: 'ann', tokens: 100, money: null, unpricedTokens: 100 },
    { name: 'bob', tokens: 500, money: '0.25', unpricedTokens: 10, limits: { tokensPerDay: 1000, moneyPerDay: '1' } },
    { name: 'eve', tokens: 9000, money: '9', unpricedTokens: 0, limits: { moneyPerDay: '5', callsPerMinute: 3 } },
  ],
  tokens: [{ id: 't1', tokens: 1, money: '0', unpricedTokens: 0 }],
}).people;

test('the cost', () => {
  expect(rows.map(costOf)).toEqual([
    { money: '', isPartly: false }, { money: '0.25', isPartly: true }, { money: '9', isPartly: false },
  ]);
});

test('the part of the limit that is used', () => {
  expect(rows.map(usedOf)).toEqual([null, 0.5, 1]);
});
