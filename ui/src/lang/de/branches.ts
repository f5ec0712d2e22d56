// branches - texts of edited messages and alternative answers, in German.

export const branches = {
  'branch.at': '{n} von {of}',
  'branch.before': 'Vorherige Version anzeigen',
  'branch.after': 'Nächste Version anzeigen',
  'branch.edit': 'Nachricht bearbeiten',
  'branch.editHow': 'Sendet die Nachricht ab hier neu. Die Nachrichten darunter bleiben in der anderen Version erhalten.',
  'branch.copyMessage': 'Nachricht kopieren',
  'branch.copyAnswer': 'Antwort kopieren',
  'branch.regenerate': 'Neu erzeugen',
  'branch.continue': 'Fortsetzen',
  'branch.continued': 'Fortgesetzt',
};
