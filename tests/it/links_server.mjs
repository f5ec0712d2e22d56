// A server whose results link to its resources and contain them:
//
//   links_server.mjs 1|2 NAME [--alone]
//
// made with the official SDK 1.x or 2.x. It has memo://shared, which another
// server has too, and memo://NAME. Its tool `links_NAME` and its prompt
// `notes_NAME` name both, and addresses that are no resource. With --alone it
// does not have the shared one.
const [sdk, name, alone] = process.argv.slice(2);
const own = `memo://${name}`;
const all = alone ? [own] : ['memo://shared', own];
const { McpServer } = sdk === '1'
  ? await import('@modelcontextprotocol/sdk/server/mcp.js') : await import('@modelcontextprotocol/server');

const link = (uri) => ({ type: 'resource_link', uri, name: uri });
const inside = (uri) => ({ type: 'resource', resource: { uri, mimeType: 'text/plain', text: `${name} says` } });

function make() {
  const mcp = new McpServer({ name, version: '1' });
  for (const uri of all)
    mcp.registerResource(uri.slice(7), uri, { mimeType: 'text/plain' }, async () => ({
      contents: [{ uri, mimeType: 'text/plain', text: `${uri} of ${name}` }] }));
  mcp.registerTool(`links_${name}`, { description: 'links' }, async () => ({
    content: [
      ...['memo://shared', own].flatMap((uri) => [link(uri), inside(uri)]),
      link('https://example.com/memo'), { type: 'text', text: '"uri":"memo://shared"' }],
    _meta: { uri: 'memo://shared' },
  }));
  mcp.registerPrompt(`notes_${name}`, { description: 'notes' }, async () => ({
    messages: ['memo://shared', own].map((uri) => ({ role: 'user', content: inside(uri) })) }));
  return mcp;
}

if (sdk === '1') {
  const { StdioServerTransport } = await import('@modelcontextprotocol/sdk/server/stdio.js');
  await make().connect(new StdioServerTransport());
} else {
  const { serveStdio } = await import('@modelcontextprotocol/server/stdio');
  serveStdio(make);
}
