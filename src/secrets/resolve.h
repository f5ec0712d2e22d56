/* resolve.h - the values behind references, at the moment of use.
 *
 * Only whoever is about to use a secret calls this; the value is appended to
 * the caller's buffer, which he wipes, and kept nowhere else. A file's last
 * newline (LF or CRLF) is dropped. ${secret:NAME} opens the secret store
 * (key.h) each time: it may have been changed by `secrets set`. */
#ifndef MO_SECRETS_RESOLVE_H
#define MO_SECRETS_RESOLVE_H

#include "config/config.h"

/* The error names the reference, never a value. */
int mo_reference_resolve(const struct mo_config *c, const char *text,
                         struct mo_buf *out, struct mo_err *e);

/* The same, and each value that stood behind a reference is told, so that it
 * can be kept out of logs and errors. It is borrowed during the call. */
typedef void mo_reference_told_fn(void *ctx, struct mo_span value);
int mo_reference_resolve_told(const struct mo_config *c, const char *text,
                              struct mo_buf *out, mo_reference_told_fn *told,
                              void *ctx, struct mo_err *e);

#endif
