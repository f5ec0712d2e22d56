// de - the German texts, one file of de/ per part of the page, with the keys of
// en.ts.

import type { Texts } from '.';

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
import { servers } from './de/servers';
import { settings } from './de/settings';
import { shell } from './de/shell';
import { side } from './de/side';
import { tries } from './de/tries';

export const de: Texts = {
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
};
