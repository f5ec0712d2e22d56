#include "codec/http/sio.h"

#include <limits.h>

#include "base/mem.h"

/* A JavaScript peer counts this far. */
#define ID_MAX ((UINT64_C(1) << 53) - 1)

#define ONE(t)  (1u << (t))
#define NOTHING ONE(MO_JSON_NONE)
#define ARRAY   ONE(MO_JSON_ARRAY)
#define OBJECT  ONE(MO_JSON_OBJECT)

enum { ID_NEVER, ID_MAYBE, ID_ALWAYS };

/* The parts of each packet type, one row per type. */
static const struct rule {
    const char *name;
    unsigned data; /* ONE() of each JSON type its data may have */
    uint8_t id;
    bool event;
} rules[] = {
    [MO_SIO_CONNECT] = {"connect", NOTHING | OBJECT, ID_NEVER, false},
    [MO_SIO_DISCONNECT] = {"disconnect", NOTHING, ID_NEVER, false},
    [MO_SIO_EVENT] = {"event", ARRAY, ID_MAYBE, true},
    [MO_SIO_ACK] = {"ack", ARRAY, ID_ALWAYS, false},
    [MO_SIO_CONNECT_ERROR] = {"connect_error", OBJECT | ONE(MO_JSON_STRING),
                              ID_NEVER, false},
};

/* --- head ---------------------------------------------------------------- */

static bool digit(struct mo_span s)
{
    return s.n && mo_is_digit(s.p[0]);
}

/* Read digits at the front of *s, at least one, up to max. */
static int take_number(struct mo_span *s, uint64_t max, uint64_t *out)
{
    uint64_t v = 0;

    if (!digit(*s))
        return MO_EPROTO;
    for (; digit(*s); *s = mo_span_skip(*s, 1)) {
        unsigned d = (unsigned)(s->p[0] - '0');

        if (v > (max - d) / 10)
            return MO_EPROTO;
        v = v * 10 + d;
    }
    *out = v;
    return 0;
}

/* True for a URL path without the comma that ends a namespace. Since protocol
 * 5 it has no query, and it may not hold stray JSON. */
static bool nsp_ok(struct mo_span nsp)
{
    return nsp.n <= MO_SIO_NSP_MAX &&
           mo_span_only(nsp, MO_ALNUM "-._~!$&'()*+;=:@%/");
}

static int take_nsp(struct mo_span *s, struct mo_sio *out, struct mo_err *e)
{
    if (!s->n || s->p[0] != '/')
        return 0;
    out->nsp = mo_span_cut(s, ',');
    if (!nsp_ok(out->nsp))
        return mo_fail(e, MO_EPROTO, "socket.io: bad namespace");
    return 0;
}

static int take_id(struct mo_span *s, struct mo_sio *out, struct mo_err *e)
{
    const struct rule *r = &rules[out->type];

    out->has_id = digit(*s);
    if (out->has_id && take_number(s, ID_MAX, &out->id) < 0)
        return mo_fail(e, MO_EPROTO, "socket.io: ack id too big");
    if (out->has_id && r->id == ID_NEVER)
        return mo_fail(e, MO_EPROTO, "socket.io: %s with an id", r->name);
    if (!out->has_id && r->id == ID_ALWAYS)
        return mo_fail(e, MO_EPROTO, "socket.io: %s without an id", r->name);
    return 0;
}

/* --- data ---------------------------------------------------------------- */

/* Event names reserved for the receiver: refused from the wire. */
static bool reserved(struct mo_json name)
{
    static const char *const names[] = {"connect",     "connect_error",
                                        "disconnect",  "disconnecting",
                                        "newListener", "removeListener"};

    for (size_t i = 0; i < MO_COUNT(names); i++) {
        if (mo_json_str_eq(name, mo_span_cstr(names[i])))
            return true;
    }
    return false;
}

static int take_data(struct mo_span s, struct mo_sio *out, struct mo_err *e)
{
    const struct rule *r = &rules[out->type];
    struct mo_json_doc doc = {0};
    int rc;

    /* A JavaScript parser reads a blank here as an id of 0. */
    if (s.n && memchr(" \t\r\n", s.p[0], 4))
        return mo_fail(e, MO_EPROTO, "socket.io: blank before the data");
    rc = s.n ? mo_json_parse(s, MO_SIO_DEPTH_MAX, &doc, e) : 0;
    if (rc < 0) {
        (void)mo_wrap(e, "socket.io: %s", r->name); /* e may be NULL */
        return rc;
    }
    out->data = doc.root;
    if (!(r->data & ONE(mo_json_type(doc.root))))
        return mo_fail(e, MO_EPROTO, "socket.io: wrong data for %s", r->name);
    if (r->event) {
        out->name = mo_json_at(doc.root, 0);
        if (!mo_json_is(out->name, MO_JSON_STRING) || reserved(out->name))
            return mo_fail(e, MO_EPROTO, "socket.io: bad event name");
    }
    return 0;
}

int mo_sio_decode(struct mo_span text, struct mo_sio *out, struct mo_err *e)
{
    unsigned type;
    int rc;

    type = text.n ? (unsigned)(unsigned char)text.p[0] - '0' : UINT_MAX;
    if (type > MO_SIO_BINARY_ACK)
        return mo_fail(e, MO_EPROTO, "socket.io: unknown packet type");
    *out = (struct mo_sio){.type = (enum mo_sio_type)type, .nsp = MO_SPAN("/")};
    if (type >= MO_COUNT(rules)) /* binary: the receiver refuses it */
        return 0;
    text = mo_span_skip(text, 1);
    rc = take_nsp(&text, out, e);
    if (rc == 0)
        rc = take_id(&text, out, e);
    if (rc == 0)
        rc = take_data(text, out, e);
    return rc;
}

/* --- encoding ------------------------------------------------------------ */

int mo_sio_put_head(struct mo_buf *b, enum mo_sio_type type, struct mo_span nsp,
                    int64_t id)
{
    MO_BUG_ON(type >= MO_COUNT(rules)); /* we send no binary packets */
    mo_buf_putc(b, (char)('0' + type));
    if (nsp.n && !mo_span_is(nsp, "/")) {
        mo_buf_span(b, nsp);
        mo_buf_putc(b, ',');
    }
    return id < 0 ? mo_buf_err(b) : mo_buf_i64(b, id);
}

int mo_sio_put_event(struct mo_buf *b, struct mo_span nsp, int64_t id,
                     struct mo_span name, struct mo_span args)
{
    mo_sio_put_head(b, MO_SIO_EVENT, nsp, id);
    mo_buf_putc(b, '[');
    mo_json_quote(b, name);
    if (args.n)
        mo_buf_putc(b, ',');
    mo_buf_span(b, args);
    return mo_buf_putc(b, ']');
}

int mo_sio_put_ack(struct mo_buf *b, struct mo_span nsp, uint64_t id,
                   struct mo_span args)
{
    MO_BUG_ON(id > ID_MAX);
    mo_sio_put_head(b, MO_SIO_ACK, nsp, (int64_t)id);
    mo_buf_putc(b, '[');
    mo_buf_span(b, args);
    return mo_buf_putc(b, ']');
}
