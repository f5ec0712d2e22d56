// skills - the German texts of the skills of servers.

export const skills = {
  'skill.title': 'Skills ({n})',
  'skill.loaded': 'Skill {name}',
  'skill.file': 'Skill {name}: {path}',
  'skill.listed': 'Liste der Skills',
  'skill.isLoaded': 'gelesen',
  'skill.off': 'ausgeschaltet',
  'skill.changed': 'geändert',
  'skill.unverified': 'nicht angeboten',
  'skill.unverifiedWhy': 'Der Server nennt keine Prüfsummen der Dateien. Sie lassen sich nicht prüfen, deshalb wird dieser Skill dem Modell nicht angeboten.',
  'skill.files': { one: '{n} Datei, beim Lesen geprüft', other: '{n} Dateien, beim Lesen geprüft' },
  'skill.changedWhy': 'Der Server hat diesen Skill geändert, seit er zum ersten Mal gesehen wurde. Das Modell erhält ihn erst, wenn die Änderung akzeptiert ist.',
  'skill.changedNote': 'Alte und neue Beschreibung und Dateien mit ihren Prüfsummen.',
  'skill.accept': 'Geänderten Skill akzeptieren',
} as const;
