// approvals - texts of the approvals view, in Chinese.

export const approvals = {
  'approvals.intro': '这些调用只有在你批准后才会运行。未答复的请求会被拒绝。',
  'approvals.gateway': '来自 MCP 客户端的请求',
  'approvals.none': '没有等待中的调用。如果规则要求“询问”，而 MCP 客户端无法询问其用户，它的调用就会在这里等待。此类规则的示例：',
  'approvals.conversations': '来自对话的请求',
  'approvals.connections': '沙箱的网络连接',
  'approvals.changed': '已更改的工具',
  'approvals.client': '客户端',
  'approvals.ofConversation': '对话',
  'approvals.noName': '未命名的客户端',
  'approvals.rule': '审批依据',
  'approvals.byDefault': '默认设置：没有适用的规则',
  'approvals.byRule': '管理员规则 {n}（{server} 的 {tool}）',
  'approvals.whyNot': '理由（会发送给客户端）',
  'approvals.meansAlways': '所有客户端和对话，直到你在“设置”中删除该规则',
  'approvals.asksItself': '正在等待此客户端的用户决定：',
};
