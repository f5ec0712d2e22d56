#include "store/rconn.h"

#include <stdio.h>

#include "base/rand.h"
#include "loop/net.h"
#include "store/redis_lua_find.h"
#include "store/sentinel.h"
#include "store/store.h"

#define REPLY_MAX (2 * MO_STORE_ANSWER_MAX)
#define PING_MS   10000 /* of a listening connection */
#define TREE_MAX  ((size_t)128 * 1024 * 1024)

static void dial_server(struct mo_rconn *c);

static const char *const lua_texts[MO_LUA_N] = {
    [MO_LUA_WRITE] = MO_LUA_WRITE_TEXT,
    [MO_LUA_HISTORY] = MO_LUA_HISTORY_TEXT,
    [MO_LUA_CALLS] = MO_LUA_CALLS_TEXT,
    [MO_LUA_AUDIT] = MO_LUA_AUDIT_TEXT,
    [MO_LUA_MARKS] = MO_LUA_MARKS_TEXT,
    [MO_LUA_TRY] = MO_LUA_TRY_TEXT,
    [MO_LUA_RENEW] = MO_LUA_RENEW_TEXT,
    [MO_LUA_DROP] = MO_LUA_DROP_TEXT,
    [MO_LUA_BREAK] = MO_LUA_BREAK_TEXT,
    [MO_LUA_UNLIST] = MO_LUA_UNLIST_TEXT,
    [MO_LUA_COUNT] = MO_LUA_COUNT_TEXT,
    [MO_LUA_DAY] = MO_LUA_DAY_TEXT,
    [MO_LUA_BEHIND] = MO_LUA_BEHIND_TEXT,
    [MO_LUA_INDEX] = MO_LUA_INDEX_TEXT,
    [MO_LUA_FIND] = MO_LUA_FIND_TEXT,
    [MO_LUA_VERSION] = MO_LUA_VERSION_TEXT,
};

/* --- sending ------------------------------------------------------------- */

static void put_words(struct mo_buf *b, const char *const *words, size_t n)
{
    mo_resp_put_head(b, n);
    for (size_t i = 0; i < n; i++)
        mo_resp_put(b, mo_span_cstr(words[i]));
}

#define PUT_WORDS(b, ...)                                                      \
    put_words((b), (const char *const[]){__VA_ARGS__},                         \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static bool is_open(const struct mo_rconn *c)
{
    return c->state >= MO_RCONN_GREETING;
}

static void start_stall(struct mo_rconn *c)
{
    if (!mo_timer_on(&c->stall))
        mo_timer_start(c->conf->loop, &c->stall, c->conf->stall_ms);
}

static void on_flush(struct mo_later *d)
{
    struct mo_rconn *c = mo_container_of(d, struct mo_rconn, flush);
    struct mo_err e = {.code = MO_ENOMEM, .msg = "redis: out of memory"};
    int rc;

    rc = mo_buf_err(&c->out);
    if (!is_open(c) || (rc == 0 && !c->out.len))
        return;
    if (rc == 0)
        rc = mo_stream_write(c->stream, mo_buf_view(&c->out));
    if (rc == MO_EBUSY)
        return; /* on_drain comes back here */
    if (rc < 0) {
        mo_rconn_reset(c, &e);
        return;
    }
    mo_buf_fini(&c->out);
    start_stall(c);
}

static void put_command(struct mo_rconn *c, struct mo_rcmd *cmd)
{
    bool scripted = cmd->script >= 0;

    if (cmd->asking)
        PUT_WORDS(&c->out, "ASKING");
    mo_resp_put_head(&c->out, cmd->nargs + (scripted ? 2 : 0));
    if (scripted && !cmd->whole && c->sha[cmd->script][0]) {
        mo_resp_put(&c->out, MO_SPAN("EVALSHA"));
        mo_resp_put(&c->out, mo_span_cstr(c->sha[cmd->script]));
    } else if (scripted) {
        mo_resp_put(&c->out, MO_SPAN("EVAL"));
        mo_resp_put(&c->out, mo_span_cstr(lua_texts[cmd->script]));
    }
    mo_buf_span(&c->out, mo_buf_view(&cmd->body));
}

static void send_now(struct mo_rconn *c, struct mo_rcmd *cmd)
{
    put_command(c, cmd);
    cmd->sent = true;
    cmd->via = c;
    cmd->born = c->born;
    mo_list_push(&c->sent, &cmd->node);
    mo_loop_defer(c->conf->loop, &c->flush);
}

void mo_rconn_send(struct mo_rconn *c, struct mo_rcmd *cmd)
{
    MO_BUG_ON(cmd->conn);
    cmd->conn = c;
    cmd->sent = false;
    if (c->state == MO_RCONN_UP)
        send_now(c, cmd);
    else
        mo_list_push(&c->waiting, &cmd->node);
}

bool mo_rconn_take_back(struct mo_rcmd *cmd)
{
    if (!cmd->conn || cmd->sent)
        return false;
    mo_list_del(&cmd->node);
    cmd->conn = NULL;
    return true;
}

/* --- the greeting -------------------------------------------------------- */

/* A command of the greeting: its reply is awaited. */
#define GREET(c, ...) (PUT_WORDS(&(c)->out, __VA_ARGS__), (c)->greetings++)

/* Several hosts are one cluster, not several databases; a master is no
 * replica. A server that is not what it should be answers with an error; one
 * that lacks replicas is a master. ROLE and CLUSTER would tell too, but are not
 * for every account. */
static void greet_seed(struct mo_rconn *c)
{
    if (c->conf->master[0] && !c->cb->on_message)
        GREET(c, "DEL", "mcp:role");
    else if (c->conf->nseeds > 1 && !c->conf->master[0])
        GREET(c, "READWRITE");
}

static void send_greeting(struct mo_rconn *c)
{
    const struct mo_rconf *f = c->conf;
    char db[24];

    c->state = MO_RCONN_GREETING;
    c->greetings = 0;
    c->loaded = 0;
    if (f->password && f->user)
        GREET(c, "AUTH", f->user, f->password);
    else if (f->password)
        GREET(c, "AUTH", f->password);
    if (f->db) {
        (void)snprintf(db, sizeof(db), "%llu", (unsigned long long)f->db);
        GREET(c, "SELECT", db);
    }
    if (c->is_seeded)
        greet_seed(c);
    if (c->cb->on_message) {
        GREET(c, "SUBSCRIBE", c->cb->channel);
    } else {
        GREET(c, "PING");
        for (int i = 0; i < MO_LUA_N; i++)
            GREET(c, "SCRIPT", "LOAD", lua_texts[i]);
    }
    mo_loop_defer(f->loop, &c->flush);
}

static void came_up(struct mo_rconn *c)
{
    struct mo_list go;

    c->state = MO_RCONN_UP;
    c->born++;
    c->lacks_copies = false;
    c->wait_ms = MO_RCONN_WAIT_MIN;
    mo_list_init(&go);
    mo_list_splice(&go, &c->waiting);
    mo_list_drain (cmd, &go, struct mo_rcmd, node)
        send_now(c, cmd);
    if (c->cb->on_message)
        mo_timer_start(c->conf->loop, &c->ping, PING_MS);
    c->cb->on_up(c->ctx, c);
}

/* The replies of SCRIPT LOAD come last, in order; those before them must not
 * be errors. */
static void on_greeting(struct mo_rconn *c, const struct mo_resp *r)
{
    c->greetings--;
    if (r->kind == MO_RESP_ERROR &&
        !mo_span_is(mo_resp_word(r), "NOREPLICAS")) {
        mo_rconn_reset(c, mo_error(MO_EUNAVAIL, "redis: %.*s",
                                   (int)(r->text.n < 160 ? r->text.n : 160),
                                   r->text.p));
        return;
    }
    if (r->kind == MO_RESP_BULK && r->text.n == MO_RCONN_SHA_LEN &&
        c->loaded < MO_LUA_N) {
        memcpy(c->sha[c->loaded], r->text.p, MO_RCONN_SHA_LEN);
        c->sha[c->loaded][MO_RCONN_SHA_LEN] = '\0';
        c->loaded++;
    }
    if (!c->greetings)
        came_up(c);
}

/* --- receiving ----------------------------------------------------------- */

static void on_push(struct mo_rconn *c, const struct mo_resp *r)
{
    if (r->kind == MO_RESP_ARRAY && r->n == 3 &&
        mo_span_is(r->v[0].text, "message"))
        c->cb->on_message(c->ctx, r->v[2].text);
}

static void on_reply(struct mo_rconn *c, const struct mo_resp *r)
{
    struct mo_rcmd *cmd = mo_list_first(&c->sent, struct mo_rcmd, node);

    if (!cmd) {
        mo_rconn_reset(c, mo_error(MO_EUNAVAIL, "redis: %s",
                                   r->kind == MO_RESP_ERROR
                                       ? "the server closed the connection"
                                       : "a reply without a request"));
        return;
    }
    if (cmd->asking) { /* this one was for ASKING */
        cmd->asking = false;
        return;
    }
    mo_list_del(&cmd->node);
    cmd->conn = NULL;
    cmd->on_reply(cmd, r, NULL);
}

static void on_value(struct mo_rconn *c, const struct mo_resp *r)
{
    if (c->state == MO_RCONN_GREETING)
        on_greeting(c, r);
    else if (c->cb->on_message)
        on_push(c, r);
    else
        on_reply(c, r);
}

/* A reply may close the connection, so the state is checked each time. */
static void on_read(void *ctx, char *p, size_t n)
{
    struct mo_rconn *c = ctx;
    const struct mo_resp *r = NULL;
    mo_autoarena struct mo_arena mem = {.cap = TREE_MAX};
    struct mo_err e;
    int rc = mo_resp_feed(&c->in, p, n);

    mo_err_clear(&e);
    if (rc < 0)
        (void)mo_fail(&e, rc, "redis: a reply over the limit");
    mo_timer_stop(c->conf->loop, &c->stall);
    while (rc >= 0 && is_open(c)) {
        rc = mo_resp_next(&c->in, &mem, &r, &e);
        if (rc != 1)
            break;
        on_value(c, r);
        mo_arena_reset(&mem);
    }
    if (!is_open(c))
        return;
    if (rc < 0)
        mo_rconn_reset(c, &e);
    else if (!mo_list_empty(&c->sent) || c->greetings)
        start_stall(c);
}

static void on_drain(void *ctx)
{
    struct mo_rconn *c = ctx;

    if (c->out.len)
        mo_loop_defer(c->conf->loop, &c->flush);
}

/* --- losing it ----------------------------------------------------------- */

static void fail_sent(struct mo_rconn *c)
{
    struct mo_list lost;

    mo_list_init(&lost);
    mo_list_splice(&lost, &c->sent);
    mo_list_drain (cmd, &lost, struct mo_rcmd, node) {
        cmd->conn = NULL;
        cmd->asking = false;
        cmd->on_reply(cmd, NULL, &c->why);
    }
}

static void maybe_gone(struct mo_rconn *c)
{
    struct mo_gone gone = c->gone;

    if (!c->closing || c->dial || c->ask || c->stream)
        return;
    mo_timer_stop(c->conf->loop, &c->retry);
    mo_timer_stop(c->conf->loop, &c->stall);
    mo_timer_stop(c->conf->loop, &c->ping);
    mo_later_cancel(&c->flush);
    mo_resp_fini(&c->in);
    mo_buf_fini(&c->out);
    mo_free(c);
    mo_gone_fire(gone);
}

static void retry_later(struct mo_rconn *c)
{
    uint64_t ms = c->wait_ms / 2 + mo_random_u64() % (c->wait_ms + 1);

    c->wait_ms *= 2;
    if (c->wait_ms > MO_RCONN_WAIT_MAX)
        c->wait_ms = MO_RCONN_WAIT_MAX;
    mo_timer_start(c->conf->loop, &c->retry, ms);
}

/* Tears down the old connection completely; c->why is set. */
static void went_down(struct mo_rconn *c)
{
    c->state = MO_RCONN_DOWN;
    c->why.code = MO_EUNAVAIL;
    c->greetings = 0;
    mo_timer_stop(c->conf->loop, &c->stall);
    mo_timer_stop(c->conf->loop, &c->ping);
    mo_resp_fini(&c->in);
    mo_buf_fini(&c->out);
    if (c->closing) {
        maybe_gone(c);
        return;
    }
    retry_later(c);
    fail_sent(c);
    if (c->cb->on_down)
        c->cb->on_down(c->ctx, c, &c->why);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_rconn *c = ctx;

    c->stream = NULL;
    if (why)
        c->why = *why;
    else
        (void)mo_fail(&c->why, MO_EUNAVAIL,
                      "redis: the server closed the connection");
    went_down(c);
}

void mo_rconn_reset(struct mo_rconn *c, const struct mo_err *why)
{
    c->state = MO_RCONN_DOWN; /* commands sent from now on wait */
    if (c->stream)
        mo_stream_close(c->stream, why);
}

static void on_stall(struct mo_timer *t)
{
    struct mo_rconn *c = mo_container_of(t, struct mo_rconn, stall);

    mo_rconn_reset(c, mo_error(MO_EUNAVAIL, "redis: no answer in %llu ms",
                               (unsigned long long)c->conf->stall_ms));
}

/* Sent only to notice a dead server. */
static void on_ping(struct mo_timer *t)
{
    struct mo_rconn *c = mo_container_of(t, struct mo_rconn, ping);

    PUT_WORDS(&c->out, "PING");
    mo_loop_defer(c->conf->loop, &c->flush);
    mo_timer_start(c->conf->loop, &c->ping, PING_MS);
}

/* --- dialling ------------------------------------------------------------ */

static void use_stream(struct mo_rconn *c, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {
        .on_read = on_read, .on_drain = on_drain, .on_close = on_close};

    c->stream = s;
    mo_resp_init(&c->in, REPLY_MAX);
    mo_buf_init(&c->out, MO_RCONN_QUEUE_MAX * 2);
    mo_stream_limit(s, MO_RCONN_QUEUE_MAX);
    mo_stream_attach(s, &cb, c);
    send_greeting(c);
}

static void on_dialled(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    struct mo_rconn *c = ctx;
    const char *name = c->at.host[0] ? c->at.host : NULL;
    int rc = 0;

    c->dial = NULL;
    if (s && c->closing) {
        mo_stream_close(s, NULL);
        s = NULL;
    }
    if (s) /* a write that was given up must not happen minutes later */
        mo_stream_drop_unsent(s);
    if (s && c->conf->tls)
        rc = mo_tls_wrap(c->conf->tls, s, false, name, &s, &c->why);
    if (s && rc == 0) {
        use_stream(c, s);
        return;
    }
    if (why)
        c->why = *why;
    went_down(c);
}

static void dial_address(struct mo_rconn *c)
{
    if (mo_dial(c->conf->loop, c->at.addr, MO_RCONN_DIAL_MS, on_dialled, c,
                &c->dial, &c->why) < 0)
        went_down(c);
}

static void on_master(void *ctx, const struct mo_rtarget *master,
                      const struct mo_err *why)
{
    struct mo_rconn *c = ctx;

    c->ask = NULL;
    if (why)
        c->why = *why;
    if (why || c->closing) {
        went_down(c);
        return;
    }
    c->at = *master;
    dial_address(c);
}

static void dial_server(struct mo_rconn *c)
{
    const struct mo_rconf *f = c->conf;
    const struct mo_rtarget *seed = &f->seeds[c->seed];

    c->state = MO_RCONN_DIALLING;
    if (c->is_seeded)
        c->seed = (c->seed + 1) % f->nseeds;
    if (c->is_seeded && f->master[0]) {
        if (mo_sentinel_ask(f, seed, on_master, c, &c->ask, &c->why) < 0)
            went_down(c);
        return;
    }
    if (c->is_seeded)
        c->at = *seed;
    dial_address(c);
}

static void on_retry(struct mo_timer *t)
{
    dial_server(mo_container_of(t, struct mo_rconn, retry));
}

/* Dials later: dialling here could fail and call back from inside this call. */
struct mo_rconn *mo_rconn_new(const struct mo_rconf *conf,
                              const struct mo_rtarget *at,
                              const struct mo_rconn_cb *cb, void *ctx)
{
    struct mo_rconn *c = mo_new(struct mo_rconn);

    if (!c)
        return NULL;
    c->conf = conf;
    c->cb = cb;
    c->ctx = ctx;
    c->wait_ms = MO_RCONN_WAIT_MIN;
    c->is_seeded = !at;
    c->at = at ? *at : conf->seeds[0];
    mo_list_init(&c->waiting);
    mo_list_init(&c->sent);
    mo_timer_init(&c->retry, on_retry);
    mo_timer_init(&c->stall, on_stall);
    mo_timer_init(&c->ping, on_ping);
    mo_later_init(&c->flush, on_flush);
    mo_timer_start(conf->loop, &c->retry, 0);
    return c;
}

bool mo_rconn_is_idle(const struct mo_rconn *c)
{
    return c->state == MO_RCONN_DOWN && !c->stream && !c->is_seeded &&
           mo_list_empty(&c->waiting) && mo_list_empty(&c->sent);
}

void mo_rconn_point(struct mo_rconn *c, const struct mo_rtarget *at)
{
    MO_BUG_ON(!mo_rconn_is_idle(c));
    c->at = *at;
    c->wait_ms = MO_RCONN_WAIT_MIN;
    mo_timer_start(c->conf->loop, &c->retry, 0);
}

void mo_rconn_close(struct mo_rconn *c, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(!mo_list_empty(&c->waiting) || !mo_list_empty(&c->sent));
    c->closing = true;
    c->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(c->conf->loop, &c->retry);
    if (c->stream)
        mo_stream_close(c->stream, NULL);
    else if (c->ask)
        mo_sentinel_cancel(c->ask);
    else if (c->dial)
        mo_dial_cancel(c->dial);
    else
        maybe_gone(c);
}
