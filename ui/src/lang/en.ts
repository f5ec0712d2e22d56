// en - the English texts, one file of en/ per part of the page; translations are
// made from them.
//
// A text with a count has the forms `one` and `other` and contains {n}. Texts say
// what happened, why if known, and what to do. Buttons are verbs in sentence case.

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
import { servers } from './en/servers';
import { settings } from './en/settings';
import { shell } from './en/shell';
import { side } from './en/side';
import { tries } from './en/tries';

export const en = {
  ...format,
  ...shell,
  ...conversation,
  ...branches,
  ...list,
  ...call,
  ...content,
  ...offers,
  ...side,
  ...files,
  ...overview,
  ...router,
  ...network,
  ...approvals,
  ...approving,
  ...settings,
  ...models,
  ...servers,
  ...tries,
} as const;
