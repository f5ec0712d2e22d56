/* names.h - tools as a script names them. Pure functions.
 *
 * A script calls a tool as tools.IDENTIFIER() or tools.SERVER.IDENTIFIER(). An
 * identifier is valid in Python and in JavaScript, and is no name that the
 * libraries in data/script have themselves. Two tools may have one identifier:
 * then both are called by their exact name only, tools.call("NAME"). */
#ifndef MO_MCP_SCRIPT_NAMES_H
#define MO_MCP_SCRIPT_NAMES_H

#include "base/str.h"

#define MO_SCRIPT_ID_MAX 128 /* with its NUL */

/* Other characters become '_'. "": the name has no identifier, because it is
 * empty or too long. */
void mo_script_identifier(struct mo_span name, char out[MO_SCRIPT_ID_MAX]);

/* True for a word that Python reserves. */
bool mo_script_is_keyword(struct mo_span word);

/* True if the code contains the name or its identifier as a whole word. A '_'
 * of the identifier may be a '.' there: tools.server.tool. It may be wrong
 * about words in comments and texts. */
bool mo_script_mentions(struct mo_span code, struct mo_span name);

#endif
