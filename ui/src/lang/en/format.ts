// format - numbers, times and errors that any view shows.

export const format = {
  'app.name': 'MCP Orchestrator',

  'error.offline': 'The server cannot be reached. Check that it is running, then try again.',
  'error.missing': 'There is no page at {path}.',
  'error.missingGo': 'New conversation',
  'error.offlineWaits': 'This page opens by itself as soon as the server answers.',

  'time.ms': '{v} ms',
  'time.s': '{v} s',
  'time.min': '{min} min {s} s',
  'time.hours': '{h} h {min} min',
  'day.today': 'Today',
  'day.yesterday': 'Yesterday',
  'n.characters': { one: '{n} character', other: '{n} characters' },
  'n.lines': { one: '{n} line', other: '{n} lines' },
  'n.matchingLines': { one: '{n} matching line', other: '{n} matching lines' },
  'n.models': { one: '{n} model', other: '{n} models' },
  'n.tools': { one: '{n} tool', other: '{n} tools' },
  'n.sessions': { one: '{n} session', other: '{n} sessions' },
  'n.boxes': { one: '{n} sandbox', other: '{n} sandboxes' },
  'n.tokens': '{count} tokens',
} as const;
