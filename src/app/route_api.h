/* route_api.h - the router of the running gateway, for the web API.
 *
 * Combines the gateway, which finds tools, with the approvals, which know the
 * pinned tool definitions. Both are borrowed while the API is in use. */
#ifndef MO_APP_ROUTE_API_H
#define MO_APP_ROUTE_API_H

#include "servers/gateway_setup.h"
#include "web/api_route.h"

struct mo_router {
    struct mo_gateway_setup *gateway;
    struct mo_approvals *approvals;
};

struct mo_api_route mo_router_api(struct mo_router *r);

#endif
