/*
 * provider_keys.c - reports which model providers have a key, and its source.
 *
 * A reference is resolved to test that it works, and the value is wiped. */
#include "secrets/resolve.h"

#include "config/doc.h"
#include "config/reference.h"

#define KEY_MAX  ((size_t)16 * 1024)
#define FROM_MAX ((size_t)4096)

static const struct {
    const char *name, *variable;
    size_t off;
} providers[] = {
    {"claude", "ANTHROPIC_API_KEY", offsetof(struct mo_config_llm, claude)},
    {"gemini", "GEMINI_API_KEY", offsetof(struct mo_config_llm, gemini)},
    {"openai", "OPENAI_API_KEY", offsetof(struct mo_config_llm, openai)},
};

/* The source of a key: variable, or file and line; then the reference, with
 * literal parts masked. */
static void put_from(struct mo_jw *w, const struct mo_config *cfg,
                     const char *const *field)
{
    const struct mo_config_origin *o = mo_config_origin(cfg, field);
    mo_autobuf struct mo_buf b = {.max = FROM_MAX};

    if (o && o->name)
        mo_buf_puts(&b, o->name);
    if (o && o->line > 0)
        mo_buf_printf(&b, ":%u", o->line);
    if (mo_reference_any(mo_span_cstr(*field))) {
        mo_buf_puts(&b, b.len > 0 ? ", " : "");
        (void)mo_reference_mask(mo_span_cstr(*field), &b);
    }
    mo_jw_member_opt(w, "from", mo_buf_view(&b));
}

static void put_key(struct mo_jw *w, const struct mo_config *cfg,
                    const struct mo_config_api *api)
{
    mo_autowipe struct mo_buf value = {.max = KEY_MAX};
    struct mo_err e;
    int rc = mo_reference_resolve(cfg, api->api_key, &value, &e);

    mo_jw_member(w, "key", mo_span_cstr(rc < 0 ? "unreadable" : "set"));
    put_from(w, cfg, &api->api_key);
    if (rc < 0)
        mo_jw_member(w, "why", mo_span_cstr(e.msg));
}

static bool is_fixed(const struct mo_config *cfg, const void *field)
{
    const struct mo_config_origin *o = mo_config_origin(cfg, field);

    return o && o->layer > MO_LAYER_FILE;
}

static void put_fixed(struct mo_jw *w, const struct mo_config *cfg,
                      const struct mo_config_api *api)
{
    bool key = is_fixed(cfg, &api->api_key);
    bool url = is_fixed(cfg, &api->base_url);

    if (!key && !url)
        return;
    mo_jw_member_arr(w, "fixed");
    if (key)
        mo_jw_cstr(w, "key");
    if (url)
        mo_jw_cstr(w, "baseUrl");
    mo_jw_end(w);
}

void mo_key_states(const struct mo_config *cfg, bool addresses, struct mo_jw *w)
{
    mo_jw_member_arr(w, "providers");
    for (size_t i = 0; i < MO_COUNT(providers); i++) {
        const struct mo_config_api *api =
            (const void *)((const char *)&cfg->llm + providers[i].off);
        mo_autobuf struct mo_buf url = {.max = FROM_MAX};

        mo_jw_obj(w);
        mo_jw_member(w, "name", mo_span_cstr(providers[i].name));
        mo_jw_member(w, "variable", mo_span_cstr(providers[i].variable));
        if (api->api_key)
            put_key(w, cfg, api);
        else
            mo_jw_member(w, "key", MO_SPAN("none"));
        if (addresses && api->base_url)
            mo_config_put_url(&url, api->base_url);
        mo_jw_member_opt(w, "baseUrl", mo_buf_view(&url));
        put_fixed(w, cfg, api);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}
