/* provider_keys.h - reports which model providers have a key, and its source.
 *
 *   {"providers":[{"name":"claude","key":"set","from":"ANTHROPIC_API_KEY"},
 *                 {"name":"gemini","key":"unreadable","from":"...","why":"..."},
 *                 {"name":"openai","key":"none","variable":"OPENAI_API_KEY"}]}
 *
 * The report never contains the key or anything derived from it. A reference
 * is resolved to test that it works, and the value is wiped. */
#ifndef MO_SECRETS_PROVIDER_KEYS_H
#define MO_SECRETS_PROVIDER_KEYS_H

#include "config/config.h"

int mo_key_states(const struct mo_config *cfg, struct mo_buf *out);

#endif
