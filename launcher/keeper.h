/* keeper.h - the process that keeps one box.
 *
 * It reads one request from a socket, starts the box and answers with its
 * pipes. After that it listens on <dir>/<id>.sock, so a client may disconnect
 * and come back: a client that attaches gets the pipes again and is told of the
 * end. Other clients may only query the box.
 *
 * Lifetimes:
 *  - The box dies with the keeper (run.h). The keeper does not die with the
 *    box: it holds the workspace for a RESTART.
 *  - If nobody was attached for linger_ms, or `expires` has passed with nobody
 *    attached, or the socket was deleted, the keeper removes everything and
 *    exits. So no box is orphaned, even if the orchestrator never returns.
 *  - SIGTERM, SIGINT and KILL end it at once.
 *  - A workspace that is kept (kept.h) is saved before the end, and while the
 *    box works. The last save is done before ENDED is sent.
 *
 * Invariants:
 *  1. The socket is created before the first cgroup and removed after the
 *     last, so the remains of a killed keeper can be found by its socket
 *     (sweep.h).
 *  2. ENDED for a KILL is sent when nothing is left.
 *  3. At most one client is attached; a newer one takes over and the older
 *     one is told (TAKEN).
 *
 * Limits: MO_KEEPER_CLIENTS connections; one more is closed at once. Only the
 * owner (owner.h) and root may connect. */
#ifndef MO_LAUNCHER_KEEPER_H
#define MO_LAUNCHER_KEEPER_H

#include "base/err.h"
#include "launcher/owner.h"

#define MO_KEEPER_CLIENTS 8
#define MO_KEEPER_WAIT_S  20 /* seconds to wait for the request */

/* Runs until the box is gone. Returns the exit status of the process. */
int mo_keeper(int fd, const struct mo_owner *owner);

#endif
