import { describe, expect, test } from 'vitest';

import { isLoaded, skillBefore, skillNow, skillReadOf, skillReadText } from '../src/lib/skills';
import { skillTextOf } from '../src/lib/skillText';
import type { Skill } from '../src/protocol';

const skill: Skill = {
  uri: 'one+skill://refunds/SKILL.md', server: 'one', name: 'refunds', description: 'd', files: 1,
  verifiable: true, digest: '', changedFrom: undefined, now: undefined,
};
const entry = (description: string, digit: string) => ({
  frontmatter: { name: 'refunds', description, n: 1 },
  resources: [{ uri: 'skill://refunds/SKILL.md', digest: `sha256:${digit.repeat(64)}`, size: 3 }],
});

describe('calls that read a skill', () => {
  test.each([
    [{ skill: 'refunds' }, 'Skill refunds'],
    [{ skill: 'refunds', path: 'a/b.md' }, 'Skill refunds: a/b.md'],
    [{}, 'List of skills'],
    [{ skill: 7 }, 'List of skills'],
    [null, 'List of skills'],
  ])('%j', (args, words) => {
    const read = skillReadOf({ name: 'read_skill', args });
    expect(read && skillReadText(read)).toBe(words);
  });
  test('another tool, also one of a server, is none', () => {
    expect(skillReadOf({ name: 'one_read_skill', args: { skill: 'refunds' } })).toBeNull();
  });
});

test('a skill is read when a call of it is done, under any of its names', () => {
  const call = (name: string, state = 'done') => ({ name: 'read_skill', args: { skill: name }, state });
  for (const name of ['refunds', 'one/refunds', 'one+skill://refunds/SKILL.md'])
    expect(isLoaded(skill, [call(name)])).toBe(true);
  expect(isLoaded(skill, [call('refunds', 'failed'), call('two/refunds'), call('other')])).toBe(false);
});

test('a changed skill as text: frontmatter, then files with their digests', () => {
  const changed = { ...skill, changedFrom: { inputSchema: entry('old', 'a') }, now: entry('new', 'b') };
  expect(skillBefore(changed)).toBe(
    'name: refunds\ndescription: old\nn: 1\n\nskill://refunds/SKILL.md  sha256:aaaaaaaaaaaa');
  expect(skillNow(changed)).toContain('description: new');
  expect(skillNow(changed)).toContain('sha256:bbbbbbbbbbbb');
  expect(skillTextOf(undefined)).toBe('');
  expect(skillTextOf({ inputSchema: { resources: 'dynamic' } })).toBe('');
});
