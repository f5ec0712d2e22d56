/* resource.h - tells clients of /mcp where to sign in (RFC 9728).
 *
 * The document names the address of /mcp and the configured providers. It never
 * repeats anything of the request. Without a provider there is none: 404. */
#ifndef MO_WEB_RESOURCE_H
#define MO_WEB_RESOURCE_H

#include "web/site.h"

#define MO_RESOURCE_ROOT "/.well-known/oauth-protected-resource"
#define MO_RESOURCE_PATH MO_RESOURCE_ROOT "/mcp"

void mo_resource_routes(struct mo_site *s);

#endif
