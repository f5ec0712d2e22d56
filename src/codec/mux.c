#include "codec/mux.h"

void mo_mux_init(struct mo_mux *m)
{
    *m = (struct mo_mux){0};
}

bool mo_mux_at_edge(const struct mo_mux *m)
{
    return !m->broken && m->left == 0 && m->head_len == 0;
}

static int refuse(struct mo_mux *m, struct mo_err *e, const char *what)
{
    m->broken = true;
    return mo_fail(e, MO_EPROTO, "attach stream: %s", what);
}

static int start_frame(struct mo_mux *m, struct mo_err *e)
{
    const unsigned char *h = m->head;
    uint32_t len = (uint32_t)h[4] << 24 | (uint32_t)h[5] << 16 |
                   (uint32_t)h[6] << 8 | h[7];

    if (h[0] != MO_MUX_STDOUT && h[0] != MO_MUX_STDERR)
        return refuse(m, e, "unknown stream");
    if (h[1] || h[2] || h[3])
        return refuse(m, e, "filler is not zero");
    if (len > MO_MUX_FRAME_MAX)
        return refuse(m, e, "frame too long");
    m->left = len;
    m->head_len = 0;
    return 0;
}

/* Collect header bytes; the frame starts when all have arrived. */
static int take_head(struct mo_mux *m, struct mo_span *in, struct mo_err *e)
{
    size_t n = (size_t)MO_MUX_HEAD_LEN - m->head_len;

    if (n > in->n)
        n = in->n;
    memcpy(m->head + m->head_len, in->p, n);
    *in = mo_span_skip(*in, n);
    m->head_len = (uint8_t)(m->head_len + n);
    return m->head_len == MO_MUX_HEAD_LEN ? start_frame(m, e) : 0;
}

int mo_mux_next(struct mo_mux *m, struct mo_span *in,
                enum mo_mux_stream *stream, struct mo_span *piece,
                struct mo_err *e)
{
    int rc;

    if (m->broken)
        return refuse(m, e, "broken before");
    while (in->n && !m->left) { /* frames may be empty */
        rc = take_head(m, in, e);
        if (rc < 0)
            return rc;
    }
    if (!in->n)
        return 0;
    *stream = (enum mo_mux_stream)m->head[0];
    *piece = mo_span_take(in, m->left);
    m->left -= (uint32_t)piece->n;
    return 1;
}
