// Requests of revision 2026-07-28 by hand.

export const P = 'io.modelcontextprotocol/';
export const MODERN = '2026-07-28';

/** One modern request: the events of its answer as they come. */
export async function* events(url, method, params, capabilities = {}, signal, headers = {}) {
  const name = params.name ?? params.uri ?? params.taskId;
  const answer = await fetch(url, {
    method: 'POST',
    signal,
    body: JSON.stringify({
      jsonrpc: '2.0', id: 1, method,
      params: {
        ...params,
        _meta: { [`${P}protocolVersion`]: MODERN, [`${P}clientCapabilities`]: capabilities },
      },
    }),
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': MODERN,
      'mcp-method': method,
      ...(name && { 'mcp-name': name }),
      ...headers,
    },
  });
  if (!/event-stream/.test(answer.headers.get('content-type'))) {
    yield await answer.json();
    return;
  }
  let left = '';
  for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) {
    const all = (left + piece).split('\n\n');
    left = all.pop();
    for (const event of all) {
      const data = event.split('\n').filter((l) => l.startsWith('data:'))
        .map((l) => l.slice(5)).join('\n');
      if (data.trim()) yield JSON.parse(data);
    }
  }
}

/** Its answer. */
export async function ask(url, method, params, capabilities, headers) {
  let last;
  for await (const m of events(url, method, params, capabilities, undefined, headers)) last = m;
  return last;
}
