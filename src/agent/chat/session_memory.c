/* session_memory.c - settings stored with a session: the model, the title, the
 * mode, and decisions remembered for the session.
 *
 * Decisions remembered for always are stored by policy (remembered_rules). The
 * others form one small document in the session's row:
 *
 * The members of about.h are among them.
 *
 *   {"model":"...","title":"...","lastMessage":MS,"rules":[{"server":"box",
 *      "tool":"read_file","action":"allow","id":"...","who":"...",
 *      "at":1763330000000}],"toolsOff":[...],"mode":{...}}
 *
 * Rows of older versions have no id, who and at: the id of such a rule is its
 * place ("old-0"). */
#include "agent/chat/session_memory.h"

#include <stdio.h>

#include "agent/chat/calls.h"
#include "agent/chat/chat_mode.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/tools_off.h"

/* Most sessions remember nothing. */
static bool make_room(struct remembered *r)
{
    if (r->notes)
        return true;
    r->v = mo_arena_zalloc(&r->arena, REMEMBERED_MAX * sizeof(*r->v));
    if (r->v)
        r->notes =
            mo_arena_zalloc(&r->arena, REMEMBERED_MAX * sizeof(*r->notes));
    return r->notes != NULL;
}

static int add_rule(struct remembered *r, const struct mo_rule *from,
                    const struct grant_note *note)
{
    struct mo_rule *rule;
    struct grant_note *n;

    if (r->rules.n >= REMEMBERED_MAX)
        return MO_EBUSY;
    if (!make_room(r))
        return MO_ENOMEM;
    rule = &r->v[r->rules.n];
    n = &r->notes[r->rules.n];
    *rule = (struct mo_rule){.action = from->action,
                             .server = mo_span_dup(&r->arena, from->server),
                             .tool = mo_span_dup(&r->arena, from->tool)};
    *n = *note;
    n->who = mo_span_dup(&r->arena, note->who);
    if (rule->server.p == NULL || rule->tool.p == NULL || n->who.p == NULL)
        return MO_ENOMEM;
    if (!n->id[0])
        (void)snprintf(n->id, sizeof(n->id), "old-%zu", r->rules.n);
    r->rules.v = r->v;
    r->rules.of_session = true;
    r->rules.n++;
    return 0;
}

static int remember_rule(const struct call *k, enum mo_action action)
{
    const struct mo_tool *t = k->tool;
    struct grant_note note = {.who = mo_span_cstr(k->who), .at = mo_wall_ms()};
    mo_autobuf struct mo_buf tool = {.max = 512};
    mo_autobuf struct mo_buf server = {.max = 512};
    struct mo_rule rule = {.action = action};

    if (mo_match_literal(&server, t->def.server) < 0 ||
        mo_match_literal(&tool, t->def.name) < 0)
        return MO_ENOMEM;
    mo_random_token(note.id, GRANT_BYTES);
    rule.server = mo_buf_view(&server);
    rule.tool = mo_buf_view(&tool);
    return add_rule(&k->chat->remembered, &rule, &note);
}

size_t mo_session_memory_find(const struct chat *c, struct mo_span grant)
{
    const struct remembered *r = &c->remembered;

    for (size_t i = 0; i < r->rules.n; i++)
        if (mo_span_is(grant, r->notes[i].id))
            return i;
    return REMEMBERED_MAX;
}

/* The others are copied into a new arena: an arena frees nothing. */
int mo_session_memory_drop(struct chat *c, size_t drop)
{
    struct remembered *r = &c->remembered;
    struct remembered *fresh = mo_new(struct remembered);
    int rc = fresh ? 0 : MO_ENOMEM;

    if (fresh)
        mo_arena_init(&fresh->arena, REMEMBERED_BYTES);
    for (size_t i = 0; rc == 0 && i < r->rules.n; i++)
        if (i != drop)
            rc = add_rule(fresh, &r->v[i], &r->notes[i]);
    if (rc == 0) {
        mo_arena_fini(&r->arena);
        *r = *fresh;
        r->rules.v = r->v;
        r->rules.of_session = true;
    } else if (fresh) {
        mo_arena_fini(&fresh->arena);
    }
    mo_free(fresh);
    return rc;
}

static int remember_always(struct call *k, const struct mo_decision *d,
                           struct mo_err *e)
{
    const struct mo_remembered_rule_wish wish = {
        .server = k->tool->def.server,
        .tool = k->tool->def.name,
        .action = d->approved ? MO_ACTION_ALLOW : MO_ACTION_DENY,
        .conditions = d->conditions,
        .who = k->who,
    };
    char id[MO_REMEMBERED_RULES_ID_MAX];

    return mo_remembered_rules_add(
        mo_policy_remembered(k->chat->agent->o.policy), &wish, id, e);
}

/* A message, not an error: `agent:error` is the end of a turn, and one may
 * run. */
static void tell_not_saved(struct chat *c, const struct mo_err *why)
{
    char text[400];

    (void)snprintf(text, sizeof(text),
                   "The settings of this conversation are not saved: %s",
                   why->msg);
    mo_chat_event_message(c, NULL, text);
}

static void on_memory_saved(void *ctx, const struct mo_err *why)
{
    struct chat *c = ctx;

    c->writes--;
    if (why)
        tell_not_saved(c, why);
    mo_chat_settle(c);
}

/* Members are told when it is stored: they may read the list then. */
static void on_grant_saved(void *ctx, const struct mo_err *why)
{
    if (!why)
        mo_chat_event_approvals(ctx);
    on_memory_saved(ctx, why);
}

int mo_session_memory_decision(struct call *k, const struct mo_decision *d,
                               struct mo_err *e)
{
    struct mo_policy_call as_judged = mo_chat_call_for_policy(k);
    struct chat *c = k->chat;
    int rc = 0;

    if (d->remember == MO_REMEMBER_SESSION &&
        mo_chat_call_verdict(k).approver == MO_APPROVER_OPERATOR)
        return mo_fail(e, MO_EPOLICY,
                       "The decision was not remembered: only the operator may "
                       "approve this call, each time or for always.");
    if (!mo_policy_may_remember(c->agent->o.policy, &as_judged))
        return mo_fail(e, MO_EPOLICY,
                       "The decision was not remembered: the configuration "
                       "requires approval of each call.");
    if (d->remember == MO_REMEMBER_ALWAYS)
        return remember_always(k, d, e);
    rc = remember_rule(k, d->approved ? MO_ACTION_ALLOW : MO_ACTION_DENY);
    if (rc < 0)
        return mo_fail(e, rc,
                       "The decision was not remembered: this session "
                       "remembers no more than 64.");
    rc = mo_session_memory_store(c, on_grant_saved, c, e);
    if (rc == 0) {
        c->writes++;
    } else if (rc == MO_ETOOBIG) {
        (void)mo_session_memory_drop(c, c->remembered.rules.n - 1);
        return mo_wrap(e, "The decision was not remembered");
    }
    return 0;
}

static void read_rule(struct chat *c, struct mo_json v)
{
    struct remembered *r = &c->remembered;
    struct mo_rule rule = {.action = MO_ACTION_DENY};
    struct grant_note note = {.who = MO_SPAN("")};

    if (mo_json_str_eq(mo_json_get(v, "action"), MO_SPAN("allow")))
        rule.action = MO_ACTION_ALLOW;
    if (mo_json_str_copy(mo_json_get(v, "id"), note.id, sizeof(note.id)) < 0)
        note.id[0] = '\0';
    (void)mo_json_str(mo_json_get(v, "who"), &r->arena, &note.who);
    (void)mo_json_u64(mo_json_get(v, "at"), &note.at);
    if (mo_json_str(mo_json_get(v, "server"), &r->arena, &rule.server) == 0 &&
        mo_json_str(mo_json_get(v, "tool"), &r->arena, &rule.tool) == 0 &&
        rule.tool.n > 0)
        (void)add_rule(r, &rule, &note);
}

/* The title, and the rest of what is said about the conversation. */
static void read_about(struct chat *c, struct mo_json doc)
{
    static const char *const labels[] = {"named", "pinned", "archived",
                                         "tags",  "system", "offer"};
    struct mo_jw w;

    mo_buf_reset(&c->title);
    if (mo_json_str_buf(mo_json_get(doc, "title"), &c->title) < 0)
        mo_buf_reset(&c->title);
    mo_buf_reset(&c->labels);
    w = mo_jw_object(&c->labels);
    for (size_t i = 0; i < MO_COUNT(labels); i++)
        mo_jw_copy(&w, doc, labels[i]);
    mo_jw_end(&w);
    if (mo_buf_err(&c->labels))
        mo_buf_reset(&c->labels);
}

void mo_session_memory_read(struct chat *c, struct mo_json doc)
{
    struct mo_err e;

    read_about(c, doc);
    c->said_at = 0;
    c->titled = mo_json_flag(doc, "titled");
    (void)mo_json_u64(mo_json_get(doc, "lastMessage"), &c->said_at);
    mo_json_each (at, mo_json_get(doc, "rules"))
        read_rule(c, at.val);
    if (mo_json_get(doc, "toolsOff").p)
        (void)mo_tools_off_read(c, mo_json_get(doc, "toolsOff"), &e);
    mo_chat_mode_read(c, mo_json_get(doc, "mode"));
}

static void put_rules(struct mo_jw *w, const struct remembered *all)
{
    mo_jw_member_arr(w, "rules");
    for (size_t i = 0; i < all->rules.n; i++) {
        const struct mo_rule *r = &all->v[i];

        mo_jw_obj(w);
        mo_jw_member(w, "server", r->server);
        mo_jw_member(w, "tool", r->tool);
        mo_jw_member_cstr(w, "action",
                          r->action == MO_ACTION_ALLOW ? "allow" : "deny");
        mo_jw_member_cstr(w, "id", all->notes[i].id);
        mo_jw_member_opt(w, "who", all->notes[i].who);
        mo_jw_member_u64(w, "at", all->notes[i].at);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

/* The time of the last message orders the list of conversations. */
void mo_session_memory_said(struct chat *c, struct mo_span text)
{
    c->said_at = mo_wall_ms();
    if (c->title.len == 0) {
        mo_about_title(text, &c->title);
        mo_chat_event_about(c);
    }
    mo_session_memory_save(c);
}

void mo_session_memory_put_about(const struct chat *c, struct mo_jw *w)
{
    struct mo_json_doc labels;

    mo_jw_member_opt(w, "title", mo_buf_view(&c->title));
    if (mo_json_parse(mo_buf_view(&c->labels), 0, &labels, NULL) < 0)
        return;
    mo_json_each (at, labels.root) {
        mo_jw_key_raw(w, at.key);
        mo_jw_raw(w, mo_json_text(at.val));
    }
}

static void put_memory(const struct chat *c, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "model", mo_buf_view(&c->model.id));
    mo_session_memory_put_about(c, &w);
    if (c->said_at > 0)
        mo_jw_member_u64(&w, "lastMessage", c->said_at);
    if (c->titled)
        mo_jw_member_bool(&w, "titled", true);
    put_rules(&w, &c->remembered);
    if (c->off)
        mo_tools_off_put(&w, c);
    mo_chat_mode_put(&w, c);
    mo_jw_end(&w);
}

int mo_session_memory_store(struct chat *c, mo_done_fn *done, void *ctx,
                            struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_SESSION_DATA_MAX};

    if (c->hold == NULL)
        return mo_fail(e, MO_ECLOSED, "the session is not open");
    put_memory(c, &b);
    if (mo_buf_err(&b))
        return mo_fail(e, mo_buf_err(&b),
                       "the settings of this conversation are too large");
    return mo_session_keep(c->hold, mo_buf_view(&b), done, ctx, e);
}

void mo_session_memory_save(struct chat *c)
{
    struct mo_err e;

    int rc = mo_session_memory_store(c, on_memory_saved, c, &e);

    if (rc == 0)
        c->writes++;
    else if (rc == MO_ETOOBIG)
        tell_not_saved(c, &e);
}

/* --- what is said about it ----------------------------------------------- */

struct labelling { /* a change that is being stored */
    struct chat *chat;
    mo_done_fn *done;
    void *ctx;
};

static void on_about_saved(void *ctx, const struct mo_err *why)
{
    struct labelling n = *(struct labelling *)ctx;

    mo_free(ctx);
    n.chat->writes--;
    if (why == NULL)
        mo_chat_event_about(n.chat);
    n.done(n.ctx, why);
    mo_chat_settle(n.chat);
}

static int change_about(struct chat *c, struct mo_json change, struct mo_err *e)
{
    mo_autobuf struct mo_buf now = {.max = MO_ABOUT_MAX};
    mo_autobuf struct mo_buf then = {.max = 2 * MO_ABOUT_MAX};
    struct mo_json_doc doc;
    struct mo_jw w = mo_jw_object(&now);

    mo_session_memory_put_about(c, &w);
    mo_jw_end(&w);
    if (mo_json_parse(mo_buf_view(&now), 0, &doc, NULL) == 0)
        mo_about_apply(doc.root, change, &then);
    if (mo_buf_err(&now) || mo_buf_err(&then) ||
        mo_json_parse(mo_buf_view(&then), 0, &doc, NULL) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    read_about(c, doc.root);
    return 0;
}

int mo_agent_about(struct mo_agent *a, struct mo_span session,
                   struct mo_span change, mo_done_fn *done, void *ctx,
                   struct mo_err *e)
{
    struct chat *c = mo_map_get(&a->chats, session);
    mo_autobuf struct mo_buf b = {.max = MO_SESSION_DATA_MAX};
    struct labelling *n = NULL;
    struct mo_json_doc doc;
    int rc = mo_json_parse(change, 0, &doc, e);

    if (rc < 0)
        return rc;
    if (c == NULL || c->hold == NULL || !c->ready)
        return mo_fail(e, MO_EPOLICY, "the conversation is not open");
    n = mo_new(struct labelling);
    if (n == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *n = (struct labelling){c, done, ctx};
    rc = change_about(c, doc.root, e);
    if (rc == 0) {
        put_memory(c, &b);
        rc = mo_buf_err(&b) ? mo_fail(e, mo_buf_err(&b), "out of memory")
                            : mo_session_keep(c->hold, mo_buf_view(&b),
                                              on_about_saved, n, e);
    }
    if (rc == 0)
        c->writes++;
    else
        mo_free(n);
    if (mo_json_get(doc.root, "offer").p)
        c->stale = true; /* other tools from the next request on */
    return rc;
}
