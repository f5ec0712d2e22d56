/* wire.h - frames of boxreq.h over a unix socket, with their descriptors.
 *
 * Reading keeps what has come until a frame is whole; writing sends a frame
 * with one call or fails. Sizes are bounded by the codec. */
#ifndef MO_LAUNCHER_WIRE_H
#define MO_LAUNCHER_WIRE_H

#include "codec/boxreq.h"

struct mo_wire {
    int fd; /* -1: not in use */
    struct mo_buf in;
    size_t done; /* bytes of the frame that was handed out */
    int fds[MO_BOXMSG_FDS_MAX];
    unsigned nfds;
};

void mo_wire_init(struct mo_wire *w, int fd); /* owns fd */
void mo_wire_fini(struct mo_wire *w);

/* Take what the socket has. MO_ECLOSED at its end. */
int mo_wire_fill(struct mo_wire *w, struct mo_err *e);
/* 1: a frame, borrowed until the next call of either. */
int mo_wire_next(struct mo_wire *w, struct mo_boxmsg *out, struct mo_err *e);
/* The i-th descriptor of the frame; the caller's from then on, or -1. */
int mo_wire_take_fd(struct mo_wire *w, unsigned i);

/* Never blocks: a peer that does not read is MO_EBUSY. */
int mo_wire_send(int fd, const struct mo_boxmsg *m, const int *fds,
                 struct mo_err *e);

#endif
