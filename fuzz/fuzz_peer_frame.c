/* Any bytes as frames of another process: pieces must not matter, no frame is
 * longer than was asked for, and fields stay inside of it. The first byte says
 * how the rest is cut, the second how long a frame may be. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/peer_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void read_fields(struct mo_span in)
{
    const char *end = in.p + in.n;
    struct mo_span one;
    bool has;

    while (mo_peer_field(&in, &one, &has))
        MO_BUG_ON(has && one.p + one.n > end);
    MO_BUG_ON(in.p + in.n != end);
}

static void run(struct mo_span in, size_t step, size_t max, struct mo_buf *seen)
{
    struct mo_peer_frames m;
    struct mo_peer_frame f;
    int rc = 0;

    mo_peer_frames_init(&m, max);
    for (size_t at = 0; at < in.n && rc == 0; at += step) {
        struct mo_span piece = mo_span_head(mo_span_skip(in, at), step);

        do {
            rc = mo_peer_frames_next(&m, &piece, &f);
            if (rc == 0)
                continue;
            mo_buf_putc(seen, (char)(rc < 0 ? 'x' : '1'));
            if (rc < 0)
                continue;
            MO_BUG_ON(f.data.n > max);
            mo_buf_putc(seen, (char)f.type);
            mo_buf_span(seen, f.data);
            read_fields(f.data);
        } while (rc == 1);
        MO_BUG_ON(rc == 0 && piece.n);
    }
    mo_peer_frames_fini(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mo_buf whole, cut;
    struct mo_span in;

    if (n < 3)
        return 0;
    mo_buf_init(&whole, SIZE_MAX / 4);
    mo_buf_init(&cut, SIZE_MAX / 4);
    in = mo_span((const char *)p + 2, n - 2);
    run(in, in.n, p[1], &whole);
    run(in, (size_t)p[0] + 1, p[1], &cut);
    MO_BUG_ON(!mo_span_eq(mo_buf_view(&whole), mo_buf_view(&cut)));
    mo_buf_fini(&cut);
    mo_buf_fini(&whole);
    return 0;
}
