/* redis_url.h - the address of a Redis store, as store.url has it.
 *
 * Ownership: the caller's struct mo_rconf holds the parts; mo_redis_url_fini()
 * frees them and wipes the password. No error shows any part of the address,
 * because it may hold a password. */
#ifndef MO_STORE_REDIS_URL_H
#define MO_STORE_REDIS_URL_H

#include "store/store.h"

struct mo_tls_ctx;

#define MO_REDIS_SEEDS_MAX 8

/* An address for mo_dial(); its host, for TLS ("" for a unix socket). */
struct mo_rtarget {
    char addr[280], host[260];
};

/* Settings that all connections of a store share.
 *
 * A seeded connection goes to one of the seeds: to the next one with each
 * attempt, or to the master that the next one names. */
struct mo_rconf {
    struct mo_loop *loop;
    struct mo_rtarget seeds[MO_REDIS_SEEDS_MAX]; /* hosts of the URL */
    unsigned nseeds;
    char master[64];        /* not "": the seeds are sentinels of this master */
    struct mo_tls_ctx *tls; /* NULL: plain */
    char *user, *password;  /* or NULL */
    uint64_t db;
    uint64_t stall_ms;
};

/* Parses o->url into *f, which is zero. Fails with MO_EINVAL if it is no
 * address of Redis; call mo_redis_url_fini() then, too. */
int mo_redis_url(struct mo_rconf *f, const struct mo_store_opts *o,
                 struct mo_err *e);
void mo_redis_url_fini(struct mo_rconf *f);

#endif
