// network - texts of connections that sandboxes open, in Chinese.

export const network = {
  'net.title': '网络连接',
  'net.label': '等待你决定：连接到 {host}',
  'net.asks': '沙箱中的程序想要连接 {host}，端口 {port}。',
  'net.asksServer': '{server} 的沙箱中的程序想要连接 {host}，端口 {port}。',
  'net.program': '程序（由沙箱提供）：{program}',
  'net.tls': '连接已加密：无法看到请求内容。',
  'net.allow': '允许',
  'net.deny': '拒绝',
  'net.session': '在此会话中',
  'net.always': '始终',
  'net.none': '沙箱尚未与任何主机通信。',
  'net.allowed': '已允许',
  'net.refused': '已拒绝',
  'net.sums': { other: '{n} 个连接，发送 {sent}，接收 {received}，最近一次于 {time}' },
  'net.more': { other: '以及另外 {n} 个连接' },
  'net.meansAlways': '适用于此主机和端口的所有会话，直到你在“设置”中删除该规则。',
};
