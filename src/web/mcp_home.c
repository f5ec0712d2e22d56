#include <stdio.h>

#include "codec/http/sse.h"
#include "codec/json/json.h"
#include "codec/rpc.h"
#include "codec/sha256.h"
#include "config/keys.h"
#include "web/mcp_home_priv.h"

#define PAUSE_MS 250 /* an instance that lives and cannot be reached */
/* Longer than the lease of one that has died. */
#define WAIT_NS  ((MO_LEASE_TTL_MS + 5000) * UINT64_C(1000000))

/* One request, until it is passed on or its session is here. */
struct search {
    struct mo_list node;
    struct mo_mcp_home *h;
    struct mo_req *rq; /* NULL: the client has gone */
    struct mo_buf id, body, plain;
    struct mo_ep_id was;
    char mark[sizeof(MCP_MARK) + MO_SHA256_HEX];
    char target[MO_INSTANCE_MAX]; /* where it should be */
    char dead[MO_INSTANCE_MAX];   /* and was found to be gone; or "" */
    bool relayed;                 /* another process thinks that it is here */
    bool sealed;                  /* the id is not read yet: there is no key */
    char view[MO_KEY_NAME_MAX + 1]; /* of the request; "": none */
    const char *gone;               /* modern: the error then; else NULL */
    struct mo_lease *lease;
    struct mo_timer timer;
    uint64_t since; /* ns: when it was first out of reach; 0: never */
};

static void settle(struct mo_mcp_home *h)
{
    if (h->closing && h->pending == 0)
        mo_loop_defer(h->o.loop, &h->later);
}

void mo_mcp_home_op_ended(struct mo_mcp_home *h)
{
    h->pending--;
    settle(h);
}

int mo_mcp_home_write(struct mo_mcp_home *h, struct mo_span id,
                      struct mo_span doc, mo_mcp_home_written *done, void *ctx,
                      struct mo_err *e)
{
    const struct mo_write w = {.kind = MO_WRITE_MARK, .id = id, .doc = doc};
    const struct mo_store_batch b = {.writes = &w, .n = 1};

    return mo_store_write(h->o.store, &b, done, ctx, e);
}

static void name_mark(struct mo_span id,
                      char out[sizeof(MCP_MARK) + MO_SHA256_HEX])
{
    char digest[MO_SHA256_HEX + 1];

    mo_sha256_hex(id, digest);
    (void)snprintf(out, sizeof(MCP_MARK) + MO_SHA256_HEX, MCP_MARK "%s",
                   digest);
}

/* --- where instances listen ----------------------------------------------- */

static struct known *find_known(struct mo_mcp_home *h, const char *instance)
{
    for (size_t i = 0; i < MCP_KNOWN_MAX; i++)
        if (strcmp(h->known[i].instance, instance) == 0)
            return &h->known[i];
    return NULL;
}

static void learn(struct mo_mcp_home *h, const struct mo_other *o)
{
    struct known *k = find_known(h, o->instance);

    if (!k)
        k = &h->known[h->next_known++ % MCP_KNOWN_MAX];
    (void)snprintf(k->instance, sizeof(k->instance), "%s", o->instance);
    (void)snprintf(k->path, sizeof(k->path), "%s", o->path);
}

/* --- the end of a search -------------------------------------------------- */

static void search_free(struct search *s)
{
    struct mo_mcp_home *h = s->h;

    if (s->lease)
        mo_lease_drop(mo_take_ptr(&s->lease));
    if (s->rq) {
        s->rq->data = NULL;
        s->rq->gone = NULL;
    }
    mo_timer_stop(h->o.loop, &s->timer);
    mo_list_del(&s->node);
    mo_buf_fini(&s->id);
    mo_buf_fini(&s->body);
    mo_buf_fini(&s->plain);
    mo_free(s);
    mo_mcp_home_op_ended(h);
}

static struct mo_span id_of(const struct search *s)
{
    struct mo_rpc m;

    if (s->body.len && mo_rpc_parse(mo_buf_view(&s->body), &m, NULL) == 0 &&
        m.kind == MO_RPC_REQUEST)
        return mo_json_text(m.id);
    return MO_SPAN("null");
}

static void put_error(const struct search *s, int code, const char *why,
                      struct mo_buf *b)
{
    (void)mo_rpc_put_error(b, id_of(s), code, mo_span_cstr(why),
                           mo_span(NULL, 0));
}

static void refuse(struct search *s, int status, int code, const char *why)
{
    mo_autobuf struct mo_buf b = {.max = 4096};

    put_error(s, code, why, &b);
    if (s->rq && status == 503)
        mo_req_header(s->rq, "Retry-After", MO_SPAN("1"));
    if (s->rq)
        mo_req_reply(s->rq, status, "application/json", mo_buf_view(&b));
    search_free(s);
}

static void not_found(struct search *s)
{
    if (s->gone)
        refuse(s, 200, MO_RPC_INVALID_PARAMS, s->gone);
    else
        refuse(s, 404, -32001, "Session not found");
}

static void unavailable(struct search *s, const struct mo_err *why)
{
    mo_log_err(mo_loop_log(s->h->o.loop), MO_WARN, "mcp", why,
               "cannot find a session, call or task of another process");
    refuse(s, 503, -32000,
           s->gone ? "the server that has this cannot be reached now"
                   : "the session cannot be reached now");
}

/* The session is here, or was: then the client gets 404. */
static void handle_here(struct search *s)
{
    struct mo_mcp_home *h = s->h;
    struct mo_ep_http *door = h->o.door(h->o.ctx, s->was.view);
    struct mo_req *rq = mo_take_ptr(&s->rq);

    if (rq && door) {
        rq->data = NULL;
        rq->gone = NULL;
        h->again = true;
        mo_ep_http_again(door, rq, mo_buf_view(&s->body));
        h->again = false;
    } else {
        s->rq = rq;
        not_found(s);
        return;
    }
    search_free(s);
}

/* --- moving it here ------------------------------------------------------- */

static bool is_here(const struct search *s)
{
    struct mo_ep_http *door = s->h->o.door(s->h->o.ctx, s->was.view);

    return door && mo_ep_http_has(door, mo_buf_view(&s->id));
}

static void begin_here(struct search *s)
{
    struct mo_ep_http *door = s->h->o.door(s->h->o.ctx, s->was.view);

    if (door && mo_ep_http_revive(door, &s->was, mo_buf_view(&s->id)) < 0) {
        refuse(s, 503, -32000, "too many sessions");
        return;
    }
    mo_log(mo_loop_log(s->h->o.loop), MO_INFO, "mcp",
           "a session of instance %s continues here", s->was.instance);
    handle_here(s);
}

static void on_moved(void *ctx, const struct mo_written *w,
                     const struct mo_err *why)
{
    struct search *s = ctx;

    (void)w;
    if (why)
        unavailable(s, why);
    else
        begin_here(s);
}

static void move_here(struct search *s)
{
    mo_autobuf struct mo_buf b = {.max = MCP_DOC_MAX};
    struct mo_jw w = mo_jw_object(&b);
    struct mo_err e;

    if (!s->was.whole || s->was.began + MO_MCP_LIFE_MS < mo_wall_ms()) {
        not_found(s);
        return;
    }
    mo_jw_member_cstr(&w, "to", s->h->o.instance);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    mo_jw_end(&w);
    if (mo_mcp_home_write(s->h, mo_span_cstr(s->mark), mo_buf_view(&b),
                          on_moved, s, &e) < 0)
        unavailable(s, &e);
}

static void look(struct search *s);

static void on_held(void *ctx, struct mo_lease *l, uint64_t fence,
                    const struct mo_err *why)
{
    struct search *s = ctx;

    (void)fence;
    s->lease = why ? NULL : l;
    if (why)
        unavailable(s, why);
    else
        look(s);
}

static void on_lost(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct search *)ctx)->lease = NULL;
}

static void take_lease(struct search *s)
{
    static const struct mo_lease_cb cb = {on_held, on_lost};
    struct mo_err e;

    if (mo_lease_take(s->h->o.store, mo_span_cstr(s->mark),
                      mo_span_cstr(s->h->o.instance), MCP_LEASE_MS, &cb, s,
                      &s->lease, &e) < 0)
        unavailable(s, &e);
}

/* --- looking for it ------------------------------------------------------- */

static void look_at(struct search *s);

/* It is here, or was moved here and the answer of the store did not come: then
 * it begins now. */
static void found_here(struct search *s)
{
    if (is_here(s) || !s->was.whole)
        handle_here(s);
    else if (s->lease)
        begin_here(s);
    else
        take_lease(s);
}

/* The document of the session: *to is where it was moved, or "". False: it has
 * ended. */
static bool read_mark(const struct mo_rows *rows, char to[MO_INSTANCE_MAX])
{
    struct mo_json_doc d;
    bool ended = false;

    to[0] = '\0';
    if (rows->n == 0 || mo_json_parse(rows->v[0].doc, 0, &d, NULL) < 0)
        return true;
    (void)mo_json_bool(mo_json_get(d.root, "ended"), &ended);
    (void)mo_json_str_copy(mo_json_get(d.root, "to"), to, MO_INSTANCE_MAX);
    return !ended;
}

static void on_mark(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct search *s = ctx;
    char to[MO_INSTANCE_MAX];

    if (why) {
        unavailable(s, why);
        return;
    }
    if (!s->rq || !read_mark(rows, to)) {
        not_found(s);
        return;
    }
    (void)snprintf(s->target, sizeof(s->target), "%s",
                   to[0] ? to : s->was.instance);
    if (strcmp(s->target, s->h->o.instance) == 0) {
        found_here(s);
    } else if (s->relayed) {
        unavailable(s, mo_error(MO_EUNAVAIL, "it was moved meanwhile"));
    } else if (strcmp(s->target, s->dead) != 0) {
        if (s->lease)
            mo_lease_drop(mo_take_ptr(&s->lease));
        look_at(s);
    } else if (s->lease) {
        move_here(s);
    } else {
        take_lease(s);
    }
}

static void look(struct search *s)
{
    const struct mo_read r = {.kind = MO_READ_MARK,
                              .id = mo_span_cstr(s->mark)};
    struct mo_err e;

    if (mo_store_read(s->h->o.store, &r, on_mark, s, &e) < 0)
        unavailable(s, &e);
}

static void is_dead(struct search *s)
{
    struct known *k = find_known(s->h, s->target);

    if (k)
        k->instance[0] = '\0';
    if (s->gone) {
        not_found(s);
        return;
    }
    (void)snprintf(s->dead, sizeof(s->dead), "%s", s->target);
    look(s);
}

/* Its process died while it answered. */
static void end_stream(struct search *s, struct mo_req *rq)
{
    mo_autobuf struct mo_buf msg = {.max = 4096}, b = {.max = 8192};
    struct mo_sse_event ev = {.event = MO_SPAN("message")};

    if (mo_span_is(id_of(s), "null")) {
        mo_req_end(rq);
        return;
    }
    put_error(s, -32000,
              "the server that ran this request has ended; the request may "
              "have had an effect",
              &msg);
    ev.data = mo_buf_view(&msg);
    if (mo_sse_put(&b, &ev) == 0)
        (void)mo_req_write(rq, mo_buf_view(&b));
    mo_req_end(rq);
}

static void on_client_gone(struct mo_req *rq)
{
    ((struct search *)rq->data)->rq = NULL;
}

static void keep_request(struct search *s, struct mo_req *rq)
{
    s->rq = rq;
    rq->data = s;
    rq->gone = on_client_gone;
}

static void check_lease(struct search *s);

/* No connection to another machine: its process is dead if the lease says so;
 * else it is tried again. */
static void not_met(struct search *s)
{
    struct known *k = find_known(s->h, s->target);

    if (k)
        k->instance[0] = '\0'; /* it may have another address */
    check_lease(s);
}

static void on_passed(void *ctx, struct mo_req *rq, enum mo_relay_end end,
                      const struct mo_err *why)
{
    struct search *s = ctx;

    (void)why;
    if (rq && end == MO_RELAY_UNMET) {
        keep_request(s, rq);
        not_met(s);
        return;
    }
    if (rq && end == MO_RELAY_UNSENT) {
        keep_request(s, rq);
        is_dead(s);
        return;
    }
    if (rq && end == MO_RELAY_SENT) {
        keep_request(s, rq);
        refuse(s, s->gone ? 200 : 502, -32000,
               "the server that this was passed to has ended; the request may "
               "have had an effect");
        return;
    }
    if (rq && end == MO_RELAY_BEGUN)
        end_stream(s, rq);
    search_free(s);
}

static void pass(struct search *s, const char *path)
{
    struct mo_req *rq = mo_take_ptr(&s->rq);
    struct mo_span body = mo_buf_view(&s->body);
    struct mo_err e;

    if (!rq) {
        search_free(s);
        return;
    }
    rq->data = NULL;
    rq->gone = NULL;
    if (rq->head->method != MO_HTTP_POST)
        body = mo_span(NULL, 0);
    if (mo_relay_pass(s->h->o.relay, path, rq, body, on_passed, s, &e) == 0)
        return;
    keep_request(s, rq);
    unavailable(s, &e);
}

static void read_id(struct search *s);

static void on_pause(struct mo_timer *t)
{
    struct search *s = mo_container_of(t, struct search, timer);

    if (s->sealed)
        read_id(s);
    else
        look_at(s);
}

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct search *s = ctx;

    (void)fence;
    if (!s->since)
        s->since = mo_now_ns();
    if (why)
        unavailable(s, why);
    else if (owner.n == 0)
        is_dead(s);
    else if (mo_now_ns() - s->since < WAIT_NS)
        mo_timer_start(s->h->o.loop, &s->timer, PAUSE_MS);
    else
        unavailable(s, mo_error(MO_EUNAVAIL, "instance %s cannot be reached",
                                s->target));
}

/* It has no address, or does not answer there: does it live? */
static void check_lease(struct search *s)
{
    char lease[sizeof(MO_INSTANCE_LEASE) + MO_INSTANCE_MAX];
    struct mo_err e;

    (void)snprintf(lease, sizeof(lease), MO_INSTANCE_LEASE "%s", s->target);
    if (mo_lease_holder(s->h->o.store, mo_span_cstr(lease), on_holder, s, &e) <
        0)
        unavailable(s, &e);
}

static void on_found(void *ctx, const struct mo_other *v, size_t n,
                     const struct mo_err *why)
{
    struct search *s = ctx;

    if (why) {
        unavailable(s, why);
    } else if (n == 0) {
        check_lease(s);
    } else if (!v[0].path[0] && s->gone) {
        unavailable(s, mo_error(MO_EUNAVAIL, "instance %s: another machine",
                                s->target));
    } else if (!v[0].path[0]) {
        not_found(s); /* on a machine out of reach: the client begins anew */
    } else {
        learn(s->h, &v[0]);
        pass(s, v[0].path);
    }
}

static void look_at(struct search *s)
{
    const struct known *k = find_known(s->h, s->target);
    struct mo_err e;

    if (k)
        pass(s, k->path);
    else if (mo_others_find(s->h->o.peers, s->target, on_found, s, &e) < 0)
        unavailable(s, &e);
}

/* The id says that the session is another process's, and is the caller's. */
static bool is_of_another(struct search *s)
{
    const struct mo_mcp_home *h = s->h;

    return mo_ep_id_open(h->o.ep, mo_buf_view(&s->id), &s->plain, &s->was) ==
               0 &&
           strcmp(s->was.caller, s->rq->who) == 0 &&
           strcmp(s->was.view, s->view) == 0 &&
           strcmp(s->was.instance, h->o.instance) != 0;
}

static void begin(struct search *s)
{
    (void)snprintf(s->target, sizeof(s->target), "%s", s->was.instance);
    s->relayed = s->rq->from != NULL;
    if (s->relayed)
        look(s);
    else
        look_at(s);
}

/* A process that has just begun has no key while the store does not answer. Its
 * client would take "not found" for the end of the session. */
static void read_id(struct search *s)
{
    const struct mo_mcp_home *h = s->h;

    if (!s->since)
        s->since = mo_now_ns();
    if (!s->rq) {
        search_free(s);
    } else if (mo_ep_home_has_key(h->o.ep)) {
        s->sealed = false;
        s->since = 0;
        if (is_of_another(s))
            begin(s);
        else
            not_found(s);
    } else if (mo_now_ns() - s->since < WAIT_NS) {
        mo_timer_start(h->o.loop, &s->timer, PAUSE_MS);
    } else {
        unavailable(s, mo_error(MO_EUNAVAIL, "there is no key of sessions"));
    }
}

static struct search *search_new(struct mo_mcp_home *h, struct mo_span id,
                                 struct mo_span body)
{
    struct search *s = mo_new(struct search);

    if (!s)
        return NULL;
    s->h = h;
    mo_buf_init(&s->id, MO_EP_ID_MAX);
    mo_buf_init(&s->plain, MO_EP_ID_MAX);
    mo_buf_init(&s->body, SIZE_MAX / 2);
    mo_timer_init(&s->timer, on_pause);
    mo_list_push(&h->searches, &s->node);
    h->pending++;
    (void)mo_buf_span(&s->id, id);
    (void)mo_buf_span(&s->body, body);
    name_mark(id, s->mark);
    return s;
}

bool mo_mcp_home_elsewhere(struct mo_mcp_home *h, const char *view,
                           struct mo_req *rq, struct mo_span id,
                           struct mo_span body)
{
    struct search *s;

    if (!h || h->again || h->closing || !mo_ep_id_is(id))
        return false;
    s = search_new(h, id, body);
    if (!s)
        return false;
    keep_request(s, rq);
    (void)snprintf(s->view, sizeof(s->view), "%s", view ? view : "");
    s->sealed = !mo_ep_home_has_key(h->o.ep);
    if (mo_buf_err(&s->id) || mo_buf_err(&s->body) ||
        (!s->sealed && !is_of_another(s))) {
        search_free(s);
        return false;
    }
    if (s->sealed)
        read_id(s);
    else
        begin(s);
    return true;
}

bool mo_mcp_home_pass(struct mo_mcp_home *h, struct mo_req *rq,
                      const struct mo_ep_away *to)
{
    struct search *s;

    if (!h || h->closing || rq->from || strlen(to->instance) >= MO_INSTANCE_MAX)
        return false;
    s = search_new(h, mo_span(NULL, 0), to->body);
    if (!s)
        return false;
    if (mo_buf_err(&s->body)) {
        search_free(s);
        return false;
    }
    s->gone = to->gone;
    (void)snprintf(s->target, sizeof(s->target), "%s", to->instance);
    keep_request(s, rq);
    look_at(s);
    return true;
}

/* --- ended sessions ------------------------------------------------------- */

struct ending {
    struct mo_mcp_home *h;
    struct mo_req *rq; /* NULL: the client has gone */
};

static void on_ending_gone(struct mo_req *rq)
{
    ((struct ending *)rq->data)->rq = NULL;
}

static void on_ended(void *ctx, const struct mo_written *w,
                     const struct mo_err *why)
{
    struct ending *x = ctx;
    struct mo_mcp_home *h = x->h;

    (void)w;
    if (why)
        mo_log_err(mo_loop_log(h->o.loop), MO_WARN, "mcp", why,
                   "an ended session may be continued by its client");
    if (x->rq) {
        x->rq->data = NULL;
        x->rq->gone = NULL;
        mo_req_reply(x->rq, 204, NULL, mo_span(NULL, 0));
    }
    mo_free(x);
    mo_mcp_home_op_ended(h);
}

void mo_mcp_home_ended(struct mo_mcp_home *h, struct mo_req *rq,
                       struct mo_span id)
{
    mo_autobuf struct mo_buf b = {.max = MCP_DOC_MAX};
    struct mo_jw w = mo_jw_object(&b);
    char mark[sizeof(MCP_MARK) + MO_SHA256_HEX];
    struct ending *x = h ? mo_new(struct ending) : NULL;
    struct mo_err e;

    if (!x) {
        mo_req_reply(rq, 204, NULL, mo_span(NULL, 0));
        return;
    }
    *x = (struct ending){.h = h, .rq = rq};
    rq->data = x;
    rq->gone = on_ending_gone;
    name_mark(id, mark);
    mo_jw_member_bool(&w, "ended", true);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    mo_jw_end(&w);
    h->pending++;
    if (mo_mcp_home_write(h, mo_span_cstr(mark), mo_buf_view(&b), on_ended, x,
                          &e) < 0)
        on_ended(x, NULL, &e);
}

/* --- life ----------------------------------------------------------------- */

static void on_over(struct mo_later *d)
{
    struct mo_mcp_home *h = mo_container_of(d, struct mo_mcp_home, later);
    struct mo_gone gone = h->gone;

    mo_free(h);
    mo_gone_fire(gone);
}

int mo_mcp_home_open(const struct mo_mcp_home_opts *o, struct mo_mcp_home **out,
                     struct mo_err *e)
{
    struct mo_mcp_home *h = mo_new(struct mo_mcp_home);

    if (!h)
        return mo_fail(e, MO_ENOMEM, "sessions of clients");
    h->o = *o;
    mo_list_init(&h->searches);
    mo_timer_init(&h->timer, mo_mcp_home_on_timer);
    mo_later_init(&h->later, on_over);
    *out = h;
    mo_mcp_home_take_key(h);
    return 0;
}

void mo_mcp_home_close(struct mo_mcp_home *h, void (*gone)(void *ctx),
                       void *ctx)
{
    h->closing = true;
    h->gone = (struct mo_gone){gone, ctx};
    mo_timer_stop(h->o.loop, &h->timer);
    if (h->taking)
        mo_lease_drop(h->lease); /* on_key_held() follows */
    mo_list_each_entry_safe (s, &h->searches, struct search, node) {
        if (mo_timer_on(&s->timer))
            unavailable(s, mo_error(MO_EUNAVAIL, "this server is ending"));
    }
    settle(h);
}
