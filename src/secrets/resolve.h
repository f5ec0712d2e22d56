/* resolve.h - resolves references to their values, at the moment of use.
 *
 * Ownership: the value is appended to the caller's buffer, which the caller
 * wipes; no other copy remains. The last newline (LF or CRLF) of a file is
 * dropped. ${secret:NAME} opens the secret store (key.h) each time, because
 * `secrets set` may have changed it. */
#ifndef MO_SECRETS_RESOLVE_H
#define MO_SECRETS_RESOLVE_H

#include "codec/json/json.h"
#include "config/config.h"

/* The error names the reference, never a value. */
int mo_reference_resolve(const struct mo_config *c, const char *text,
                         struct mo_buf *out, struct mo_err *e);

/* The same, and calls told() with each value of a reference, so that it can be
 * kept out of logs and errors. The value is borrowed during the call. */
typedef void mo_reference_told_fn(void *ctx, struct mo_span value);
int mo_reference_resolve_told(const struct mo_config *c, const char *text,
                              struct mo_buf *out, mo_reference_told_fn *told,
                              void *ctx, struct mo_err *e);

/* Writes the member "providers": which model providers have a key, never the
 * key or anything derived from it.
 *
 *   "providers":[{"name":"claude","key":"set","from":"ANTHROPIC_API_KEY",
 *                 "fixed":["key"]},
 *                {"name":"gemini","key":"unreadable","from":"...","why":"..."},
 *                {"name":"openai","key":"none","variable":"OPENAI_API_KEY"}]
 *
 * fixed: set by a flag or the environment, which the file does not change.
 * addresses: also "baseUrl", without passwords. */
void mo_key_states(const struct mo_config *cfg, bool addresses,
                   struct mo_jw *w);

#endif
