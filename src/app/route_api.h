/* route_api.h - the router of the running gateway, as the web asks for it.
 *
 * Joins the gateway, which finds, with the desk, which knows what people saw
 * of a tool first. Both are borrowed as long as the API lives. */
#ifndef MO_APP_ROUTE_API_H
#define MO_APP_ROUTE_API_H

#include "servers/gateway_setup.h"
#include "web/api_route.h"

struct mo_router {
    struct mo_gateway_setup *hub;
    struct mo_approvals *desk;
};

struct mo_api_route mo_router_api(struct mo_router *r);

#endif
