/* resp.c - parse replies in two passes: find the end of a reply as bytes
 * arrive, then build its values.
 *
 * The first pass needs no stack: it counts the missing values. An array of n
 * removes one and adds n. It never reads a byte twice, so a reply that arrives
 * in small pieces costs no more than one that arrives at once. */
#include "codec/resp.h"

#include <limits.h>

void mo_resp_init(struct mo_resp_in *in, size_t max)
{
    *in = (struct mo_resp_in){0};
    /* the input may hold further replies */
    mo_buf_init(&in->buf, max + (size_t)64 * 1024);
}

void mo_resp_fini(struct mo_resp_in *in)
{
    mo_buf_fini(&in->buf);
}

int mo_resp_feed(struct mo_resp_in *in, const char *p, size_t n)
{
    if (in->err)
        return in->err;
    if (in->start) {
        mo_buf_drop(&in->buf, in->start);
        in->start = 0;
    }
    in->err = mo_buf_put(&in->buf, p, n);
    return in->err;
}

static int broken(struct mo_resp_in *in, struct mo_err *e, const char *what)
{
    in->err = MO_EPROTO;
    return mo_fail(e, MO_EPROTO, "redis: %s", what);
}

/* --- first pass ---------------------------------------------------------- */

/* The line at p (without its end); p == NULL: incomplete. */
static struct mo_span line_at(struct mo_span s)
{
    const char *cr = s.n ? memchr(s.p, '\r', s.n) : NULL;

    if (!cr || (size_t)(cr - s.p) + 1 >= s.n)
        return (struct mo_span){0};
    return mo_span(s.p, (size_t)(cr - s.p));
}

/* Read a length: -1 (nil), or up to max. */
static bool length_of(struct mo_span digits, int64_t max, int64_t *out)
{
    return mo_span_i64(digits, out) == 0 && *out >= -1 && *out <= max;
}

/* Read one value or the head of an array. Returns its bytes; 0: incomplete. */
static int64_t scan_one(struct mo_resp_in *in, struct mo_span s,
                        struct mo_err *e)
{
    struct mo_span line = line_at(s);
    char type = line.n ? line.p[0] : '\0';
    int64_t n = 0;

    if (!line.p)
        return s.n > MO_RESP_LINE_MAX ? broken(in, e, "an endless line") : 0;
    if (line.n > MO_RESP_LINE_MAX || s.p[line.n + 1] != '\n')
        return broken(in, e, "a line without end");
    if (type == '+' || type == '-')
        return (int64_t)line.n + 2;
    if ((type != ':' && type != '$' && type != '*') ||
        mo_span_i64(mo_span_skip(line, 1), &n) < 0)
        return broken(in, e, "not RESP");
    if (type == ':')
        return (int64_t)line.n + 2;
    if (!length_of(mo_span_skip(line, 1), INT_MAX, &n))
        return broken(in, e, "a length beyond all bounds");
    if (type == '*') {
        if (n > 0 && (size_t)n > MO_RESP_VALUES_MAX - in->values)
            return broken(in, e, "too many values");
        in->need += n > 0 ? (size_t)n : 0;
        in->values += n > 0 ? (size_t)n : 0;
        return (int64_t)line.n + 2;
    }
    if (n < 0)
        return (int64_t)line.n + 2;
    if ((size_t)n > in->buf.max)
        in->err = mo_fail(e, MO_ETOOBIG, "redis: a reply of %lld bytes",
                          (long long)n);
    if (in->err)
        return in->err;
    if (s.n < line.n + 2 + (size_t)n + 2)
        return 0;
    if (memcmp(s.p + line.n + 2 + n, "\r\n", 2) != 0)
        return broken(in, e, "a text of the wrong length");
    return (int64_t)line.n + 2 + n + 2;
}

/* Returns 1 when the whole reply has arrived. */
static int scan(struct mo_resp_in *in, struct mo_err *e)
{
    if (!in->need && in->buf.len > in->start) {
        in->need = 1;
        in->seen = 0;
        in->values = 1;
    }
    while (in->need) {
        size_t at = in->start + in->seen;
        int64_t n = scan_one(in, mo_span(in->buf.p + at, in->buf.len - at), e);

        if (n <= 0)
            return (int)n;
        in->seen += (size_t)n;
        in->need--;
    }
    return in->seen > 0;
}

/* --- second pass: of bytes that are known to be sound -------------------- */

struct build {
    struct mo_span rest;
    struct mo_arena *a;
    int err;
};

static void build_value(struct build *b, struct mo_resp *v, int depth);

static void build_array(struct build *b, struct mo_resp *v, int64_t n,
                        int depth)
{
    struct mo_resp *items;

    v->kind = n < 0 ? MO_RESP_NIL : MO_RESP_ARRAY;
    if (n <= 0)
        return;
    if (depth == MO_RESP_DEPTH_MAX) {
        b->err = MO_EPROTO;
        return;
    }
    items = mo_arena_zalloc(b->a, (size_t)n * sizeof(*items));
    if (!items) {
        b->err = MO_ENOMEM;
        return;
    }
    v->v = items;
    v->n = (size_t)n;
    for (int64_t i = 0; i < n && !b->err; i++)
        build_value(b, &items[i], depth + 1);
}

static void build_bulk(struct build *b, struct mo_resp *v, int64_t n)
{
    v->kind = n < 0 ? MO_RESP_NIL : MO_RESP_BULK;
    if (n < 0)
        return;
    v->text = mo_span_head(b->rest, (size_t)n);
    b->rest = mo_span_skip(b->rest, (size_t)n + 2);
}

static void build_value(struct build *b, struct mo_resp *v, int depth)
{
    struct mo_span line = line_at(b->rest);
    struct mo_span body = mo_span_skip(line, 1);
    int64_t n = 0;

    MO_BUG_ON(!line.p); /* the first pass has checked it */
    b->rest = mo_span_skip(b->rest, line.n + 2);
    *v = (struct mo_resp){.kind = MO_RESP_STATUS, .text = body};
    if (line.p[0] == '+')
        return;
    v->kind = MO_RESP_ERROR;
    if (line.p[0] == '-')
        return;
    *v = (struct mo_resp){.kind = MO_RESP_NUMBER};
    (void)mo_span_i64(body, &n);
    if (line.p[0] == ':')
        v->number = n;
    else if (line.p[0] == '*')
        build_array(b, v, n, depth);
    else
        build_bulk(b, v, n);
}

int mo_resp_next(struct mo_resp_in *in, struct mo_arena *a,
                 const struct mo_resp **out, struct mo_err *e)
{
    struct build b = {.a = a};
    struct mo_resp *v;
    int rc;

    if (in->err)
        return mo_fail(e, in->err, "redis: the stream is lost");
    rc = scan(in, e);
    if (rc <= 0)
        return rc;
    b.rest = mo_span(in->buf.p + in->start, in->seen);
    v = mo_arena_zalloc(a, sizeof(*v));
    if (!v)
        b.err = MO_ENOMEM;
    else
        build_value(&b, v, 0);
    in->start += in->seen;
    in->seen = 0;
    in->err = b.err;
    if (b.err == MO_EPROTO)
        return mo_fail(e, b.err, "redis: a reply nested too deep");
    if (b.err)
        return mo_fail(e, b.err, "redis: a reply");
    *out = v;
    return 1;
}

/* --- requests ------------------------------------------------------------ */

int mo_resp_put_head(struct mo_buf *b, size_t n)
{
    mo_buf_putc(b, '*');
    mo_buf_u64(b, n);
    return mo_buf_put(b, "\r\n", 2);
}

int mo_resp_put(struct mo_buf *b, struct mo_span arg)
{
    mo_buf_putc(b, '$');
    mo_buf_u64(b, arg.n);
    mo_buf_put(b, "\r\n", 2);
    mo_buf_span(b, arg);
    return mo_buf_put(b, "\r\n", 2);
}

int mo_resp_put_u64(struct mo_buf *b, uint64_t v)
{
    char digits[MO_U64_DIGITS];

    return mo_resp_put(b, mo_u64_text(v, digits));
}

struct mo_span mo_resp_word(const struct mo_resp *r)
{
    struct mo_span rest = r->text;

    if (r->kind != MO_RESP_ERROR)
        return MO_SPAN("");
    return mo_span_cut(&rest, ' ');
}
