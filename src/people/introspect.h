/* introspect.h - who sent a token that only its provider can read (RFC 7662).
 *
 * The provider is asked about each token once, and the answer kept:
 *
 *   MO_INTROSPECT_GOOD_MS  at most, of a good token: so long a revoked one
 * works MO_INTROSPECT_BAD_MS   of a refused one MO_INTROSPECT_DOWN_MS  if the
 * provider did not answer
 *
 * Anybody can send tokens, so they must not be a way to flood the provider:
 * MO_INTROSPECT_ACTIVE questions at once, and MO_INTROSPECT_PER_S a second
 * about tokens that were not good before. Above that MO_EBUSY.
 *
 * The token must be active, of the type Bearer, for us, not expired, and have
 * the scopes, as signed ones (access_token.h). Only digests of tokens are kept.
 *
 * Ownership: everything is borrowed; mo_introspect_close() frees it, at once or
 * when its requests have ended. */
#ifndef MO_PEOPLE_INTROSPECT_H
#define MO_PEOPLE_INTROSPECT_H

#include "people/access_token.h"

#define MO_INTROSPECT_GOOD_MS   ((uint64_t)60 * 1000)
#define MO_INTROSPECT_BAD_MS    ((uint64_t)10 * 1000)
#define MO_INTROSPECT_DOWN_MS   ((uint64_t)1000)
#define MO_INTROSPECT_ACTIVE    6
#define MO_INTROSPECT_PER_S     20
#define MO_INTROSPECT_KNOWN_MAX ((size_t)4096)
#define MO_INTROSPECT_TOKEN_MAX ((size_t)4096) /* bytes */

struct mo_introspect;

struct mo_introspect_opts {
    struct mo_loop *loop;
    struct mo_httpc *http;
    struct mo_provider *provider;
    struct mo_access_opts access; /* its `providers` are not used */
    size_t index;                 /* of the provider in people.providers */
};

int mo_introspect_new(const struct mo_introspect_opts *o,
                      struct mo_introspect **out, struct mo_err *e);
/* All who wait get MO_ECANCELED, from inside this call. NULL is fine. */
void mo_introspect_close(struct mo_introspect *x);

/* As mo_access_token_check(). MO_EUNAVAIL: mo_introspect_ask() first. MO_EBUSY:
 * the provider does not answer, or is asked too often. */
/* True if a token of that person was good, and they are in that group. */
bool mo_introspect_member(const struct mo_introspect *x, const char *name,
                          struct mo_span group);
int mo_introspect_check(struct mo_introspect *x, struct mo_span token,
                        struct mo_person *out, struct mo_err *e);
/* Asks the provider, or joins the question under way. */
void mo_introspect_ask(struct mo_introspect *x, struct mo_span token,
                       struct mo_provider_wait *w);

#endif
