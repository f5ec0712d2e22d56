/* manage_provider.c - changes the providers of models in the configuration
 * file: key, address and the default model; see manage_priv.h.
 *
 * A key goes into the secret store as llm.PROVIDER, the next one as
 * llm.PROVIDER.2, and so on in turn: the file changes with each key, so every
 * process that reads it takes the new one, and the old key is there until then.
 *
 * A key is bound to the address it was given for: another host gets it only if
 * the request has the key again. Values of flags and of the environment have
 * precedence over the file, so they cannot be changed here (MO_EEXISTS). */
#include <stdio.h>

#include "codec/http/url.h"
#include "config/doc.h"
#include "secrets/key.h"
#include "secrets/secrets.h"
#include "servers/manage_priv.h"

#define SECRET_NAME 32 /* bytes of "llm.PROVIDER.2" */

static const struct {
    const char *name;
    size_t off;
    int kind;
} providers[] = {
    {"claude", offsetof(struct mo_config_llm, claude), MO_LLM_CLAUDE},
    {"gemini", offsetof(struct mo_config_llm, gemini), MO_LLM_GEMINI},
    {"openai", offsetof(struct mo_config_llm, openai), MO_LLM_OPENAI},
};

static int index_of(const char *name)
{
    for (size_t i = 0; i < MO_COUNT(providers); i++)
        if (name && strcmp(providers[i].name, name) == 0)
            return (int)i;
    return -1;
}

static const struct mo_config_api *api_of(const struct mo_config *cfg, int at)
{
    return (const void *)((const char *)&cfg->llm + providers[at].off);
}

bool mo_manage_models_allowed(const struct mo_config *c)
{
    if (mo_config_origin(c, &c->llm.editable))
        return c->llm.editable;
    return !mo_config_origin(c, &c->server.manage) || c->server.manage;
}

/* --- the request ---------------------------------------------------------- */

static int read_member(struct job *j, struct mo_json body, const char *name,
                       bool *given, struct mo_span *text, struct mo_err *e)
{
    struct mo_json v = mo_json_get(body, name);

    *given = v.p != NULL;
    *text = mo_span(NULL, 0);
    if (v.p == NULL || mo_json_is(v, MO_JSON_NULL))
        return 0;
    if (!mo_json_is(v, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "'%s' is a text or null", name);
    return mo_json_str(v, &j->a, text) < 0
               ? mo_fail(e, MO_ENOMEM, "out of memory")
               : 0;
}

int mo_manage_provider_read(struct job *j, struct mo_json body,
                            struct mo_err *e)
{
    struct provider_edit *p = &j->provider;
    int rc = 0;

    if (j->verb == MO_MANAGE_SET_MODEL) {
        j->test = false;
        rc = read_member(j, body, "provider", &p->has_name, &p->name, e);
        if (rc == 0)
            rc = read_member(j, body, "model", &p->has_model, &p->model, e);
        if (rc == 0 && !p->has_model)
            rc = mo_fail(e, MO_EINVAL,
                         "the body is {provider?, model}; model is null for "
                         "the usual one");
        return rc;
    }
    if (index_of(j->server) < 0)
        return mo_fail(e, MO_ENOTFOUND,
                       "there is no such provider; claude, gemini and openai "
                       "(also for compatible servers) can be set");
    if (j->verb == MO_MANAGE_REMOVE_PROVIDER)
        return 0;
    j->described = body;
    rc = read_member(j, body, "key", &p->has_key, &p->key, e);
    if (rc == 0)
        rc = read_member(j, body, "baseUrl", &p->has_url, &p->url, e);
    return rc;
}

void mo_manage_provider_describe(const struct job *j, struct mo_jw *w)
{
    const struct provider_edit *p = &j->provider;
    mo_autobuf struct mo_buf plain = {.max = MO_URL_MAX + 1};
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX + 1};

    mo_jw_obj(w);
    if (j->verb == MO_MANAGE_SET_PROVIDER)
        mo_jw_member_cstr(w, "key",
                          !p->has_key ? "kept"
                          : p->key.n  ? "set"
                                      : "removed");
    if (p->has_url && mo_buf_span(&plain, p->url) == 0)
        mo_config_put_url(&url, mo_buf_cstr(&plain));
    if (p->has_url)
        mo_jw_member(w, "baseUrl", mo_buf_view(&url));
    if (p->has_name)
        mo_jw_member(w, "provider", p->name);
    if (p->has_model)
        mo_jw_member(w, "model", p->model);
    mo_jw_end(w);
}

/* --- checks --------------------------------------------------------------- */

static int check_origin(const struct mo_config *cfg, const void *field,
                        const char *what, struct mo_err *e)
{
    const struct mo_config_origin *o = mo_config_origin(cfg, field);

    if (o == NULL || o->layer <= MO_LAYER_FILE)
        return 0;
    return mo_fail(e, MO_EEXISTS,
                   "%s is set by the environment (%s), which has precedence: "
                   "change it there",
                   what, o->name ? o->name : "a flag");
}

/* The same scheme, host and port. NULL, or empty: the provider's own. */
static bool is_same_place(const char *old, struct mo_span url)
{
    struct mo_url a, b;

    if (old == NULL || url.n == 0)
        return old == NULL && url.n == 0;
    return mo_span_eq(mo_span_cstr(old), url) ||
           (mo_url_parse(mo_span_cstr(old), &a, NULL) == 0 &&
            mo_url_parse(url, &b, NULL) == 0 && mo_origin_eq(&a, &b));
}

static int check_key_place(const struct job *j, const struct mo_config_api *api,
                           struct mo_err *e)
{
    const struct provider_edit *p = &j->provider;

    if (!p->has_url || p->has_key || api->api_key == NULL ||
        is_same_place(api->base_url, p->url))
        return 0;
    if (check_origin(j->m->o.config->now, &api->api_key, "the key", e) < 0)
        return mo_fail(e, MO_EEXISTS,
                       "the key is set by the environment and would be sent to "
                       "the new address: change both there");
    return mo_fail(e, MO_EINVAL,
                   "the stored key belongs to the present address and is not "
                   "sent to another one: enter the key again");
}

/* --- edits ---------------------------------------------------------------- */

static int set_text(struct mo_file_edit *r, const char *const *path,
                    struct mo_span text, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_ENTRY_JSON_MAX};
    int rc = 0;

    if (text.n)
        mo_json_quote(&b, text);
    if (mo_buf_err(&b))
        return mo_fail(e, MO_EINVAL, "the text is too long");
    rc = mo_file_edit_set(r, path, mo_buf_view(&b), e);
    if (rc == MO_ENOTFOUND && text.n == 0) {
        mo_err_clear(e);
        rc = 0;
    }
    return rc;
}

/* Chooses the name of the secret, once, and finds the one that it replaces. */
static int name_secret(struct job *j, const struct mo_file_edit *r,
                       struct mo_err *e)
{
    struct provider_edit *p = &j->provider;
    struct mo_json_doc doc = {.bad_at = 0};
    struct mo_json v;
    char name[2][SECRET_NAME], ref[SECRET_NAME + 16];

    if (p->named)
        return 0;
    (void)snprintf(name[0], sizeof(name[0]), "llm.%.16s", j->server);
    (void)snprintf(name[1], sizeof(name[1]), "llm.%.16s.2", j->server);
    (void)mo_json_parse(mo_buf_view(&r->text), 0, &doc, NULL);
    v = mo_json_get(mo_json_get(mo_json_get(doc.root, "llm"), j->server),
                    "apiKey");
    p->secret = mo_arena_strndup(&j->a, name[0], strlen(name[0]));
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(ref, sizeof(ref), "${secret:%.31s}", name[i]);
        if (!mo_json_str_eq(v, mo_span_cstr(ref)))
            continue;
        p->old = mo_arena_strndup(&j->a, name[i], strlen(name[i]));
        p->secret = mo_arena_strndup(&j->a, name[1 - i], strlen(name[1 - i]));
    }
    p->named = true;
    return p->secret ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");
}

static int take_key(struct job *j, struct mo_err *e)
{
    struct provider_edit *p = &j->provider;
    struct mo_entry_secret *s = mo_arena_new(&j->a, struct mo_entry_secret);
    const char *wrong = mo_secret_value_wrong(p->key);

    if (wrong)
        return mo_fail(e, MO_EINVAL, "the key %s", wrong);
    if (s == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    s->name = mo_span_cstr(p->secret);
    s->value = mo_arena_strndup(&j->a, p->key.p, p->key.n);
    s->n = p->key.n;
    if (s->value == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    (void)mo_loop_secret(j->m->o.loop, p->key);
    s->next = j->entry.secrets;
    j->entry.secrets = s;
    return 0;
}

static int set_key(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const char *path[] = {"llm", j->server, "apiKey", NULL};
    char ref[SECRET_NAME + 16] = "";
    int rc = name_secret(j, r, e);

    if (rc == 0 && j->provider.key.n) {
        rc = take_key(j, e);
        (void)snprintf(ref, sizeof(ref), "${secret:%.31s}", j->provider.secret);
    }
    return rc == 0 ? set_text(r, path, mo_span_cstr(ref), e) : rc;
}

static int apply_set(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const struct mo_config *cfg = j->m->o.config->now;
    const struct mo_config_api *api = api_of(cfg, index_of(j->server));
    const struct provider_edit *p = &j->provider;
    const char *path[] = {"llm", j->server, "baseUrl", NULL};
    int rc = check_key_place(j, api, e);

    if (rc == 0 && p->has_key)
        rc = check_origin(cfg, &api->api_key, "the key", e);
    if (rc == 0 && p->has_url && !is_same_place(api->base_url, p->url))
        rc = check_origin(cfg, &api->base_url, "the base URL", e);
    if (rc == 0 && p->has_key)
        rc = set_key(j, r, e);
    if (rc == 0 && p->has_url)
        rc = set_text(r, path, p->url, e);
    return rc;
}

/* Removes key and address, and the default if it is of this provider. */
static int apply_remove(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const struct mo_config *cfg = j->m->o.config->now;
    int at = index_of(j->server);
    const struct mo_config_api *api = api_of(cfg, at);
    const char *url[] = {"llm", j->server, "baseUrl", NULL};
    const char *name[] = {"llm", "provider", NULL};
    const char *model[] = {"llm", "model", NULL};
    struct mo_span none = {NULL, 0};
    int rc = check_origin(cfg, &api->api_key, "the key", e);

    if (rc == 0)
        rc = check_origin(cfg, &api->base_url, "the base URL", e);
    if (rc == 0)
        rc = set_key(j, r, e);
    if (rc == 0)
        rc = set_text(r, url, none, e);
    if (rc == 0 && cfg->llm.provider == providers[at].kind) {
        rc = set_text(r, name, none, e);
        if (rc == 0)
            rc = set_text(r, model, none, e);
    }
    return rc;
}

static int apply_model(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    const struct mo_config *cfg = j->m->o.config->now;
    const struct provider_edit *p = &j->provider;
    const char *name[] = {"llm", "provider", NULL};
    const char *model[] = {"llm", "model", NULL};
    int rc = check_origin(cfg, &cfg->llm.model, "the default model", e);

    if (rc == 0 && p->has_name)
        rc = check_origin(cfg, &cfg->llm.provider, "the default provider", e);
    if (rc == 0 && p->has_name)
        rc = set_text(r, name, p->name, e);
    return rc == 0 ? set_text(r, model, p->model, e) : rc;
}

int mo_manage_provider_apply(struct job *j, struct mo_file_edit *r,
                             struct mo_err *e)
{
    if (j->verb == MO_MANAGE_SET_MODEL)
        return apply_model(j, r, e);
    return j->verb == MO_MANAGE_SET_PROVIDER ? apply_set(j, r, e)
                                             : apply_remove(j, r, e);
}

void mo_manage_provider_saved(struct job *j)
{
    struct mo_secrets *store = NULL;
    struct mo_err e;
    int rc = 0;

    if (j->provider.old == NULL)
        return;
    rc = mo_secrets_for(j->m->o.config->now, true, &store, &e);
    if (rc == 0)
        rc = mo_secrets_drop(store, mo_span_cstr(j->provider.old), &e);
    mo_secrets_close(store);
    if (rc < 0 && rc != MO_ENOTFOUND)
        mo_log_err(mo_loop_log(j->m->o.loop), MO_WARN, "manage", &e,
                   "%s: cannot remove the old key", j->server);
}

/* --- test ----------------------------------------------------------------- */

static void on_models(void *arg, struct mo_span json, const struct mo_err *why)
{
    struct job *j = arg;

    j->asking = NULL;
    if (why)
        j->failed = *why;
    (void)mo_buf_span(&j->report, json);
    mo_manage_tested(j);
}

int mo_manage_provider_test(struct job *j, const struct mo_config *cfg,
                            struct mo_err *e)
{
    const struct mo_manage_models *m = &j->m->o.models;

    if (m->ask == NULL)
        return mo_fail(e, MO_EUNAVAIL, "there are no models here");
    return m->ask(m->ctx, cfg, j->server, on_models, j, &j->asking, e);
}

void mo_manage_provider_wipe(struct job *j)
{
    struct provider_edit *p = &j->provider;

    if (p->key.n)
        explicit_bzero((char *)(uintptr_t)p->key.p, p->key.n);
}
