// de - the German texts, one file of de/ per part of the page, with the keys of
// en.ts.

import type { Texts } from '.';

import { apps } from './de/apps';
import { approvals } from './de/approvals';
import { approving } from './de/approving';
import { branches } from './de/branches';
import { call } from './de/call';
import { content } from './de/content';
import { conversation } from './de/conversation';
import { files } from './de/files';
import { format } from './de/format';
import { list } from './de/list';
import { models } from './de/models';
import { network } from './de/network';
import { offers } from './de/offers';
import { overview } from './de/overview';
import { router } from './de/router';
import { sampling } from './de/sampling';
import { script } from './de/script';
import { servers } from './de/servers';
import { settings } from './de/settings';
import { shell } from './de/shell';
import { side } from './de/side';
import { skills } from './de/skills';
import { talk } from './de/talk';
import { tries } from './de/tries';

export const de: Texts = {
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
