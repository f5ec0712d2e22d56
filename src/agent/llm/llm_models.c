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
    struct mo_err e;

    g->x = NULL;
    if (!why && mo_buf_err(&g->body)) {
        (void)mo_fail(&e, mo_buf_err(&g->body), "answer");
        why = &e;
    }
    g->done(g, why);
}

static void get_init(struct get *g,
                     void (*done)(struct get *g, const struct mo_err *why))
{
    *g = (struct get){.done = done};
    mo_buf_init(&g->body, PAGE_MAX);
}

static void get_fini(struct get *g)
{
    mo_buf_fini(&g->body);
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
    get_fini(&l->get);
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
    struct mo_llm_model *v = NULL;
    struct mo_llm_failure none;

    if (!f && l->n) {
        qsort(l->v, l->n, sizeof(*l->v), compare_rank);
        v = mo_arena_alloc(&l->a, l->n * sizeof(*v));
        for (size_t i = 0; v && i < l->n; i++)
            v[i] = l->v[i].m;
        if (!v) {
            none = (struct mo_llm_failure){.code = "protocol"};
            (void)mo_fail(&none.err, MO_ENOMEM, "list of models");
            f = &none;
        }
    }
    l->m->active--;
    l->done(l->ctx, v, f ? 0 : l->n, f);
    list_free(l);
}

static void list_fail(struct list *l, const struct mo_err *e, const char *code)
{
    struct mo_llm_failure f = {.err = *e, .code = code};

    (void)mo_wrap(&f.err, "%s", mo_llm_label(l->m->kind));
    list_end(l, &f);
}

static bool dup_name(struct list *l, struct mo_span s, struct mo_span *out)
{
    out->p = mo_arena_strndup(&l->a, s.p, s.n);
    out->n = s.n;
    return out->p != NULL;
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
    if (!dup_name(l, m->id, &r->m.id) || !dup_name(l, m->name, &r->m.name))
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
    mo_llm_headers_fini(&h);
    return rc;
}

static void on_page(struct get *g, const struct mo_err *why)
{
    struct list *l = mo_container_of(g, struct list, get);
    struct mo_llm_verdict v;
    struct mo_span next = {NULL, 0};
    struct mo_arena a;
    struct mo_err e;
    int rc;

    if (why) {
        mo_llm_network(mo_llm_label(l->m->kind), why, &v.f);
        list_end(l, &v.f);
        return;
    }
    if (g->hint.status != 200) {
        mo_llm_judge(mo_llm_label(l->m->kind), &g->hint, mo_buf_view(&g->body),
                     mo_buf_view(&l->m->key), &v);
        list_end(l, &v.f);
        return;
    }
    mo_arena_init(&a, NAMES_MAX);
    rc = mo_llm_page(l->m->kind, mo_buf_view(&g->body), &a, add_model, l, &next,
                     &e);
    if (rc == 0 && next.n && ++l->pages < PAGES_MAX) {
        rc = ask_page(l, next, &e);
        if (rc == 0)
            l = NULL; /* continues with the next page */
    }
    mo_arena_fini(&a);
    if (!l)
        return;
    if (rc < 0)
        list_fail(l, &e, rc == MO_ETIMEOUT ? "network" : "protocol");
    else
        list_end(l, NULL);
}

/* The demo has a fixed list. */
static void list_later(struct mo_later *d)
{
    static const struct mo_llm_model demo = {
        MO_SPAN("demo"), MO_SPAN("Demo (plain words, no key)"), 0, 0};
    struct list *l = mo_container_of(d, struct list, later);

    l->m->active--;
    l->done(l->ctx, &demo, 1, NULL);
    list_free(l);
}

int mo_llm_models(struct mo_llm *m, unsigned ms, mo_llm_models_fn *done,
                  void *ctx, struct mo_err *e)
{
    struct list *l = mo_new(struct list);
    struct mo_err mine;
    int rc = 0;

    e = e ? e : &mine;
    if (!l)
        return mo_fail(e, MO_ENOMEM, "list of models");
    l->m = m;
    l->done = done;
    l->ctx = ctx;
    l->until = mo_loop_now(m->loop) + ms * MO_MS;
    mo_arena_init(&l->a, NAMES_MAX);
    mo_later_init(&l->later, list_later);
    get_init(&l->get, on_page);
    if (m->kind == MO_LLM_DEMO)
        mo_loop_defer(m->loop, &l->later);
    else
        rc = ask_page(l, (struct mo_span){NULL, 0}, e);
    if (rc < 0) {
        list_free(l);
        return rc;
    }
    m->active++;
    return 0;
}

/* --- servers on this machine --------------------------------------------- */

struct probe {
    struct get get;
    struct search *s;
    struct mo_llm_local local;
    char *name, *url;
    bool found;
};

struct search {
    struct probe v[MO_LLM_LOCAL_MAX];
    size_t n, left;
    struct mo_later later;
    mo_llm_locals_fn *done;
    void *ctx;
};

static void search_free(struct search *s)
{
    for (size_t i = 0; i < s->n; i++) {
        get_fini(&s->v[i].get);
        mo_free(s->v[i].name);
        mo_free(s->v[i].url);
    }
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
    struct mo_arena a;
    struct mo_span next;
    struct mo_err e;

    if (!why && g->hint.status == 200) {
        mo_arena_init(&a, PROBE_MAX);
        p->found = mo_llm_page(MO_LLM_COMPATIBLE, mo_buf_view(&g->body), &a,
                               count_model, &p->local.models, &next, &e) == 0;
        mo_arena_fini(&a);
    }
    if (--s->left == 0)
        search_end(s);
}

static int probe_start(struct search *s, struct mo_httpc *hc,
                       const struct mo_llm_local *want, unsigned ms,
                       struct mo_err *e)
{
    struct probe *p = &s->v[s->n++];
    struct mo_buf url;
    int rc;

    p->s = s;
    get_init(&p->get, on_probe);
    p->name = mo_strndup(want->name, strlen(want->name));
    p->url = mo_strndup(want->base_url, strlen(want->base_url));
    p->local = (struct mo_llm_local){p->name, p->url, 0};
    mo_buf_init(&url, MO_URL_MAX);
    (void)mo_buf_puts(&url, want->base_url);
    rc = mo_buf_puts(&url, "/models");
    if (rc == 0 && (!p->name || !p->url))
        rc = MO_ENOMEM;
    if (rc < 0)
        (void)mo_fail(e, rc, "probing for model servers");
    else
        rc = get_start(&p->get, hc, mo_buf_cstr(&url), NULL, ms, e);
    mo_buf_fini(&url);
    s->left += rc == 0;
    return rc;
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
    mo_later_init(&s->later, search_later);
    for (size_t i = 0; i < n; i++)
        (void)probe_start(s, hc, &v[i], ms,
                          NULL); /* a failed probe counts as absent */
    if (s->left == 0)
        mo_loop_defer(l, &s->later);
    return 0;
}
