/* name.h - names that clients can use for what many servers offer. Pure.
 *
 * A tool or prompt keeps its own name if it may (prefix rule, no other has
 * it), else it is PREFIX_NAME. Only [A-Za-z0-9_-], at most MO_GW_NAME_MAX - 1
 * bytes: what is not becomes so by '_' and a short hash of the true names,
 * always the same one.
 *
 * A resource keeps its URI, or gets its server's name in front of the scheme:
 * files+file:///a (RFC 3986 allows a '+' in a scheme). */
#ifndef MO_GATEWAY_NAME_H
#define MO_GATEWAY_NAME_H

#include "gateway/gateway.h"

/* prefixed: put the prefix in front; taken: somebody has that name already. */
void mo_gw_name(struct mo_span prefix, struct mo_span name, bool prefixed,
                bool taken, char out[MO_GW_NAME_MAX]);
/* The exposed form of a URI or URI template; MO_ETOOBIG by the buffer. */
int mo_gw_uri(struct mo_span server, struct mo_span uri, struct mo_buf *out);
/* Is it one of ours? Then *server and *uri are its parts. */
bool mo_gw_uri_split(struct mo_span exposed, struct mo_span *server,
                     struct mo_span *uri);

/* Does a URI fit a template (RFC 6570, simple and reserved expansion)? */
bool mo_gw_template_fits(struct mo_span template, struct mo_span uri);

#endif
