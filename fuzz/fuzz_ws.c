/* Any bytes, in both roles: pieces must not matter, text events are UTF-8,
 * and no message is over the cap. The input's first byte picks the role and
 * how the rest is cut. What our writer makes, our reader must read. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/ws.h"
#include "codec/text/utf8.h"

#define MESSAGE_MAX ((size_t)1000)

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void note(struct mo_buf *t, const struct mo_ws *w, enum mo_ws_event ev,
                 struct mo_span d)
{
    MO_BUG_ON(d.n > MESSAGE_MAX);
    MO_BUG_ON(ev == MO_WS_TEXT && !mo_utf8_valid(d));
    MO_BUG_ON(ev == MO_WS_CLOSE && (!mo_utf8_valid(d) || d.n > 123));
    MO_BUG_ON((ev == MO_WS_PING || ev == MO_WS_PONG) && d.n > 125);
    mo_buf_printf(t, "%d %u %u %zu ", ev, w->close_code, w->peer_code, d.n);
    mo_buf_span(t, d);
}

static void feed(struct mo_ws *w, struct mo_span piece, struct mo_buf *t)
{
    char *copy = mo_alloc(piece.n);
    struct mo_ws_in in = {copy, piece.n};
    enum mo_ws_event ev;
    struct mo_span data;

    if (piece.n)
        memcpy(copy, piece.p, piece.n);
    do {
        ev = mo_ws_next(w, &in, &data, NULL);
        if (ev != MO_WS_MORE)
            note(t, w, ev, data);
    } while (ev != MO_WS_MORE);
    MO_BUG_ON(in.n);
    MO_BUG_ON(w->msg.cap > 2 * (MESSAGE_MAX + 125));
    mo_free(copy);
}

static void run(enum mo_ws_role role, struct mo_span in, size_t step,
                struct mo_buf *t)
{
    struct mo_ws w;

    mo_ws_init(&w, role, MESSAGE_MAX);
    for (; in.n; in = mo_span_skip(in, step))
        feed(&w, mo_span_head(in, step), t);
    mo_ws_fini(&w);
}

static void round_trip(enum mo_ws_role role, struct mo_span payload)
{
    struct mo_span data;
    struct mo_ws_in in;
    struct mo_buf b;
    struct mo_ws w;

    mo_buf_init(&b, payload.n + MO_WS_HEAD_MAX);
    mo_ws_init(&w, role, payload.n);
    MO_BUG_ON(mo_ws_put(&b, role == MO_WS_SERVER ? MO_WS_CLIENT : MO_WS_SERVER,
                        MO_WS_OP_BINARY, true, payload) < 0);
    in = (struct mo_ws_in){b.p, b.len};
    MO_BUG_ON(mo_ws_next(&w, &in, &data, NULL) != MO_WS_BINARY);
    MO_BUG_ON(in.n || !mo_span_eq(data, payload));
    mo_ws_fini(&w);
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    enum mo_ws_role role;
    struct mo_buf whole, cut;
    struct mo_span in;

    if (n == 0)
        return 0;
    role = p[0] & 1 ? MO_WS_CLIENT : MO_WS_SERVER;
    in = mo_span((const char *)p + 1, n - 1);
    mo_buf_init(&whole, SIZE_MAX / 4);
    mo_buf_init(&cut, SIZE_MAX / 4);
    run(role, in, in.n, &whole);
    run(role, in, (size_t)(p[0] >> 1) + 1, &cut);
    MO_BUG_ON(!mo_span_eq(mo_buf_view(&whole), mo_buf_view(&cut)));
    mo_buf_fini(&cut);
    mo_buf_fini(&whole);
    round_trip(role, in);
    return 0;
}
