/* key.h - the key of the secret store, and the store of a
 * configuration.
 *
 * The key is 32 random bytes, written as 64 hex digits. It is looked for
 * where `secrets.key` says:
 *
 *   file:PATH      a file that only its owner may read
 *   env:NAME       a variable of our own environment
 *   keyring:NAME   a "user" key in the kernel's keyring (keyctl add user ...)
 *
 * and where that is not given, in MCP_ORCHESTRATOR_SECRET_KEY, else in
 * secrets.key beside the secrets. Only that last file is ever made by us, at
 * the first secret; if there are secrets and it is gone, that is an error: a
 * new key would not open them.
 *
 * Ownership: the key is wiped from our memory when the store has its own. */
#ifndef MO_SECRETS_KEY_H
#define MO_SECRETS_KEY_H

#include "config/config.h"
#include "secrets/secrets.h"

#define MO_SECRET_KEY_ENV  "MCP_ORCHESTRATOR_SECRET_KEY"
#define MO_SECRET_KEY_FILE "secrets.key" /* in store.dir */

/* The store of this configuration. With `make` the directory and the key are
 * made if they are missing; without, *out is NULL where there is no store
 * (mo_secrets_get() and the like take that). To be closed. */
int mo_secrets_for(const struct mo_config *c, bool make,
                   struct mo_secrets **out, struct mo_err *e);

#endif
