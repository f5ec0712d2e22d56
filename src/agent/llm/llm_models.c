/* llm_models.c - lists models: a provider's list, page by page, and servers on
 * this machine, all probed at once.
 *
 * Only lists are requested; no request is billed. */
#include <stdlib.h>

#include "agent/llm/llm_priv.h"
#include "codec/http/url.h"

#define PAGES_MAX  32
#define MODELS_MAX 4096
#define PAGE_MAX   ((size_t)16 * 1024 * 1024)
#define NAMES_MAX  ((size_t)32 * 1024 * 1024)
#define PROBE_MAX  ((size_t)4 * 1024 * 1024)

/* --- a small document ---------------------------------------------------- */

struct get {
    struct mo_httpc_x *x; /* NULL: not active */
    struct mo_buf body;
    struct mo_llm_hint hint;
    /* Called once, later, with body and hint filled. */
    void (*done)(struct get *g, const struct mo_err *why);
};

static void get_head(void *ctx, const struct mo_http_head *h)
{
    struct get *g = ctx;

    mo_llm_hint_head(&g->hint, h, mo_wall_ms());
}

static void get_data(void *ctx, struct mo_span data)
{
    struct get *g = ctx;

    (void)mo_buf_span(&g->body, data);
}

static void get_done(void *ctx, const struct mo_err *why)
{
    struct get *g = ctx;

    g->x = NULL;
    if (!why && mo_buf_err(&g->body))
        g->done(g, mo_error(mo_buf_err(&g->body), "answer"));
    else
        g->done(g, why);
}

static int get_start(struct get *g, struct mo_httpc *hc, const char *url,
                     const struct mo_llm_headers *h, unsigned ms,
                     struct mo_err *e)
{
    static const struct mo_http_cb cb = {get_head, get_data, get_done};
    struct mo_http_call c = {
        .url = url, .connect_ms = ms, .total_ms = ms, .max_bytes = PAGE_MAX};

    if (h) {
        c.headers = h->v;
        c.nheaders = h->n;
    }
    g->hint = (struct mo_llm_hint){0, -1, -1};
    mo_buf_reset(&g->body);
    return mo_httpc_start(hc, &c, &cb, g, &g->x, e);
}

/* --- a provider's list --------------------------------------------------- */

struct ranked {
    struct mo_llm_model m;
    double rank;
    size_t at;
};

struct list {
    struct mo_llm *m;
    struct get get;
    struct mo_arena a; /* names */
    struct ranked *v;
    size_t n, cap;
    unsigned pages;
    uint64_t until; /* ns */
    struct mo_later later;
    mo_llm_models_fn *done;
    void *ctx;
};

static void list_free(struct list *l)
{
    mo_later_cancel(&l->later);
    mo_buf_fini(&l->get.body);
    mo_arena_fini(&l->a);
    mo_free(l->v);
    mo_free(l);
}

static int compare_rank(const void *pa, const void *pb)
{
    const struct ranked *a = pa, *b = pb;

    if (a->rank != b->rank)
        return a->rank > b->rank ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

static void list_end(struct list *l, const struct mo_llm_failure *f)
{
    struct mo_llm_model *v = mo_arena_alloc(&l->a, (l->n + 1) * sizeof(*v));
    struct mo_llm_failure none = {.code = "protocol"};

    if (!f && !v) {
        (void)mo_fail(&none.err, MO_ENOMEM, "list of models");
        f = &none;
    }
    if (!f && l->n) {
        qsort(l->v, l->n, sizeof(*l->v), compare_rank);
        for (size_t i = 0; i < l->n; i++)
            v[i] = l->v[i].m;
    }
    l->m->active--;
    l->done(l->ctx, f || !l->n ? NULL : v, f ? 0 : l->n, f);
    list_free(l);
}

static void list_fail(struct list *l, const struct mo_err *e, const char *code)
{
    struct mo_llm_failure f = {.err = *e, .code = code};

    (void)mo_wrap(&f.err, "%s", mo_llm_label(l->m->kind));
    list_end(l, &f);
}

static int add_model(void *ctx, const struct mo_llm_model *m, double rank,
                     struct mo_err *e)
{
    struct list *l = ctx;
    struct ranked *r;

    if (l->n == MODELS_MAX)
        return 0; /* the list is full; the rest is ignored */
    if (l->n == l->cap) {
        size_t cap = l->cap ? 2 * l->cap : 32;
        struct ranked *v = mo_realloc(l->v, cap * sizeof(*v));

        if (!v)
            return mo_fail(e, MO_ENOMEM, "list of models");
        l->v = v;
        l->cap = cap;
    }
    r = &l->v[l->n];
    *r = (struct ranked){*m, rank, l->n};
    r->m.id = mo_span_dup(&l->a, m->id);
    r->m.name = mo_span_dup(&l->a, m->name);
    if (!r->m.id.p || !r->m.name.p)
        return mo_fail(e, MO_ENOMEM, "list of models");
    l->n++;
    return 0;
}

static const struct {
    const char *first, *next; /* next: followed by the page token */
} paths[] = {
    [MO_LLM_CLAUDE] = {"/v1/models?limit=1000", "&after_id="},
    [MO_LLM_GEMINI] = {"/models?pageSize=1000", "&pageToken="},
    [MO_LLM_OPENAI] = {"/models", NULL},
    [MO_LLM_COMPATIBLE] = {"/models", NULL},
};

static int ask_page(struct list *l, struct mo_span token, struct mo_err *e)
{
    uint64_t now = mo_loop_now(l->m->loop);
    struct mo_llm_headers h;
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX};
    int rc;

    if (now >= l->until)
        return mo_fail(e, MO_ETIMEOUT,
                       "timeout while reading the list of models");
    (void)mo_buf_puts(&url, l->m->url);
    (void)mo_buf_puts(&url, paths[l->m->kind].first);
    if (token.n) {
        (void)mo_buf_puts(&url, paths[l->m->kind].next);
        (void)mo_pct_encode(&url, token);
    }
    rc = mo_llm_headers(l->m, &h, e);
    if (rc == 0 && mo_buf_err(&url))
        rc = mo_fail(e, mo_buf_err(&url), "list of models");
    if (rc == 0)
        rc = get_start(&l->get, l->m->hc, mo_buf_cstr(&url), &h,
                       (unsigned)((l->until - now) / MO_MS) + 1, e);
    mo_buf_wipe(&h.auth);
    return rc;
}

/* A status that says that the address is wrong: not that of a provider, or one
 * that has moved. A redirect is not followed, because the key would go along.
 */
static bool is_wrong_address(const struct list *l, struct mo_llm_failure *f)
{
    int status = l->get.hint.status;
    const char *label = mo_llm_label(l->m->kind);

    *f = (struct mo_llm_failure){.code = "address"};
    if (status >= 300 && status < 400)
        (void)mo_fail(&f->err, MO_EPROTO,
                      "%s redirects to another address (HTTP %d), which is "
                      "not followed: correct the base URL",
                      label, status);
    else if (status == 404 || status == 405 || status == 410)
        (void)mo_fail(&f->err, MO_ENOTFOUND,
                      "%s: there is no list of models at this address (HTTP "
                      "%d): correct the base URL",
                      label, status);
    return f->err.code != 0;
}

static void on_page(struct get *g, const struct mo_err *why)
{
    struct list *l = mo_container_of(g, struct list, get);
    const char *label = mo_llm_label(l->m->kind);
    mo_autoarena struct mo_arena a = {.cap = NAMES_MAX};
    struct mo_span next = {NULL, 0};
    struct mo_llm_verdict v;
    struct mo_err e;
    int rc;

    if (why)
        mo_llm_network(label, why, &v.f);
    else if (g->hint.status != 200 && !is_wrong_address(l, &v.f))
        mo_llm_judge(label, &g->hint, mo_buf_view(&g->body),
                     mo_buf_view(&l->m->key), &v);
    if (why || g->hint.status != 200) {
        list_end(l, &v.f);
        return;
    }
    rc = mo_llm_page(l->m->kind, mo_buf_view(&g->body), &a, add_model, l, &next,
                     &e);
    if (rc == 0 && next.n && ++l->pages < PAGES_MAX) {
        rc = ask_page(l, next, &e);
        if (rc == 0)
            return; /* continues with the next page */
    }
    if (rc < 0)
        list_fail(l, &e, rc == MO_ETIMEOUT ? "network" : "protocol");
    else
        list_end(l, NULL);
}

static void list_later(struct mo_later *d)
{
    list_end(mo_container_of(d, struct list, later), NULL);
}

int mo_llm_models(struct mo_llm *m, unsigned ms, mo_llm_models_fn *done,
                  void *ctx, struct mo_err *e)
{
    static const struct mo_llm_model demo = {
        MO_SPAN("demo"), MO_SPAN("Demo (plain words, no key)"), 0, 0};
    struct list *l = mo_new(struct list);
    struct mo_err mine;
    int rc = 0;

    e = e ? e : &mine;
    if (!l)
        return mo_fail(e, MO_ENOMEM, "list of models");
    *l = (struct list){.m = m,
                       .get = {.body = {.max = PAGE_MAX}, .done = on_page},
                       .a = {.cap = NAMES_MAX},
                       .until = mo_loop_now(m->loop) + ms * MO_MS,
                       .done = done,
                       .ctx = ctx};
    mo_later_init(&l->later, list_later);
    rc = m->kind == MO_LLM_DEMO ? add_model(l, &demo, 0, e)
                                : ask_page(l, (struct mo_span){NULL, 0}, e);
    if (rc < 0) {
        list_free(l);
        return rc;
    }
    if (m->kind == MO_LLM_DEMO)
        mo_loop_defer(m->loop, &l->later);
    m->active++;
    return 0;
}

/* --- servers on this machine --------------------------------------------- */

struct probe {
    struct get get;
    struct search *s;
    struct mo_llm_local local;
    bool found;
};

struct search {
    struct mo_arena a; /* names and URLs */
    struct probe v[MO_LLM_LOCAL_MAX];
    size_t n, left;
    struct mo_later later;
    mo_llm_locals_fn *done;
    void *ctx;
};

static void search_free(struct search *s)
{
    for (size_t i = 0; i < s->n; i++)
        mo_buf_fini(&s->v[i].get.body);
    mo_arena_fini(&s->a);
    mo_free(s);
}

static void search_end(struct search *s)
{
    struct mo_llm_local found[MO_LLM_LOCAL_MAX];
    size_t n = 0;

    for (size_t i = 0; i < s->n; i++) {
        if (s->v[i].found)
            found[n++] = s->v[i].local;
    }
    s->done(s->ctx, found, n);
    search_free(s);
}

static void search_later(struct mo_later *d)
{
    search_end(mo_container_of(d, struct search, later));
}

static int count_model(void *ctx, const struct mo_llm_model *m, double rank,
                       struct mo_err *e)
{
    (void)m;
    (void)rank;
    (void)e;
    ++*(size_t *)ctx;
    return 0;
}

/* Other programs use these ports too: only a list of models counts. */
static void on_probe(struct get *g, const struct mo_err *why)
{
    struct probe *p = mo_container_of(g, struct probe, get);
    struct search *s = p->s;
    mo_autoarena struct mo_arena a = {.cap = PROBE_MAX};
    struct mo_span next;
    struct mo_err e;

    if (!why && g->hint.status == 200)
        p->found = mo_llm_page(MO_LLM_COMPATIBLE, mo_buf_view(&g->body), &a,
                               count_model, &p->local.models, &next, &e) == 0;
    if (--s->left == 0)
        search_end(s);
}

/* A probe that cannot be started counts as absent. */
static void probe_start(struct search *s, struct mo_httpc *hc,
                        const struct mo_llm_local *want, unsigned ms)
{
    struct probe *p = &s->v[s->n++];
    mo_autobuf struct mo_buf url = {.max = MO_URL_MAX};

    p->s = s;
    p->get = (struct get){.body = {.max = PAGE_MAX}, .done = on_probe};
    p->local.name = mo_span_dup(&s->a, mo_span_cstr(want->name)).p;
    p->local.base_url = mo_span_dup(&s->a, mo_span_cstr(want->base_url)).p;
    (void)mo_buf_printf(&url, "%s/models", want->base_url);
    if (!mo_buf_err(&url) && p->local.name && p->local.base_url)
        s->left +=
            get_start(&p->get, hc, mo_buf_cstr(&url), NULL, ms, NULL) == 0;
}

static const struct mo_llm_local usual[] = {
    {"Ollama", "http://127.0.0.1:11434/v1", 0},
    {"LM Studio", "http://127.0.0.1:1234/v1", 0},
    {"llama.cpp", "http://127.0.0.1:8080/v1", 0},
    {"vLLM", "http://127.0.0.1:8000/v1", 0},
};

bool mo_llm_is_local(struct mo_span name)
{
    for (size_t i = 0; i < MO_COUNT(usual); i++)
        if (mo_span_ieq(name, mo_span_cstr(usual[i].name)))
            return true;
    return false;
}

int mo_llm_find_local(struct mo_loop *l, struct mo_httpc *hc,
                      const struct mo_llm_local *v, size_t n, unsigned ms,
                      mo_llm_locals_fn *done, void *ctx, struct mo_err *e)
{
    struct search *s;

    n = v ? n : MO_COUNT(usual);
    v = v ? v : usual;
    if (n > MO_LLM_LOCAL_MAX)
        return mo_fail(e, MO_EINVAL, "too many model servers to probe");
    s = mo_new(struct search);
    if (!s)
        return mo_fail(e, MO_ENOMEM, "probing for model servers");
    s->done = done;
    s->ctx = ctx;
    mo_arena_init(&s->a, NAMES_MAX);
    mo_later_init(&s->later, search_later);
    for (size_t i = 0; i < n; i++)
        probe_start(s, hc, &v[i], ms);
    if (s->left == 0)
        mo_loop_defer(l, &s->later);
    return 0;
}
