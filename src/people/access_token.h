/* access_token.h - who sent a signed token of a provider (RFC 9068).
 *
 * The token must be signed by a configured provider, be for us (its audience is
 * the address of /mcp, or one of `audiences`), not have expired, and name a
 * person to whom people.roles gives a role. A token that is bound to a key
 * says so in *out, and is good with a proof only (proof.h). Tokens that were
 * checked are remembered until they expire, at most MO_ACCESS_TOKENS_MAX of
 * them, so that a call costs one look-up. */
#ifndef MO_PEOPLE_ACCESS_TOKEN_H
#define MO_PEOPLE_ACCESS_TOKEN_H

#include "people/proof.h"
#include "people/provider.h"
#include "people/role.h"

#define MO_PERSON_MAX        97   /* of a name, with the NUL */
#define MO_GROUPS_MAX        1024 /* of all group names; further ones: lost */
#define MO_ACCESS_TOKENS_MAX 1024

struct mo_person {
    char name[MO_PERSON_MAX]; /* "PROVIDER:NAME" */
    enum mo_role role;
    char groups[MO_GROUPS_MAX]; /* each with a line end */
    uint64_t ends_s; /* wall clock: the identity is not valid after it */
    char jkt[MO_PROOF_JKT + 1]; /* of the key of an access token; "": none */
};

/* Fills *out from verified claims. MO_EPOLICY: the claims name nobody;
 * MO_ENOTFOUND: somebody who has no role. */
int mo_person_of_claims(const struct mo_config *c,
                        const struct mo_config_provider *provider,
                        struct mo_json claims, struct mo_person *out,
                        struct mo_err *e);

/* The role that people.roles can still give to a person of a provider who had
 * the role `seen` at their last sign-in: their groups are not known now, so
 * each group of the provider may be theirs, up to that role. MO_ROLE_NONE: the
 * provider or every entry that could mean them is gone. */
enum mo_role mo_person_role_now(const struct mo_config *c, const char *person,
                                enum mo_role seen);
/* True if the person is of that name and in that group of their provider. */
bool mo_person_is_member(const struct mo_person *p, const char *name,
                         struct mo_span group);
/* If the person is of that name: appends their groups that `out` does not have
 * yet, each with a line end, and leaves room for a NUL. Those that do not fit
 * are left out. */
void mo_person_put_groups(const struct mo_person *p, const char *name,
                          struct mo_buf *out);
/* True if the group is one of those lines. */
bool mo_groups_have(struct mo_span groups, struct mo_span group);

struct mo_access_tokens;

/* The same of the senders that are remembered. */
bool mo_access_tokens_member(const struct mo_access_tokens *t, const char *name,
                             struct mo_span group);
void mo_access_tokens_groups(const struct mo_access_tokens *t, const char *name,
                             struct mo_buf *out);

int mo_access_tokens_new(struct mo_access_tokens **out, struct mo_err *e);
void mo_access_tokens_free(struct mo_access_tokens *t); /* NULL is fine */
void mo_access_tokens_clear(struct mo_access_tokens *t);

struct mo_access_opts {
    const struct mo_config *config;
    struct mo_provider *const *providers; /* as in people.providers */
    const char *audience;                 /* our own */
};

/* 0: *out is the sender. MO_EPOLICY: refused. MO_EUNAVAIL: *from is the
 * provider whose keys must be read before the same is asked again. MO_EINVAL:
 * a scope is missing; the message is the list of scopes. MO_ENOTFOUND: the
 * sender has no role. */
int mo_access_token_check(struct mo_access_tokens *t,
                          const struct mo_access_opts *o, struct mo_span token,
                          struct mo_person *out, struct mo_provider **from,
                          struct mo_err *e);

/* The same for claims that the provider itself sent (introspect.h); index: of
 * the provider. `iss` may be missing. */
int mo_access_claims_check(const struct mo_access_opts *o, size_t index,
                           struct mo_json claims, struct mo_person *out,
                           struct mo_err *e);

#endif
