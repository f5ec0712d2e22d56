/* control.h - requests of another process of the same user.
 *
 * Only the process that has a session's lease can end it. So every instance
 * listens on a socket beside its lock file, and `sessions kill` asks the
 * holder. One line of JSON each way:
 *
 *   {"op":"end","session":"ID","forget":false}
 *   {"ok":true}   or   {"ok":false,"code":-6,"message":"..."}
 *
 * The socket is 0600 in a directory of 0700, and only processes of this user
 * and of root are answered.
 * Limits: MO_CONTROL_CONNS at a time, one line of MO_CONTROL_LINE bytes,
 * MO_CONTROL_MS for all of it. */
#ifndef MO_SESSION_CONTROL_H
#define MO_SESSION_CONTROL_H

#include "session/session.h"

#define MO_CONTROL_CONNS 8
#define MO_CONTROL_LINE  1024
#define MO_CONTROL_MS    30000

struct mo_control;

/* The path of an instance's socket; MO_ETOOBIG if it is too long for one. */
int mo_control_path(char *out, size_t size, const char *dir,
                    const char *instance, struct mo_err *e);

int mo_control_open(struct mo_loop *l, struct mo_sessions *ss, const char *path,
                    struct mo_control **out, struct mo_err *e);
/* Call before mo_sessions_close(). gone(ctx) once, later. */
void mo_control_close(struct mo_control *c, void (*gone)(void *ctx), void *ctx);

/* The client's side: asks the instance behind that path. done() once. */
int mo_control_end(struct mo_loop *l, const char *path, struct mo_span session,
                   bool forget, mo_done_fn *done, void *ctx, struct mo_err *e);

#endif
