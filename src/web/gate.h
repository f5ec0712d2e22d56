/* gate.h - who may talk to us: Host, Origin and token of every request.
 *
 * Loopback without a token: the Host header must name this machine's
 * loopback (a page that rebinds its DNS name to 127.0.0.1 sends its own
 * name) and an Origin, where there is one, must be ours. Programs send none.
 *
 * With a token (needed for any other bind address): a request carries it as
 * `Authorization: Bearer`, or as the cookie that opening /?token=… sets. The
 * Host may then be any, because a stranger's page cannot make the browser
 * send that cookie; the Origin rule stays.
 *
 * A page elsewhere can also make a browser fetch something without telling
 * an Origin (an <img>). It cannot read the answer, but it would cost us a
 * session, so what a browser marks as such (Sec-Fetch-Site) is refused too.
 * Following a link to us is not that.
 *
 * There may be several persons, each with a token and a name. What belongs
 * to one of them is not there for the others; the rooms behind see to that,
 * by the name in the request. The operator's token (server.token) has none
 * and sees everything.
 *
 * Tokens are compared in constant time and never logged. */
#ifndef MO_WEB_GATE_H
#define MO_WEB_GATE_H

#include "loop/httpd.h"

#define MO_GATE_COOKIE    "mo_token"
#define MO_GATE_TOKEN_MAX 256 /* NUL included */

struct mo_gate_person {
    char name[MO_REQ_CALLER_MAX];
    char token[MO_GATE_TOKEN_MAX];
};

struct mo_gate {
    const char *token; /* the operator's; NULL: there is none */
    const struct mo_gate_person *people; /* who have tokens of their own */
    size_t npeople;                      /* no token at all: only loopback */
    const char *const *origins;          /* further origins that may ask */
    size_t norigins;
};

struct mo_refusal {
    int status; /* 0: let in */
    const char *code, *detail;
};

/* Host and Origin only: what holds for a CORS preflight, which may carry no
 * token. */
struct mo_refusal mo_gate_check_page(const struct mo_gate *g,
                                     const struct mo_req *rq);
/* All of it. Who is let in: rq->caller is the person's name, or "" for the
 * operator, and for everybody where there are no persons. */
struct mo_refusal mo_gate_check(const struct mo_gate *g, struct mo_req *rq);
/* The request's Origin if it is one of g->origins, else {NULL, 0}: pages
 * there may read our answers (CORS). */
struct mo_span mo_gate_listed(const struct mo_gate *g, const struct mo_req *rq);
/* Is it a right token? For the door that sets the cookie. */
bool mo_gate_token_ok(const struct mo_gate *g, struct mo_span token);
bool mo_gate_has_tokens(const struct mo_gate *g);

#endif
