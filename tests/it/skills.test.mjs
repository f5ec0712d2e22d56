// Skills (SEP-2640) and links to apps through the gateway, with the official
// SDK on both sides: three servers, two of which have a skill and an app of the
// same URI.
import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { SkillsClient } from '@modelcontextprotocol/client/ext/skills';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { Place, script } from '../lib/gateway.mjs';
import { client2, text, until } from '../lib/mcp_talk.mjs';

function writeSkill(folder, name, say, files = {}) {
  const dir = join(folder, name);
  mkdirSync(dir, { recursive: true });
  writeFileSync(join(dir, 'SKILL.md'), `---\nname: ${name}\ndescription: ${say}\n---\n\n${say}\n`);
  for (const [path, body] of Object.entries(files)) {
    mkdirSync(join(dir, path, '..'), { recursive: true });
    writeFileSync(join(dir, path), body);
  }
}

/** Three servers: `one` and `two` collide, `plain` has no directories. */
function furnish(more = {}) {
  const place = new Place({});
  const folder = (name) => join(place.dir, 'skills', name);
  writeSkill(folder('one'), 'refunds', 'Refunds of one', { 'templates/mail.md': 'one', 'a.txt': 'a' });
  writeSkill(folder('one'), 'git-work', 'Branches', { 'references/deep/er.md': 'deep' });
  writeSkill(folder('two'), 'refunds', 'Refunds of two');
  writeSkill(folder('plain'), 'plain-one', 'No directories', { 'b/c.md': 'c', 'b/d.md': 'd', 'e.md': 'e' });
  const server = (name, ...more) => script('skills_server.mjs', folder(name), ...more);
  place.write({
    one: server('one', 'show_one', 'app'),
    two: server('two', 'show_two', 'app'),
    plain: { ...server('plain', 'show_plain', 'own'), env: { MO_PLAIN: '1' } },
  }, { sandbox: { driver: 'none' }, ...more });
  return { place, folder };
}

const collided = (server) => `${server}+skill://refunds/SKILL.md`;

function check(open) {
  let client, skills;
  before(async () => {
    ({ client } = await open());
    skills = new SkillsClient(client);
    await until(async () => (await skills.list()).skills.length === 4);
  });
  after(() => client?.close());

  test('it is declared', () => {
    assert.equal(skills.supported, true);
    assert.equal(skills.directoryRead, true);
  });

  test('a skill of two servers is listed twice, with its files', async () => {
    const all = (await skills.list()).skills;
    assert.deepEqual(all.map((s) => s.uri).sort(), [
      collided('one'), collided('two'), 'skill://git-work/SKILL.md', 'skill://plain-one/SKILL.md'].sort());
    const one = all.find((s) => s.uri === collided('one'));
    assert.deepEqual(one.resources.map((r) => r.uri).sort(), [
      collided('one'), 'one+skill://refunds/a.txt', 'one+skill://refunds/templates/mail.md'].sort());
    assert.equal(one.frontmatter.description, 'Refunds of one');
  });

  test('every file of every skill has its digest', async () => {
    let files = 0;
    for (const skill of (await skills.list()).skills) {
      for (const file of skill.resources) {
        const got = await skills.read(skill, file.uri);
        assert.equal(got.verified, true, file.uri);
        files++;
      }
    }
    assert.equal(files, 10);
  });

  test('one entry, by its URI', async () => {
    for (const uri of [collided('two'), 'skill://git-work/SKILL.md']) {
      const { skill } = await skills.get(uri);
      assert.equal(skill.uri, uri);
      assert.ok(skill.resources.every((r) => r.uri.startsWith(uri.slice(0, -'SKILL.md'.length))));
    }
    for (const uri of ['skill://refunds/SKILL.md', 'skill://nothing/SKILL.md', 'one+skill://no/SKILL.md'])
      await assert.rejects(skills.get(uri), { code: -32602 }, uri);
  });

  test('directories: of a server that lists them, and of one that cannot', async () => {
    const names = async (uri) => (await skills.readDirectory(uri)).resources.map((r) => r.uri).sort();
    assert.deepEqual(await names('one+skill://refunds'), [
      collided('one'), 'one+skill://refunds/a.txt', 'one+skill://refunds/templates'].sort());
    assert.deepEqual(await names('skill://git-work/references/deep'),
      ['skill://git-work/references/deep/er.md']);
    assert.deepEqual(await names('skill://plain-one'),
      ['skill://plain-one/SKILL.md', 'skill://plain-one/b', 'skill://plain-one/e.md']);
    assert.deepEqual(await names('skill://plain-one/b'),
      ['skill://plain-one/b/c.md', 'skill://plain-one/b/d.md']);
    for (const uri of ['skill://plain-one/e.md', 'skill://plain-one/none', 'skill://nothing'])
      await assert.rejects(skills.readDirectory(uri), { code: -32602 }, uri);
  });

  test('a tool links to the app of its own server', async () => {
    const { tools } = await client.listTools();
    const links = {};
    for (const t of tools.filter((x) => x._meta?.ui)) {
      const uri = t._meta.ui.resourceUri;
      assert.equal(t._meta['ui/resourceUri'], uri);
      const { contents } = await client.readResource({ uri });
      assert.equal(contents[0].uri, uri);
      links[contents[0].text] = uri;
    }
    assert.deepEqual(links, {
      '<p>show_one': 'ui://one/+ui://app/view', '<p>show_two': 'ui://two/+ui://app/view', '<p>show_plain': 'ui://own/view',
    });
    const { resources } = await client.listResources();
    for (const uri of Object.values(links))
      assert.ok(resources.some((r) => r.uri === uri), uri);
  });
}

describe('skills over HTTP', () => {
  const { place, folder } = furnish();
  let served;
  before(async () => { served = await place.serve(); });
  after(async () => {
    await served?.stop();
    place.close();
  });
  const open = (mode) => async () => {
    const it = client2(mode);
    await it.client.connect(new StreamableHTTPClientTransport(new URL(served.url)));
    return it;
  };
  describe('legacy', () => check(open('legacy')));
  describe('modern', () => check(open('auto')));

  test('a skill that is added is heard of', async () => {
    const { client, on } = await open('legacy')();
    const skills = new SkillsClient(client);
    let heard = 0;
    on('notifications/resources/list_changed', () => { heard++; });
    await skills.list();
    const { tools } = await client.listTools();
    const { name } = tools.find((t) => t.name.includes('two') && t.name.endsWith('reload'));
    const reload = async () => text(await client.callTool({ name, arguments: {} }));
    assert.equal(await reload(), '', 'its server runs');
    writeSkill(folder('plain'), 'later', 'Added later');
    writeSkill(folder('two'), 'later', 'Added later');
    assert.match(await reload(), /skill:\/\/later/);
    await until(() => heard > 0);
    await until(async () => (await skills.list()).skills.some((s) => s.uri.includes('later')));
    await client.close();
  });
});

describe('skills and the router', () => {
  const { place, folder } = furnish({ gateway: { expose: 'search' } });
  let served, client;
  const find = async (query, more = {}) => {
    const { structuredContent } = await client.callTool({ name: 'find_tool', arguments: { query, ...more } });
    return structuredContent;
  };
  before(async () => {
    served = await place.serve();
    ({ client } = client2('auto'));
    await client.connect(new StreamableHTTPClientTransport(new URL(served.url)));
    await until(async () => (await new SkillsClient(client).list()).skills.length === 4);
  });
  after(async () => {
    await client?.close();
    await served?.stop();
    place.close();
  });

  test('a skill is found, and how to read it', async () => {
    const { skills, results } = await find('no directories');
    assert.deepEqual(skills.map((s) => [s.server, s.skill, s.uri, s.description]),
      [['plain', 'plain-one', 'skill://plain-one/SKILL.md', 'No directories']]);
    assert.match(skills[0].read, /resources\/read/);
    assert.ok(skills[0].confidence >= 0.4 && skills[0].confidence <= 1);
    assert.ok(results.every((r) => r.tool && !r.skill), 'tools are listed by themselves');
    const { contents } = await client.readResource({ uri: skills[0].uri });
    assert.match(contents[0].text, /No directories/);
  });

  test('of two servers under both URIs; nothing for other words', async () => {
    const { skills } = await find('refunds');
    assert.deepEqual(skills.map((s) => s.uri).sort(), [collided('one'), collided('two')]);
    assert.deepEqual((await find('the weather in Berlin')).skills, []);
    assert.equal((await find('refunds', { limit: 1 })).skills.length, 1);
  });

  test('a skill that is added is found', async () => {
    writeSkill(folder('two'), 'laundry', 'Wash and iron shirts');
    const { content } = await client.callTool({ name: 'execute', arguments: { server: 'two', tool: 'reload', params: {} } });
    assert.match(content[0].text, /laundry/);
    await until(async () => (await find('iron a shirt')).skills.some((s) => s.skill === 'laundry'));
  });
});

describe('skills over stdio', () => {
  const { place } = furnish();
  after(() => place.close());
  describe('modern', () => check(async () => {
    const it = client2('auto');
    await it.client.connect(new StdioClientTransport(place.command()));
    return it;
  }));
});
