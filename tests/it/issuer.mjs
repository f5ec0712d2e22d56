// An authorization server and the MCP server it protects, both strict: what a
// client does wrong is refused and noted. The MCP server is our fixture behind
// a gate that looks at tokens. And a person with a browser, who signs in.
import { spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request } from 'node:http';

const random = () => randomBytes(24).toString('base64url');
const json = (res, status, body, headers = {}) =>
  res.writeHead(status, { 'content-type': 'application/json', ...headers })
    .end(JSON.stringify(body));

async function text(req) {
  let all = '';
  for await (const piece of req.setEncoding('utf8')) all += piece;
  return all;
}

async function listen(server) {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return `http://127.0.0.1:${server.address().port}`;
}

/** A client's mistake. Unknown clients and redirects must not be redirected. */
class Refused extends Error {
  constructor(error, what) {
    super(what);
    this.error = error;
  }
}

export class Issuer {
  clients = new Map(); // id -> {redirects, secret, method}
  codes = new Map(); // code -> what it was given for
  access = new Map(); // token -> {scope, resource, until}
  refresh = new Map(); // token -> {family, used, ...}
  seen = { registered: 0, authorized: 0, codes: 0, refreshed: 0 };
  wrong = []; // what clients did against the rules
  registers = true;
  denies = false; // the person says no
  seconds = 3600; // tokens live so long
  slow = 0; // ms until a token is given
  named = null; // the issuer that the MCP server names; its own
  dpop = null; // {issuer, server, bearer}: Proofs of each; the server's challenge is of Bearer
  refusal = null; // a promise: the next 401 waits for it
  lastAuthorize = null;

  async start(upstream) {
    this.server = createServer((req, res) => this.#serve(req, res));
    this.issuer = await listen(this.server);
    this.gate = createServer((req, res) => this.#guard(req, res, upstream));
    this.origin = await listen(this.gate);
    this.resource = `${this.origin}/mcp`;
  }

  async stop() {
    for (const s of [this.server, this.gate]) {
      s.closeAllConnections();
      s.close();
      await once(s, 'close');
    }
  }

  /** A client that somebody has registered by hand. */
  addClient(id, secret, redirects) {
    this.clients.set(id, { redirects, secret, method: 'client_secret_basic' });
  }

  expireAll() {
    for (const t of this.access.values()) t.until = 0;
  }

  revokeAll() {
    this.expireAll();
    this.refresh.clear();
  }

  // --- the authorization server

  async #serve(req, res) {
    const url = new URL(req.url, this.issuer);
    const routes = {
      'GET /.well-known/oauth-authorization-server': () => this.#metadata(res),
      'POST /register': () => this.#register(req, res),
      'GET /authorize': () => this.#authorize(url.searchParams, res),
      'POST /token': () => this.#token(req, res),
    };
    try {
      const route = routes[`${req.method} ${url.pathname}`];
      if (route) await route();
      else json(res, 404, { error: 'not_found' });
    } catch (e) {
      if (!(e instanceof Refused)) throw e;
      this.wrong.push(`${url.pathname}: ${e.message}`);
      json(res, e.error === 'invalid_client' ? 401 : 400, { error: e.error });
    }
  }

  #metadata(res) {
    json(res, 200, {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      ...(this.registers && { registration_endpoint: `${this.issuer}/register` }),
      response_types_supported: ['code'],
      code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
      authorization_response_iss_parameter_supported: true,
      ...(this.dpop && { dpop_signing_alg_values_supported: ['EdDSA', 'ES256'] }),
    });
  }

  async #register(req, res) {
    const asked = JSON.parse(await text(req));
    const loopback = /^http:\/\/(127\.0\.0\.1|localhost|\[::1\]):\d+\//;
    if (!asked.redirect_uris?.length ||
        !asked.redirect_uris.every((u) => loopback.test(u)))
      throw new Refused('invalid_redirect_uri', `redirects ${asked.redirect_uris}`);
    if (asked.token_endpoint_auth_method !== 'none')
      throw new Refused('invalid_client_metadata', 'a native app has no secret');
    const id = `client-${random()}`;
    this.clients.set(id, { redirects: asked.redirect_uris, method: 'none' });
    this.seen.registered++;
    json(res, 201, { ...asked, client_id: id });
  }

  #authorize(q, res) {
    const client = this.clients.get(q.get('client_id'));
    if (!client) throw new Refused('invalid_client', 'nobody we know');
    const redirect = q.get('redirect_uri');
    if (!client.redirects.includes(redirect))
      throw new Refused('invalid_request', `redirect_uri ${redirect}`);
    this.lastAuthorize = Object.fromEntries(q);
    for (const [name, ok] of [
      ['response_type', (v) => v === 'code'],
      ['code_challenge_method', (v) => v === 'S256'],
      ['code_challenge', (v) => /^[\w-]{43}$/.test(v ?? '')],
      ['state', (v) => v?.length >= 16],
      ['resource', (v) => v === this.resource],
    ])
      if (q.getAll(name).length !== 1 || !ok(q.get(name)))
        throw new Refused('invalid_request', `${name}: ${q.get(name)}`);
    const back = new URL(redirect);
    back.searchParams.set('state', q.get('state'));
    back.searchParams.set('iss', this.issuer);
    if (this.denies) {
      back.searchParams.set('error', 'access_denied');
    } else {
      const code = random();
      this.codes.set(code, Object.fromEntries(q));
      back.searchParams.set('code', code);
    }
    this.seen.authorized++;
    res.writeHead(302, { location: back.href }).end();
  }

  /** Who asks; the secret in the header if there is one, and nowhere else. */
  #client(req, form) {
    const basic = /^Basic (.+)$/.exec(req.headers.authorization ?? '');
    const [id, secret] = basic
      ? Buffer.from(basic[1], 'base64').toString().split(':').map(decodeURIComponent)
      : [form.get('client_id')];
    const client = this.clients.get(id);
    if (!client || client.secret !== secret || form.has('client_secret'))
      throw new Refused('invalid_client', `client ${id}`);
    return id;
  }

  async #token(req, res) {
    const form = new URLSearchParams(await text(req));
    await new Promise((done) => setTimeout(done, this.slow));
    if (req.headers['content-type'] !== 'application/x-www-form-urlencoded')
      throw new Refused('invalid_request', 'not a form');
    const id = this.#client(req, form);
    if (form.get('resource') !== this.resource)
      throw new Refused('invalid_target', `resource ${form.get('resource')}`);
    const grant = form.get('grant_type');
    const proof = this.dpop && !this.dpop.bearer
      ? this.dpop.issuer.check(req, `${this.issuer}/token`) : {};
    if (this.dpop?.bearer && req.headers.dpop)
      throw new Refused('invalid_dpop_proof', 'nobody wants one');
    if (proof.error === 'use_dpop_nonce') return json(res, 400, { error: proof.error }, proof.headers);
    if (proof.error) throw new Refused(proof.error, proof.why);
    if (grant === 'authorization_code') json(res, 200, this.#byCode(id, form, proof.jkt));
    else if (grant === 'refresh_token') json(res, 200, this.#byRefresh(id, form, proof.jkt));
    else throw new Refused('unsupported_grant_type', grant);
  }

  #byCode(id, form, jkt) {
    const given = this.codes.get(form.get('code'));
    const digest = createHash('sha256').update(form.get('code_verifier') ?? '')
      .digest('base64url');
    this.codes.delete(form.get('code')); // once
    if (!given || given.client_id !== id ||
        given.redirect_uri !== form.get('redirect_uri') ||
        given.code_challenge !== digest || given.dpop_jkt !== jkt)
      throw new Refused('invalid_grant', 'code, client, redirect or verifier');
    this.seen.codes++;
    return this.#issue(id, given.scope, random(), jkt);
  }

  #byRefresh(id, form, jkt) {
    const old = this.refresh.get(form.get('refresh_token'));
    if (old && old.jkt !== jkt) throw new Refused('invalid_grant', 'another key');
    if (!old || old.id !== id || old.used) {
      for (const [token, t] of this.refresh) // a stolen one, perhaps
        if (t.family === old?.family) this.refresh.delete(token);
      throw new Refused('invalid_grant', 'refresh token');
    }
    old.used = true;
    this.seen.refreshed++;
    return this.#issue(id, old.scope, old.family, jkt);
  }

  #issue(id, scope, family, jkt) {
    const token = random(), refresh = random();
    this.access.set(token, { scope, until: Date.now() + this.seconds * 1000, jkt });
    this.refresh.set(refresh, { id, scope, family, jkt });
    return {
      access_token: token, token_type: jkt ? 'DPoP' : 'Bearer', expires_in: this.seconds,
      refresh_token: refresh, ...(scope && { scope }),
    };
  }

  // --- the protected MCP server

  async #guard(req, res, upstream) {
    if (req.url === '/.well-known/oauth-protected-resource/mcp') {
      json(res, 200, {
        resource: this.resource,
        authorization_servers: [this.named ?? this.issuer],
        scopes_supported: ['tools'],
      });
      return;
    }
    const body = await text(req);
    const scheme = this.dpop && !this.dpop.bearer ? 'DPoP' : 'Bearer';
    const sent = new RegExp(`^${scheme} (.+)$`).exec(req.headers.authorization ?? '')?.[1];
    const token = this.access.get(sent);
    const proof = scheme === 'DPoP' && token ? this.dpop.server.check(req, this.resource, sent) : {};
    const meta = `resource_metadata="${this.origin}` +
      '/.well-known/oauth-protected-resource/mcp"';
    for (const [k, v] of Object.entries(proof.headers ?? {})) res.setHeader(k, v);
    if (!token || token.until < Date.now() || proof.error || token.jkt !== proof.jkt) {
      const until = this.refusal;
      this.refusal = null;
      await until;
      const why = proof.error ? `error="${proof.error}", ` : '';
      res.writeHead(401, { 'www-authenticate': `${scheme} ${why}${meta}, scope="tools"` })
        .end();
      return;
    }
    if (/test_image_content/.test(body) && !token.scope?.split(' ').includes('pictures')) {
      res.writeHead(403, {
        'www-authenticate':
          `Bearer error="insufficient_scope", scope="pictures", ${meta}`,
      }).end();
      return;
    }
    const { host, authorization, dpop, ...headers } = req.headers; // no passing on
    const up = request(upstream, { method: req.method, headers }, (r) => {
      res.writeHead(r.statusCode, r.headers);
      r.pipe(res);
    });
    up.on('error', () => res.destroy());
    res.on('close', () => up.destroy());
    up.end(body);
  }
}

// --- the person

/** Opens what is printed, and goes where the page sends them. */
export async function browse(url) {
  const page = await fetch(url, { redirect: 'manual' });
  const back = page.headers.get('location');
  return back ? { back, done: await fetch(back) } : { page };
}

/** Run a command with a person beside it. */
export async function runAttended(program, args, { cwd, env, visit = browse }) {
  const child = spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '', err = '', visits = [];
  child.stdout.setEncoding('utf8').on('data', (d) => (out += d));
  child.stderr.setEncoding('utf8').on('data', (d) => {
    err += d;
    const urls = [...err.matchAll(/^ {2}(http\S+)\n/gm)].map((m) => m[1]);
    for (const url of urls.slice(visits.length)) visits.push(visit(url));
  });
  const [code] = await once(child, 'close');
  visits = await Promise.all(visits);
  return { code, out, err, visits };
}
