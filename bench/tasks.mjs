// tasks.mjs - ten tasks, with the calls they need.
//
// A task is done in two ways that must come to the same answer and leave the
// same files: `plain`, a generator that yields the calls of one reply and gets
// their results, {text, error}, and `code`, the script in Python that a model
// would write instead. `files` lie in the directory DIR of the server "files",
// `box` in the workspace, `graph` in the server "memory".
//
// Servers: files (server-filesystem), memory (server-memory), everything
// (server-everything, not needed by any task: its definitions are offered all the
// same); box: the tools of the conversation's sandbox.

const many = (n, f) => Array.from({ length: n }, (_, i) => f(i));
const files = (name, args) => ({ server: 'files', tool: name, args });
const memory = (name, args) => ({ server: 'memory', tool: name, args });
const read = (dir, name) => files('read_text_file', { path: `${dir}/${name}` });
const sorted = (o) => JSON.stringify(Object.fromEntries(Object.entries(o).sort(([a], [b]) => (a < b ? -1 : 1))));
const entity = (name, entityType, ...observations) => ({ type: 'entity', name, entityType, observations });
/** Names of the files in the text of list_directory. */
const namesIn = (text) => text.split('\n').filter((l) => l.startsWith('[FILE] ')).map((l) => l.slice(7)).sort();

const HEAD = `import asyncio, json
import tools
DIR = "{dir}"
def text(r):
  return r["content"] if isinstance(r, dict) and "content" in r else r
def read(name):
  return text(tools.files.read_text_file(path=f"{DIR}/{name}"))
def names():
  lines = text(tools.files.list_directory(path=DIR)).split("\\n")
  return sorted(l[7:] for l in lines if l.startswith("[FILE] "))
def show(d):
  print(json.dumps(d, sort_keys=True, separators=(",", ":")))
`;
const WORDS = ['alpha', 'beta', 'gamma', 'delta', 'epsilon', 'zeta', 'eta', 'theta'];
const prose = (seed, n) => many(n, (i) => WORDS[(seed * 7 + i * i + i) % WORDS.length]).join(' ');

export const TASKS = [
  {
    name: 'join two servers\' data',
    said: 'Sum the orders in orders.csv by the city of each person in the knowledge graph.',
    graph: many(40, (i) => entity(`person${i}`, 'person', `city: city${i % 5}`, `born: ${1950 + i}`)),
    files: { 'orders.csv': many(300, (i) => `${i},person${(i * 7) % 40},${(i * 13) % 100}`).join('\n') },
    * plain(dir) {
      const [graph, orders] = yield [memory('read_graph', {}), read(dir, 'orders.csv')];
      const city = Object.fromEntries(JSON.parse(graph.text).entities.map((e) => [e.name, e.observations[0].slice(6)]));
      const sum = {};
      for (const line of orders.text.split('\n')) {
        const [, who, amount] = line.split(',');
        sum[city[who]] = (sum[city[who]] ?? 0) + Number(amount);
      }
      return sorted(sum);
    },
    code: `graph = tools.memory.read_graph()
graph = json.loads(graph) if isinstance(graph, str) else graph
city = {e["name"]: e["observations"][0][6:] for e in graph["entities"]}
sums = {}
for line in read("orders.csv").split("\\n"):
  _, who, amount = line.split(",")
  sums[city[who]] = sums.get(city[who], 0) + int(amount)
show(sums)`,
  },
  {
    name: 'edit twenty files',
    said: 'Set version: 2 in each of the twenty configuration files.',
    files: Object.fromEntries(many(20, (i) => [`c${i}.yaml`, `name: c${i}\nversion: 1\nmode: ${prose(i, 12)}\n`])),
    * plain(dir) {
      const done = yield many(20, (i) => files('edit_file', { path: `${dir}/c${i}.yaml`, edits: [{ oldText: 'version: 1', newText: 'version: 2' }] }));
      return String(done.filter((d) => !d.error).length);
    },
    code: `for i in range(20):
  tools.files.edit_file(path=f"{DIR}/c{i}.yaml", edits=[{"oldText": "version: 1", "newText": "version: 2"}])
print(20)`,
  },
  {
    name: 'page through a list',
    said: 'Find the three largest numbers in list.txt; it is long, read it in pages of 100 lines.',
    box: { 'list.txt': many(1000, (i) => `item ${i} ${(i * 7919) % 10007}`).join('\n') },
    * plain() {
      const all = [];
      for (let from = 1; from <= 1000; from += 100) {
        const [page] = yield [{ server: 'box', tool: 'read_file', args: { path: 'list.txt', start_line: from, end_line: from + 99 } }];
        all.push(...page.text.matchAll(/item \d+ (\d+)/g));
      }
      return JSON.stringify(all.map((m) => Number(m[1])).sort((a, b) => b - a).slice(0, 3));
    },
    code: `got = []
for start in range(1, 1001, 100):
  page = text(tools.read_file(path="list.txt", start_line=start, end_line=start + 99))
  got += [int(l.split()[2]) for l in page.split("\\n") if l.startswith("item ")]
print(json.dumps(sorted(got)[:-4:-1], separators=(",", ":")))`,
  },
  {
    name: 'fan out and summarise',
    said: 'How many errors are in each of the twelve logs, and in all?',
    files: Object.fromEntries(many(12, (i) => [`log${String(i).padStart(2, '0')}.txt`, many(60, (k) => `${(k * (i + 3)) % 7 === 0 ? 'ERROR' : 'INFO'} ${prose(i + k, 8)}`).join('\n')])),
    * plain(dir) {
      const [list] = yield [files('list_directory', { path: dir })];
      const logs = namesIn(list.text);
      const texts = yield logs.map((n) => read(dir, n));
      const sum = Object.fromEntries(logs.map((n, i) => [n, texts[i].text.split('\n').filter((l) => l.startsWith('ERROR')).length]));
      return sorted({ ...sum, total: Object.values(sum).reduce((a, b) => a + b) });
    },
    code: `async def count(name):
  lines = text(await tools.aio.files.read_text_file(path=f"{DIR}/{name}")).split("\\n")
  return sum(l.startswith("ERROR") for l in lines)
async def main():
  logs = names()
  sums = dict(zip(logs, await asyncio.gather(*map(count, logs))))
  show({**sums, "total": sum(sums.values())})
asyncio.run(main())`,
  },
  {
    name: 'filter a big table',
    said: 'Which rows of table.csv have a value over 9,900?',
    files: { 'table.csv': many(1500, (i) => `${i},${WORDS[i % 8]},${(i * 6151) % 10000},${prose(i, 2)}`).join('\n') },
    * plain(dir) {
      const [table] = yield [read(dir, 'table.csv')];
      return JSON.stringify(table.text.split('\n').filter((l) => Number(l.split(',')[2]) > 9900).map((l) => Number(l.split(',')[0])));
    },
    code: `rows = [l.split(",") for l in read("table.csv").split("\\n")]
print(json.dumps([int(r[0]) for r in rows if int(r[2]) > 9900], separators=(",", ":")))`,
  },
  {
    name: 'rename files by content',
    said: 'Rename each file to the title in its first line.',
    files: Object.fromEntries(many(10, (i) => [`scan${i}.txt`, `title-${(i * 3) % 10}\n${prose(i, 150)}`])),
    * plain(dir) {
      const [list] = yield [files('list_directory', { path: dir })];
      const old = namesIn(list.text);
      const heads = yield old.map((n) => files('read_text_file', { path: `${dir}/${n}`, head: 1 }));
      const moved = yield old.map((n, i) => files('move_file', { source: `${dir}/${n}`, destination: `${dir}/${heads[i].text.trim()}.txt` }));
      return String(moved.filter((m) => !m.error).length);
    },
    code: `n = 0
for name in names():
  title = text(tools.files.read_text_file(path=f"{DIR}/{name}", head=1)).strip()
  tools.files.move_file(source=f"{DIR}/{name}", destination=f"{DIR}/{title}.txt")
  n += 1
print(n)`,
  },
  {
    name: 'count words over files',
    said: 'How often does each word occur in all files?',
    files: Object.fromEntries(many(15, (i) => [`text${i}.txt`, prose(i, 400)])),
    * plain(dir) {
      const [list] = yield [files('list_directory', { path: dir })];
      const texts = yield namesIn(list.text).map((n) => read(dir, n));
      const sum = {};
      for (const w of texts.flatMap((x) => x.text.split(/\s+/))) sum[w] = (sum[w] ?? 0) + 1;
      return sorted(sum);
    },
    code: `sums = {}
for name in names():
  for w in read(name).split():
    sums[w] = sums.get(w, 0) + 1
show(sums)`,
  },
  {
    name: 'compare two lists',
    said: 'Which names are in only one of the two lists?',
    files: {
      'a.txt': many(400, (i) => `user-${i * 3}@example.org`).join('\n'),
      'b.txt': many(400, (i) => `user-${i === 200 ? 1 : i * 3}@example.org`).reverse().join('\n'),
    },
    * plain(dir) {
      const [a, b] = (yield [read(dir, 'a.txt'), read(dir, 'b.txt')]).map((x) => new Set(x.text.split('\n')));
      return JSON.stringify([...[...a].filter((x) => !b.has(x)), ...[...b].filter((x) => !a.has(x))].sort());
    },
    code: `a, b = set(read("a.txt").split("\\n")), set(read("b.txt").split("\\n"))
print(json.dumps(sorted(a ^ b), separators=(",", ":")))`,
  },
  {
    name: 'retry over failures',
    said: 'Collect the first word of each of the eight notes; a note is a .md or a .txt file.',
    files: Object.fromEntries(many(8, (i) => [`note${i}.${i % 3 ? 'txt' : 'md'}`, `${WORDS[i]} ${prose(i, 60)}`])),
    * plain(dir) {
      const first = yield many(8, (i) => read(dir, `note${i}.md`));
      const failed = many(8, (i) => i).filter((i) => first[i].error);
      const second = yield failed.map((i) => read(dir, `note${i}.txt`));
      failed.forEach((i, k) => (first[i] = second[k]));
      return JSON.stringify(first.map((r) => r.text.split(' ')[0]));
    },
    code: `def note(i):
  try:
    return read(f"note{i}.md")
  except tools.Failed:
    return read(f"note{i}.txt")
print(json.dumps([note(i).split()[0] for i in range(8)], separators=(",", ":")))`,
  },
  {
    name: 'collect and write a report',
    said: 'Write report.md: for each of the five projects in the knowledge graph its owner, and the number of files here.',
    graph: many(25, (i) => entity(`project${i % 5}-part${Math.floor(i / 5)}`, 'part', `owner: person${i % 5}`, prose(i, 20))),
    files: Object.fromEntries(many(6, (i) => [`f${i}.txt`, prose(i, 30)])),
    * plain(dir) {
      const found = yield [...many(5, (i) => memory('search_nodes', { query: `project${i}-` })), files('list_directory', { path: dir })];
      const list = found.pop();
      const rows = found.map((f, i) => `- project${i}: ${JSON.parse(f.text).entities[0].observations[0].slice(7)}, ${JSON.parse(f.text).entities.length} parts`);
      const report = `# Report\n\n${rows.join('\n')}\n\n${namesIn(list.text).length} files\n`;
      yield [files('write_file', { path: `${dir}/report.md`, content: report })];
      return 'written';
    },
    code: `rows = []
for i in range(5):
  got = tools.memory.search_nodes(query=f"project{i}-")
  got = (json.loads(got) if isinstance(got, str) else got)["entities"]
  rows.append(f'- project{i}: {got[0]["observations"][0][7:]}, {len(got)} parts')
report = "# Report\\n\\n" + "\\n".join(rows) + f"\\n\\n{len(names())} files\\n"
tools.files.write_file(path=f"{DIR}/report.md", content=report)
print("written")`,
  },
];

/** The whole script of a task. */
export const scriptOf = (task, dir) => HEAD.replace('{dir}', dir) + task.code;
