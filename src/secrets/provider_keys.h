/* provider_keys.h - which providers of models have a key, and where it is from.
 *
 *   {"providers":[{"name":"claude","key":"set","from":"ANTHROPIC_API_KEY"},
 *                 {"name":"gemini","key":"unreadable","from":"...","why":"..."},
 *                 {"name":"openai","key":"none","variable":"OPENAI_API_KEY"}]}
 *
 * Never the key, nor anything that was worked out of it: a reference is
 * looked up to see that it leads somewhere, and wiped. */
#ifndef MO_SECRETS_PROVIDER_KEYS_H
#define MO_SECRETS_PROVIDER_KEYS_H

#include "config/config.h"

int mo_key_states(const struct mo_config *cfg, struct mo_buf *out);

#endif
