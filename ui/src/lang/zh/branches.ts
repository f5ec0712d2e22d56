// branches - texts of edited messages and alternative answers, in Chinese.

export const branches = {
  'branch.at': '{n} / {of}',
  'branch.before': '显示上一个版本',
  'branch.after': '显示下一个版本',
  'branch.edit': '编辑消息',
  'branch.editHow': '从这里重新发送。下方的消息会保留在另一个版本中。',
  'branch.copyMessage': '复制消息',
  'branch.copyAnswer': '复制回答',
  'branch.regenerate': '重新生成',
  'branch.continue': '继续',
  'branch.continued': '已继续',
};
