/* panel_calls.c - pending calls that persons outside the conversation decide
 * about, because a rule names them (policy/panel.h).
 *
 * A person sees such a call, not the conversation. Its id is "SESSION.CALL",
 * which means nothing by itself: each request is judged by who sends it. */
#include "agent/chat/calls.h"

/* True if a rule lets this person see the pending call. */
static bool is_visible(const struct call *k, const struct mo_panel *p,
                       const struct mo_identity *who)
{
    return p->need && (mo_panel_has(p, who) ||
                       (*who->name && strcmp(who->name, k->chat->owner) == 0));
}

static bool is_waiting(const struct call *k)
{
    return k->chat->state == CHAT_CALLS && k->state == MO_CALL_PENDING &&
           (!k->writing || k->noting) && k->tool;
}

static void put_definition(struct mo_jw *w, const struct mo_tool *t)
{
    mo_jw_member_obj(w, "definition");
    mo_jw_member_opt(w, "title", t->title);
    mo_jw_member_opt(w, "description", t->def.description);
    mo_jw_member_raw(w, "annotations", t->def.annotations);
    mo_jw_member_raw(w, "inputSchema", t->def.schema);
    mo_jw_end(w);
}

#define CALL_ID_MAX (MO_SESSION_ID_MAX + MO_LLM_KEY_MAX + 2)

static void put_id(const struct call *k, char id[CALL_ID_MAX])
{
    (void)snprintf(id, CALL_ID_MAX, "%s.%s", k->chat->id, k->card);
}

void mo_chat_call_tell(const struct call *k, const char *kind, bool approved)
{
    const struct chat *c = k->chat;
    char id[CALL_ID_MAX];
    struct mo_verdict v;
    struct mo_webhook_event ev = {
        .kind = kind,
        .call = id,
        .conversation = c->id,
        .args = mo_buf_view(&k->args),
        .asked_by = c->turn.asker,
        .panel = &v.panel,
        .said = &k->said,
        .expires = k->expires,
        .approved = approved,
        .by = k->by ? k->by : "",
        .who = k->who,
        .reason = mo_buf_view(&k->reason),
    };

    if (!k->tool)
        return;
    v = mo_chat_call_verdict(k);
    ev.server = k->tool->def.server;
    ev.tool = k->tool->def.name;
    if (v.rule && !ev.reason.n)
        ev.reason = v.rule->reason;
    put_id(k, id);
    mo_webhooks_tell(mo_approvals_webhooks(c->agent->o.approvals), &ev);
}

static void put_call(struct mo_jw *w, const struct call *k,
                     const struct mo_verdict *v)
{
    const struct chat *c = k->chat;
    uint64_t term = c->agent->o.approval_ms;
    char id[CALL_ID_MAX];

    put_id(k, id);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "id", id);
    mo_jw_member(w, "server", k->tool->def.server);
    mo_jw_member(w, "tool", k->tool->def.name);
    put_definition(w, k->tool);
    mo_jw_member_raw(w, "args", mo_buf_view(&k->args));
    mo_jw_member_cstr(w, "digest", k->digest);
    mo_jw_member_cstr(w, "who", mo_panel_shown(c->turn.asker));
    mo_jw_member_opt(w, "owner", mo_span_cstr(c->owner));
    mo_jw_member_cstr(w, "approver", mo_approver_name(v->approver));
    mo_panel_put(w, &v->panel, &k->said);
    if (v->rule)
        mo_jw_member_opt(w, "reason", v->rule->reason);
    mo_jw_member_cstr(w, "conversation", c->id);
    mo_jw_member_u64(w, "at", k->expires > term ? k->expires - term : 0);
    mo_jw_member_u64(w, "expiresAt", k->expires);
    mo_jw_member_bool(w, "byClient", false);
    mo_jw_end(w);
}

void mo_agent_put_panel_calls(const struct mo_agent *a,
                              const struct mo_identity *who, struct mo_jw *w)
{
    mo_map_each (en, &a->chats) {
        const struct chat *c = en->value;

        mo_list_each_entry (k, &c->calls.list, const struct call, node) {
            struct mo_verdict v;

            if (!is_waiting(k))
                continue;
            v = mo_chat_call_verdict(k);
            if (is_visible(k, &v.panel, who))
                put_call(w, k, &v);
        }
    }
}

/* NULL: there is none of that id that they may see. */
static struct call *find_call(const struct mo_agent *a,
                              const struct mo_identity *who, struct mo_span id)
{
    struct chat *c = mo_map_get(&a->chats, mo_span_cut(&id, '.'));
    struct call *k = c && id.p ? mo_chat_calls_find(c, id) : NULL;
    struct mo_verdict v;

    if (!k || !is_waiting(k))
        return NULL;
    v = mo_chat_call_verdict(k);
    return is_visible(k, &v.panel, who) ? k : NULL;
}

bool mo_agent_has_call(const struct mo_agent *a, const struct mo_identity *who,
                       struct mo_span id)
{
    return find_call(a, who, id) != NULL;
}

bool mo_agent_decide(struct mo_agent *a, const struct mo_decider *by,
                     const struct mo_decision *d, mo_ack_fn *done, void *ctx)
{
    struct call *k = find_call(a, &by->person, d->call);
    struct mo_decision one = *d;
    struct ack ack = {done, ctx};

    if (!k)
        return false;
    one.call = mo_span_cstr(k->card);
    mo_chat_call_decide(k->chat, by, NULL, &one, &ack);
    return true;
}
