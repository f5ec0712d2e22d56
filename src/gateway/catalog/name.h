/* name.h - names that clients can use for what many servers offer. Pure.
 *
 * A tool or prompt keeps its own name if it may (prefix rule, no other has
 * it), else it is PREFIX_NAME. Only [A-Za-z0-9_-], at most MO_GW_NAME_MAX - 1
 * bytes: what is not becomes so by '_' and a short hash of the true names,
 * always the same one.
 *
 * A resource keeps its URI, or gets its server's name in front of the scheme:
 * files+file:///a (RFC 3986 allows a '+' in a scheme). There the name is in
 * small letters, since readers of URIs change the case of a scheme; a name
 * that cannot stand there is made to by '-' and a short hash. */
#ifndef MO_GATEWAY_CATALOG_NAME_H
#define MO_GATEWAY_CATALOG_NAME_H

#include "gateway/gateway.h"

#define MO_GW_LABEL_MAX    40   /* a server's name in a scheme, with its NUL */
#define MO_GW_TEMPLATE_MAX 1024 /* bytes of a template that can be matched */
#define MO_GW_URI_MAX      8192 /* and of a URI */

/* prefixed: put the prefix in front; taken: somebody has that name already. */
void mo_gw_name(struct mo_span prefix, struct mo_span name, bool prefixed,
                bool taken, char out[MO_GW_NAME_MAX]);
/* The same for whoever has another size (with the NUL; 8 at least). */
void mo_gw_name_in(struct mo_span prefix, struct mo_span name, bool prefixed,
                   bool taken, char *out, size_t size);

/* How a server is called in front of a scheme. */
void mo_gw_label(struct mo_span server, char out[MO_GW_LABEL_MAX]);
/* The exposed form of a URI or URI template; MO_ETOOBIG by the buffer. */
int mo_gw_uri(struct mo_span server, struct mo_span uri, struct mo_buf *out);
/* The same for who knows the server's label. */
int mo_gw_label_uri(const char *label, struct mo_span uri, struct mo_buf *out);
/* Has it the form of one of ours? Then *server (its label) and *uri are its
 * parts; whether there is such a server is for the caller to see. */
bool mo_gw_uri_split(struct mo_span exposed, struct mo_span *server,
                     struct mo_span *uri);

/* Could a URI come from a template (RFC 6570)? Every variable is taken to have
 * a value, except those of a query. False for what is too long. */
bool mo_gw_template_match(struct mo_span template, struct mo_span uri);

/* The first digits of the SHA-256 of both names with a NUL between. */
#define MO_GW_HASH_LEN 6

void mo_gw_hash(struct mo_span a, struct mo_span b,
                char out[MO_GW_HASH_LEN + 1]);

#endif
