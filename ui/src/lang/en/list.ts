// list - texts of the list of conversations: pins, archive, tags.

export const list = {
  'list.pinned': 'Pinned',
  'list.pin': 'Pin',
  'list.pinOne': 'Pin {title}',
  'list.unpin': 'Unpin',
  'list.unpinOne': 'Unpin {title}',
  'list.archive': 'Archive',
  'list.archiveOne': 'Archive {title}',
  'list.unarchive': 'Restore from the archive',
  'list.unarchiveOne': 'Restore {title} from the archive',
  'list.archived': 'Archived',
  'list.filter': 'Show conversations',
  'list.all': 'All conversations',
  'list.notChanged': 'The conversation was not changed: {why}',
  'export.as': 'Export as',
  'rename.tags': 'Tags',
  'rename.tagsHint': 'work, travel',
  'system.label': 'Instructions for this conversation',
  'system.hint': 'How the model should answer. Your operator’s instructions come first.',
  'system.save': 'Save instructions',
} as const;
