/* relay_priv.h - shared by the files of the relay. See relay.h.
 *
 *   relay.c   the sockets, the decision, the reports
 *   conn.c    one connection, from the decision to its end
 *   ask.c     hosts that a person decides about
 *   edge.c    ... whose TLS ends here
 *   lookup.c  names resolved outside
 *   dnsd.c    DNS over UDP and TCP */
#ifndef MO_EGRESS_RELAY_PRIV_H
#define MO_EGRESS_RELAY_PRIV_H

#include "egress/edge.h"
#include "egress/name_server.h"
#include "egress/relay.h"
#include "loop/net.h"
#include "loop/resolve.h"
#include "loop/watch.h"

#define MO_EGRESS_FDS_MAX (MO_EGRESS_PORTS_MAX + 2)

/* How much of something may be done now. */
struct mo_egress_rate {
    double left;
    uint64_t at_ns; /* when that was counted */
};

struct mo_egress {
    struct mo_loop *loop;
    struct mo_egress_policy *policy;
    struct mo_egress_names names;
    struct mo_egress_zone zone;
    struct mo_watch *watches[MO_EGRESS_FDS_MAX];
    size_t nwatches;
    struct mo_timer retry; /* out of descriptors: accept again */
    struct mo_list conns;  /* struct conn */
    struct mo_list dns;    /* struct dns_conn */
    unsigned nconns;       /* connections to hosts */
    unsigned ndns;         /* connections to the name server */
    int fd_max;            /* a connection with a higher number is refused */
    struct mo_list asks;   /* struct mo_egress_ask */
    unsigned nasks;
    uint64_t bytes;                 /* relayed */
    unsigned lookups;               /* running */
    struct mo_list queue;           /* struct mo_egress_name, to be resolved */
    struct mo_egress_rate reports;  /* of refusals */
    struct mo_egress_rate searches; /* for programs */
    uint64_t searched;              /* how many; the number of the last */
    unsigned uncounted;
    mo_egress_row_fn *on_row;
    const struct mo_egress_asker *asker; /* NULL: nobody is asked */
    mo_egress_find_fn *find_program;     /* or NULL */
    void *ctx;
    struct mo_edges edges;
    bool closing;
    struct mo_later later;
    struct mo_gone gone;
};

/* --- relay.c ------------------------------------------------------------- */

/* False: it is to be left out. per_s: after at_once of them. */
bool mo_egress_rate_take(struct mo_egress *x, struct mo_egress_rate *r,
                         double per_s, double at_once);
/* The other end of the connection, or the address that it is for. */
bool mo_egress_read_end(int fd, bool peer, struct mo_ip *ip, unsigned *port);
void mo_egress_report(struct mo_egress *x, struct mo_egress_row *row);
/* Called by each connection when it is gone. */
void mo_egress_maybe_free(struct mo_egress *x);

/* --- conn.c -------------------------------------------------------------- */

struct conn;

/* A connection as it was accepted. */
struct mo_egress_wish {
    int fd;                      /* owned, or -1 */
    struct mo_stream *stream;    /* owned: in place of fd, or NULL */
    struct mo_egress_name *name; /* NULL: an address */
    struct mo_ip ip;
    unsigned port;
};

/* rule NULL: the asker has said yes, or a person is asked. */
void mo_egress_conn_start(struct mo_egress *x, const struct mo_egress_wish *w,
                          const struct mo_egress_rule *rule,
                          enum mo_egress_say say);
/* The asker has decided; c is no longer in its list. */
void mo_egress_conn_decided(struct mo_list *asking, bool allowed,
                            const char *reason);
/* The name was resolved, or was not (why). */
void mo_egress_conn_resolved(struct mo_list *waiting, const struct mo_err *why);
void mo_egress_conns_reset(struct mo_egress *x);

/* --- ask.c --------------------------------------------------------------- */

/* The decision about this connection that the asker has already. */
enum mo_egress_say mo_egress_ask_judge(const struct mo_egress *x,
                                       const struct mo_egress_wish *w);
/* Adds a connection to those that wait for this host and port; asks if it is
 * the first. False: too many hosts wait. */
bool mo_egress_ask_join(struct mo_egress *x, const struct mo_egress_question *q,
                        struct mo_list *asking);
/* The connection has left its list: the last one withdraws the question. */
void mo_egress_ask_left(struct mo_egress *x);
/* Is there a question about this host and port? */
bool mo_egress_is_asked(const struct mo_egress *x, const char *host,
                        unsigned port);
/* The box's own word, as printable ASCII. */
void mo_egress_put_program(struct mo_span in, char out[MO_EGRESS_PROGRAM_MAX]);
/* The request line of plain HTTP in these first bytes. False: more bytes are
 * needed to tell. */
bool mo_egress_read_request(struct mo_span in, char out[MO_EGRESS_REQUEST_MAX]);

/* --- lookup.c ------------------------------------------------------------ */

/* True: n->found is valid now. False: mo_egress_conn_resolved() follows for
 * those in n->waiting. */
bool mo_egress_lookup(struct mo_egress *x, struct mo_egress_name *n);
void mo_egress_lookups_drop(struct mo_egress *x);

/* --- dnsd.c -------------------------------------------------------------- */

void mo_egress_dns_datagram(void *ctx, int fd); /* as mo_watch_open() wants */
void mo_egress_dns_accept(struct mo_egress *x, int fd); /* owns fd */
void mo_egress_dns_serve(struct mo_egress *x, struct mo_stream *s); /* owns s */
void mo_egress_dns_reset(struct mo_egress *x);

#endif
