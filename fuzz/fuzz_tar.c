/* An archive in two pieces is the archive in one; nothing is read past its
 * end; an entry's data is as long as it says. */
#include <stdlib.h>

#include "codec/tar.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
    uint64_t entries, bytes, sum;
    enum mo_tar_event last;
};

static void add(struct seen *s, struct mo_span text)
{
    for (size_t i = 0; i < text.n; i++)
        s->sum = s->sum * 31 + (unsigned char)text.p[i];
}

static void feed(struct mo_tar *t, struct mo_span in, struct seen *s)
{
    struct mo_span piece;
    struct mo_err e;

    do {
        s->last = mo_tar_next(t, &in, &piece, &e);
        if (s->last == MO_TAR_ENTRY) {
            s->entries++;
            add(s, t->entry.path);
            add(s, t->entry.link);
        } else if (s->last == MO_TAR_DATA) {
            s->bytes += piece.n;
            add(s, piece);
        }
    } while (s->last == MO_TAR_ENTRY || s->last == MO_TAR_DATA);
}

static struct seen run(struct mo_span in, size_t cut)
{
    struct seen s = {.last = MO_TAR_MORE};
    struct mo_tar t;

    mo_tar_init(&t);
    feed(&t, mo_span_head(in, cut), &s);
    if (s.last == MO_TAR_MORE)
        feed(&t, mo_span_skip(in, cut), &s);
    mo_tar_fini(&t);
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct mo_span in = mo_span((const char *)data, size);
    struct seen whole = run(in, size);
    struct seen halves = run(in, size ? data[0] * size / 256 : 0);

    if (whole.entries != halves.entries || whole.bytes != halves.bytes ||
        whole.sum != halves.sum || whole.last != halves.last ||
        whole.bytes > size)
        abort();
    return 0;
}
