#include "gateway/router/embeddings.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "codec/json/json.h"
#include "codec/sha256.h"
#include "gateway/router/embeddings_answer.h"
#include "loop/httpc.h"
#include "secrets/resolve.h"

#define HEAD      "mo-embeddings 1\n"
#define KEY_BYTES 16
#define ROW_BYTES (KEY_BYTES + sizeof(uint16_t)) /* before a row's vector */
#define VALUE_MAX 4096                           /* of a resolved reference */
#define BODY_MAX  ((size_t)EMBEDDINGS_BATCH * EMBEDDINGS_TEXT_MAX * 6 + 4096)
#define MAP_MAX   65536
#define ASKS      8 /* requests of people at once; more do not wait */

struct text { /* to be sent */
    struct mo_list node;
    unsigned char key[KEY_BYTES];
    bool tool; /* else of a request */
    size_t n;
    char text[];
};

/* One HTTP request. It may end after everything else. */
struct sending {
    struct mo_list node;
    struct embeddings *m;
    struct mo_list texts;
    size_t n;
    struct mo_list waits; /* struct embeddings_wait */
    struct mo_buf body;   /* of the answer */
    int status;
    bool batch;
};

struct embeddings {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_httpc *http; /* NULL: nothing was sent yet */
    char *path;
    struct mo_map rows; /* key -> struct embedding */
    size_t dim;         /* of this model; 0: not known */
    struct mo_list queue;
    struct mo_map pending; /* keys of texts in the queue or in a batch */
    struct mo_list sendings;
    unsigned asks;
    bool busy; /* a batch is under way */
    bool failing, closing;
    uint64_t paused_ms; /* nothing is sent before */
    struct mo_timer next, save;
    struct mo_later later;
    struct mo_gone gone;
    struct embeddings_stats stats;
};

static uint64_t now_ms(void)
{
    return mo_now_ns() / MO_MS;
}

static struct mo_span key_span(const unsigned char *key)
{
    return mo_span((const char *)key, KEY_BYTES);
}

static void make_key(const struct embeddings *m, struct mo_span text,
                     unsigned char key[KEY_BYTES])
{
    const char *model = m->cfg->gateway.embeddings.model;
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 s;

    text = mo_span_head(text, EMBEDDINGS_TEXT_MAX);
    mo_sha256_init(&s);
    mo_sha256_put(&s, model, strlen(model) + 1);
    mo_sha256_put(&s, text.p, text.n);
    mo_sha256_end(&s, sum);
    memcpy(key, sum, KEY_BYTES);
}

/* --- vectors ------------------------------------------------------------- */

static void forget_all(struct embeddings *m)
{
    mo_map_each (en, &m->rows)
        mo_free(en->value);
    mo_map_clear(&m->rows);
    m->stats.bytes = 0;
}

/* Takes v. */
static void keep(struct embeddings *m, const unsigned char *key,
                 struct embedding *v)
{
    void *old = NULL;

    if (m->stats.bytes + v->dim > EMBEDDINGS_BYTES_MAX ||
        m->rows.len >= MAP_MAX)
        forget_all(m);
    if (mo_map_put(&m->rows, key_span(key), v, &old) < 0) {
        mo_free(v);
        return;
    }
    m->stats.bytes += v->dim;
    if (old)
        m->stats.bytes -= ((struct embedding *)old)->dim;
    mo_free(old);
}

const struct embedding *mo_embeddings_get(struct embeddings *m,
                                          struct mo_span text)
{
    unsigned char key[KEY_BYTES];

    make_key(m, text, key);
    return mo_map_get(&m->rows, key_span(key));
}

/* --- the file ------------------------------------------------------------ */

/* Rows until the first one that is cut off. */
static void read_rows(struct embeddings *m, struct mo_span rest)
{
    while (rest.n > ROW_BYTES) {
        struct mo_span head = mo_span_take(&rest, ROW_BYTES);
        struct embedding *v;
        uint16_t dim;

        memcpy(&dim, head.p + KEY_BYTES, sizeof(dim));
        if (dim == 0 || dim > EMBEDDINGS_DIM_MAX || rest.n < dim)
            return;
        v = mo_alloc(sizeof(*v) + dim);
        if (!v)
            return;
        v->dim = dim;
        memcpy(v->v, mo_span_take(&rest, dim).p, dim);
        keep(m, (const unsigned char *)head.p, v);
    }
}

static void load_file(struct embeddings *m)
{
    mo_autobuf struct mo_buf b = {.max = 2 * EMBEDDINGS_BYTES_MAX};
    struct mo_span text;

    if (!m->path || mo_file_read_own(m->path, &b) < 0)
        return;
    text = mo_buf_view(&b);
    if (mo_span_strip(&text, MO_SPAN(HEAD)))
        read_rows(m, text);
}

static void on_save(struct mo_timer *t)
{
    struct embeddings *m = mo_container_of(t, struct embeddings, save);
    mo_autobuf struct mo_buf b = {.max = 2 * EMBEDDINGS_BYTES_MAX};

    (void)mo_buf_puts(&b, HEAD);
    mo_map_each (en, &m->rows) {
        const struct embedding *v = en->value;

        (void)mo_buf_span(&b, mo_map_key(en));
        (void)mo_buf_span(&b, mo_span((const char *)&v->dim, sizeof(v->dim)));
        (void)mo_buf_span(&b, mo_span((const char *)v->v, v->dim));
    }
    if (mo_buf_err(&b) == 0) /* else they are asked for again */
        (void)mo_file_replace(m->path, mo_buf_view(&b), NULL);
}

static void save_soon(struct embeddings *m)
{
    if (m->path && !mo_timer_on(&m->save))
        mo_timer_start(m->loop, &m->save, EMBEDDINGS_SAVE_MS);
}

/* --- one HTTP request ---------------------------------------------------- */

static void drop_text(struct embeddings *m, struct text *t)
{
    mo_list_del(&t->node);
    if (t->tool)
        (void)mo_map_del(&m->pending, key_span(t->key));
    mo_free(t);
}

static void drop_texts(struct embeddings *m, struct mo_list *v)
{
    while (!mo_list_empty(v))
        drop_text(m, mo_list_first(v, struct text, node));
}

static void end_waits(struct sending *s)
{
    while (!mo_list_empty(&s->waits)) {
        struct embeddings_wait *w =
            mo_list_first(&s->waits, struct embeddings_wait, node);

        mo_list_del(&w->node);
        mo_list_init(&w->node);
        w->done(w);
    }
}

static void free_sending(struct sending *s)
{
    drop_texts(s->m, &s->texts);
    mo_buf_fini(&s->body);
    mo_free(s);
}

static void on_head(void *ctx, const struct mo_http_head *h)
{
    ((struct sending *)ctx)->status = h->status;
}

static void on_data(void *ctx, struct mo_span data)
{
    (void)mo_buf_span(&((struct sending *)ctx)->body, data);
}

static int take_answer(struct embeddings *m, struct sending *s,
                       struct mo_err *e)
{
    struct embedding *v[EMBEDDINGS_BATCH];
    size_t i = 0;
    int rc;

    if (s->status != 200)
        return mo_fail(e, MO_EPROTO, "status %d", s->status);
    if (mo_buf_err(&s->body) < 0)
        return mo_fail(e, MO_ETOOBIG, "the answer is too large");
    rc = mo_embeddings_answer(mo_buf_view(&s->body), s->n, &m->dim, v, e);
    if (rc < 0)
        return rc;
    mo_list_each_entry (t, &s->texts, struct text, node)
        keep(m, t->key, v[i++]);
    save_soon(m);
    return 0;
}

/* Logged once, until it works again. */
static void note_failure(struct embeddings *m, const struct mo_err *why)
{
    m->stats.failures++;
    m->stats.late += why->code == MO_ETIMEOUT;
    m->paused_ms = now_ms() + EMBEDDINGS_PAUSE_MS;
    if (!m->failing)
        mo_log_err(mo_loop_log(m->loop), MO_WARN, "router", why,
                   "gateway.embeddings: no second opinion");
    m->failing = true;
}

static void send_later(struct embeddings *m)
{
    uint64_t now = now_ms();

    if (!m->closing && !m->busy && !mo_list_empty(&m->queue))
        mo_timer_start(m->loop, &m->next,
                       m->paused_ms > now ? m->paused_ms - now : 0);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct sending *s = ctx;
    struct embeddings *m = s->m;
    struct mo_err e;

    if (!why && take_answer(m, s, &e) < 0)
        why = &e;
    if (why && !m->closing)
        note_failure(m, why);
    else if (!why)
        m->failing = false;
    mo_list_del(&s->node);
    if (s->batch)
        m->busy = false;
    else
        m->asks--;
    if (s->batch && why)
        mo_list_splice(&m->queue, &s->texts); /* tried again */
    end_waits(s);
    free_sending(s);
    send_later(m);
}

static void write_body(const struct embeddings *m, const struct sending *s,
                       struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_cstr(&w, "model", m->cfg->gateway.embeddings.model);
    mo_jw_member_arr(&w, "input");
    mo_list_each_entry (t, &s->texts, struct text, node)
        mo_jw_str(&w, mo_span(t->text, t->n));
    mo_jw_end(&w);
    mo_jw_member_cstr(&w, "encoding_format", "float");
    mo_jw_end(&w);
}

/* "Bearer KEY", or empty. */
static int write_bearer(const struct embeddings *m, struct mo_buf *out,
                        struct mo_err *e)
{
    const char *key = m->cfg->gateway.embeddings.api_key;

    if (!key || !*key)
        return 0;
    (void)mo_buf_puts(out, "Bearer ");
    return mo_reference_resolve(m->cfg, key, out, e);
}

/* The URL of the service, which may end with a slash, and the path. */
static int write_url(const struct embeddings *m, struct mo_buf *out,
                     struct mo_err *e)
{
    int rc =
        mo_reference_resolve(m->cfg, m->cfg->gateway.embeddings.url, out, e);

    while (rc == 0 && out->len && out->p[out->len - 1] == '/')
        out->len--;
    if (rc == 0 && mo_buf_puts(out, "/embeddings") < 0)
        rc = mo_fail(e, MO_ENOMEM, "embeddings");
    return rc;
}

static int start_http(struct embeddings *m, struct sending *s, struct mo_err *e)
{
    static const struct mo_http_cb cb = {
        .on_head = on_head, .on_data = on_data, .on_done = on_done};
    const struct mo_httpc_opts o = {.active = ASKS + 1, .waiting = 1};
    mo_autowipe struct mo_buf url = {.max = VALUE_MAX};
    mo_autowipe struct mo_buf bearer = {.max = VALUE_MAX};
    mo_autobuf struct mo_buf body = {.max = BODY_MAX};
    struct mo_http_header v[] = {
        {MO_SPAN("Content-Type"), MO_SPAN("application/json")},
        {MO_SPAN("Authorization"), {NULL, 0}},
    };
    struct mo_http_call call = {
        .method = "POST",
        .headers = v,
        .total_ms = s->batch ? EMBEDDINGS_BATCH_MS
                             : (unsigned)m->cfg->gateway.embeddings.timeout_ms,
        .max_bytes = EMBEDDINGS_ANSWER_MAX,
    };
    struct mo_httpc_x *x = NULL;

    if (write_url(m, &url, e) < 0 || write_bearer(m, &bearer, e) < 0)
        return e->code;
    write_body(m, s, &body);
    if (mo_buf_err(&body) < 0)
        return mo_fail(e, MO_ENOMEM, "embeddings");
    if (!m->http)
        m->http = mo_httpc_new(m->loop, &o, e);
    if (!m->http)
        return e->code;
    v[1].value = mo_buf_view(&bearer);
    call.nheaders = bearer.len ? 2 : 1;
    call.url = mo_buf_cstr(&url);
    call.body = mo_buf_view(&body);
    return mo_httpc_start(m->http, &call, &cb, s, &x, e);
}

static struct sending *make_sending(struct embeddings *m, bool batch)
{
    struct sending *s = mo_new(struct sending);

    if (!s)
        return NULL;
    s->m = m;
    s->batch = batch;
    mo_list_init(&s->texts);
    mo_list_init(&s->waits);
    mo_buf_init(&s->body, (size_t)EMBEDDINGS_ANSWER_MAX);
    return s;
}

/* False: it was not started, and is freed. */
static bool send_texts(struct embeddings *m, struct sending *s)
{
    struct mo_err e;

    m->stats.requests++;
    if (start_http(m, s, &e) < 0) {
        note_failure(m, &e);
        if (s->batch)
            mo_list_splice(&m->queue, &s->texts);
        free_sending(s);
        return false;
    }
    mo_list_push(&m->sendings, &s->node);
    return true;
}

/* --- texts of tools ------------------------------------------------------ */

static void on_next(struct mo_timer *t)
{
    struct embeddings *m = mo_container_of(t, struct embeddings, next);
    struct sending *s = make_sending(m, true);

    if (!s)
        return;
    while (s->n < EMBEDDINGS_BATCH && !mo_list_empty(&m->queue)) {
        struct text *x = mo_list_first(&m->queue, struct text, node);

        if (mo_map_get(&m->rows, key_span(x->key))) {
            drop_text(m, x);
            continue;
        }
        mo_list_del(&x->node);
        mo_list_push(&s->texts, &x->node);
        s->n++;
    }
    if (s->n == 0)
        free_sending(s);
    else
        m->busy = send_texts(m, s);
    send_later(m);
}

static struct text *make_text(const struct embeddings *m, struct mo_span text)
{
    struct text *t;

    text = mo_span_head(text, EMBEDDINGS_TEXT_MAX);
    t = mo_alloc(sizeof(*t) + text.n);
    if (!t)
        return NULL;
    make_key(m, text, t->key);
    t->tool = false;
    t->n = text.n;
    memcpy(t->text, text.p, text.n);
    return t;
}

void mo_embeddings_want(struct embeddings *m, struct mo_span text)
{
    struct text *t;

    if (m->closing || text.n == 0)
        return;
    t = make_text(m, text);
    if (!t)
        return;
    if (mo_map_get(&m->rows, key_span(t->key)) ||
        mo_map_get(&m->pending, key_span(t->key)) ||
        mo_map_put(&m->pending, key_span(t->key), m, NULL) < 0) {
        mo_free(t);
        return;
    }
    t->tool = true;
    mo_list_push(&m->queue, &t->node);
    if (!mo_timer_on(&m->next))
        send_later(m);
}

/* --- requests ------------------------------------------------------------ */

bool mo_embeddings_ask(struct embeddings *m, struct mo_span text,
                       struct embeddings_wait *w)
{
    struct sending *s;
    struct text *t;

    if (mo_embeddings_get(m, text)) {
        m->stats.known++;
        return false;
    }
    if (m->closing || text.n == 0 || m->asks >= ASKS || now_ms() < m->paused_ms)
        return false;
    s = make_sending(m, false);
    t = s ? make_text(m, text) : NULL;
    if (!t) {
        mo_free(s);
        return false;
    }
    mo_list_push(&s->texts, &t->node);
    s->n = 1;
    if (!send_texts(m, s))
        return false;
    m->asks++;
    mo_list_push(&s->waits, &w->node);
    return true;
}

void mo_embeddings_leave(struct embeddings_wait *w)
{
    mo_list_del(&w->node);
    mo_list_init(&w->node);
}

struct embeddings_stats mo_embeddings_stats(const struct embeddings *m)
{
    struct embeddings_stats s = m->stats;

    s.vectors = m->rows.len;
    return s;
}

/* --- from new to close --------------------------------------------------- */

static void free_embeddings(void *ctx)
{
    struct embeddings *m = ctx;
    struct mo_gone gone = m->gone;

    drop_texts(m, &m->queue);
    mo_map_fini(&m->pending);
    forget_all(m);
    mo_map_fini(&m->rows);
    mo_config_unref(m->cfg);
    mo_free(m->path);
    mo_free(m);
    mo_gone_fire(gone);
}

static void on_later(struct mo_later *d)
{
    free_embeddings(mo_container_of(d, struct embeddings, later));
}

void mo_embeddings_close(struct embeddings *m, void (*gone)(void *ctx),
                         void *ctx)
{
    m->closing = true;
    m->gone = (struct mo_gone){gone, ctx};
    if (mo_timer_on(&m->save))
        on_save(&m->save);
    mo_timer_stop(m->loop, &m->save);
    mo_timer_stop(m->loop, &m->next);
    mo_list_each_entry (s, &m->sendings, struct sending, node)
        end_waits(s);
    if (m->http)
        mo_httpc_close(mo_take_ptr(&m->http), free_embeddings, m);
    else
        mo_loop_defer(m->loop, &m->later);
}

int mo_embeddings_new(struct mo_loop *l, const struct mo_config *cfg,
                      const char *path, struct embeddings **out,
                      struct mo_err *e)
{
    const struct mo_config_embeddings *c = &cfg->gateway.embeddings;
    struct embeddings *m;

    *out = NULL;
    if (!c->url || !*c->url)
        return 0;
    m = mo_new(struct embeddings);
    if (!m)
        return mo_fail(e, MO_ENOMEM, "embeddings");
    m->loop = l;
    m->cfg = mo_config_ref(cfg);
    m->path = path ? mo_strndup(path, strlen(path)) : NULL;
    mo_map_init(&m->rows, MAP_MAX);
    mo_map_init(&m->pending, EMBEDDINGS_QUEUE_MAX);
    mo_list_init(&m->queue);
    mo_list_init(&m->sendings);
    mo_timer_init(&m->next, on_next);
    mo_timer_init(&m->save, on_save);
    mo_later_init(&m->later, on_later);
    load_file(m);
    *out = m;
    return 0;
}
