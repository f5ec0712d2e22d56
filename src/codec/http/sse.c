#include "codec/http/sse.h"

#include "base/mem.h"
#include "codec/text/vec.h"

#define KEEP_MAX ((size_t)16 * 1024) /* bigger buffers are freed */

static size_t line_length(struct mo_span s)
{
    size_t n = 0;

    for (; s.n - n >= MO_VEC_WIDTH; n += MO_VEC_WIDTH) {
        mo_vec v = mo_vec_load(s.p + n);
        uint64_t ends =
            mo_vec_mask(mo_vec_or(mo_vec_eq(v, '\n'), mo_vec_eq(v, '\r')));

        if (ends)
            return n + mo_vec_first(ends);
    }
    while (n < s.n && s.p[n] != '\n' && s.p[n] != '\r')
        n++;
    return n;
}

/* --- writing ------------------------------------------------------------- */

static bool one_line(struct mo_span s)
{
    return line_length(s) == s.n && mo_span_find(s, '\0') < 0;
}

static void put_field(struct mo_buf *b, const char *name, struct mo_span value)
{
    mo_buf_puts(b, name);
    mo_buf_puts(b, ": ");
    mo_buf_span(b, value);
    mo_buf_putc(b, '\n');
}

static void put_data(struct mo_buf *b, struct mo_span s)
{
    size_t n = line_length(s);

    while (n < s.n) {
        size_t end =
            s.p[n] == '\r' && n + 1 < s.n && s.p[n + 1] == '\n' ? 2 : 1;

        put_field(b, "data", mo_span_head(s, n));
        s = mo_span_skip(s, n + end);
        n = line_length(s);
    }
    put_field(b, "data", s);
}

int mo_sse_put(struct mo_buf *b, const struct mo_sse_event *ev)
{
    if (!one_line(ev->event) || !one_line(ev->id) ||
        ev->event.n > MO_SSE_NAME_MAX || ev->id.n > MO_SSE_NAME_MAX)
        return mo_buf_fail(b, MO_EINVAL);
    if (ev->event.p)
        put_field(b, "event", ev->event);
    if (ev->id.p)
        put_field(b, "id", ev->id);
    if (ev->retry_ms > 0)
        mo_buf_printf(b, "retry: %lld\n", (long long)ev->retry_ms);
    if (ev->data.p)
        put_data(b, ev->data);
    return mo_buf_putc(b, '\n');
}

int mo_sse_put_comment(struct mo_buf *b, struct mo_span text)
{
    if (!one_line(text))
        return mo_buf_fail(b, MO_EINVAL);
    mo_buf_puts(b, ": ");
    mo_buf_span(b, text);
    return mo_buf_puts(b, "\n\n");
}

/* --- reading ------------------------------------------------------------- */

void mo_sse_init(struct mo_sse *s, size_t max)
{
    *s = (struct mo_sse){.max = max, .retry_ms = -1};
    mo_buf_init(&s->line, max);
    mo_buf_init(&s->data, max + 1); /* including the LF after the last line */
    mo_buf_init(&s->event, MO_SSE_NAME_MAX);
    mo_buf_init(&s->id, MO_SSE_NAME_MAX);
    mo_buf_init(&s->last_id, MO_SSE_NAME_MAX);
}

void mo_sse_fini(struct mo_sse *s)
{
    mo_buf_fini(&s->line);
    mo_buf_fini(&s->data);
    mo_buf_fini(&s->event);
    mo_buf_fini(&s->id);
    mo_buf_fini(&s->last_id);
}

void mo_sse_restart(struct mo_sse *s)
{
    mo_buf_shrink(&s->line, KEEP_MAX);
    mo_buf_shrink(&s->data, KEEP_MAX);
    mo_buf_shrink(&s->event, KEEP_MAX);
    s->err = mo_buf_set(&s->id, mo_buf_view(&s->last_id));
    s->begun = s->skip_lf = s->fired = s->skipping = false;
}

/* --- an event that is too long ------------------------------------------- */

void mo_sse_skip(struct mo_sse *s,
                 bool (*on_skip)(void *ctx, struct mo_span data), void *ctx)
{
    s->on_skip = on_skip;
    s->skip_ctx = ctx;
}

static int show(struct mo_sse *s, struct mo_span data)
{
    return s->on_skip(s->skip_ctx, data) ? 0 : MO_ETOOBIG;
}

/* Until its empty line, report the event's data without keeping it. */
static int begin_skip(struct mo_sse *s)
{
    int rc;

    if (!s->on_skip)
        return MO_ETOOBIG;
    s->begun = s->skipping = true;
    s->field = MO_SSE_FIELD_OPEN;
    s->nhead = s->other = 0;
    rc = show(s, mo_buf_view(&s->data));
    mo_buf_shrink(&s->data, KEEP_MAX);
    return rc;
}

/* head holds the line's first bytes, or all of it. */
static int name_field(struct mo_sse *s, bool whole)
{
    struct mo_span head = mo_span(s->head, s->nhead);
    bool bare = whole && mo_span_is(head, "data");

    if (!bare && !mo_span_starts(head, MO_SPAN("data:"))) {
        s->field = MO_SSE_FIELD_OTHER;
        s->other += s->nhead;
        return 0;
    }
    s->field = MO_SSE_FIELD_DATA;
    head = mo_span_skip(head, 5);
    return head.n && head.p[0] != ' ' ? show(s, head) : 0;
}

/* Handle a piece of a line of a skipped event; whole: the line ends with it. */
static int skip_bytes(struct mo_sse *s, struct mo_span piece, bool whole)
{
    int rc = 0;

    if (s->field == MO_SSE_FIELD_OPEN) {
        size_t n = sizeof(s->head) - s->nhead;

        n = n < piece.n ? n : piece.n;
        if (n)
            memcpy(s->head + s->nhead, piece.p, n);
        s->nhead += n;
        piece = mo_span_skip(piece, n);
        if (whole || s->nhead == sizeof(s->head))
            rc = name_field(s, whole);
    }
    if (s->field == MO_SSE_FIELD_OTHER)
        s->other += piece.n;
    if (s->other > s->max)
        rc = MO_ETOOBIG;
    if (rc == 0 && s->field == MO_SSE_FIELD_DATA && piece.n)
        rc = show(s, piece);
    if (rc == 0 && s->field == MO_SSE_FIELD_DATA && whole)
        rc = show(s, MO_SPAN("\n"));
    if (!whole)
        return rc;
    s->field = MO_SSE_FIELD_OPEN;
    s->nhead = 0;
    return rc;
}

/* --- fields -------------------------------------------------------------- */

static int on_data(struct mo_sse *s, struct mo_span v)
{
    int rc;

    if (v.n + 1 > s->data.max - s->data.len) {
        rc = begin_skip(s);
        if (rc == 0)
            rc = show(s, v);
        return rc < 0 ? rc : show(s, MO_SPAN("\n"));
    }
    mo_buf_span(&s->data, v);
    return mo_buf_putc(&s->data, '\n');
}

static int on_event(struct mo_sse *s, struct mo_span v)
{
    return mo_buf_set(&s->event, v);
}

static int on_id(struct mo_sse *s, struct mo_span v)
{
    return mo_span_find(v, '\0') < 0 ? mo_buf_set(&s->id, v) : 0;
}

static int on_retry(struct mo_sse *s, struct mo_span v)
{
    uint64_t ms;

    if (mo_span_u64(v, &ms) == 0 && ms <= INT64_MAX)
        s->retry_ms = (int64_t)ms;
    return 0;
}

static const struct {
    struct mo_span name;
    int (*on)(struct mo_sse *s, struct mo_span value);
} fields[] = {
    {{"data", 4}, on_data},
    {{"event", 5}, on_event},
    {{"id", 2}, on_id},
    {{"retry", 5}, on_retry},
};

/* A comment is a field with an empty name, which is unknown. */
static int on_field(struct mo_sse *s, struct mo_span line)
{
    struct mo_span name = mo_span_cut(&line, ':');

    if (line.n && line.p[0] == ' ')
        line = mo_span_skip(line, 1);
    for (size_t i = 0; i < MO_COUNT(fields); i++) {
        if (mo_span_eq(name, fields[i].name))
            return fields[i].on(s, line);
    }
    return 0;
}

/* Handle the empty line: MO_SSE_EVENT, MO_SSE_SKIPPED, or 0 for neither. */
static int on_blank(struct mo_sse *s)
{
    if (!mo_span_eq(mo_buf_view(&s->id), mo_buf_view(&s->last_id)) &&
        mo_buf_set(&s->last_id, mo_buf_view(&s->id)) < 0)
        return mo_buf_err(&s->last_id);
    s->fired = true;
    if (s->skipping) {
        s->skipping = false;
        return MO_SSE_SKIPPED;
    }
    return s->data.len > 0 ? MO_SSE_EVENT : 0;
}

static int on_line(struct mo_sse *s, struct mo_span line)
{
    if (!s->begun && mo_span_starts(line, MO_SPAN("\xef\xbb\xbf")))
        line = mo_span_skip(line, 3);
    s->begun = true;
    return line.n ? on_field(s, line) : on_blank(s);
}

/* The line in `line` is too long; *in, not consumed, continues it. */
static int overflow(struct mo_sse *s)
{
    int rc = begin_skip(s);

    if (rc == 0)
        rc = skip_bytes(s, mo_buf_view(&s->line), false);
    mo_buf_shrink(&s->line, KEEP_MAX);
    return rc;
}

static bool is_blank(const struct mo_sse *s, size_t n, bool whole)
{
    return whole && n == 0 && s->nhead == 0 && s->field == MO_SSE_FIELD_OPEN;
}

/* Read one line or the beginning of one. > 0: an event ends, 0: continue. */
static int read_line(struct mo_sse *s, struct mo_span *in)
{
    size_t n = line_length(*in);
    struct mo_span line = mo_span_head(*in, n);
    bool whole = n < in->n;
    int rc;

    if (!s->skipping && n > s->max - s->line.len)
        return overflow(s);
    s->skip_lf = whole && in->p[n] == '\r';
    *in = mo_span_skip(*in, n + whole);
    if (s->skipping)
        return is_blank(s, n, whole) ? on_blank(s) : skip_bytes(s, line, whole);
    if (!whole || s->line.len) {
        if (mo_buf_span(&s->line, line) < 0)
            return mo_buf_err(&s->line);
        line = mo_buf_view(&s->line);
    }
    if (!whole)
        return 0;
    rc = on_line(s, line);
    mo_buf_shrink(&s->line, KEEP_MAX);
    return rc;
}

static void lend(const struct mo_sse *s, struct mo_sse_event *ev)
{
    *ev = (struct mo_sse_event){
        .event = s->event.len ? mo_buf_view(&s->event) : MO_SPAN("message"),
        .id = mo_buf_view(&s->last_id),
        .data = mo_span_head(mo_buf_view(&s->data),
                             s->data.len ? s->data.len - 1 : 0),
    };
}

static void describe(const struct mo_sse *s, int rc, struct mo_err *e)
{
    if (rc != MO_ETOOBIG)
        (void)mo_fail(e, rc, "event stream: %s", mo_err_name(rc));
    else if (mo_buf_err(&s->event) || mo_buf_err(&s->id))
        (void)mo_fail(e, rc, "event stream: event name or id over %zu bytes",
                      MO_SSE_NAME_MAX);
    else
        (void)mo_fail(e, rc, "event stream: event too long: over %zu bytes",
                      s->max);
}

enum mo_sse_result mo_sse_next(struct mo_sse *s, struct mo_span *in,
                               struct mo_sse_event *ev, struct mo_err *e)
{
    int rc = s->err;

    while (rc == 0 && in->n) {
        if (s->fired) {
            mo_buf_shrink(&s->data, KEEP_MAX);
            mo_buf_shrink(&s->event, KEEP_MAX);
            s->fired = false;
        }
        if (s->skip_lf && in->p[0] == '\n')
            *in = mo_span_skip(*in, 1);
        s->skip_lf = false;
        if (in->n)
            rc = read_line(s, in);
    }
    if (rc > 0) {
        lend(s, ev);
        return (enum mo_sse_result)rc;
    }
    s->err = rc;
    if (rc == 0)
        return MO_SSE_MORE;
    describe(s, rc, e);
    return MO_SSE_ERROR;
}
