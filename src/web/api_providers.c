/* api_providers.c - /api/providers: the providers of models, their keys and
 * addresses, and the default model; see api.h. */
#include "codec/http/url.h"
#include "secrets/resolve.h"
#include "servers/manage.h"
#include "web/api_job.h"

#define NAME_MAX_BYTES ((size_t)128)
#define BODY_MAX       ((size_t)128 * 1024)

static bool is_fixed(const struct mo_config *cfg, const void *field)
{
    const struct mo_config_origin *o = mo_config_origin(cfg, field);

    return o && o->layer > MO_LAYER_FILE;
}

/* Addresses may be internal ones: only the operator sees them. */
static void get_providers(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    struct mo_api_job *j = mo_api_job(api, rq);
    const struct mo_config *cfg = api->config->now;
    bool is_operator = rq->role >= MO_ROLE_OPERATOR;
    struct mo_jw w;

    if (j == NULL)
        return;
    w = mo_jw_object(&j->out);
    mo_key_states(cfg, is_operator, &w);
    mo_jw_member_bool(&w, "editable",
                      is_operator && mo_manage_models_allowed(cfg));
    mo_jw_member_bool(&w, "modelFixed",
                      is_fixed(cfg, &cfg->llm.model) ||
                          is_fixed(cfg, &cfg->llm.provider));
    mo_jw_end(&w);
    mo_api_reply(j, "application/json");
}

static void on_changed(void *arg, struct mo_span json, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_EPOLICY, 403, "manage_off"},
        {MO_EEXISTS, 409, "environment"},
        {MO_EUNAVAIL, 422, "test_failed"},
        {MO_EPROTO, 400, "bad_request"},
        {MO_ETOOBIG, 400, "bad_request"},
        {MO_ECLOSED, 503, "closing"},
        {0, 0, NULL},
    };

    mo_api_answer(arg, json, why, rows);
}

static void change(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    struct mo_api_job *j = NULL;
    mo_autobuf struct mo_buf name = {.max = NAME_MAX_BYTES};
    struct mo_manage_ask c = {
        .verb = (enum mo_manage_verb)rq->arg,
        .body = body,
        .who = mo_span_cstr(mo_req_peer(rq)),
        .test = mo_api_says(rq, "test", "true"),
        .dry = mo_api_says(rq, "dryRun", "true"),
    };
    struct mo_err e = {0};

    if (!mo_api_has(rq, api->manage, "the models are not known yet"))
        return;
    j = mo_api_job(api, rq);
    if (j == NULL)
        return;
    if (c.verb != MO_MANAGE_SET_MODEL &&
        mo_pct_decode(&name, mo_req_segment(rq, 2), false) < 0) {
        mo_api_problem(j, 404, "not_found", "there is nothing here");
        return;
    }
    c.server = mo_buf_view(&name);
    if (mo_manage_change(api->manage, &c, on_changed, j, &e) < 0)
        on_changed(j, mo_span(NULL, 0), &e);
}

#define CHANGE(verb) .body = change, .max = BODY_MAX, .arg = (verb)

int mo_api_providers_routes(struct mo_site *s, struct mo_api *api)
{
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, "/api/providers", 0, get_providers},
        {MO_HTTP_PUT, "/api/providers/{name}", CHANGE(MO_MANAGE_SET_PROVIDER)},
        {MO_HTTP_DELETE, "/api/providers/{name}",
         CHANGE(MO_MANAGE_REMOVE_PROVIDER)},
        {MO_HTTP_PUT, "/api/models/default", CHANGE(MO_MANAGE_SET_MODEL)},
    };

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
