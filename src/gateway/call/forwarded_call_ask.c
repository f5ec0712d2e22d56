/* forwarded_call_ask.c - passes a server's questions during a call to the
 * client of that call, and the answers back. */
#include "gateway/call/forwarded_call.h"

#include <stdio.h>

#include "gateway/call/call_approval.h"

#define KEY_MAX 128

/* --- questions ----------------------------------------------------------- */

/* The key of a question: the server's if it has one, since a client may
 * depend on it. */
static void question_key(const struct question *q, char out[KEY_MAX])
{
    struct mo_json own = q->ask ? q->ask->key : (struct mo_json){NULL, 0};
    mo_autobuf struct mo_buf b = {.max = KEY_MAX - 1};

    if (own.p && mo_json_str_buf(own, &b) == 0 && b.len &&
        strlen(mo_buf_cstr(&b)) == b.len)
        (void)snprintf(out, KEY_MAX, "%s", mo_buf_cstr(&b));
    else
        (void)snprintf(out, KEY_MAX, "a%u", q->no);
}

static struct mo_json question_request(const struct question *q)
{
    return (struct mo_json){q->key.p + q->key_len, q->key.len - q->key_len};
}

static struct mo_json question_params(const struct question *q)
{
    return q->ask ? q->ask->params : mo_json_get(question_request(q), "params");
}

/* The method of a request to a client; NULL: there is no such method. */
static const char *known_method(struct mo_json request)
{
    struct mo_json name = mo_json_get(request, "method");

    for (int i = 0; i < MO_ASK_KINDS; i++) {
        const char *m = mo_ask_method((enum mo_ask_kind)i);

        if (mo_json_str_eq(name, mo_span_cstr(m)))
            return m;
    }
    return NULL;
}

/* Never NULL after take_input(), which rejects unknown methods. */
static const char *question_method(const struct question *q)
{
    return q->ask ? mo_ask_method(q->ask->kind)
                  : known_method(question_request(q));
}

static void question_free(struct question *q)
{
    mo_list_del(&q->node);
    mo_buf_fini(&q->key);
    mo_free(q);
}

static struct question *question_new(struct forwarded_call *f)
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

/* A task's input cannot be refused: the task ends by itself or by timeout. */
static void refuse_question(struct question *q, int code, const char *why)
{
    if (q->own)
        mo_call_approval_answer(q->f, (struct mo_json){NULL, 0});
    else if (q->ask)
        mo_ask_refuse(q->ask, code, why);
    question_free(q);
}

static void answer_question(struct question *q, struct mo_json value)
{
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};

    if (q->ask || q->own) {
        if (q->own)
            mo_call_approval_answer(q->f, value);
        else
            mo_ask_answer(q->ask, mo_json_text(value));
        question_free(q);
        return;
    }
    (void)mo_buf_putc(&b, '{');
    (void)mo_buf_span(&b, mo_span(q->key.p, q->key_len));
    (void)mo_buf_putc(&b, ':');
    (void)mo_buf_span(&b, mo_json_text(value));
    (void)mo_buf_putc(&b, '}');
    if (!mo_buf_err(&b) && q->f->task)
        (void)mo_task_input(q->f->task, mo_buf_view(&b));
    question_free(q);
}

void mo_forward_drop_questions(struct forwarded_call *f, const char *why)
{
    while (!mo_list_empty(&f->questions))
        refuse_question(
            mo_container_of(f->questions.next, struct question, node),
            MO_RPC_INTERNAL, why);
}

/* --- sending questions --------------------------------------------------- */

int mo_forward_park(struct forwarded_call *f)
{
    int rc;

    if (f->id[0])
        return 0;
    mo_random_token(f->id, FORWARD_TOKEN);
    rc = mo_map_put(&f->g->parked, mo_span_cstr(f->id), f, NULL);
    if (rc < 0)
        f->id[0] = '\0';
    return rc;
}

/* True if the question can be refused: a legacy server continues without the
 * answer. For a modern server the client gets the error instead. */
static bool can_be_told(const struct question *q)
{
    const struct mo_conn *conn =
        q->f->child ? mo_child_conn(q->f->child) : NULL;

    return q->ask && (!conn || !mo_conn_info(conn)->modern);
}

/* Notes {"method":...,"params":...} as the reason if the call fails. */
static void note_lacking(struct forwarded_call *f, const struct question *q)
{
    struct mo_json params = question_params(q);

    if (f->lacked.len)
        return;
    (void)mo_buf_printf(&f->lacked,
                        "{\"method\":\"%s\",\"params\":", question_method(q));
    (void)mo_buf_span(&f->lacked,
                      params.p ? mo_json_text(params) : MO_SPAN("{}"));
    (void)mo_buf_putc(&f->lacked, '}');
}

static void refuse_unsupported(struct forwarded_call *f, struct mo_ep_call *c)
{
    mo_list_each_entry_safe (q, &f->questions, struct question, node) {
        if (!can_be_told(q) ||
            mo_ep_call_takes(c, question_method(q), question_params(q)))
            continue;
        note_lacking(f, q);
        refuse_question(q,
                        q->ask->kind == MO_ASK_ELICIT ? MO_RPC_INVALID_PARAMS
                                                      : MO_RPC_METHOD_NOT_FOUND,
                        "the client does not support this request");
    }
}

/* A modern server would have returned this error itself. */
bool mo_forward_answer_lacking(struct forwarded_call *f, struct mo_ep_call *c,
                               bool failed)
{
    struct mo_json q = {f->lacked.p, f->lacked.len};
    struct mo_json params = mo_json_get(q, "params");
    const char *method = NULL;

    if (!failed || !f->lacked.len || mo_buf_err(&f->lacked) ||
        !mo_mcp_is_modern(c->version) || !mo_ep_call_may_ask(c))
        return false;
    method = known_method(q);
    if (!method || mo_ep_call_takes(c, method, params))
        return false;
    mo_ep_call_need(c, "lacked", method, mo_json_text(params));
    (void)mo_ep_call_wait(c); /* answers with error -32021 */
    return true;
}

static void ask_client_all(struct forwarded_call *f)
{
    mo_list_each_entry (q, &f->questions, struct question, node) {
        char key[KEY_MAX];

        question_key(q, key);
        q->asked = true;
        mo_elicitation_begin(f, question_params(q));
        mo_ep_call_need(f->down, key, question_method(q),
                        mo_json_text(question_params(q)));
    }
    mo_ep_call_set_state(f->down, mo_span_cstr(f->id));
}

void mo_forward_send_questions(struct forwarded_call *f)
{
    struct mo_ep_call *c = f->down;

    refuse_unsupported(f, c);
    if (!mo_list_empty(&f->questions) && mo_forward_park(f) < 0)
        mo_forward_drop_questions(
            f, "too many calls wait for answers of their clients");
    if (mo_list_empty(&f->questions)) {
        mo_forward_hold(f, false);
        return;
    }
    mo_forward_hold(f, true);
    ask_client_all(f);
    switch (mo_ep_call_wait(c)) {
    case MO_EP_WAITS:
        f->client = CLIENT_ASKED;
        break;
    case MO_EP_AWAY:
        f->down = NULL;
        f->client = CLIENT_AWAY;
        mo_timer_start(f->g->loop, &f->expiry, f->g->o.away_ms);
        break;
    case MO_EP_ENDED:
        f->down = NULL;
        mo_forward_cancel(f, "the client does not support the question");
        break;
    }
}

/* --- receiving answers --------------------------------------------------- */

static void take_refusal(struct question *q, struct mo_json error)
{
    mo_autobuf struct mo_buf b = {.max = MO_CONN_TEXT_MAX};
    int64_t code = MO_RPC_INTERNAL;

    (void)mo_json_i64(mo_json_get(error, "code"), &code);
    (void)mo_json_str_buf(mo_json_get(error, "message"), &b);
    refuse_question(q, (int)code, mo_buf_cstr(&b));
}

/* The answers are in c, or in responses if c is NULL. True: the question was
 * answered or refused, and is freed. */
static bool take_answer(struct question *q, struct mo_ep_call *c,
                        struct mo_json responses)
{
    struct mo_json in, no = {NULL, 0};
    char key[KEY_MAX];

    question_key(q, key);
    in = c ? mo_ep_call_input(c, key) : mo_json_get(responses, key);
    if (c)
        no = mo_ep_call_refusal(c, key);
    if (!q->asked || (!mo_json_is(in, MO_JSON_OBJECT) && !no.p))
        return false;
    if (no.p)
        take_refusal(q, no);
    else
        answer_question(q, in);
    return true;
}

/* Restarts after each answer: a refusal may free other questions, too. */
static void take_answers(struct forwarded_call *f, struct mo_ep_call *c,
                         struct mo_json responses)
{
    bool any;

    do {
        any = false;
        mo_list_each_entry (q, &f->questions, struct question, node) {
            any = take_answer(q, c, responses);
            if (any)
                break;
        }
    } while (any);
}

void mo_forward_answer_questions(struct forwarded_call *f,
                                 struct mo_json responses)
{
    take_answers(f, NULL, responses);
}

/* Sends the last progress notification that the client missed. */
static void send_missed_progress(struct forwarded_call *f)
{
    struct mo_json v = {f->progress.p, f->progress.len};

    if (f->progress.len && !mo_buf_err(&f->progress))
        mo_ep_call_progress_raw(f->down, v);
    mo_buf_fini(&f->progress);
}

static bool is_same_client(const struct forwarded_call *f,
                           const struct mo_ep_call *c)
{
    char who[MO_GW_WHO_MAX];

    mo_rewrite_client(c, who);
    return strcmp(who, f->who) == 0 && f->ep == mo_ep_call_endpoint(c);
}

void mo_forward_resume(struct mo_gateway *g, struct mo_ep_call *c)
{
    struct forwarded_call *f = mo_map_get(&g->parked, mo_ep_call_state(c));
    bool waits = f && f->client == CLIENT_ASKED && f->down == c;

    if (!f || !is_same_client(f, c) || (!waits && f->client != CLIENT_AWAY)) {
        mo_ep_call_error(c, MO_RPC_INVALID_PARAMS,
                         "no call waits for this requestState; send the "
                         "request again without it",
                         mo_span(NULL, 0));
        return;
    }
    mo_forward_attach(f, c);
    if (f->ended) {
        mo_forward_deliver(f);
        return;
    }
    take_answers(f, c, (struct mo_json){NULL, 0});
    send_missed_progress(f);
    mo_forward_send_questions(f);
}

/* --- questions of a task ------------------------------------------------- */

void mo_forward_show_questions(struct forwarded_call *f, struct mo_ep_call *c,
                               struct mo_jw *w)
{
    refuse_unsupported(f, c);
    mo_list_each_entry (q, &f->questions, struct question, node) {
        struct mo_json params = question_params(q);
        char key[KEY_MAX];

        question_key(q, key);
        q->asked = true;
        mo_jw_member_obj(w, key);
        mo_jw_member_cstr(w, "method", question_method(q));
        mo_jw_member_raw(w, "params",
                         params.p ? mo_json_text(params) : MO_SPAN("{}"));
        mo_jw_end(w);
    }
}

/* --- questions of our own ------------------------------------------------ */

int mo_forward_question(struct forwarded_call *f, const char *method,
                        struct mo_span params)
{
    struct question *q = question_new(f);

    if (!q)
        return MO_ENOMEM;
    q->own = true;
    (void)mo_buf_printf(&q->key, "{\"method\":\"%s\",\"params\":", method);
    (void)mo_buf_span(&q->key, params);
    if (mo_buf_putc(&q->key, '}') < 0) {
        question_free(q);
        return MO_ENOMEM;
    }
    mo_loop_defer(f->g->loop, &f->later);
    return 0;
}

/* --- questions of the server --------------------------------------------- */

/* A modern client gets all questions in one result, but a legacy server
 * sends them one by one: waits briefly for more. */
static void schedule_questions(struct forwarded_call *f,
                               const struct mo_child *c)
{
    const struct mo_conn *conn = mo_child_conn(c);
    bool legacy = conn && !mo_conn_info(conn)->modern;

    if (!legacy || !mo_mcp_is_modern(f->down->version))
        mo_loop_defer(f->g->loop, &f->later);
    else if (!mo_timer_on(&f->gather))
        mo_timer_start(f->g->loop, &f->gather, f->g->o.gather_ms);
}

static void on_pushed(void *ctx, struct mo_json result, struct mo_json error)
{
    struct question *q = ctx;

    q->push = NULL;
    if (mo_json_is(result, MO_JSON_OBJECT))
        answer_question(q, result);
    else if (error.p)
        take_refusal(q, error);
    else
        refuse_question(q, MO_RPC_INTERNAL, "the client did not answer");
}

/* Asks the client of the session. False: there is no single one. */
static bool ask_session(const struct server_slot *s, const struct mo_child *c,
                        struct mo_ask *a)
{
    uint64_t peer = mo_forward_session_of(s, c);
    struct question *q = peer ? mo_new(struct question) : NULL;

    if (!q)
        return false;
    mo_list_init(&q->node);
    mo_buf_init(&q->key, 0);
    q->ask = a;
    mo_list_each_entry (x, &s->g->eps, struct gw_ep, node) {
        if (!q->push && mo_gw_shows(x->view, s))
            q->push = mo_endpoint_ask(x->ep, peer, mo_ask_method(a->kind),
                                      mo_json_text(a->params), on_pushed, q);
    }
    if (!q->push)
        question_free(q);
    else
        a->user = q;
    return a->user != NULL;
}

/* True if the question concerns the session, not a call. A legacy server may
 * ask for roots at any time. A call that happens to be under way might end,
 * and drop its questions, before the client answers. */
static bool is_of_session(const struct server_slot *s, const struct mo_child *c,
                          const struct mo_ask *a)
{
    const struct mo_conn *conn = mo_child_conn(c);
    const struct mo_link *link = conn ? mo_conn_link(conn) : NULL;
    uint64_t peer = mo_forward_session_of(s, c);
    bool hears = false;

    if (a->kind != MO_ASK_ROOTS || !peer || !link ||
        mo_conn_info(conn)->modern || mo_link_is_http(link))
        return false;
    mo_list_each_entry (x, &s->g->eps, struct gw_ep, node)
        hears = hears ||
                (mo_gw_shows(x->view, s) && mo_endpoint_hears(x->ep, peer));
    return hears;
}

void mo_forward_ask(void *ctx, struct mo_child *c, struct mo_ask *a)
{
    struct server_slot *s = ctx;
    struct forwarded_call *f = mo_forward_find_task_owner(s, c, a->params);
    struct question *q = NULL;

    a->user = NULL;
    if (!f && is_of_session(s, c, a) && ask_session(s, c, a))
        return;
    if (!f)
        f = mo_forward_find_owner(s, c, a->call, NULL);
    if ((!f || f->client == CLIENT_GONE) && ask_session(s, c, a))
        return;
    if (!f || f->client == CLIENT_GONE) {
        mo_ask_refuse(a, MO_RPC_INTERNAL,
                      "the client that this request is for is not known");
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
    mo_forward_hold(f, true);
    if (f->client == CLIENT_WAITING)
        schedule_questions(f, c);
    else if (f->client == CLIENT_HAS_TASK)
        mo_forward_task_changed(f);
}

/* The ask must still be ended; nothing is sent for it. */
void mo_forward_ask_gone(void *ctx, struct mo_ask *a)
{
    struct question *q = a->user;
    struct forwarded_call *f = q ? q->f : NULL;
    bool out = q && q->asked;

    (void)ctx;
    mo_ask_refuse(a, MO_RPC_INTERNAL, "gone");
    if (!q)
        return;
    if (q->push)
        mo_endpoint_unask(q->push);
    question_free(q);
    if (!f)
        return;
    if (f->client == CLIENT_ASKED && out)
        (void)mo_endpoint_wake(f->ep, mo_span_cstr(f->id));
    else if (f->client == CLIENT_WAITING && mo_list_empty(&f->questions))
        mo_forward_hold(f, false);
    else if (f->client == CLIENT_HAS_TASK)
        mo_forward_task_changed(f);
}

static int take_input(struct forwarded_call *f, struct mo_json key,
                      struct mo_json request)
{
    struct question *q = question_new(f);

    if (!q)
        return MO_ENOMEM;
    (void)mo_buf_span(&q->key, mo_json_text(key));
    q->key_len = key.n;
    if (mo_buf_span(&q->key, mo_json_text(request)) == 0 && question_method(q))
        return 0;
    question_free(q);
    return MO_EPROTO;
}

void mo_forward_task_input(void *ctx, struct mo_task *t,
                           struct mo_json requests)
{
    struct forwarded_call *f = ctx;
    int rc = 0;

    mo_json_each_while (at, requests, rc == 0)
        rc = take_input(f, at.key, at.val);
    if (rc < 0 || f->client == CLIENT_GONE ||
        (f->down && !mo_ep_call_may_ask(f->down)))
        mo_task_cancel(t);
    else if (f->client == CLIENT_WAITING)
        mo_loop_defer(f->g->loop, &f->later);
}
