// zodWithoutEval - keeps zod, which the bridge of apps uses, from making functions from
// text: the policy of the page forbids it. Imported before everything that uses zod.

import { config } from 'zod/v4/core';

config({ jitless: true });
