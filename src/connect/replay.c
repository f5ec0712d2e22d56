#include "connect/replay.h"

#include <stdio.h>

#include "base/list.h"
#include "codec/json/jvalue.h"
#include "codec/rpc.h"
#include "mcp/edit.h"

#define ARENA_MAX MO_REPLAY_FILE_MAX
#define TEXT_MAX  ((size_t)64 * 1024 * 1024)
#define STEPS_MAX ((uint64_t)1 << 22) /* for one comparison */

struct step { /* sent by the server before its answer */
    struct mo_list node;
    struct mo_rpc m;
};

struct exchange {
    struct mo_list node;
    struct mo_list open; /* used while reading: not answered yet */
    uint64_t child;
    struct mo_json id, token, method;
    struct mo_json plain;  /* its params without the ignored members */
    struct mo_json answer; /* none: the recording ends before the answer */
    struct mo_list steps;
    bool played;
};

struct playing { /* a request that waits for an answer of the client */
    struct mo_list node;
    const struct exchange *x;
    struct mo_list *at;    /* next step to send */
    unsigned asked;        /* id of the open question; 0: none */
    struct mo_buf request; /* the client's request, a copy */
    struct mo_rpc m;       /* in it */
};

struct mo_replay {
    struct mo_replay_opts o;
    struct mo_arena arena;
    struct mo_list exchanges, open, playing;
    size_t nplaying;
    unsigned asked;
    struct mo_span server; /* name of the played server; empty: not known yet */
};

static struct mo_json token_of(struct mo_json params)
{
    return mo_json_get(mo_json_get(params, "_meta"), "progressToken");
}

static bool same_text(struct mo_json a, struct mo_json b)
{
    return a.p && mo_span_eq(mo_json_text(a), mo_json_text(b));
}

static bool is_method(struct mo_json method, const char *name)
{
    return mo_json_str_eq(method, mo_span_cstr(name));
}

/* --- reading a recording ------------------------------------------------- */

/* Copies the params without the ignored members into the arena. */
static int plain_of(struct mo_replay *r, struct mo_json params,
                    struct mo_json *out)
{
    static const struct mo_edit without[] = {
        {.key = "_meta", .to = {NULL, 0}},
        {.key = "inputResponses", .to = {NULL, 0}},
    };
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};
    char *p = NULL;

    if (mo_json_is(params, MO_JSON_ARRAY))
        (void)mo_buf_span(&b, mo_json_text(params));
    else
        (void)mo_edit(&b, params, without, MO_COUNT(without));
    if (mo_buf_err(&b) == 0)
        p = mo_arena_strndup(&r->arena, mo_buf_cstr(&b), b.len);
    *out = (struct mo_json){p, b.len};
    return p ? 0 : MO_ENOMEM;
}

static int add_exchange(struct mo_replay *r, uint64_t child,
                        const struct mo_rpc *m)
{
    struct exchange *x = mo_arena_new(&r->arena, struct exchange);

    if (!x || plain_of(r, m->params, &x->plain) < 0)
        return MO_ENOMEM;
    x->child = child;
    x->id = m->id;
    x->method = m->method;
    x->token = token_of(m->params);
    mo_list_init(&x->steps);
    mo_list_push(&r->exchanges, &x->node);
    mo_list_push(&r->open, &x->open);
    return 0;
}

static struct exchange *note_answer(struct mo_replay *r, uint64_t child,
                                    struct mo_json id)
{
    mo_list_each_entry (x, &r->open, struct exchange, open) {
        if (x->child == child && same_text(x->id, id))
            return x;
    }
    return NULL;
}

/* A progress notification names its request by token. Any other message belongs
 * to the newest open request. */
static struct exchange *request_of_message(struct mo_replay *r, uint64_t child,
                                           const struct mo_rpc *m)
{
    bool progress = is_method(m->method, "notifications/progress");
    struct mo_json token = mo_json_get(m->params, "progressToken");
    struct exchange *found = NULL;

    mo_list_each_entry (x, &r->open, struct exchange, open) {
        if (x->child == child && (!progress || same_text(x->token, token)))
            found = x;
    }
    return found;
}

static int add_step(struct mo_replay *r, uint64_t child, const struct mo_rpc *m)
{
    struct exchange *x = request_of_message(r, child, m);
    struct step *s = NULL;

    if (!x)
        return 0; /* outside of any request: not replayed */
    s = mo_arena_new(&r->arena, struct step);
    if (!s)
        return MO_ENOMEM;
    s->m = *m;
    mo_list_push(&x->steps, &s->node);
    return 0;
}

static int add_message(struct mo_replay *r, uint64_t child, bool to_server,
                       const struct mo_rpc *m)
{
    struct exchange *x = NULL;

    if (to_server)
        return m->kind == MO_RPC_REQUEST ? add_exchange(r, child, m) : 0;
    if (m->kind == MO_RPC_REQUEST || m->kind == MO_RPC_NOTIFICATION)
        return add_step(r, child, m);
    if (m->kind != MO_RPC_RESULT && m->kind != MO_RPC_ERROR)
        return 0;
    x = note_answer(r, child, m->id);
    if (x) {
        x->answer = m->root;
        mo_list_del(&x->open);
    }
    return 0;
}

/* True if the line belongs to the played server. */
static int is_ours(struct mo_replay *r, struct mo_json server, bool *ours,
                   struct mo_err *e)
{
    struct mo_span name;

    if (mo_json_str(server, &r->arena, &name) < 0)
        return mo_fail(e, MO_ENOMEM, "recording");
    if (r->o.server) {
        *ours = mo_span_is(name, r->o.server);
        if (*ours)
            r->server = name;
        return 0;
    }
    if (!r->server.n)
        r->server = name;
    *ours = mo_span_eq(name, r->server);
    if (*ours)
        return 0;
    return mo_fail(
        e, MO_EINVAL,
        "the recording has several servers ('%.*s', '%.*s', ...); choose one",
        (int)r->server.n, r->server.p, (int)name.n, name.p);
}

static int read_row(struct mo_replay *r, struct mo_json row, struct mo_err *e)
{
    struct mo_json server = mo_json_get(row, "server");
    struct mo_json message = mo_json_get(row, "message");
    struct mo_json to = mo_json_get(row, "to");
    bool to_server = mo_json_str_eq(to, MO_SPAN("server")), ours = false;
    uint64_t child = 0;
    struct mo_rpc m;
    int rc;

    if (!mo_json_is(server, MO_JSON_STRING) || !message.p ||
        mo_json_u64(mo_json_get(row, "child"), &child) < 0 ||
        (!to_server && !mo_json_str_eq(to, MO_SPAN("client"))))
        return mo_fail(e, MO_EPROTO, "not a line of a recording");
    rc = is_ours(r, server, &ours, e);
    if (rc < 0 || !ours || !mo_json_is(message, MO_JSON_OBJECT))
        return rc; /* a message that was left out is null */
    rc = mo_rpc_parse(mo_json_text(message), &m, e);
    if (rc == 0 && add_message(r, child, to_server, &m) < 0)
        rc = mo_fail(e, MO_ENOMEM, "recording");
    return rc;
}

static int read_line(struct mo_replay *r, struct mo_span line, unsigned no,
                     struct mo_err *e)
{
    struct mo_json_doc doc;
    uint64_t version = 0;
    int rc = mo_json_parse(line, 0, &doc, e);

    if (rc == 0 && no > 1)
        rc = read_row(r, doc.root, e);
    else if (rc == 0 &&
             mo_json_u64(mo_json_get(doc.root, "recording"), &version) < 0)
        rc = mo_fail(e, MO_EPROTO, "no recording");
    else if (rc == 0 && version != 1)
        rc = mo_fail(e, MO_EPROTO, "a recording of a newer version");
    return rc < 0 ? mo_wrap(e, "line %u", no) : 0;
}

/* A last line without a newline was cut off when the gateway was killed: it is
 * ignored. */
static int read_all(struct mo_replay *r, struct mo_err *e)
{
    struct mo_span rest = r->o.text;
    unsigned no = 0;
    int rc = 0;

    while (rc == 0 && rest.n) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        if (!rest.p)
            break;
        rc = read_line(r, line, ++no, e);
    }
    if (rc == 0 && no == 0)
        return mo_fail(e, MO_EPROTO, "no recording");
    if (rc == 0 && r->o.server && !r->server.n)
        return mo_fail(e, MO_ENOTFOUND, "the recording has no server '%s'",
                       r->o.server);
    return rc;
}

/* --- playing ------------------------------------------------------------- */

static void send_buf(struct mo_replay *r, const struct mo_buf *b)
{
    if (mo_buf_err(b) == 0)
        r->o.say(r->o.ctx, mo_buf_view(b));
}

static void send_error(struct mo_replay *r, struct mo_json id, int code,
                       const char *why)
{
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    (void)mo_rpc_put_error(&b, mo_json_text(id), code, mo_span_cstr(why),
                           mo_span(NULL, 0));
    send_buf(r, &b);
}

static void send_edited(struct mo_replay *r, struct mo_json message,
                        const char *key, struct mo_span to)
{
    const struct mo_edit edit = {.key = key, .to = to};
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    (void)mo_edit(&b, message, &edit, 1);
    send_buf(r, &b);
}

static void send_progress(struct mo_replay *r, const struct playing *p,
                          const struct mo_rpc *m)
{
    struct mo_json token = token_of(p->m.params);
    const struct mo_edit edit = {.key = "progressToken",
                                 .to = mo_json_text(token)};
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    if (!token.p)
        return; /* the client gave no token */
    if (mo_edit(&b, m->params, &edit, 1) == 0)
        send_edited(r, m->root, "params", mo_buf_view(&b));
}

static void send_question(struct mo_replay *r, struct playing *p,
                          const struct mo_rpc *m)
{
    char id[32];

    p->asked = ++r->asked;
    (void)snprintf(id, sizeof(id), "\"replay-%u\"", p->asked);
    send_edited(r, m->root, "id", mo_span_cstr(id));
}

static void end_playing(struct mo_replay *r, struct playing *p)
{
    mo_list_del(&p->node);
    mo_buf_fini(&p->request);
    mo_free(p);
    r->nplaying--;
}

/* Sends steps up to the next question or the answer. */
static void play_steps(struct mo_replay *r, struct playing *p)
{
    const struct exchange *x = p->x;

    p->asked = 0;
    while (p->at != &x->steps) {
        const struct step *s = mo_container_of(p->at, struct step, node);

        p->at = p->at->next;
        if (s->m.kind == MO_RPC_REQUEST) {
            send_question(r, p, &s->m);
            return;
        }
        if (is_method(s->m.method, "notifications/progress"))
            send_progress(r, p, &s->m);
        else
            send_edited(r, s->m.root, "jsonrpc", MO_SPAN("\"2.0\""));
    }
    if (x->answer.p)
        send_edited(r, x->answer, "id", mo_json_text(p->m.id));
    else
        send_error(r, p->m.id, MO_RPC_INTERNAL,
                   "the recording ends before the answer");
    end_playing(r, p);
}

static bool is_first_message(struct mo_json method)
{
    return is_method(method, "initialize") ||
           is_method(method, "server/discover");
}

/* *known: the method occurs in the recording. */
static struct exchange *find_exchange(struct mo_replay *r,
                                      struct mo_json method,
                                      struct mo_json plain, bool *known)
{
    struct exchange *last = NULL;

    *known = false;
    mo_list_each_entry (x, &r->exchanges, struct exchange, node) {
        uint64_t steps = STEPS_MAX;

        if (!mo_jvalue_str_same(x->method, method))
            continue;
        *known = true;
        if (!is_first_message(method) &&
            mo_jvalue_equal(x->plain, plain, &steps) != 1)
            continue;
        last = x;
        if (!x->played)
            break;
    }
    return last;
}

static void begin_playing(struct mo_replay *r, struct exchange *x,
                          const struct mo_rpc *m)
{
    struct playing *p =
        r->nplaying < MO_REPLAY_PLAYING ? mo_new(struct playing) : NULL;

    if (!p) {
        send_error(r, m->id, MO_RPC_INTERNAL, "too many requests at once");
        return;
    }
    mo_buf_init(&p->request, TEXT_MAX);
    mo_list_push(&r->playing, &p->node);
    r->nplaying++;
    p->x = x;
    p->at = x->steps.next;
    if (mo_buf_span(&p->request, mo_json_text(m->root)) < 0 ||
        mo_rpc_parse(mo_buf_view(&p->request), &p->m, NULL) < 0) {
        send_error(r, m->id, MO_RPC_INTERNAL, "out of memory");
        end_playing(r, p);
        return;
    }
    x->played = true;
    play_steps(r, p);
}

static void on_request(struct mo_replay *r, const struct mo_rpc *m)
{
    static const char pong[] = "{\"jsonrpc\":\"2.0\",\"result\":{}}";
    struct exchange *x = NULL;
    struct mo_json plain;
    bool known = false;

    if (plain_of(r, m->params, &plain) < 0) {
        send_error(r, m->id, MO_RPC_INTERNAL, "out of memory");
        return;
    }
    x = find_exchange(r, m->method, plain, &known);
    if (x)
        begin_playing(r, x, m);
    else if (is_method(m->method, "ping"))
        send_edited(r, (struct mo_json){pong, sizeof(pong) - 1}, "id",
                    mo_json_text(m->id));
    else if (known)
        send_error(r, m->id, MO_RPC_INVALID_PARAMS,
                   "nothing was recorded for these params");
    else
        send_error(r, m->id, MO_RPC_METHOD_NOT_FOUND,
                   "nothing was recorded for this method");
}

/* Handles the answer to a question of the server. */
static void on_answer(struct mo_replay *r, const struct mo_rpc *m)
{
    mo_list_each_entry (p, &r->playing, struct playing, node) {
        char id[32];

        (void)snprintf(id, sizeof(id), "\"replay-%u\"", p->asked);
        if (p->asked && mo_span_is(mo_json_text(m->id), id)) {
            play_steps(r, p);
            return;
        }
    }
}

static void on_cancelled(struct mo_replay *r, struct mo_json id)
{
    mo_list_each_entry (p, &r->playing, struct playing, node) {
        if (same_text(p->m.id, id)) {
            end_playing(r, p);
            return;
        }
    }
}

void mo_replay_take(struct mo_replay *r, struct mo_span line)
{
    static const struct mo_json null = {"null", 4};
    struct mo_rpc m;

    if (mo_rpc_parse(line, &m, NULL) < 0)
        send_error(r, null, MO_RPC_PARSE_ERROR, "not JSON");
    else if (m.kind == MO_RPC_REQUEST)
        on_request(r, &m);
    else if (m.kind == MO_RPC_RESULT || m.kind == MO_RPC_ERROR)
        on_answer(r, &m);
    else if (m.kind == MO_RPC_NOTIFICATION &&
             is_method(m.method, "notifications/cancelled"))
        on_cancelled(r, mo_json_get(m.params, "requestId"));
    else if (m.kind == MO_RPC_INVALID || m.kind == MO_RPC_BATCH)
        send_error(r, m.kind == MO_RPC_INVALID && m.id.p ? m.id : null,
                   MO_RPC_INVALID_REQUEST, "not an MCP message");
}

/* --- new and free --------------------------------------------------------- */

int mo_replay_new(const struct mo_replay_opts *o, struct mo_replay **out,
                  struct mo_err *e)
{
    struct mo_replay *r = mo_new(struct mo_replay);
    int rc;

    if (!r)
        return mo_fail(e, MO_ENOMEM, "recording");
    r->o = *o;
    mo_arena_init(&r->arena, ARENA_MAX);
    mo_list_init(&r->exchanges);
    mo_list_init(&r->open);
    mo_list_init(&r->playing);
    rc = read_all(r, e);
    if (rc < 0)
        mo_replay_free(r);
    else
        *out = r;
    return rc;
}

void mo_replay_free(struct mo_replay *r)
{
    if (!r)
        return;
    mo_list_each_safe (n, &r->playing)
        end_playing(r, mo_container_of(n, struct playing, node));
    mo_arena_fini(&r->arena);
    mo_free(r);
}
