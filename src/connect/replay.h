/* replay.h - a recorded server (record.h) plays its part again.
 *
 * For tests and for looking into what happened: a client that asks what was
 * asked then gets what was answered then, with the notifications that came
 * before the answer and the questions the server had. Messages are the bytes
 * of the recording but for ids and progress tokens.
 *
 * A request is known again by its method and params, compared by meaning;
 * _meta and inputResponses do not count, and of the first message of a
 * connection only the method does. What was asked several times is answered
 * in that order, in the end always with the last. What was never asked is an
 * error that says so; ping is always answered.
 *
 * It speaks the revision that was recorded and no other: behind our gateway
 * it can be used with all of them. No clock: answers come at once.
 *
 * Ownership: the text of the recording is borrowed. Limits:
 * MO_REPLAY_PLAYING requests at once. */
#ifndef MO_CONNECT_REPLAY_H
#define MO_CONNECT_REPLAY_H

#include "base/str.h"

#define MO_REPLAY_FILE_MAX ((size_t)512 * 1024 * 1024)
#define MO_REPLAY_PLAYING  1024

struct mo_replay;

struct mo_replay_opts {
    struct mo_span text; /* of the file */
    const char *server;  /* NULL: the only one there is */
    void (*say)(void *ctx, struct mo_span line); /* without its newline */
    void *ctx;
};

/* MO_EPROTO: no recording, with the line; MO_ENOTFOUND, MO_EINVAL: which
 * servers there are. */
int mo_replay_new(const struct mo_replay_opts *o, struct mo_replay **out,
                  struct mo_err *e);
void mo_replay_free(struct mo_replay *r);          /* NULL is fine */
size_t mo_replay_count(const struct mo_replay *r); /* requests it knows */

/* One message of the client's. */
void mo_replay_take(struct mo_replay *r, struct mo_span line);

#endif
