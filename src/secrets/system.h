/* system.h - secrets that the system itself keeps.
 *
 * A ${secret:NAME} that is not in our own file (secrets.h) is looked for where
 * the machine has such things already, in this order:
 *
 *   systemd   the file NAME in $CREDENTIALS_DIRECTORY, which is what
 *             LoadCredential= and SetCredentialEncrypted= make for a service
 *   keyring   the "user" key mcp-orchestrator:NAME in the kernel's keyring, of
 *             the session or of the user
 *
 * Neither is ever written by us. Desktop key rings (Secret Service) are not
 * asked: they need a session bus and a person who unlocks them.
 *
 * Ownership: a value is written once, into the caller's buffer, who wipes it.
 * Limit: MO_SECRET_MAX bytes (MO_ETOOBIG). */
#ifndef MO_SECRETS_SYSTEM_H
#define MO_SECRETS_SYSTEM_H

#include "config/config.h"

#define MO_KEYRING_PREFIX "mcp-orchestrator:"

/* The length of a "user" key's payload, of which n bytes are copied at most;
 * negative: there is none for us, errno says why. */
long mo_keyring_read(const char *name, char *out, size_t n);

/* Append the value. MO_ENOTFOUND: no store has it, and e is not filled. */
int mo_secret_system_get(const struct mo_config *c, struct mo_span name,
                         struct mo_buf *out, struct mo_err *e);
/* "systemd", "keyring", or NULL: none of them has it. */
const char *mo_secret_system_has(const struct mo_config *c,
                                 struct mo_span name);

#endif
