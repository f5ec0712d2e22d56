#include "agent/chat/network.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "policy/connections.h"

#define LIST_MAX ((size_t)256 * 1024)

/* --- telling members ----------------------------------------------------- */

static void on_asked(void *ctx, const char *session, struct mo_span json)
{
    struct mo_agent *a = ctx;
    struct chat *c = mo_map_get(&a->chats, mo_span_cstr(session));

    if (c)
        mo_chat_event_network(c, NULL, (struct mo_json){json.p, json.n});
}

static void on_resolved(void *ctx, const char *session, const char *id,
                        bool approved, const char *by)
{
    struct mo_agent *a = ctx;
    struct chat *c = mo_map_get(&a->chats, mo_span_cstr(session));

    if (c)
        mo_chat_event_network_resolved(c, id, approved, by);
}

void mo_chat_network_watch(struct mo_agent *a)
{
    if (a->o.approvals)
        mo_connections_watch(a->o.approvals, &(struct mo_connections_watch){
                                                 on_asked, on_resolved, a});
}

void mo_chat_network_unwatch(struct mo_agent *a)
{
    if (a->o.approvals)
        mo_connections_watch(a->o.approvals,
                             &(struct mo_connections_watch){.ctx = NULL});
}

/* The open questions of the session as a JSON array in b. */
static struct mo_json list_open(const struct chat *c, struct mo_buf *b)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_connections_put(c->agent->o.approvals, c->id, &w);
    return (struct mo_json){mo_buf_err(b) ? NULL : b->p, b->len};
}

void mo_chat_network_send_open(struct mo_member *m)
{
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};

    if (!m->chat->agent->o.approvals)
        return;
    mo_json_each (it, list_open(m->chat, &b))
        mo_chat_event_network(m->chat, m, it.val);
}

/* --- decisions ----------------------------------------------------------- */

static bool is_open(const struct chat *c, struct mo_span id)
{
    mo_autobuf struct mo_buf b = {.max = LIST_MAX};

    if (!c->agent->o.approvals)
        return false;
    mo_json_each (it, list_open(c, &b))
        if (mo_json_str_eq(mo_json_get(it.val, "id"), id))
            return true;
    return false;
}

static const char *code_of(int rc)
{
    return rc == MO_ENOTFOUND ? "unknown_call"
           : rc == MO_EPOLICY ? "denied"
                              : "bad_request";
}

bool mo_chat_network_decide(struct mo_member *m, const struct mo_decision *d,
                            struct ack *ack)
{
    struct chat *c = m->chat;
    const struct mo_decider by = mo_chat_decider(m);
    const struct mo_approval_decision x = {
        .id = d->call,
        .reason = d->reason,
        .digest = d->digest,
        .approved = d->approved,
        .remember = d->remember,
        .who = m->who,
        .caller = m->is_operator ? "" : c->owner,
        .name = m->name,
        .door = m->door ? m->door : "",
        .people = m->people,
    };
    struct mo_err e;
    int rc;

    if (!is_open(c, d->call))
        return false;
    if (d->args.n || d->conditions.n)
        rc = mo_fail(&e, MO_EINVAL, "host and port of a connection are fixed");
    else
        rc = mo_approvals_decide(c->agent->o.approvals, &x, &e);
    if (rc < 0) {
        mo_chat_audit_refusal(c, &by, d, code_of(rc));
        mo_chat_ack(ack, code_of(rc), e.msg);
    } else {
        mo_chat_ack_ok(ack, d->remember == MO_REMEMBER_NO
                                ? mo_span(NULL, 0)
                                : MO_SPAN("\"remembered\":true"));
    }
    return true;
}
