/* resolve.h - the value behind ${env:NAME} and ${file:PATH}, when needed.
 *
 * Only whoever is about to use a secret calls this; the value is appended to
 * the caller's buffer and kept nowhere. A file's last newline (LF or CRLF) is
 * dropped.
 * ${secret:NAME} needs the secret store, which this version does not have:
 * the error says so. */
#ifndef MO_APP_RESOLVE_H
#define MO_APP_RESOLVE_H

#include "app/config.h"

/* The error names the reference, never a value. */
int mo_ref_resolve(const struct mo_config *c, const char *text,
                   struct mo_buf *out, struct mo_err *e);

#endif
