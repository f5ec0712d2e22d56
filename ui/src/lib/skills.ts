// skills - calls that read a skill, as people see them.

import { skillTextOf } from './skillText';
import { t } from '../lang';
import type { Skill } from '../protocol';

/** The tool of this program that reads skills. A server's tool has the server's
 *  name before its own. */
export const SKILL_TOOL = 'read_skill';

export interface SkillRead { skill: string; path: string }

/** What a call of read_skill reads; null: another call. */
export function skillReadOf(call: { name: string; args: unknown }): SkillRead | null {
  if (call.name !== SKILL_TOOL) return null;
  const args = typeof call.args === 'object' && call.args !== null ? call.args as Record<string, unknown> : {};
  const text = (key: string): string => (typeof args[key] === 'string' ? args[key] : '');
  return { skill: text('skill'), path: text('path') };
}

/** In words. */
export function skillReadText(read: SkillRead): string {
  if (!read.skill) return t('skill.listed');
  return read.path ? t('skill.file', { name: read.skill, path: read.path }) : t('skill.loaded', { name: read.skill });
}

/** True if one of these calls has loaded the skill. */
export function isLoaded(skill: Skill, calls: Iterable<{ name: string; args: unknown; state: string }>): boolean {
  const names = [skill.name, `${skill.server}/${skill.name}`, skill.uri];
  for (const c of calls) {
    const read = c.state === 'done' ? skillReadOf(c) : null;
    if (read && names.includes(read.skill)) return true;
  }
  return false;
}

/** The pinned and the present entry, for a diff. */
export const skillBefore = (skill: Skill): string => skillTextOf(skill.changedFrom);
export const skillNow = (skill: Skill): string => skillTextOf({ inputSchema: skill.now });
