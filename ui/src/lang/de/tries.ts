// tries - texts of a tool that is being tried, in German.

export const tries = {
  'tries.cancel': 'Aufruf abbrechen',
  'tries.canceled': 'Der Aufruf wurde abgebrochen. Was er bis dahin getan hat, kann gewirkt haben.',
  'tries.progress': 'Fortschritt von {name}',
  'tries.of': '{done} von {total}',
  'tries.question': '{server} fragt',
  'tries.goesTo': 'Die Antwort geht an {server}.',
  'tries.send': 'Senden',
  'tries.decline': 'Ablehnen',
  'tries.dismiss': 'Schließen',
  'tries.open': 'In neuem Tab öffnen',
  'tries.badAddress': 'Diese Adresse beginnt nicht mit http oder https und wird nicht geöffnet.',
};
