// network - texts of connections that sandboxes open.

export const network = {
  'net.title': 'Network connection',
  'net.label': 'Waiting for your decision: connection to {host}',
  'net.asks': 'A program in the sandbox wants to connect to {host}, port {port}.',
  'net.asksServer': 'A program in the sandbox of {server} wants to connect to {host}, port {port}.',
  'net.program': 'Program, as the sandbox says: {program}',
  'net.tls': 'The connection is encrypted: the request is not visible.',
  'net.allow': 'Allow',
  'net.deny': 'Deny',
  'net.session': 'For this session',
  'net.always': 'Always',
  'net.none': 'The sandbox has not talked to any host.',
  'net.allowed': 'allowed',
  'net.refused': 'refused',
  'net.sums': { one: '{n} connection, {sent} sent, {received} received, last at {time}', other: '{n} connections, {sent} sent, {received} received, last at {time}' },
  'net.more': { one: 'and {n} more connection', other: 'and {n} more connections' },
  'net.meansAlways': 'For this host and port, in every session, until you remove the rule under Settings.',
} as const;
