/* exact.h - the exact form of a call's arguments, and digests of calls and
 * tool definitions.
 *
 * The bytes that a person sees, that are approved and that are sent must be the
 * same. So arguments are serialised again, compact, from the parsed value, and
 * refused if two parsers could read them differently (a duplicate member, a
 * lone surrogate).
 *
 * The digest of a call covers session, call id, server, tool, arguments and the
 * tool's definition: a change of any of them makes an approval invalid. The
 * digest of a definition shows that a server changed a tool after people saw
 * it. */
#ifndef MO_POLICY_EXACT_H
#define MO_POLICY_EXACT_H

#include "codec/json/json.h"

#define MO_EXACT_MAX    ((size_t)4 * 1024 * 1024)
#define MO_EXACT_DIGEST 65 /* sha256 in hex, and the NUL */

/* Appends the exact form of the arguments. None (or null) gives "{}".
 * MO_EPROTO: not an object, or a duplicate member or lone surrogate at any
 * depth (the message names it); MO_ETOOBIG: over MO_EXACT_MAX bytes. */
int mo_exact_args(struct mo_json args, struct mo_buf *out, struct mo_err *e);

/* MO_EINVAL: the arguments do not fit the tool's schema (none: any fit). A
 * schema that cannot be checked here is left to the server. */
int mo_exact_fits(struct mo_json schema, struct mo_json args, struct mo_err *e);

struct mo_tool_def {
    struct mo_span server, name, description;
    struct mo_span schema, annotations; /* JSON texts; may be empty */
};

/* One tool, as used by people, rules and pins. Texts are borrowed from the
 * reader of the definition. */
struct mo_tool {
    struct mo_span name;    /* for the model */
    struct mo_tool_def def; /* the server's name of the tool; everything else
                             * with the overrides of the configuration */
    struct mo_span title, output_schema;
    unsigned claims; /* mo_claim bits */
    bool app_only;   /* no model is offered it (mcp/app.h) */
    bool no_app;     /* no app may call it */
    unsigned source; /* index as given to mo_tools_load() */
    char digest[MO_EXACT_DIGEST];
};

void mo_exact_tool(const struct mo_tool_def *d, char out[MO_EXACT_DIGEST]);
/* Reads a tool from the list of its server, without a name for the model; texts
 * are in the arena or borrowed from the item. own empty: the name is in the
 * item. 0 or MO_ENOMEM. */
int mo_tool_read(struct mo_arena *a, struct mo_span server, struct mo_span own,
                 struct mo_json item, struct mo_tool *out);

struct mo_exact_call {
    struct mo_span session, call, server, tool;
    struct mo_span args;     /* from mo_exact_args() */
    const char *tool_digest; /* from mo_exact_tool() */
};

void mo_exact_call(const struct mo_exact_call *c, char out[MO_EXACT_DIGEST]);

#endif
