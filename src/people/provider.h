/* provider.h - an OpenID Connect provider: its addresses and its public keys.
 *
 * Both are read when they are first needed (OpenID Discovery or RFC 8414, then
 * the key set) and kept:
 *
 *   MO_PROVIDER_FRESH_MS  then they are read again, in the background
 *   MO_PROVIDER_STALE_MS  so long they are used if the provider does not answer
 *   MO_PROVIDER_PAUSE_MS  between two readings: a token with an unknown key
 *                         leads to a reading, so it must not be a way to flood
 *                         the provider
 *
 * The issuer in the metadata must be the configured one. Ownership: the loop
 * and the HTTP client are borrowed; mo_provider_close() frees it, at once or
 * when its request has ended. */
#ifndef MO_PEOPLE_PROVIDER_H
#define MO_PEOPLE_PROVIDER_H

#include "base/list.h"
#include "loop/jwk.h"
#include "mcp/oauth/oauth_ask.h"

#define MO_PROVIDER_FRESH_MS ((uint64_t)3600 * 1000)
#define MO_PROVIDER_STALE_MS ((uint64_t)24 * 3600 * 1000)
#define MO_PROVIDER_PAUSE_MS ((uint64_t)10 * 1000)
#define MO_PROVIDER_KEYS_MAX 32

struct mo_provider;

int mo_provider_new(struct mo_loop *l, struct mo_httpc *http,
                    const char *issuer, struct mo_provider **out,
                    struct mo_err *e);
/* All who wait get MO_ECANCELED, from inside this call. */
void mo_provider_close(struct mo_provider *p);

/* Somebody who waits for a reading. done() fires once, from the loop; why NULL:
 * metadata and keys are there. */
struct mo_provider_wait {
    struct mo_list node;
    void (*done)(struct mo_provider_wait *w, const struct mo_err *why);
};

/* Reads metadata and keys, or joins the reading under way. */
void mo_provider_read(struct mo_provider *p, struct mo_provider_wait *w);
/* done() will not fire. A wait that has ended, or that is all zero, is fine. */
void mo_provider_forget(struct mo_provider_wait *w);

/* The addresses; NULL: not read yet. Borrowed until the next reading. */
const struct mo_oauth_server *mo_provider_server(const struct mo_provider *p);
const char *mo_provider_issuer(const struct mo_provider *p);

/* Checks the signature of a token. 0; MO_EPOLICY: it is not the provider's;
 * MO_EUNAVAIL: the keys must be read first. */
int mo_provider_verify(struct mo_provider *p, const struct mo_jwt *t,
                       struct mo_err *e);

#endif
