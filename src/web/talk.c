/*
 * talk.c - Socket.IO sockets as members of chats.
 *
 * A talker lives as long as its socket, and longer while answers to it are on
 * their way: they are then dropped.
 */
#include "web/talk.h"

#include "web/access.h"

#include <stdio.h>

#include "base/mem.h"
#include "codec/http/url.h"
#include "policy/exact.h"

#define ARENA_MAX     ((size_t)8 * 1024 * 1024)
#define HANDSHAKE_MAX 256 /* of a session or model in the handshake */
#define KEY_MAX       4096

struct early { /* said before there was an agent */
    struct mo_list node;
    int64_t ack;
    size_t n;
    char args[]; /* the whole array */
};

struct talker {
    struct mo_talk *talk;
    struct mo_list node;  /* in talk->waiting */
    struct mo_list early; /* struct early */
    unsigned nearly;
    struct mo_sock *sock;   /* NULL: it has gone */
    struct mo_seat *member; /* NULL: not joined, or out again */
    bool reads;             /* follows a session, does not open it */
    unsigned owed;          /* answers on their way */
    unsigned ends;          /* of them: to "session:close" */
    struct mo_buf session, model, key;
};

static void talker_free(struct talker *t)
{
    mo_buf_fini(&t->session);
    mo_buf_fini(&t->model);
    mo_buf_fini(&t->key);
    mo_free(t);
}

static void release(struct talker *t)
{
    if (t->sock == NULL && t->owed == 0)
        talker_free(t);
}

/* --- the handshake ------------------------------------------------------- */

/* From auth, else from the query. */
static void take(struct talker *t, struct mo_json auth, const char *name,
                 struct mo_buf *out)
{
    struct mo_json v = mo_json_get(auth, name);

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, out);
    else
        (void)mo_query_get(t->sock->eng->query, name, out);
    if (mo_buf_err(out))
        mo_buf_reset(out);
}

static bool on_connect(void *ctx, struct mo_sock *k, struct mo_json auth,
                       struct mo_err *e)
{
    struct talker *t = mo_new(struct talker);
    struct mo_json key = mo_json_get(auth, "token");
    mo_autobuf struct mo_buf read = {.max = 16};

    if (t == NULL) {
        mo_fail(e, MO_ENOMEM, "out of memory");
        return false;
    }
    t->talk = ctx;
    t->sock = k;
    mo_list_init(&t->node);
    mo_list_init(&t->early);
    mo_buf_init(&t->session, HANDSHAKE_MAX);
    mo_buf_init(&t->model, HANDSHAKE_MAX);
    mo_buf_init(&t->key, KEY_MAX);
    take(t, auth, "sessionId", &t->session);
    take(t, auth, "model", &t->model);
    take(t, auth, "read", &read);
    t->reads = read.len > 0 || k->eng->role < MO_ROLE_USER;
    if (mo_json_is(key, MO_JSON_STRING) && mo_json_str_buf(key, &t->key) < 0)
        mo_buf_reset(&t->key);
    if (t->talk->gate && mo_gate_token_ok(t->talk->gate, mo_buf_view(&t->key)))
        mo_buf_reset(&t->key); /* ours: no provider is to see it */
    k->data = t;
    return true;
}

static void fail(struct talker *t, const char *text)
{
    mo_autobuf struct mo_buf b = {.max = 1024};

    mo_json_quote(&b, mo_span_cstr(text));
    (void)mo_sock_emit(t->sock, "error", mo_buf_view(&b));
    mo_sock_disconnect(t->sock, false);
}

static void fail_open(struct talker *t, const char *why)
{
    char text[320];

    snprintf(text, sizeof(text), "Failed to initialize session: %s", why);
    fail(t, text);
}

/* --- from the agent ------------------------------------------------------ */

static void member_event(void *ctx, const char *name, struct mo_span args)
{
    struct talker *t = ctx;

    if (t->sock)
        (void)mo_sock_emit(t->sock, name, args);
}

static void member_closed(void *ctx, const char *reason,
                          const struct mo_err *why)
{
    struct talker *t = ctx;

    (void)reason; /* session:closed has said it */
    t->member = NULL;
    if (t->sock && why)
        fail_open(t, why->msg);
    else if (t->sock && t->ends == 0) /* else after that answer */
        mo_sock_disconnect(t->sock, false);
}

static const struct mo_member_cb member_cb = {member_event, member_closed};

static struct mo_identity identity_of(const struct talker *t)
{
    const struct mo_gate *gate = t->talk->gate;

    return (struct mo_identity){.name = t->sock->eng->who,
                                .role = (enum mo_role)t->sock->eng->role,
                                .people = gate ? gate->people : NULL};
}

static void join(struct talker *t)
{
    const struct mo_eng *eng = t->sock->eng;
    struct mo_join j = {
        .session = mo_buf_view(&t->session),
        .model = mo_buf_view(&t->model),
        .key = mo_buf_view(&t->key),
        .who = mo_span_cstr(eng->who[0] ? eng->who : eng->peer),
        .owner = mo_span_cstr(eng->caller),
        .door = eng->door,
        .person = identity_of(t),
        .grant = mo_span_cstr(eng->grant),
        .reads = t->reads,
    };
    struct mo_err e;

    if (j.session.n == 0)
        fail(t, "Missing sessionId in query params");
    else if (mo_seat_join(t->talk->peers, &j, &member_cb, t, &t->member, &e) <
             0)
        fail_open(t, e.msg);
}

static void on_ready(void *ctx, struct mo_sock *k)
{
    struct mo_talk *talk = ctx;

    if (talk->peers)
        join(k->data);
    else if (talk->why[0])
        fail_open(k->data, talk->why);
    else
        mo_list_push(&talk->waiting, &((struct talker *)k->data)->node);
}

static void drop_early(struct talker *t)
{
    mo_list_drain (y, &t->early, struct early, node)
        mo_free(y);
    t->nearly = 0;
}

static void on_disconnect(void *ctx, struct mo_sock *k, const char *reason)
{
    struct talker *t = k->data;

    (void)ctx;
    (void)reason;
    mo_list_del(&t->node);
    drop_early(t);
    if (t->member)
        mo_seat_leave(t->member);
    t->member = NULL;
    t->sock = NULL;
    release(t);
}

/* --- answers ------------------------------------------------------------- */

struct owed {
    struct talker *talker;
    int64_t ack;
    bool ends; /* the session: the socket is closed after the answer */
};

static void put_ack(struct mo_buf *b, const struct mo_ack *a)
{
    if (a->ok) {
        mo_buf_puts(b, "{\"ok\":true");
        if (a->extra.n > 0)
            mo_buf_putc(b, ',');
        mo_buf_span(b, a->extra);
    } else {
        mo_buf_puts(b, "{\"ok\":false,\"code\":");
        mo_json_quote(b, mo_span_cstr(a->code));
        mo_buf_puts(b, ",\"message\":");
        mo_json_quote(b, a->message);
    }
    mo_buf_putc(b, '}');
}

static void on_ack(void *ctx, const struct mo_ack *a)
{
    struct owed *o = ctx;
    struct talker *t = o->talker;
    mo_autobuf struct mo_buf b = {.max = (size_t)64 * 1024};

    put_ack(&b, a);
    if (t->sock && o->ack != MO_SIO_ACK_NONE && mo_buf_err(&b) == 0)
        (void)mo_sock_ack(t->sock, o->ack, mo_buf_view(&b));
    t->ends -= o->ends;
    if (o->ends && t->ends == 0 && t->sock && t->member == NULL)
        mo_sock_disconnect(t->sock, false);
    mo_free(o);
    t->owed--;
    release(t);
}

/* --- what a client asks for ---------------------------------------------- */

struct event {
    struct talker *t;
    struct mo_json arg; /* the first */
    struct mo_arena *a;
    struct owed *owed;
};

static void refuse(struct event *ev, const char *code, const char *message)
{
    struct mo_ack a = {.code = code, .message = mo_span_cstr(message)};

    on_ack(ev->owed, &a);
}

static struct mo_span str(struct event *ev, struct mo_json v)
{
    struct mo_span s = {NULL, 0};

    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str(v, ev->a, &s);
    return s;
}

/* A wish with a seq; 0: none was sent. */
static void wish_for(struct event *ev, enum mo_wish_kind kind,
                     struct mo_json seq, struct mo_span text)
{
    struct mo_wish w = {.kind = kind, .text = text};

    if (seq.p && (mo_json_u64(seq, &w.seq) < 0 || w.seq == 0))
        refuse(ev, "bad_request", "seq is the number of an entry");
    else
        mo_seat_wish(ev->t->member, &w, on_ack, ev->owed);
}

static void do_message(struct event *ev)
{
    struct mo_json text = ev->arg, instead = {NULL, 0};

    if (mo_json_is(text, MO_JSON_OBJECT)) {
        instead = mo_json_get(text, "instead");
        text = mo_json_get(text, "text");
    }
    if (!mo_json_is(text, MO_JSON_STRING)) {
        refuse(ev, "bad_request", "a message is a string, or {text}");
        return;
    }
    if (instead.p)
        wish_for(ev, MO_WISH_EDIT, instead, str(ev, text));
    else
        mo_seat_say(ev->t->member, str(ev, text), on_ack, ev->owed);
}

static void do_regenerate(struct event *ev)
{
    wish_for(ev, MO_WISH_REGENERATE, mo_json_get(ev->arg, "seq"),
             mo_span(NULL, 0));
}

static void do_continue(struct event *ev)
{
    wish_for(ev, MO_WISH_CONTINUE, (struct mo_json){NULL, 0}, mo_span(NULL, 0));
}

static void do_branch(struct event *ev)
{
    wish_for(ev, MO_WISH_SWITCH, mo_json_get(ev->arg, "seq"), mo_span(NULL, 0));
}

/* Of what holds for all persons only the operator decides. */
static bool is_operator(const struct event *ev)
{
    return ev->t->sock && ev->t->sock->eng->role >= MO_ROLE_OPERATOR;
}

static enum mo_remember remember_of(struct mo_json v)
{
    if (mo_json_str_eq(v, MO_SPAN("session")))
        return MO_REMEMBER_SESSION;
    return mo_json_str_eq(v, MO_SPAN("always")) ? MO_REMEMBER_ALWAYS
                                                : MO_REMEMBER_NO;
}

/* Nothing in it can be read in two ways. */
static bool is_plain(struct mo_json v)
{
    struct mo_json digest = mo_json_get(v, "digest");
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};

    if (digest.p && !mo_json_is(digest, MO_JSON_STRING))
        return false;
    return mo_json_is(v, MO_JSON_OBJECT) && mo_exact_args(v, &exact, NULL) == 0;
}

static void do_approval(struct event *ev)
{
    struct mo_json v = ev->arg, args = mo_json_get(v, "args");
    struct mo_json conditions = mo_json_get(v, "conditions");
    struct mo_json ahead = mo_json_get(v, "ahead");
    struct mo_span digest = str(ev, mo_json_get(v, "digest"));
    struct mo_decision d = {
        .call = str(ev, mo_json_get(v, "callId")),
        .digest = mo_json_get(v, "digest").p ? &digest : NULL,
        .reason = str(ev, mo_json_get(v, "reason")),
        .remember = remember_of(mo_json_get(v, "remember")),
    };

    if (!is_plain(v) || d.call.n == 0 ||
        mo_json_bool(mo_json_get(v, "approved"), &d.approved) < 0) {
        refuse(ev, "bad_request",
               "an approval is {callId, approved}, each once");
        return;
    }
    if (ahead.p &&
        (!d.approved || conditions.p || !mo_json_is(ahead, MO_JSON_OBJECT) ||
         d.remember != MO_REMEMBER_NO)) {
        refuse(ev, "bad_request",
               "ahead is {count, seconds?, same?}, with a yes and without "
               "remember");
        return;
    }
    if (ahead.p && mo_seat_reads(ev->t->member)) {
        refuse(ev, "read_only", "only its owner can grant calls ahead");
        return;
    }
    if (conditions.p && (d.remember != MO_REMEMBER_ALWAYS ||
                         !mo_json_is(conditions, MO_JSON_OBJECT))) {
        refuse(ev, "bad_request",
               "conditions are an object, and go with remember: always");
        return;
    }
    if (d.remember == MO_REMEMBER_ALWAYS && !is_operator(ev)) {
        refuse(ev, "operator_only",
               "only the operator can say always; say it for this session");
        return;
    }
    if (d.remember != MO_REMEMBER_NO && mo_seat_reads(ev->t->member)) {
        refuse(ev, "read_only",
               "only its owner can have a decision remembered");
        return;
    }
    if (args.p)
        d.args = mo_json_text(args);
    if (conditions.p || ahead.p)
        d.conditions = mo_json_text(ahead.p ? ahead : conditions);
    mo_seat_decide(ev->t->member, &d, on_ack, ev->owed);
}

static void do_cancel(struct event *ev)
{
    mo_seat_cancel(ev->t->member, on_ack, ev->owed);
}

static void do_answer(struct event *ev)
{
    static const struct {
        const char *name;
        enum mo_answer_action action;
    } known[] = {{"accept", MO_ANSWER_ACCEPT},
                 {"decline", MO_ANSWER_DECLINE},
                 {"cancel", MO_ANSWER_CANCEL}};
    struct mo_json v = ev->arg, content = mo_json_get(v, "content");
    struct mo_answer a = {.request = str(ev, mo_json_get(v, "requestId"))};
    size_t i = 0;

    while (i < MO_COUNT(known) && !mo_json_str_eq(mo_json_get(v, "action"),
                                                  mo_span_cstr(known[i].name)))
        i++;
    if (i == MO_COUNT(known) || !is_plain(v)) {
        refuse(ev, "bad_request",
               "an answer is {requestId, action: accept, decline or cancel, "
               "content}, each once");
        return;
    }
    a.action = known[i].action;
    if (content.p)
        a.content = mo_json_text(content);
    mo_seat_answer(ev->t->member, &a, on_ack, ev->owed);
}

static void do_accept(struct event *ev)
{
    mo_seat_accept(ev->t->member, str(ev, mo_json_get(ev->arg, "name")),
                   str(ev, mo_json_get(ev->arg, "digest")), on_ack, ev->owed);
}

static void do_reset(struct event *ev)
{
    mo_seat_reset(ev->t->member, on_ack, ev->owed);
}

static void do_model(struct event *ev)
{
    const struct mo_wish w = {.kind = MO_WISH_MODEL,
                              .text = str(ev, mo_json_get(ev->arg, "model"))};

    mo_seat_wish(ev->t->member, &w, on_ack, ev->owed);
}

static void do_close(struct event *ev)
{
    static const struct mo_wish sleep = {.kind = MO_WISH_SLEEP};

    ev->owed->ends = true;
    ev->t->ends++;
    if (mo_json_flag(ev->arg, "keep"))
        mo_seat_wish(ev->t->member, &sleep, on_ack, ev->owed);
    else
        mo_seat_end(ev->t->member, on_ack, ev->owed);
}

static const struct {
    const char *name;
    void (*run)(struct event *ev);
} events[] = {
    {"message", do_message},
    {"tool:approval", do_approval},
    {"agent:cancel", do_cancel},
    {"history:reset", do_reset},
    {"session:close", do_close},
    {"model:change", do_model},
    {"turn:regenerate", do_regenerate},
    {"turn:continue", do_continue},
    {"branch:switch", do_branch},
    {"tool:accept", do_accept},
    {"elicitation:response", do_answer},
};

/* An event without a row in access.h is nobody's. */
static bool may_use(const struct event *ev, const char *name)
{
    int least = mo_access_event(mo_span_cstr(name));

    return least >= 0 && ev->t->sock && ev->t->sock->eng->role >= least;
}

static void dispatch(struct event *ev, struct mo_json name)
{
    size_t i = 0;

    if (ev->t->member == NULL) {
        refuse(ev, "closed", "the session is not open");
        return;
    }
    while (i < MO_COUNT(events) &&
           !mo_json_str_eq(name, mo_span_cstr(events[i].name)))
        i++;
    if (i == MO_COUNT(events))
        refuse(ev, "unknown_event", "there is no such event");
    else if (!may_use(ev, events[i].name))
        refuse(ev, "operator_only", "only the operator can do this");
    else if (mo_seat_reads(ev->t->member) &&
             !(events[i].run == do_approval &&
               mo_seat_may_decide(ev->t->member)))
        refuse(ev, "read_only", "this conversation is shared for reading");
    else
        events[i].run(ev);
}

static void serve_event(struct talker *t, struct mo_json args, int64_t ack)
{
    mo_autoarena struct mo_arena arena = {.cap = ARENA_MAX};
    struct event ev = {.t = t, .arg = mo_json_at(args, 1), .a = &arena};

    ev.owed = mo_new(struct owed);
    if (ev.owed == NULL)
        return;
    *ev.owed = (struct owed){t, ack, false};
    t->owed++;
    dispatch(&ev, mo_json_at(args, 0));
}

static void keep_early(struct talker *t, struct mo_json args, int64_t ack)
{
    struct early *y = NULL;

    if (t->nearly < MO_TALK_EARLY_MAX)
        y = mo_alloc(sizeof(*y) + args.n);
    if (y == NULL) {
        mo_sock_disconnect(t->sock, true);
        return;
    }
    y->ack = ack;
    y->n = args.n;
    memcpy(y->args, args.p, args.n);
    mo_list_push(&t->early, &y->node);
    t->nearly++;
}

static void on_event(void *ctx, struct mo_sock *k, struct mo_json name,
                     struct mo_json args, int64_t ack)
{
    struct mo_talk *talk = ctx;

    (void)name;
    if (talk->peers == NULL && talk->why[0] == '\0')
        keep_early(k->data, args, ack);
    else
        serve_event(k->data, args, ack);
}

/* --- the agent is there -------------------------------------------------- */

static void serve_early(struct talker *t)
{
    mo_list_drain (y, &t->early, struct early, node) {
        struct mo_json_doc doc;

        t->nearly--;
        if (mo_json_parse(mo_span(y->args, y->n), 0, &doc, NULL) == 0)
            serve_event(t, doc.root, y->ack);
        mo_free(y);
    }
}

void mo_talk_begin(struct mo_talk *t, struct mo_peers *peers,
                   const struct mo_err *why)
{
    t->peers = peers;
    if (peers == NULL)
        snprintf(t->why, sizeof(t->why), "%s", why->msg);
    mo_list_drain (k, &t->waiting, struct talker, node) {
        if (peers == NULL) {
            fail_open(k, t->why);
            continue;
        }
        join(k);
        serve_early(k);
    }
}

const char *mo_talk_why(void *ctx)
{
    const struct mo_talk *t = ctx;

    if (t->peers)
        return NULL;
    return t->why[0] ? t->why : "the sandbox is being prepared";
}

void mo_talk_opts(struct mo_siod_opts *o, struct mo_talk *t)
{
    o->on_connect = on_connect;
    o->on_ready = on_ready;
    o->on_event = on_event;
    o->on_disconnect = on_disconnect;
    o->ctx = t;
    mo_list_init(&t->waiting);
}
