#include "codec/net_frame.h"

#define PAD       0xFF
#define OPEN_LEN  18
#define HELLO_LEN (MO_NET_NONCE + 1)

/* The lengths that a type may have, and from whom it comes. */
static const struct {
    uint16_t min, max;
    bool of_container, of_relay;
} types[] = {
    [MO_NET_HELLO] = {HELLO_LEN, HELLO_LEN, true, true},
    [MO_NET_OPEN] = {OPEN_LEN, OPEN_LEN, true, false},
    [MO_NET_DATA] = {1, MO_NET_DATA_MAX, true, true},
    [MO_NET_CREDIT] = {4, 4, true, true},
    [MO_NET_EOF] = {0, 0, true, true},
    [MO_NET_RESET] = {0, 0, true, true},
    [MO_NET_QUERY] = {1, MO_NET_DATA_MAX, true, false},
    [MO_NET_ANSWER] = {1, MO_NET_DATA_MAX, false, true},
    [MO_NET_FILE] = {1, MO_NET_DATA_MAX, true, true},
};

static uint32_t get_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static size_t get_len(const unsigned char *head)
{
    return (size_t)head[2] << 8 | head[3];
}

void mo_net_frames_init(struct mo_net_frames *f, bool from_container)
{
    *f = (struct mo_net_frames){.from_container = from_container};
}

/* The head, as far as it is there, can be one. */
static bool head_is_valid(const struct mo_net_frames *f)
{
    const unsigned char *h = f->buf;
    size_t n = f->have, len = get_len(h);
    bool hello = h[0] == MO_NET_HELLO;

    if (n >= 1 && (h[0] < MO_NET_HELLO || h[0] >= MO_COUNT(types) ||
                   hello == f->in_step ||
                   !(f->from_container ? types[h[0]].of_container
                                       : types[h[0]].of_relay)))
        return false;
    if (n >= 2 && h[1] != 0)
        return false;
    if (n >= 4 && (len < types[h[0]].min || len > types[h[0]].max))
        return false;
    if (n >= MO_NET_HEAD &&
        (hello ? get_u32(h + 4) != 0 : get_u32(h + 4) == 0 || h[7] == PAD))
        return false;
    return true;
}

/* Reads a complete frame. */
static bool read_frame(const struct mo_net_frames *f, struct mo_net_frame *out)
{
    const unsigned char *p = f->buf + MO_NET_HEAD;
    size_t n = get_len(f->buf);

    *out = (struct mo_net_frame){
        .type = f->buf[0],
        .id = get_u32(f->buf + 4),
        .data = mo_span((const char *)p, n),
    };
    if (p[n] != 0)
        return false;
    if (out->type == MO_NET_HELLO) {
        out->data.n = MO_NET_NONCE;
        out->flags = p[MO_NET_NONCE];
    } else if (out->type == MO_NET_OPEN) {
        memcpy(out->ip.b, p, sizeof(out->ip.b));
        out->port = (unsigned)p[16] << 8 | p[17];
        return out->port != 0;
    } else if (out->type == MO_NET_CREDIT) {
        out->credit = get_u32(p);
        return out->credit > 0 && out->credit <= MO_NET_WINDOW;
    } else if (out->type == MO_NET_FILE) {
        out->flags = p[0];
        out->data = mo_span_skip(out->data, 1);
        return out->flags <= 1 && out->id <= MO_NET_FILES;
    }
    return true;
}

/* Drops bytes until a row of PAD has ended. False: all are used up. */
static bool find_row(struct mo_net_frames *f, struct mo_span *in)
{
    while (in->n) {
        if ((unsigned char)in->p[0] == PAD)
            f->row++;
        else if (f->row >= MO_NET_ROW)
            return true;
        else
            f->row = 0;
        *in = mo_span_skip(*in, 1);
    }
    return false;
}

/* Returns true if the stream was in step. Bytes of PAD in the frame may belong
 * to the row before a HELLO; there are enough behind them. */
static bool lose_step(struct mo_net_frames *f)
{
    bool was = f->in_step;

    f->in_step = false;
    f->have = f->row = 0;
    return was;
}

/* How many more bytes the frame needs, as far as is known. */
static size_t bytes_missing(const struct mo_net_frames *f)
{
    if (f->have < MO_NET_HEAD)
        return MO_NET_HEAD - f->have;
    return MO_NET_HEAD + get_len(f->buf) + 1 - f->have;
}

int mo_net_frames_next(struct mo_net_frames *f, struct mo_span *in,
                       struct mo_net_frame *out)
{
    while (in->n) {
        size_t n = bytes_missing(f);
        bool ok;

        if (!f->in_step && !f->have && !find_row(f, in))
            return 0;
        if (f->have < 4)
            n = 1; /* the length is looked at before it is used */
        n = n < in->n ? n : in->n;
        memcpy(f->buf + f->have, in->p, n);
        f->have += n;
        *in = mo_span_skip(*in, n);
        ok = f->have > MO_NET_HEAD || head_is_valid(f);
        if (ok && (f->have < MO_NET_HEAD || bytes_missing(f)))
            continue;
        ok = ok && read_frame(f, out);
        if (!ok && lose_step(f))
            return MO_EPROTO;
        if (!ok)
            continue;
        f->have = f->row = 0;
        f->in_step = true;
        return 1;
    }
    return 0;
}

void mo_net_frames_refuse(struct mo_net_frames *f)
{
    (void)lose_step(f);
}

/* --- writing ------------------------------------------------------------- */

int mo_net_put(struct mo_buf *b, enum mo_net_type type, uint32_t id,
               struct mo_span data)
{
    const unsigned char head[MO_NET_HEAD] = {
        (unsigned char)type,          0,
        (unsigned char)(data.n >> 8), (unsigned char)data.n,
        (unsigned char)(id >> 24),    (unsigned char)(id >> 16),
        (unsigned char)(id >> 8),     (unsigned char)id,
    };

    MO_BUG_ON(data.n < types[type].min || data.n > types[type].max);
    mo_buf_put(b, (const char *)head, sizeof(head));
    mo_buf_span(b, data);
    return mo_buf_putc(b, 0);
}

int mo_net_put_open(struct mo_buf *b, uint32_t id, const struct mo_ip *ip,
                    unsigned port)
{
    unsigned char p[OPEN_LEN];

    memcpy(p, ip->b, 16);
    p[16] = (unsigned char)(port >> 8);
    p[17] = (unsigned char)port;
    return mo_net_put(b, MO_NET_OPEN, id, mo_span((const char *)p, sizeof(p)));
}

int mo_net_put_credit(struct mo_buf *b, uint32_t id, uint32_t n)
{
    const unsigned char p[4] = {(unsigned char)(n >> 24),
                                (unsigned char)(n >> 16),
                                (unsigned char)(n >> 8), (unsigned char)n};

    return mo_net_put(b, MO_NET_CREDIT, id,
                      mo_span((const char *)p, sizeof(p)));
}

int mo_net_put_file(struct mo_buf *b, uint32_t id, bool last,
                    struct mo_span data)
{
    const unsigned char head[MO_NET_HEAD + 1] = {
        MO_NET_FILE,
        0,
        (unsigned char)((data.n + 1) >> 8),
        (unsigned char)(data.n + 1),
        0,
        0,
        0,
        (unsigned char)id,
        last};

    MO_BUG_ON(data.n >= MO_NET_DATA_MAX);
    mo_buf_put(b, (const char *)head, sizeof(head));
    mo_buf_span(b, data);
    return mo_buf_putc(b, 0);
}

int mo_net_put_hello(struct mo_buf *b, const unsigned char nonce[MO_NET_NONCE],
                     unsigned flags)
{
    unsigned char p[HELLO_LEN], row[MO_NET_ROW];

    memset(row, PAD, sizeof(row));
    for (size_t n = 0; n < MO_NET_PAD; n += sizeof(row))
        mo_buf_put(b, row, sizeof(row));
    memcpy(p, nonce, MO_NET_NONCE);
    p[MO_NET_NONCE] = (unsigned char)flags;
    return mo_net_put(b, MO_NET_HELLO, 0, mo_span((const char *)p, sizeof(p)));
}

uint32_t mo_net_next_id(uint32_t id)
{
    id++;
    return (id & PAD) == PAD ? id + 1 : id;
}
