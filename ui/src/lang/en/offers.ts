// offers - texts of the tools, prompts and resources in the composer.

export const offers = {
  'offers.tools': 'Tools in this conversation',
  'offers.toolsWhy': 'The model is offered the tools that are on. Changes count from the next turn. Rules of the administrator still apply.',
  'offers.someTools': '{on} of {all} tools',
  'offers.allOf': 'All tools of {server}',
  'offers.filter': 'Filter tools',
  'offers.close': 'Close',
  'offers.prompts': 'Prompts of servers',
  'offers.resources': 'Resources of servers',
  'offers.none': 'Nothing matches.',
  'offers.loading': 'Loading…',
  'offers.template': 'template',
  'offers.insert': 'Insert',
  'offers.attach': 'Attach',
  'offers.cancel': 'Cancel',
  'offers.from': 'From {server}',
  'offers.required': 'required',
  'offers.reading': 'Reading resources…',
  'offers.notText': '{uri} is not text and cannot be attached.',
  'offers.changed': 'A resource has changed: {uri}. Attach it again to send its new content.',
  'offers.attached': 'Resource of {server}: {uri}',
} as const;
