// zh - the texts in Simplified Chinese, one file of zh/ per part of the page, with
// the keys of en.ts.
//
// Chinese has one plural form, `other`.

import { apps } from './zh/apps';
import { approvals } from './zh/approvals';
import { approving } from './zh/approving';
import { branches } from './zh/branches';
import { call } from './zh/call';
import { content } from './zh/content';
import { conversation } from './zh/conversation';
import { files } from './zh/files';
import { format } from './zh/format';
import { list } from './zh/list';
import { models } from './zh/models';
import { network } from './zh/network';
import { offers } from './zh/offers';
import { overview } from './zh/overview';
import { router } from './zh/router';
import { sampling } from './zh/sampling';
import { script } from './zh/script';
import { servers } from './zh/servers';
import { settings } from './zh/settings';
import { shell } from './zh/shell';
import { side } from './zh/side';
import { skills } from './zh/skills';
import { talk } from './zh/talk';
import { tries } from './zh/tries';
import type { Texts } from '.';

export const zh: Texts = {
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
};
