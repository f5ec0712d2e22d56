/* gate.h - access control: Host, Origin and token of every request.
 *
 * Loopback without a token: the Host header must name this machine's loopback
 * (a page that rebinds its DNS name to 127.0.0.1 sends its own name), and an
 * Origin, if present, must be ours. Programs send none.
 *
 * With a token (required for any other bind address): a request carries it as
 * `Authorization: Bearer`, or as the cookie that opening /?token=… sets. Any
 * Host is allowed then, because a foreign page cannot make the browser send
 * that cookie; the Origin rule stays.
 *
 * A foreign page can also make a browser fetch something without an Origin (an
 * <img>). It cannot read the answer, but it would cost a session, so requests
 * that the browser marks as such (Sec-Fetch-Site) are refused too. Following a
 * link is allowed.
 *
 * There may be several persons, each with a token and a name. Data of one
 * person is invisible to the others; the handlers enforce this by the name in
 * the request. The operator's token (server.token) has no name and sees
 * everything.
 *
 * Tokens are compared in constant time and never logged. */
#ifndef MO_WEB_GATE_H
#define MO_WEB_GATE_H

#include "loop/httpd.h"

#define MO_GATE_COOKIE    "mo_token"
#define MO_GATE_TOKEN_MAX 256 /* including the NUL */

struct mo_gate_person {
    char name[MO_REQ_CALLER_MAX];
    char token[MO_GATE_TOKEN_MAX];
};

struct mo_gate {
    const char *token;                   /* the operator's; NULL: none */
    const struct mo_gate_person *people; /* persons with a token of their own */
    size_t npeople;                      /* no tokens at all: loopback only */
    const char *const *origins;          /* further origins that are allowed */
    size_t norigins;
};

struct mo_refusal {
    int status; /* 0: allowed */
    const char *code, *detail;
};

/* Check Host and Origin only: for a CORS preflight, which carries no token. */
struct mo_refusal mo_gate_check_page(const struct mo_gate *g,
                                     const struct mo_req *rq);
/* Check everything. If allowed, rq->caller is the person's name, or "" for the
 * operator and wherever no persons are configured. */
struct mo_refusal mo_gate_check(const struct mo_gate *g, struct mo_req *rq);
/* The request's Origin if it is one of g->origins, else {NULL, 0}. Pages of
 * these origins may read the answers (CORS). */
struct mo_span mo_gate_listed(const struct mo_gate *g, const struct mo_req *rq);
/* True for a valid token. Used where the cookie is set. */
bool mo_gate_token_ok(const struct mo_gate *g, struct mo_span token);
bool mo_gate_has_tokens(const struct mo_gate *g);

#endif
