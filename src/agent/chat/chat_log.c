#include "agent/chat/chat_log.h"

#include <stdio.h>

#include "agent/chat/calls.h"
#include "agent/chat/chat_priv.h"

void mo_chat_log(const struct chat *c, enum mo_level lv, uint64_t ns,
                 const struct mo_err *why, const char *what)
{
    const struct mo_log_facts about = {.session = c->id,
                                       .turn = c->turn.id,
                                       .who = c->owner,
                                       .ns = ns,
                                       .err = why};

    mo_log_about(mo_loop_log(c->agent->loop), lv, "agent", &about, "%s", what);
}

void mo_chat_log_call(const struct call *k, enum mo_level lv, uint64_t ns,
                      const char *what)
{
    const struct chat *c = k->chat;
    const struct mo_log_facts about = {
        .session = c->id,
        .turn = c->turn.id,
        .call = mo_span_cstr(k->key),
        .server = k->tool ? k->tool->def.server : mo_span(NULL, 0),
        .tool = k->tool ? k->tool->def.name : mo_buf_view(&k->name),
        .who = k->who[0] ? k->who : c->owner,
        .ns = ns,
    };

    mo_log_about(mo_loop_log(c->agent->loop), lv, "agent", &about, "%s", what);
}

static bool decided_by_person(const struct call *k)
{
    return k->by && strcmp(k->by, "person") == 0;
}

void mo_chat_log_decision(const struct call *k)
{
    char what[64];

    snprintf(what, sizeof(what), "call %s%s%s",
             k->state == MO_CALL_PENDING ? "waits for a person"
             : k->state == MO_CALL_RUNNING && decided_by_person(k) ? "approved"
             : k->state == MO_CALL_RUNNING                         ? "allowed"
             : decided_by_person(k)                                ? "rejected"
                                                                   : "refused",
             k->by ? " by " : "", k->by ? k->by : "");
    mo_chat_log_call(k, MO_INFO, 0, what);
}

void mo_chat_log_outcome(const struct call *k)
{
    mo_chat_log_call(k, MO_INFO, mo_now_ns() - k->began,
                     k->state == MO_CALL_UNKNOWN ? "call ended, outcome unknown"
                     : k->is_error               ? "call ended with an error"
                                                 : "call ended");
}
