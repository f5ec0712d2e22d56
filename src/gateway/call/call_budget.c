#include "gateway/call/call_budget.h"

#include "gateway/call/call_approval.h"

static struct mo_span server_of(const struct call_target *t)
{
    return mo_span_cstr(mo_upstream_server(t->slot->up)->name);
}

/* The target is looked up again: the lists may have changed meanwhile. */
static void on_begin(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct forwarded_call *f =
        mo_container_of(a, struct forwarded_call, budget);
    struct call_target t;

    if (no)
        mo_forward_over_budget(f, no);
    else if (mo_rewrite_target(f->g, f->down, &t) < 0 || t.slot != f->slot)
        mo_forward_restart(f);
    else if (mo_call_approval_begin(f, &t))
        mo_forward_go(f);
}

static bool ask_first(struct forwarded_call *f, const struct call_target *t)
{
    struct mo_ep_call *c = f->down;
    const struct mo_budget_who who = {.person = c->caller, .token = c->grant};
    const struct mo_budget_call call = {
        .who = c->inside.n ? NULL : &who,
        .view = mo_span_cstr(mo_gw_view_of(f->g, c)->name),
        .server = server_of(t),
    };
    enum mo_budget_answer yes;
    struct mo_budget_no no;

    if (c->counted || mo_rewrite_is_task_method(c))
        return true;
    c->counted = true;
    f->budget.done = on_begin;
    yes = mo_budget_call(f->g->o.budget, &call, &f->budget, &no);
    if (yes == MO_BUDGET_NO)
        mo_forward_over_budget(f, &no);
    return yes == MO_BUDGET_YES;
}

bool mo_call_budget_begin(struct forwarded_call *f, const struct call_target *t)
{
    f->counted = t->slot;
    return !mo_budget_limits_calls(f->g->o.budget) || ask_first(f, t);
}

static void on_again(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct forwarded_call *f =
        mo_container_of(a, struct forwarded_call, budget);

    if (!mo_forward_is_awaited(f))
        return;
    if (no)
        mo_forward_over_budget(f, no);
    else
        mo_forward_resend(f);
}

bool mo_call_budget_again(struct forwarded_call *f, const struct call_target *t)
{
    const struct mo_budget_call call = {.server = server_of(t)};
    enum mo_budget_answer yes;
    struct mo_budget_no no;

    if (f->counted == t->slot || !mo_budget_limits_calls(f->g->o.budget))
        return true;
    f->counted = t->slot;
    f->budget.done = on_again;
    yes = mo_budget_call(f->g->o.budget, &call, &f->budget, &no);
    if (yes == MO_BUDGET_NO)
        mo_forward_over_budget(f, &no);
    return yes == MO_BUDGET_YES;
}
