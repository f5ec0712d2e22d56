/* Pieces must not matter; whatever is understood stays inside its bounds. */
#include <stdlib.h>

#include "codec/resp.h"

#define MAX ((size_t)256) /* small, so that limits are reached often */

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void log_value(struct mo_buf *log, const struct mo_resp *r, int depth)
{
    expect(depth <= MO_RESP_DEPTH_MAX);
    expect(r->n <= MO_RESP_VALUES_MAX && (r->n == 0 || r->v));
    (void)mo_buf_printf(log, "%d:%lld:%zu[", r->kind, (long long)r->number,
                        r->n);
    (void)mo_buf_span(log, r->text);
    for (size_t i = 0; i < r->n; i++)
        log_value(log, &r->v[i], depth + 1);
    (void)mo_buf_putc(log, ']');
}

static int drain(struct mo_resp_in *in, struct mo_buf *log)
{
    const struct mo_resp *r = NULL;
    struct mo_arena a;
    struct mo_err e;
    int rc;

    mo_arena_init(&a, (size_t)64 << 20);
    for (rc = mo_resp_next(in, &a, &r, &e); rc == 1;
         rc = mo_resp_next(in, &a, &r, &e)) {
        log_value(log, r, 0);
        mo_arena_reset(&a);
    }
    mo_arena_fini(&a);
    return rc;
}

static int run(struct mo_buf *log, struct mo_span s, size_t step)
{
    struct mo_resp_in in;
    int rc = 0;

    mo_resp_init(&in, MAX);
    mo_buf_init(log, (size_t)64 << 20);
    for (; s.n && rc == 0; s = mo_span_skip(s, step)) {
        struct mo_span piece = mo_span_head(s, step);

        rc = mo_resp_feed(&in, piece.p, piece.n);
        if (rc == 0)
            rc = drain(&in, log);
    }
    mo_resp_fini(&in);
    return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span all = {(const char *)data, n};
    struct mo_buf a, b;
    int ra = run(&a, all, n ? n : 1);
    int rb = run(&b, all, n % 7 + 1);

    /* how much fits at a time may differ; what was understood may not */
    if (ra != MO_ETOOBIG && rb != MO_ETOOBIG) {
        expect(ra == rb);
        expect(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
    }
    mo_buf_fini(&a);
    mo_buf_fini(&b);
    return 0;
}
