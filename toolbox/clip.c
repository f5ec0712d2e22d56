#include "toolbox/clip.h"

#include "base/mem.h"
#include "codec/text/utf8.h"

void tb_clip_init(struct tb_clip *c, size_t room)
{
    *c = (struct tb_clip){.half = room / 2};
    mo_buf_init(&c->head, c->half);
    mo_buf_init(&c->tail, c->half);
}

void tb_clip_fini(struct tb_clip *c)
{
    mo_buf_fini(&c->head);
    mo_buf_fini(&c->tail);
}

/* Fill b up to its size; *s keeps the rest. */
static int fill_half(struct mo_buf *b, size_t room, struct mo_span *s)
{
    struct mo_span part = mo_span_head(*s, room - b->len);

    if (part.n == 0)
        return 0;
    *s = mo_span_skip(*s, part.n);
    return mo_buf_span(b, part);
}

/* Overwrite the oldest bytes of a full ring. */
static void overwrite_oldest(struct tb_clip *c, struct mo_span s)
{
    if (s.n > c->half)
        s = mo_span_skip(s, s.n - c->half);
    while (s.n) {
        struct mo_span part = mo_span_head(s, c->half - c->at);

        memcpy(c->tail.p + c->at, part.p, part.n);
        c->at = (c->at + part.n) % c->half;
        s = mo_span_skip(s, part.n);
    }
}

int tb_clip_put(struct tb_clip *c, struct mo_span s)
{
    int rc;

    c->total += s.n;
    rc = fill_half(&c->head, c->half, &s);
    if (rc == 0)
        rc = fill_half(&c->tail, c->half, &s);
    if (rc == 0 && s.n)
        overwrite_oldest(c, s);
    return rc;
}

uint64_t tb_clip_cut(const struct tb_clip *c)
{
    return c->total - mo_buf_view(&c->head).n - mo_buf_view(&c->tail).n;
}

/* Without an incomplete character at the end. */
static struct mo_span whole_end(struct mo_span s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        unsigned char c = (unsigned char)s.p[s.n - back];

        if (c < 0x80)
            break;
        if (c >= 0xC0)
            return mo_utf8_len(s.p + s.n - back, s.p + s.n)
                       ? s
                       : mo_span_head(s, s.n - back);
    }
    return s;
}

/* Without an incomplete character at the start. */
static struct mo_span whole_start(struct mo_span s)
{
    size_t i = 0;

    while (i < 3 && i < s.n && mo_utf8_is_tail(s.p[i]))
        i++;
    return mo_span_skip(s, i);
}

int tb_clip_text(const struct tb_clip *c, struct mo_buf *out)
{
    struct mo_span head = mo_buf_view(&c->head), tail = mo_buf_view(&c->tail);
    struct mo_span old = mo_span_skip(tail, c->at);
    struct mo_span new = mo_span_head(tail, c->at);
    uint64_t cut = tb_clip_cut(c);

    if (cut) {
        size_t kept = head.n + old.n;

        head = whole_end(head);
        old = whole_start(old);
        cut += kept - head.n - old.n;
    }
    mo_buf_span(out, head);
    if (cut)
        mo_buf_printf(out, "\n[... %llu bytes cut here ...]\n",
                      (unsigned long long)cut);
    mo_buf_span(out, old);
    return mo_buf_span(out, new);
}
