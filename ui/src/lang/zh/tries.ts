// tries - texts of a tool that is being tried, in Chinese.

export const tries = {
  'tries.cancel': '取消调用',
  'tries.canceled': '调用已取消。在此之前完成的操作可能已经生效。',
  'tries.progress': '{name} 的进度',
  'tries.of': '{done} / {total}',
  'tries.question': '{server} 提问',
  'tries.goesTo': '你的回答会发送给 {server}。',
  'tries.send': '发送',
  'tries.decline': '拒绝',
  'tries.dismiss': '忽略',
  'tries.open': '在新标签页中打开',
  'tries.badAddress': '此地址不是 http 或 https，不会打开。',
};
