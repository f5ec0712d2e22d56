/* role.h - what a person may do.
 *
 * A role contains the ones before it. `people.roles` gives them to persons and
 * groups:
 *
 *   alice            the person of that name in server.tokens
 *   corp:alice       the person whom the provider `corp` calls alice
 *   corp:*           everyone whom `corp` knows
 *   corp/admins      the members of that group
 *
 * A person of server.tokens who is not named is a user; one of a provider has
 * no role and is refused. The holder of server.token is the operator. */
#ifndef MO_PEOPLE_ROLE_H
#define MO_PEOPLE_ROLE_H

#include "codec/json/json.h"
#include "config/config.h"

const char *mo_role_name(enum mo_role r); /* "none", "viewer", ... */
/* MO_ROLE_NONE: no such role. */
enum mo_role mo_role_named(struct mo_span name);

/* The entries of people.roles for a role. */
const struct mo_config_list *mo_role_holders(const struct mo_config *c,
                                             enum mo_role r);
/* The role of a person in server.tokens. */
enum mo_role mo_role_of_token(const struct mo_config *c, const char *name);
/* The role of a person whom the provider calls `name` (without the provider's
 * prefix). groups: a text or a list of texts; everything else is no group. */
enum mo_role mo_role_of_claims(const struct mo_config *c, const char *provider,
                               struct mo_span name, struct mo_json groups);

#endif
