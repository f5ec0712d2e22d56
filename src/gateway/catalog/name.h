/* name.h - exposed names and URIs of what servers offer. Pure functions.
 *
 * A tool or prompt keeps its name if the prefix rule allows it and no other
 * has it; otherwise it becomes PREFIX_NAME. Names consist of [A-Za-z0-9_-] and
 * have at most MO_GW_NAME_MAX - 1 bytes. In any other name, other characters
 * become '_' and a short hash of the original names is appended, always the
 * same one.
 *
 * A resource keeps its URI, or gets its server's label in front of the scheme:
 * files+file:///a (RFC 3986 allows '+' in a scheme). The label is the server's
 * name in lower case, since URI parsers change the case of a scheme. A name
 * that is no valid label gets '-' for other characters and a short hash. A
 * ui:// URI stays one, since clients take no other for an app:
 * ui://files/+ui://a. */
#ifndef MO_GATEWAY_CATALOG_NAME_H
#define MO_GATEWAY_CATALOG_NAME_H

#include "base/str.h"
#include "config/choices.h"

#define MO_GW_NAME_MAX     65   /* exposed tool or prompt name, with its NUL */
#define MO_GW_LABEL_MAX    40   /* server label in a scheme, with its NUL */
#define MO_GW_TEMPLATE_MAX 1024 /* bytes of a template that can be matched */
#define MO_GW_URI_MAX      8192 /* and of a URI */

/* prefixed: put the prefix in front. taken: append the hash, since another
 * item has this name already. */
void mo_gw_name(struct mo_span prefix, struct mo_span name, bool prefixed,
                bool taken, char out[MO_GW_NAME_MAX]);
/* The same for another buffer size (with the NUL; at least 8). */
void mo_gw_name_in(struct mo_span prefix, struct mo_span name, bool prefixed,
                   bool taken, char *out, size_t size);

/* The server's label in front of a scheme. */
void mo_gw_label(struct mo_span server, char out[MO_GW_LABEL_MAX]);
/* Appends the prefixed form of a URI or URI template. MO_ETOOBIG: the buffer
 * is full. */
int mo_gw_uri(const char *label, struct mo_span uri, struct mo_buf *out);
/* Splits a prefixed URI into *server (the label) and *uri. False: it has no
 * prefix. Does not check that there is such a server. */
bool mo_gw_uri_split(struct mo_span exposed, struct mo_span *server,
                     struct mo_span *uri);

/* True if a URI can result from a template (RFC 6570). Every variable except
 * those of a query must have a value. False if either is too long. */
bool mo_gw_template_match(struct mo_span template, struct mo_span uri);

#endif
