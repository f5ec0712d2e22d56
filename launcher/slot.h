/* slot.h - a user id that no other running box has.
 *
 * All boxes of a machine share its user ids, whoever started them. One file
 * assigns them: byte n is locked while a box has uid 20000 + n. The lock
 * belongs to the descriptor and is released when the keeper ends in any way, so
 * there is nothing to clean up. */
#ifndef MO_LAUNCHER_SLOT_H
#define MO_LAUNCHER_SLOT_H

#include <sys/types.h>

#include "codec/boxreq.h"

#define MO_SLOT_FIRST_UID MO_BOX_UID_FIRST
#define MO_SLOT_MAX       MO_BOX_UIDS

/* *fd holds the slot until it is closed. Not root: there is only one user and
 * nothing to hold. MO_EBUSY when all are taken. */
int mo_slot_take(uid_t *uid, int *fd, struct mo_err *e);

#endif
