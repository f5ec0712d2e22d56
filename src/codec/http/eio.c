#include "codec/http/eio.h"

#include "codec/json/json.h"

#define SEPARATOR '\x1e'
#define BINARY    'b'

int mo_eio_decode(struct mo_span frame, struct mo_eio *out, struct mo_err *e)
{
    unsigned type;

    if (frame.n == 0)
        return mo_fail(e, MO_EPROTO, "engine.io: empty packet");
    type = (unsigned)(unsigned char)frame.p[0] - '0';
    if (type > MO_EIO_NOOP)
        return mo_fail(e, MO_EPROTO, "engine.io: unknown packet type");
    *out = (struct mo_eio){.type = (enum mo_eio_type)type,
                           .data = mo_span_skip(frame, 1)};
    return 0;
}

/* An empty body is one empty packet, and a trailing separator is followed by
 * one: both are refused, as engine.io does. */
int mo_eio_next(struct mo_span *body, unsigned *n, struct mo_eio *out,
                struct mo_err *e)
{
    struct mo_span packet;
    int rc;

    if (*n > 0 && !body->p)
        return 0;
    if (*n >= MO_EIO_PACKETS_MAX)
        return mo_fail(e, MO_EPROTO, "engine.io: too many packets");
    *n += 1;
    packet = mo_span_cut(body, SEPARATOR);
    if (packet.n && packet.p[0] == BINARY) {
        *out = (struct mo_eio){.type = MO_EIO_MESSAGE, .binary = true};
        return 1;
    }
    rc = mo_eio_decode(packet, out, e);
    return rc < 0 ? rc : 1;
}

int mo_eio_put_polling(struct mo_buf *b, enum mo_eio_type type,
                       struct mo_span data)
{
    if (b->len)
        mo_buf_putc(b, SEPARATOR);
    mo_buf_putc(b, (char)('0' + type));
    return mo_buf_span(b, data);
}

int mo_eio_put_open(struct mo_buf *b, const struct mo_eio_open *o)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "sid", o->sid);
    mo_jw_member_arr(&w, "upgrades");
    if (o->can_upgrade)
        mo_jw_cstr(&w, "websocket");
    mo_jw_end(&w);
    mo_jw_member_u64(&w, "pingInterval", o->ping_interval_ms);
    mo_jw_member_u64(&w, "pingTimeout", o->ping_timeout_ms);
    mo_jw_member_u64(&w, "maxPayload", o->max_payload);
    mo_jw_end(&w);
    return mo_buf_err(b);
}
