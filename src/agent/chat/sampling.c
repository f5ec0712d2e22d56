/* sampling.c - see sampling.h. */
#include "agent/chat/sampling.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/elicit.h"
#include "agent/chat/event.h"
#include "codec/rpc.h"
#include "codec/sha256.h"

#define REFUSED         (-1) /* the code that MCP gives as an example */
#define BYTES_PER_TOKEN 4

enum sample_state { ASKED, RUNNING, REVIEW, OVER };

struct sample {
    struct mo_list node; /* in chat->calls.samples; not when OVER */
    struct chat *chat;
    struct call *call;  /* NULL: OVER */
    struct mo_ask *ask; /* likewise */
    enum sample_state state;
    char id[ID_MAX];
    unsigned tokens;       /* of the answer, at most */
    struct mo_buf sent;    /* the request as it is sent: mo_sampling_edit() */
    struct mo_json params; /* parsed: the server's, then `sent` */
    char before[MO_SHA256_HEX + 1]; /* digest of it unchanged; "": it is */
    uint64_t expires;
    struct mo_timer timer;
    struct mo_llm_x *x;
    struct mo_budget_ask budget;
    struct mo_budget_share share;
    struct mo_usage most;
    bool reserving;
    struct mo_buf text; /* the answer */
    enum mo_llm_stop stop;
};

static void sample_free(struct sample *s)
{
    mo_buf_fini(&s->text);
    mo_buf_fini(&s->sent);
    mo_free(s);
}

static void sample_move(struct sample *s, enum sample_state to)
{
    MO_BUG_ON(s->state == OVER || (to < s->state));
    s->state = to;
}

/* --- the request for the model ------------------------------------------- */

static bool is_role(struct mo_json m, const char *name)
{
    return mo_json_str_eq(mo_json_get(m, "role"), mo_span_cstr(name));
}

static bool put_block(struct mo_jw *w, struct mo_json content, bool is_user)
{
    static const char *const kinds[] = {"text", "image", "audio", NULL};
    struct mo_json type = mo_json_get(content, "type");

    if (!mo_json_str_in(type, kinds) ||
        (!is_user && !mo_json_str_eq(type, MO_SPAN("text"))))
        return false;
    mo_jw_raw(w, mo_json_text(content));
    return true;
}

/* The content of a message is one block, or a list of them. */
static int put_entry(struct mo_buf *out, struct mo_json message,
                     struct mo_err *e)
{
    struct mo_json content = mo_json_get(message, "content");
    bool is_user = is_role(message, "user"), ok = true;
    struct mo_jw w = mo_jw_object(out);

    if (!is_user && !is_role(message, "assistant"))
        return mo_fail(e, MO_EINVAL, "the role is user or assistant");
    mo_jw_member_cstr(&w, "role", is_user ? "user" : "assistant");
    mo_jw_member_arr(&w, "blocks");
    if (mo_json_is(content, MO_JSON_ARRAY)) {
        mo_json_each (at, content)
            ok = put_block(&w, at.val, is_user) && ok;
    } else {
        ok = put_block(&w, content, is_user);
    }
    mo_jw_end_all(&w);
    return ok ? 0
              : mo_fail(e, MO_EINVAL,
                        "the content of a message is text, an image or audio");
}

int mo_sampling_entries(struct mo_json messages, struct mo_buf *out,
                        size_t ends[MO_SAMPLE_MESSAGES], struct mo_err *e)
{
    struct mo_json last = {NULL, 0};
    int n = 0;

    if (!mo_json_is(messages, MO_JSON_ARRAY) ||
        mo_json_len(messages) > MO_SAMPLE_MESSAGES)
        return mo_fail(e, MO_EINVAL, "messages: a list of 1 to %d",
                       MO_SAMPLE_MESSAGES);
    mo_json_each (at, messages) {
        if (put_entry(out, at.val, e) < 0)
            return e->code;
        ends[n++] = out->len;
        last = at.val;
    }
    if (n == 0 || !is_role(mo_json_at(messages, 0), "user") ||
        !is_role(last, "user"))
        return mo_fail(e, MO_EINVAL,
                       "the first and the last message are the user's");
    return mo_buf_err(out) ? mo_fail(e, mo_buf_err(out), "messages") : n;
}

/* --- events and audit ---------------------------------------------------- */

static const char *const states[] = {[ASKED] = "asked",
                                     [RUNNING] = "running",
                                     [REVIEW] = "review",
                                     [OVER] = "over"};

static void send_sample(const struct sample *s, struct mo_member *only)
{
    const struct sampling_view v = {
        .id = s->id,
        .call = s->call->key,
        .state = states[s->state],
        .server = s->call->tool->def.server,
        .params = s->params,
        .is_edited = s->before[0] != '\0',
        .tokens = s->tokens,
        .text = mo_buf_view(&s->text),
        .expires = s->expires,
    };

    mo_chat_event_sampling(s->chat, only, &v);
}

static void audit(const struct sample *s, const char *action, const char *by,
                  const char *who)
{
    const struct mo_audit_row row = {
        .event = "asked",
        .subject =
            mo_span_cstr(s->state == REVIEW ? "sampling result" : "sampling"),
        .server = s->call->tool->def.server,
        .tool = s->call->tool->def.name,
        .call = mo_span_cstr(s->call->key),
        .action = action,
        .by = by,
        .who = mo_span_cstr(who),
        .args = s->state == ASKED ? mo_buf_view(&s->sent) : MO_SPAN(""),
        .args_before = s->state == ASKED ? s->before : NULL,
        .count = s->tokens,
    };

    if (s->chat->state != CHAT_ENDING)
        mo_chat_audit(s->chat, &row);
}

/* --- the end ------------------------------------------------------------- */

/* Takes the request from its call. The memory stays while the model or the
 * budget still answers. */
static struct mo_ask *end_sample(struct sample *s, const char *action,
                                 const char *by, const char *who)
{
    struct mo_ask *a = mo_take_ptr(&s->ask);
    struct call *k = s->call;

    audit(s, action, by, who);
    mo_chat_event_elicited(s->chat, s->id, action, by);
    mo_timer_stop(s->chat->agent->loop, &s->timer);
    mo_list_del(&s->node);
    s->call = NULL;
    sample_move(s, OVER);
    k->questions--;
    mo_chat_call_arm_idle(k);
    a->user = NULL;
    if (s->x)
        mo_llm_cancel(s->x);
    else if (!s->reserving)
        sample_free(s);
    return a;
}

static void refuse(struct sample *s, const char *action, const char *by,
                   const char *who, const char *why)
{
    mo_ask_refuse(end_sample(s, action, by, who), REFUSED, why);
}

static void on_expired(struct mo_timer *t)
{
    refuse(mo_container_of(t, struct sample, timer), "cancel", "time", "",
           "nobody answered in time");
}

void mo_chat_sampling_drop(struct call *k)
{
    mo_list_each_entry_safe (s, &k->chat->calls.samples, struct sample, node) {
        if (s->call == k)
            refuse(s, "cancel", "cancel", "", "the call was stopped");
    }
}

static struct sample *find_ask(struct chat *c, const struct mo_ask *a)
{
    mo_list_each_entry (s, &c->calls.samples, struct sample, node)
        if (s->ask == a)
            return s;
    return NULL;
}

bool mo_chat_sampling_gone(struct chat *c, const struct mo_ask *a)
{
    struct sample *s = find_ask(c, a);

    if (s)
        refuse(s, "cancel", "server", "", "it was withdrawn");
    return s != NULL;
}

static void wait_for_person(struct sample *s)
{
    uint64_t ms = s->chat->agent->o.approval_ms;

    s->expires = mo_wall_ms() + ms;
    mo_timer_start(s->chat->agent->loop, &s->timer, ms);
    send_sample(s, NULL);
}

/* --- asking the model ---------------------------------------------------- */

static void ignore_text(void *ctx, struct mo_span delta)
{
    (void)ctx;
    (void)delta; /* the person sees the whole answer */
}

static void settle(struct sample *s, const struct mo_llm_reply *r)
{
    struct mo_usage u = {0};

    if (r)
        u = (struct mo_usage){.input = r->usage.input,
                              .output = r->usage.output,
                              .cache_read = r->usage.cache_read,
                              .cache_write = r->usage.cache_write};
    if (r && u.input + u.output == 0)
        u = s->most;
    mo_turn_budget_settle(s->chat, &s->share, r ? &u : NULL);
    if (r)
        mo_turn_usage(s->chat, &r->usage);
}

static void on_model_done(void *ctx, const struct mo_llm_reply *r,
                          const struct mo_llm_failure *f)
{
    struct sample *s = ctx;
    struct chat *c = s->chat;

    s->x = NULL;
    c->writes--;
    settle(s, r);
    if (s->state == OVER) {
        sample_free(s);
    } else if (f) {
        refuse(s, "cancel", "model", "", f->err.msg);
    } else {
        sample_move(s, REVIEW);
        s->stop = r->stop;
        mo_buf_span(&s->text, r->text);
        wait_for_person(s);
    }
    mo_chat_settle(c);
}

static int ask_model(struct sample *s, struct mo_err *e)
{
    static const struct mo_llm_cb cb = {ignore_text, NULL, NULL, on_model_done};
    struct chat *c = s->chat;
    mo_autobuf struct mo_buf docs = {.max = 2 * MO_SAMPLE_BYTES},
                             system = {.max = MO_SAMPLE_BYTES};
    struct mo_span entries[MO_SAMPLE_MESSAGES];
    size_t ends[MO_SAMPLE_MESSAGES], from = 0;
    struct mo_json prompt = mo_json_get(s->params, "systemPrompt");
    struct mo_llm_request r = {
        .model = mo_buf_cstr(&c->model.id) + c->model.own,
        .entries = entries,
        .max_output = s->tokens,
        .blind = !mo_models_sees(c->agent->o.models, &c->model),
        .parent = c->turn.span,
        .conversation = mo_span_cstr(c->id),
    };
    int n =
        mo_sampling_entries(mo_json_get(s->params, "messages"), &docs, ends, e);

    if (n < 0)
        return n;
    for (int i = 0; i < n; i++) {
        entries[i] = mo_span(docs.p + from, ends[i] - from);
        from = ends[i];
    }
    r.nentries = (size_t)n;
    if (mo_json_is(prompt, MO_JSON_STRING))
        (void)mo_json_str_buf(prompt, &system);
    if (mo_buf_err(&system))
        return mo_fail(e, mo_buf_err(&system), "the instructions");
    r.system = mo_buf_view(&system);
    return mo_llm_start(c->model.llm, &r, &cb, s, &s->x, e);
}

/* The budget has room, or there is no limit. */
static void run(struct sample *s)
{
    struct mo_err e;

    if (ask_model(s, &e) == 0) {
        s->chat->writes++;
        return;
    }
    mo_turn_budget_settle(s->chat, &s->share, NULL);
    refuse(s, "cancel", "model", "", e.msg);
}

static void on_reserved(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct sample *s = mo_container_of(a, struct sample, budget);
    struct chat *c = s->chat;

    s->reserving = false;
    c->writes--;
    if (s->state == OVER) {
        mo_turn_budget_settle(c, &s->share, NULL);
        sample_free(s);
    } else if (no) {
        refuse(s, "cancel", "budget", "", no->text);
    } else {
        run(s);
    }
    mo_chat_settle(c);
}

static void reserve(struct sample *s)
{
    struct mo_budget_no no;
    enum mo_budget_answer yes;

    s->most = (struct mo_usage){.input = s->sent.len / BYTES_PER_TOKEN + 1,
                                .output = s->tokens};
    s->budget.done = on_reserved;
    yes = mo_turn_budget_share(s->chat, &s->most, &s->share, &s->budget, &no);
    if (yes == MO_BUDGET_YES) {
        run(s);
    } else if (yes == MO_BUDGET_NO) {
        refuse(s, "cancel", "budget", "", no.text);
    } else {
        s->reserving = true;
        s->chat->writes++;
    }
}

/* --- answers of the person ----------------------------------------------- */

/* The result for the server. */
static void put_result(const struct sample *s, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "role", "assistant");
    mo_jw_member_obj(&w, "content");
    mo_jw_member_cstr(&w, "type", "text");
    mo_jw_member(&w, "text", mo_buf_view(&s->text));
    mo_jw_end(&w);
    mo_jw_member(
        &w, "model",
        mo_span_skip(mo_buf_view(&s->chat->model.id), s->chat->model.own));
    mo_jw_member_cstr(&w, "stopReason",
                      s->stop == MO_LLM_LENGTH ? "maxTokens" : "endTurn");
    mo_jw_end(&w);
}

static void give(struct sample *s, const char *who)
{
    mo_autobuf struct mo_buf result = {.max = 2 * MO_LLM_REPLY_MAX};

    put_result(s, &result);
    if (mo_buf_err(&result) || mo_buf_err(&s->text))
        refuse(s, "cancel", "model", who, "the answer is too large");
    else
        mo_ask_answer(end_sample(s, "accept", "person", who),
                      mo_buf_view(&result));
}

static struct sample *find_id(struct chat *c, struct mo_span id)
{
    mo_list_each_entry (s, &c->calls.samples, struct sample, node)
        if (mo_span_eq_ct(mo_span_cstr(s->id), id))
            return s;
    return NULL;
}

/* Writes the request as the person wants it. On failure it stays as it was. */
static int take_edit(struct sample *s, struct mo_span edit, struct mo_err *e)
{
    mo_autobuf struct mo_buf was = {.max = 2 * MO_SAMPLE_BYTES};
    unsigned most = mo_turn_output_max(s->chat), n = s->tokens;
    struct mo_json_doc doc;
    int rc = 0;

    mo_buf_reset(&s->sent);
    rc = mo_sampling_edit(s->params, MO_SPAN(""), most, &n, &was, e);
    if (rc == 0)
        rc = mo_sampling_edit(s->params, edit, most, &n, &s->sent, e);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&s->sent), 0, &doc, e);
    if (rc < 0) {
        mo_buf_reset(&s->sent);
        return rc;
    }
    if (!mo_span_eq(mo_buf_view(&was), mo_buf_view(&s->sent)))
        mo_sha256_hex(mo_buf_view(&was), s->before);
    s->params = doc.root;
    s->tokens = n;
    return 0;
}

static void approve(struct mo_member *m, struct sample *s)
{
    audit(s, "accept", "person", m->who);
    mo_timer_stop(m->chat->agent->loop, &s->timer);
    sample_move(s, RUNNING);
    send_sample(s, NULL);
    reserve(s);
}

bool mo_chat_sampling_answer(struct mo_member *m, const struct mo_answer *a,
                             struct ack *ack)
{
    struct sample *s = find_id(m->chat, a->request);
    struct mo_err e;

    if (s == NULL)
        return false;
    if (s->state == RUNNING && a->action == MO_ANSWER_ACCEPT) {
        mo_chat_ack(ack, "busy", "the model is answering");
        return true;
    }
    if (s->state == ASKED && a->action == MO_ANSWER_ACCEPT &&
        take_edit(s, a->content, &e) < 0) {
        mo_chat_ack(ack, "bad_request", e.msg);
        return true;
    }
    if (m->chat->hold)
        mo_session_touch(m->chat->hold);
    mo_chat_ack_ok(ack, mo_span(NULL, 0));
    if (a->action != MO_ANSWER_ACCEPT)
        refuse(s, "decline", "person", m->who, "the person rejected it");
    else if (s->state == REVIEW)
        give(s, m->who);
    else
        approve(m, s);
    return true;
}

/* --- requests of servers ------------------------------------------------- */

static const char *check(const struct call *k, struct mo_json p)
{
    static const char wrong[] =
        "messages are 1 to 64 of user and assistant, of text, images or audio; "
        "the first and the last are the user's";
    mo_autobuf struct mo_buf docs = {.max = 2 * MO_SAMPLE_BYTES};
    size_t ends[MO_SAMPLE_MESSAGES];
    struct mo_json prompt = mo_json_get(p, "systemPrompt");
    uint64_t tokens = 0;

    if (k->chat->state != CHAT_CALLS || k->canceled)
        return "the call is being stopped";
    if (k->questions >= MO_SAMPLES_MAX)
        return "too many open requests of this call";
    if (mo_json_get(p, "tools").p || mo_json_get(p, "toolChoice").p)
        return "this client offers no tools for sampling";
    if (p.n > MO_SAMPLE_BYTES)
        return "the request is longer than 1 MiB";
    if (prompt.p && !mo_json_is(prompt, MO_JSON_STRING))
        return "systemPrompt must be a string";
    if (mo_json_u64(mo_json_get(p, "maxTokens"), &tokens) < 0 || tokens == 0)
        return "maxTokens must be a positive number";
    return mo_sampling_entries(mo_json_get(p, "messages"), &docs, ends, NULL) <
                   0
               ? wrong
               : NULL;
}

const char *mo_chat_sampling_take(struct call *k, struct mo_ask *a)
{
    const char *why = check(k, a->params);
    struct chat *c = k->chat;
    struct sample *s = why ? NULL : mo_new(struct sample);
    uint64_t tokens = 0;

    if (s == NULL)
        return why ? why : "out of memory";
    (void)mo_json_u64(mo_json_get(a->params, "maxTokens"), &tokens);
    s->tokens = mo_turn_output_max(c);
    if (tokens < s->tokens)
        s->tokens = (unsigned)tokens;
    s->chat = c;
    s->call = k;
    s->ask = a;
    s->params = a->params;
    mo_buf_init(&s->sent, 2 * MO_SAMPLE_BYTES);
    mo_buf_init(&s->text, MO_LLM_REPLY_MAX);
    mo_random_token(s->id, ID_BYTES);
    mo_list_push(&c->calls.samples, &s->node);
    k->questions++;
    mo_chat_call_arm_idle(k);
    mo_timer_init(&s->timer, on_expired);
    wait_for_person(s);
    return NULL;
}

void mo_chat_sampling_send_open(struct mo_member *m)
{
    mo_list_each_entry (s, &m->chat->calls.samples, struct sample, node)
        send_sample(s, m);
}
