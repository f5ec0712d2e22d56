/* machine_grant.h - how a configured server's token is got without a person
 * (mcp/oauth/oauth_machine.h).
 *
 * Resolves the references of `oauth.grant` and its keys into the arena. The
 * texts are secrets: wipe the arena after mo_oauth_new() has copied them. */
#ifndef MO_CONNECT_MACHINE_GRANT_H
#define MO_CONNECT_MACHINE_GRANT_H

#include "config/config.h"
#include "mcp/oauth/oauth.h"

/* Fills *out; all zero if a person signs in. */
int mo_machine_grant(const struct mo_config *cfg,
                     const struct mo_config_oauth *c, struct mo_arena *a,
                     struct mo_oauth_machine *out, struct mo_err *e);

#endif
