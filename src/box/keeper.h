/* keeper.h - talks to the keeper of a native box, from a worker thread.
 *
 * Every call blocks, with a deadline, and knows neither loop nor boxes. It
 * starts a keeper or finds a running one by its socket, sends it a frame
 * (codec/boxreq.h) and waits for one answer with its descriptors. After that
 * the connection is an ordinary stream for the loop.
 *
 * Ownership: descriptors of an answer are the caller's; mo_keeper_drop()
 * closes those that were not taken. */
#ifndef MO_BOX_KEEPER_H
#define MO_BOX_KEEPER_H

#include "codec/boxreq.h"

#define MO_KEEPER_ANSWER_MS 30000

struct mo_keeper_answer {
    struct mo_boxmsg m; /* texts are in bytes */
    struct mo_buf bytes;
    int fds[MO_BOXMSG_FDS_MAX]; /* m.fds of them, or -1 */
};

/* Starts a keeper from the bytes of mo-box in `launcher`: a memfd, or the
 * socket of the privileged helper, which has one (privileged_helper.h). */
int mo_keeper_spawn(int launcher, int *sock, struct mo_err *e);
/* Connects to the keeper of that box. MO_ENOTFOUND: no such socket.
 * MO_ECLOSED: the keeper was killed. */
int mo_keeper_connect(const char *dir, const char *id, int *sock,
                      struct mo_err *e);

/* fd is passed along unless it is < 0. */
int mo_keeper_send(int sock, struct mo_span frame, int fd, struct mo_err *e);
/* A refusal is returned as an error. */
int mo_keeper_receive(int sock, struct mo_keeper_answer *a, struct mo_err *e);
void mo_keeper_drop(struct mo_keeper_answer *a);

/* Sends a frame without fields and receives the answer. */
int mo_keeper_ask(int sock, enum mo_boxmsg_type what,
                  struct mo_keeper_answer *a, struct mo_err *e);

/* Run `mo-box --sweep dir`; the privileged helper has a dir of its own. */
int mo_keeper_sweep(int launcher, const char *dir, struct mo_err *e);

/* Makes a program in sealed memory, which cannot be changed any more. */
int mo_keeper_seal(struct mo_span program, const char *name, int *fd,
                   struct mo_err *e);

#endif
