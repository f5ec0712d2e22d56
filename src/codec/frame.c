#include "codec/frame.h"

#define KEEP_MAX ((size_t)64 * 1024) /* a bigger buffer is freed */

void mo_frame_init(struct mo_frame *f, size_t max)
{
    *f = (struct mo_frame){.max = max};
    mo_buf_init(&f->part, max);
}

void mo_frame_fini(struct mo_frame *f)
{
    mo_buf_fini(&f->part);
}

size_t mo_frame_waiting(const struct mo_frame *f)
{
    return f->lent || f->err ? 0 : f->part.len;
}

/* The last line returned is no longer borrowed. */
static void take_back(struct mo_frame *f)
{
    if (!f->lent)
        return;
    f->lent = false;
    mo_buf_shrink(&f->part, KEEP_MAX);
}

static int fail_frame(struct mo_frame *f, int code)
{
    mo_buf_fini(&f->part);
    f->lent = false;
    f->err = code;
    return code;
}

static struct mo_span without_cr(struct mo_span s)
{
    return s.n && s.p[s.n - 1] == '\r' ? mo_span_head(s, s.n - 1) : s;
}

int mo_frame_next(struct mo_frame *f, struct mo_span *in, struct mo_span *line)
{
    const char *lf = in->n ? memchr(in->p, '\n', in->n) : NULL;
    size_t n = lf ? (size_t)(lf - in->p) : in->n;
    struct mo_span piece = mo_span_head(*in, n);

    take_back(f);
    if (f->err)
        return f->err;
    if (n > f->max - f->part.len) {
        f->err = MO_ETOOBIG; /* part stays: mo_frame_skip() shows it */
        return f->err;
    }
    *in = mo_span_skip(*in, n + (lf != NULL));
    if (lf && f->part.len == 0) {
        *line = without_cr(piece);
        return 1;
    }
    if (piece.n && mo_buf_span(&f->part, piece) < 0)
        return fail_frame(f, mo_buf_err(&f->part));
    if (!lf)
        return 0;
    f->lent = true;
    *line = without_cr(mo_buf_view(&f->part));
    return 1;
}

int mo_frame_skip(struct mo_frame *f, struct mo_span *in, struct mo_span *piece)
{
    const char *lf = in->n ? memchr(in->p, '\n', in->n) : NULL;
    size_t n = lf ? (size_t)(lf - in->p) : in->n;

    MO_BUG_ON(!f->err);
    take_back(f);
    if (f->part.len) {
        f->lent = true;
        *piece = mo_buf_view(&f->part);
        return 0;
    }
    *piece = mo_span_head(*in, n);
    *in = mo_span_skip(*in, n + (lf != NULL));
    if (lf)
        f->err = 0;
    return lf != NULL;
}
