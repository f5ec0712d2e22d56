/* event.c - sends events to the members of a chat.
 *
 * Each event is written once and passed to every member as the same bytes. An
 * event that exceeds MO_CHAT_EVENT_MAX, or for which there is no memory, is
 * replaced by an error event, so that a member always learns that something
 * happened. */
#include "agent/chat/event.h"

#include "agent/chat/calls.h"
#include "agent/chat/elicit.h"
#include "agent/chat/entries.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/network.h"
#include "agent/chat/script_calls.h"
#include "agent/chat/script_grant.h"
#include "agent/chat/script_tools.h"
#include "agent/chat/skills.h"
#include "agent/chat/tools_off.h"

#define MADE_ARGS_MAX ((size_t)16 * 1024)

static const char lost[] =
    "\"an event was too large to show; reload the page\"";

/* Questions of servers are not for readers: their addresses sign in whoever
 * opens them. */
static bool is_for_owner(const char *name)
{
    struct mo_span s = mo_span_cstr(name);

    return mo_span_starts(s, MO_SPAN("elicitation:")) ||
           mo_span_starts(s, MO_SPAN("sampling:"));
}

static void send_to(struct chat *c, struct mo_member *only, const char *name,
                    const struct mo_buf *b)
{
    struct mo_span args = mo_buf_view(b);

    if (mo_buf_err(b)) {
        name = "agent:error";
        args = mo_span(lost, sizeof(lost) - 1);
    }
    if (only) {
        only->cb->on_event(only->ctx, name, args);
        return;
    }
    mo_list_each_entry_safe (m, &c->members, struct mo_member, node) {
        if (m->greeted && !(m->reads && is_for_owner(name)))
            m->cb->on_event(m->ctx, name, args);
    }
}

/* An event being written: one object, or a text and an object. */
struct event {
    struct mo_buf b;
    struct mo_jw w;
};

static struct mo_jw *event_begin(struct event *ev)
{
    mo_buf_init(&ev->b, MO_CHAT_EVENT_MAX);
    ev->w = mo_jw_object(&ev->b);
    return &ev->w;
}

static struct mo_jw *event_after(struct event *ev, struct mo_span text)
{
    mo_buf_init(&ev->b, MO_CHAT_EVENT_MAX);
    mo_json_quote(&ev->b, text);
    mo_buf_putc(&ev->b, ',');
    ev->w = mo_jw_object(&ev->b);
    return &ev->w;
}

static void event_send(struct event *ev, struct chat *c, struct mo_member *only,
                       const char *name)
{
    mo_jw_end(&ev->w);
    send_to(c, only, name, &ev->b);
    mo_buf_fini(&ev->b);
}

/* Nothing becomes null. */
static void put_json(struct mo_jw *w, const char *key, struct mo_span json)
{
    mo_jw_member_raw(w, key, json.n > 0 ? json : MO_SPAN("null"));
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
    struct mo_jw *w = event_after(
        &ev, MO_SPAN("The conversation is too long for the model. Its older "
                     "part is no longer sent; a summary replaces it."));

    mo_jw_member_cstr(w, "turnId", c->turn.id);
    for (size_t i = 0; i < MO_COUNT(told); i++)
        put_json(w, told[i], mo_json_text(mo_json_get(summary->doc, told[i])));
    event_send(&ev, c, NULL, "history:compacted");
}

static void send_piece(struct chat *c, const char *name, struct mo_span text)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "turnId", c->turn.id);
    mo_jw_member(w, "text", text);
    event_send(&ev, c, NULL, name);
}

void mo_chat_event_delta(struct chat *c, struct mo_span text)
{
    send_piece(c, "agent:delta", text);
}

void mo_chat_event_thought(struct chat *c, struct mo_span text)
{
    send_piece(c, "thinking:chunk", text);
}

void mo_chat_event_tools_off(struct chat *c)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_tools_off_put(w, c);
    event_send(&ev, c, NULL, "tools:off");
}

void mo_chat_event_skills(struct chat *c)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_skills_put(w, c);
    event_send(&ev, c, NULL, "session:skills");
}

void mo_chat_event_resource(struct chat *c, struct mo_json uri)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_json(w, "uri", mo_json_text(uri));
    event_send(&ev, c, NULL, "resource:updated");
}

void mo_chat_event_response(struct chat *c, struct mo_span text,
                            const char *stop)
{
    struct event ev;
    struct mo_jw *w = event_after(&ev, text);

    mo_jw_member_cstr(w, "turnId", c->turn.id);
    mo_jw_member_obj(w, "usage");
    mo_llm_usage_put(w, &c->turn.usage);
    mo_jw_end(w);
    mo_jw_member_cstr(w, "stopReason", stop);
    event_send(&ev, c, NULL, "agent:response");
}

void mo_chat_event_error(struct chat *c, const char *code, struct mo_span text,
                         unsigned retry_ms)
{
    struct event ev;
    struct mo_jw *w = event_after(&ev, text);

    mo_jw_member_cstr(w, "code", code);
    if (c->turn.id[0])
        mo_jw_member_cstr(w, "turnId", c->turn.id);
    if (retry_ms > 0)
        mo_jw_member_u64(w, "retryAfterMs", retry_ms);
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
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_u64(w, "position", position);
    event_send(&ev, m->chat, m, "message:queued");
}

void mo_chat_event_idle(struct chat *c, unsigned seconds)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_u64(w, "secondsLeft", seconds);
    event_send(&ev, c, NULL, "session:idle");
}

void mo_chat_event_closed(struct chat *c, const char *reason)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "reason", reason);
    event_send(&ev, c, NULL, "session:closed");
}

/* --- calls --------------------------------------------------------------- */

/* A tool that replaced execute is shown by its own name. */
static struct mo_span shown_name_of(const struct call *k)
{
    return k->routed && k->tool ? k->tool->name : mo_buf_view(&k->name);
}

/* The id that a decision names. A call that is asked about again has a new one;
 * its other events have the first. */
static void put_card(struct mo_jw *w, const struct call *k)
{
    mo_jw_member_cstr(w, "callId", k->card);
    if (strcmp(k->card, k->key) != 0)
        mo_jw_member_cstr(w, "firstId", k->key);
}

static void put_call(struct mo_jw *w, struct call *k)
{
    const struct mo_tool *t = k->tool;
    float sure = 1;
    struct mo_span words = mo_chat_router_words(k, &sure);
    struct mo_verdict v = {.action = MO_ACTION_ASK};
    bool operators;

    if (t)
        v = mo_chat_call_verdict(k);
    operators = v.approver == MO_APPROVER_OPERATOR;

    mo_jw_member(w, "name", shown_name_of(k));
    put_json(w, "args", mo_buf_view(&k->args));
    put_card(w, k);
    mo_jw_member_u64(w, "queuePosition", k->position);
    mo_jw_member_u64(w, "totalInQueue", k->total);
    mo_jw_member(w, "server", t ? t->def.server : MO_SPAN(""));
    mo_jw_member(w, "title", t ? t->title : MO_SPAN(""));
    mo_jw_member(w, "description", t ? t->def.description : MO_SPAN(""));
    put_json(w, "annotations", t ? t->def.annotations : MO_SPAN("null"));
    mo_jw_member_cstr(w, "digest", k->digest);
    mo_jw_member_u64(w, "expiresAt", k->expires);
    mo_jw_member_cstr(w, "approver", operators ? "operator" : "owner");
    mo_panel_put(w, &v.panel, &k->said);
    mo_script_put_origin(w, k);
    if (k->route.len > 0)
        put_json(w, "route", mo_buf_view(&k->route));
    if (words.n == 0)
        return;
    mo_jw_member(w, "words", words);
    mo_jw_member_f64(w, "confidence", (double)(int)(sure * 100 + 0.5f) / 100);
}

void mo_chat_event_approval(struct call *k)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_call(w, k);
    event_send(&ev, k->chat, NULL, "tool:approval_required");
}

void mo_chat_event_approved_by(struct call *k)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_card(w, k);
    mo_panel_put(w, &v.panel, &k->said);
    event_send(&ev, k->chat, NULL, "tool:approved_by");
}

void mo_chat_event_resolved(struct call *k, bool approved)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_card(w, k);
    mo_jw_member_bool(w, "approved", approved);
    mo_jw_member_cstr(w, "by", k->by);
    mo_jw_member_opt(w, "reason", mo_buf_view(&k->reason));
    mo_script_put_origin(w, k);
    event_send(&ev, k->chat, NULL, "tool:resolved");
}

void mo_chat_event_grants(struct call *k)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "callId", k->key);
    mo_jw_member_opt(w, "script", mo_span_cstr(mo_script_digest(k)));
    mo_script_put_grants(w, k);
    event_send(&ev, k->chat, NULL, "script:grants");
}

/* Long arguments are left out: there may be thousands of calls. */
void mo_chat_event_made(struct call *k)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "callId", k->key);
    mo_jw_member(w, "name", k->tool ? k->tool->name : mo_buf_view(&k->name));
    mo_jw_member(w, "server", k->tool ? k->tool->def.server : MO_SPAN(""));
    if (k->args.len <= MADE_ARGS_MAX)
        put_json(w, "args", mo_buf_view(&k->args));
    mo_jw_member_cstr(w, "state", mo_call_state_name(k->state));
    mo_script_put_origin(w, k);
    event_send(&ev, k->chat, NULL, "script:call");
}

void mo_chat_event_relay(struct chat *c, const struct call *k, const char *name,
                         struct mo_json params)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "callId", k ? k->key : NULL);
    mo_json_each (at, params) {
        if (mo_json_str_eq(at.key, MO_SPAN("callId")) ||
            mo_json_str_eq(at.key, MO_SPAN("progressToken")))
            continue;
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, mo_json_text(at.val));
    }
    event_send(&ev, c, NULL, name);
}

void mo_chat_event_output(struct call *k)
{
    struct event ev;
    struct mo_jw *w = event_after(&ev, mo_buf_view(&k->content));

    mo_jw_member_cstr(w, "callId", k->key);
    mo_jw_member(w, "name", shown_name_of(k));
    mo_jw_member_bool(w, "isError", k->is_error);
    mo_jw_member_cstr(w, "state", mo_call_state_name(k->state));
    mo_jw_member_u64(w, "durationMs", k->took_ms);
    mo_jw_member_bool(w, "truncated", k->content.len > MO_ENTRY_RESULT_MAX);
    mo_jw_member_opt(w, "by", mo_span_cstr(k->by));
    mo_script_put_origin(w, k);
    if (k->route.len > 0)
        put_json(w, "route", mo_buf_view(&k->route));
    if (k->app.len > 0)
        put_json(w, "app", mo_buf_view(&k->app));
    event_send(&ev, k->chat, NULL, "tool:output");
}

void mo_chat_event_approvals(struct chat *c)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_chat_mode_tell(w, c);
    event_send(&ev, c, NULL, "session:approvals");
}

void mo_chat_event_elicit(struct chat *c, struct mo_member *only,
                          const struct elicit_view *v)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "requestId", v->id);
    mo_jw_member(w, "server", v->server);
    mo_jw_member_cstr(w, "callId", v->call);
    mo_jw_member_cstr(w, "mode", v->page ? "url" : "form");
    put_json(w, "message", mo_json_text(v->message));
    put_json(w, v->page ? "url" : "schema", mo_json_text(v->what));
    mo_jw_member_u64(w, "expiresAt", v->expires);
    event_send(&ev, c, only, "elicitation:required");
}

void mo_chat_event_sampling(struct chat *c, struct mo_member *only,
                            const struct sampling_view *v)
{
    static const char *const same[] = {"messages", "systemPrompt",
                                       "modelPreferences"};
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "requestId", v->id);
    mo_jw_member(w, "server", v->server);
    mo_jw_member_cstr(w, "callId", v->call);
    mo_jw_member_cstr(w, "state", v->state);
    for (size_t i = 0; i < MO_COUNT(same); i++)
        mo_jw_copy(w, v->params, same[i]);
    if (v->is_edited)
        mo_jw_member_bool(w, "edited", true);
    mo_jw_member_u64(w, "maxTokens", v->tokens);
    mo_jw_member(w, "model", mo_buf_view(&c->model.id));
    mo_jw_member(w, "text", v->text);
    mo_jw_member_u64(w, "expiresAt", v->expires);
    event_send(&ev, c, only, "sampling:required");
}

void mo_chat_event_elicited(struct chat *c, const char *id, const char *action,
                            const char *by)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "requestId", id);
    mo_jw_member_cstr(w, "action", action);
    mo_jw_member_cstr(w, "by", by);
    event_send(&ev, c, NULL, "elicitation:resolved");
}

/* With the members of "tool:approval_required", so that a client may show it
 * as a call. */
void mo_chat_event_network(struct chat *c, struct mo_member *only,
                           struct mo_json pending)
{
    static const char *const same[] = {
        "args", "server",   "digest",    "request", "program",
        "tls",  "approver", "expiresAt", "reason",  "rule",
    };
    struct mo_json def = mo_json_get(pending, "definition");
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_json(w, "name", mo_json_text(mo_json_get(pending, "tool")));
    put_json(w, "callId", mo_json_text(mo_json_get(pending, "id")));
    mo_jw_copy(w, def, "title");
    mo_jw_copy(w, def, "description");
    for (size_t i = 0; i < MO_COUNT(same); i++)
        mo_jw_copy(w, pending, same[i]);
    event_send(&ev, c, only, "network:approval_required");
}

void mo_chat_event_network_resolved(struct chat *c, const char *id,
                                    bool approved, const char *by)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "callId", id);
    mo_jw_member_bool(w, "approved", approved);
    mo_jw_member_cstr(w, "by", by);
    event_send(&ev, c, NULL, "network:resolved");
}

/* --- new entries --------------------------------------------------------- */

void mo_chat_event_entry(struct chat *c, const struct entry *en)
{
    mo_autobuf struct mo_buf b = {.max = MO_CHAT_EVENT_MAX};

    mo_entry_public(&b, en->doc, en->seq, en->at);
    send_to(c, NULL, "session:entry", &b);
}

/* --- initial events of a member ------------------------------------------ */

static void put_tools(struct mo_jw *w, struct chat *c)
{
    mo_jw_member_arr(w, "tools");
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        mo_jw_obj(w);
        mo_jw_member(w, "name", t->name);
        mo_jw_member(w, "server", t->def.server);
        mo_jw_member(w, "title", t->title);
        mo_jw_member(w, "description", t->def.description);
        put_json(w, "inputSchema", t->def.schema);
        put_json(w, "annotations", t->def.annotations);
        if (t->app_only)
            mo_jw_member_bool(w, "appOnly", true);
        if (mo_changed_tools_is_blocked(c, t)) {
            mo_jw_member_cstr(w, "digest", t->digest);
            put_json(w, "changedFrom", mo_changed_tools_before(c, t));
        }
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static const char *const workspaces[] = {
    [MO_WORKSPACE_FRESH] = "fresh",
    [MO_WORKSPACE_KEPT] = "kept",
    [MO_WORKSPACE_LOST] = "lost",
};

static void send_ready(struct chat *c, struct mo_member *m)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_jw_member_cstr(w, "sessionId", c->id);
    mo_jw_member_cstr(w, "containerId", c->info.box);
    mo_jw_member_cstr(w, "provider", c->model.provider);
    mo_jw_member(w, "model", mo_buf_view(&c->model.id));
    mo_session_memory_put_about(c, w);
    put_tools(w, c);
    mo_skills_put(w, c);
    mo_jw_member_cstr(w, "offered", mo_script_offered(c));
    mo_tools_off_put(w, c);
    mo_jw_member_bool(w, "resumed", c->info.resumed);
    mo_jw_member_cstr(w, "driver", c->info.driver);
    mo_jw_member_cstr(w, "workspace", workspaces[c->info.workspace]);
    mo_jw_member_cstr(w, "files",
                      c->info.workspace == MO_WORKSPACE_KEPT ? "kept" : "new");
    if (c->info.elsewhere)
        mo_jw_member_bool(w, "elsewhere", true);
    mo_jw_member_bool(w, "keepsFiles", c->info.keeps_files);
    mo_jw_member_arr(w, "mounts");
    for (size_t i = 0; !m->reads && c->info.mounts && c->info.mounts[i]; i++)
        mo_jw_cstr(w, c->info.mounts[i]);
    mo_jw_end(w);
    mo_jw_member_cstr(w, "network", mo_chat_box_network(c));
    mo_jw_member_obj(w, "approvals");
    mo_chat_mode_tell(w, c);
    mo_jw_end(w);
    if (m->reads)
        mo_jw_member_cstr(w, "shared", m->may_decide ? "approve" : "read");
    event_send(&ev, c, m, "system:ready");
}

/* Not before the reply with these calls is stored: mo_chat_calls_begin() tells
 * them then. */
static void put_pending(struct mo_jw *w, struct chat *c)
{
    mo_jw_member_arr(w, "pending");
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (c->state != CHAT_CALLS || k->state != MO_CALL_PENDING)
            continue;
        mo_jw_obj(w);
        put_call(w, k);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static const char *const turn_states[] = {
    [CHAT_OPENING] = "opening", [CHAT_IDLE] = "idle",
    [CHAT_SAVING] = "saving",   [CHAT_ASKING] = "thinking",
    [CHAT_KEEPING] = "saving",  [CHAT_CALLS] = "calls",
    [CHAT_RESULTS] = "saving",  [CHAT_ENDING] = "ending",
};

static void put_running(struct mo_jw *w, struct chat *c)
{
    mo_jw_member_arr(w, "running");
    mo_list_each_entry (k, &c->calls.list, struct call, node) {
        if (k->state == MO_CALL_RUNNING)
            mo_jw_cstr(w, k->key);
    }
    mo_jw_end(w);
}

static void put_waiting(struct mo_jw *w, struct chat *c)
{
    mo_jw_member_arr(w, "waiting");
    mo_list_each_entry (m, &c->queue, struct message, node) {
        if (!m->stored)
            continue;
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "messageId", m->id);
        mo_jw_member(w, "text", mo_span(m->text, m->n));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_turn(struct mo_jw *w, struct chat *c)
{
    mo_jw_key(w, "turn");
    if (c->state == CHAT_IDLE) {
        mo_jw_null(w);
        return;
    }
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "turnId", c->turn.id);
    mo_jw_member_cstr(w, "state", turn_states[c->state]);
    mo_jw_member(w, "text",
                 c->transcript.unkept ? MO_SPAN("")
                                      : mo_buf_view(&c->turn.shown));
    if (!c->transcript.unkept && c->turn.thought.len > 0)
        mo_jw_member(w, "thinking", mo_buf_view(&c->turn.thought));
    mo_jw_member_u64(w, "queued", c->nqueue);
    put_waiting(w, c);
    put_running(w, c);
    mo_script_put_all(w, c);
    mo_jw_end(w);
}

static void put_messages(struct mo_jw *w, struct chat *c)
{
    mo_autobuf struct mo_buf one = {.max = MO_ENTRY_MAX};

    mo_jw_member_arr(w, "messages");
    mo_list_each_entry (en, &c->transcript.list, struct entry, node) {
        if (en == c->transcript.unkept)
            break; /* members get it when it is stored */
        mo_buf_reset(&one);
        mo_entry_public(&one, en->doc, en->seq, en->at);
        if (mo_buf_err(&one) == 0)
            mo_jw_raw(w, mo_buf_view(&one));
        mo_buf_pass_err(w->b, &one);
    }
    mo_jw_end(w);
}

/* The seq of the entry before those in memory; 0: there is none. */
static uint64_t entry_before_first(const struct chat *c)
{
    const struct branches *b = &c->transcript.branches;
    const struct entry *first = mo_chat_entry_after(c, NULL);
    const struct branch_node *node = NULL;

    if (first == NULL || first->seq == 0)
        return b->tip;
    node = mo_branches_find(b, first->seq);
    return node ? node->parent : first->seq - 1;
}

static void send_history(struct chat *c, struct mo_member *m)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    put_messages(w, c);
    put_pending(w, c);
    put_turn(w, c);
    mo_jw_member_u64(w, "earlier", entry_before_first(c));
    mo_jw_key(w, "branches");
    mo_branches_put(&c->transcript.branches, w);
    event_send(&ev, c, m, "session:history");
}

void mo_chat_event_history(struct chat *c)
{
    mo_list_each_entry_safe (m, &c->members, struct mo_member, node) {
        if (m->greeted)
            send_history(c, m);
    }
}

void mo_chat_event_about(struct chat *c)
{
    struct event ev;
    struct mo_jw *w = event_begin(&ev);

    mo_session_memory_put_about(c, w);
    event_send(&ev, c, NULL, "session:about");
}

void mo_chat_event_branches(struct chat *c)
{
    struct event ev;
    struct mo_jw *w = NULL;

    if (c->transcript.branches.marks == 0)
        return;
    w = event_begin(&ev);
    mo_jw_key(w, "branches");
    mo_branches_put(&c->transcript.branches, w);
    event_send(&ev, c, NULL, "session:branches");
}

void mo_chat_event_greet(struct mo_member *m)
{
    struct chat *c = m->chat;

    m->greeted = true;
    send_ready(c, m);
    send_history(c, m);
    if (!m->reads)
        mo_chat_elicit_send_open(m);
    mo_chat_network_send_open(m);
    send_troubles(c, m);
}

void mo_chat_event_greet_all(struct chat *c)
{
    mo_list_each_entry_safe (m, &c->members, struct mo_member, node) {
        if (m->greeted)
            mo_chat_event_greet(m);
    }
}
