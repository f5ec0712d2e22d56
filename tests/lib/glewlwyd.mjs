// Debian's OpenID Connect provider `glewlwyd` in a directory of its own: SQLite,
// one OIDC plugin set up through its API, and a person who has agreed.
import { execFileSync, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { Visitor } from './idp.mjs';
import { freePort } from './port.mjs';

const PROGRAM = '/usr/bin/glewlwyd';
const TABLES = '/usr/share/dbconfig-common/data/glewlwyd/install/sqlite3';
const MODULES = '/usr/lib/glewlwyd';
const PAGES = '/usr/share/glewlwyd/webapp';
const TYPES = { html: 'text/html', css: 'text/css', js: 'application/javascript', json: 'application/json', png: 'image/png', ico: 'image/x-icon', woff2: 'font/woff2' };

/** Why it cannot be used here, or false. */
export const noGlewlwyd = existsSync(PROGRAM) && existsSync(TABLES) ? false : 'glewlwyd';

/** Why its own pages cannot be used here, or false. */
export const noPages = noGlewlwyd || (existsSync(join(PAGES, 'login.html')) ? false : 'the pages of glewlwyd');

/** Its pages in a directory, and the settings that serve them. The package has
 *  links to files of others, which the server does not follow, and a link to a
 *  directory where the pages look for config.json. */
function copyPages(to) {
  const settings = join(PAGES, 'config.json');
  cpSync(PAGES, to, { recursive: true, dereference: true, filter: (from) => from !== settings });
  cpSync(statSync(settings).isDirectory() ? join(settings, 'config.json') : settings, join(to, 'config.json'), { dereference: true });
  const types = Object.entries(TYPES).map(([ext, type]) => `{ extension = ".${ext}"; mime_type = "${type}"; }`);
  return `static_files_path="${to}"\nstatic_files_mime_types = ( ${types.join(', ')} )\n`;
}

function newKey(alg) {
  const pair = alg === 'RS256' ? generateKeyPairSync('rsa', { modulusLength: 2048 })
    : alg === 'ES256' ? generateKeyPairSync('ec', { namedCurve: 'P-256' }) : generateKeyPairSync('ed25519');
  return { ...pair.privateKey.export({ format: 'jwk' }), alg, kid: alg, use: 'sig' };
}

export class Glewlwyd {
  /** Where it will be: it must know its resources before they know it. */
  async settle() {
    this.port = await freePort();
    this.url = `http://127.0.0.1:${this.port}/api`;
    this.issuer = `${this.url}/oidc`;
    return this;
  }

  /** alg: of its tokens; resources: that a token may be for; clients: as its API wants them;
   *  pages: serve its own pages for browsers. */
  async start({ alg = 'ES256', scopes = ['mcp'], resources = [], parameters = {}, clients = [], pages = false } = {}) {
    this.dir = mkdtempSync(join(tmpdir(), 'mo-glewlwyd-'));
    const file = join(this.dir, 'conf'), db = join(this.dir, 'db');
    mkdirSync(join(this.dir, 'none'));
    execFileSync('sqlite3', [db], { input: readFileSync(TABLES) });
    writeFileSync(file, `port=${this.port}
bind_address="127.0.0.1"
external_url="http://127.0.0.1:${this.port}"
login_url="login.html"
api_prefix="api"
log_mode="console"
log_level="WARNING"
cookie_domain="127.0.0.1"
cookie_secure=0
session_expiration=2419200
session_key="GLEWLWYD2_SESSION_ID"
admin_scope="g_admin"
profile_scope="g_profile"
user_module_path="${MODULES}/user"
user_middleware_module_path="${this.dir}/none"
client_module_path="${MODULES}/client"
user_auth_scheme_module_path="${MODULES}/scheme"
plugin_module_path="${MODULES}/plugin"
use_secure_connection=false
secure_connection_key_file="none"
secure_connection_pem_file="none"
hash_algorithm="SHA512"
database = { type = "sqlite3"; path = "${db}" };
${pages ? copyPages(join(this.dir, 'pages')) : ''}`);
    this.child = spawn(PROGRAM, ['-c', file], { cwd: this.dir, stdio: ['ignore', 'pipe', 'pipe'] });
    this.log = '';
    for (const s of [this.child.stdout, this.child.stderr]) s.on('data', (d) => (this.log += d));
    this.ended = once(this.child, 'exit');
    await this.answers();
    await this.furnish({ alg, scopes, resources, parameters, clients });
    return this;
  }

  async answers() {
    for (let i = 0; i < 400; i++) {
      if (this.child.exitCode !== null) throw new Error(`glewlwyd ended: ${this.log}`);
      const ok = await fetch(`http://127.0.0.1:${this.port}/config`).then((r) => r.text(), () => null);
      if (ok !== null) return;
      await new Promise((r) => setTimeout(r, 25));
    }
    throw new Error(`glewlwyd does not answer: ${this.log}`);
  }

  async #tell(who, method, path, body) {
    const answer = await who.fetch(this.url + path, {
      method, body: JSON.stringify(body), headers: { 'content-type': 'application/json' } });
    const text = await answer.text();
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${text}\n${this.log}`);
    return text;
  }

  async furnish({ alg, scopes, resources, parameters, clients }) {
    const admin = new Visitor();
    await this.#tell(admin, 'POST', '/auth', { username: 'admin', password: 'password' });
    for (const name of scopes)
      await this.#tell(admin, 'POST', '/scope', { name, display_name: name, description: name,
        password_required: true, password_max_age: 0, scheme: {} });
    await this.#tell(admin, 'POST', '/user?source=database', { username: 'gwen', name: 'Gwen', password: 'a password',
      email: 'gwen@example.test', enabled: true, scope: ['openid', ...scopes] });
    await this.#tell(admin, 'POST', '/mod/plugin', { module: 'oidc', name: 'oidc', display_name: 'oidc', enabled: true,
      parameters: {
        iss: this.issuer, 'jwks-private': JSON.stringify({ keys: [newKey(alg)] }), 'jwks-show': true,
        'access-token-duration': 3600, 'refresh-token-duration': 1209600, 'code-duration': 600,
        'refresh-token-rolling': true, 'allow-non-oidc': true, 'auth-type-code-enabled': true,
        'auth-type-refresh-enabled': true, 'pkce-allowed': true, 'introspection-revocation-allowed': true,
        'introspection-revocation-allow-target-client': true, 'subject-type': 'public',
        'register-client-allowed': true, 'register-client-auth-scope': [], 'register-client-credentials-scope': ['mcp'],
        'resource-allowed': true, 'resource-scope': Object.fromEntries(scopes.map((s) => [s, resources])),
        'resource-change-allowed': false, 'resource-scope-and-client-property': false,
        // `sub` is a random text for each person
        'additional-parameters': [{ 'user-parameter': 'username', 'token-parameter': 'username', 'token-changed': true }],
        ...parameters,
      } });
    for (const client of clients)
      await this.#tell(admin, 'POST', '/client?source=database', { client_name: client.client_id, enabled: true, ...client });
    this.gwen = new Visitor();
    await this.#tell(this.gwen, 'POST', '/auth', { username: 'gwen', password: 'a password' });
  }

  /** Gwen lets the client have the scopes. */
  agree(client, scope) {
    return this.#tell(this.gwen, 'PUT', `/auth/grant/${encodeURIComponent(client)}`, { scope });
  }

  async stop() {
    this.child.kill('SIGKILL'); // it takes seconds to end by itself
    await this.ended;
    rmSync(this.dir, { recursive: true, force: true });
  }
}
