/* changed_tools.c - tools whose definition differs from the pinned one.
 *
 * Such tools are neither offered to the model nor run. Members see the old and
 * the new definition, and any member can accept the new one. Tools of the box
 * and of the gateway itself come with the program and are not checked. */
#include "agent/chat/changed_tools.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"

#define BEFORE_MAX ((size_t)1024 * 1024)

struct blocked {
    struct mo_list node;
    const struct mo_tool *tool; /* of the present catalogue */
    struct mo_buf before;       /* the pinned definition */
};

void mo_changed_tools_forget(struct chat *c)
{
    mo_list_each_entry_safe (k, &c->blocked, struct blocked, node) {
        mo_list_del(&k->node);
        mo_buf_fini(&k->before);
        mo_free(k);
    }
}

static int check_pin(struct chat *c, const struct mo_tool *t)
{
    struct mo_policy *p = c->agent->o.policy;
    struct blocked *k = mo_new(struct blocked);

    if (k == NULL)
        return MO_ENOMEM;
    k->tool = t;
    mo_buf_init(&k->before, BEFORE_MAX);
    if (mo_policy_tool_is_pinned(p, t, &k->before)) {
        mo_buf_fini(&k->before);
        mo_free(k);
        return 0;
    }
    mo_list_push(&c->blocked, &k->node);
    return 0;
}

int mo_changed_tools_find(struct chat *c)
{
    struct mo_policy *p = c->agent->o.policy;
    int rc = 0;

    mo_changed_tools_forget(c);
    for (size_t i = 0; rc == 0 && i < mo_tools_count(c->tools); i++)
        if (mo_tools_at(c->tools, i)->source == SOURCE_SERVERS)
            rc = check_pin(c, mo_tools_at(c->tools, i));
    mo_policy_flush_pins(p);
    return rc;
}

bool mo_changed_tools_is_same(const struct chat *c, const struct mo_tool *t)
{
    return mo_policy_tool_is_pinned(c->agent->o.policy, t, NULL);
}

static struct blocked *find_blocked(const struct chat *c,
                                    const struct mo_tool *t)
{
    mo_list_each_entry (k, &c->blocked, struct blocked, node) {
        if (k->tool == t)
            return k;
    }
    return NULL;
}

struct mo_span mo_changed_tools_before(const struct chat *c,
                                       const struct mo_tool *t)
{
    struct blocked *k = find_blocked(c, t);

    return k ? mo_buf_view(&k->before) : mo_span(NULL, 0);
}

bool mo_changed_tools_is_blocked(const struct chat *c, const struct mo_tool *t)
{
    return find_blocked(c, t) != NULL;
}

static void audit_acceptance(const struct mo_member *m, const struct mo_tool *t)
{
    mo_chat_audit(m->chat, &(struct mo_audit_row){.event = "accepted",
                                                  .subject = t->name,
                                                  .digest = t->digest,
                                                  .who = mo_span_cstr(m->who)});
}

void mo_chat_accept(struct mo_member *m, struct mo_span tool,
                    struct mo_span digest, mo_ack_fn *done, void *ctx)
{
    struct chat *c = m->chat;
    struct mo_policy *p = c->agent->o.policy;
    const struct mo_tool *t = mo_tools_find(c->tools, tool);
    struct blocked *k = t ? find_blocked(c, t) : NULL;
    struct ack ack = {done, ctx};
    char text[160];

    if (k == NULL) {
        mo_chat_ack(&ack, "unknown_tool", "this tool has no change to accept");
        return;
    }
    if (!mo_span_eq_ct(digest, mo_span_cstr(t->digest))) {
        mo_chat_ack(&ack, "changed",
                    "the tool has changed again; look at it again");
        return;
    }
    if (mo_policy_accept_tool(p, t) < 0) {
        mo_chat_ack(&ack, "failed", "out of memory");
        return;
    }
    audit_acceptance(m, t);
    mo_list_del(&k->node);
    mo_buf_fini(&k->before);
    mo_free(k);
    snprintf(text, sizeof(text), "The change of %.*s was accepted.",
             (int)tool.n, tool.p);
    mo_chat_event_message(c, NULL, text);
    mo_agent_stale(c->agent); /* other conversations block it too */
    mo_chat_ack_ok(&ack, mo_span(NULL, 0));
}
