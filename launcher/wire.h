/* wire.h - frames of boxreq.h over a unix socket, with their descriptors.
 *
 * Reading collects bytes until a frame is complete; writing sends a frame with
 * one call or fails. The codec limits sizes. */
#ifndef MO_LAUNCHER_WIRE_H
#define MO_LAUNCHER_WIRE_H

#include "codec/boxreq.h"

struct mo_wire {
    int fd; /* -1: not in use */
    struct mo_buf in;
    size_t done; /* bytes of the frame that was returned */
    int fds[MO_BOXMSG_FDS_MAX];
    unsigned nfds;
};

void mo_wire_init(struct mo_wire *w, int fd); /* owns fd */
void mo_wire_fini(struct mo_wire *w);

/* Read what the socket has. MO_ECLOSED at its end. */
int mo_wire_fill(struct mo_wire *w, struct mo_err *e);
/* 1: a frame, borrowed until the next call of either function. */
int mo_wire_next(struct mo_wire *w, struct mo_boxmsg *out, struct mo_err *e);
/* The i-th descriptor of the frame, or -1; the caller owns it. */
int mo_wire_take_fd(struct mo_wire *w, unsigned i);

/* Never blocks: MO_EBUSY if the peer does not read. */
int mo_wire_send(int fd, const struct mo_boxmsg *m, const int *fds,
                 struct mo_err *e);

#endif
