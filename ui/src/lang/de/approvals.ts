// approvals - texts of the approvals view, in German.

export const approvals = {
  'approvals.intro': 'Diese Aufrufe laufen nur mit Genehmigung. Anfragen ohne Antwort werden abgelehnt.',
  'approvals.gateway': 'Anfragen von MCP-Clients',
  'approvals.none': 'Kein Aufruf wartet. Der Aufruf eines MCP-Clients wartet hier, wenn eine Regel „ask“ sagt und der Client nicht selbst nachfragen kann. Ein Beispiel für eine solche Regel:',
  'approvals.conversations': 'Anfragen aus Unterhaltungen',
  'approvals.connections': 'Verbindungen von Sandboxes',
  'approvals.changed': 'Geänderte Tools',
  'approvals.client': 'Client',
  'approvals.ofConversation': 'eine Unterhaltung',
  'approvals.noName': 'unbenannter Client',
  'approvals.rule': 'Verlangt von',
  'approvals.byDefault': 'Standard: keine Regel trifft zu',
  'approvals.byRule': 'Admin-Regel {n} ({tool} · {server})',
  'approvals.whyNot': 'Begründung (geht an den Client)',
  'approvals.meansAlways': 'für jeden Client und jede Unterhaltung, bis die Regel unter „Einstellungen“ entfernt wird',
  'approvals.asksItself': 'wartet auf die Antwort im Client:',
};
