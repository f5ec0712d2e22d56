/* otlp_spans.c - a batch of spans as an ExportTraceServiceRequest. */
#include "trace/trace_priv.h"

/* Bits of Span.flags: the trace flags, and whether the parent is remote. */
#define FLAG_SAMPLED 0x001u
#define FLAG_KNOWN   0x100u
#define FLAG_REMOTE  0x200u
#define STATUS_ERROR 2u

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
    mo_otlp_item(o, MO_OTLP_ITEM);
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

int mo_otlp_spans(const struct mo_tracer *t, unsigned n, struct mo_buf *b)
{
    static const struct mo_otlp_names names = {"resourceSpans", "scopeSpans",
                                               "spans"};
    /* A span has times of the monotonic clock; the wall clock may be set. */
    uint64_t epoch = mo_wall_ms() * MO_MS - mo_now_ns();
    struct mo_otlp o;

    mo_otlp_request(&o, b, t->encoding, &t->resource, &names);
    mo_list_each_entry (s, &t->queue, struct mo_trace_span, node) {
        if (n == 0)
            break;
        n--;
        put_span(&o, s, epoch);
    }
    return mo_otlp_request_end(&o);
}
