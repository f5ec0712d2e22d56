// branches - texts of edited messages and alternative answers.

export const branches = {
  'branch.at': '{n} of {of}',
  'branch.before': 'Show the version before',
  'branch.after': 'Show the next version',
  'branch.edit': 'Edit the message',
  'branch.editHow': 'Sends it again from here. The messages below stay in the other version.',
  'branch.copyMessage': 'Copy message',
  'branch.copyAnswer': 'Copy answer',
  'branch.regenerate': 'Regenerate',
  'branch.continue': 'Continue',
  'branch.continued': 'Continued',
} as const;
