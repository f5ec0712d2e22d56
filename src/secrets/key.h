/* key.h - opens the secret store of a configuration with its key.
 *
 * The key is 32 random bytes, written as 64 hex digits. `secrets.key` says
 * where it is:
 *
 *   file:PATH      a file that only its owner may read
 *   env:NAME       a variable of the environment
 *   keyring:NAME   a "user" key in the kernel's keyring (keyctl add user ...)
 *
 * The default is the variable MCP_ORCHESTRATOR_SECRET_KEY, else the file
 * secrets.key in store.dir. Only that file is ever created here, together with
 * the first secret. If it is missing while secrets exist, that is an error: a
 * new key could not open them.
 *
 * Ownership: the store copies the key; this room then wipes its own copy. */
#ifndef MO_SECRETS_KEY_H
#define MO_SECRETS_KEY_H

#include "config/config.h"
#include "secrets/secrets.h"

#define MO_SECRET_KEY_ENV  "MCP_ORCHESTRATOR_SECRET_KEY"
#define MO_SECRET_KEY_FILE "secrets.key" /* in store.dir */

/* Opens the store of this configuration. With `make`, a missing directory and
 * key are created; without, *out is NULL if there is no store (the functions of
 * secrets.h accept NULL). The caller closes *out. */
int mo_secrets_for(const struct mo_config *c, bool make,
                   struct mo_secrets **out, struct mo_err *e);

#endif
