/* script_calls.c - see script_calls.h. */
#include "agent/chat/script_calls.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_grant.h"
#include "agent/chat/script_tools.h"
#include "codec/sha256.h"
#include "codec/text/utf8.h"
#include "mcp/content.h"
#include "mcp/script/answer.h"

#define ANSWER_MS  30000
#define ID_TOP     ((uint64_t)1 << 53)
#define LOG_MAX    ((size_t)256 * 1024)
#define LOG_CALLS  500
#define LOG_ARGS   ((size_t)2048) /* longer arguments are left out */
#define LOG_TEXT   ((size_t)512)  /* of a result */
#define BATCH_DOCS (MO_STORE_BATCH_BYTES / 2)

struct script {
    struct call *call;
    char digest[MO_SHA256_HEX + 1];
    char language[16];
    uint64_t token;        /* the progressToken of the call */
    unsigned made;         /* calls so far */
    unsigned open;         /* without an answer */
    bool is_closed;        /* nothing can be answered any more */
    struct mo_later store; /* writes the calls that arrived together */
    struct mo_later sweep; /* frees the calls that are over */
    struct mo_buf log;     /* elements of an array: calls that are over */
    unsigned logged;
    uint64_t call_bytes, result_bytes; /* of all: tool_tokens.h */
};

/* The calls of one batch. */
struct batch {
    struct call *v[MO_SCRIPT_OPEN_MAX];
    size_t n;
};

bool mo_script_is(const struct mo_tool *t)
{
    return t && t->source == SOURCE_BOX &&
           mo_span_is(t->def.name, MO_SCRIPT_TOOL);
}

const char *mo_script_digest(const struct call *k)
{
    return k && k->script ? k->script->digest : NULL;
}

bool mo_script_waits(const struct call *k)
{
    return k->script && k->script->open > 0;
}

/* --- answers -------------------------------------------------------------- */

static void on_answered(void *ctx, const struct mo_reply *r)
{
    (void)ctx;
    (void)r; /* the script may have ended meanwhile */
}

/* MO_ECLOSED: the box of the script is gone. */
static int send_answer(const struct script *s, const struct mo_buf *params)
{
    const struct mo_call_opts o = {.idle_ms = ANSWER_MS, .done = on_answered};
    struct chat *c = s->call->chat;
    struct mo_err e;

    if (mo_buf_err(params))
        return mo_buf_err(params);
    if (!s->call->running || !c->info.conn || s->call->conn != c->info.conn)
        return MO_ECLOSED;
    return mo_conn_request(c->info.conn, MO_SCRIPT_ANSWER, mo_buf_view(params),
                           &o, &e)
               ? 0
               : e.code;
}

static void answer_error(const struct script *s, uint64_t id, const char *kind,
                         struct mo_span text)
{
    mo_autobuf struct mo_buf params = {.max = REASON_MAX * 8};

    mo_script_put_error(&params, s->token, id, kind, text);
    (void)send_answer(s, &params);
}

static void answer_result(const struct script *s, uint64_t id,
                          struct mo_span result)
{
    mo_autobuf struct mo_buf params = {.max = MO_CONN_TEXT_MAX};
    int rc;

    mo_script_put_result(&params, s->token, id, result);
    rc = send_answer(s, &params);
    if (rc < 0 && rc != MO_ECLOSED)
        answer_error(s, id, "failed", MO_SPAN(MO_SCRIPT_TOO_LARGE));
}

/* The name of the error that a script gets for an outcome; NULL: a result. */
static const char *error_kind(const struct call *k)
{
    if (k->state == MO_CALL_UNKNOWN)
        return "unknown";
    if (k->state == MO_CALL_REJECTED && k->is_denied)
        return "denied";
    if (k->state == MO_CALL_REJECTED)
        return k->by && strcmp(k->by, "rule") == 0 ? "failed" : "rejected";
    if (mo_buf_err(&k->raw) || (k->raw.len == 0 && k->is_error))
        return "failed";
    return NULL;
}

/* A call that the program answered itself has no result of a server. */
static void answer_content(const struct script *s, const struct call *k)
{
    mo_autobuf struct mo_buf b = {.max = MO_SCRIPT_RESULT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_raw(&w, "content", mo_buf_view(&k->content));
    mo_jw_end(&w);
    answer_result(s, k->frame, mo_buf_view(&b));
}

/* The text of the first block, or all of the content. */
static void put_text_of(const struct call *k, struct mo_buf *out)
{
    struct mo_json content = {k->content.p, k->content.len};
    struct mo_json text = mo_json_get(mo_json_at(content, 0), "text");

    if (!mo_json_is(text, MO_JSON_STRING) || mo_json_str_buf(text, out) < 0)
        mo_buf_span(out, mo_buf_view(&k->content));
}

/* A no has the person's own reason, if there is one. */
static void answer_call(const struct script *s, const struct call *k)
{
    const char *kind = error_kind(k);
    mo_autobuf struct mo_buf text = {.max = MO_STORE_DOC_MAX};

    if (kind == NULL) {
        if (k->raw.len > 0)
            answer_result(s, k->frame, mo_buf_view(&k->raw));
        else
            answer_content(s, k);
        return;
    }
    if (mo_buf_err(&k->raw))
        mo_buf_puts(&text, "The call was run, but its result is too large for "
                           "a script.");
    else if (strcmp(kind, "rejected") == 0 && k->reason.len > 0)
        mo_buf_span(&text, mo_buf_view(&k->reason));
    else
        put_text_of(k, &text);
    answer_error(s, k->frame, kind,
                 mo_span_head(mo_buf_view(&text),
                              mo_utf8_cut(mo_buf_view(&text), REASON_MAX)));
}

/* --- the list of ended calls ---------------------------------------------- */

static void put_cut_text(struct mo_jw *w, const struct call *k)
{
    mo_autobuf struct mo_buf text = {.max = MO_STORE_DOC_MAX};

    put_text_of(k, &text);
    if (mo_buf_err(&text) == 0 && text.len > 0)
        mo_jw_member(
            w, "text",
            mo_span(text.p, mo_utf8_cut(mo_buf_view(&text), LOG_TEXT)));
}

static void put_ended(struct mo_buf *b, const struct call *k)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "key", k->key);
    mo_jw_member_u64(&w, "line", k->line);
    mo_jw_member(&w, "name", k->tool ? k->tool->name : mo_buf_view(&k->name));
    mo_jw_member(&w, "server", k->tool ? k->tool->def.server : MO_SPAN(""));
    if (k->args.len <= LOG_ARGS)
        mo_jw_member_raw(&w, "args", mo_buf_view(&k->args));
    mo_jw_member_cstr(&w, "state", mo_call_state_name(k->state));
    mo_jw_member_bool(&w, "isError", k->is_error);
    mo_jw_member_opt(&w, "by", mo_span_cstr(k->by));
    mo_jw_member_u64(&w, "ms", k->took_ms);
    put_cut_text(&w, k);
    mo_jw_end(&w);
}

static void add_to_log(struct script *s, const struct mo_buf *one)
{
    if (s->logged >= LOG_CALLS || mo_buf_err(one) ||
        s->log.len + one->len + 1 > LOG_MAX)
        return;
    mo_buf_puts(&s->log, s->logged ? "," : "");
    mo_buf_span(&s->log, mo_buf_view(one));
    s->logged++;
}

/* As the model would have written the call, and got its result. */
static void count_bytes(struct script *s, const struct call *k)
{
    s->call_bytes += k->name.len + k->args.len;
    s->result_bytes += k->content.len < MO_ENTRY_RESULT_MAX
                           ? k->content.len
                           : MO_ENTRY_RESULT_MAX;
}

void mo_script_note(struct call *k)
{
    struct script *s = k->parent ? k->parent->script : NULL;
    mo_autobuf struct mo_buf one = {.max = LOG_MAX};

    if (s == NULL || k->is_noted)
        return;
    k->is_noted = true;
    count_bytes(s, k);
    put_ended(&one, k);
    add_to_log(s, &one);
}

void mo_script_note_left(struct call *k, const struct mo_buf *one)
{
    k->script->made++;
    k->script->call_bytes += one->len;
    add_to_log(k->script, one);
}

void mo_script_put_all(struct mo_jw *w, const struct chat *c)
{
    bool any = false;

    mo_list_each_entry (k, &c->calls.list, const struct call, node) {
        const struct script *s = k->script;

        if (s == NULL || s->made == 0 || mo_buf_err(&s->log))
            continue;
        if (!any)
            mo_jw_member_arr(w, "scripts");
        any = true;
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "key", k->key);
        mo_jw_member_cstr(w, "digest", s->digest);
        mo_jw_member_cstr(w, "language", s->language);
        mo_jw_member_u64(w, "total", s->made);
        mo_jw_member_u64(w, "callBytes", s->call_bytes);
        mo_jw_member_u64(w, "resultBytes", s->result_bytes);
        mo_script_put_grants(w, k);
        mo_jw_member_arr(w, "calls");
        if (s->logged > 0)
            mo_jw_raw(w, mo_buf_view(&s->log));
        mo_jw_end(w);
        mo_jw_end(w);
    }
    if (any)
        mo_jw_end(w);
}

void mo_script_put_origin(struct mo_jw *w, const struct call *k)
{
    if (k->parent == NULL)
        return;
    mo_jw_member_cstr(w, "parent", k->parent->key);
    mo_jw_member_opt(w, "script", mo_span_cstr(mo_script_digest(k->parent)));
    if (k->line)
        mo_jw_member_u64(w, "line", k->line);
}

/* --- ends ------------------------------------------------------------------
 */

/* The timeouts of the script do not run while a call of it is open. */
static void pause_script(struct script *s)
{
    struct call *k = s->call;

    if (k->running)
        mo_call_hold(k->running, s->open > 0);
    mo_chat_call_arm_idle(k);
}

void mo_script_call_ended(struct call *k)
{
    struct script *s = k->parent ? k->parent->script : NULL;

    if (s == NULL || k->is_over)
        return;
    mo_script_note(k);
    if (!s->is_closed)
        answer_call(s, k);
    k->is_over = true;
    s->open--;
    if (s->open == 0)
        pause_script(s);
    mo_loop_defer(k->chat->agent->loop, &s->sweep);
}

static void free_ended(struct mo_later *d)
{
    struct script *s = mo_container_of(d, struct script, sweep);
    struct chat *c = s->call->chat;

    mo_list_each_entry_safe (k, &c->calls.list, struct call, node) {
        if (k->parent == s->call && k->is_over && !k->writing)
            mo_chat_call_free(k);
    }
}

static void stop_call(struct call *k)
{
    if (k->running)
        mo_call_cancel(k->running, "the script ended");
    else if (k->tool_check)
        mo_chat_call_stop_check(k);
    else if (k->in_line)
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
    else if (k->state == MO_CALL_PENDING && !k->writing)
        mo_chat_call_reject(k, "cancel",
                            "The script ended before this call was decided.");
}

void mo_script_end(struct call *k)
{
    struct script *s = k->script;
    struct chat *c = k->chat;

    if (s == NULL || s->is_closed)
        return;
    s->is_closed = true;
    if (c->state != CHAT_CALLS)
        return;
    /* All first: a call that stops leaves its place to the next one. */
    mo_list_each_entry (x, &c->calls.list, struct call, node)
        x->canceled = x->canceled || (x->parent == k && !x->is_over);
    mo_list_each_entry_safe (x, &c->calls.list, struct call, node) {
        if (x->parent == k && !x->is_over)
            stop_call(x);
    }
    mo_chat_calls_arm(c);
}

void mo_script_free(struct call *k)
{
    struct script *s = mo_take_ptr(&k->script);

    mo_script_grants_free(k);
    if (s == NULL)
        return;
    mo_later_cancel(&s->store);
    mo_later_cancel(&s->sweep);
    mo_buf_fini(&s->log);
    mo_free(s);
}

/* --- new calls -------------------------------------------------------------
 */

/* A call that could not be stored is not run. */
static void lose_call(struct call *k, const struct mo_err *why)
{
    k->is_denied = false;
    mo_chat_call_refuse(k, "rule", "The call was not run: %s.", why->msg);
    mo_chat_event_output(k);
    mo_script_call_ended(k);
}

static void begin_call(struct call *k)
{
    bool stop =
        k->parent->script->is_closed || k->chat->turn.cancel || k->canceled;

    mo_chat_event_made(k);
    if (!stop || k->state == MO_CALL_REJECTED)
        mo_chat_call_begin(k);
    else if (k->state == MO_CALL_PENDING)
        mo_chat_call_reject(k, "cancel", mo_chat_call_stopped(k));
    else
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
}

static void on_calls_stored(struct chat *c, void *arg, const struct mo_err *why)
{
    struct batch *b = arg;

    for (size_t i = 0; i < b->n; i++)
        b->v[i]->writing = false;
    if (c->state == CHAT_CALLS)
        mo_chat_calls_count(c);
    for (size_t i = 0; i < b->n && c->state == CHAT_CALLS; i++) {
        if (why)
            lose_call(b->v[i], why);
        else
            begin_call(b->v[i]);
    }
    if (c->state == CHAT_CALLS)
        mo_chat_calls_arm(c);
    mo_chat_calls_check(c); /* the script may have ended meanwhile */
    mo_free(b);
}

/* Takes fresh calls of the script, as many as fit into a batch. */
static void fill_batch(const struct script *s, struct batch *b,
                       struct mo_write *w, struct mo_buf *docs)
{
    size_t at[MO_SCRIPT_OPEN_MAX + 1] = {0};

    mo_list_each_entry (k, &s->call->chat->calls.list, struct call, node) {
        if (k->parent != s->call || !k->is_fresh)
            continue;
        if (b->n == MO_COUNT(b->v) || docs->len > BATCH_DOCS)
            break;
        k->is_fresh = false;
        mo_chat_call_put(docs, k);
        b->v[b->n++] = k;
        at[b->n] = docs->len;
    }
    for (size_t i = 0; i < b->n; i++)
        w[i] = (struct mo_write){
            .kind = MO_WRITE_CALL,
            .id = mo_span_cstr(b->v[i]->key),
            .to = b->v[i]->state,
            .at = mo_wall_ms(),
            .doc = mo_span(docs->p + at[i], at[i + 1] - at[i]),
        };
}

static bool store_batch(struct script *s)
{
    mo_autobuf struct mo_buf docs = {.max = MO_STORE_BATCH_BYTES};
    struct mo_write w[MO_SCRIPT_OPEN_MAX];
    struct batch *b = mo_new(struct batch);
    struct chat *c = s->call->chat;
    struct mo_err e;
    int rc = 0;

    if (b == NULL)
        return false;
    fill_batch(s, b, w, &docs);
    if (b->n == 0) {
        mo_free(b);
        return false;
    }
    mo_agent_point(c->agent, "nested");
    if (mo_buf_err(&docs))
        rc = mo_fail(&e, mo_buf_err(&docs), "the call is too large to store");
    else
        rc = mo_chat_write(c, w, b->n, on_calls_stored, b, &e);
    if (rc < 0)
        on_calls_stored(c, b, &e);
    return true;
}

static void store_calls(struct mo_later *d)
{
    struct script *s = mo_container_of(d, struct script, store);

    while (store_batch(s))
        ;
}

static bool is_open(const struct script *s, uint64_t id)
{
    mo_list_each_entry (k, &s->call->chat->calls.list, const struct call, node)
        if (k->parent == s->call && !k->is_over && k->frame == id)
            return true;
    return false;
}

static int make_call(struct script *s, uint64_t id, struct mo_json params)
{
    struct call *k = mo_chat_calls_new(s->call->chat);
    struct mo_json args = mo_json_get(params, "arguments");
    mo_autobuf struct mo_buf name = {.max = 1024};
    char key[MO_LLM_KEY_MAX + 16];
    struct mo_llm_call from = {.args = MO_SPAN("{}")};
    struct mo_err e;

    if (k == NULL)
        return MO_ENOMEM;
    k->parent = s->call;
    k->frame = id;
    k->is_fresh = k->writing = true;
    s->made++;
    s->open++;
    (void)snprintf(key, sizeof(key), "%s.%u", s->call->key, s->made);
    (void)mo_json_u64(mo_json_get(params, "line"), &k->line);
    (void)mo_json_str_buf(mo_json_get(params, "tool"), &name);
    from.key = mo_span_cstr(key);
    from.name = mo_span_head(mo_buf_view(&name), MO_TOOLS_NAME_MAX * 2);
    if (mo_json_is(args, MO_JSON_OBJECT))
        from.args = mo_json_text(args);
    else if (args.p)
        from.bad = mo_json_text(args);
    if (mo_chat_call_take(k, &from, &e) < 0) {
        s->open--;
        mo_chat_call_free(k);
        return MO_ENOMEM;
    }
    mo_chat_log_decision(k);
    if (s->open == 1)
        pause_script(s);
    mo_loop_soon(k->chat->agent->loop, &s->store);
    return 0;
}

static void take_call(struct script *s, uint64_t id, struct mo_json params)
{
    static const char most[] =
        "A script can make at most 10000 calls; this one was not run.";
    static const char open[] =
        "At most 64 calls of a script can be open; this one was not run.";
    struct chat *c = s->call->chat;

    if (s->made >= MO_SCRIPT_CALLS_MAX)
        answer_error(s, id, "limit", mo_span_cstr(most));
    else if (s->open >= MO_SCRIPT_OPEN_MAX)
        answer_error(s, id, "limit", mo_span_cstr(open));
    else if (c->state != CHAT_CALLS || c->turn.cancel || s->call->canceled)
        answer_error(s, id, "gone", MO_SPAN("The script is being stopped."));
    else if (make_call(s, id, params) < 0)
        answer_error(s, id, "failed", MO_SPAN("out of memory"));
}

static void take_find(struct script *s, uint64_t id, struct mo_json params)
{
    mo_autobuf struct mo_buf found = {.max = MO_SCRIPT_RESULT_MAX};

    if (mo_script_find(s->call->chat, params, &found) < 0)
        answer_error(s, id, "failed", MO_SPAN("out of memory"));
    else
        answer_result(s, id, mo_buf_view(&found));
}

/* The box is not trusted: a frame that is not valid is ignored. */
void mo_script_frame(void *ctx, struct mo_json params)
{
    struct call *k = ctx;
    struct script *s = k->script;
    uint64_t id = 0;
    bool closed = false;

    if (s == NULL || s->is_closed || !k->running)
        return;
    s->token = mo_call_number(k->running);
    if (k->chat->hold)
        mo_session_touch(k->chat->hold);
    (void)mo_json_bool(mo_json_get(params, "closed"), &closed);
    if (closed) {
        mo_script_end(k);
        return;
    }
    if (mo_json_u64(mo_json_get(params, "id"), &id) < 0 || id > ID_TOP ||
        is_open(s, id))
        return;
    if (mo_json_is(mo_json_get(params, "tool"), MO_JSON_STRING))
        take_call(s, id, params);
    else if (mo_json_is(mo_json_get(params, "find"), MO_JSON_STRING))
        take_find(s, id, params);
}

/* --- the call of run_script ------------------------------------------------
 */

int mo_script_begin(struct call *k)
{
    struct script *s = k->script ? k->script : mo_new(struct script);
    struct mo_json args = {k->args.p, k->args.len};
    mo_autobuf struct mo_buf code = {.max = MO_EXACT_MAX};

    if (s == NULL)
        return MO_ENOMEM;
    if (k->script == NULL) {
        s->call = k;
        mo_later_init(&s->store, store_calls);
        mo_later_init(&s->sweep, free_ended);
        mo_buf_init(&s->log, LOG_MAX);
        k->script = s;
    }
    if (mo_json_str_buf(mo_json_get(args, "code"), &code) < 0)
        mo_buf_reset(&code);
    mo_sha256_hex(mo_buf_view(&code), s->digest);
    if (mo_json_str_copy(mo_json_get(args, "language"), s->language,
                         sizeof(s->language)) < 0)
        s->language[0] = '\0';
    return 0;
}

void mo_script_put_meta(struct mo_jw *w, const struct call *k)
{
    if (k->script == NULL)
        return;
    mo_jw_member_obj(w, "_meta");
    mo_jw_member_obj(w, "mcp-orchestrator/script");
    mo_script_put_files(w, k->chat, (struct mo_json){k->args.p, k->args.len});
    mo_jw_end(w);
    mo_jw_end(w);
}
