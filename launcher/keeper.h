/* keeper.h - the process that stays with one box.
 *
 * It gets one request on a socket, starts the box and answers with its pipes.
 * After that it listens on <dir>/<id>.sock, so that whoever started it may go
 * away and come back: a client that attaches gets the pipes again and hears
 * of the end. Others may only ask what the box is.
 *
 * Who keeps whom alive:
 *  - the box dies with the keeper (run.h), the keeper not with the box: it
 *    holds the workspace for a RESTART;
 *  - nobody attached for linger_ms, or past `expires` with nobody attached, or
 *    the socket was deleted: the keeper removes everything and ends. So no box
 *    is ever orphaned, even if the orchestrator never comes back;
 *  - SIGTERM, SIGINT and KILL end it at once.
 *
 * Invariants:
 *  1. The socket exists before the first cgroup and goes after the last, so
 *     the remains of a killed keeper can be found by the socket (sweep.h).
 *  2. ENDED for a KILL is sent when nothing is left.
 *  3. At most one client is attached; a newer one takes over, the older one
 *     is told (TAKEN).
 *
 * Limits: MO_KEEPER_CLIENTS connections; one more is closed at once. Only our
 * own user and root may connect. */
#ifndef MO_LAUNCHER_KEEPER_H
#define MO_LAUNCHER_KEEPER_H

#include "base/err.h"

#define MO_KEEPER_CLIENTS 8
#define MO_KEEPER_WAIT_S  20 /* for the request */

/* Runs until the box is gone; the exit status of the process. */
int mo_keeper(int fd);

#endif
