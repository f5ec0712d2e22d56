/* kept_files.c - see kept_files.h. */
#include "codec/kept_files.h"

#define MAGIC MO_SPAN("MOFILES1")

/* Fields of a record, in this order. */
enum { NAME = 1, TO = 2, MODE = 4, TIME = 8, AT = 16, SIZE = 32 };

static const unsigned fields[] = {
    [MO_KEPT_FOLDER] = NAME | MODE | TIME,      [MO_KEPT_LEAVE] = 0,
    [MO_KEPT_FILE] = NAME | MODE | TIME | SIZE, [MO_KEPT_DATA] = AT | SIZE,
    [MO_KEPT_SYMLINK] = NAME | TO | TIME,       [MO_KEPT_LINK] = NAME | TO,
    [MO_KEPT_PIPE] = NAME | MODE | TIME,        [MO_KEPT_END] = 0,
};

static void put_le(struct mo_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        (void)mo_buf_putc(b, (char)(v >> (8 * i)));
}

static void put_text(struct mo_buf *b, struct mo_span s)
{
    put_le(b, s.n, 2);
    (void)mo_buf_span(b, s);
}

void mo_kept_put_head(struct mo_buf *b, const struct mo_kept_head *h)
{
    (void)mo_buf_span(b, MAGIC);
    put_text(b, mo_span_head(h->store, MO_KEPT_TEXT_MAX));
    put_text(b, mo_span_head(h->session, MO_KEPT_TEXT_MAX));
    put_text(b, mo_span_head(h->instance, MO_KEPT_TEXT_MAX));
    put_le(b, h->bytes, 8);
    put_le(b, h->inodes, 8);
}

void mo_kept_put(struct mo_buf *b, const struct mo_kept *k)
{
    unsigned has = fields[k->kind];

    (void)mo_buf_putc(b, (char)k->kind);
    if (has & NAME)
        put_text(b, k->name);
    if (has & TO)
        put_text(b, k->to);
    if (has & MODE)
        put_le(b, k->mode, 8);
    if (has & TIME)
        put_le(b, k->time, 8);
    if (has & AT)
        put_le(b, k->at, 8);
    if (has & SIZE)
        put_le(b, k->size, 8);
}

/* --- reading: 1, 0 if bytes are missing, or MO_EPROTO --------------------- */

static int take_le(struct mo_span *in, unsigned bytes, uint64_t *out)
{
    *out = 0;
    if (in->n < bytes)
        return 0;
    for (unsigned i = 0; i < bytes; i++)
        *out |= (uint64_t)(unsigned char)in->p[i] << (8 * i);
    *in = mo_span_skip(*in, bytes);
    return 1;
}

static int take_text(struct mo_span *in, size_t max, struct mo_span *out)
{
    uint64_t n;

    if (take_le(in, 2, &n) == 0)
        return 0;
    if (n > max)
        return MO_EPROTO;
    if (in->n < n)
        return 0;
    *out = mo_span_head(*in, n);
    *in = mo_span_skip(*in, n);
    return 1;
}

int mo_kept_take_head(struct mo_span *in, struct mo_kept_head *h,
                      struct mo_err *e)
{
    struct mo_span *texts[] = {&h->store, &h->session, &h->instance};
    struct mo_span rest = *in;
    int rc = 1;

    if (rest.n < MAGIC.n)
        return 0;
    if (!mo_span_strip(&rest, MAGIC))
        return mo_fail(e, MO_EPROTO, "not a file of kept files");
    for (size_t i = 0; rc == 1 && i < MO_COUNT(texts); i++)
        rc = take_text(&rest, MO_KEPT_TEXT_MAX, texts[i]);
    if (rc == 1)
        rc = take_le(&rest, 8, &h->bytes);
    if (rc == 1)
        rc = take_le(&rest, 8, &h->inodes);
    if (rc < 0)
        return mo_fail(e, rc, "kept files: the head is damaged");
    if (rc == 1)
        *in = rest;
    return rc;
}

static bool is_name(struct mo_span s)
{
    return s.n > 0 && !mo_span_is(s, ".") && !mo_span_is(s, "..") &&
           mo_span_find(s, '/') < 0 && mo_span_find(s, '\0') < 0;
}

static bool is_record(const struct mo_kept *k, unsigned has)
{
    if ((has & NAME) && !is_name(k->name))
        return false;
    if ((has & TO) && (k->to.n == 0 || mo_span_find(k->to, '\0') >= 0))
        return false;
    if (k->mode > 0777 || k->at > INT64_MAX || k->size > INT64_MAX)
        return false;
    return k->kind != MO_KEPT_DATA ||
           (k->size > 0 && k->size <= MO_KEPT_DATA_MAX &&
            k->at <= INT64_MAX - k->size);
}

static int take_fields(struct mo_span *in, struct mo_kept *k, unsigned has)
{
    uint64_t *numbers[] = {&k->mode, &k->time, &k->at, &k->size};
    int rc = 1;

    if (has & NAME)
        rc = take_text(in, MO_KEPT_NAME_MAX, &k->name);
    if (rc == 1 && (has & TO))
        rc = take_text(in, MO_KEPT_PATH_MAX, &k->to);
    for (unsigned i = 0; rc == 1 && i < MO_COUNT(numbers); i++)
        if (has & ((unsigned)MODE << i))
            rc = take_le(in, 8, numbers[i]);
    return rc;
}

int mo_kept_take(struct mo_span *in, struct mo_kept *k, struct mo_err *e)
{
    struct mo_span rest = *in;
    uint64_t kind;
    int rc;

    *k = (struct mo_kept){.kind = MO_KEPT_END};
    if (take_le(&rest, 1, &kind) == 0)
        return 0;
    if (kind < MO_KEPT_FOLDER || kind > MO_KEPT_END)
        return mo_fail(e, MO_EPROTO, "kept files: damaged");
    k->kind = (enum mo_kept_kind)kind;
    rc = take_fields(&rest, k, fields[kind]);
    if (rc == 0)
        return 0;
    if (rc < 0 || !is_record(k, fields[kind]))
        return mo_fail(e, MO_EPROTO, "kept files: damaged");
    *in = rest;
    return 1;
}
