// protocol - all messages between server and page, with a check for each, by subject.
//
// The server side is described in docs/conversations.md and /api/openapi.json.
// Components use the types and never see unchecked data.

export { textContent, CONNECT } from './protocol/parts';
export type { Tool, Skill, Usage, ToolTokens, Content, Block, AppResult, Result, Script, ScriptGrant, ScriptCallMade, Entry, FailoverRoute, Connection, Grant } from './protocol/parts';
export { EVENTS, readConnection } from './protocol/events';
export type { Approval, Turn, Sample, Question, OwnApprovals, Ready, Branch, History, EventName, First, Second } from './protocol/events';
export { readAck } from './protocol/requests';
export type { Ahead, Decision, Answer, Requests, Ack } from './protocol/requests';
export { readBoxConnections, readChain, readEntries, readCalls, readFound, readGrants, readShares, readSessions, readModels, readReadiness, readAudit } from './protocol/sessions';
export type { Session, Model, Models, Readiness, Audit, SessionCalls, Found, BoxConnections, Chain, Share } from './protocol/sessions';
export { readManaged, readConnectTest, readChange, readEntry, readRegistryFound, readInstallation, readPlan, readSnippets, readTools, readTry, readToolTrial } from './protocol/servers';
export type { GatewayState, McpServer, Managed, ConnectTest, Change, Plan, RegistryFound, Installation, Snippets, ServerTool, ToolTrial, TryQuestion, RunningTry } from './protocol/servers';
export { readGatewayView, readGatewayViews, readViewChange } from './protocol/views';
export type { GatewayView, GatewayViews, ViewChange } from './protocol/views';
export { readRules, readKeptRule, readRuleTrial } from './protocol/rules';
export type { Rule, OperatorRule, Rules, Draft, KeptRule, RuleTrial } from './protocol/rules';
export { readProviderSetup, readProviderChange, readTokens, readNewToken, readMe, readConnections, readConnectUrl } from './protocol/settings';
export type { Provider, ProviderSetup, ProviderTest, Token, NewToken, Me, OwnConnection } from './protocol/settings';
export { readSpend, readStats } from './protocol/stats';
export type { GatewayStats, Stats, SpendRow, Spend } from './protocol/stats';
export { readRouted, readApprovals } from './protocol/gateway';
export type { Hit, Routed, PendingCall, ChangedTool, Approvals } from './protocol/gateway';
