/* system.h - secrets from stores of the operating system.
 *
 * A ${secret:NAME} that is not in the encrypted file (secrets.h) is searched
 * in these stores, in this order:
 *
 *   systemd   the file NAME in $CREDENTIALS_DIRECTORY, which LoadCredential=
 *             and SetCredentialEncrypted= create for a service
 *   keyring   the "user" key mcp-orchestrator:NAME in the kernel's keyring, of
 *             the session or of the user
 *
 * Neither is ever written. Desktop key rings (Secret Service) are not
 * supported: they need a session bus and a person who unlocks them.
 *
 * Ownership: a value is written once, to the caller's buffer; the caller wipes
 * it.
 * Limit: MO_SECRET_MAX bytes (MO_ETOOBIG). */
#ifndef MO_SECRETS_SYSTEM_H
#define MO_SECRETS_SYSTEM_H

#include "config/config.h"

#define MO_KEYRING_PREFIX "mcp-orchestrator:"

/* Copies at most n bytes of a "user" key and returns its full length.
 * Negative: no such key is accessible, errno has the reason. */
long mo_keyring_read(const char *name, char *out, size_t n);

/* Appends the value. MO_ENOTFOUND: no store has it; e is not filled. */
int mo_secret_system_get(const struct mo_config *c, struct mo_span name,
                         struct mo_buf *out, struct mo_err *e);
/* The store that has it: "systemd", "keyring" or NULL. */
const char *mo_secret_system_has(const struct mo_config *c,
                                 struct mo_span name);

#endif
