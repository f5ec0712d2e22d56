/* call_trace.c - spans of a forwarded call (trace/trace.h): the route, the wait
 * for a person, the wait for the server, and the request to it. Their parent is
 * the span of the client's request. */
#include <stdio.h>

#include "gateway/call/forwarded_call.h"
#include "gateway/call/rewrite.h"

#define WAIT_MIN (1 * MO_MS) /* a shorter wait is no span */
#define SERVER   "mcp_orchestrator.server"

static const char *server_of(const struct server_slot *s)
{
    return s && s->up ? mo_upstream_server(s->up)->name : "";
}

static void put_tool(struct mo_trace_span *s, struct mo_span method,
                     struct mo_span own)
{
    bool tool = mo_span_is(method, "tools/call");

    if (!tool && !mo_span_is(method, "prompts/get"))
        return;
    mo_trace_rename(s, method, own);
    mo_trace_text(s, tool ? "gen_ai.tool.name" : "gen_ai.prompt.name", own);
    if (tool)
        mo_trace_text(s, "gen_ai.operation.name", MO_SPAN("execute_tool"));
}

void mo_call_trace_send(struct forwarded_call *f, const struct call_target *t,
                        struct mo_call_opts *o)
{
    const struct mo_ep_call *c = f->down;
    struct mo_link *k = mo_conn_link(mo_child_conn(f->child));
    struct mo_trace_span *s;

    mo_call_trace_free(f); /* of an earlier try */
    s = mo_trace_child(c->span, MO_TRACE_CLIENT, "");
    if (!s)
        return;
    mo_trace_rename(s, c->method, mo_span(NULL, 0));
    mo_trace_text(s, "mcp.method.name", c->method);
    put_tool(s, c->method, t->own);
    mo_trace_text(s, SERVER, mo_span_cstr(server_of(t->slot)));
    if (k)
        mo_trace_text(s, "network.transport",
                      mo_link_is_http(k) ? MO_SPAN("tcp") : MO_SPAN("pipe"));
    mo_trace_meta(mo_json_get(c->params, "_meta"), &o->trace);
    mo_trace_send(s, &o->trace, f->traceparent);
    o->own_trace = true;
    f->span = s;
}

void mo_call_trace_done(struct forwarded_call *f, const struct mo_reply *r)
{
    char code[24];

    if (!f->span)
        return;
    if (r->err) {
        mo_trace_fail(f->span, mo_err_name(r->err->code));
    } else if (r->error.p) {
        (void)snprintf(code, sizeof(code), "%lld", (long long)r->code);
        mo_trace_fail(f->span, code);
        mo_trace_text(f->span, "rpc.response.status_code", mo_span_cstr(code));
    } else if (mo_json_flag(r->result, "isError")) {
        mo_trace_fail(f->span, "tool_error");
    }
    mo_trace_end(mo_take_ptr(&f->span));
}

void mo_call_trace_free(struct forwarded_call *f)
{
    if (f->span)
        mo_trace_end(mo_take_ptr(&f->span));
}

void mo_call_trace_child(struct forwarded_call *f, const struct mo_err *why)
{
    struct mo_trace_span *s = NULL;

    if (!f->asked_ns || !f->down)
        return;
    if (why || mo_now_ns() - f->asked_ns > WAIT_MIN)
        s = mo_trace_child_since(f->down->span, "wait for server", f->asked_ns);
    mo_trace_text(s, SERVER, mo_span_cstr(server_of(f->slot)));
    if (why)
        mo_trace_fail(s, mo_err_name(why->code));
    mo_trace_end(s);
    f->asked_ns = 0;
}

void mo_call_trace_approval(struct forwarded_call *f, uint64_t since, bool yes,
                            const char *by)
{
    struct mo_trace_span *s =
        f->down
            ? mo_trace_child_since(f->down->span, "wait for approval", since)
            : NULL;

    mo_trace_text(s, "mcp_orchestrator.approval.decision",
                  yes ? MO_SPAN("approved") : MO_SPAN("rejected"));
    mo_trace_text(s, "mcp_orchestrator.approval.by", mo_span_cstr(by));
    mo_trace_end(s);
}

void mo_call_trace_route(const struct mo_ep_call *c, uint64_t since,
                         const struct call_target *t, int rc)
{
    struct mo_trace_span *s = mo_trace_child_since(c->span, "route", since);

    if (rc < 0) {
        mo_trace_fail(s, mo_err_name(rc));
    } else {
        mo_trace_text(s, SERVER, mo_span_cstr(server_of(t->slot)));
        mo_trace_text(s, "gen_ai.tool.name", t->own);
    }
    mo_trace_end(s);
}
