/* gate.h - access control: Host, Origin and token of every request.
 *
 * A request carries a token as `Authorization: Bearer`, or the cookie that
 * signing in with a token sets. A process of this user or of root that connects
 * over a unix socket needs neither, unless it is a proxy or a browser. Only if
 * there are no tokens at all
 * (`serve --no-auth`) is everyone admitted whose Host header names this
 * machine's loopback: a page that rebinds its DNS name to 127.0.0.1 sends its
 * own name.
 *
 * The cookie holds no token but a keyed digest of the host name, the port, the
 * person and the last second of its life. It is of no use at another address,
 * and a changed token ends it. Its name contains the port, because browsers
 * send cookies to every port of a host.
 *
 * An Origin, if present, must be ours. Programs send none. A foreign page can
 * also make a browser fetch something without an Origin (an <img>). It cannot
 * read the answer, but it would cost a session, so requests that the browser
 * marks as such (Sec-Fetch-Site) are refused too. Following a link is allowed,
 * but no foreign page can sign a person in (mo_gate_is_foreign()).
 *
 * There may be several persons, each with a token and a name. Data of one
 * person is invisible to the others; the handlers enforce this by the name in
 * the request. The operator's token (server.token) has no name and sees
 * everything.
 *
 * Each person can make personal tokens (people/grants.h), which end in time.
 * Such a token has at most the role that its owner has now. Bound to views, it
 * is refused everywhere but at /mcp/VIEW. No cookie can be got for one, and
 * none can make another one.
 *
 * Tokens are compared in constant time and never logged. */
#ifndef MO_WEB_GATE_H
#define MO_WEB_GATE_H

#include "loop/httpd.h"
#include "people/grants.h"
#include "people/login.h"

#define MO_GATE_COOKIE    "mo_" /* followed by the port */
#define MO_GATE_COOKIE_S  ((uint64_t)30 * 24 * 3600)
#define MO_GATE_TOKEN_MAX 256 /* including the NUL */

struct mo_gate_person {
    char name[MO_REQ_CALLER_MAX];
    char token[MO_GATE_TOKEN_MAX];
    enum mo_role role;
};

struct mo_gate {
    const char *token;                   /* the operator's; NULL: none */
    const struct mo_gate_person *tokens; /* persons with a token of their own */
    size_t ntokens;                      /* no tokens at all: loopback only */
    const char *const *origins;          /* further origins that are allowed */
    size_t norigins;
    struct mo_people *people; /* who have an account at a provider; or NULL */
    struct mo_grants *grants; /* personal tokens; NULL: no store (yet) */
};

struct mo_refusal {
    int status; /* 0: allowed */
    const char *code, *detail;
};

/* What the check of a credential needs, or says besides the refusal. */
struct mo_gate_more {
    bool is_unknown; /* mo_people_find_out() first; then check again */
    struct mo_provider *read;
    struct mo_span token;
    struct mo_span login; /* this login must be renewed first; or empty */
    bool read_grants;     /* mo_grants_read() first */
    bool dpop;            /* the token is bound to a key, or sent as such */
    struct mo_err why; /* of a refused credential; a missing scope: the list */
};

/* Check Host and Origin only: for a CORS preflight, which carries no token. */
struct mo_refusal mo_gate_check_page(const struct mo_gate *g,
                                     const struct mo_req *rq);
/* Check everything. If allowed, rq->who is the person's name, rq->role the role
 * and rq->caller the name whose data the request may use: "" for operators and
 * wherever no persons are configured; rq->door says by which credential. more
 * may be NULL. */
struct mo_refusal mo_gate_check(const struct mo_gate *g, struct mo_req *rq,
                                struct mo_gate_more *more);
/* The role of a person now; "": the operator. Of a provider's person: at most
 * the one they had at their last sign-in (grants.h). MO_ROLE_NONE: nobody. */
enum mo_role mo_gate_role_now(const struct mo_gate *g, const char *name);
/* The request's Origin if it is one of g->origins, else {NULL, 0}. Pages of
 * these origins may read the answers (CORS). */
struct mo_span mo_gate_listed(const struct mo_gate *g, const struct mo_req *rq);
/* Also true of every text that has the form of a personal token. */
bool mo_gate_token_ok(const struct mo_gate *g, struct mo_span token);
/* Append the Set-Cookie value for the owner of the token, whose name is in
 * rq->who then. MO_EPOLICY: the token is wrong. */
int mo_gate_cookie(const struct mo_gate *g, struct mo_req *rq,
                   struct mo_span token, struct mo_buf *out);
/* Begin a login (people/login.h) and append its Set-Cookie value. */
int mo_gate_log_in(const struct mo_gate *g, struct mo_req *rq,
                   const char *provider, const struct mo_exchanged *got,
                   struct mo_buf *out, struct mo_err *e);
/* End the login whose cookie the request carries, and all others of its
 * person. */
void mo_gate_log_out(const struct mo_gate *g, const struct mo_req *rq);
/* The port that the request was sent to, as the browser knows it. */
unsigned mo_gate_port(const struct mo_req *rq);
/* The value of the first cookie of that name; p NULL: none. */
struct mo_span mo_gate_find_cookie(const struct mo_req *rq, const char *name);
/* Append the Set-Cookie value that removes the cookie. */
int mo_gate_no_cookie(const struct mo_req *rq, struct mo_buf *out);
/* The credential that the request carries, valid or not: "token", "cookie",
 * "none". */
const char *mo_gate_credential(const struct mo_req *rq);
/* A page of another site made the browser send the request, also by a link. */
bool mo_gate_is_foreign(const struct mo_req *rq);
/* The Referer, if present, names a page of this server or of g->origins. */
bool mo_gate_referer_ok(const struct mo_gate *g, const struct mo_req *rq);
bool mo_gate_has_tokens(const struct mo_gate *g);

#endif
