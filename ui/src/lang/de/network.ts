// network - texts of connections that sandboxes open, in German.

export const network = {
  'net.title': 'Netzwerkverbindung',
  'net.label': 'Wartet auf Ihre Entscheidung: Verbindung zu {host}',
  'net.asks': 'Ein Programm in der Sandbox möchte sich mit {host}, Port {port}, verbinden.',
  'net.asksServer': 'Ein Programm in der Sandbox von {server} möchte sich mit {host}, Port {port}, verbinden.',
  'net.program': 'Programm laut Sandbox: {program}',
  'net.tls': 'Die Verbindung ist verschlüsselt: Die Anfrage ist nicht sichtbar.',
  'net.allow': 'Erlauben',
  'net.deny': 'Verweigern',
  'net.session': 'Für diese Sitzung',
  'net.always': 'Immer',
  'net.none': 'Die Sandbox hat noch mit keinem Host kommuniziert.',
  'net.allowed': 'erlaubt',
  'net.refused': 'verweigert',
  'net.sums': { one: '{n} Verbindung, {sent} gesendet, {received} empfangen, zuletzt um {time}', other: '{n} Verbindungen, {sent} gesendet, {received} empfangen, zuletzt um {time}' },
  'net.more': { one: 'und {n} weitere Verbindung', other: 'und {n} weitere Verbindungen' },
  'net.meansAlways': 'Für diesen Host und Port, in jeder Sitzung, bis die Regel unter „Einstellungen“ entfernt wird.',
};
