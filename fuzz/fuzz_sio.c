/* Any bytes as a Socket.IO packet. What is taken must keep its promises, and
 * must read the same again when written by us. */
#include <stdlib.h>

#include "base/mem.h"
#include "codec/http/sio.h"

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);

static void check(const struct mo_sio *s)
{
    bool event = s->type == MO_SIO_EVENT;

    MO_BUG_ON(s->type > MO_SIO_BINARY_ACK);
    MO_BUG_ON(s->nsp.n == 0 || s->nsp.n > MO_SIO_NSP_MAX);
    MO_BUG_ON(s->nsp.p[0] != '/');
    MO_BUG_ON(event != mo_json_is(s->name, MO_JSON_STRING));
    MO_BUG_ON(s->id >> 53);
    MO_BUG_ON(!s->has_id && s->id);
}

static void write_again(const struct mo_sio *s, struct mo_buf *b)
{
    int64_t id = s->has_id ? (int64_t)s->id : -1;

    mo_sio_put_head(b, s->type, s->nsp, id);
    mo_buf_span(b, mo_json_text(s->data));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    struct mo_sio s, again;
    struct mo_buf b;

    if (mo_sio_decode(mo_span((const char *)p, n), &s, NULL) < 0)
        return 0;
    check(&s);
    if (s.type >= MO_SIO_BINARY_EVENT)
        return 0;
    mo_buf_init(&b, SIZE_MAX / 4);
    write_again(&s, &b);
    MO_BUG_ON(mo_sio_decode(mo_buf_view(&b), &again, NULL) < 0);
    MO_BUG_ON(again.type != s.type || again.has_id != s.has_id);
    MO_BUG_ON(again.id != s.id || !mo_span_eq(again.nsp, s.nsp));
    MO_BUG_ON(!mo_span_eq(mo_json_text(again.data), mo_json_text(s.data)));
    mo_buf_fini(&b);
    return 0;
}
