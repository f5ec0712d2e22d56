/* picture.c - see picture.h. */
#include "codec/picture.h"

#include "base/err.h"

static uint32_t number(struct mo_span s, size_t at, size_t n, bool big)
{
    uint32_t v = 0;

    if (at + n > s.n)
        return 0;
    for (size_t i = 0; i < n; i++)
        v = v << 8 | (unsigned char)s.p[at + (big ? i : n - 1 - i)];
    return v;
}

static void read_png(struct mo_span s, struct mo_picture *m)
{
    m->width = number(s, 16, 4, true);
    m->height = number(s, 20, 4, true);
}

static void read_gif(struct mo_span s, struct mo_picture *m)
{
    m->width = number(s, 6, 2, false);
    m->height = number(s, 8, 2, false);
}

/* The lossy, the lossless and the extended form. */
static void read_webp(struct mo_span s, struct mo_picture *m)
{
    struct mo_span kind = mo_span_head(mo_span_skip(s, 12), 4);
    uint32_t bits = number(s, 21, 4, false);

    if (mo_span_is(kind, "VP8 ")) {
        m->width = number(s, 26, 2, false) & 0x3fff;
        m->height = number(s, 28, 2, false) & 0x3fff;
    } else if (mo_span_is(kind, "VP8L") && s.n >= 25) {
        m->width = (bits & 0x3fff) + 1;
        m->height = (bits >> 14 & 0x3fff) + 1;
    } else if (mo_span_is(kind, "VP8X") && s.n >= 30) {
        m->width = number(s, 24, 3, false) + 1;
        m->height = number(s, 27, 3, false) + 1;
    }
}

/* True for a segment that begins a frame: it has the size. */
static bool is_frame(unsigned mark)
{
    return mark >= 0xc0 && mark <= 0xcf && mark != 0xc4 && mark != 0xc8 &&
           mark != 0xcc;
}

static void read_jpeg(struct mo_span s, struct mo_picture *m)
{
    size_t at = 2;

    while (at + 4 <= s.n && (unsigned char)s.p[at] == 0xff) {
        unsigned mark = (unsigned char)s.p[at + 1];
        uint32_t length = number(s, at + 2, 2, true);

        if (mark == 0xff) { /* fill */
            at++;
            continue;
        }
        if (is_frame(mark)) {
            m->height = number(s, at + 5, 2, true);
            m->width = number(s, at + 7, 2, true);
            return;
        }
        if (mark == 0xda || length < 2) /* the image itself: too late */
            return;
        at += 2 + length;
    }
}

int mo_picture_read(struct mo_span s, struct mo_picture *out)
{
    *out = (struct mo_picture){.type = NULL};
    if (mo_span_starts(s, MO_SPAN("\x89PNG\r\n\x1a\n"))) {
        out->type = "image/png";
        read_png(s, out);
    } else if (mo_span_starts(s, MO_SPAN("\xff\xd8\xff"))) {
        out->type = "image/jpeg";
        read_jpeg(s, out);
    } else if (mo_span_starts(s, MO_SPAN("GIF87a")) ||
               mo_span_starts(s, MO_SPAN("GIF89a"))) {
        out->type = "image/gif";
        read_gif(s, out);
    } else if (mo_span_starts(s, MO_SPAN("RIFF")) && s.n >= MO_PICTURE_MAGIC &&
               mo_span_is(mo_span_head(mo_span_skip(s, 8), 4), "WEBP")) {
        out->type = "image/webp";
        read_webp(s, out);
    }
    return out->type ? 0 : MO_EINVAL;
}
