#include "web/resource.h"

#include "codec/json/json.h"

static void put_issuers(struct mo_jw *w, const struct mo_config_providers *all)
{
    mo_jw_member_arr(w, "authorization_servers");
    for (size_t i = 0; i < all->n; i++)
        mo_jw_cstr(w, all->v[i].issuer);
    mo_jw_end(w);
}

/* The scopes that the first provider needs; each provider has its own. */
static void put_scopes(struct mo_jw *w, const struct mo_config_list *scopes)
{
    if (scopes->n == 0)
        return;
    mo_jw_member_arr(w, "scopes_supported");
    for (size_t i = 0; i < scopes->n; i++)
        mo_jw_cstr(w, scopes->v[i]);
    mo_jw_end(w);
}

/* Tokens may be bound to a key (people/proof.h). */
static void put_algorithms(struct mo_jw *w)
{
    struct mo_span all = MO_SPAN(MO_PROOF_ALGS);

    mo_jw_member_arr(w, "dpop_signing_alg_values_supported");
    while (all.n)
        mo_jw_str(w, mo_span_cut(&all, ' '));
    mo_jw_end(w);
}

/* For `mcp-orchestrator login`: a member of our own, which others ignore. */
static void put_providers(struct mo_jw *w,
                          const struct mo_config_providers *all)
{
    mo_jw_member_arr(w, MO_PEOPLE_PROVIDERS);
    for (size_t i = 0; i < all->n; i++) {
        const struct mo_config_provider *p = &all->v[i];

        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", p->name);
        mo_jw_member_cstr(w, "title", p->title ? p->title : p->name);
        mo_jw_member_cstr(w, "issuer", p->issuer);
        if (p->terminal_client)
            mo_jw_member_cstr(w, "client_id", p->terminal_client);
        put_scopes(w, &p->needs_scopes);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void on_resource(void *ctx, struct mo_req *rq)
{
    const struct mo_people *people = mo_site_gate_now(ctx)->people;
    mo_autobuf struct mo_buf b = {.max = 65536};
    const struct mo_config_providers *all;
    struct mo_jw w;

    if (!people || !mo_people_has_providers(people)) {
        mo_req_problem(rq, 404, "not_found",
                       "this server has no provider for signing in; clients "
                       "use a token");
        return;
    }
    all = &mo_people_config(people)->people.providers;
    w = mo_jw_object(&b);
    mo_jw_member_cstr(&w, "resource", mo_people_resource(people));
    put_issuers(&w, all);
    put_scopes(&w, &all->v[0].needs_scopes);
    mo_jw_member_arr(&w, "bearer_methods_supported");
    mo_jw_cstr(&w, "header");
    mo_jw_end(&w);
    put_algorithms(&w);
    mo_jw_member_cstr(&w, "resource_name", "MCP Orchestrator");
    put_providers(&w, all);
    mo_jw_end(&w);
    mo_req_header(rq, "Access-Control-Allow-Origin", MO_SPAN("*"));
    mo_req_reply(rq, 200, "application/json", mo_buf_view(&b));
}

void mo_resource_routes(struct mo_site *s)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, MO_RESOURCE_ROOT, 0, on_resource},
        {MO_HTTP_GET, MO_RESOURCE_PATH, 0, on_resource},
    };

    (void)mo_site_add(s, routes, MO_COUNT(routes), s);
}
