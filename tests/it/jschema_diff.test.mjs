// codec/jschema against npm's ajv: schemas and values made at random from the
// keywords we know, both must come to the same verdict. Left out is where ajv
// has a view of its own: contains beside prefixItems on an empty array, ""
// as a required name, multiples beyond what a double can hold.
import Ajv2020 from 'ajv/dist/2020.js';
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { Peer } from './peer.mjs';

const SEED = Number(process.env.MO_SEED ?? 20261115);
const ROUNDS = Number(process.env.MO_ROUNDS ?? 1500);

// mulberry32: small, and the same everywhere
let state = SEED;
function random() {
  state = (state + 0x6d2b79f5) | 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
}
const below = (n) => Math.floor(random() * n);
const pick = (list) => list[below(list.length)];
const some = (max, make) => Array.from({ length: below(max + 1) }, make);

const names = ['a', 'b', 'x-1', 'é', 'a b'];
const texts = ['', 'a', 'ab', 'abc', 'x-1', '😀', '12', 'é😀'];
const numbers = [0, -1, 1, 2, 3, 1.5, 0.3, 100, -7, 2 ** 40];
const patterns = ['^a', 'b$', '^[a-c]+$', '\\d{2}', '^.$', '(a|x)-?', '^$'];
const types = 'string integer number boolean array object null'.split(' ');

function value(depth) {
  const kind = below(depth > 2 ? 4 : 6);
  if (kind === 0) return pick([null, true, false]);
  if (kind === 1) return pick(texts);
  if (kind < 4) return pick(numbers);
  if (kind === 4) return some(4, () => value(depth + 1));
  return Object.fromEntries(some(3, () => [pick(names), value(depth + 1)]));
}

const map = (depth) =>
  Object.fromEntries(some(3, () => [pick(names), schema(depth + 1)]));
const list = (depth) => [schema(depth + 1), ...some(2, () => schema(depth + 1))];
const unique = (items) => [...new Set(items)];

const keywords = {
  type: () => (below(3) ? pick(types) : unique([pick(types), pick(types)])),
  enum: () => [value(1), ...some(2, () => value(1))],
  const: () => value(1),
  minimum: () => pick(numbers),
  maximum: () => pick(numbers),
  exclusiveMinimum: () => pick(numbers),
  exclusiveMaximum: () => pick(numbers),
  multipleOf: () => pick([1, 2, 3, 7, 10]),
  minLength: () => below(4),
  maxLength: () => below(4),
  pattern: () => pick(patterns),
  required: () => unique(some(2, () => pick(names))),
  minProperties: () => below(3),
  maxProperties: () => below(3),
  properties: map,
  patternProperties: (d) => ({ [pick(patterns)]: schema(d + 1) }),
  additionalProperties: (d) => schema(d + 1),
  propertyNames: (d) => schema(d + 1),
  dependentRequired: () => ({ [pick(names)]: [pick(names)] }),
  dependentSchemas: map,
  minItems: () => below(3),
  maxItems: () => below(4),
  uniqueItems: () => below(2) === 1,
  prefixItems: list,
  items: (d) => schema(d + 1),
  allOf: list,
  anyOf: list,
  oneOf: list,
  not: (d) => schema(d + 1),
  if: (d) => schema(d + 1),
  then: (d) => schema(d + 1),
  else: (d) => schema(d + 1),
};
const all = Object.keys(keywords);

function schema(depth) {
  if (depth > 3 || below(12) === 0) return pick([true, false, {}]);
  const made = {};
  for (let n = 1 + below(3); n > 0; n--) {
    const k = pick(all);
    made[k] = keywords[k](depth);
  }
  return made;
}

let peer;
before(() => {
  peer = new Peer('jschema_peer');
});
after(() => peer.stop());

test(`${ROUNDS} random schemas (seed ${SEED})`, async () => {
  const ajv = new Ajv2020({ strict: false, logger: false });
  let valid = 0;
  for (let i = 0; i < ROUNDS; i++) {
    const s = schema(0);
    const check = ajv.compile(s);
    for (let k = 0; k < 5; k++) {
      const v = value(0);
      const want = check(v);
      const got = await peer.ask(JSON.stringify([s, v]));
      assert.equal(
        got.split(' ').slice(0, 2).join(' '),
        `${want ? 'valid' : 'invalid'} 0`,
        `${JSON.stringify([s, v])}\n${got}`,
      );
      valid += want;
    }
    ajv.removeSchema();
  }
  // a generator that only ever makes one verdict would test nothing
  assert.ok(valid > ROUNDS / 2 && valid < ROUNDS * 4.5);
});
