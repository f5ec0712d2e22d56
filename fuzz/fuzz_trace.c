/* fuzz_trace.c - any headers and any _meta: lines of the input, the first
 * letter says which header, the rest its value; what follows a NUL is _meta.
 * What is promised: whatever is taken can be written into a header and a JSON
 * text, has its form, and no tracestate is there without its parent. */
#include <stdlib.h>

#include "trace/context.h"

#define HEADERS 16

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Read and written again it is the same, up to the version and flags. */
static void check_ids(struct mo_span parent)
{
    char again[MO_TRACE_PARENT_LEN + 1];
    struct mo_trace_ids ids;

    must(mo_trace_parse(parent, &ids) == (parent.n > 0));
    if (!parent.n)
        return;
    mo_trace_format(&ids, again);
    must(memcmp(again + 2, parent.p + 2, MO_TRACE_PARENT_LEN - 4) == 0);
    must(mo_trace_is(MO_TRACE_PARENT, mo_span(again, MO_TRACE_PARENT_LEN)));
}

static void check(const struct mo_trace *t)
{
    for (size_t k = 0; k < MO_TRACE_KEYS; k++) {
        struct mo_span v = t->v[k];

        must(!v.n || mo_trace_is((enum mo_trace_key)k, v));
        for (size_t i = 0; i < v.n; i++)
            must((v.p[i] >= 0x20 && v.p[i] < 0x7f) || v.p[i] == '\t');
    }
    must(t->v[MO_TRACE_PARENT].n || !t->v[MO_TRACE_STATE].n);
    check_ids(t->v[MO_TRACE_PARENT]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span rest = mo_span((const char *)data, n);
    struct mo_span lines = mo_span_cut(&rest, '\0');
    struct mo_http_header h[HEADERS];
    struct mo_http_head head = {.headers = h};
    struct mo_trace t = {0};
    struct mo_json_doc doc;
    struct mo_arena a;

    if (n > 65536)
        return 0;
    while (lines.p && head.nheaders < HEADERS) {
        struct mo_span line = mo_span_cut(&lines, '\n');
        size_t k = line.n ? (unsigned char)line.p[0] % MO_TRACE_KEYS : 0;

        h[head.nheaders].name =
            mo_span_cstr(mo_trace_name((enum mo_trace_key)k));
        h[head.nheaders++].value = mo_span_skip(line, 1);
    }
    mo_arena_init(&a, 1 << 20);
    must(mo_trace_head(&head, &a, &t) == 0);
    check(&t);
    if (rest.p && mo_json_parse(rest, 0, &doc, NULL) == 0)
        mo_trace_meta(doc.root, &t);
    check(&t);
    mo_arena_fini(&a);
    return 0;
}
