#include "policy/connections.h"

#include <stdio.h>

#include "base/rand.h"
#include "policy/approvals_priv.h"

#define PENDING_PER_BOX 8
#define ASKS_AT_ONCE    20
#define ASK_EVERY_MS    10000
#define NO_MS           60000
#define NOES_MAX        32
#define ANSWERS_MAX     64 /* of a box, for the session */
#define ANSWERS_BYTES   ((size_t)64 * 1024)
#define BOXES_MAX       8192
#define HOST_MAX        (MO_EGRESS_HOST_MAX + 1)

struct asking_box {
    struct mo_approvals *d;
    struct mo_list cases; /* struct connection */
    unsigned npending;
    double asks; /* questions that may be asked now */
    uint64_t asks_ns;
    struct {
        uint64_t key, until; /* of host and port; mo_now_ns() */
    } noes[NOES_MAX];
    unsigned next_no;
    struct mo_arena arena; /* texts of the answers */
    struct mo_rule v[ANSWERS_MAX];
    struct mo_rules answers;
    char id[];
};

/* WAITS -> SAID -> WRITING -> freed; a no is not waited for. */
enum connection_state { WAITS, SAID, WRITING };

struct connection {
    struct mo_gw_case k;
    struct mo_list node; /* in box->cases */
    struct mo_approvals *d;
    struct asking_box *box;    /* NULL: it has ended */
    struct mo_egress_ask *ask; /* NULL: withdrawn */
    enum connection_state state;
    bool yes;
    enum mo_remember keep;
    uint64_t key, began; /* of host and port; mo_now_ns() */
    struct mo_timer deadline;
    struct mo_later later;
    char where[HOST_MAX + sizeof(":65535")]; /* for the record */
    char is_host[HOST_MAX + sizeof("= ")];   /* as conditions of a rule */
    char port[sizeof("65535")];
    char server[256], session[128], owner[128];
};

static const char definition[] =
    "{\"title\":\"Network connection\",\"description\":\"A program in the box "
    "connects to this host. Its name is resolved and data is sent only if you "
    "allow it.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"host\":"
    "{\"type\":\"string\"},\"port\":{\"type\":\"integer\"}}}}";

static struct mo_json schema(void)
{
    return mo_json_get((struct mo_json){definition, sizeof(definition) - 1},
                       "inputSchema");
}

/* --- boxes that ask ------------------------------------------------------- */

static struct asking_box *find_box(struct mo_approvals *d, const char *id)
{
    struct asking_box *b = mo_map_get(&d->boxes, mo_span_cstr(id));
    size_t n = strlen(id);

    if (b)
        return b;
    b = mo_zalloc(sizeof(*b) + n + 1);
    if (!b)
        return NULL;
    memcpy(b->id, id, n);
    b->d = d;
    b->asks = ASKS_AT_ONCE;
    b->asks_ns = mo_now_ns();
    b->answers = (struct mo_rules){.v = b->v, .of_session = true};
    mo_arena_init(&b->arena, ANSWERS_BYTES);
    mo_list_init(&b->cases);
    if (mo_map_add(&d->boxes, mo_span(b->id, n), b) == 0)
        return b;
    mo_free(b);
    return NULL;
}

static void box_free(struct asking_box *b)
{
    mo_list_drain (c, &b->cases, struct connection, node) {
        struct pending_call *p = c->k.data;

        c->box = NULL;
        p->session = NULL;
    }
    (void)mo_map_del(&b->d->boxes, mo_span_cstr(b->id));
    mo_arena_fini(&b->arena);
    mo_free(b);
}

/* May this box ask once more? */
static bool take_ask(struct asking_box *b)
{
    uint64_t now = mo_now_ns();

    b->asks += (double)(now - b->asks_ns) / (double)(ASK_EVERY_MS * MO_MS);
    if (b->asks > ASKS_AT_ONCE)
        b->asks = ASKS_AT_ONCE;
    b->asks_ns = now;
    if (b->asks < 1)
        return false;
    b->asks -= 1;
    return true;
}

static uint64_t key_of(const char *host, unsigned port)
{
    return mo_siphash(port, 0, mo_span_cstr(host));
}

static void note_no(struct asking_box *b, uint64_t key)
{
    b->noes[b->next_no].key = key;
    b->noes[b->next_no].until = mo_now_ns() + NO_MS * MO_MS;
    b->next_no = (b->next_no + 1) % NOES_MAX;
}

static bool had_no(const struct asking_box *b, uint64_t key)
{
    uint64_t now = mo_now_ns();

    for (unsigned i = 0; i < NOES_MAX; i++)
        if (b->noes[i].key == key && now < b->noes[i].until)
            return true;
    return false;
}

/* --- judging -------------------------------------------------------------- */

static void put_args(struct mo_buf *b, const struct mo_egress_question *q)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "host", q->host);
    mo_jw_member_u64(&w, "port", q->port);
    mo_jw_end(&w);
}

static enum mo_policy_from kind_of(const struct mo_connection_from *from)
{
    return from->server ? MO_POLICY_SERVER_NET : MO_POLICY_SESSION_NET;
}

static struct mo_verdict judge(const struct mo_approvals *d,
                               const struct mo_connection_from *from,
                               const struct asking_box *b, struct mo_span args)
{
    return mo_policy_judge(
        d->policy, &(struct mo_policy_call){
                       .from = kind_of(from),
                       .server = mo_span_cstr(
                           from->server ? from->server : MO_CONNECTIONS_BOX),
                       .tool = MO_SPAN(MO_RULE_CONNECT),
                       .args_text = args,
                       .schema = schema(),
                       .session = &b->answers,
                   });
}

enum mo_egress_say mo_connections_judge(struct mo_approvals *d,
                                        const struct mo_connection_from *from,
                                        const struct mo_egress_question *q)
{
    mo_autobuf struct mo_buf args = {.max = 2 * HOST_MAX};
    struct asking_box *b = d ? find_box(d, from->box) : NULL;
    struct mo_verdict v;

    if (!b)
        return MO_EGRESS_NO;
    put_args(&args, q);
    v = judge(d, from, b, mo_buf_view(&args));
    if (v.action == MO_ACTION_ASK)
        return had_no(b, key_of(q->host, q->port)) ? MO_EGRESS_NO
                                                   : MO_EGRESS_ASK;
    return v.action == MO_ACTION_ALLOW ? MO_EGRESS_YES : MO_EGRESS_NO;
}

/* --- the end of a question ------------------------------------------------ */

static const char *reason_of(const struct connection *c, bool yes)
{
    static const char *const kept[] = {
        [MO_REMEMBER_NO] = "ask: once",
        [MO_REMEMBER_SESSION] = "ask: session",
        [MO_REMEMBER_ALWAYS] = "ask: always",
    };

    if (yes)
        return kept[c->keep];
    if (c->yes)
        return "the decision could not be recorded";
    if (strcmp(c->k.by, "time") == 0)
        return "nobody decided in time";
    return strcmp(c->k.by, "rule") == 0 ? "denied by a rule"
                                        : "denied by a person";
}

static void unlist(struct connection *c)
{
    struct pending_call *p = c->k.data;

    if (c->box && !mo_list_empty(&p->node))
        c->box->npending--;
    mo_approvals_unlist(p);
}

static void finish(struct connection *c, bool yes)
{
    struct mo_approvals *d = c->d;

    unlist(c);
    mo_approvals_tell_decided(c->k.data, yes);
    if (c->ask)
        mo_egress_answer_ask(c->ask, yes, reason_of(c, yes));
    if (!yes && c->box && c->ask)
        note_no(c->box, c->key);
    if (*c->session && d->net.resolved)
        d->net.resolved(d->net.ctx, c->session, c->k.id, yes, c->k.by);
    mo_timer_stop(d->loop, &c->deadline);
    mo_later_cancel(&c->later);
    mo_list_del(&c->node);
    mo_approvals_pending_free(c->k.data);
    mo_free(c);
}

/* The rules may be other ones by now: they have the last word. */
static bool may_go_on(struct connection *c)
{
    const struct pending_call *p = c->k.data;
    struct mo_verdict v = mo_approvals_verdict(c->d, p, mo_buf_view(&p->args));

    if (mo_verdict_may_run(&v, c->k.answered, c->k.panel))
        return true;
    c->k.by = "rule";
    c->yes = false;
    return false;
}

static void on_written(void *ctx, const struct mo_err *why)
{
    struct connection *c = ctx;

    finish(c, !why && may_go_on(c));
}

/* The row of a decision; a yes takes effect after it is synced. */
static void on_said(struct mo_later *l)
{
    struct connection *c = mo_container_of(l, struct connection, later);
    const struct pending_call *p = c->k.data;
    static const char *const kept[] = {NULL, "session", "always"};
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("decision"),
        .server = c->k.server,
        .tool = c->k.tool,
        .call = mo_span_cstr(c->k.id),
        .host = mo_span_cstr(c->where),
        .program = mo_span_cstr(p->program),
        .action = c->yes ? "allow" : "deny",
        .approved = &c->yes,
        .by = c->k.by,
        .session = mo_span_cstr(c->session),
        .decided_by = p->who,
        .door = &c->k.door,
        .reason = c->k.reason[0] ? c->k.reason : kept[c->keep],
    };
    struct mo_err e;

    c->state = WRITING;
    mo_audit_note(c->d->audit, &row);
    if (!c->yes || mo_audit_sure(c->d->audit, on_written, c, &e) < 0)
        finish(c, false);
}

static bool say(struct mo_gw_case *k, bool yes, const char *by)
{
    struct connection *c = mo_container_of(k, struct connection, k);

    if (c->state != WAITS)
        return false;
    c->state = SAID;
    c->yes = yes;
    k->by = by;
    k->decided = true;
    k->waited_ms = (mo_now_ns() - c->began) / MO_MS;
    unlist(c);
    mo_timer_stop(c->d->loop, &c->deadline);
    mo_loop_defer(c->d->loop, &c->later);
    return true;
}

static int refuse_edit(struct mo_gw_case *k, struct mo_span args,
                       struct mo_err *e)
{
    (void)k;
    (void)args;
    return mo_fail(e, MO_EINVAL, "host and port of a connection are fixed");
}

static void on_deadline(struct mo_timer *t)
{
    struct connection *c = mo_container_of(t, struct connection, deadline);

    (void)say(&c->k, false, "time");
}

void mo_connections_gone(struct mo_approvals *d, struct mo_egress_ask *a)
{
    struct connection *c = d ? mo_egress_ask_data(a) : NULL;

    if (!c)
        return;
    c->ask = NULL;
    if (c->state == WAITS) {
        c->k.by = "gone";
        finish(c, false);
    }
}

/* --- its beginning -------------------------------------------------------- */

static const struct mo_gw_case_ops ops = {.decide = say, .edit = refuse_edit};

static struct connection *connection_new(struct asking_box *b,
                                         const struct mo_connection_from *from,
                                         const struct mo_egress_question *q)
{
    struct connection *c = mo_new(struct connection);

    if (!c)
        return NULL;
    c->d = b->d;
    c->box = b;
    c->began = mo_now_ns();
    c->key = key_of(q->host, q->port);
    (void)snprintf(c->where, sizeof(c->where), "%s:%u", q->host, q->port);
    (void)snprintf(c->is_host, sizeof(c->is_host), "= %s", q->host);
    (void)snprintf(c->port, sizeof(c->port), "%u", q->port & 0xffff);
    (void)snprintf(c->server, sizeof(c->server), "%s",
                   from->server ? from->server : MO_CONNECTIONS_BOX);
    (void)snprintf(c->session, sizeof(c->session), "%s",
                   from->session ? from->session : "");
    (void)snprintf(c->owner, sizeof(c->owner), "%s",
                   from->owner ? from->owner : "");
    c->k.ops = &ops;
    c->k.server = mo_span_cstr(c->server);
    c->k.tool = MO_SPAN(MO_RULE_CONNECT);
    c->k.who = mo_span_cstr(*c->session ? c->session : c->server);
    c->k.owner = mo_span_cstr(c->owner);
    mo_random_token(c->k.id, MO_GW_CASE_ID);
    mo_timer_init(&c->deadline, on_deadline);
    mo_later_init(&c->later, on_said);
    mo_list_push(&b->cases, &c->node);
    return c;
}

static void connection_drop(struct connection *c)
{
    mo_list_del(&c->node);
    mo_approvals_pending_free(c->k.data);
    mo_free(c);
}

/* Lists it among the pending calls. 0, or the reason why not. */
static const char *list_connection(struct connection *c,
                                   const struct mo_connection_from *from,
                                   const struct mo_egress_question *q)
{
    struct pending_call *p = mo_approvals_pending_new(c->d, &c->k);
    struct mo_verdict v;

    if (!p)
        return "out of memory";
    p->from = kind_of(from);
    p->session = &c->box->answers;
    p->tls = q->tls;
    (void)snprintf(p->request, sizeof(p->request), "%s", q->request);
    (void)snprintf(p->program, sizeof(p->program), "%s", q->program);
    put_args(&p->args, q);
    (void)mo_buf_puts(&p->def, definition);
    if (mo_buf_err(&p->args) || mo_buf_err(&p->def))
        return "out of memory";
    v = judge(c->d, from, c->box, mo_buf_view(&p->args));
    if (v.action == MO_ACTION_DENY)
        return "not allowed";
    mo_approvals_list_connection(p, &v);
    c->box->npending++;
    mo_timer_start(c->d->loop, &c->deadline, c->k.wait_ms);
    return NULL;
}

static void tell_asked(struct connection *c)
{
    struct mo_approvals *d = c->d;
    mo_autobuf struct mo_buf b = {.max = (size_t)64 * 1024};
    struct mo_jw w;

    if (!*c->session || !d->net.asked)
        return;
    mo_jw_init(&w, &b);
    mo_approvals_put_pending(&w, c->k.data);
    if (mo_buf_err(&b) == 0)
        d->net.asked(d->net.ctx, c->session, mo_buf_view(&b));
}

void mo_connections_ask(struct mo_approvals *d,
                        const struct mo_connection_from *from,
                        struct mo_egress_ask *a,
                        const struct mo_egress_question *q)
{
    struct asking_box *b = d ? find_box(d, from->box) : NULL;
    struct connection *c = NULL;
    const char *why = "out of memory";

    mo_egress_ask_set(a, NULL);
    if (b && (b->npending >= PENDING_PER_BOX || d->npending >= PENDING_MAX))
        why = "too many hosts wait for a person";
    else if (b && !take_ask(b))
        why = "this box asks too often";
    else if (b)
        c = connection_new(b, from, q);
    if (c) {
        why = list_connection(c, from, q);
        if (why)
            connection_drop(c);
    }
    if (why) {
        mo_egress_answer_ask(a, false, why);
        return;
    }
    c->ask = a;
    mo_egress_ask_set(a, c);
    tell_asked(c);
}

/* --- answers that last ---------------------------------------------------- */

static int keep_for_session(struct connection *c, bool yes, struct mo_err *e)
{
    struct asking_box *b = c->box;
    struct mo_rule_arg *args = NULL;

    if (!b || b->answers.n == ANSWERS_MAX)
        return mo_fail(e, MO_EBUSY, "this box remembers no more than %d",
                       ANSWERS_MAX);
    args = mo_arena_zalloc(&b->arena, 2 * sizeof(*args));
    if (args) {
        args[0] = (struct mo_rule_arg){
            MO_SPAN("host"), mo_span_dup(&b->arena, mo_span_cstr(c->is_host))};
        args[1] = (struct mo_rule_arg){
            MO_SPAN("port"), mo_span_dup(&b->arena, mo_span_cstr(c->port))};
    }
    if (!args || !args[0].cond.p || !args[1].cond.p)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    b->v[b->answers.n++] = (struct mo_rule){
        .action = yes ? MO_ACTION_ALLOW : MO_ACTION_DENY,
        .args = args,
        .nargs = 2,
    };
    return 0;
}

static int keep_always(struct connection *c, bool yes, const char *who,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 4 * HOST_MAX};
    char id[MO_REMEMBERED_RULES_ID_MAX];
    struct mo_remembered_rule_wish wish = {
        .server = c->k.server,
        .tool = c->k.tool,
        .action = yes ? MO_ACTION_ALLOW : MO_ACTION_DENY,
        .who = who,
    };
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "host", c->is_host);
    mo_jw_member_cstr(&w, "port", c->port);
    mo_jw_end(&w);
    if (mo_buf_err(&b))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    wish.conditions = mo_buf_view(&b);
    return mo_remembered_rules_add(mo_policy_remembered(c->d->policy), &wish,
                                   id, e);
}

int mo_connections_remember(struct pending_call *p,
                            const struct mo_approval_decision *x,
                            struct mo_err *e)
{
    struct connection *c = mo_container_of(p->k, struct connection, k);
    const struct mo_policy_call call = {.from = p->from,
                                        .server = p->k->server,
                                        .tool = p->k->tool,
                                        .args_text = mo_buf_view(&p->args),
                                        .schema = schema()};
    struct mo_verdict v = mo_approvals_verdict(c->d, p, mo_buf_view(&p->args));
    int rc;

    if (x->remember == MO_REMEMBER_SESSION && v.rule &&
        v.rule->approver == MO_APPROVER_OPERATOR)
        return mo_fail(e, MO_EINVAL,
                       "a rule asks the operator: each time, or for always");
    if (!mo_policy_may_remember(c->d->policy, &call))
        return mo_fail(e, MO_EINVAL,
                       "the configuration requires a decision each time");
    if (x->remember == MO_REMEMBER_ALWAYS)
        rc = keep_always(c, x->approved, x->who, e);
    else
        rc = keep_for_session(c, x->approved, e);
    if (rc == 0)
        c->keep = x->remember;
    return rc;
}

/* --- the end -------------------------------------------------------------- */

void mo_connections_box_gone(struct mo_approvals *d, const char *box)
{
    struct asking_box *b = d ? mo_map_get(&d->boxes, mo_span_cstr(box)) : NULL;

    if (b)
        box_free(b);
}

void mo_connections_init(struct mo_approvals *d)
{
    mo_map_init_lent(&d->boxes, BOXES_MAX);
    mo_connection_log_init(&d->log);
}

void mo_connections_fini(struct mo_approvals *d)
{
    mo_map_each (en, &d->boxes) {
        struct asking_box *b = en->value;

        mo_list_each_entry_safe (c, &b->cases, struct connection, node) {
            c->k.by = "gone";
            if (c->ask)
                mo_egress_answer_ask(mo_take_ptr(&c->ask), false,
                                     "the program ends");
            if (c->state != WRITING) /* else when its row is written */
                finish(c, false);
        }
    }
    d->net = (struct mo_connections_watch){.ctx = NULL};
}

/* The boxes go after the last row was written. */
void mo_connections_free(struct mo_approvals *d)
{
    mo_map_each (en, &d->boxes) {
        struct asking_box *b = en->value;

        mo_arena_fini(&b->arena);
        mo_free(b);
    }
    mo_map_fini(&d->boxes);
    mo_connection_log_fini(&d->log);
}

/* --- the record ----------------------------------------------------------- */

void mo_connections_report(struct mo_approvals *d,
                           const struct mo_connection_from *from,
                           const struct mo_egress_row *r)
{
    if (!d)
        return;
    mo_audit_connection(d->audit, from->server, from->session, r);
    mo_connection_log_add(&d->log, from->server, from->session, r);
    if (d->watch.connection)
        d->watch.connection(
            d->watch.ctx, from->server ? from->server : MO_CONNECTIONS_BOX, r);
}

void mo_connections_log(const struct mo_approvals *d,
                        const struct mo_connection_from *from, struct mo_jw *w)
{
    mo_connection_log_put(&d->log, from->server, from->session, w);
}

void mo_connections_forget(struct mo_approvals *d, const char *session)
{
    mo_connection_log_forget(&d->log, session);
}

void mo_connections_watch(struct mo_approvals *d,
                          const struct mo_connections_watch *w)
{
    d->net = *w;
}

void mo_connections_put(const struct mo_approvals *d, const char *session,
                        struct mo_jw *w)
{
    mo_jw_arr(w);
    mo_list_each_entry (p, &d->pending, const struct pending_call, node)
        if (p->from == MO_POLICY_SESSION_NET && mo_span_is(p->k->who, session))
            mo_approvals_put_pending(w, p);
    mo_jw_end(w);
}
