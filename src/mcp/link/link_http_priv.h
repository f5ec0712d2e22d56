/* link_http_priv.h - shared by link_http.c (the link), link_http_x.c
 * (exchanges) and link_http_req.c (the content of requests). */
#ifndef MO_MCP_LINK_LINK_HTTP_PRIV_H
#define MO_MCP_LINK_LINK_HTTP_PRIV_H

#include "codec/http/sse.h"
#include "mcp/link/budget.h"
#include "mcp/link/link_http.h"

enum what { POST, LISTEN, BYE };
enum state { WAITING, RUNNING, PAUSED, ASKING };
enum kind { NO_HEAD, OTHER, JSON, EVENTS, REFUSED };

struct http {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_arena a;          /* texts of o */
    struct mo_link_http_opts o; /* the owner's; limits of 0 are replaced */
    unsigned nstreams, nextra;
    struct mo_list xs;
    struct xchg *gate;
    bool gate_next; /* the next message without answer is the gate */
    bool open;      /* opened and no 404 since */
    bool listening;
    char session[MO_LINK_HTTP_SESSION + 1];
    char version[16];
    struct mo_budget budget;
    struct mo_buf challenge;
    struct mo_later later;
};

struct xchg {
    struct mo_list node;
    struct http *h;
    struct mo_httpc_x *call;
    enum what what;
    enum state state;
    enum kind kind;
    uint64_t id;
    int status;
    bool modern, answered, quiet, busy;
    bool held;      /* not read until the timer fires */
    bool broken;    /* the answer is no event stream, or too big */
    bool streamed;  /* there was an event stream */
    bool proved;    /* sent with a proof (mcp/oauth/dpop.h) */
    unsigned tries; /* attempts in a row without a stream */
    unsigned silent, noise;
    struct mo_arena a; /* headers and text, until sent */
    int bad;           /* first error of building them, or 0 */
    struct mo_http_header *headers;
    size_t nheaders;
    struct mo_span text;
    struct mo_buf body;
    struct mo_sse sse;
    struct mo_timer timer;
    struct mo_auth_wait wait; /* ASKING: the ticket */
    unsigned refusals;
    struct mo_err why;
};

/* link_http.c: the exchange of the gate has ended. */
void mo_link_http_open_gate(struct http *h);

/* link_http_x.c. A new exchange is in the link's list; drop removes and frees
 * it. */
struct xchg *mo_link_http_x_new(struct http *h, enum what what, uint64_t id);
int mo_link_http_x_run(struct xchg *x, struct mo_err *e);
void mo_link_http_x_drop(struct xchg *x);
/* Report nothing more of it to the owner. */
void mo_link_http_x_stop(struct xchg *x);
/* Report why to the owner (NULL: derive it from the answer). */
void mo_link_http_x_fail(struct xchg *x, const struct mo_err *why);

/* link_http_req.c. Write headers and text into x->a, replacing earlier ones. 0,
 * MO_ENOMEM, MO_ETOOBIG. bare: only the headers that every request has. */
int mo_link_http_build_bare(struct xchg *x, const char *version);
int mo_link_http_build_post(struct xchg *x, const struct mo_link_msg *m);
int mo_link_http_build_get(struct xchg *x);

/* Copy the options; of two headers with the same name the last one counts. Sets
 * limits that are 0. Returns to->headers, with space for MO_LINK_HTTP_MORE, or
 * NULL: out of memory. */
struct mo_http_header *mo_link_http_copy_opts(const struct mo_link_http_opts *o,
                                              struct mo_arena *a,
                                              struct mo_link_http_opts *to);

/* Why a request has no answer although the HTTP client reports no error. */
void mo_link_http_describe(const struct xchg *x, struct mo_err *e);

static inline bool http_is_good(int status)
{
    return status >= 200 && status < 300;
}

#endif
