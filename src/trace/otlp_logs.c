#include "trace/otlp_logs.h"

#include "base/clock.h"
#include "trace/target.h"

#define ATTRIBUTES 6u
#define SAMPLED    1u /* of the trace flags */

static void put_text(struct mo_otlp *o, const struct mo_log_record *r,
                     enum mo_log_record_text which, const char *key)
{
    struct mo_span s = mo_log_record_text(r, which);

    if (s.n)
        mo_otlp_attr(o, ATTRIBUTES, key, s);
}

static void put_number(struct mo_otlp *o, const char *key, uint64_t v)
{
    if (v)
        mo_otlp_attr_int(o, ATTRIBUTES, key, (int64_t)v);
}

/* The names are those of the spans, where there is one. */
static void put_attributes(struct mo_otlp *o, const struct mo_log_record *r)
{
    mo_otlp_list(o, "attributes");
    put_text(o, r, MO_LOG_ROOM, "mcp_orchestrator.room");
    put_number(o, "mcp_orchestrator.worker", r->worker);
    put_number(o, "mcp_orchestrator.request", r->request);
    put_text(o, r, MO_LOG_SESSION, "gen_ai.conversation.id");
    put_text(o, r, MO_LOG_TURN, "mcp_orchestrator.turn.id");
    put_text(o, r, MO_LOG_CALL, "gen_ai.tool.call.id");
    put_text(o, r, MO_LOG_SERVER, "mcp_orchestrator.server");
    put_text(o, r, MO_LOG_TOOL, "gen_ai.tool.name");
    put_text(o, r, MO_LOG_WHO, "user.name");
    put_text(o, r, MO_LOG_FROM, "client.address");
    put_number(o, "http.response.status_code", r->status);
    if (r->ns)
        mo_otlp_attr_double(o, ATTRIBUTES, "mcp_orchestrator.seconds",
                            (double)r->ns / (double)MO_S);
    if (r->code)
        mo_otlp_attr(o, ATTRIBUTES, "error.type",
                     mo_span_cstr(mo_err_name(r->code)));
    put_number(o, "mcp_orchestrator.errno", (uint64_t)r->sys);
    mo_otlp_list_end(o);
}

void mo_otlp_log(struct mo_otlp *o, const struct mo_log_record *r,
                 uint64_t observed)
{
    static const struct {
        uint32_t number; /* SeverityNumber */
        const char *text;
    } levels[] = {[MO_ERROR] = {17, "ERROR"},
                  [MO_WARN] = {13, "WARN"},
                  [MO_INFO] = {9, "INFO"},
                  [MO_DEBUG] = {5, "DEBUG"}};

    mo_otlp_item(o, MO_OTLP_ITEM);
    mo_otlp_fixed64(o, 1, "timeUnixNano", r->wall_ms * MO_MS);
    mo_otlp_number(o, 2, "severityNumber", levels[r->level].number);
    mo_otlp_text(o, 3, "severityText", mo_span_cstr(levels[r->level].text));
    mo_otlp_msg(o, 5, "body");
    mo_otlp_text(o, 1, "stringValue", mo_log_record_text(r, MO_LOG_MESSAGE));
    mo_otlp_end(o);
    put_attributes(o, r);
    if (r->traced) {
        mo_otlp_fixed32(o, 8, "flags", SAMPLED);
        mo_otlp_id(o, 9, "traceId", r->trace.trace, sizeof(r->trace.trace));
        mo_otlp_id(o, 10, "spanId", r->trace.span, sizeof(r->trace.span));
    }
    mo_otlp_fixed64(o, 11, "observedTimeUnixNano", observed);
    mo_otlp_end(o);
}
