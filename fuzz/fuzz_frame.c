/* Pieces must not matter; the lines are those memchr would find, whether a line
 * that is too long ends the stream or is skipped. */
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

/* Lines until there are no more in *in; a line that is too long is "<line>". */
static int take(struct mo_frame *f, struct mo_buf *log, struct mo_span *in,
                bool skips)
{
    struct mo_span line;
    int rc = f->err ? f->err : mo_frame_next(f, in, &line);

    for (; rc == 1; rc = mo_frame_next(f, in, &line))
        put_line(log, line);
    if (rc != MO_ETOOBIG || !skips)
        return rc;
    expect(mo_frame_waiting(f) == 0);
    for (rc = 0; rc == 0 && in->n;) {
        rc = mo_frame_skip(f, in, &line);
        mo_buf_span(log, line);
    }
    if (rc == 1)
        mo_buf_puts(log, ">\n");
    return rc;
}

static void run(struct mo_buf *log, struct mo_span in, size_t step, bool skips)
{
    struct mo_frame f;
    int rc = 0;

    mo_frame_init(&f, MAX);
    mo_buf_init(log, 16 << 20);
    for (; in.n && rc >= 0; in = mo_span_skip(in, step)) {
        struct mo_span piece = mo_span_head(in, step);

        for (rc = 1; rc == 1;)
            rc = take(&f, log, &piece, skips);
        expect(rc < 0 || piece.n == 0);
    }
    mo_buf_puts(log, rc < 0 ? "!" : ".");
    mo_frame_fini(&f);
}

/* The same, said plainly. */
static void oracle(struct mo_buf *log, struct mo_span in, bool skips)
{
    mo_buf_init(log, 16 << 20);
    for (;;) {
        ptrdiff_t at = mo_span_find(in, '\n');
        size_t n = at < 0 ? in.n : (size_t)at;

        if (n > MAX && !skips) {
            mo_buf_puts(log, "!");
            return;
        }
        if (n > MAX)
            mo_buf_span(log, mo_span_head(in, n));
        if (n > MAX && at >= 0)
            mo_buf_puts(log, ">\n");
        if (at < 0) {
            mo_buf_puts(log, ".");
            return;
        }
        if (n <= MAX && n && in.p[n - 1] == '\r')
            put_line(log, mo_span_head(in, n - 1));
        else if (n <= MAX)
            put_line(log, mo_span_head(in, n));
        in = mo_span_skip(in, n + 1);
    }
}

static void compare(struct mo_span in, bool skips)
{
    struct mo_buf a, b;

    oracle(&a, in, skips);
    for (size_t step = 1; step <= in.n; step += 1 + step / 2) {
        run(&b, in, step, skips);
        expect(mo_span_eq(mo_buf_view(&a), mo_buf_view(&b)));
        mo_buf_fini(&b);
    }
    mo_buf_fini(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span in = mo_span((const char *)data, n);

    compare(in, false);
    compare(in, true);
    return 0;
}
