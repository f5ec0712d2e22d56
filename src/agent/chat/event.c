/*
 * event.c - sends events to the members of a chat.
 *
 * Each event is written once and passed to every member as the same bytes. An
 * event that exceeds MO_CHAT_EVENT_MAX, or for which there is no memory, is
 * replaced by an error event, so that a member always learns that something
 * happened.
 */
#include "agent/chat/event.h"

#include "agent/chat/calls.h"
#include "agent/chat/changed_tools.h"
#include "agent/chat/chat_priv.h"
#include "agent/chat/elicit.h"
#include "agent/chat/entries.h"
#include "agent/chat/router.h"

static void send_to_member(struct mo_member *m, const char *name,
                           struct mo_span args)
{
    m->cb->on_event(m->ctx, name, args);
}

static const char lost[] =
    "\"an event was too large to show; reload the page\"";

static void send_to(struct chat *c, struct mo_member *only, const char *name,
                    const struct mo_buf *b)
{
    struct mo_span args = mo_buf_view(b);

    if (mo_buf_err(b)) {
        name = "agent:error";
        args = mo_span(lost, sizeof(lost) - 1);
    }
    if (only) {
        send_to_member(only, name, args);
        return;
    }
    mo_list_each_safe (m, &c->members, struct mo_member, node) {
        if (m->greeted)
            send_to_member(m, name, args);
    }
}

/* An event being written: one object, or a text and an object. */
struct event {
    struct mo_buf b;
    struct mo_jw w;
};

static void event_text(struct event *ev, struct mo_span text)
{
    mo_buf_init(&ev->b, MO_CHAT_EVENT_MAX);
    mo_json_quote(&ev->b, text);
}

static void event_object(struct event *ev)
{
    if (ev->b.len > 0)
        mo_buf_putc(&ev->b, ',');
    mo_jw_init(&ev->w, &ev->b);
    mo_jw_obj(&ev->w);
}

static void event_begin(struct event *ev)
{
    mo_buf_init(&ev->b, MO_CHAT_EVENT_MAX);
    event_object(ev);
}

static void event_send(struct event *ev, struct chat *c, struct mo_member *only,
                       const char *name)
{
    mo_jw_end(&ev->w);
    send_to(c, only, name, &ev->b);
    mo_buf_fini(&ev->b);
}

static void put_str(struct event *ev, const char *key, struct mo_span text)
{
    mo_jw_member(&ev->w, key, text);
}

static void put_c(struct event *ev, const char *key, const char *text)
{
    mo_jw_member_cstr(&ev->w, key, text);
}

static void put_n(struct event *ev, const char *key, uint64_t n)
{
    mo_jw_member_u64(&ev->w, key, n);
}

static void put_json(struct event *ev, const char *key, struct mo_span json)
{
    mo_jw_member_raw(&ev->w, key, json.n > 0 ? json : MO_SPAN("null"));
}

static void put_bool(struct event *ev, const char *key, bool v)
{
    mo_jw_member_bool(&ev->w, key, v);
}

/* --- turns --------------------------------------------------------------- */

void mo_chat_event_thinking(struct chat *c)
{
    static const struct mo_buf nothing = {.p = NULL};

    send_to(c, NULL, "agent:thinking", &nothing);
}

void mo_chat_event_compacted(struct chat *c, const struct entry *summary)
{
    static const char *const told[] = {"turns", "until", "made"};
    struct event ev;

    event_text(&ev, MO_SPAN("The conversation is too long for the model. "
                            "Its older part is no longer sent; a summary "
                            "replaces it."));
    event_object(&ev);
    put_c(&ev, "turnId", c->turn.id);
    for (size_t i = 0; i < MO_COUNT(told); i++)
        put_json(&ev, told[i],
                 mo_json_text(mo_json_get(summary->doc, told[i])));
    event_send(&ev, c, NULL, "history:compacted");
}

void mo_chat_event_delta(struct chat *c, struct mo_span text)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "turnId", c->turn.id);
    put_str(&ev, "text", text);
    event_send(&ev, c, NULL, "agent:delta");
}

static void put_usage(struct event *ev, const struct mo_llm_usage *u)
{
    mo_jw_member_obj(&ev->w, "usage");
    put_n(ev, "input", u->input);
    put_n(ev, "output", u->output);
    put_n(ev, "cacheRead", u->cache_read);
    put_n(ev, "cacheWrite", u->cache_write);
    mo_jw_end(&ev->w);
}

void mo_chat_event_response(struct chat *c, struct mo_span text,
                            const char *stop)
{
    struct event ev;

    event_text(&ev, text);
    event_object(&ev);
    put_c(&ev, "turnId", c->turn.id);
    put_usage(&ev, &c->turn.usage);
    put_c(&ev, "stopReason", stop);
    event_send(&ev, c, NULL, "agent:response");
}

void mo_chat_event_error(struct chat *c, const char *code, struct mo_span text,
                         unsigned retry_ms)
{
    struct event ev;

    event_text(&ev, text);
    event_object(&ev);
    put_c(&ev, "code", code);
    if (c->turn.id[0])
        put_c(&ev, "turnId", c->turn.id);
    if (retry_ms > 0)
        put_n(&ev, "retryAfterMs", retry_ms);
    event_send(&ev, c, NULL, "agent:error");
}

void mo_chat_event_message(struct chat *c, struct mo_member *only,
                           const char *text)
{
    mo_autobuf struct mo_buf b = {.max = MO_CHAT_EVENT_MAX};

    mo_json_quote(&b, mo_span_cstr(text));
    send_to(c, only, "system:message", &b);
}

static void send_troubles(struct chat *c, struct mo_member *only)
{
    struct mo_span rest = mo_buf_view(&c->troubles);

    while (mo_buf_err(&c->troubles) == 0 && rest.n > 0) {
        mo_chat_event_message(c, only, rest.p);
        rest = mo_span_skip(rest, strlen(rest.p) + 1);
    }
}

void mo_chat_event_queued(struct mo_member *m, unsigned position)
{
    struct event ev;

    event_begin(&ev);
    put_n(&ev, "position", position);
    event_send(&ev, m->chat, m, "message:queued");
}

void mo_chat_event_idle(struct chat *c, unsigned seconds)
{
    struct event ev;

    event_begin(&ev);
    put_n(&ev, "secondsLeft", seconds);
    event_send(&ev, c, NULL, "session:idle");
}

void mo_chat_event_closed(struct chat *c, const char *reason)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "reason", reason);
    event_send(&ev, c, NULL, "session:closed");
}

/* --- calls --------------------------------------------------------------- */

/* A tool that replaced execute is shown by its own name. */
static struct mo_span shown_name_of(const struct call *k)
{
    return k->routed ? k->tool->name : mo_buf_view(&k->name);
}

static void put_call(struct event *ev, struct call *k)
{
    const struct mo_tool *t = k->tool;
    float sure = 1;
    struct mo_span words = mo_chat_router_words(k, &sure);

    put_str(ev, "name", shown_name_of(k));
    put_json(ev, "args", mo_buf_view(&k->args));
    put_c(ev, "callId", k->key);
    put_n(ev, "queuePosition", k->position);
    put_n(ev, "totalInQueue", k->total);
    put_str(ev, "server", t ? t->def.server : MO_SPAN(""));
    put_str(ev, "title", t ? t->title : MO_SPAN(""));
    put_str(ev, "description", t ? t->def.description : MO_SPAN(""));
    put_json(ev, "annotations", t ? t->def.annotations : MO_SPAN("null"));
    put_c(ev, "digest", k->digest);
    put_n(ev, "expiresAt", k->expires);
    if (k->route.len > 0)
        put_json(ev, "route", mo_buf_view(&k->route));
    if (words.n == 0)
        return;
    put_str(ev, "words", words);
    mo_jw_member_f64(&ev->w, "confidence",
                     (double)(int)(sure * 100 + 0.5f) / 100);
}

void mo_chat_event_approval(struct call *k)
{
    struct event ev;

    event_begin(&ev);
    put_call(&ev, k);
    event_send(&ev, k->chat, NULL, "tool:approval_required");
}

void mo_chat_event_resolved(struct call *k, bool approved)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "callId", k->key);
    put_bool(&ev, "approved", approved);
    put_c(&ev, "by", k->by);
    if (k->reason.len > 0)
        put_str(&ev, "reason", mo_buf_view(&k->reason));
    event_send(&ev, k->chat, NULL, "tool:resolved");
}

/* Sends params (an object from the server) with the call id added. */
static void relay_params(struct chat *c, const struct call *k, const char *name,
                         struct mo_json params)
{
    struct mo_json_iter it;
    struct mo_json key, val;
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "callId", k ? k->key : NULL);
    mo_json_iter(&it, params);
    while (mo_json_next(&it, &key, &val)) {
        if (mo_json_str_eq(key, MO_SPAN("callId")) ||
            mo_json_str_eq(key, MO_SPAN("progressToken")))
            continue;
        mo_jw_key_raw(&ev.w, key);
        mo_jw_raw(&ev.w, mo_json_text(val));
    }
    event_send(&ev, c, NULL, name);
}

void mo_chat_event_progress(struct call *k, struct mo_json params)
{
    relay_params(k->chat, k, "tool:progress", params);
}

void mo_chat_event_log(struct chat *c, const struct call *k,
                       struct mo_json params)
{
    relay_params(c, k, "tool:log", params);
}

void mo_chat_event_output(struct call *k)
{
    struct event ev;

    event_text(&ev, mo_buf_view(&k->content));
    event_object(&ev);
    put_c(&ev, "callId", k->key);
    put_str(&ev, "name", shown_name_of(k));
    put_bool(&ev, "isError", k->is_error);
    put_c(&ev, "state", mo_call_state_name(k->state));
    put_n(&ev, "durationMs", k->took_ms);
    put_bool(&ev, "truncated", k->content.len > MO_ENTRY_RESULT_MAX);
    if (k->route.len > 0)
        put_json(&ev, "route", mo_buf_view(&k->route));
    event_send(&ev, k->chat, NULL, "tool:output");
}

void mo_chat_event_elicit(struct chat *c, struct mo_member *only,
                          const struct elicit_view *v)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "requestId", v->id);
    put_str(&ev, "server", v->server);
    put_c(&ev, "callId", v->call);
    put_c(&ev, "mode", v->page ? "url" : "form");
    put_json(&ev, "message", mo_json_text(v->message));
    put_json(&ev, v->page ? "url" : "schema", mo_json_text(v->what));
    put_n(&ev, "expiresAt", v->expires);
    event_send(&ev, c, only, "elicitation:required");
}

void mo_chat_event_elicited(struct chat *c, const char *id, const char *action,
                            const char *by)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "requestId", id);
    put_c(&ev, "action", action);
    put_c(&ev, "by", by);
    event_send(&ev, c, NULL, "elicitation:resolved");
}

/* --- new entries --------------------------------------------------------- */

void mo_chat_event_entry(struct chat *c, const struct entry *en)
{
    mo_autobuf struct mo_buf b = {.max = MO_CHAT_EVENT_MAX};

    mo_entry_public(&b, en->doc, en->seq, en->at);
    send_to(c, NULL, "session:entry", &b);
}

/* --- initial events of a member ------------------------------------------ */

static void put_tools(struct event *ev, struct chat *c)
{
    mo_jw_member_arr(&ev->w, "tools");
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        mo_jw_obj(&ev->w);
        put_str(ev, "name", t->name);
        put_str(ev, "server", t->def.server);
        put_str(ev, "title", t->title);
        put_str(ev, "description", t->def.description);
        put_json(ev, "inputSchema", t->def.schema);
        put_json(ev, "annotations", t->def.annotations);
        if (mo_changed_tools_is_blocked(c, t)) {
            put_c(ev, "digest", t->digest);
            put_json(ev, "changedFrom", mo_changed_tools_before(c, t));
        }
        mo_jw_end(&ev->w);
    }
    mo_jw_end(&ev->w);
}

static const char *const workspaces[] = {
    [MO_WORKSPACE_FRESH] = "fresh",
    [MO_WORKSPACE_KEPT] = "kept",
    [MO_WORKSPACE_LOST] = "lost",
};

static void send_ready(struct chat *c, struct mo_member *m)
{
    struct event ev;

    event_begin(&ev);
    put_c(&ev, "sessionId", c->id);
    put_c(&ev, "containerId", c->info.box);
    put_c(&ev, "provider", c->provider);
    put_str(&ev, "model", mo_buf_view(&c->model));
    put_tools(&ev, c);
    put_bool(&ev, "resumed", c->info.resumed);
    put_c(&ev, "driver", c->info.driver);
    put_c(&ev, "workspace", workspaces[c->info.workspace]);
    event_send(&ev, c, m, "system:ready");
}

static void put_pending(struct event *ev, struct chat *c)
{
    mo_jw_member_arr(&ev->w, "pending");
    mo_list_each (k, &c->calls, struct call, node) {
        if (k->state != MO_CALL_PENDING)
            continue;
        mo_jw_obj(&ev->w);
        put_call(ev, k);
        mo_jw_end(&ev->w);
    }
    mo_jw_end(&ev->w);
}

static const char *const turn_states[] = {
    [CHAT_OPENING] = "opening", [CHAT_IDLE] = "idle",
    [CHAT_SAVING] = "saving",   [CHAT_ASKING] = "thinking",
    [CHAT_KEEPING] = "saving",  [CHAT_CALLS] = "calls",
    [CHAT_RESULTS] = "saving",  [CHAT_ENDING] = "ending",
};

static void put_running(struct event *ev, struct chat *c)
{
    mo_jw_member_arr(&ev->w, "running");
    mo_list_each (k, &c->calls, struct call, node) {
        if (k->state == MO_CALL_RUNNING)
            mo_jw_cstr(&ev->w, k->key);
    }
    mo_jw_end(&ev->w);
}

static void put_waiting(struct event *ev, struct chat *c)
{
    mo_jw_member_arr(&ev->w, "waiting");
    mo_list_each (m, &c->queue, struct message, node) {
        if (!m->stored)
            continue;
        mo_jw_obj(&ev->w);
        put_c(ev, "messageId", m->id);
        put_str(ev, "text", mo_span(m->text, m->n));
        mo_jw_end(&ev->w);
    }
    mo_jw_end(&ev->w);
}

static void put_turn(struct event *ev, struct chat *c)
{
    mo_jw_key(&ev->w, "turn");
    if (c->state == CHAT_IDLE) {
        mo_jw_null(&ev->w);
        return;
    }
    mo_jw_obj(&ev->w);
    put_c(ev, "turnId", c->turn.id);
    put_c(ev, "state", turn_states[c->state]);
    put_str(ev, "text",
            c->transcript.unkept ? MO_SPAN("") : mo_buf_view(&c->turn.shown));
    put_n(ev, "queued", c->nqueue);
    put_waiting(ev, c);
    put_running(ev, c);
    mo_jw_end(&ev->w);
}

static void put_messages(struct event *ev, struct chat *c)
{
    mo_autobuf struct mo_buf one = {.max = MO_ENTRY_MAX};

    mo_jw_member_arr(&ev->w, "messages");
    mo_list_each (it, &c->transcript.list) {
        struct entry *en = mo_container_of(it, struct entry, node);

        if (en == c->transcript.unkept)
            break; /* members get it when it is stored */
        mo_buf_reset(&one);
        mo_entry_public(&one, en->doc, en->seq, en->at);
        if (mo_buf_err(&one) == 0)
            mo_jw_raw(&ev->w, mo_buf_view(&one));
        else
            ev->b.err = one.err;
    }
    mo_jw_end(&ev->w);
}

static void send_history(struct chat *c, struct mo_member *m)
{
    struct event ev;

    event_begin(&ev);
    put_messages(&ev, c);
    put_pending(&ev, c);
    put_turn(&ev, c);
    event_send(&ev, c, m, "session:history");
}

void mo_chat_event_greet(struct mo_member *m)
{
    struct chat *c = m->chat;

    m->greeted = true;
    send_ready(c, m);
    send_history(c, m);
    mo_chat_elicit_send_open(m);
    send_troubles(c, m);
}

void mo_chat_event_greet_all(struct chat *c)
{
    mo_list_each_safe (m, &c->members, struct mo_member, node) {
        if (m->greeted)
            mo_chat_event_greet(m);
    }
}
