// en - the English texts, one file of en/ per part of the page; translations are
// made from them.
//
// A text with a count has the forms `one` and `other` and contains {n}. Texts say
// what happened, why if known, and what to do. Buttons are verbs in sentence case.

import { apps } from './en/apps';
import { approvals } from './en/approvals';
import { approving } from './en/approving';
import { branches } from './en/branches';
import { call } from './en/call';
import { content } from './en/content';
import { conversation } from './en/conversation';
import { files } from './en/files';
import { format } from './en/format';
import { list } from './en/list';
import { models } from './en/models';
import { network } from './en/network';
import { offers } from './en/offers';
import { overview } from './en/overview';
import { router } from './en/router';
import { sampling } from './en/sampling';
import { script } from './en/script';
import { servers } from './en/servers';
import { settings } from './en/settings';
import { shell } from './en/shell';
import { side } from './en/side';
import { skills } from './en/skills';
import { talk } from './en/talk';
import { tries } from './en/tries';

export const en = {
  ...format,
  ...shell,
  ...conversation,
  ...branches,
  ...list,
  ...talk,
  ...call,
  ...content,
  ...script,
  ...offers,
  ...apps,
  ...side,
  ...skills,
  ...files,
  ...overview,
  ...router,
  ...network,
  ...approvals,
  ...approving,
  ...sampling,
  ...settings,
  ...models,
  ...servers,
  ...tries,
} as const;
