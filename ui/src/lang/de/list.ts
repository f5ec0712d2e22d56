// list - texts of the list of conversations: pins, archive, tags, in German.

export const list = {
  'list.pinned': 'Angeheftet',
  'list.pin': 'Anheften',
  'list.pinOne': '{title} anheften',
  'list.unpin': 'Nicht mehr anheften',
  'list.unpinOne': '{title} nicht mehr anheften',
  'list.archive': 'Archivieren',
  'list.archiveOne': '{title} archivieren',
  'list.unarchive': 'Aus dem Archiv holen',
  'list.unarchiveOne': '{title} aus dem Archiv holen',
  'list.archived': 'Archiviert',
  'list.filter': 'Unterhaltungen anzeigen',
  'list.all': 'Alle Unterhaltungen',
  'list.notChanged': 'Die Unterhaltung wurde nicht geändert: {why}',
  'export.as': 'Exportieren als',
  'rename.tags': 'Tags',
  'rename.tagsHint': 'Arbeit, Reisen',
  'system.label': 'Anweisungen für diese Unterhaltung',
  'system.hint': 'Wie das Modell antworten soll. Die Anweisungen des Betreibers gehen vor.',
  'system.save': 'Anweisungen speichern',
};
