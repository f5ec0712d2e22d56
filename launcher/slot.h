/* slot.h - a user id that no other living box has.
 *
 * Boxes of one machine share its user ids, whoever started them, so the
 * numbers are handed out by one file: byte n of it is locked while somebody
 * has 20000 + n. The lock belongs to the descriptor and goes with the keeper
 * however it ends; there is nothing to clean up. */
#ifndef MO_LAUNCHER_SLOT_H
#define MO_LAUNCHER_SLOT_H

#include <sys/types.h>

#include "base/err.h"

#define MO_SLOT_FIRST_UID 20000
#define MO_SLOT_MAX       4096

/* *fd holds the slot until it is closed. Not root: there is one user only,
 * and nothing to hold. MO_EBUSY when all are taken. */
int mo_slot_take(uid_t *uid, int *fd, struct mo_err *e);

#endif
