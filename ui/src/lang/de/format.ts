// format - numbers, times and errors that any view shows, in German.

export const format = {
  'app.name': 'MCP Orchestrator',

  'error.offline': 'Der Server ist nicht erreichbar. Bitte prüfen, ob er läuft, dann erneut versuchen.',
  'error.missing': 'Unter {path} gibt es keine Seite.',
  'error.missingGo': 'Neue Unterhaltung',
  'error.offlineWaits': 'Diese Seite öffnet sich von selbst, sobald der Server antwortet.',

  'time.ms': '{v} ms',
  'time.s': '{v} s',
  'time.min': '{min} min {s} s',
  'time.hours': '{h} h {min} min',
  'day.today': 'Heute',
  'day.yesterday': 'Gestern',
  'n.characters': { one: '{n} Zeichen', other: '{n} Zeichen' },
  'n.lines': { one: '{n} Zeile', other: '{n} Zeilen' },
  'n.matchingLines': { one: '{n} passende Zeile', other: '{n} passende Zeilen' },
  'n.models': { one: '{n} Modell', other: '{n} Modelle' },
  'n.tools': { one: '{n} Tool', other: '{n} Tools' },
  'n.sessions': { one: '{n} Sitzung', other: '{n} Sitzungen' },
  'n.boxes': { one: '{n} Sandbox', other: '{n} Sandboxes' },
  'n.tokens': '{count} Tokens',
};
