// skills - texts of the skills of servers.

export const skills = {
  'skill.title': 'Skills ({n})',
  'skill.loaded': 'Skill {name}',
  'skill.file': 'Skill {name}: {path}',
  'skill.listed': 'List of skills',
  'skill.isLoaded': 'read',
  'skill.off': 'switched off',
  'skill.changed': 'changed',
  'skill.unverified': 'not offered',
  'skill.unverifiedWhy': 'The server gives no digests of its files. They cannot be verified, so the model is not offered this skill.',
  'skill.files': { one: '{n} file, verified when it is read', other: '{n} files, verified when they are read' },
  'skill.changedWhy': 'The server changed this skill since it was first seen. The model does not get it until you accept the change.',
  'skill.changedNote': 'Old and new description and files with their digests.',
  'skill.accept': 'Accept changed skill',
} as const;
