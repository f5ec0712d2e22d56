/* edge.h - connections whose TLS ends in the relay, so that headers with
 * secrets can be set (`inject` of policy.h).
 *
 * The program has sent its ClientHello, which names the host. Then:
 *
 *  1. TLS to the host, verified as everywhere in this program, for the protocol
 *     that the program offers.
 *  2. TLS to the program, with a certificate of the box's authority
 *     (loop/tls_authority.h), for the protocol that the host chose.
 *  3. Requests go through http_edge.h, answers are copied.
 *
 * A secret is resolved when a connection begins, and wiped when it ends.
 *
 * Ownership: conn.c owns both streams all the time; mo_edge_start() replaces
 * them by streams that own them. struct mo_edges is the part of a relay. */
#ifndef MO_EGRESS_EDGE_H
#define MO_EGRESS_EDGE_H

#include "codec/client_hello.h"
#include "egress/http_edge.h"
#include "egress/relay.h"
#include "loop/stream.h"
#include "loop/tls_authority.h"

struct mo_edge_leaf {
    struct mo_tls_ctx *tls;
    uint64_t until_ns;
};

struct mo_edges {
    struct mo_loop *loop;
    const struct mo_egress_policy *policy;
    const struct mo_tls_authority *authority;
    mo_egress_secret_fn *secret;
    void *secret_ctx;
    struct mo_tls_names names;      /* of all hosts of `inject` */
    struct mo_tls_ctx *outside[2];  /* [1]: with h2 */
    struct mo_edge_leaf *leaves[2]; /* one for each of policy->inject */
};

void mo_edges_init(struct mo_edges *x, struct mo_loop *l,
                   const struct mo_egress_opts *o);
void mo_edges_fini(struct mo_edges *x);

struct mo_edge;

struct mo_edge_start {
    const struct mo_egress_inject *inject;
    const struct mo_hello *hello;
    struct mo_span first; /* what the program has sent; copied */
    unsigned port;
    struct mo_stream **in, **out; /* variables of conn.c */
    const struct mo_stream_cb *in_cb, *out_cb;
    void *ctx;
    /* TLS to the program cannot begin. */
    void (*failed)(void *ctx, const struct mo_err *why);
};

/* Replaces *out at once and *in later, when the host has accepted. Both stay
 * the caller's, also on failure. */
int mo_edge_start(struct mo_edges *x, const struct mo_edge_start *s,
                  struct mo_edge **out, struct mo_err *e);
void mo_edge_free(struct mo_edge *x); /* NULL is fine */

/* Bytes of the program. *out: for the host, valid until the next call. Call
 * mo_edge_sent() after it was written. */
int mo_edge_request(struct mo_edge *x, struct mo_span data, struct mo_span *out,
                    struct mo_err *e);
void mo_edge_sent(struct mo_edge *x);
/* Whether the host has accepted. */
bool mo_edge_is_open(const struct mo_edge *x);
/* The headers that were set, or NULL. */
const struct mo_egress_inject *mo_edge_injected(const struct mo_edge *x);

/* The names in certificates for a box with this policy, if it has `inject`. */
void mo_edge_names(const struct mo_egress_policy *p, struct mo_tls_names *out);

#endif
