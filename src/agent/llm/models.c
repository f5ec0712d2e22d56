/* models.c - see models.h. */
#include "agent/llm/models.h"

#include <stdio.h>

#include "base/list.h"
#include "codec/json/json.h"
#include "secrets/resolve.h"

#define KEY_MAX   ((size_t)16 * 1024)
#define LIST_MAX  ((size_t)4 * 1024 * 1024)
#define LABEL_MAX 32
#define URL_MAX   256
#define ID_MAX    512 /* of a model */
#define KEYED     3   /* providers that take a key */
#define SOURCES   (KEYED + MO_LLM_LOCAL_MAX)

static const enum mo_llm_kind keyed[KEYED] = {MO_LLM_CLAUDE, MO_LLM_GEMINI,
                                              MO_LLM_OPENAI};

/* A server that speaks OpenAI's protocol. It stays in its place: its flag is
 * lent to every mo_llm of it. */
struct server {
    char name[LABEL_MAX]; /* of one on this machine */
    char url[URL_MAX];
    bool there;         /* was found in the last round */
    bool new_limit;     /* see mo_llm_opts */
    char first[ID_MAX]; /* of its models; empty: unknown */
    char why[240];      /* and why */
};

struct source { /* one provider in the present round */
    struct mo_models *m;
    struct mo_llm *llm;
    struct server *server; /* or NULL */
    char name[LABEL_MAX];
    bool usual, waiting, ok;
    size_t count;
    char why[240];
    struct mo_buf models; /* elements of the array, comma-joined */
};

struct waiter {
    struct mo_list node;
    mo_models_fn *done;
    void (*ready)(void *arg); /* instead: of mo_models_prepare() */
    void *arg;
};

struct mo_models {
    struct mo_loop *loop;
    struct mo_httpc *http;
    const struct mo_config *cfg;
    struct source sources[SOURCES];
    size_t n;
    unsigned waiting; /* open sources, and the probe of this machine */
    bool busy;
    bool stale; /* the list is of an older configuration */
    struct mo_list waiters;
    struct mo_buf list;
    uint64_t made;        /* ns; 0: never */
    struct server openai; /* at llm.openai.baseUrl */
    struct server locals[MO_LLM_LOCAL_MAX];
    size_t nlocals;
    struct mo_later later;
};

/* --- providers of the configuration -------------------------------------- */

static const struct mo_config_api *api_of(const struct mo_config *cfg,
                                          enum mo_llm_kind k)
{
    if (k == MO_LLM_CLAUDE)
        return &cfg->llm.claude;
    if (k == MO_LLM_GEMINI)
        return &cfg->llm.gemini;
    return k == MO_LLM_DEMO ? NULL : &cfg->llm.openai;
}

static enum mo_llm_kind default_kind(const struct mo_config *cfg)
{
    if (cfg->llm.provider != MO_LLM_AUTO)
        return (enum mo_llm_kind)cfg->llm.provider;
    for (size_t i = 0; i < KEYED; i++) {
        const struct mo_config_api *api = api_of(cfg, keyed[i]);

        if (api && api->api_key)
            return keyed[i];
    }
    /* A model server of one's own needs no key. */
    return cfg->llm.openai.base_url ? MO_LLM_OPENAI : MO_LLM_DEMO;
}

/* OpenAI's protocol at another address is a compatible server. */
static enum mo_llm_kind true_kind(const struct mo_config *cfg,
                                  enum mo_llm_kind k)
{
    const char *url = k == MO_LLM_OPENAI ? cfg->llm.openai.base_url : NULL;

    if (url && strstr(url, "api.openai.com") == NULL)
        return MO_LLM_COMPATIBLE;
    return k;
}

static bool is_local(const struct mo_models *m, const struct server *s)
{
    return s && s != &m->openai;
}

static int make_llm(struct mo_models *m, const struct mo_config *cfg,
                    enum mo_llm_kind kind, struct server *server,
                    struct mo_span key, struct mo_llm **out, struct mo_err *e)
{
    const struct mo_config_api *api =
        is_local(m, server) ? NULL : api_of(cfg, kind);
    struct mo_llm_opts o = {
        .kind = kind,
        .base_url = is_local(m, server) ? server->url
                    : api               ? api->base_url
                                        : NULL,
        .key = key,
        .new_limit = server ? &server->new_limit : NULL,
    };
    mo_autowipe struct mo_buf ours = {.max = KEY_MAX};
    int rc = 0;

    MO_BUG_ON(cfg == NULL);
    o.max_output = (unsigned)cfg->llm.max_output_tokens;
    o.total_ms = (unsigned)cfg->llm.timeout_ms;
    if (key.n == 0 && api && api->api_key) {
        rc = mo_reference_resolve(cfg, api->api_key, &ours, e);
        o.key = mo_buf_view(&ours);
        (void)mo_loop_secret(m->loop, o.key);
    }
    if (rc < 0)
        return rc;
    *out = mo_llm_new(m->loop, m->http, &o, e);
    return *out ? 0 : e->code;
}

/* --- picking one --------------------------------------------------------- */

struct choice {
    enum mo_llm_kind kind;
    struct server *server; /* of MO_LLM_COMPATIBLE */
    const char *prefix;    /* of its id in the list; NULL: none */
    struct mo_span model;  /* empty: the usual one */
};

static struct server *local_named(struct mo_models *m, struct mo_span name)
{
    for (size_t i = 0; i < m->nlocals; i++)
        if (m->locals[i].there &&
            mo_span_ieq(name, mo_span_cstr(m->locals[i].name)))
            return &m->locals[i];
    return NULL;
}

static struct choice choose_named(struct mo_models *m, struct mo_span wanted)
{
    struct choice c = {.kind = default_kind(m->cfg), .model = wanted};
    ptrdiff_t colon = mo_span_find(wanted, ':');
    struct mo_span head =
        colon < 0 ? wanted : mo_span_head(wanted, (size_t)colon);
    struct server *local = local_named(m, head);

    if (wanted.n == 0) {
        c.model = mo_span_cstr(m->cfg->llm.model);
    } else if (local || mo_llm_kind(head) >= 0) {
        c.kind =
            local ? MO_LLM_COMPATIBLE : (enum mo_llm_kind)mo_llm_kind(head);
        c.server = local;
        c.model = colon < 0 ? mo_span(NULL, 0)
                            : mo_span_skip(wanted, (size_t)colon + 1);
    }
    if (local)
        c.prefix = local->name;
    else if (c.kind != default_kind(m->cfg))
        c.prefix = mo_llm_kind_name(c.kind);
    c.kind = true_kind(m->cfg, c.kind);
    if (c.kind == MO_LLM_COMPATIBLE && c.server == NULL)
        c.server = &m->openai;
    return c;
}

static struct mo_span head_of(struct mo_span id)
{
    ptrdiff_t colon = mo_span_find(id, ':');

    return colon < 0 ? mo_span(NULL, 0) : mo_span_head(id, (size_t)colon);
}

/* llm.model, if it is a model on this machine ("Ollama:ID"); else empty. */
static struct mo_span local_default(const struct mo_models *m)
{
    struct mo_span id = mo_span_cstr(m->cfg->llm.model);

    return mo_llm_is_local(head_of(id)) ? id : mo_span(NULL, 0);
}

static struct choice choose_model(struct mo_models *m, struct mo_span wanted)
{
    if (wanted.n == 0)
        wanted = local_default(m);
    return choose_named(m, wanted);
}

static const char *default_model(const struct choice *c)
{
    if (c->kind != MO_LLM_COMPATIBLE)
        return mo_llm_default_model(c->kind);
    return c->server->first[0] ? c->server->first : NULL;
}

int mo_models_pick(struct mo_models *m, struct mo_span wanted,
                   struct mo_span key, struct mo_model *out, struct mo_err *e)
{
    struct choice what = choose_model(m, wanted);
    const char *first = default_model(&what);
    struct mo_span here = wanted.n ? mo_span(NULL, 0) : local_default(m);

    if (here.n && !is_local(m, what.server))
        return mo_fail(e, MO_EUNAVAIL,
                       "%.*s, which has the default model, does not answer on "
                       "this machine: start it, or choose another model",
                       (int)head_of(here).n, here.p);

    if (what.model.n == 0 && first == NULL)
        return mo_fail(e, MO_EUNAVAIL, "no model was named (llm.model): %s",
                       what.server && what.server->why[0]
                           ? what.server->why
                           : "the server's list is not known");
    if (what.model.n == 0)
        what.model = mo_span_cstr(first);
    if (what.prefix)
        mo_buf_printf(&out->id, "%s:", what.prefix);
    out->own = out->id.len;
    if (mo_buf_span(&out->id, what.model) < 0)
        return mo_fail(e, mo_buf_err(&out->id), "the model's name is too long");
    out->provider = mo_llm_kind_name(what.kind);
    return make_llm(m, m->cfg, what.kind, what.server, key, &out->llm, e);
}

void mo_model_fini(struct mo_model *model)
{
    mo_llm_free(model->llm);
    mo_buf_fini(&model->id);
}

/* --- the list ------------------------------------------------------------ */

static bool list_sees(const struct source *s, const struct mo_llm_model *v)
{
    if (s->m->cfg->llm.images != MO_IMAGES_AUTO)
        return s->m->cfg->llm.images == MO_IMAGES_ALWAYS;
    if (v->sight != MO_LLM_SIGHT_UNKNOWN)
        return v->sight == MO_LLM_SEES;
    return mo_llm_sees(mo_llm_kind_of(s->llm), v->id);
}

static void put_model(struct source *s, const struct mo_llm_model *v)
{
    struct mo_jw w;

    if (s->models.len > 0)
        mo_buf_putc(&s->models, ',');
    w = mo_jw_object(&s->models);
    mo_jw_key(&w, "id");
    if (s->usual) {
        mo_jw_str(&w, v->id);
    } else {
        mo_autobuf struct mo_buf id = {.max = LABEL_MAX + ID_MAX};

        mo_buf_printf(&id, "%s:%.*s", s->name, (int)v->id.n, v->id.p);
        mo_jw_str(&w, mo_buf_view(&id));
    }
    mo_jw_member(&w, "name", v->name);
    mo_jw_member_cstr(&w, "provider", s->name);
    if (v->context > 0)
        mo_jw_member_u64(&w, "context", v->context);
    mo_jw_member_bool(&w, "images", list_sees(s, v));
    mo_jw_end(&w);
}

static void put_source(struct mo_jw *w, const struct source *s)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", s->name);
    mo_jw_member_bool(w, "ok", s->ok);
    mo_jw_member_u64(w, "models", s->count);
    if (is_local(s->m, s->server))
        mo_jw_member_cstr(w, "url", s->server->url);
    if (!s->ok)
        mo_jw_member_cstr(w, "error", s->why);
    mo_jw_end(w);
}

static void put_demo(struct mo_jw *w, bool usual)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "id", usual ? "demo" : "demo:demo");
    mo_jw_member_cstr(w, "name", "Demo (built in, no key needed)");
    mo_jw_member_cstr(w, "provider", "demo");
    mo_jw_end(w);
}

static void write_list(struct mo_models *m)
{
    enum mo_llm_kind k = default_kind(m->cfg);
    struct choice c = choose_model(m, mo_span(NULL, 0));
    struct mo_jw w;

    mo_buf_reset(&m->list);
    w = mo_jw_object(&m->list);
    mo_jw_member_cstr(&w, "provider",
                      is_local(m, c.server) ? c.server->name
                                            : mo_llm_kind_name(k));
    mo_jw_member_cstr(
        &w, "model", m->cfg->llm.model ? m->cfg->llm.model : default_model(&c));
    mo_jw_member_arr(&w, "models");
    for (size_t i = 0; i < m->n; i++)
        if (m->sources[i].models.len > 0)
            mo_jw_raw(&w, mo_buf_view(&m->sources[i].models));
    put_demo(&w, k == MO_LLM_DEMO);
    mo_jw_end(&w);
    mo_jw_member_arr(&w, "providers");
    for (size_t i = 0; i < m->n; i++)
        put_source(&w, &m->sources[i]);
    mo_jw_end_all(&w);
    m->made = mo_now_ns();
}

static void answer_waiters(struct mo_models *m, const struct mo_err *why)
{
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &m->waiters);
    mo_list_drain (w, &all, struct waiter, node) {
        if (w->ready)
            w->ready(w->arg);
        else
            w->done(w->arg, mo_buf_view(&m->list), why);
        mo_free(w);
    }
}

static void forget_sources(struct mo_models *m)
{
    for (size_t i = 0; i < m->n; i++) {
        mo_buf_fini(&m->sources[i].models);
        mo_llm_free(m->sources[i].llm);
    }
    m->n = 0;
}

static void on_later(struct mo_later *d)
{
    struct mo_models *m = mo_container_of(d, struct mo_models, later);

    if (m->busy) {
        write_list(m);
        forget_sources(m);
        m->busy = false;
    }
    if (mo_buf_err(&m->list)) {
        m->made = 0;
        answer_waiters(m,
                       mo_error(MO_ENOMEM, "the list of models is too large"));
    } else {
        answer_waiters(m, NULL);
    }
}

static void source_answered(struct mo_models *m)
{
    if (--m->waiting == 0)
        mo_loop_defer(m->loop, &m->later);
}

/* The model that is used where none is named. */
static void note_first(struct source *s, const struct mo_llm_model *v, size_t n)
{
    struct server *to = s->server;

    to->first[0] = '\0';
    if (n > 0 && v[0].id.n < sizeof(to->first))
        snprintf(to->first, sizeof(to->first), "%.*s", (int)v[0].id.n,
                 v[0].id.p);
    snprintf(to->why, sizeof(to->why), "%s",
             s->ok ? "the server has no model for conversations" : s->why);
}

static void on_models(void *ctx, const struct mo_llm_model *v, size_t n,
                      const struct mo_llm_failure *f)
{
    struct source *s = ctx;

    s->ok = f == NULL;
    s->count = n;
    if (f)
        snprintf(s->why, sizeof(s->why), "%s", f->err.msg);
    if (s->server)
        note_first(s, v, n);
    for (size_t i = 0; i < n; i++)
        put_model(s, &v[i]);
    source_answered(s->m);
}

static void add_source(struct mo_models *m, enum mo_llm_kind kind,
                       const char *name, struct server *server)
{
    struct source *s = &m->sources[m->n++];
    struct mo_err e;

    *s = (struct source){.m = m,
                         .usual = kind == default_kind(m->cfg) && !server,
                         .server = server};
    kind = true_kind(m->cfg, kind);
    if (kind == MO_LLM_COMPATIBLE && server == NULL)
        s->server = &m->openai;
    snprintf(s->name, sizeof(s->name), "%s", name);
    mo_buf_init(&s->models, LIST_MAX);
    if (make_llm(m, m->cfg, kind, s->server, mo_span(NULL, 0), &s->llm, &e) ==
            0 &&
        mo_llm_models(s->llm, MO_MODELS_MS, on_models, s, &e) == 0)
        m->waiting++;
    else
        snprintf(s->why, sizeof(s->why), "%s", e.msg);
    if (s->server && s->why[0])
        note_first(s, NULL, 0);
}

/* The place of that one; NULL: there is none left. */
static struct server *place_of(struct mo_models *m,
                               const struct mo_llm_local *l)
{
    struct server *s = NULL;

    for (size_t i = 0; i < m->nlocals; i++)
        if (strcmp(m->locals[i].url, l->base_url) == 0)
            return &m->locals[i];
    if (m->nlocals == MO_COUNT(m->locals))
        return NULL;
    s = &m->locals[m->nlocals++];
    snprintf(s->name, sizeof(s->name), "%s", l->name);
    snprintf(s->url, sizeof(s->url), "%s", l->base_url);
    return s;
}

static void on_locals(void *ctx, const struct mo_llm_local *v, size_t n)
{
    struct mo_models *m = ctx;

    for (size_t i = 0; i < m->nlocals; i++)
        m->locals[i].there = false;
    for (size_t i = 0; i < n && m->n < SOURCES; i++) {
        struct server *s = place_of(m, &v[i]);

        if (s == NULL)
            continue;
        s->there = true;
        add_source(m, MO_LLM_COMPATIBLE, s->name, s);
    }
    source_answered(m);
}

static void begin_round(struct mo_models *m)
{
    struct mo_err e;

    m->busy = true;
    m->stale = false;
    m->waiting = 1;
    for (size_t i = 0; i < KEYED; i++) {
        const struct mo_config_api *api = api_of(m->cfg, keyed[i]);

        if (api && (api->api_key || keyed[i] == default_kind(m->cfg) ||
                    (keyed[i] == MO_LLM_OPENAI && api->base_url)))
            add_source(m, keyed[i], mo_llm_kind_name(keyed[i]), NULL);
    }
    if (mo_llm_find_local(m->loop, m->http, NULL, 0, MO_MODELS_LOCAL, on_locals,
                          m, &e) == 0)
        m->waiting++;
    source_answered(m);
}

static int add_waiter(struct mo_models *m, struct waiter what, struct mo_err *e)
{
    struct waiter *w = mo_new(struct waiter);

    if (w == NULL)
        return mo_fail(e, MO_ENOMEM, "models: out of memory");
    *w = what;
    mo_list_push(&m->waiters, &w->node);
    return 0;
}

int mo_models_list(struct mo_models *m, mo_models_fn *done, void *arg,
                   struct mo_err *e)
{
    int rc = add_waiter(m, (struct waiter){.done = done, .arg = arg}, e);

    if (rc < 0 || m->busy)
        return rc;
    if (m->made > 0 && !m->stale &&
        mo_now_ns() - m->made < MO_MODELS_KEEP_MS * MO_MS)
        mo_loop_defer(m->loop, &m->later);
    else
        begin_round(m);
    return 0;
}

int mo_models_prepare(struct mo_models *m, struct mo_span wanted,
                      void (*ready)(void *arg), void *arg, struct mo_err *e)
{
    struct choice c = choose_model(m, wanted);
    struct mo_span id = wanted.n ? wanted : local_default(m);
    bool is_absent = mo_llm_is_local(head_of(id)) && !is_local(m, c.server);
    bool unknown_place = is_absent && (m->made == 0 || wanted.n == 0);

    if (!unknown_place && (c.model.n > 0 || default_model(&c)))
        return 1;
    if (add_waiter(m, (struct waiter){.ready = ready, .arg = arg}, e) < 0)
        return MO_ENOMEM;
    if (!m->busy)
        begin_round(m);
    return 0;
}

/* --- tests ---------------------------------------------------------------- */

struct mo_models_test {
    const struct mo_config *cfg;
    struct mo_llm *llm;
    mo_models_fn *done; /* NULL: dropped */
    void *arg;
};

static const char *cause_of(const char *code)
{
    static const struct {
        const char *code, *cause;
    } rows[] = {
        {"auth", "key"},         {"quota", "credit"},
        {"address", "address"},  {"protocol", "address"},
        {"no_model", "address"}, {"bad_request", "address"},
        {"network", "network"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (strcmp(rows[i].code, code) == 0)
            return rows[i].cause;
    return "busy";
}

static void put_test(struct mo_jw *w, const struct mo_llm_model *v, size_t n,
                     const struct mo_llm_failure *f)
{
    mo_jw_member_bool(w, "ok", f == NULL);
    if (f) {
        mo_jw_member_cstr(w, "cause", cause_of(f->code));
        mo_jw_member_cstr(w, "error", f->err.msg);
        return;
    }
    mo_jw_member_arr(w, "models");
    for (size_t i = 0; i < n; i++) {
        mo_jw_obj(w);
        mo_jw_member(w, "id", v[i].id);
        mo_jw_member(w, "name", v[i].name);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void test_free(struct mo_models_test *t)
{
    mo_llm_free(t->llm);
    mo_config_unref(t->cfg);
    mo_free(t);
}

static void on_test(void *ctx, const struct mo_llm_model *v, size_t n,
                    const struct mo_llm_failure *f)
{
    struct mo_models_test *t = ctx;
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};
    struct mo_jw w = mo_jw_object(&b);

    put_test(&w, v, n, f);
    mo_jw_end(&w);
    if (t->done && mo_buf_err(&b))
        t->done(t->arg, mo_span(NULL, 0),
                mo_error(MO_ENOMEM, "the list of models is too large"));
    else if (t->done)
        t->done(t->arg, mo_buf_view(&b), f ? &f->err : NULL);
    test_free(t);
}

int mo_models_test(struct mo_models *m, const struct mo_config *cfg,
                   const char *provider, mo_models_fn *done, void *arg,
                   struct mo_models_test **out, struct mo_err *e)
{
    int kind = mo_llm_kind(mo_span_cstr(provider));
    struct mo_models_test *t = mo_new(struct mo_models_test);
    int rc = 0;

    if (t == NULL)
        return mo_fail(e, MO_ENOMEM, "models: out of memory");
    *t = (struct mo_models_test){
        .cfg = mo_config_ref(cfg), .done = done, .arg = arg};
    if (kind < 0)
        rc = mo_fail(e, MO_EINVAL, "there is no such provider");
    if (rc == 0)
        rc = make_llm(m, cfg, true_kind(cfg, (enum mo_llm_kind)kind), NULL,
                      mo_span(NULL, 0), &t->llm, e);
    if (rc == 0)
        rc = mo_llm_models(t->llm, MO_MODELS_TEST_MS, on_test, t, e);
    if (rc < 0)
        test_free(t);
    else
        *out = t;
    return rc;
}

void mo_models_test_drop(struct mo_models_test *t)
{
    t->done = NULL;
}

/* "ID", or "provider:ID" */
static bool is_model(struct mo_json id, struct mo_span model)
{
    struct mo_span s = mo_span(id.p + 1, id.n - 2);

    return mo_json_is(id, MO_JSON_STRING) && mo_span_ends(s, model) &&
           (s.n == model.n || s.p[s.n - model.n - 1] == ':');
}

bool mo_models_sees(struct mo_models *m, const struct mo_model *model)
{
    struct mo_span id = mo_buf_view(&model->id);
    bool sees =
        mo_llm_sees(mo_llm_kind_of(model->llm), mo_span_skip(id, model->own));
    struct mo_json_doc doc;

    if (m->cfg->llm.images != MO_IMAGES_AUTO)
        return m->cfg->llm.images == MO_IMAGES_ALWAYS;
    if (m->made == 0 || mo_json_parse(mo_buf_view(&m->list), 0, &doc, NULL) < 0)
        return sees;
    mo_json_each (at, mo_json_get(doc.root, "models"))
        if (is_model(mo_json_get(at.val, "id"), id))
            (void)mo_json_bool(mo_json_get(at.val, "images"), &sees);
    return sees;
}

uint64_t mo_models_window(struct mo_models *m, struct mo_span model)
{
    uint64_t all = 0, out = (uint64_t)m->cfg->llm.max_output_tokens;
    struct mo_json_doc doc;

    if (m->made == 0 || mo_json_parse(mo_buf_view(&m->list), 0, &doc, NULL) < 0)
        return 0;
    mo_json_each (at, mo_json_get(doc.root, "models"))
        if (is_model(mo_json_get(at.val, "id"), model))
            (void)mo_json_u64(mo_json_get(at.val, "context"), &all);
    return out < all / 2 ? all - out : all / 2;
}

struct mo_models *mo_models_new(struct mo_loop *l, struct mo_httpc *http,
                                const struct mo_config *cfg, struct mo_err *e)
{
    struct mo_models *m = mo_new(struct mo_models);

    if (m == NULL)
        return mo_null(mo_fail(e, MO_ENOMEM, "models: out of memory"));
    m->loop = l;
    m->http = http;
    m->cfg = mo_config_ref(cfg);
    mo_list_init(&m->waiters);
    mo_buf_init(&m->list, LIST_MAX);
    mo_later_init(&m->later, on_later);
    return m;
}

void mo_models_config(struct mo_models *m, const struct mo_config *cfg)
{
    const struct mo_config *old = m->cfg;

    m->cfg = mo_config_ref(cfg);
    mo_config_unref(old);
    m->stale = true;
}

void mo_models_free(struct mo_models *m)
{
    if (m == NULL)
        return;
    mo_later_cancel(&m->later);
    answer_waiters(m, mo_error(MO_ECANCELED, "the program is shutting down"));
    forget_sources(m);
    mo_buf_fini(&m->list);
    mo_config_unref(m->cfg);
    mo_free(m);
}
