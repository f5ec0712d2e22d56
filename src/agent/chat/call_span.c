/* call_span.c - spans of a call (trace/trace.h): the wait for a person, and the
 * run. Their parent is the span of the turn, or of the script that made the
 * call. */
#include "agent/chat/calls.h"

static const struct mo_trace_span *parent_of(const struct call *k)
{
    return k->parent ? k->parent->span : k->chat->turn.span;
}

void mo_call_span_begin(struct call *k)
{
    struct mo_span name = mo_buf_view(&k->name);
    struct mo_trace_span *s =
        mo_trace_child(parent_of(k), MO_TRACE_INTERNAL, "");

    if (!s)
        return;
    mo_trace_end(mo_take_ptr(&k->span)); /* asked about again */
    k->span = s;
    mo_trace_rename(s, MO_SPAN("execute_tool"), name);
    mo_trace_text(s, "gen_ai.operation.name", MO_SPAN("execute_tool"));
    mo_trace_text(s, "gen_ai.tool.name", name);
    mo_trace_text(s, "gen_ai.tool.type", MO_SPAN("function"));
    mo_trace_text(s, "gen_ai.tool.call.id", mo_span_cstr(k->key));
    if (k->tool)
        mo_trace_text(s, "mcp_orchestrator.server", k->tool->def.server);
}

void mo_call_span_end(struct call *k)
{
    struct mo_trace_span *s = mo_take_ptr(&k->span);

    if (!s)
        return;
    if (k->canceled)
        mo_trace_fail(s, k->late ? "timeout" : "cancelled");
    else if (k->state == MO_CALL_UNKNOWN)
        mo_trace_fail(s, "unknown_outcome");
    else if (k->is_error)
        mo_trace_fail(s, "tool_error");
    mo_trace_end(s);
}

void mo_call_span_decided(struct call *k, bool yes)
{
    struct mo_trace_span *s = NULL;

    if (k->held_ns)
        k->times.decided = mo_wall_ms();
    if (k->held_ns)
        s = mo_trace_child_since(parent_of(k), "wait for approval", k->held_ns);
    k->held_ns = 0;
    mo_trace_text(s, "gen_ai.tool.name", mo_buf_view(&k->name));
    mo_trace_text(s, "gen_ai.tool.call.id", mo_span_cstr(k->key));
    mo_trace_text(s, "mcp_orchestrator.approval.decision",
                  yes ? MO_SPAN("approved") : MO_SPAN("rejected"));
    if (k->by)
        mo_trace_text(s, "mcp_orchestrator.approval.by", mo_span_cstr(k->by));
    mo_trace_end(s);
}

void mo_call_span_route(struct call *k, uint64_t since)
{
    struct mo_trace_span *s =
        mo_trace_child_since(parent_of(k), "route", since);

    k->times.route_us = (mo_now_ns() - since) / 1000;
    if (!s)
        return;
    if (k->routed && k->tool) {
        mo_trace_text(s, "mcp_orchestrator.server", k->tool->def.server);
        mo_trace_text(s, "gen_ai.tool.name", k->tool->def.name);
    } else {
        mo_trace_fail(s, "no_tool");
    }
    mo_trace_end(s);
}
