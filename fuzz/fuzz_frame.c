/* Pieces must not matter; the lines are those memchr would find. */
#include <stdlib.h>

#include "codec/frame.h"

#define MAX ((size_t)16) /* small, so that the limit is reached often */

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void put_line(struct mo_buf *log, struct mo_span line)
{
    mo_buf_putc(log, '[');
    mo_buf_span(log, line);
    mo_buf_puts(log, "]\n");
}

static void run(struct mo_buf *log, struct mo_span in, size_t step)
{
    struct mo_span line;
    struct mo_frame f;
    int rc = 0;

    mo_frame_init(&f, MAX);
    mo_buf_init(log, 16 << 20);
    for (; in.n && rc >= 0; in = mo_span_skip(in, step)) {
        struct mo_span piece = mo_span_head(in, step);

        rc = mo_frame_next(&f, &piece, &line);
        for (; rc == 1; rc = mo_frame_next(&f, &piece, &line))
            put_line(log, line);
        expect(rc < 0 || piece.n == 0);
    }
    mo_buf_puts(log, rc < 0 ? "!" : ".");
    mo_frame_fini(&f);
}

/* The same, said plainly. */
static void oracle(struct mo_buf *log, struct mo_span in)
{
    mo_buf_init(log, 16 << 20);
    for (;;) {
        ptrdiff_t at = mo_span_find(in, '\n');
        size_t n = at < 0 ? in.n : (size_t)at;

        if (n > MAX)
            break;
        if (at < 0) {
            mo_buf_puts(log, ".");
            return;
        }
        if (n && in.p[n - 1] == '\r')
            put_line(log, mo_span_head(in, n - 1));
        else
            put_line(log, mo_span_head(in, n));
        in = mo_span_skip(in, n + 1);
    }
    mo_buf_puts(log, "!");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);
    struct mo_buf a, b;

    if (n == 0)
        return 0;
    oracle(&a, in);
    for (size_t step = 1; step <= n; step += 1 + step / 2) {
        run(&b, in, step);
        expect(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
        mo_buf_fini(&b);
    }
    mo_buf_fini(&a);
    return 0;
}
