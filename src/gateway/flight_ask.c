/* flight_ask.c - what a server asks while a call is under way, put to the
 * client of that call, and the answers. */
#include "gateway/flight.h"

#include <stdio.h>

#define KEY_MAX 128

/* --- questions ----------------------------------------------------------- */

/* The server's own name for it where it has one: a client may go by that. */
static void key_of(const struct question *q, char out[KEY_MAX])
{
    struct mo_json own = q->ask ? q->ask->key : (struct mo_json){NULL, 0};
    struct mo_buf b;

    mo_buf_init(&b, KEY_MAX - 1);
    if (own.p && mo_json_str_buf(own, &b) == 0 && b.len &&
        strlen(mo_buf_cstr(&b)) == b.len)
        (void)snprintf(out, KEY_MAX, "%s", mo_buf_cstr(&b));
    else
        (void)snprintf(out, KEY_MAX, "a%u", q->no);
    mo_buf_fini(&b);
}

static struct mo_json request_of(const struct question *q)
{
    return (struct mo_json){q->key.p + q->key_len, q->key.len - q->key_len};
}

static struct mo_json params_of(const struct question *q)
{
    return q->ask ? q->ask->params : mo_json_get(request_of(q), "params");
}

/* Of a task only the methods that exist come here, see take_input(). */
static const char *method_of(const struct question *q)
{
    if (q->ask)
        return mo_ask_method(q->ask->kind);
    for (int i = 0; i < MO_ASK_KINDS; i++) {
        const char *m = mo_ask_method((enum mo_ask_kind)i);

        if (mo_json_str_eq(mo_json_get(request_of(q), "method"),
                           mo_span_cstr(m)))
            return m;
    }
    return NULL;
}

static void question_free(struct question *q)
{
    mo_list_del(&q->node);
    mo_buf_fini(&q->key);
    mo_free(q);
}

static struct question *question_new(struct flight *f)
{
    struct question *q = mo_new(struct question);

    if (!q)
        return NULL;
    q->f = f;
    q->no = ++f->nquestions;
    mo_buf_init(&q->key, MO_CONN_TEXT_MAX);
    mo_list_push(&f->questions, &q->node);
    return q;
}

/* A task cannot be told: it ends by itself, or in time. */
static void refuse(struct question *q, int code, const char *why)
{
    if (q->ask)
        mo_ask_refuse(q->ask, code, why);
    question_free(q);
}

static void answer(struct question *q, struct mo_json value)
{
    struct mo_buf b;

    if (q->ask) {
        mo_ask_answer(q->ask, mo_json_text(value));
        question_free(q);
        return;
    }
    mo_buf_init(&b, MO_CONN_TEXT_MAX);
    (void)mo_buf_putc(&b, '{');
    (void)mo_buf_span(&b, mo_span(q->key.p, q->key_len));
    (void)mo_buf_putc(&b, ':');
    (void)mo_buf_span(&b, mo_json_text(value));
    (void)mo_buf_putc(&b, '}');
    if (!mo_buf_err(&b) && q->f->task)
        (void)mo_task_input(q->f->task, mo_buf_view(&b));
    mo_buf_fini(&b);
    question_free(q);
}

void flight_drop_questions(struct flight *f, const char *why)
{
    while (!mo_list_empty(&f->questions))
        refuse(mo_container_of(f->questions.next, struct question, node),
               MO_RPC_INTERNAL, why);
}

/* --- to the client ------------------------------------------------------- */

/* The flight can be found again under its id. */
static int park(struct flight *f)
{
    int rc;

    if (f->id[0])
        return 0;
    mo_random_token(f->id, FLIGHT_TOKEN);
    rc = mo_map_put(&f->g->parked, mo_span_cstr(f->id), f, NULL);
    if (rc < 0)
        f->id[0] = '\0';
    return rc;
}

/* A legacy server can be told that its question will not be answered, and goes
 * on without; a modern one cannot: there the client hears what it lacks. */
static bool can_be_told(const struct question *q)
{
    const struct mo_conn *conn =
        q->f->child ? mo_child_conn(q->f->child) : NULL;

    return q->ask && (!conn || !mo_conn_info(conn)->modern);
}

static void refuse_what_it_lacks(struct flight *f)
{
    mo_list_each_safe (n, &f->questions) {
        struct question *q = mo_container_of(n, struct question, node);
        struct mo_json params = params_of(q);

        if (can_be_told(q) && !mo_ep_call_takes(f->down, method_of(q), params))
            refuse(q,
                   q->ask->kind == MO_ASK_ELICIT ? MO_RPC_INVALID_PARAMS
                                                 : MO_RPC_METHOD_NOT_FOUND,
                   "the client did not say that it can do this");
    }
}

static void put(struct flight *f)
{
    mo_list_each (n, &f->questions) {
        struct question *q = mo_container_of(n, struct question, node);
        char key[KEY_MAX];

        key_of(q, key);
        q->asked = true;
        visit_begin(f, params_of(q));
        mo_ep_call_need(f->down, key, method_of(q), mo_json_text(params_of(q)));
    }
    mo_ep_call_set_state(f->down, mo_span_cstr(f->id));
}

void flight_put_questions(struct flight *f)
{
    struct mo_ep_call *c = f->down;

    refuse_what_it_lacks(f);
    if (!mo_list_empty(&f->questions) && park(f) < 0)
        flight_drop_questions(f, "too many questions are open");
    if (mo_list_empty(&f->questions)) {
        flight_hold(f, false);
        return;
    }
    flight_hold(f, true);
    put(f);
    switch (mo_ep_call_wait(c)) {
    case MO_EP_WAITS:
        f->how = DOWN_WAITS;
        break;
    case MO_EP_AWAY:
        f->down = NULL;
        f->how = DOWN_AWAY;
        mo_timer_start(f->g->loop, &f->expiry, f->g->o.away_ms);
        break;
    case MO_EP_ENDED:
        f->down = NULL;
        flight_cancel(f, "the client cannot be asked");
        break;
    }
}

/* --- and back ------------------------------------------------------------ */

static void take_refusal(struct question *q, struct mo_json error)
{
    struct mo_buf b;
    int64_t code = MO_RPC_INTERNAL;

    (void)mo_json_i64(mo_json_get(error, "code"), &code);
    mo_buf_init(&b, MO_CONN_TEXT_MAX);
    (void)mo_json_str_buf(mo_json_get(error, "message"), &b);
    refuse(q, (int)code, mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

/* true: it is answered or refused, and gone. */
static bool take_answer(struct question *q, struct mo_ep_call *c)
{
    struct mo_json in, no;
    char key[KEY_MAX];

    key_of(q, key);
    in = mo_ep_call_input(c, key);
    no = mo_ep_call_refusal(c, key);
    if (!q->asked || (!mo_json_is(in, MO_JSON_OBJECT) && !no.p))
        return false;
    if (no.p)
        take_refusal(q, no);
    else
        answer(q, in);
    return true;
}

/* From the beginning each time: a refusal may end other questions, too. */
static void take_answers(struct flight *f, struct mo_ep_call *c)
{
    bool any;

    do {
        any = false;
        mo_list_each (n, &f->questions) {
            any = take_answer(mo_container_of(n, struct question, node), c);
            if (any)
                break;
        }
    } while (any);
}

/* What it missed is told before what comes now. */
static void catch_up(struct flight *f)
{
    struct mo_json v = {f->progress.p, f->progress.len};

    if (f->progress.len && !mo_buf_err(&f->progress))
        mo_ep_call_progress_raw(f->down, v);
    mo_buf_fini(&f->progress);
}

static bool is_his(const struct flight *f, const struct mo_ep_call *c)
{
    char who[CROSS_WHO_MAX];

    cross_who(c->peer, c->caller, who);
    return strcmp(who, f->who) == 0 && f->ep == mo_ep_call_endpoint(c);
}

void flight_resume(struct mo_gateway *g, struct mo_ep_call *c)
{
    struct flight *f = mo_map_get(&g->parked, mo_ep_call_state(c));
    bool waits = f && f->how == DOWN_WAITS && f->down == c;

    if (!f || !is_his(f, c) || (!waits && f->how != DOWN_AWAY)) {
        mo_ep_call_error(c, MO_RPC_INVALID_PARAMS,
                         "this call is not waiting for you (any more); begin "
                         "again",
                         mo_span(NULL, 0));
        return;
    }
    flight_attach(f, c);
    if (f->over) {
        flight_deliver(f);
        return;
    }
    take_answers(f, c);
    catch_up(f);
    flight_put_questions(f);
}

/* --- from the server ----------------------------------------------------- */

/* A modern client hears all questions in one answer, a legacy server asks them
 * one by one: it is given a moment. */
static void ask_soon(struct flight *f, const struct mo_child *c)
{
    const struct mo_conn *conn = mo_child_conn(c);
    bool legacy = conn && !mo_conn_info(conn)->modern;

    if (!legacy || !mo_mcp_is_modern(f->down->version))
        mo_loop_defer(f->g->loop, &f->later);
    else if (!mo_timer_on(&f->gather))
        mo_timer_start(f->g->loop, &f->gather, f->g->o.gather_ms);
}

void flight_ask(struct slot *s, struct mo_child *c, struct mo_ask *a)
{
    struct flight *f = flight_of(s, c, a->call);
    struct question *q = NULL;

    a->user = NULL;
    if (!f || f->how == DOWN_GONE) {
        mo_ask_refuse(a, MO_RPC_INTERNAL,
                      "nobody can tell whose question this is");
        return;
    }
    if (f->down && !mo_ep_call_may_ask(f->down)) {
        mo_ask_refuse(a, MO_RPC_METHOD_NOT_FOUND,
                      "the client cannot be asked during this request");
        return;
    }
    q = question_new(f);
    if (!q) {
        mo_ask_refuse(a, MO_RPC_INTERNAL, "out of memory");
        return;
    }
    q->ask = a;
    a->user = q;
    flight_hold(f, true);
    if (f->how == DOWN_HELD)
        ask_soon(f, c);
}

/* It must still be ended; nothing is sent then. */
void flight_ask_gone(struct mo_ask *a)
{
    struct question *q = a->user;
    struct flight *f = q ? q->f : NULL;
    bool out = q && q->asked;

    mo_ask_refuse(a, MO_RPC_INTERNAL, "gone");
    if (!q)
        return;
    question_free(q);
    if (f->how == DOWN_WAITS && out)
        (void)mo_endpoint_wake(f->ep, mo_span_cstr(f->id));
    else if (f->how == DOWN_HELD && mo_list_empty(&f->questions))
        flight_hold(f, false);
}

static int take_input(struct flight *f, struct mo_json key,
                      struct mo_json request)
{
    struct question *q = question_new(f);

    if (!q)
        return MO_ENOMEM;
    (void)mo_buf_span(&q->key, mo_json_text(key));
    q->key_len = key.n;
    if (mo_buf_span(&q->key, mo_json_text(request)) == 0 && method_of(q))
        return 0;
    question_free(q);
    return MO_EPROTO;
}

void flight_task_asks(void *ctx, struct mo_task *t, struct mo_json requests)
{
    struct flight *f = ctx;
    struct mo_json_iter it;
    struct mo_json key, val;
    int rc = 0;

    mo_json_iter(&it, requests);
    while (rc == 0 && mo_json_next(&it, &key, &val))
        rc = take_input(f, key, val);
    if (rc < 0 || f->how == DOWN_GONE ||
        (f->down && !mo_ep_call_may_ask(f->down)))
        mo_task_cancel(t);
    else if (f->how == DOWN_HELD)
        mo_loop_defer(f->g->loop, &f->later);
}
