/* npx_turn.h - one npx at a time for each package.
 *
 * npx installs a package into one directory (~/.npm/_npx/HASH). Two of them at
 * the same moment, of versions without a lock, disturb each other: one fails,
 * or files are missing in the directory afterwards. So a server that npx starts
 * waits while another npx installs the same package, for this program or for
 * another one with the same state directory.
 *
 * A turn is a locked file (flock) in npx/ of the state directory. The link of
 * the child keeps it until its program runs or npx has ended (link_child.h); a
 * killed process leaves no lock. Failure: where the file cannot be made there
 * is no turn, and nobody waits. */
#ifndef MO_CONNECT_NPX_TURN_H
#define MO_CONNECT_NPX_TURN_H

#include "base/str.h"

#define MO_NPX_TURN_DIR     "npx"
#define MO_NPX_TURN_WAIT_MS 100 /* between two attempts */

/* Appends the packages that "npx ..." or "npm exec ..." installs, one a line.
 * False: it is another command, or names none. Pure. */
bool mo_npx_turn_packages(const char *command, const char *const *args,
                          size_t n, struct mo_buf *out);
/* Takes the turn of these packages: a descriptor that is locked; 0: there is
 * none. Returns 0, or MO_EBUSY: another npx has it, try again later. */
int mo_npx_turn_take(const char *state_dir, struct mo_span packages, int *fd);

#endif
