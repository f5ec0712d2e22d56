/* Any bytes as frames of a network container or of the relay's side: pieces
 * must not matter, and what was read is valid. The input's first byte says
 * whose frames these are, the second how the rest is cut. With the lowest bits
 * of the first byte a row and a HELLO come before them. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/net_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check_frame(const struct mo_net_frame *f)
{
    MO_BUG_ON(f->type < MO_NET_HELLO || f->type > MO_NET_FILE);
    MO_BUG_ON((f->type == MO_NET_HELLO) != (f->id == 0));
    MO_BUG_ON(f->data.n > MO_NET_DATA_MAX);
    MO_BUG_ON(f->type == MO_NET_OPEN && (f->port == 0 || f->port > 65535));
    MO_BUG_ON(f->type == MO_NET_CREDIT &&
              (f->credit == 0 || f->credit > MO_NET_WINDOW));
    MO_BUG_ON((f->id & 0xff) == 0xff);
}

static void run(struct mo_span in, size_t step, bool container,
                struct mo_buf *seen)
{
    static struct mo_net_frames m;
    struct mo_net_frame f;

    mo_net_frames_init(&m, container);
    for (size_t at = 0; at < in.n; at += step) {
        struct mo_span piece = mo_span_head(mo_span_skip(in, at), step);
        int rc;

        do {
            rc = mo_net_frames_next(&m, &piece, &f);
            mo_buf_putc(seen, (char)(rc < 0 ? 'x' : '0' + rc));
            if (rc == 0)
                seen->len--;
            if (rc != 1)
                continue;
            check_frame(&f);
            mo_buf_putc(seen, (char)f.type);
            mo_buf_put(seen, (const char *)&f.id, sizeof(f.id));
            mo_buf_span(seen, f.data);
        } while (rc);
        MO_BUG_ON(piece.n);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    static const unsigned char nonce[MO_NET_NONCE];
    struct mo_buf whole, cut, in;

    if (n < 2)
        return 0;
    mo_buf_init(&whole, SIZE_MAX / 4);
    mo_buf_init(&cut, SIZE_MAX / 4);
    mo_buf_init(&in, SIZE_MAX / 4);
    if (p[0] & 2)
        mo_net_put_hello(&in, nonce, 0);
    mo_buf_put(&in, (const char *)p + 2, n - 2);
    if (p[0] & 4)
        mo_net_put_hello(&in, nonce, 0);
    run(mo_buf_view(&in), in.len ? in.len : 1, p[0] & 1, &whole);
    run(mo_buf_view(&in), (size_t)p[1] + 1, p[0] & 1, &cut);
    MO_BUG_ON(!mo_span_eq(mo_buf_view(&whole), mo_buf_view(&cut)));
    mo_buf_fini(&in);
    mo_buf_fini(&cut);
    mo_buf_fini(&whole);
    return 0;
}
