// Boxes with a network, and hosts for them: TLS, HTTP and plain TCP servers on
// this machine that a box reaches by names such as api.test.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer as createHttp } from 'node:http';
import { createSecureServer as createHttp2 } from 'node:http2';
import { createServer as createHttps } from 'node:https';
import { createServer as createTcp } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { bin } from './gateway.mjs';
import { busybox, load, python } from './image.mjs';
import { withHosts } from './hosts.mjs';
import { client1, text } from './mcp_talk.mjs';
import { Home } from './sessions.mjs';
import { programs } from './toolbox.mjs';

/** A certificate for these names, which is its own authority. */
export function certificate(names) {
  const dir = mkdtempSync(join(tmpdir(), 'mo-egress-'));
  try {
    execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1',
      '-nodes', '-days', '2', '-subj', '/CN=test', '-keyout', join(dir, 'key'), '-out', join(dir, 'cert'),
      '-addext', `subjectAltName=${names.map((n) => `DNS:${n}`).join()}`], { stdio: 'ignore' });
    return { key: readFileSync(join(dir, 'key')), cert: readFileSync(join(dir, 'cert'), 'utf8') };
  } finally {
    rmSync(dir, { recursive: true });
  }
}

/** Servers on 127.0.0.1 that are closed together. */
export class Hosts {
  servers = [];

  async listen(server) {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    this.servers.push(server);
    return server.address().port;
  }

  http(answer) {
    return this.listen(createHttp(answer));
  }

  tls(pair, answer) {
    return this.listen(createHttps(pair, answer));
  }

  /** HTTP/2, and HTTP/1.1 for clients that want it. */
  http2(pair, answer) {
    return this.listen(createHttp2({ ...pair, allowHTTP1: true }, answer));
  }

  tcp(serve) {
    return this.listen(createTcp({ allowHalfOpen: true }, (s) => {
      s.on('error', () => {});
      serve(s);
    }));
  }

  close() {
    for (const s of this.servers) {
      s.closeAllConnections?.();
      s.close();
    }
  }
}

/** An image with the toolbox and Python, for docker boxes. more: further entries. */
export async function loadPython(engine, tag, more = []) {
  const all = [...busybox(), ...['wget', 'nslookup', 'nc', 'sha256sum'].map((n) => ({ path: `bin/${n}`, type: '2', link: 'busybox' })),
    ...python(), { path: 'toolbox', data: readFileSync(programs.musl) }, ...more];
  await load(engine, tag, [[...new Map(all.map((e) => [e.path, e])).values()]], { Entrypoint: ['/toolbox'] });
}

/** A gateway whose server `t` is the toolbox in a box with this network: native, or a container of that image. */
export class NetBox {
  /** enter: a command that starts it elsewhere (internet.mjs); hosts: names it resolves. */
  static async open(network, { env = {}, level = 'info', enter = [], image, engine, hosts, home, more = {}, secrets = {}, trust } = {}) {
    const it = new NetBox();
    it.home = home ?? new Home({
      mcpServers: { t: { ...(image ? { image } : { command: 'mo-toolbox', sandbox: engine ? 'docker' : 'native' }),
        memoryMb: 512, cpus: 2, pids: 256, network, env } },
      ...(engine ? { engine: engine.host, driver: 'docker' } : {}),
      log: { level },
      ...more,
    });
    it.log = '';
    const own = { PATH: process.env.PATH, HOME: it.home.root, ASAN_OPTIONS: 'detect_leaks=0' };
    for (const [name, input] of Object.entries(secrets))
      execFileSync(bin, ['--config', it.home.config, 'secrets', 'set', name], { input, env: own, stdio: ['pipe', 'ignore', 'inherit'] });
    if (trust) writeFileSync((own.SSL_CERT_FILE = join(it.home.root, 'trust.pem')), trust);
    const plain = [...enter, bin, 'gateway', '--config', it.home.config];
    const [command, ...args] = hosts ? withHosts(it.home.root, hosts, plain) : plain;
    const transport = new StdioClientTransport({
      command,
      args,
      env: own,
      stderr: 'pipe',
    });
    transport.stderr.on('data', (d) => { it.log += d; });
    Object.assign(it, client1());
    await it.client.connect(transport);
    return it;
  }

  /** What a shell command in the box prints, with its exit code at the end. */
  async run(command) {
    return text(await this.call({ name: 'execute_command',
      arguments: { command: `(${command}\n) 2>&1; echo "exit $?"`, timeout: 55 } })).trim();
  }

  /** Run Python in the box; what it prints is JSON. tcp(host, port, data) gives
   *  the bytes of an answer or the name of an error. */
  async python(code) {
    const said = await this.run(`/usr/bin/python3 - <<'EOF'
import errno, json, os, socket, struct
def name(e): return errno.errorcode.get(e.errno, str(e))
def tcp(host, port, data=b''):
    try:
        s = socket.create_connection((host, port))
        if data: s.sendall(data)
        s.shutdown(socket.SHUT_WR)
        got = b''
        while True:
            more = s.recv(65536)
            if not more: return got.decode('latin1')
            got += more
    except OSError as e:
        return name(e)
${code}
EOF`);
    assert.match(said, /exit 0$/, said);
    return JSON.parse(said.split('\n').at(-2));
  }

  async close() {
    await this.client.close();
    this.home.removeAll();
  }
}
