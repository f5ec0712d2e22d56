/* net.h - listen for connections and dial out.
 *
 * Addresses are text: "127.0.0.1:3000", "[::1]:3000", "localhost:3000",
 * "unix:/run/x.sock". Names are resolved off the loop; all addresses are tried
 * in turn within one deadline. */
#ifndef MO_LOOP_NET_H
#define MO_LOOP_NET_H

#include "codec/ip.h"
#include "loop/stream.h"

struct mo_listener;

struct mo_listen_opts {
    const char *addr;
    int backlog;   /* 0: 511 */
    unsigned mode; /* unix socket's permissions, 0: 0600 */
    int bound;     /* from mo_listen_bind() for this address; taken. 0: none */
    bool keeps_path; /* closing it leaves the unix socket: others have it too */
};

/* Binds n sockets to one address, for a process that may not do so later or for
 * several processes that serve it together. Nobody else may have the address.
 * The kernel gives each of them that listens its share of the connections; a
 * unix socket is the same for all, and whoever is free accepts. */
int mo_listen_bind(const struct mo_listen_opts *o, int *fds, size_t n,
                   struct mo_err *e);
/* The port of a bound socket, 0 for a unix socket. */
unsigned mo_listen_port(int fd);

/* accept() gets a paused stream and must attach or close it. */
int mo_listen(struct mo_loop *l, const struct mo_listen_opts *o,
              void (*accept)(void *ctx, struct mo_stream *s), void *ctx,
              struct mo_listener **out, struct mo_err *e);
void mo_listener_close(struct mo_listener *ls);
void mo_listener_pause(struct mo_listener *ls, bool paused);
/* The actual port (for ":0"), 0 for a unix socket. */
unsigned mo_listener_port(const struct mo_listener *ls);

struct mo_dial;

/* done fires once with a paused stream, or with NULL and the reason. */
int mo_dial(struct mo_loop *l, const char *addr, uint64_t timeout_ms,
            void (*done)(void *ctx, struct mo_stream *s,
                         const struct mo_err *why),
            void *ctx, struct mo_dial **out, struct mo_err *e);
/* The same for an address: nothing is resolved. */
int mo_dial_ip(struct mo_loop *l, const struct mo_ip *ip, unsigned port,
               uint64_t timeout_ms,
               void (*done)(void *ctx, struct mo_stream *s,
                            const struct mo_err *why),
               void *ctx, struct mo_dial **out, struct mo_err *e);
void mo_dial_cancel(struct mo_dial *d); /* done still fires, MO_ECANCELED */

#endif
