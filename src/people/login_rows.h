/* login_rows.h - logins in the store, so that they survive a restart and are
 * known to all replicas.
 *
 *   login:DIGEST          {"owner", "began", "seal"}: the login, sealed with
 * the key of the secrets (secrets/key.h) for this DIGEST login:DIGEST:out
 * {"began"}: it has ended. A row of its own: a renewal that is under way
 * elsewhere cannot bring it back login-of:OWNER:DIGEST {"began"}: finds the
 * logins of one person logins-ended          changes when a login ends: other
 * processes look at it and then check theirs
 *
 * DIGEST is that of the cookie's secret, OWNER that of the person's name: the
 * store knows neither. Replicas must have the same key; with another one they
 * do not know each other's logins.
 *
 * Rows are removed MO_LOGIN_S after their beginning, by a sweep every
 * MO_LOGIN_SWEEP_MS. Ownership: everything is borrowed until close; no callback
 * fires after it. */
#ifndef MO_PEOPLE_LOGIN_ROWS_H
#define MO_PEOPLE_LOGIN_ROWS_H

#include "codec/sha256.h"
#include "config/config.h"
#include "people/access_token.h"
#include "store/store.h"

#define MO_LOGIN_S        ((uint64_t)12 * 3600)
#define MO_LOGIN_SWEEP_MS ((uint64_t)3600 * 1000)
#define MO_LOGIN_HOST_MAX 280

struct mo_login_row { /* texts are borrowed */
    const char *name, *host, *provider, *subject, *claims;
    const char *refresh; /* or NULL */
    uint64_t began_s, began_ms, ends_s;
};

struct mo_login_rows;

/* MO_EUNAVAIL, MO_EPOLICY ...: there is no usable key. */
int mo_login_rows_open(struct mo_loop *l, struct mo_store *store,
                       const struct mo_config *c, struct mo_login_rows **out,
                       struct mo_err *e);
void mo_login_rows_close(struct mo_login_rows *r); /* NULL is fine */

struct mo_store *mo_login_rows_store(const struct mo_login_rows *r);

/* Both return 0 if the callback follows, with the same digest. done() comes
 * when the row is durable. got() gets the row; NULL and no error: there is
 * none, it has ended, or it was sealed with another key. */
typedef void mo_login_put_fn(void *ctx, const char *digest,
                             const struct mo_err *why);
typedef void mo_login_got_fn(void *ctx, const char *digest,
                             const struct mo_login_row *row,
                             const struct mo_err *why);
int mo_login_rows_put(struct mo_login_rows *r, const char *digest,
                      const struct mo_login_row *row, mo_login_put_fn *done,
                      void *ctx, struct mo_err *e);
int mo_login_rows_get(struct mo_login_rows *r, const char *digest,
                      mo_login_got_fn *got, void *ctx, struct mo_err *e);
/* Ends one login, or all of a person. */
void mo_login_rows_end(struct mo_login_rows *r, const char *digest,
                       const char *name);
void mo_login_rows_end_person(struct mo_login_rows *r, const char *name);
/* changed() if a login has ended somewhere since the last time, and the first
 * time. */
void mo_login_rows_look(struct mo_login_rows *r, void (*changed)(void *ctx),
                        void *ctx);

#endif
