// branches - the current branch of a conversation from all of its entries. Pure.
//
// Entries are only appended; a mark says behind which earlier entry the
// conversation goes on. So the branch is read backwards.

import type { Entry } from '../protocol';

export interface BranchPart {
  entries: Entry[]; // oldest first, without marks
  earlier: number; // the entry before them; 0: none
}

/** all: entries in order, marks included; tip: the last entry that counts. */
export function currentBranch(all: Entry[], tip = Infinity): BranchPart {
  const entries: Entry[] = [];
  let limit = tip;
  for (const e of [...all].reverse()) {
    if (e.seq > limit) continue;
    if (e.role === 'branch') limit = e.to;
    else {
      entries.push(e);
      limit = e.seq - 1;
    }
  }
  const first = all[0]?.seq ?? 1;
  return { entries: entries.reverse(), earlier: Math.min(limit, first - 1) };
}
