/* otlp_spans.c - a batch of spans as an ExportTraceServiceRequest. */
#include "base/build.h"
#include "trace/trace_priv.h"

#define SCOPE "mcp-orchestrator"

/* Bits of Span.flags: the trace flags, and whether the parent is remote. */
#define FLAG_SAMPLED 0x001u
#define FLAG_KNOWN   0x100u
#define FLAG_REMOTE  0x200u
#define STATUS_ERROR 2u

static void put_resource(struct mo_otlp *o, const struct mo_tracer *t)
{
    struct mo_span rest = mo_buf_view(&t->resource);

    mo_otlp_msg(o, 1, "resource");
    mo_otlp_list(o, "attributes");
    while (rest.n) {
        struct mo_span key = mo_span_cut(&rest, '\0');
        struct mo_span value = mo_span_cut(&rest, '\0');

        mo_otlp_attr(o, 1, key.p, value);
    }
    mo_otlp_list_end(o);
    mo_otlp_end(o);
}

static void put_attr(struct mo_otlp *o, const struct mo_trace_span *s,
                     const struct trace_attr *a)
{
    struct mo_span text = mo_span(s->texts + a->at, a->n);

    if (a->kind == ATTR_INT)
        mo_otlp_attr_int(o, 9, a->key, a->number);
    else if (a->kind == ATTR_ONE)
        mo_otlp_attr_one(o, 9, a->key, text);
    else
        mo_otlp_attr(o, 9, a->key, text);
}

static uint32_t flags_of(const struct mo_trace_span *s)
{
    return FLAG_SAMPLED | FLAG_KNOWN | (s->remote ? FLAG_REMOTE : 0);
}

static void put_span(struct mo_otlp *o, const struct mo_trace_span *s,
                     uint64_t epoch)
{
    mo_otlp_item(o, 2);
    mo_otlp_id(o, 1, "traceId", s->ids.trace, sizeof(s->ids.trace));
    mo_otlp_id(o, 2, "spanId", s->ids.span, sizeof(s->ids.span));
    if (s->has_parent)
        mo_otlp_id(o, 4, "parentSpanId", s->parent, sizeof(s->parent));
    mo_otlp_text(o, 5, "name", mo_span_cstr(s->name));
    mo_otlp_number(o, 6, "kind", s->kind);
    mo_otlp_fixed64(o, 7, "startTimeUnixNano", epoch + s->began);
    mo_otlp_fixed64(o, 8, "endTimeUnixNano", epoch + s->ended);
    mo_otlp_list(o, "attributes");
    for (unsigned i = 0; i < s->nattrs; i++)
        put_attr(o, s, &s->attrs[i]);
    mo_otlp_list_end(o);
    if (s->lost)
        mo_otlp_number(o, 10, "droppedAttributesCount", s->lost);
    if (s->failed) {
        mo_otlp_msg(o, 15, "status");
        mo_otlp_number(o, 3, "code", STATUS_ERROR);
        mo_otlp_end(o);
    }
    mo_otlp_fixed32(o, 16, "flags", flags_of(s));
    mo_otlp_end(o);
}

static void put_scope(struct mo_otlp *o)
{
    mo_otlp_msg(o, 1, "scope");
    mo_otlp_text(o, 1, "name", MO_SPAN(SCOPE));
    mo_otlp_text(o, 2, "version", MO_SPAN(MO_VERSION));
    mo_otlp_end(o);
}

int mo_otlp_spans(const struct mo_tracer *t, unsigned n, struct mo_buf *b)
{
    /* A span has times of the monotonic clock; the wall clock may be set. */
    uint64_t epoch = mo_wall_ms() * MO_MS - mo_now_ns();
    struct mo_otlp o;

    mo_otlp_init(&o, b, t->encoding);
    mo_otlp_list(&o, "resourceSpans");
    mo_otlp_item(&o, 1);
    put_resource(&o, t);
    mo_otlp_list(&o, "scopeSpans");
    mo_otlp_item(&o, 2);
    put_scope(&o);
    mo_otlp_list(&o, "spans");
    mo_list_each_entry (s, &t->queue, struct mo_trace_span, node) {
        if (n == 0)
            break;
        n--;
        put_span(&o, s, epoch);
    }
    mo_otlp_list_end(&o);
    mo_otlp_end(&o);
    mo_otlp_list_end(&o);
    mo_otlp_end(&o);
    mo_otlp_list_end(&o);
    return mo_otlp_fini(&o);
}
