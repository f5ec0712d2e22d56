/* up_kit.h - an upstream without a server: links that live in memory.
 *
 * Each dial makes a fake link that answers by its kit's mood at that time.
 * Nothing waits for a clock: messages in transit arrive when the loop turns
 * (kit_settle()), held messages when the test releases them (kit_release()).
 * want() requests a child, kit_call() sends a request through it, and struct
 * kit counts the callbacks of the upstream. */
#ifndef MO_UP_KIT_H
#define MO_UP_KIT_H

#include "gateway/upstream/upstream_priv.h"
#include "mo_test.h"

#define LONG      20000 /* ms; deadline for a hanging test */
#define LINKS_MAX 64

enum mood {
    FINE,    /* legacy */
    MODERN,  /* answers server/discover */
    NO_DIAL, /* the dial fails */
    DIE,     /* closes on initialize */
    SIGN_IN, /* 401 */
    HANG,    /* initialize is answered by kit_release() */
};

struct kit;

struct fake {
    struct mo_link k;
    struct kit *kit;
    struct mo_later later;
    struct mo_buf in; /* lines in transit to the client */
    enum mood mood;
    uint64_t init, failed; /* ids: to be answered; refused */
    bool ended, holds;
    struct mo_err why;
    char who[32];
};

struct kit {
    struct mo_loop *l;
    struct mo_upstream *u;
    struct mo_upstream_opts o;
    enum mood mood;
    bool late_dial, slow_close;
    struct fake *links[LINKS_MAX]; /* NULL: gone */
    struct mo_conn *dialing;       /* late_dial: to be given its link */
    int dials, opens, losts, asks, asks_gone, notes, gone, done;
    struct mo_buf log; /* every line that was sent to a server */
    struct mo_err why; /* of the last loss, or of the last call */
    struct mo_child *last;
    struct mo_conn_verdict known, learnt;
    int learns;
    bool wanting; /* inside mo_upstream_request_child() */
};

struct want {
    struct mo_child_request w;
    struct kit *k;
    struct mo_child *c;
    struct mo_err why;
    int ready;
};

/* --- dial and callbacks -------------------------------------------------- */

extern const struct mo_upstream_cb kit_cb;

/* --- driving ------------------------------------------------------------- */

/* Turns the loop until everything in transit has arrived. */
void kit_settle(struct kit *k);

struct mo_gw_server kit_server(void);
bool kit_try(struct kit *k, const struct mo_gw_server *s);
void kit_init(struct kit *k, struct mo_gw_server s);
void kit_gone(void *ctx);
bool is_gone(void *ctx);

/* Releases the held messages. */
void kit_release(struct kit *k);

void kit_fini(struct kit *k);
void want_ready(struct mo_child_request *w, struct mo_child *c,
                const struct mo_err *why);
void want_as(struct kit *k, struct want *v, const char *who);
void want(struct kit *k, struct want *v);

/* Requests a child and gets it. */
void want_now(struct kit *k, struct want *v);

void let_go(struct want *v);
struct mo_call *kit_call(struct kit *k, struct mo_child *c, const char *method);
struct mo_upstream_status kit_status(const struct kit *k);
bool kit_saw(const struct kit *k, const char *text);

#endif
