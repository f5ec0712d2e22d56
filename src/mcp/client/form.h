/* form.h - the content of an answer to a form elicitation.
 *
 * The server sends a flat schema, each member with a default perhaps; what a
 * person left alone is answered with the default. Nothing is validated here:
 * the schema's own room does that. */
#ifndef MO_MCP_CLIENT_FORM_H
#define MO_MCP_CLIENT_FORM_H

#include "codec/json/json.h"

/* Append {"action":"accept","content":{...}}: the members of content (object
 * or none) as they are, then the defaults of those that are not in it. */
int mo_form_accept(struct mo_buf *b, struct mo_json schema,
                   struct mo_json content);

#endif
