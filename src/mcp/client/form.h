/* form.h - write the answer to a form elicitation.
 *
 * The server sends a flat schema whose members may have defaults. Members that
 * the person left out get their default. Nothing is validated here; jschema.h
 * does that. */
#ifndef MO_MCP_CLIENT_FORM_H
#define MO_MCP_CLIENT_FORM_H

#include "codec/json/json.h"

/* Append {"action":"accept","content":{...}}: the members of content (object or
 * none) unchanged, then the defaults of the missing ones. Returns 0, MO_ENOMEM
 * or the buffer's error. */
int mo_form_accept(struct mo_buf *b, struct mo_json schema,
                   struct mo_json content);

#endif
