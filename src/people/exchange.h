/* exchange.h - turns the code of a sign-in, or a refresh token, into a person.
 *
 *   [keys and addresses of the provider] -> token endpoint -> [userinfo] ->
 * done
 *
 * The ID token must be signed by the provider, be for our client (aud, azp) and
 * carry the nonce of this sign-in. The userinfo endpoint is asked only if the
 * ID token lacks the claim of the name or of the groups; it must be about the
 * same subject.
 *
 * Ownership: texts of the options are copied. done() fires once, from the loop,
 * unless mo_exchange_cancel() came first; then the exchange is freed. */
#ifndef MO_PEOPLE_EXCHANGE_H
#define MO_PEOPLE_EXCHANGE_H

#include "people/people.h"

struct mo_exchange;

struct mo_exchanged { /* borrowed */
    struct mo_person who;
    struct mo_json claims;
    const char *subject;
    const char *refresh; /* for the next renewal; NULL: none */
};

struct mo_exchange_opts {
    struct mo_people *people;
    const char *provider; /* its name */
    /* A sign-in ... */
    const char *code, *verifier, *redirect, *nonce;
    /* ... or the renewal of one: the refresh token and the subject. */
    const char *refresh, *subject;
    /* MO_EPOLICY: the provider refused; MO_ENOTFOUND: the person has no role;
     * MO_EUNAVAIL: it does not answer. */
    void (*done)(void *ctx, const struct mo_exchanged *got,
                 const struct mo_err *why);
    void *ctx;
};

int mo_exchange_start(const struct mo_exchange_opts *o,
                      struct mo_exchange **out, struct mo_err *e);
void mo_exchange_cancel(struct mo_exchange *x);

#endif
