// tries - texts of a tool that is being tried.

export const tries = {
  'tries.cancel': 'Cancel the call',
  'tries.canceled': 'The call was canceled. What it had done by then may have taken effect.',
  'tries.progress': 'Progress of {name}',
  'tries.of': '{done} of {total}',
  'tries.question': '{server} asks',
  'tries.goesTo': 'Your answer goes to {server}.',
  'tries.send': 'Send',
  'tries.decline': 'Decline',
  'tries.dismiss': 'Dismiss',
  'tries.open': 'Open in a new tab',
  'tries.badAddress': 'This address is not http or https and is not opened.',
} as const;
