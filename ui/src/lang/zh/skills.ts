// skills - the Chinese texts of the skills of servers.

export const skills = {
  'skill.title': '技能（{n}）',
  'skill.loaded': '技能 {name}',
  'skill.file': '技能 {name}：{path}',
  'skill.listed': '技能列表',
  'skill.isLoaded': '已读取',
  'skill.off': '已关闭',
  'skill.changed': '已更改',
  'skill.unverified': '未提供',
  'skill.unverifiedWhy': '服务器没有给出文件的摘要，因此无法验证，也不会向模型提供此技能。',
  'skill.files': { one: '{n} 个文件，读取时验证', other: '{n} 个文件，读取时验证' },
  'skill.changedWhy': '自首次记录以来，服务器更改了此技能。在你接受更改之前，模型不会得到它。',
  'skill.changedNote': '新旧描述，以及各文件及其摘要。',
  'skill.accept': '接受更改后的技能',
} as const;
