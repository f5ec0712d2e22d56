// toolsOff - whether a tool is switched off in a conversation.

export interface Switched {
  server: string;
  tool: string; // '': all tools of the server
}

export const isSwitchedOff = (off: Switched[], server: string, tool = ''): boolean =>
  off.some((r) => r.server === server && (r.tool === '' || r.tool === tool));
