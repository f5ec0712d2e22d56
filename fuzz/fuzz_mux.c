/* Any bytes as an attach stream: pieces must not matter. The input's first
 * byte says how the rest is cut. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/mux.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct seen {
    struct mo_buf out[3]; /* by stream */
    bool error, edge;
};

static void run(struct mo_span in, size_t step, struct seen *s)
{
    enum mo_mux_stream stream;
    struct mo_span data;
    struct mo_mux m;
    int rc = 0;

    mo_mux_init(&m);
    for (size_t at = 0; at < in.n; at += step) {
        struct mo_span piece = mo_span_head(mo_span_skip(in, at), step);

        do {
            rc = mo_mux_next(&m, &piece, &stream, &data, NULL);
            if (rc == 1)
                mo_buf_span(&s->out[stream], data);
        } while (rc == 1);
        MO_BUG_ON(rc == 0 && piece.n);
        MO_BUG_ON(s->error && rc == 0);
        s->error = rc < 0;
    }
    s->edge = mo_mux_at_edge(&m);
}

static void init(struct seen *s)
{
    *s = (struct seen){0};
    mo_buf_init(&s->out[1], SIZE_MAX / 4);
    mo_buf_init(&s->out[2], SIZE_MAX / 4);
}

static void fini(struct seen *s)
{
    mo_buf_fini(&s->out[1]);
    mo_buf_fini(&s->out[2]);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct seen whole, cut;
    struct mo_span in;

    if (n == 0)
        return 0;
    in = mo_span((const char *)p + 1, n - 1);
    init(&whole);
    init(&cut);
    run(in, in.n, &whole);
    run(in, (size_t)p[0] + 1, &cut);
    for (int i = 1; i <= 2; i++)
        MO_BUG_ON(
            !mo_span_eq(mo_buf_view(&whole.out[i]), mo_buf_view(&cut.out[i])));
    MO_BUG_ON(whole.error != cut.error || whole.edge != cut.edge);
    fini(&cut);
    fini(&whole);
    return 0;
}
