#include "gateway/router/unavailable_reason.h"

#include <stdio.h>

void mo_unavailable_set(struct unavailable_reason *v, const char *code,
                        const char *fmt, ...)
{
    va_list ap;

    v->code = code;
    va_start(ap, fmt);
    (void)vsnprintf(v->why, sizeof(v->why), fmt, ap);
    va_end(ap);
}

void mo_unavailable_server(const struct mo_gateway *g, unsigned server,
                           struct unavailable_reason *v)
{
    const struct mo_upstream *u = g->v[server]->up;
    struct mo_upstream_status s;

    mo_upstream_status(u, &s);
    if (s.state == MO_UPSTREAM_SIGN_IN)
        mo_unavailable_set(v, "sign-in",
                           "a person must sign in first, with: mcp test %s",
                           mo_upstream_server(u)->name);
    else if (s.state == MO_UPSTREAM_BROKEN)
        mo_unavailable_set(
            v, "circuit-open",
            "its server fails again and again; tried again in %llu s: %s",
            (unsigned long long)(s.retry_ms + 999) / 1000, s.why.msg);
}

void mo_unavailable_changed(const char *server, struct mo_span own,
                            struct unavailable_reason *v)
{
    mo_unavailable_set(v, UNAVAILABLE_CHANGED,
                       "its server changed it since it was first seen; it does "
                       "not run until a person accepts the change, on the page "
                       "at /approvals or with: approvals accept %.64s %.*s",
                       server, own.n < 128 ? (int)own.n : 128, own.p);
}

void mo_unavailable_tool(const struct mo_gateway *g,
                         const struct mo_cat_item *it,
                         struct unavailable_reason *v)
{
    const struct mo_approval_hooks *j = &g->o.judge;
    const char *server = mo_upstream_server(g->v[it->server]->up)->name;

    v->code = NULL;
    if (j->changed &&
        j->changed(j->ctx, mo_span_cstr(server), it->own, it->item))
        mo_unavailable_changed(server, it->own, v);
    else
        mo_unavailable_server(g, it->server, v);
}

void mo_unavailable_put(const struct unavailable_reason *v, struct mo_jw *w)
{
    if (!v->code)
        return;
    mo_jw_member_cstr(w, "reason", v->code);
    mo_jw_member_cstr(w, "why", v->why);
}
