#include "codec/text/visible.h"

#include "codec/text/utf8.h"

/* Characters that change the direction or have no width. */
static bool is_unsafe(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } ranges[] = {
        {0x80, 0x9f},       {0xad, 0xad},     {0x61c, 0x61c},
        {0x180e, 0x180e},   {0x200b, 0x200f}, {0x2028, 0x202e},
        {0x2060, 0x206f},   {0xfeff, 0xfeff}, {0xfff9, 0xfffb},
        {0xe0000, 0xe007f},
    };

    for (size_t i = 0; i < MO_COUNT(ranges); i++)
        if (c >= ranges[i].from && c <= ranges[i].to)
            return true;
    return false;
}

/* "<U+202E>"; by hand, because the toolbox's printf has no %X. */
static void put_code(struct mo_buf *b, uint32_t c)
{
    int shift = c > 0xffff ? 20 : 12;

    mo_buf_puts(b, "<U+");
    for (; shift >= 0; shift -= 4)
        if (shift < 16 || c >> shift)
            mo_buf_putc(b, "0123456789ABCDEF"[c >> shift & 15]);
    mo_buf_putc(b, '>');
}

static void put(struct mo_buf *b, struct mo_span s, bool lines)
{
    while (s.n > 0) {
        uint32_t c = 0;
        int got = mo_utf8_get(s, &c);
        size_t n = got > 0 ? (size_t)got : 0;
        bool layout = lines && (c == '\n' || c == '\t');

        if (n == 0 || (c < 0x20 && !layout) || c == 0x7f)
            mo_buf_printf(b, "<%02x>", (unsigned)(unsigned char)s.p[0]);
        else if (is_unsafe(c))
            put_code(b, c);
        else
            mo_buf_put(b, s.p, n);
        s = mo_span_skip(s, n ? n : 1);
    }
}

void mo_visible_text(struct mo_buf *b, struct mo_span s)
{
    put(b, s, true);
}

void mo_visible_name(struct mo_buf *b, struct mo_span s)
{
    put(b, s, false);
}
