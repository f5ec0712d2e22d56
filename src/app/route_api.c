#include "app/route_api.h"

#include "audit/audit.h"
#include "gateway/inside.h"
#include "policy/approvals.h"

static int find_tools(void *ctx, const struct mo_api_route_ask *a,
                      struct mo_buf *out)
{
    const struct mo_router *r = ctx;
    const struct mo_gw_find f = {.words = a->words,
                                 .limit = a->limit,
                                 .threshold = a->threshold,
                                 .changed = mo_policy_item_changed,
                                 .ctx = mo_approvals_policy(r->approvals)};
    int rc = mo_gateway_find(mo_gateway_setup_gateway(r->gateway), &f, out);
    const struct mo_audit_lookup lookup = {
        .via = "/api/route",
        .who = mo_span_cstr(a->who),
        .words = a->words,
        .answer = mo_buf_view(out),
    };

    if (rc == 0)
        mo_audit_lookup(mo_approvals_audit(r->approvals), &lookup);
    return rc;
}

static bool teach_choice(void *ctx, const struct mo_api_lesson *l)
{
    const struct mo_router *r = ctx;
    const struct mo_gw_lesson x = {.words = l->words,
                                   .server = l->server,
                                   .tool = l->tool,
                                   .right = l->right};

    return mo_gateway_teach(mo_gateway_setup_gateway(r->gateway), &x);
}

static void forget_choices(void *ctx)
{
    mo_gateway_forget_learning(
        mo_gateway_setup_gateway(((struct mo_router *)ctx)->gateway));
}

struct mo_api_route mo_router_api(struct mo_router *r)
{
    return (struct mo_api_route){find_tools, teach_choice, forget_choices, r};
}
