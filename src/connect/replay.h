/* replay.h - plays a recorded server (record.h).
 *
 * A client that sends a recorded request gets the recorded answer, with the
 * notifications and server requests that came before it. Messages are the
 * recorded bytes except for ids and progress tokens.
 *
 * A request matches by method and params, compared by value. _meta and
 * inputResponses are ignored; of the first message of a connection only the
 * method counts. Equal requests are answered in recorded order, then always
 * with the last answer. An unknown request gets an error. ping is always
 * answered.
 *
 * Only the recorded protocol revision is spoken; behind the gateway clients of
 * every revision can use it. Recorded delays are not replayed: answers come at
 * once.
 *
 * Ownership: the text of the recording is borrowed. Limit: MO_REPLAY_PLAYING
 * requests at once. */
#ifndef MO_CONNECT_REPLAY_H
#define MO_CONNECT_REPLAY_H

#include "base/str.h"

#define MO_REPLAY_FILE_MAX ((size_t)512 * 1024 * 1024)
#define MO_REPLAY_PLAYING  1024

struct mo_replay;

struct mo_replay_opts {
    struct mo_span text; /* contents of the file */
    const char *server;  /* NULL: the only server in the recording */
    void (*say)(void *ctx, struct mo_span line); /* line has no newline */
    void *ctx;
};

/* MO_EPROTO: not a recording, the error names the line. MO_ENOTFOUND,
 * MO_EINVAL: the error lists the servers of the recording. */
int mo_replay_new(const struct mo_replay_opts *o, struct mo_replay **out,
                  struct mo_err *e);
void mo_replay_free(struct mo_replay *r); /* NULL is fine */

/* Handles one message from the client. */
void mo_replay_take(struct mo_replay *r, struct mo_span line);

#endif
