/* exact.h - an approval is for exact bytes.
 *
 * What a person sees, what is approved and what is sent must be one and the
 * same. So arguments are written anew, compact, from the parsed value, and
 * refused when two readers could read them differently (a member twice, half
 * of a surrogate pair). The
 * digest of a call covers who asks, which call it is, what will run and with
 * which arguments, the tool's own definition included: whatever changes makes
 * an approval worthless.
 *
 * A tool's definition has a digest as well, so that a server that changes its
 * words after it was looked at is noticed. */
#ifndef MO_POLICY_EXACT_H
#define MO_POLICY_EXACT_H

#include "codec/json/json.h"

#define MO_EXACT_MAX    ((size_t)4 * 1024 * 1024)
#define MO_EXACT_DIGEST 65 /* sha256 in hex, and the NUL */

/* The one form in which arguments are shown, digested and sent. No value at
 * all (or null) is "{}". MO_EPROTO: no object, or a member twice or a lone
 * surrogate at any depth (the message names it); MO_ETOOBIG beyond
 * MO_EXACT_MAX. */
int mo_exact_args(struct mo_json args, struct mo_buf *out, struct mo_err *e);

struct mo_tool_def {
    struct mo_span server, name, description;
    struct mo_span schema, annotations; /* JSON texts; may be empty */
};

void mo_exact_tool(const struct mo_tool_def *d, char out[MO_EXACT_DIGEST]);

struct mo_exact_call {
    struct mo_span session, call, server, tool;
    struct mo_span args;     /* from mo_exact_args() */
    const char *tool_digest; /* from mo_exact_tool() */
};

void mo_exact_call(const struct mo_exact_call *c, char out[MO_EXACT_DIGEST]);

#endif
