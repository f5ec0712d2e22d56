// Proofs of possession (RFC 9449): made, and checked strictly.
import { createHash, createPrivateKey, createPublicKey, generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto';

const random = () => randomBytes(18).toString('base64url');
const b64 = (v) => Buffer.from(JSON.stringify(v)).toString('base64url');
const digest = (text) => createHash('sha256').update(text).digest('base64url');
const KINDS = {
  ES256: { pair: ['ec', { namedCurve: 'P-256' }], names: ['crv', 'kty', 'x', 'y'] },
  EdDSA: { pair: ['ed25519'], names: ['crv', 'kty', 'x'] },
  RS256: { pair: ['rsa', { modulusLength: 2048 }], names: ['e', 'kty', 'n'] },
};

const thumbprint = (jwk, alg) => digest(JSON.stringify(Object.fromEntries(KINDS[alg].names.map((n) => [n, jwk[n]]))));

/** Somebody with a key. */
export class Prover {
  constructor(alg = 'ES256') {
    this.alg = alg;
    const { publicKey, privateKey } = generateKeyPairSync(...KINDS[alg].pair);
    this.key = privateKey.export({ format: 'jwk' });
    this.jwk = publicKey.export({ format: 'jwk' });
    this.jkt = thumbprint(this.jwk, alg);
  }

  /** how: {header, claims} to say something else. */
  prove(method, url, token, how = {}) {
    const header = { typ: 'dpop+jwt', alg: this.alg, jwk: this.jwk, ...how.header };
    const claims = { jti: random(), htm: method, htu: url, iat: Math.floor(Date.now() / 1000),
      ...(token && { ath: digest(token) }), ...how.claims };
    const text = `${b64(header)}.${b64(claims)}`;
    const key = createPrivateKey({ key: this.key, format: 'jwk' });
    return `${text}.${sign(this.alg === 'EdDSA' ? null : 'sha256', Buffer.from(text), { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }
}

/** A server that wants proofs with ES256, each once, with its latest nonce if it has one. */
export class Proofs {
  seen = new Set();
  count = 0; // good ones
  asked = 0; // for a nonce
  nonce = null;

  turn() {
    this.nonce = random();
  }

  /** {jkt}, or {error, why}; headers: for the answer in any case. */
  check(rq, url, token) {
    const headers = this.nonce ? { 'dpop-nonce': this.nonce } : {};
    const no = (why, error = 'invalid_dpop_proof') => ({ error, why, headers });
    const proof = rq.headers.dpop;
    if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(proof ?? '')) return no(`proof ${proof}`);
    const [head, body, signature] = proof.split('.');
    const [header, claims] = [head, body].map((x) => JSON.parse(Buffer.from(x, 'base64url')));
    if (header.typ !== 'dpop+jwt' || header.alg !== 'ES256' || header.jwk?.d) return no(`header ${JSON.stringify(header)}`);
    const key = createPublicKey({ key: header.jwk, format: 'jwk' });
    if (!verify('sha256', Buffer.from(`${head}.${body}`), { key, dsaEncoding: 'ieee-p1363' }, Buffer.from(signature, 'base64url'))) return no('signature');
    if (claims.htm !== rq.method || claims.htu !== url) return no(`${claims.htm} ${claims.htu} at ${rq.method} ${url}`);
    if (!Number.isInteger(claims.iat) || Math.abs(Date.now() / 1000 - claims.iat) > 60) return no(`iat ${claims.iat}`);
    if (claims.ath !== (token && digest(token))) return no('ath');
    if (typeof claims.jti !== 'string' || claims.jti.length < 16 || this.seen.has(claims.jti)) return no(`jti ${claims.jti}`);
    this.seen.add(claims.jti);
    if (this.nonce && claims.nonce !== this.nonce) {
      this.asked++;
      return no('nonce', 'use_dpop_nonce');
    }
    this.count++;
    return { jkt: thumbprint(header.jwk, 'ES256'), headers };
  }
}
