/* ask.c - requests of a server to us, in either era.
 *
 * Legacy: a JSON-RPC request, answered with a response. Modern: a member of
 * inputRequests in the result of one of our calls; when the last one is
 * answered the call is sent again (call.c). The owner sees no difference.
 *
 * An ask passed to the owner stays valid until answered, even when the call or
 * the connection is gone (c == NULL): then the answer is dropped. */
#include "codec/http/url.h"
#include "mcp/client/conn_priv.h"

#define URL_MAX ((size_t)16 * 1024)

static const struct {
    const char *method;
    unsigned needs; /* any of these */
} kinds[MO_ASK_KINDS] = {
    [MO_ASK_SAMPLING] = {"sampling/createMessage", CAN_SAMPLING},
    [MO_ASK_ELICIT] = {"elicitation/create", CAN_FORM | CAN_URL},
    [MO_ASK_ROOTS] = {"roots/list", CAN_ROOTS},
};

const char *mo_ask_method(enum mo_ask_kind kind)
{
    return kinds[kind].method;
}

/* True for a URL that a person may be asked to open: http or https, and no
 * userinfo that could look like another host. */
static bool is_page(struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = URL_MAX};
    struct mo_url u;

    return mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0 &&
           mo_url_parse(mo_buf_view(&b), &u, NULL) == 0 && u.host.n &&
           !u.userinfo.p &&
           (mo_span_ieq(u.scheme, MO_SPAN("https")) ||
            mo_span_ieq(u.scheme, MO_SPAN("http")));
}

/* True if we declared this mode. The url mode came with 2025-11-25. */
static bool is_mode_offered(const struct mo_conn *c, struct mo_json params)
{
    struct mo_json mode = mo_json_get(params, "mode");

    if (!mode.p || mo_json_str_eq(mode, MO_SPAN("form")))
        return c->can & CAN_FORM;
    return mo_json_str_eq(mode, MO_SPAN("url")) && (c->can & CAN_URL) &&
           c->speak >= MO_MCP_2025_11_25 && is_page(mo_json_get(params, "url"));
}

/* Returns 0 and the kind, or the JSON-RPC error code to refuse with. */
static int check_request(const struct mo_conn *c, struct mo_json method,
                         struct mo_json params, enum mo_ask_kind *out)
{
    int kind = 0;

    while (kind < MO_ASK_KINDS &&
           !mo_json_str_eq(method, mo_span_cstr(kinds[kind].method)))
        kind++;
    if (kind == MO_ASK_KINDS || !c->o.cb->on_ask ||
        !(c->can & kinds[kind].needs))
        return MO_RPC_METHOD_NOT_FOUND;
    *out = (enum mo_ask_kind)kind;
    if (kind == MO_ASK_ELICIT && !is_mode_offered(c, params))
        return MO_RPC_INVALID_PARAMS;
    return 0;
}

/* --- life ---------------------------------------------------------------- */

static void ask_free(struct ask *a)
{
    mo_list_del(&a->node);
    mo_buf_fini(&a->text);
    mo_free(a);
}

static struct ask *ask_new(struct mo_conn *c, struct mo_json key,
                           struct mo_json params, enum mo_ask_kind kind)
{
    struct ask *a = mo_new(struct ask);

    if (!a)
        return NULL;
    mo_list_init(&a->node);
    mo_buf_init(&a->text, MO_CONN_TEXT_MAX);
    mo_buf_span(&a->text, mo_json_text(key));
    if (params.p)
        mo_buf_span(&a->text, mo_json_text(params));
    if (mo_buf_err(&a->text)) {
        ask_free(a);
        return NULL;
    }
    a->key_len = key.n;
    a->c = c;
    a->pub.kind = kind;
    if (params.p)
        a->pub.params = (struct mo_json){a->text.p + key.n, params.n};
    return a;
}

static struct mo_span key_of(const struct ask *a)
{
    return mo_span(a->text.p, a->key_len);
}

/* The server no longer waits for it. */
static void orphan_ask(struct ask *a)
{
    const struct mo_conn *c = a->c;

    mo_list_del(&a->node);
    a->c = NULL;
    a->call = NULL;
    if (!a->handed)
        ask_free(a);
    else if (c->o.cb->on_ask_gone)
        c->o.cb->on_ask_gone(c->o.ctx, &a->pub);
}

void mo_conn_ask_orphan(struct mo_list *asks)
{
    mo_list_drain (a, asks, struct ask, node)
        orphan_ask(a);
}

/* --- legacy: requests of the server -------------------------------------- */

static void send_response(struct mo_conn *c, int rc)
{
    struct mo_link_msg m = {.text = mo_buf_view(&c->out)};

    if (rc == 0)
        rc = mo_conn_write(c, &m);
    if (rc == 0 || rc == MO_ECLOSED)
        return;
    mo_conn_close(c, mo_error(rc, "cannot send an answer to the server (%s)",
                              mo_err_name(rc)));
}

static void send_refusal(struct mo_conn *c, struct mo_span id, int code,
                         const char *message)
{
    mo_buf_reset(&c->out);
    send_response(c, mo_rpc_put_error(&c->out, id, code, mo_span_cstr(message),
                                      mo_span(NULL, 0)));
}

/* The number of the call that caused the request; 0: unknown. */
static uint64_t find_cause(struct mo_conn *c, uint64_t stream_of)
{
    struct mo_call *k =
        stream_of ? mo_conn_call_find(c, stream_of) : mo_conn_call_only(c);

    return k ? k->number : 0;
}

static void hand_up_request(struct mo_conn *c, const struct mo_rpc *m,
                            enum mo_ask_kind kind, uint64_t stream_of)
{
    struct ask *a = NULL;

    if (c->nasks < MO_CONN_ASKS_MAX)
        a = ask_new(c, m->id, m->params, kind);
    if (!a) {
        c->stats.refused++;
        send_refusal(c, mo_json_text(m->id), MO_RPC_INTERNAL,
                     "too many requests at once");
        return;
    }
    a->handed = true;
    a->pub.call = find_cause(c, stream_of);
    c->nasks++;
    mo_list_push(&c->asks, &a->node);
    c->o.cb->on_ask(c->o.ctx, c, &a->pub);
}

void mo_conn_ask_request(struct mo_conn *c, const struct mo_rpc *m,
                         uint64_t stream_of)
{
    struct mo_span id = mo_json_text(m->id);
    enum mo_ask_kind kind = MO_ASK_KINDS;
    int code = MO_RPC_METHOD_NOT_FOUND;

    c->stats.asks++;
    if (!c->modern && mo_json_str_eq(m->method, MO_SPAN("ping"))) {
        mo_buf_reset(&c->out);
        send_response(c, mo_rpc_put_result(&c->out, id, MO_SPAN("{}")));
        return;
    }
    if (!c->modern && c->state == C_OPEN)
        code = check_request(c, m->method, m->params, &kind);
    if (code == 0) {
        hand_up_request(c, m, kind, stream_of);
        return;
    }
    c->stats.refused++;
    if (!c->modern ||
        !mo_link_is_http(c->link)) /* modern HTTP has no way to answer */
        send_refusal(c, id, code,
                     code == MO_RPC_METHOD_NOT_FOUND
                         ? "this client does not offer it"
                         : "this client does not offer that mode");
}

void mo_conn_ask_cancelled(struct mo_conn *c, struct mo_json id)
{
    mo_list_each_entry (a, &c->asks, struct ask, node) {
        if (!mo_span_eq(key_of(a), mo_json_text(id)))
            continue;
        c->nasks--;
        orphan_ask(a);
        return;
    }
}

/* --- modern: inputRequests ----------------------------------------------- */

static int add_input(struct mo_call *k, struct mo_json key,
                     struct mo_json request, struct mo_err *e)
{
    struct mo_json params = mo_json_get(request, "params");
    enum mo_ask_kind kind = MO_ASK_KINDS;
    struct ask *a;

    if (!mo_json_is(params, MO_JSON_OBJECT))
        params = (struct mo_json){NULL, 0};
    if (check_request(k->c, mo_json_get(request, "method"), params, &kind) != 0)
        return mo_fail(e, MO_EPROTO,
                       "%s: the server requests input that was not offered",
                       k->method);
    if (k->open_asks >= MO_CONN_INPUTS_MAX)
        return mo_fail(e, MO_ETOOBIG, "%s: more than %d inputRequests",
                       k->method, MO_CONN_INPUTS_MAX);
    a = ask_new(k->c, key, params, kind);
    if (!a)
        return mo_fail(e, MO_ENOMEM, "%s: inputRequests", k->method);
    a->call = k;
    a->pub.call = k->number;
    a->pub.key = (struct mo_json){a->text.p, a->key_len};
    k->open_asks++;
    k->c->stats.asks++;
    mo_list_push(&k->asks, &a->node);
    return 0;
}

/* Read inputRequests and requestState from the result. */
int mo_conn_ask_inputs(struct mo_call *k, struct mo_json result,
                       struct mo_err *e)
{
    struct mo_json all = mo_json_get(result, "inputRequests");
    struct mo_json state = mo_json_get(result, "requestState");
    int rc = 0;

    mo_buf_reset(&k->input);
    mo_buf_reset(&k->state);
    if (!state.p && mo_json_len(all) == 0)
        return mo_fail(e, MO_EPROTO,
                       "%s: the server needs input but does not say which",
                       k->method);
    if (state.p && mo_buf_span(&k->state, mo_json_text(state)) < 0)
        return mo_fail(e, mo_buf_err(&k->state), "%s: requestState", k->method);
    mo_json_each_while (m, all, rc == 0)
        rc = m.key.p ? add_input(k, m.key, m.val, e)
                     : mo_fail(e, MO_EPROTO,
                               "%s: inputRequests is not an object", k->method);
    if (rc < 0)
        mo_conn_ask_orphan(&k->asks);
    return rc;
}

static struct ask *first_not_handed(const struct mo_call *k)
{
    mo_list_each_entry (a, &k->asks, struct ask, node)
        if (!a->handed)
            return a;
    return NULL;
}

/* The owner may answer, cancel the call or close the connection in the
 * callback; the call is freed only after the loop has run again. */
void mo_conn_ask_hand_up(struct mo_call *k)
{
    struct mo_conn *c = k->c;

    for (struct ask *a = first_not_handed(k); a && !k->ended;
         a = first_not_handed(k)) {
        a->handed = true;
        c->o.cb->on_ask(c->o.ctx, c, &a->pub);
    }
}

static void answer_input(struct ask *a, struct mo_span result)
{
    struct mo_call *k = a->call;

    if (k->input.len)
        mo_buf_putc(&k->input, ',');
    mo_buf_span(&k->input, key_of(a));
    mo_buf_putc(&k->input, ':');
    mo_buf_span(&k->input, result);
    k->open_asks--;
    ask_free(a);
    if (k->open_asks == 0)
        mo_conn_call_again(k);
}

/* --- for the owner ------------------------------------------------------- */

void mo_ask_answer(struct mo_ask *pub, struct mo_span result)
{
    struct ask *a = mo_container_of(pub, struct ask, pub);
    struct mo_conn *c = a->c;

    if (!c) {
        ask_free(a);
        return;
    }
    result = mo_conn_codec_one_line(c, result.n ? result : MO_SPAN("{}"));
    if (result.n == 0) {
        mo_ask_refuse(pub, MO_RPC_INTERNAL, "no memory for the answer");
        return;
    }
    if (a->call) {
        answer_input(a, result);
        return;
    }
    c->nasks--;
    mo_buf_reset(&c->out);
    send_response(c, mo_rpc_put_result(&c->out, key_of(a), result));
    ask_free(a);
}

void mo_ask_refuse(struct mo_ask *pub, int code, const char *message)
{
    struct ask *a = mo_container_of(pub, struct ask, pub);
    struct mo_conn *c = a->c;
    struct mo_call *k = a->call;

    if (c && !k) {
        c->nasks--;
        send_refusal(c, key_of(a), code, message);
    }
    ask_free(a);
    if (!k)
        return;
    mo_conn_call_end_later(
        k, mo_error(MO_EPOLICY, "%s: the server's question was refused: %s",
                    k->method, message));
}
