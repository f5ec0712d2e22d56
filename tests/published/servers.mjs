// Published MCP servers, as the long run starts them: installed into
// tests/published/servers by its lock file, without their install scripts and
// without an account anywhere. Keys are of nobody: such servers list their
// tools, and answer calls with an error.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('./servers/', import.meta.url));
export const KEY = 'none-0123456789abcdef';

const official = (name) => `@modelcontextprotocol/server-${name}`;

/** name: {package, args, env, calls: [[tool, arguments], ...]}; dir: a
 *  directory that they may read and write. */
export const servers = (dir) => ({
  airbnb: { package: '@openbnb/mcp-server-airbnb' },
  airtable: { package: 'airtable-mcp-server', env: { AIRTABLE_API_KEY: KEY } },
  asana: { package: '@roychri/mcp-server-asana', env: { ASANA_ACCESS_TOKEN: KEY } },
  // It logs to its standard output.
  atlassian: { package: 'mcp-atlassian', env: { ATLASSIAN_BASE_URL: 'http://127.0.0.1:9', ATLASSIAN_EMAIL: 'a@b.c', ATLASSIAN_API_TOKEN: KEY } },
  brave: { package: official('brave-search'), env: { BRAVE_API_KEY: KEY } },
  brave2: { package: '@brave/brave-search-mcp-server', env: { BRAVE_API_KEY: KEY } },
  budget: { package: official('budget-allocator'), args: ['--stdio'] },
  chart: { package: '@antv/mcp-server-chart' },
  context7: { package: '@upstash/context7-mcp' },
  curl: { package: '@mcp-get-community/server-curl', calls: [['curl', { url: 'http://127.0.0.1:9/' }]] },
  desktop: { package: '@wonderwhy-er/desktop-commander' },
  devtools: { package: 'chrome-devtools-mcp' },
  duckduckgo: { package: 'duckduckgo-mcp-server' },
  everart: { package: official('everart'), env: { EVERART_API_KEY: KEY } },
  everything: { package: official('everything'), calls: [['echo', { message: 'hé' }], ['get-sum', { a: 2, b: 40 }]] },
  exa: { package: 'exa-mcp-server', env: { EXA_API_KEY: KEY } },
  fetch: { package: 'mcp-fetch-server' },
  fetch2: { package: '@tokenizin/mcp-npx-fetch' },
  figma: { package: 'figma-developer-mcp', args: ['--stdio'], env: { FIGMA_API_KEY: KEY } },
  filesystem: {
    package: official('filesystem'), args: [dir],
    calls: [['read_text_file', { path: join(dir, 'a.txt') }], ['list_directory', { path: dir }], ['read_text_file', { path: '/etc/shadow' }]],
  },
  firecrawl: { package: 'firecrawl-mcp', env: { FIRECRAWL_API_KEY: KEY } },
  git: { package: '@cyanheads/git-mcp-server' },
  github: { package: official('github') },
  gitlab: { package: official('gitlab'), env: { GITLAB_PERSONAL_ACCESS_TOKEN: KEY } },
  gitlab2: { package: '@zereight/mcp-gitlab', env: { GITLAB_PERSONAL_ACCESS_TOKEN: KEY, GITLAB_API_URL: 'http://127.0.0.1:9/api/v4' } },
  hello: { package: 'mcp-hello-world', calls: [['add', { a: 40, b: 2 }], ['echo', { message: 'hi' }]] },
  hubspot: { package: '@hubspot/mcp-server', env: { PRIVATE_APP_ACCESS_TOKEN: KEY } },
  kubernetes: { package: 'mcp-server-kubernetes' },
  line: { package: '@line/line-bot-mcp-server', env: { CHANNEL_ACCESS_TOKEN: KEY, DESTINATION_USER_ID: 'U1' } },
  linear: { package: 'linear-mcp-server', env: { LINEAR_API_KEY: KEY } },
  magicui: { package: '@magicuidesign/mcp' },
  map: { package: official('map'), args: ['--stdio'] },
  maps: { package: official('google-maps'), env: { GOOGLE_MAPS_API_KEY: KEY } },
  maven: { package: 'mcp-maven-deps' },
  memory: {
    package: official('memory'), env: { MEMORY_FILE_PATH: join(dir, 'memory.jsonl') },
    calls: [['read_graph', {}], ['search_nodes', { query: 'Ada' }]],
  },
  notion: { package: '@notionhq/notion-mcp-server', env: { NOTION_TOKEN: KEY } },
  obsidian: { package: 'mcp-obsidian', args: [dir] },
  pdf: { package: official('pdf'), args: ['--stdio'] },
  perplexity: { package: '@perplexity-ai/mcp-server', env: { PERPLEXITY_API_KEY: KEY } },
  playwright: { package: '@playwright/mcp' },
  playwright2: { package: '@executeautomation/playwright-mcp-server' },
  postgres: { package: official('postgres'), args: ['postgresql://127.0.0.1:9/none'] },
  puppeteer: { package: official('puppeteer') },
  runner: { package: 'mcp-server-code-runner', calls: [['run-code', { languageId: 'javascript', code: 'console.log(6 * 7)' }]] },
  shopify: { package: '@shopify/dev-mcp', env: { OPT_OUT_INSTRUMENTATION: 'true' } },
  slack: { package: official('slack'), env: { SLACK_BOT_TOKEN: KEY, SLACK_TEAM_ID: 'T1' } },
  tavily: { package: 'tavily-mcp', env: { TAVILY_API_KEY: KEY } },
  thinking: {
    package: official('sequential-thinking'),
    calls: [['sequentialthinking', { thought: 'x', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 }]],
  },
  time: { package: 'time-mcp', calls: [['days_in_month', { date: '2024-02-01' }]] },
  vault: { package: '@bitbonsai/mcpvault', args: [dir] },
  weather: { package: '@dangahagan/weather-mcp' },
  wiki: { package: official('wiki-explorer'), args: ['--stdio'] },
});

/** The file that a package starts with. */
function program(name) {
  const root = join(here, 'node_modules', name);
  const { bin } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  return join(root, typeof bin === 'string' ? bin : Object.values(bin)[0]);
}

/** As the configuration has it, and as a client starts it. */
export const entry = ({ package: name, args = [], env = {} }) => ({
  command: process.execPath, args: [program(name), ...args], env,
});
