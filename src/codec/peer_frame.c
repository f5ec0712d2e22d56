#include "codec/peer_frame.h"

static uint32_t get_u32(const char *at)
{
    const unsigned char *p = (const unsigned char *)at;

    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static void set_u32(char *at, uint32_t v)
{
    for (int i = 3; i >= 0; i--, v >>= 8)
        at[i] = (char)(v & 0xff);
}

/* --- reading -------------------------------------------------------------- */

void mo_peer_frames_init(struct mo_peer_frames *f, size_t max)
{
    *f = (struct mo_peer_frames){.max = max};
    mo_buf_init(&f->part, MO_PEER_HEAD + max);
}

void mo_peer_frames_fini(struct mo_peer_frames *f)
{
    mo_buf_fini(&f->part);
}

/* The bytes of the frame that begins here; 0: the head is not complete. */
static size_t frame_size(struct mo_peer_frames *f, struct mo_span s)
{
    if (s.n > 0 && (s.p[0] < MO_PEER_JOIN || s.p[0] >= MO_PEER_TYPES))
        f->err = MO_EPROTO;
    if (s.n < MO_PEER_HEAD || f->err)
        return 0;
    if (get_u32(s.p + 1) > f->max)
        f->err = MO_ETOOBIG;
    return MO_PEER_HEAD + (size_t)get_u32(s.p + 1);
}

static void read_frame(struct mo_span s, struct mo_peer_frame *out)
{
    out->type = (enum mo_peer_type)s.p[0];
    out->data = mo_span_skip(s, MO_PEER_HEAD);
}

/* Adds bytes to the part until it is a frame. */
static bool complete_part(struct mo_peer_frames *f, struct mo_span *in)
{
    while (!f->err && in->n) {
        size_t size = frame_size(f, mo_buf_view(&f->part));
        size_t want = (size ? size : MO_PEER_HEAD) - f->part.len;
        struct mo_span more = mo_span_take(in, want < in->n ? want : in->n);

        if (!f->err && mo_buf_span(&f->part, more) < 0)
            f->err = mo_buf_err(&f->part);
        size = f->err ? 0 : frame_size(f, mo_buf_view(&f->part));
        if (size && f->part.len == size)
            return !f->err;
    }
    return false;
}

int mo_peer_frames_next(struct mo_peer_frames *f, struct mo_span *in,
                        struct mo_peer_frame *out)
{
    size_t size;

    if (f->used)
        mo_buf_fini(&f->part); /* it may have been a large one */
    f->used = false;
    if (f->part.len > 0 && complete_part(f, in)) {
        read_frame(mo_buf_view(&f->part), out);
        f->used = true;
        return 1;
    }
    size = f->err ? 0 : frame_size(f, *in);
    if (f->err)
        return f->err;
    if (size && size <= in->n) {
        read_frame(mo_span_take(in, size), out);
        return 1;
    }
    if (in->n && mo_buf_span(&f->part, mo_span_take(in, in->n)) < 0)
        f->err = mo_buf_err(&f->part);
    return f->err;
}

bool mo_peer_u32(struct mo_span *in, uint32_t *out)
{
    if (in->n < 4)
        return false;
    *out = get_u32(mo_span_take(in, 4).p);
    return true;
}

bool mo_peer_field(struct mo_span *in, struct mo_span *out, bool *has)
{
    struct mo_span rest = *in;
    uint32_t n;

    if (!mo_peer_u32(&rest, &n))
        return false;
    if (n == MO_PEER_ABSENT && has) {
        *has = false;
        *out = mo_span(NULL, 0);
        *in = rest;
        return true;
    }
    if (n > rest.n)
        return false;
    if (has)
        *has = true;
    *out = mo_span_take(&rest, n);
    *in = rest;
    return true;
}

/* --- writing -------------------------------------------------------------- */

void mo_peer_put_u32(struct mo_buf *b, uint32_t v)
{
    char p[4];

    set_u32(p, v);
    mo_buf_put(b, p, sizeof(p));
}

size_t mo_peer_begin(struct mo_buf *b, enum mo_peer_type type)
{
    size_t at = b->len;

    mo_buf_putc(b, (char)type);
    mo_peer_put_u32(b, 0);
    return at;
}

void mo_peer_end(struct mo_buf *b, size_t began)
{
    if (mo_buf_err(b) == 0)
        set_u32(b->p + began + 1, (uint32_t)(b->len - began - MO_PEER_HEAD));
}

void mo_peer_put(struct mo_buf *b, struct mo_span field)
{
    mo_peer_put_u32(b, (uint32_t)field.n);
    mo_buf_span(b, field);
}

void mo_peer_put_absent(struct mo_buf *b)
{
    mo_peer_put_u32(b, MO_PEER_ABSENT);
}

void mo_peer_put_event(struct mo_buf *b, struct mo_span name, size_t args)
{
    mo_buf_putc(b, (char)MO_PEER_EVENT);
    mo_peer_put_u32(b, (uint32_t)(4 + name.n + args));
    mo_peer_put(b, name);
}
