/* overview.c - see overview.h. */
#include "agent/chat/overview.h"

#include "agent/chat/calls.h"

const struct mo_tally *mo_agent_tally(const struct mo_agent *a)
{
    return &a->tally;
}

void mo_agent_chats(const struct mo_agent *a, mo_chat_look_fn *each, void *ctx)
{
    mo_map_each (en, &a->chats) {
        const struct chat *c = en->value;
        const struct mo_chat_look look = {
            .session = c->id,
            .provider = c->provider ? c->provider : "",
            .model = mo_buf_view(&c->model),
            .title = mo_buf_view(&c->title),
            .spent = c->transcript.spent,
            .members = c->nmembers,
            .busy = c->state != CHAT_IDLE && c->state != CHAT_OPENING,
        };

        if (c->ready)
            each(ctx, &look);
    }
}

static void list_waiting_calls(const struct chat *c, mo_waiting_fn *each,
                               void *ctx)
{
    uint64_t term = c->agent->o.approval_ms;

    mo_list_each (k, &c->calls.list, const struct call, node) {
        const struct mo_waiting w = {
            .session = c->id,
            .call = k->key,
            .title = mo_buf_view(&c->title),
            .server = k->tool ? k->tool->def.server : MO_SPAN(""),
            .tool = mo_buf_view(&k->name),
            .since = k->expires > term ? k->expires - term : 0,
            .expires = k->expires,
        };

        if (k->state == MO_CALL_PENDING && !k->writing)
            each(ctx, &w);
    }
}

void mo_agent_waiting(const struct mo_agent *a, mo_waiting_fn *each, void *ctx)
{
    mo_map_each (en, &a->chats)
        list_waiting_calls(en->value, each, ctx);
}
