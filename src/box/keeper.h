/* keeper.h - talking to the keeper of a native box, from a worker.
 *
 * Everything here blocks, with a deadline, and knows neither loop nor boxes:
 * it starts a keeper or finds a living one by its socket, sends it a frame
 * (codec/boxreq.h) and waits for one answer, with the descriptors that come
 * along. After that the connection is an ordinary stream for the loop.
 *
 * Ownership: descriptors of an answer are the caller's, mo_keeper_drop()
 * closes those that nobody took. */
#ifndef MO_BOX_KEEPER_H
#define MO_BOX_KEEPER_H

#include "codec/boxreq.h"

#define MO_KEEPER_ANSWER_MS 30000

struct mo_keeper_answer {
    struct mo_boxmsg m; /* texts are in bytes */
    struct mo_buf bytes;
    int fds[3];
};

/* A new keeper, from the bytes of mo-box in `launcher` (a memfd). */
int mo_keeper_spawn(int launcher, int *sock, struct mo_err *e);
/* The keeper of that box. MO_ENOTFOUND: no such socket. MO_ECLOSED: the
 * socket of a keeper that was killed. */
int mo_keeper_connect(const char *dir, const char *id, int *sock,
                      struct mo_err *e);

/* fd < 0: none goes along. */
int mo_keeper_send(int sock, struct mo_span frame, int fd, struct mo_err *e);
/* A refusal is returned as the error it carries. */
int mo_keeper_receive(int sock, struct mo_keeper_answer *a, struct mo_err *e);
void mo_keeper_drop(struct mo_keeper_answer *a);

/* Ask the keeper for a frame without fields and drop the answer. */
int mo_keeper_ask(int sock, enum mo_boxmsg_type what,
                  struct mo_keeper_answer *a, struct mo_err *e);

/* Run `mo-box --sweep dir`. */
int mo_keeper_sweep(int launcher, const char *dir, struct mo_err *e);

/* Bytes as a program in sealed memory that nobody can change any more. */
int mo_keeper_seal(struct mo_span program, const char *name, int *fd,
                   struct mo_err *e);

#endif
