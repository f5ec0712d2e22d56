/* redis.c - the store in Redis: servers, routing, and the life of an
 * operation.
 *
 * The first server is one of those in the URL, or the master that a sentinel
 * names (rconn.h). If it answers MOVED, it is a cluster: the slot is remembered
 * with the server that was named. When a server is lost, its slots are
 * forgotten and their calls go to the first server again, which knows the new
 * owner. ASK is followed for one call.
 *
 * A call whose connection broke is repeated if that is harmless: reads, and
 * leases (their token makes them the same attempt). A batch is not repeated,
 * and nothing is counted twice; the caller gets MO_EUNAVAIL with an unknown
 * outcome. */
#include <stdio.h>
#include <stdlib.h>

#include "codec/http/url.h"
#include "store/redis_priv.h"

#define ROOM      "store"
#define BODY_MAX  (4 * MO_STORE_BATCH_BYTES)
#define COPIES_MS ((uint64_t)500)
#define PROBE_MS  ((uint64_t)100)  /* where replicas were missing, a write */
#define PROBES_MS ((uint64_t)1000) /* waits that long, once in this time */
#define LEAVE_MS  ((uint64_t)2000) /* between looks for another master */

static struct mo_redis *from_store(struct mo_store *s)
{
    return mo_container_of(s, struct mo_redis, s);
}

bool mo_resp_u64(const struct mo_resp *r, uint64_t *out)
{
    if (r->kind == MO_RESP_NUMBER) {
        *out = (uint64_t)r->number;
        return r->number >= 0;
    }
    return r->kind == MO_RESP_BULK && mo_span_u64(r->text, out) == 0;
}

/* --- slots --------------------------------------------------------------- */

/* CRC16 (XMODEM), as specified by Redis Cluster. */
static unsigned slot_of(struct mo_span tag)
{
    unsigned crc = 0;

    for (size_t i = 0; i < tag.n; i++) {
        crc ^= (unsigned)(unsigned char)tag.p[i] << 8;
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1;
        crc &= 0xffff;
    }
    return crc % MO_REDIS_SLOTS;
}

static struct mo_rconn *node_of(const struct mo_redis *r, unsigned slot)
{
    return r->nodes[r->slots ? r->slots[slot] : 0];
}

static void on_node_up(void *ctx, struct mo_rconn *c);
static void on_node_down(void *ctx, struct mo_rconn *c,
                         const struct mo_err *why);

static const struct mo_rconn_cb node_cb = {.on_up = on_node_up,
                                           .on_down = on_node_down};

/* A place for another node; -1: none. A server that is gone gives its place
 * up: in a cluster of containers addresses change. */
static int free_place(struct mo_redis *r, const struct mo_rtarget *at)
{
    if (r->nnodes < MO_REDIS_NODES_MAX) {
        r->nodes[r->nnodes] = mo_rconn_new(&r->conf, at, &node_cb, r);
        return r->nodes[r->nnodes] ? (int)r->nnodes++ : -1;
    }
    for (unsigned i = 1; i < r->nnodes; i++) {
        if (mo_rconn_is_idle(r->nodes[i])) {
            mo_rconn_point(r->nodes[i], at);
            return (int)i;
        }
    }
    return -1;
}

/* The node with that address; -1: no room or memory for it. */
static int node_at(struct mo_redis *r, const struct mo_rtarget *at)
{
    for (unsigned i = 0; i < r->nnodes; i++) {
        if (strcmp(r->nodes[i]->at.addr, at->addr) == 0)
            return (int)i;
    }
    return free_place(r, at);
}

/* "10.0.0.1:6381"; ":6381" is the same host. Redis writes IPv6 addresses
 * without brackets: "::1:6381". */
static void read_address(const struct mo_redis *r, struct mo_span text,
                         struct mo_rtarget *at)
{
    const char *here = r->nodes[0]->at.host;
    struct mo_span host = mo_span_head(text, sizeof(at->host));
    struct mo_span port;
    bool bare;

    while (host.n && host.p[host.n - 1] != ':')
        host.n--;
    port = mo_span_skip(mo_span_head(text, sizeof(at->host)), host.n);
    host.n -= host.n > 0;
    if (!host.n)
        host = mo_span_cstr(here[0] ? here : "127.0.0.1");
    bare = host.p[0] != '[' && mo_span_find(host, ':') >= 0;
    (void)snprintf(at->addr, sizeof(at->addr), "%s%.*s%s:%.*s", bare ? "[" : "",
                   (int)host.n, host.p, bare ? "]" : "", (int)port.n, port.p);
}

/* "3999 10.0.0.1:6381", behind MOVED or ASK. */
static int named_node(struct mo_redis *r, struct mo_span rest, unsigned *slot)
{
    struct mo_rtarget at;
    struct mo_span number = mo_span_cut(&rest, ' ');
    struct mo_host h;
    uint64_t n = 0;

    if (mo_span_u64(number, &n) < 0 || n >= MO_REDIS_SLOTS || !rest.p)
        return -1;
    *slot = (unsigned)n;
    read_address(r, rest, &at);
    if (mo_host_parse(mo_span_cstr(at.addr), 0, &h) < 0 || !h.port ||
        h.name.n >= sizeof(at.host))
        return -1;
    (void)snprintf(at.host, sizeof(at.host), "%.*s", (int)h.name.n, h.name.p);
    return node_at(r, &at);
}

static bool learn_slot(struct mo_redis *r, unsigned slot, int node)
{
    if (!r->slots)
        r->slots = mo_zalloc(MO_REDIS_SLOTS);
    if (r->slots)
        r->slots[slot] = (uint8_t)node;
    return r->slots != NULL;
}

/* --- an operation -------------------------------------------------------- */

static void rop_free(struct mo_rop *o)
{
    mo_list_drain (k, &o->calls, struct mo_rcall, node) {
        mo_buf_fini(&k->cmd.body);
        mo_free(k);
    }
    mo_list_del(&o->node);
    mo_free(o);
}

/* A batch and a lease look at their calls again (await_copies()). */
static void forget_call(struct mo_rcall *k)
{
    enum mo_op_kind kind = k->o->op->kind;

    if (kind != MO_OP_READ && kind != MO_OP_INDEX)
        return;
    mo_list_del(&k->node);
    mo_buf_fini(&k->cmd.body);
    mo_free(k);
}

/* No call is under way: run the next step, or finish. */
static void step_or_finish(struct mo_rop *o)
{
    struct mo_op *op = o->op;

    while (!o->out && !op->err.code && !op->answered && o->step)
        o->step(o);
    if (o->out)
        return;
    rop_free(o);
    op->back = NULL;
    mo_op_finish_later(op);
}

bool mo_rop_fail(struct mo_rop *o, int code, const char *fmt, ...)
{
    va_list ap;

    if (o->op->err.code)
        return false;
    o->op->err.code = code;
    va_start(ap, fmt);
    (void)vsnprintf(o->op->err.msg, sizeof(o->op->err.msg), fmt, ap);
    va_end(ap);
    return false;
}

bool mo_rop_keep(struct mo_rop *o, struct mo_span from, struct mo_span *to)
{
    return mo_arena_span(&o->op->mem, from, to) == 0 ||
           mo_rop_fail(o, MO_ENOMEM, "store: answer");
}

/* --- calls --------------------------------------------------------------- */

static void on_reply(struct mo_rcmd *cmd, const struct mo_resp *r,
                     const struct mo_err *why);

struct mo_rcall *mo_rcall_new(struct mo_rop *o, int script,
                              struct mo_span route, mo_rgot *got, size_t tag)
{
    struct mo_rcall *k = mo_new(struct mo_rcall);

    if (!k)
        return mo_null(mo_rop_fail(o, MO_ENOMEM, "store: redis"));
    k->o = o;
    k->got = got;
    k->tag = tag;
    k->slot = slot_of(route);
    k->cmd.script = script;
    k->cmd.on_reply = on_reply;
    mo_list_init(&k->cmd.node);
    mo_buf_init(&k->cmd.body, BODY_MAX);
    mo_list_push(&o->calls, &k->node);
    return k;
}

static void put_key(struct mo_rcall *k, const char *prefix, struct mo_span id)
{
    char key[MO_STORE_ID_MAX + 40];
    int n = snprintf(key, sizeof(key), "%s{%.*s}", prefix, (int)id.n,
                     id.n ? id.p : "");

    mo_resp_put(&k->cmd.body, mo_span(key, (size_t)n));
    /* "{}" is no tag: then the whole name counts */
    if (!id.n)
        k->slot = slot_of(mo_span(key, (size_t)n));
}

static void put_args(struct mo_rcall *k, const char *fmt, va_list ap)
{
    struct mo_buf *b = &k->cmd.body;

    for (; *fmt; fmt++, k->cmd.nargs++) {
        if (*fmt == 's') {
            mo_resp_put(b, mo_span_cstr(va_arg(ap, const char *)));
        } else if (*fmt == 't') {
            mo_resp_put(b, va_arg(ap, struct mo_span));
        } else if (*fmt == 'i') {
            mo_resp_put_u64(b, va_arg(ap, uint64_t));
        } else {
            const char *prefix = va_arg(ap, const char *);

            put_key(k, prefix, va_arg(ap, struct mo_span));
        }
    }
}

void mo_rcall_put(struct mo_rcall *k, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    if (k)
        put_args(k, fmt, ap);
    va_end(ap);
}

/* To the present owner of its slot. */
static void send_call(struct mo_rcall *k)
{
    mo_rconn_send(node_of(k->o->r, k->slot), &k->cmd);
}

void mo_rcall_go(struct mo_rcall *k)
{
    if (!k)
        return;
    if (mo_buf_err(&k->cmd.body)) {
        mo_rop_fail(k->o, MO_ENOMEM, "store: redis");
        return;
    }
    k->o->out++;
    send_call(k);
}

void mo_rcall(struct mo_rop *o, int script, struct mo_span route, mo_rgot *got,
              size_t tag, const char *fmt, ...)
{
    struct mo_rcall *k = mo_rcall_new(o, script, route, got, tag);
    va_list ap;

    va_start(ap, fmt);
    if (k)
        put_args(k, fmt, ap);
    va_end(ap);
    mo_rcall_go(k);
}

/* Follows MOVED and ASK; false: it is not possible. */
static bool follow_redirect(struct mo_rcall *k, struct mo_span text, bool ask)
{
    struct mo_redis *r = k->o->r;
    unsigned slot = 0;
    int node;

    (void)mo_span_cut(&text, ' ');
    node =
        text.p && k->hops < MO_REDIS_HOPS_MAX ? named_node(r, text, &slot) : -1;
    if (node < 0 || (!ask && !learn_slot(r, slot, node)))
        return false;
    k->hops++;
    k->cmd.asking = ask;
    mo_rconn_send(r->nodes[node], &k->cmd);
    return true;
}

/* True if a later batch of this session was sent already. */
static bool is_overtaken(const struct mo_rcall *k)
{
    const struct mo_rop *o = k->o;

    for (struct mo_list *it = o->node.next; it != &o->r->ops; it = it->next) {
        const struct mo_rop *later = mo_container_of(it, struct mo_rop, node);

        if (later->op->kind == MO_OP_WRITE && later->out &&
            mo_span_eq(later->op->batch.session, o->op->batch.session))
            return true;
    }
    return false;
}

/* True: the server refuses because it is cut off from the others, and it is
 * time to ask them who is the master. It may go on to be the only one. A slot
 * that nobody serves is no reason: the others work. */
static bool is_left(const struct mo_redis *r, struct mo_rconn *c,
                    const struct mo_resp *error)
{
    const struct mo_span down = MO_SPAN("CLUSTERDOWN The cluster is down");
    uint64_t now = mo_now_ns();
    bool alone = r->conf.master[0]
                     ? mo_span_is(mo_resp_word(error), "NOREPLICAS")
                     : mo_span_starts(error->text, down);

    if (!alone || now - c->left_ns < LEAVE_MS * MO_MS)
        return false;
    c->left_ns = now;
    return true;
}

/* True: the call was sent again. */
static bool on_error(struct mo_rcall *k, const struct mo_resp *r)
{
    struct mo_rop *o = k->o;
    struct mo_span word = mo_resp_word(r);
    struct mo_rconn *c = k->cmd.via;
    struct mo_err e;

    if ((mo_span_is(word, "MOVED") || mo_span_is(word, "ASK")) &&
        follow_redirect(k, r->text, mo_span_is(word, "ASK")))
        return true;
    /* the script is unknown: it did not run */
    if (mo_span_is(word, "NOSCRIPT") && !k->cmd.whole &&
        (o->op->kind != MO_OP_WRITE || !is_overtaken(k))) {
        k->cmd.whole = true;
        send_call(k);
        return true;
    }
    mo_rop_fail(o, MO_EUNAVAIL, "store: redis: %.*s",
                (int)(r->text.n < 180 ? r->text.n : 180), r->text.p);
    e = o->op->err;
    /* a replica now: the name may lead to another server soon */
    if (mo_span_is(word, "READONLY") || is_left(o->r, c, r))
        mo_rconn_reset(c, &e);
    mo_store_down(&o->r->s, &e);
    return false;
}

static void on_reply(struct mo_rcmd *cmd, const struct mo_resp *r,
                     const struct mo_err *why)
{
    struct mo_rcall *k = mo_container_of(cmd, struct mo_rcall, cmd);
    struct mo_rop *o = k->o;

    if (!r && o->op->kind != MO_OP_WRITE && !o->op->answered && !k->once) {
        send_call(k);
        return;
    }
    if (!r)
        mo_rop_fail(o, MO_EUNAVAIL, "store: %s", why->msg);
    else if (r->kind == MO_RESP_ERROR) {
        if (on_error(k, r))
            return;
    } else {
        if (o->op->kind != MO_OP_VERSION) /* that one says more */
            mo_store_up(&o->r->s);
        o->tag = k->tag;
        if (k->got && !o->op->err.code && !k->got(o, r))
            mo_rop_fail(o, MO_EUNAVAIL,
                        "store: redis gave an answer that makes no "
                        "sense; who else writes to its mcp: keys?");
    }
    o->out--;
    forget_call(k);
    step_or_finish(o);
}

/* --- copies --------------------------------------------------------------- */

/* o->tag is the number of the node. */
static bool take_copies(struct mo_rop *o, const struct mo_resp *r, bool brief)
{
    struct mo_rconn *c = o->r->nodes[o->tag];
    uint64_t n = 0;

    if (!mo_resp_u64(r, &n))
        return false;
    /* of a brief one it was known; a longer one may know better by now */
    c->lacks_copies = n < o->r->copies && (!brief || c->lacks_copies);
    return n >= o->r->copies ||
           mo_rop_fail(o, MO_EUNAVAIL,
                       "store: redis: %llu of %u replicas have it in time",
                       (unsigned long long)n, o->r->copies);
}

static bool on_copies(struct mo_rop *o, const struct mo_resp *r)
{
    return take_copies(o, r, false);
}

static bool on_copies_now(struct mo_rop *o, const struct mo_resp *r)
{
    return take_copies(o, r, true);
}

/* How long a write waits for its replicas, in ms. */
static uint64_t copies_ms(struct mo_rconn *c)
{
    uint64_t now = mo_now_ns();

    if (!c->lacks_copies)
        return COPIES_MS;
    if (now - c->probed_ns < PROBES_MS * MO_MS)
        return 1;
    c->probed_ns = now;
    return PROBE_MS;
}

static bool is_awaited(const struct mo_rop *o, const struct mo_rconn *c)
{
    mo_list_each_entry (k, &o->calls, struct mo_rcall, node) {
        if (k->once && k->cmd.via == c)
            return true;
    }
    return false;
}

/* WAIT counts the writes of its own connection. So it must follow them on the
 * same one: on a later connection it would say yes to anything. It also holds
 * up all that follows there; so where replicas are missing, only the first
 * write and one a second wait for them. */
static void await_copies(struct mo_rop *o, const struct mo_rcall *k)
{
    struct mo_redis *r = o->r;
    struct mo_rconn *c = k->cmd.via;
    uint64_t ms = copies_ms(c);
    struct mo_rcall *w;
    size_t node = 0;

    while (r->nodes[node] != c)
        node++;
    w = mo_rcall_new(o, -1, MO_SPAN(""), ms > 1 ? on_copies : on_copies_now,
                     node);
    mo_rcall_put(w, "sii", "WAIT", (uint64_t)r->copies, ms);
    if (!w || mo_buf_err(&w->cmd.body)) {
        mo_rop_fail(o, MO_ENOMEM, "store: redis");
        return;
    }
    w->once = true;
    w->slot = k->slot;
    o->out++;
    mo_rconn_send(c, &w->cmd);
}

void mo_rop_await_copies(struct mo_rop *o)
{
    o->step = NULL;
    mo_list_each_entry_safe (k, &o->calls, struct mo_rcall, node) {
        const struct mo_rconn *c = k->cmd.via;

        if (k->once || is_awaited(o, c))
            continue;
        if (c->state != MO_RCONN_UP || c->born != k->cmd.born)
            mo_rop_fail(o, MO_EUNAVAIL,
                        "store: the connection broke before replicas had it");
        else
            await_copies(o, k);
    }
}

/* --- an index, page by page ---------------------------------------------- */

void mo_redis_ask_page(struct mo_rop *o, const char *command, const char *index,
                       const char *from, const char *to, mo_rgot *got)
{
    mo_rcall(o, -1, mo_span_cstr(index), got, 0, "ssssssii", command, index,
             from, to, "WITHSCORES", "LIMIT", (uint64_t)o->next,
             (uint64_t)o->page);
}

bool mo_redis_page(struct mo_rop *o, const struct mo_resp *r)
{
    size_t n = r->n / 2;

    o->nids = 0;
    if (r->kind != MO_RESP_ARRAY)
        return false;
    o->ids = mo_arena_alloc(&o->op->mem, (n + 1) * sizeof(*o->ids));
    o->scores = mo_arena_alloc(&o->op->mem, (n + 1) * sizeof(*o->scores));
    if (!o->ids || !o->scores)
        return mo_rop_fail(o, MO_ENOMEM, "store: answer");
    for (; o->nids < n; o->nids++) {
        struct mo_span score;

        if (!mo_rop_keep(o, r->v[2 * o->nids].text, &o->ids[o->nids]) ||
            !mo_rop_keep(o, r->v[2 * o->nids + 1].text, &score))
            return false;
        o->scores[o->nids] = strtod(score.p, NULL);
    }
    o->last_page = n < o->page;
    o->next += n;
    return true;
}

/* --- the backend's calls ------------------------------------------------- */

static void redis_submit(struct mo_store *s, struct mo_op *op)
{
    struct mo_redis *r = from_store(s);
    struct mo_rids *ids = op->back;
    struct mo_rop *o;

    if (!mo_redis_version_pass(r, op))
        return;
    o = mo_new(struct mo_rop);
    if (!o) {
        (void)mo_fail(&op->err, MO_ENOMEM, "store: redis");
        mo_op_finish_later(op);
        return;
    }
    o->r = r;
    o->op = op;
    op->back = NULL;
    mo_list_init(&o->calls);
    mo_list_push(&r->ops, &o->node);
    if (op->kind == MO_OP_WRITE)
        mo_redis_write(o);
    else if (op->kind == MO_OP_READ)
        mo_redis_read(o);
    else if (op->kind == MO_OP_SWEEP)
        mo_redis_sweep(o);
    else if (op->kind == MO_OP_COUNT)
        mo_redis_count(o);
    else if (op->kind == MO_OP_INDEX)
        mo_redis_index(o, ids);
    else if (op->kind == MO_OP_VERSION)
        mo_redis_version(o);
    else
        mo_redis_lease(o);
    if (!o->out)
        step_or_finish(o);
}

/* Drops the calls that were not sent yet. */
static void redis_give_up(struct mo_store *s, struct mo_op *op)
{
    struct mo_redis *r = from_store(s);

    if (mo_redis_version_drop(r, op))
        return;
    mo_list_each_entry (o, &r->ops, struct mo_rop, node) {
        if (o->op != op)
            continue;
        mo_list_each_entry (k, &o->calls, struct mo_rcall, node)
            if (mo_rconn_take_back(&k->cmd))
                o->out--;
        if (!o->out)
            step_or_finish(o);
        return;
    }
}

/* --- up and down --------------------------------------------------------- */

static void on_node_up(void *ctx, struct mo_rconn *c)
{
    struct mo_redis *r = ctx;

    if (c != r->nodes[0])
        return;
    if (r->was_up)
        r->s.health.reconnects++;
    r->was_up = true;
    if (r->version.state != MO_RVERSION_BAD)
        mo_store_up(&r->s);
}

/* Calls that waited for a lost server go to the first one. */
static void reroute(struct mo_redis *r, struct mo_rconn *c)
{
    mo_list_each_entry_safe (cmd, &c->waiting, struct mo_rcmd, node)
        if (mo_rconn_take_back(cmd))
            mo_rconn_send(r->nodes[0], cmd);
}

static void on_node_down(void *ctx, struct mo_rconn *c,
                         const struct mo_err *why)
{
    struct mo_redis *r = ctx;

    for (unsigned i = 0; r->slots && i < MO_REDIS_SLOTS; i++) {
        if (r->nodes[r->slots[i]] == c)
            r->slots[i] = 0;
    }
    if (c != r->nodes[0])
        reroute(r, c);
    else {
        mo_redis_version_lost(r);
        mo_store_down(&r->s, why);
    }
}

/* Releases were missed while the connection was down. */
static void on_ear_up(void *ctx, struct mo_rconn *c)
{
    struct mo_redis *r = ctx;

    (void)c;
    mo_lease_wake_if(&r->s, NULL, NULL);
}

static void on_wake(void *ctx, struct mo_span name)
{
    struct mo_redis *r = ctx;

    mo_lease_wake(&r->s, name);
}

static void redis_listen(struct mo_store *s)
{
    static const struct mo_rconn_cb cb = {
        .on_up = on_ear_up, .on_message = on_wake, .channel = MO_REDIS_WAKE};
    struct mo_redis *r = from_store(s);

    if (!r->ear)
        r->ear = mo_rconn_new(&r->conf, NULL, &cb, r);
}

/* --- the end ------------------------------------------------------------- */

static void free_rest(struct mo_redis *r)
{
    mo_redis_url_fini(&r->conf);
    mo_free(r->slots);
    mo_redis_index_stop(r);
    mo_store_gone(&r->s);
}

static void on_conn_gone(void *ctx)
{
    struct mo_redis *r = ctx;

    r->closing--;
    if (!r->closing)
        free_rest(r);
}

static void redis_close(struct mo_store *s)
{
    struct mo_redis *r = from_store(s);
    struct mo_rconn *ear = r->ear;
    unsigned n = r->nnodes;

    r->closing = n + (ear ? 1 : 0);
    if (ear)
        mo_rconn_close(ear, on_conn_gone, r);
    for (unsigned i = 0; i < n; i++) /* r lives until the last of them */
        mo_rconn_close(r->nodes[i], on_conn_gone, r);
}

/* --- birth --------------------------------------------------------------- */

static const struct mo_store_ops redis_ops = {
    .name = "redis",
    .is_shared = true,
    .submit = redis_submit,
    .listen = redis_listen,
    .give_up = redis_give_up,
    .close = redis_close,
};

int mo_redis_open(struct mo_loop *l, const struct mo_store_opts *o,
                  struct mo_store **out, struct mo_err *e)
{
    struct mo_redis *r = mo_new(struct mo_redis);
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "store");
    mo_store_init(&r->s, &redis_ops, l, o);
    mo_list_init(&r->ops);
    r->conf.loop = l;
    r->conf.stall_ms = r->s.deadline_ms;
    r->copies = o->replicas;
    mo_redis_index_init(r, o);
    mo_redis_version_init(r);
    rc = mo_redis_url(&r->conf, o, e);
    if (rc == 0 && free_place(r, NULL) < 0)
        rc = mo_fail(e, MO_ENOMEM, "store");
    if (rc < 0) {
        free_rest(r);
        return rc;
    }
    *out = &r->s;
    return 0;
}
