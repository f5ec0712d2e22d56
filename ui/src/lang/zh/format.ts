// format - numbers, times and errors that any view shows, in Chinese.

export const format = {
  'app.name': 'MCP Orchestrator',

  'error.offline': '无法连接到服务器。请确认它正在运行，然后重试。',
  'error.missing': '{path} 没有对应的页面。',
  'error.missingGo': '新建对话',
  'error.offlineWaits': '服务器响应后，此页面会自动打开。',

  'time.ms': '{v} 毫秒',
  'time.s': '{v} 秒',
  'time.min': '{min} 分 {s} 秒',
  'time.hours': '{h} 小时 {min} 分',
  'day.today': '今天',
  'day.yesterday': '昨天',
  'n.characters': { other: '{n} 个字符' },
  'n.lines': { other: '{n} 行' },
  'n.matchingLines': { other: '{n} 行匹配' },
  'n.models': { other: '{n} 个模型' },
  'n.tools': { other: '{n} 个工具' },
  'n.sessions': { other: '{n} 个会话' },
  'n.boxes': { other: '{n} 个沙箱' },
  'n.tokens': '{count} Token',
};
