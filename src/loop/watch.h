/* watch.h - tells when a descriptor becomes readable.
 *
 * For descriptors that are no byte streams, such as datagram sockets and
 * listening sockets that were opened elsewhere. The descriptor must not block.
 *
 * Ownership: the watch owns the descriptor. */
#ifndef MO_LOOP_WATCH_H
#define MO_LOOP_WATCH_H

#include "loop/loop.h"

struct mo_watch;

/* Owns fd from then on, also on failure. fire() is called while fd is readable,
 * so it must read or pause the watch. */
int mo_watch_open(struct mo_loop *l, int fd, void (*fire)(void *ctx, int fd),
                  void *ctx, struct mo_watch **out, struct mo_err *e);
void mo_watch_pause(struct mo_watch *w, bool paused);
/* Closes the descriptor; fire() is not called any more. NULL is fine. */
void mo_watch_close(struct mo_watch *w);

#endif
