/* stubs.h - tools as declarations of Python and TypeScript. Pure functions.
 *
 * From a tool's definition to text that people, models and type checkers read.
 * Names, descriptions and schemas come from servers and are not trusted: no
 * text leaves its comment or its string, and what cannot be expressed becomes
 * Any or unknown. The text of a script's own tools is never executed.
 *
 * Limits: STUB_MAX bytes a tool (one that needs more is declared without
 * types), DEPTH_MAX levels of a schema, TEXT_MAX bytes of a description. */
#ifndef MO_MCP_SCRIPT_STUBS_H
#define MO_MCP_SCRIPT_STUBS_H

#include "codec/json/json.h"

enum mo_script_language { MO_SCRIPT_PYTHON, MO_SCRIPT_JAVASCRIPT };

/* One tool. input and output: its schemas, validated JSON or none. */
struct mo_script_tool {
    struct mo_span name, server, description;
    struct mo_json input, output;
};

/* Append the declarations of one tool. id: its identifier, or "" for a tool
 * that is called by its exact name. Python has two parts, of which the types
 * come first; `types` is NULL for TypeScript. A member of a class or an
 * interface is not closed here: mo_stubs_head() and mo_stubs_tail() are around
 * them. */
void mo_stub_put(const struct mo_script_tool *t, const char *id,
                 enum mo_script_language l, struct mo_buf *types,
                 struct mo_buf *out);

/* Before and after all of them. */
void mo_stubs_head(enum mo_script_language l, struct mo_buf *out);
void mo_stubs_tail(enum mo_script_language l, struct mo_buf *out);

#endif
