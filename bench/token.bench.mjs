// token.bench.mjs - CPU time to check a signed access token, of each algorithm,
// when it is seen for the first time and when it is known.
import { Idp } from '../tests/lib/idp.mjs';
import { inTurns, median, run, say } from './kit.mjs';

const TURNS = 5;
const AUDIENCE = 'https://tools.example.test/mcp';
const us = (list) => median(list.map((got) => got.cpu_ns / got.ops)) / 1000;

const idp = await new Idp({}).start();
for (const alg of ['RS256', 'ES256', 'EdDSA']) {
  const token = idp.token({ sub: 'ann', aud: AUDIENCE, groups: ['staff', 'admins'], scope: 'openid mcp',
    client_id: 'a-client-of-some-length', jti: 'qstrBrGjqiUh3TdSXVjhuvdyMvYNpdfi' }, { alg });
  const got = await inTurns({ new: ['new', 2_000], known: ['known', 1_000_000] }, TURNS,
    ([how, n]) => run('check_token', [how, idp.issuer, AUDIENCE, token, n]));
  say(`token ${alg}, ${token.length} bytes: CPU us new ${us(got.new).toFixed(1)} (goal 150), ` +
    `known ${us(got.known).toFixed(2)} (goal 5)`);
}
await idp.stop();
