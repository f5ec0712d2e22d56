// list - texts of the list of conversations: pins, archive, tags, in Chinese.

export const list = {
  'list.pinned': '已置顶',
  'list.pin': '置顶',
  'list.pinOne': '置顶 {title}',
  'list.unpin': '取消置顶',
  'list.unpinOne': '取消置顶 {title}',
  'list.archive': '归档',
  'list.archiveOne': '归档 {title}',
  'list.unarchive': '取消归档',
  'list.unarchiveOne': '取消归档 {title}',
  'list.archived': '已归档',
  'list.filter': '显示对话',
  'list.all': '所有对话',
  'list.notChanged': '对话未更改：{why}',
  'export.as': '导出为',
  'rename.tags': '标签',
  'rename.tagsHint': '工作, 旅行',
  'system.label': '此对话的指令',
  'system.hint': '模型应如何回答。管理员的指令优先。',
  'system.save': '保存指令',
};
