/* Any bytes as an attach of Kubernetes: pieces must not matter. The input's
 * first byte says how the rest is cut, its second which version it is. */
#include "codec/attach_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

struct seen {
    struct mo_buf out[3], answer;
    int end;
};

static void run(struct mo_span in, size_t step, bool v5, struct seen *s)
{
    struct mo_attach a;

    mo_attach_init(&a, v5);
    for (size_t at = 0; at < in.n && s->end == 0; at += step) {
        struct mo_span part = mo_span_head(mo_span_skip(in, at), step), piece;
        mo_autobuf struct mo_buf copy = {.max = SIZE_MAX / 4};
        struct mo_ws_in rest;
        enum mo_mux_stream which;
        int rc = 1;

        MO_BUG_ON(mo_buf_span(&copy, part) < 0);
        rest = (struct mo_ws_in){copy.p, copy.len};
        while (rc == 1) {
            rc = mo_attach_next(&a, &rest, &which, &piece, &s->answer, NULL);
            if (rc == 1)
                mo_buf_span(&s->out[which], piece);
        }
        MO_BUG_ON(rc == 0 && rest.n);
        s->end = rc;
    }
    mo_attach_fini(&a);
}

static void init(struct seen *s)
{
    *s = (struct seen){.end = 0};
    for (int i = 0; i < 3; i++)
        mo_buf_init(&s->out[i], SIZE_MAX / 4);
    mo_buf_init(&s->answer, SIZE_MAX / 4);
}

static void fini(struct seen *s)
{
    for (int i = 0; i < 3; i++)
        mo_buf_fini(&s->out[i]);
    mo_buf_fini(&s->answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct seen whole, cut;
    struct mo_span in;

    if (n < 2)
        return 0;
    in = mo_span((const char *)p + 2, n - 2);
    init(&whole);
    init(&cut);
    run(in, in.n, p[1] & 1, &whole);
    run(in, (size_t)p[0] + 1, p[1] & 1, &cut);
    for (int i = 1; i <= 2; i++)
        MO_BUG_ON(
            !mo_span_eq(mo_buf_view(&whole.out[i]), mo_buf_view(&cut.out[i])));
    MO_BUG_ON(whole.end != cut.end || whole.answer.len != cut.answer.len);
    fini(&cut);
    fini(&whole);
    return 0;
}
