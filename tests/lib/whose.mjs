// Many MCP servers in one process, each with an authorization server of its
// own, that say whose token they saw. Whatever a client does with a token or a
// session that is not its own is noted in `wrong`.
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';

const random = () => randomBytes(24).toString('base64url');

async function read(rq) {
  let all = '';
  for await (const piece of rq.setEncoding('utf8')) all += piece;
  return all;
}

const json = (rs, status, body, headers = {}) =>
  rs.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));

const TOOLS = ['whoami', 'chatty', 'ask'].map((name) => ({
  name, description: `says whose token it saw (${name})`,
  inputSchema: { type: 'object', properties: { n: { type: 'integer' } } },
}));

export class Whose {
  /** dpop: Proofs that tokens need. */
  constructor(n = 1, { seconds = 3600, revokes = true, dpop } = {}) {
    this.dpop = dpop;
    this.seconds = seconds; // tokens live so long
    this.revokes = revokes;
    this.servers = Array.from({ length: n }, (_, i) => ({
      name: `s${i}`, clients: new Map(), codes: new Map(), access: new Map(), refresh: new Map(),
      sessions: new Map(), streams: new Map(),
    }));
    this.wrong = [];
    this.seen = { registered: 0, codes: 0, refreshed: 0, revoked: 0, calls: 0, initialized: 0, refused: 0 };
    this.asks = new Map();
    this.exchanges = []; // the forms
  }

  async start() {
    this.http = http.createServer((rq, rs) => {
      this.#route(rq, rs).catch((e) => {
        this.wrong.push(`${rq.method} ${rq.url}: ${e.stack}`);
        rs.destroy();
      });
    }).listen(0, '127.0.0.1');
    await once(this.http, 'listening');
    this.base = `http://127.0.0.1:${this.http.address().port}`;
    return this;
  }

  async stop() {
    this.http.closeAllConnections();
    this.http.close();
    await once(this.http, 'close');
  }

  /** Entries for the configuration. */
  config(more = {}) {
    return Object.fromEntries(this.servers.map((s) => [s.name, { url: this.url(s.name), credentials: 'user', ...more }]));
  }

  url(name) {
    return `${this.base}/${name}/mcp`;
  }

  server(name) {
    return this.servers.find((s) => s.name === name);
  }

  expireAll() {
    for (const s of this.servers) for (const t of s.access.values()) t.until = 0;
  }

  /** Takes away what a person was given. */
  forget(name, user) {
    const s = this.server(name);
    for (const map of [s.access, s.refresh]) for (const [k, t] of map) if (t.user === user) map.delete(k);
  }

  async #route(rq, rs) {
    const url = new URL(rq.url, this.base);
    const meta = /^\/\.well-known\/(oauth-protected-resource|oauth-authorization-server)\/(s\d+)(\/mcp)?$/.exec(url.pathname);
    const own = /^\/(s\d+)\/(mcp|authorize|token|register|revoke)$/.exec(url.pathname);
    const s = this.server(meta?.[2] ?? own?.[1]);
    if (this.lie?.(rq, rs, url)) return undefined;
    if (!s) return json(rs, 404, {});
    if (meta) return this.#metadata(s, meta[1], rs);
    return this[`on_${own[2]}`](s, rq, rs, url);
  }

  #metadata(s, which, rs) {
    const issuer = `${this.base}/${s.name}`;
    if (which === 'oauth-protected-resource')
      return json(rs, 200, { resource: this.url(s.name), authorization_servers: [issuer] });
    return json(rs, 200, {
      issuer, authorization_endpoint: `${issuer}/authorize`, token_endpoint: `${issuer}/token`,
      registration_endpoint: `${issuer}/register`,
      ...(this.revokes && { revocation_endpoint: `${issuer}/revoke` }),
      response_types_supported: ['code'], code_challenge_methods_supported: ['S256'],
      token_endpoint_auth_methods_supported: ['none'], authorization_response_iss_parameter_supported: true,
      ...(this.dpop && { dpop_signing_alg_values_supported: ['ES256'] }),
    });
  }

  async on_register(s, rq, rs) {
    const asked = JSON.parse(await read(rq));
    const id = `client-${random()}`;
    s.clients.set(id, asked.redirect_uris);
    this.seen.registered++;
    json(rs, 201, { ...asked, client_id: id });
  }

  /** The person is who `login` says: the browser of a test adds it. */
  on_authorize(s, rq, rs, url) {
    const q = url.searchParams;
    if (!s.clients.get(q.get('client_id'))?.includes(q.get('redirect_uri')))
      return json(rs, 400, { error: 'invalid_request' });
    const back = new URL(q.get('redirect_uri'));
    back.searchParams.set('state', q.get('state'));
    back.searchParams.set('iss', `${this.base}/${s.name}`);
    const code = random();
    s.codes.set(code, { ...Object.fromEntries(q), user: q.get('login') ?? this.person });
    back.searchParams.set('code', code);
    return rs.writeHead(302, { location: back.href }).end();
  }

  async on_token(s, rq, rs) {
    const form = new URLSearchParams(await read(rq));
    const refused = (why) => {
      this.wrong.push(`${s.name} token: ${why}`);
      json(rs, 400, { error: 'invalid_grant' });
    };
    if (form.get('resource') !== this.url(s.name)) return refused(`resource ${form.get('resource')}`);
    const proof = this.dpop?.check(rq, `${this.base}/${s.name}/token`) ?? {};
    if (proof.error === 'use_dpop_nonce') return json(rs, 400, { error: proof.error }, proof.headers);
    if (proof.error) return refused(proof.why);
    let given;
    if (form.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange') {
      const subject = form.get('subject_token');
      this.exchanges.push({ authorization: rq.headers.authorization, ...Object.fromEntries(form) });
      if (this.denies) return json(rs, 400, { error: 'invalid_target' });
      given = { user: JSON.parse(Buffer.from(subject.split('.')[1], 'base64url')).sub };
    } else if (form.get('grant_type') === 'authorization_code') {
      given = s.codes.get(form.get('code'));
      s.codes.delete(form.get('code'));
      const digest = createHash('sha256').update(form.get('code_verifier') ?? '').digest('base64url');
      if (!given || given.code_challenge !== digest || given.client_id !== form.get('client_id')) return refused('code');
      this.seen.codes++;
    } else {
      given = s.refresh.get(form.get('refresh_token'));
      if (!given) return json(rs, 400, { error: 'invalid_grant' });
      if (given.jkt !== proof.jkt) return refused(`a refresh token of ${given.user} with another key`);
      if (given.used) return refused(`a refresh token of ${given.user} was used twice`);
      given.used = true;
      this.seen.refreshed++;
    }
    if (this.slow) await this.slow();
    const access = `${given.user}.${s.name}.${random()}`, refresh = random();
    s.access.set(access, { user: given.user, until: Date.now() + this.seconds * 1000, jkt: proof.jkt });
    s.refresh.set(refresh, { user: given.user, jkt: proof.jkt });
    return json(rs, 200, { access_token: access, token_type: this.dpop ? 'DPoP' : 'Bearer', expires_in: this.seconds, refresh_token: refresh });
  }

  async on_revoke(s, rq, rs) {
    const form = new URLSearchParams(await read(rq));
    const t = s.refresh.get(form.get('token')) ?? s.access.get(form.get('token'));
    if (t) {
      this.seen.revoked++;
      this.forget(s.name, t.user);
    }
    rs.writeHead(200).end();
  }

  // --- the MCP server

  #user(s, rq, rs) {
    const scheme = this.dpop ? 'DPoP' : 'Bearer';
    const token = new RegExp(`^${scheme} (.+)$`).exec(rq.headers.authorization ?? '')?.[1];
    const known = s.access.get(token);
    const proof = this.dpop && known ? this.dpop.check(rq, this.url(s.name), token) : {};
    for (const [k, v] of Object.entries(proof.headers ?? {})) rs.setHeader(k, v);
    if (known && proof.jkt !== known.jkt && proof.error !== 'use_dpop_nonce') this.wrong.push(`${s.name}: ${known.user} without their key: ${proof.why}`);
    if (token && !known && this.servers.some((o) => o.access.has(token))) this.wrong.push(`${s.name} got a token of another server`);
    if (known && known.until > Date.now() && proof.jkt === known.jkt) return known.user;
    this.seen.refused++;
    json(rs, 401, {}, { 'www-authenticate': `${scheme} ${proof.error ? `error="${proof.error}", ` : ''}resource_metadata="${this.base}/.well-known/oauth-protected-resource/${s.name}/mcp"` });
    return undefined;
  }

  async on_mcp(s, rq, rs) {
    const body = rq.method === 'POST' ? JSON.parse(await read(rq)) : undefined;
    const user = this.#user(s, rq, rs);
    if (user === undefined) return;
    const session = rq.headers['mcp-session-id'];
    const owner = s.sessions.get(session);
    if (session && owner !== undefined && owner !== user) this.wrong.push(`${s.name}: ${user} in a session of ${owner}`);
    if (rq.method === 'DELETE') {
      s.sessions.delete(session);
      rs.writeHead(200).end();
    } else if (rq.method === 'GET') {
      rs.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
      s.streams.set(session, rs);
      rs.on('close', () => s.streams.delete(session));
    } else if (body.method === 'initialize') {
      const id = random();
      s.sessions.set(id, user);
      this.seen.initialized++;
      json(rs, 200, { jsonrpc: '2.0', id: body.id, result: {
        protocolVersion: '2025-06-18', capabilities: { tools: {}, logging: {}, resources: { subscribe: true } },
        serverInfo: { name: s.name, version: '1' } } }, { 'mcp-session-id': id });
    } else if (session && owner === undefined) {
      json(rs, 404, {});
    } else {
      this.#message(s, user, session, body, rs);
    }
  }

  #message(s, user, session, m, rs) {
    const reply = (result) => json(rs, 200, { jsonrpc: '2.0', id: m.id, result });
    if (m.id === undefined || !m.method) {
      if (!m.method) this.asks.get(m.id)?.(m.result);
      rs.writeHead(202).end();
    } else if (m.method === 'tools/list') {
      reply({ tools: TOOLS });
    } else if (m.method === 'resources/list') {
      reply({ resources: [{ uri: `file:///${user}/diary`, name: `diary of ${user}` }] });
    } else if (m.method === 'resources/read') {
      reply({ contents: [{ uri: m.params.uri, text: `read by ${user}` }] });
    } else if (m.method === 'tools/call') {
      this.seen.calls++;
      this.#call(s, user, session, m, rs).catch((e) => this.wrong.push(e.stack));
    } else if (m.method === 'ping' || m.method === 'logging/setLevel' || m.method === 'resources/subscribe') {
      reply({});
    } else {
      json(rs, 200, { jsonrpc: '2.0', id: m.id, error: { code: -32601, message: 'no such method' } });
    }
  }

  async #call(s, user, session, m, rs) {
    const said = { user, server: s.name, n: m.params.arguments?.n };
    const result = { content: [{ type: 'text', text: JSON.stringify(said) }] };
    const send = (x) => rs.write(`data: ${JSON.stringify({ jsonrpc: '2.0', ...x })}\n\n`);
    if (m.params.name === 'whoami') {
      json(rs, 200, { jsonrpc: '2.0', id: m.id, result });
      return;
    }
    rs.writeHead(200, { 'content-type': 'text/event-stream' });
    const token = m.params._meta?.progressToken;
    if (token !== undefined) send({ method: 'notifications/progress', params: { progressToken: token, progress: 1, message: JSON.stringify(said) } });
    send({ method: 'notifications/message', params: { level: 'error', data: said } });
    const stream = s.streams.get(session);
    stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/resources/updated', params: { uri: `file:///${user}/diary` } })}\n\n`);
    stream?.write(`data: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'error', data: said } })}\n\n`);
    if (m.params.name === 'ask') {
      const id = `ask-${random()}`;
      const answer = new Promise((done) => this.asks.set(id, done));
      send({ id, method: 'elicitation/create', params: { message: JSON.stringify(said), requestedSchema: { type: 'object', properties: { who: { type: 'string' } } } } });
      const got = await answer;
      this.asks.delete(id);
      if (got?.content?.who !== user) this.wrong.push(`${s.name}: ${user} was answered by ${got?.content?.who}`);
    }
    send({ id: m.id, result });
    rs.end();
  }
}

/** Connects a person: what their browser does. as: headers that say who they are; login: who they are there. */
export async function connect(url, as, name, login, how = {}) {
  const begun = await fetch(`${url}/api/connections/${name}`, { method: 'POST', headers: as });
  const { url: there, ...rest } = await begun.json();
  if (begun.status !== 200) return { status: begun.status, ...rest };
  const away = await fetch(`${there}&login=${encodeURIComponent(login)}`, { redirect: 'manual' });
  const back = how.back?.(away.headers.get('location')) ?? away.headers.get('location');
  const page = await (await fetch(back)).text();
  const next = /url=([^"]+)"/.exec(page)?.[1].replaceAll('&amp;', '&');
  if (!next) return { status: 0, page };
  const done = await fetch(new URL(next, how.at ?? url), { headers: how.as ?? as });
  return { status: done.status, text: await done.text(), there, back, next };
}
