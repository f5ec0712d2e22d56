/* definition.h - definitions of tools, resources, resource templates, prompts
 * and skills, in a form that strict clients accept.
 *
 * The official SDKs check every list against a schema and refuse the whole
 * list because of one bad item. So each item is checked when a server's list is
 * read:
 *
 *  - An optional member of a wrong type (description: null) is removed.
 *  - An inputSchema without a type gets type "object", an absent one becomes
 *    {"type":"object"}; properties that are no schemas accept every value.
 *  - An outputSchema that a validator cannot compile is removed.
 *  - A resource or template without a name gets its URI as its name.
 *  - An item that cannot be mended (inputSchema of type "string") is left out,
 *    as is a skill that is not valid (skill.h).
 *
 * An item that is right keeps its bytes. Items that are no objects or have no
 * name or URI are passed on: the catalogue leaves them out. Pure functions;
 * both lists and items may be hostile. */
#ifndef MO_MCP_DEFINITION_H
#define MO_MCP_DEFINITION_H

#include "codec/json/json.h"

#define MO_DEFINITION_TEXT_MAX 400

enum mo_definition_kind {
    MO_DEFINITION_TOOL,
    MO_DEFINITION_RESOURCE,
    MO_DEFINITION_TEMPLATE,
    MO_DEFINITION_PROMPT,
    MO_DEFINITION_SKILL,
    MO_DEFINITION_KINDS,
};

/* Changes made to a list, shown to people: "" or "2 tools: a (inputSchema has
 * no type), b (description is not valid)". */
struct mo_definition_notes {
    size_t nmended, nleft_out;
    char mended[MO_DEFINITION_TEXT_MAX];
    char left_out[MO_DEFINITION_TEXT_MAX];
};

/* Returns items (an array) if all are right, else the mended list in b; none:
 * out of memory, or b is full. */
struct mo_json mo_definition_mend(enum mo_definition_kind kind,
                                  struct mo_json items, struct mo_buf *b,
                                  struct mo_definition_notes *notes);
/* Notes an item that the caller leaves out. */
void mo_definition_note_left_out(struct mo_definition_notes *notes,
                                 enum mo_definition_kind kind,
                                 struct mo_json item, const char *why);

/* True if validators compile this schema: known types, local $refs with a
 * target, keywords with values of their type, patterns that JavaScript knows
 * (definition_schema.c). */
bool mo_definition_schema_compiles(struct mo_json schema);

#endif
