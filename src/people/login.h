/* login.h - browsers in which somebody has signed in with a provider.
 *
 * The browser has a cookie with a random secret, which means nothing elsewhere.
 * Everything else is here, in memory, and sealed in the store (login_rows.h):
 * the person, the address the cookie is for and the provider's refresh token. A
 * login that is not in memory is read from the store, so it survives a restart
 * and counts in every replica.
 *
 * The person's identity is valid for people.renewSeconds. After half of it, the
 * next request renews it in the background with the refresh token, so that a
 * changed role or a removed account takes effect. One process does it for all:
 * it holds a lease, looks whether another one was faster, and stores the new
 * tokens before it gives the lease back. If the provider refuses, the login
 * ends; if it does not answer, the person stays until the time has passed.
 * Without a refresh token the person signs in again then. No login is longer
 * than MO_LOGIN_S.
 *
 * A login that ends elsewhere ends here after MO_LOGIN_LOOK_MS; in another
 * worker of this server, at its next request (logins_ended.h).
 *
 * Limits: MO_LOGINS_MAX in memory (the oldest one that is in the store makes
 * room), MO_LOGINS_PERSON of one person (the oldest ends), MO_LOGIN_LOADS read
 * from the store at once. */
#ifndef MO_PEOPLE_LOGIN_H
#define MO_PEOPLE_LOGIN_H

#include "people/exchange.h"
#include "people/login_rows.h"
#include "people/logins_ended.h"

#define MO_LOGINS_MAX    4096
#define MO_LOGINS_PERSON 20
#define MO_LOGIN_LOADS   256
#define MO_LOGIN_LOOK_MS ((uint64_t)2000)
#define MO_LOGIN_PREFIX  "mol_"
#define MO_LOGIN_SECRET  44 /* the prefix and 40 characters */

struct mo_logins;

int mo_logins_new(struct mo_people *people, struct mo_loop *loop,
                  struct mo_logins **out, struct mo_err *e);
void mo_logins_free(struct mo_logins *l); /* NULL is fine */
/* Sign-outs of all workers, borrowed. Before the first login. */
void mo_logins_share(struct mo_logins *l, struct mo_logins_ended *ended);

/* From now on logins are kept in the store. NULL: there is none. On failure
 * they are in memory only. */
int mo_logins_use(struct mo_logins *l, struct mo_store *store,
                  struct mo_err *e);

/* The store is being opened: logins that are not known wait for it. */
void mo_logins_expect(struct mo_logins *l);

struct mo_login_new {
    const struct mo_exchanged *got;
    const char *provider; /* its name */
    struct mo_span host;  /* "HOST:PORT" that the cookie is for */
};

/* Writes the cookie's secret. MO_EBUSY: too many. */
int mo_login_begin(struct mo_logins *l, const struct mo_login_new *n,
                   char secret[MO_LOGIN_SECRET + 1], struct mo_err *e);

/* Waits until the login that began last is in the store, or cannot be:
 * w->done() fires. False: there is nothing to wait for. */
bool mo_login_wait_saved(struct mo_logins *l, struct mo_provider_wait *w);

/* 0: *out is the person. MO_ENOTFOUND: not signed in (any more). MO_EUNAVAIL:
 * the login must be read or renewed first: wait with mo_login_wait(). */
int mo_login_check(struct mo_logins *l, struct mo_span secret,
                   struct mo_span host, struct mo_person *out);
/* w->done() when that has ended, well or not. Cancel with
 * mo_provider_forget(). */
void mo_login_wait(struct mo_logins *l, struct mo_span secret,
                   struct mo_provider_wait *w);

/* Ends the login; everywhere: all of its person's. *who: who it was; "":
 * nobody. */
void mo_login_end(struct mo_logins *l, struct mo_span secret, bool everywhere,
                  char who[MO_PERSON_MAX]);
/* After a reload: the new roles count, and people who have lost theirs or their
 * provider are signed out. */
void mo_logins_reload(struct mo_logins *l);

/* True if somebody of that name is signed in and in that group. */
bool mo_logins_member(const struct mo_logins *l, const char *name,
                      struct mo_span group);
/* As mo_person_put_groups(), of those who are signed in. */
void mo_logins_groups(const struct mo_logins *l, const char *name,
                      struct mo_buf *out);

/* Called with the person's name when a login has ended or has another role:
 * what they have open must be closed. */
void mo_logins_watch(struct mo_logins *l,
                     void (*ended)(void *ctx, const char *who), void *ctx);

#endif
