/* relay.h - the outside of a box's network.
 *
 * Takes the sockets that listen inside the box (launcher/net.h) and decides
 * about every connection that a program in the box opens:
 *
 *  1. The address that the program wanted stands for a name (names.h) or is an
 *     address; a rule of the policy must allow it at this port. If none does
 *     and the policy says `ask`, the asker decides, now or later. Until then
 *     nothing is resolved and no byte leaves.
 *  2. A name is resolved outside, by the system. Addresses that the rule does
 *     not permit are dropped; the connection goes to one of those that were
 *     checked, so a second answer of the name server has no effect.
 *  3. If the program speaks TLS, the host in its ClientHello must be the name.
 *     Nothing is sent before that. For an allowed address there is no name to
 *     compare.
 *  4. Bytes are copied both ways. The end of input is passed on, too. For a
 *     host with `inject` TLS ends here, and headers are set (edge.h).
 *
 * A refused connection is reset. UDP exists only for DNS (name_server.h).
 *
 * Each connection is reported once, when it has ended or was refused. If a box
 * causes refusals faster than REPORTS_PER_S, some are only counted.
 *
 * Limits: those of the policy; 3/4 of this process's descriptors for the
 * connections of all relays together; MO_EGRESS_LOOKUPS names of a box are
 * resolved at a time; 16 KiB of a ClientHello; MO_EGRESS_ASKS_MAX hosts of a
 * box wait for a person, and each connection that waits is one of the policy's.
 *
 * Not seen: what is inside TLS. A program can name an allowed host in its
 * ClientHello and another one inside, if both are behind the same front end. */
#ifndef MO_EGRESS_RELAY_H
#define MO_EGRESS_RELAY_H

#include "egress/policy.h"
#include "loop/stream.h"

#define MO_EGRESS_LOOKUPS  2
#define MO_EGRESS_ASKS_MAX 16

struct mo_egress;

struct mo_egress_row {
    const char *name;    /* the host, or "" for an address */
    const char *address; /* where it went, or was to go; without the port */
    unsigned port;
    bool allowed;
    const char *rule;        /* the entry that allowed it, or "" */
    const char *reason;      /* why it was refused or ended */
    uint64_t sent, received; /* bytes, seen from the box */
    uint64_t ms;
    const char *program; /* that was asked about, as the box says; or NULL */
    const struct mo_egress_inject *injected; /* its headers were set, or NULL */
    unsigned uncounted; /* refusals before this one that were not reported */
};

typedef void mo_egress_row_fn(void *ctx, const struct mo_egress_row *row);

/* --- hosts that a person decides about (ask.c) ---------------------------- */

struct mo_egress_ask; /* connections to one host and port that wait */

#define MO_EGRESS_REQUEST_MAX 256
#define MO_EGRESS_PROGRAM_MAX 256

struct mo_egress_question {
    const char *host; /* a name, or a public address */
    unsigned port;
    const char *request; /* "GET /path", printable ASCII; "": not plain HTTP */
    /* that connects, as the box says; printable ASCII; "": not known */
    const char *program;
    bool tls;
};

/* A connection that a person will be asked about, by its ends in the box. */
struct mo_egress_caller {
    uint64_t number; /* for mo_egress_name_caller() */
    struct mo_ip from, to;
    unsigned from_port, to_port;
};
/* Looks for the program that opened it; mo_egress_name_caller() follows, later.
 * < 0: nothing follows. */
typedef int mo_egress_find_fn(void *ctx, const struct mo_egress_caller *c);

enum mo_egress_say { MO_EGRESS_ASK, MO_EGRESS_YES, MO_EGRESS_NO };

struct mo_egress_asker {
    /* Is it decided already? Called for each connection, with host and port. */
    enum mo_egress_say (*judge)(void *ctx, const struct mo_egress_question *q);
    /* Ends with mo_egress_answer_ask(), from inside or later, or with gone().
     * q is valid during the call. */
    void (*ask)(void *ctx, struct mo_egress_ask *a,
                const struct mo_egress_question *q);
    /* The program gave up, or the relay closes: a is not valid any more. */
    void (*gone)(void *ctx, struct mo_egress_ask *a);
};

/* Takes effect later, and for all connections that wait then. reason: for the
 * record. a is not valid afterwards. */
void mo_egress_answer_ask(struct mo_egress_ask *a, bool allowed,
                          const char *reason);
/* program: any bytes; "": not known. A connection that is gone, or that has
 * waited too long for this, does not use it. */
void mo_egress_name_caller(struct mo_egress *x, uint64_t number,
                           struct mo_span program);
/* For the asker's use. */
void mo_egress_ask_set(struct mo_egress_ask *a, void *data);
void *mo_egress_ask_data(const struct mo_egress_ask *a);

/* Appends the value of a text of `inject`, its references resolved. The caller
 * wipes out. */
typedef int mo_egress_secret_fn(void *ctx, const char *text, struct mo_buf *out,
                                struct mo_err *e);

struct mo_tls_authority;

struct mo_egress_opts {
    struct mo_egress_policy *policy; /* owned from then on, also on failure */
    int *fds;      /* likewise; UDP 53, TCP 53, then the ports. Set to -1. */
    size_t nfds;   /* 0: connections are accepted elsewhere */
    bool v6;       /* without fds: the box has IPv6 */
    bool loopback; /* ... or only the addresses of 127.0.0.0/8 (names.h) */
    mo_egress_row_fn *on_row;            /* may be NULL */
    const struct mo_egress_asker *asker; /* NULL: `ask` has no effect */
    mo_egress_find_fn *find_program;     /* NULL: questions do not name it */
    void *ctx;
    /* For `inject`; borrowed. NULL: such hosts are refused. */
    const struct mo_tls_authority *authority;
    mo_egress_secret_fn *secret;
    void *secret_ctx;
};

int mo_egress_open(struct mo_loop *l, const struct mo_egress_opts *o,
                   struct mo_egress **out, struct mo_err *e);
/* A connection that was accepted elsewhere, paused, and the address that the
 * program wanted. Owns s. */
void mo_egress_accept(struct mo_egress *x, struct mo_stream *s,
                      const struct mo_ip *ip, unsigned port);
/* A datagram to the name server. Writes the answer; false: there is none. */
bool mo_egress_query(struct mo_egress *x, struct mo_span query,
                     struct mo_buf *out);
/* Resets all connections and reports them; then gone(ctx), later. */
void mo_egress_close(struct mo_egress *x, void (*gone)(void *ctx), void *ctx);

#endif
