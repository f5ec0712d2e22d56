/* up_kit.c - the fake links and the fixture of up_kit.h. */
#include "up_kit.h"

/* --- the fake link ------------------------------------------------------- */

static void fake_end(struct fake *f, const struct mo_err *why)
{
    f->ended = true;
    if (why)
        f->why = *why;
    mo_loop_defer(f->kit->l, &f->later);
}

static void fake_say(struct fake *f, const char *text, uint64_t id)
{
    struct mo_err e;

    (void)mo_buf_printf(&f->in, "{\"jsonrpc\":\"2.0\",\"id\":%llu,%s}\n",
                        (unsigned long long)id, text);
    mo_loop_defer(f->kit->l, &f->later);
    if (mo_buf_err(&f->in)) {
        (void)mo_fail(&e, MO_ENOMEM, "out of memory");
        fake_end(f, &e);
    }
}

#define OPENED                                                                 \
    "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},"      \
    "\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}"

#define DISCOVERED                                                             \
    "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":"           \
    "[\"2026-07-28\"],\"capabilities\":{}}"

#define UNHEARD_OF "\"error\":{\"code\":-32601,\"message\":\"no\"}"

static void fake_begin(struct fake *f, uint64_t id, bool discover)
{
    struct mo_err e;

    if (f->mood == SIGN_IN) {
        f->failed = id;
        mo_loop_defer(f->kit->l, &f->later);
    } else if (discover) {
        fake_say(f, f->mood == MODERN ? DISCOVERED : UNHEARD_OF, id);
    } else if (f->mood == HANG) {
        f->init = id;
    } else if (f->mood == FINE) {
        fake_say(f, OPENED, id);
    } else {
        (void)mo_fail(&e, MO_ECLOSED, "exit status 1: boom");
        fake_end(f, &e);
    }
}

static int fake_send(struct mo_link *k, const struct mo_link_msg *m)
{
    struct fake *f = mo_container_of(k, struct fake, k);
    struct mo_err e;

    (void)mo_buf_span(&f->kit->log, m->text);
    (void)mo_buf_putc(&f->kit->log, '\n');
    if (m->method == NULL || m->id == 0)
        return 0;
    if (strcmp(m->method, "initialize") == 0) {
        fake_begin(f, m->id, false);
    } else if (strcmp(m->method, "server/discover") == 0) {
        fake_begin(f, m->id, true);
    } else if (strcmp(m->method, "echo") == 0) {
        fake_say(f, "\"result\":{\"resultType\":\"complete\"}", m->id);
    } else if (strcmp(m->method, "die") == 0) {
        (void)mo_fail(&e, MO_ECLOSED, "killed by signal 9");
        fake_end(f, &e);
    }
    return 0;
}

static void fake_start(struct mo_link *k)
{
    (void)k;
}

static void fake_close(struct mo_link *k)
{
    struct fake *f = mo_container_of(k, struct fake, k);
    const struct mo_err *why = k->why.code ? &k->why : NULL;

    f->holds = f->kit->slow_close && !f->ended;
    if (!f->holds)
        fake_end(f, why);
    else if (why)
        f->why = *why;
}

static const struct mo_link_ops fake_ops = {
    .send = fake_send, .start = fake_start, .close = fake_close};

static const struct mo_link_ops fake_http_ops = {
    .send = fake_send, .start = fake_start, .close = fake_close, .http = true};

static void fake_free(struct fake *f)
{
    const struct mo_link_cb *cb = f->k.cb;
    void *ctx = f->k.ctx;
    struct mo_err why = f->why;

    for (int i = 0; i < LINKS_MAX; i++) {
        if (f->kit->links[i] == f)
            f->kit->links[i] = NULL;
    }
    mo_later_cancel(&f->later);
    mo_buf_fini(&f->in);
    mo_free(f);
    cb->on_close(ctx, why.code ? &why : NULL);
}

static void fake_later(struct mo_later *d)
{
    struct fake *f = mo_container_of(d, struct fake, later);
    struct mo_buf in = f->in;
    struct mo_span all = mo_buf_view(&in);
    uint64_t failed = f->failed;
    struct mo_rpc m;
    struct mo_err e;

    mo_buf_init(&f->in, 1 << 20);
    f->failed = 0;
    while (all.n && !f->k.closing) {
        if (mo_rpc_parse(mo_span_cut(&all, '\n'), &m, NULL) == 0)
            f->k.cb->on_message(f->k.ctx, &m, 0);
    }
    mo_buf_fini(&in);
    if (failed && !f->k.closing) {
        (void)mo_fail(&e, MO_EPOLICY, "the server needs a sign-in");
        f->k.cb->on_failed(f->k.ctx, failed, 401, mo_span(NULL, 0), &e);
    }
    if (f->ended)
        fake_free(f);
}

static struct mo_link *fake_new(struct kit *k, struct mo_span who)
{
    struct fake *f = mo_new(struct fake);

    if (f == NULL)
        return NULL;
    f->k.ops = k->mood == SIGN_IN ? &fake_http_ops : &fake_ops;
    f->kit = k;
    f->mood = k->mood;
    mo_later_init(&f->later, fake_later);
    mo_buf_init(&f->in, 1 << 20);
    (void)snprintf(f->who, sizeof(f->who), "%.*s", (int)who.n, who.p);
    k->dials++;
    for (int i = 0; i < LINKS_MAX; i++) {
        if (k->links[i] == NULL) {
            k->links[i] = f;
            return &f->k;
        }
    }
    fail_msg("too many links");
    return NULL;
}

/* --- dial and callbacks -------------------------------------------------- */

static int kit_dial(void *ctx, const char *server, struct mo_span who,
                    struct mo_conn *c, struct mo_err *e)
{
    struct kit *k = ctx;
    struct mo_link *link;

    assert_string_equal(server, "srv");
    if (k->mood == NO_DIAL)
        return mo_fail(e, MO_EPOLICY, "no such program");
    if (k->late_dial) {
        k->dialing = c;
        return 0;
    }
    link = fake_new(k, who);
    if (link == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_conn_dialed(c, link, NULL);
    return 0;
}

static struct mo_conn_verdict kit_verdict(void *ctx, const char *server)
{
    (void)server;
    return ((struct kit *)ctx)->known;
}

static void kit_learnt(void *ctx, const char *server, struct mo_conn_verdict v)
{
    struct kit *k = ctx;

    (void)server;
    k->learns++;
    k->learnt = v;
}

static void kit_open(void *ctx, struct mo_child *c)
{
    struct kit *k = ctx;

    assert_non_null(mo_child_conn(c));
    k->opens++;
    k->last = c;
}

static void kit_ask(void *ctx, struct mo_child *c, struct mo_ask *a)
{
    struct kit *k = ctx;

    assert_non_null(mo_child_conn(c));
    k->asks++;
    mo_ask_answer(a, MO_SPAN("{\"roots\":[]}"));
}

static void kit_ask_gone(void *ctx, struct mo_ask *a)
{
    (void)a;
    ((struct kit *)ctx)->asks_gone++;
}

static void kit_notify(void *ctx, struct mo_child *c, const struct mo_rpc *m,
                       uint64_t stream_of)
{
    (void)m;
    (void)stream_of;
    assert_non_null(mo_child_conn(c));
    ((struct kit *)ctx)->notes++;
}

static void kit_lost(void *ctx, struct mo_child *c, const struct mo_err *why)
{
    struct kit *k = ctx;

    assert_null(mo_child_conn(c));
    assert_non_null(why);
    k->losts++;
    k->why = *why;
}

const struct mo_upstream_cb kit_cb = {
    .on_open = kit_open,
    .on_ask = kit_ask,
    .on_ask_gone = kit_ask_gone,
    .on_notify = kit_notify,
    .on_lost = kit_lost,
};

/* --- driving ------------------------------------------------------------- */

struct spin {
    struct mo_later d;
    struct mo_loop *l;
    int left;
};

static void spin_on(struct mo_later *d)
{
    struct spin *s = mo_container_of(d, struct spin, d);

    if (--s->left > 0)
        mo_loop_defer(s->l, d);
}

static bool spun(void *ctx)
{
    return ((struct spin *)ctx)->left <= 0;
}

void kit_settle(struct kit *k)
{
    struct spin s = {.l = k->l, .left = 40};

    mo_later_init(&s.d, spin_on);
    mo_loop_defer(k->l, &s.d);
    assert_true(mo_loop_until(k->l, spun, &s, LONG));
}

struct mo_gw_server kit_server(void)
{
    return (struct mo_gw_server){.name = "srv", .mode = MO_CONN_LEGACY};
}

bool kit_try(struct kit *k, const struct mo_gw_server *s)
{
    struct mo_err e;

    memset(k, 0, sizeof(*k));
    k->l = mo_loop_new(NULL, &e);
    if (k->l == NULL)
        return false;
    mo_buf_init(&k->log, 8 << 20);
    k->o = (struct mo_upstream_opts){
        .loop = k->l,
        .dial = kit_dial,
        .verdict = kit_verdict,
        .learnt = kit_learnt,
        .ctx = k,
    };
    k->u = mo_upstream_new(&k->o, s, &kit_cb, k, &e);
    if (k->u == NULL)
        mo_loop_free(k->l);
    return k->u != NULL;
}

void kit_init(struct kit *k, struct mo_gw_server s)
{
    assert_true(kit_try(k, &s));
}

void kit_gone(void *ctx)
{
    ((struct kit *)ctx)->gone++;
}

bool is_gone(void *ctx)
{
    return ((struct kit *)ctx)->gone > 0;
}

void kit_release(struct kit *k)
{
    struct mo_conn *c = k->dialing;
    struct mo_link *link = NULL;
    struct mo_err e;

    k->slow_close = k->late_dial = false;
    k->dialing = NULL;
    (void)mo_fail(&e, MO_ENOMEM, "out of memory");
    if (c)
        link = fake_new(k, MO_SPAN(""));
    if (c)
        mo_conn_dialed(c, link, &e);
    for (int i = 0; i < LINKS_MAX; i++) {
        struct fake *f = k->links[i];

        if (f && f->holds)
            fake_end(f, NULL);
        else if (f && f->init)
            fake_say(f, OPENED, f->init);
        if (f)
            f->init = 0;
    }
}

void kit_fini(struct kit *k)
{
    if (k->u && !k->u->closing)
        mo_upstream_close(k->u, kit_gone, k);
    kit_release(k);
    assert_true(mo_loop_until(k->l, is_gone, k, LONG));
    assert_int_equal(k->gone, 1);
    assert_int_equal(k->opens, k->losts);
    mo_loop_run(k->l);
    for (int i = 0; i < LINKS_MAX; i++)
        assert_null(k->links[i]);
    mo_buf_fini(&k->log);
    mo_loop_free(k->l);
}

void want_ready(struct mo_child_request *w, struct mo_child *c,
                const struct mo_err *why)
{
    struct want *v = mo_container_of(w, struct want, w);

    assert_false(v->k->wanting);
    assert_true((c == NULL) == (why != NULL));
    v->ready++;
    v->c = c;
    if (why) {
        v->why = *why;
        if (strncmp(why->msg, "srv: ", 5) != 0)
            fail_msg("whose error is this? %s", why->msg);
    } else {
        assert_non_null(mo_child_conn(c));
    }
}

void want_as(struct kit *k, struct want *v, const char *who)
{
    char caps[64];

    *v = (struct want){.k = k, .w.ready = want_ready};
    (void)snprintf(caps, sizeof(caps), "{\"experimental\":{\"%s\":{}}}", who);
    k->wanting = true;
    mo_upstream_request_child(k->u, mo_span_cstr(who), mo_span_cstr(caps),
                              &v->w);
    k->wanting = false;
}

void want(struct kit *k, struct want *v)
{
    want_as(k, v, "");
}

void want_now(struct kit *k, struct want *v)
{
    want(k, v);
    kit_settle(k);
    assert_int_equal(v->ready, 1);
    if (v->c == NULL)
        fail_msg("not granted: %s", v->why.msg);
}

void let_go(struct want *v)
{
    mo_child_release(v->c);
    v->c = NULL;
}

static void kit_done(void *ctx, const struct mo_reply *r)
{
    struct kit *k = ctx;

    k->done++;
    mo_err_clear(&k->why);
    if (r->err)
        k->why = *r->err;
}

struct mo_call *kit_call(struct kit *k, struct mo_child *c, const char *method)
{
    struct mo_call_opts o = {.done = kit_done, .ctx = k};
    struct mo_err e;

    return mo_conn_request(mo_child_conn(c), method, mo_span(NULL, 0), &o, &e);
}

struct mo_upstream_status kit_status(const struct kit *k)
{
    struct mo_upstream_status s;

    mo_upstream_status(k->u, &s);
    return s;
}

bool kit_saw(const struct kit *k, const char *text)
{
    return mo_span_search(mo_buf_view(&k->log), mo_span_cstr(text)) >= 0;
}
