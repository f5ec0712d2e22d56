// An OpenID Connect provider: the certified `oidc-provider` from npm, with the
// accounts of a test, its own pages for signing in, and its keys in our hands,
// so that a test can sign tokens that the provider never would.
import { createPrivateKey, generateKeyPairSync, sign } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

import Provider from 'oidc-provider';

const b64 = (v) => Buffer.from(typeof v === 'string' ? v : JSON.stringify(v)).toString('base64url');

function newKey(alg, kid) {
  const pair = alg === 'RS256' ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' })
      : generateKeyPairSync('ed25519');
  return { ...pair.privateKey.export({ format: 'jwk' }), alg, kid, use: 'sig' };
}

export class Idp {
  /** people: {name: {groups, email, email_verified}}; clients as the provider wants them.
   *  how: {format: of access tokens, seconds: how long they are valid, options: of the provider}. */
  constructor(people, clients = [], how = {}) {
    this.people = people;
    this.clients = clients;
    this.how = { format: 'jwt', seconds: 3600, ...how };
    this.keys = ['RS256', 'ES256', 'EdDSA'].map((alg) => newKey(alg, `${alg}-1`));
    this.requests = []; // paths
  }

  async start(port = 0) {
    this.server = http.createServer((rq, rs) => {
      this.requests.push(rq.url.split('?')[0]);
      if (this.lie && this.lie(rq, rs)) return;
      this.handle(rq, rs);
    }).listen(port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = this.server.address().port;
    this.issuer = `http://127.0.0.1:${this.port}`;
    this.make();
    return this;
  }

  make() {
    const { people, how } = this;
    const provider = new Provider(this.issuer, {
      clients: this.clients,
      jwks: { keys: this.keys },
      cookies: { keys: ['a key of this test'] },
      pkce: { required: () => true },
      conformIdTokenClaims: false,
      claims: { openid: ['sub'], email: ['email', 'email_verified'], groups: ['groups'] },
      scopes: ['openid', 'offline_access', 'email', 'groups', 'mcp', 'tools'],
      enabledJWA: {
        idTokenSigningAlgValues: ['RS256', 'ES256', 'EdDSA'],
      },
      findAccount: (ctx, id) => people[id] && {
        accountId: id, claims: async () => ({ sub: id, ...people[id] }),
      },
      extraTokenClaims: (ctx, token) => people[token.accountId]
        && { groups: people[token.accountId].groups },
      ttl: { AccessToken: 3600, IdToken: 3600, Session: 3600, Interaction: 3600, Grant: 3600 },
      features: {
        devInteractions: { enabled: true },
        deviceFlow: { enabled: true },
        registration: { enabled: true },
        rpInitiatedLogout: { enabled: true },
        introspection: { enabled: true },
        ...this.features,
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: (ctx, resource) => ({
            scope: 'mcp tools groups', audience: resource, accessTokenFormat: how.format,
            accessTokenTTL: how.seconds, jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
      ...how.options,
    });
    provider.proxy = true;
    this.handle = provider.callback();
  }

  async stop() {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  /** Other keys from now on, as after a rotation. */
  rotate(n) {
    this.keys = ['RS256', 'ES256', 'EdDSA'].map((alg) => newKey(alg, `${alg}-${n}`));
    this.make();
  }

  /** A token with these claims. how: {alg, key, kid, header, signature}. */
  token(claims, how = {}) {
    const alg = how.alg ?? 'ES256';
    const jwk = how.key ?? this.keys.find((k) => k.alg === alg);
    const now = Math.floor(Date.now() / 1000);
    const header = { alg, kid: how.kid ?? jwk?.kid, typ: 'at+jwt', ...how.header };
    const body = { iss: this.issuer, iat: now, exp: now + 600, ...claims };
    const text = `${b64(header)}.${b64(body)}`;
    if (how.signature !== undefined) return `${text}.${how.signature}`;
    const key = createPrivateKey({ key: jwk, format: 'jwk' });
    return `${text}.${sign(jwk.alg === 'EdDSA' ? null : 'sha256', Buffer.from(text),
      { key, dsaEncoding: 'ieee-p1363' }).toString('base64url')}`;
  }
}

export { newKey };

/** A browser without pictures: cookies, redirects, the provider's own forms. */
export class Visitor {
  #jar = new Map(); // origin -> Map of cookies

  async fetch(url, options = {}) {
    const { origin } = new URL(url);
    const jar = this.#jar.get(origin) ?? new Map();
    this.#jar.set(origin, jar);
    const answer = await fetch(url, {
      redirect: 'manual', ...options,
      headers: { ...options.headers, cookie: [...jar].map(([k, v]) => `${k}=${v}`).join('; ') },
    });
    for (const line of answer.headers.getSetCookie()) {
      const [pair, ...attributes] = line.split(';');
      const at = pair.indexOf('=');
      if (attributes.some((a) => /^\s*(max-age=0|expires=Thu, 01 Jan 1970)/i.test(a))) jar.delete(pair.slice(0, at));
      else jar.set(pair.slice(0, at), pair.slice(at + 1));
    }
    return answer;
  }

  cookies(url) {
    return this.#jar.get(new URL(url).origin) ?? new Map();
  }

  /** Go on until a page needs no more clicks; returns the last answer. stop(url): end before it. */
  async visit(url, login, stop = () => false) {
    let answer, at = url;
    for (let i = 0; i < 30; i++) {
      if (stop(at)) return { at };
      answer = await this.fetch(at);
      for (;;) {
        const to = answer.headers.get('location');
        if (to) {
          at = new URL(to, at).href;
          if (stop(at)) return { at, answer };
          break;
        }
        const html = await answer.clone().text();
        const refresh = html.match(/http-equiv="refresh" content="0;\s*url=([^"]+)"/i);
        if (refresh) {
          at = new URL(refresh[1], at).href;
          break;
        }
        const form = html.match(/<form[^>]*action="([^"]+)"/);
        if (!form) return { at, answer, html };
        const prompt = html.match(/name="prompt" value="(\w+)"/)?.[1];
        const fields = [...html.matchAll(/type="hidden" name="([^"]+)" value="([^"]*)"/g)].map((m) => [m[1], m[2]]);
        answer = await this.fetch(new URL(form[1], at), {
          method: 'POST', headers: { 'content-type': 'application/x-www-form-urlencoded' },
          body: new URLSearchParams([...fields, ...(prompt === 'login' ? [['login', login], ['password', 'x']] : [])]),
        });
      }
    }
    throw new Error(`never came to an end: ${at}`);
  }
}
