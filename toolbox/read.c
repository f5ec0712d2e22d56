/* read.c - read_file: a file or a part of it, by lines or by bytes.
 *
 * At most TB_BYTES_MAX bytes are returned at a time; the answer says where to
 * continue. Text is never cut inside a character. A file that is not text is
 * not shown: the answer says so and suggests base64. Lines are counted in the
 * first SCAN_MAX bytes of a file. */
#include <errno.h>
#include <unistd.h>

#include "codec/text/base64.h"
#include "codec/text/utf8.h"
#include "toolbox/box.h"

#define SCAN_MAX ((off_t)64 * 1024 * 1024)
#define NO_LINE  ((int64_t)1 << 53) /* exact in every JSON parser */

struct args {
    struct mo_span path;
    int64_t first, last, offset, limit;
    unsigned encoding;
};

static const struct tb_field in[] = {
    {"path", "File to read, relative to the workspace.", TB_TEXT, true,
     offsetof(struct args, path)},
    {"start_line", "First line wanted, counted from 1.", TB_INT, false,
     offsetof(struct args, first), 1, NO_LINE - 1},
    {"end_line", "Last line wanted.", TB_INT, false,
     offsetof(struct args, last), 1, NO_LINE - 1},
    {"offset", "First byte wanted, counted from 0.", TB_INT, false,
     offsetof(struct args, offset), 0, NO_LINE - 1},
    {"limit", "Most bytes wanted.", TB_INT, false, offsetof(struct args, limit),
     1, TB_BYTES_MAX},
    {"encoding", "base64 for files that are no text. Default utf-8.", TB_CHOICE,
     false, offsetof(struct args, encoding), 0, 0, tb_encodings},
    {0},
};

static const struct tb_field out[] = {
    {"path", NULL, TB_TEXT, true, 0},
    {"content", NULL, TB_TEXT, true, 0},
    {"encoding", NULL, TB_CHOICE, true, 0, 0, 0, tb_encodings},
    {"size", "Bytes in the whole file.", TB_INT, true, 0},
    {"offset", "Where in the file the content begins.", TB_INT, true, 0},
    {"bytes", "Bytes of the file that the content stands for.", TB_INT, true,
     0},
    {"start_line", "Number of the content's first line.", TB_INT, false, 0},
    {"truncated", "There is more of what was asked for.", TB_BOOL, true, 0},
    {"next_offset", "Where to go on reading.", TB_INT, false, 0},
    {0},
};

/* The part of the file that is wanted, and the bytes read of it. */
struct part {
    off_t size, from;
    size_t want; /* bytes wanted, before the limit */
    bool more;   /* the limit cut something off */
    struct mo_buf bytes;
};

/* --- lines --------------------------------------------------------------- */

/* Offset of the first byte of the given line, or of the end of the file (or of
 * the scanned part) if there are fewer. *line is increased from its value at
 * `from`. */
static int seek_line(int fd, off_t from, int64_t *line, int64_t wanted,
                     off_t *at, struct mo_err *e)
{
    char buf[16384];

    *at = from;
    while (*line < wanted && *at < SCAN_MAX) {
        ssize_t n = pread(fd, buf, sizeof(buf), *at);
        struct mo_span s = mo_span(buf, n > 0 ? (size_t)n : 0);

        if (n < 0)
            return mo_fail_sys(e, "read");
        if (n == 0)
            return 0;
        while (*line < wanted && s.p && s.n) {
            size_t before = s.n;
            ptrdiff_t lf = mo_span_find(s, '\n');

            s = mo_span_skip(s, lf < 0 ? s.n : (size_t)lf + 1);
            *at += (off_t)(before - s.n);
            *line += lf >= 0;
        }
    }
    return 0;
}

static int find_lines(int fd, const struct args *a, struct part *p,
                      struct mo_err *e)
{
    int64_t line = 1;
    off_t end;

    if (seek_line(fd, 0, &line, a->first, &p->from, e) < 0)
        return e->code;
    if (line < a->first && p->from >= SCAN_MAX)
        return mo_fail(e, MO_ETOOBIG,
                       "line %lld lies beyond the first %lld bytes, in which "
                       "lines are counted: use offset",
                       (long long)a->first, (long long)SCAN_MAX);
    if (a->first > 1 && p->from >= p->size)
        return mo_fail(e, MO_EINVAL, "the file has no line %lld, only %lld",
                       (long long)a->first, (long long)line);
    if (a->last == NO_LINE) {
        p->want = (size_t)(p->size - p->from);
        return 0;
    }
    if (seek_line(fd, p->from, &line, a->last + 1, &end, e) < 0)
        return e->code;
    p->want = (size_t)(end - p->from);
    return 0;
}

/* --- bytes --------------------------------------------------------------- */

static int choose_part(int fd, const struct args *a, struct part *p,
                       struct mo_err *e)
{
    bool lines = a->first > 0 || a->last != NO_LINE;
    struct args from_one = *a;

    if (lines && (a->offset >= 0 || a->last < a->first))
        return mo_fail(e, MO_EINVAL,
                       a->offset >= 0
                           ? "give lines or an offset, not both"
                           : "end_line must not be before start_line");
    if (lines) {
        from_one.first = a->first > 0 ? a->first : 1;
        return find_lines(fd, &from_one, p, e);
    }
    p->from = a->offset > 0 ? (off_t)a->offset : 0;
    if (p->from > p->size)
        return mo_fail(e, MO_EINVAL, "the file has only %lld bytes",
                       (long long)p->size);
    p->want = (size_t)(p->size - p->from);
    return 0;
}

/* A character cut by the limit is left for the next part; one that an offset
 * points into cannot be shown. */
static void trim_text(struct part *p)
{
    struct mo_span s = mo_buf_view(&p->bytes);

    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        const char *c = s.p + s.n - back;

        if (mo_utf8_is_tail(*c))
            continue;
        if (!mo_utf8_len(c, s.p + s.n) && (unsigned char)*c >= 0xC0 &&
            back < s.n)
            p->bytes.len -= back;
        return;
    }
}

static int load_part(int fd, const struct args *a, struct part *p,
                     struct mo_err *e)
{
    size_t most = p->want < (size_t)a->limit ? p->want : (size_t)a->limit;

    if (tb_read_bytes(fd, p->from, most, &p->bytes) < 0)
        return mo_fail_sys(e, "read");
    p->more = most < p->want;
    if (a->encoding == TB_BASE64)
        return 0;
    if (p->more)
        trim_text(p);
    if (!tb_is_text(mo_buf_view(&p->bytes)))
        return mo_fail(e, MO_EINVAL,
                       "this part of the file (%lld bytes in all) is no UTF-8 "
                       "text: read it with encoding base64",
                       (long long)p->size);
    return 0;
}

/* --- answer -------------------------------------------------------------- */

static void put_data(struct mo_buf *b, const struct args *a,
                     const struct tb_path *path, const struct part *p,
                     struct mo_span content)
{
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_member_cstr(&w, "path", path->text);
    mo_jw_key(&w, "content");
    mo_jw_str(&w, content);
    mo_jw_member_cstr(&w, "encoding", tb_encodings[a->encoding]);
    mo_jw_member_u64(&w, "size", (uint64_t)p->size);
    mo_jw_member_u64(&w, "offset", (uint64_t)p->from);
    mo_jw_member_u64(&w, "bytes", p->bytes.len);
    if (a->first > 0)
        mo_jw_member_u64(&w, "start_line", (uint64_t)a->first);
    mo_jw_member_bool(&w, "truncated", p->more);
    if (p->more)
        mo_jw_member_u64(&w, "next_offset", (uint64_t)p->from + p->bytes.len);
    mo_jw_end(&w);
}

static void answer_read(struct tb_call *c, const struct args *a,
                        const struct tb_path *path, const struct part *p)
{
    struct tb_result r;
    struct mo_span bytes = mo_buf_view(&p->bytes);

    tb_result_init(&r);
    if (a->encoding == TB_BASE64)
        (void)mo_base64_put(&r.text, bytes);
    else
        mo_buf_span(&r.text, bytes);
    put_data(&r.data, a, path, p, mo_buf_view(&r.text));
    if (p->more)
        mo_buf_printf(
            &r.text,
            "\n[cut: these are bytes %lld to %lld of %lld; go "
            "on with offset %lld]",
            (long long)p->from, (long long)p->from + (long long)bytes.n - 1,
            (long long)p->size, (long long)p->from + (long long)bytes.n);
    tb_call_done(c, &r);
    tb_result_fini(&r);
}

static int read_part(struct tb_box *box, struct tb_call *c,
                     const struct args *a, const struct tb_path *path,
                     struct part *p, struct mo_err *e)
{
    struct stat st;
    mo_autofd int fd = tb_open_file(&box->root, path, &st, e);
    int rc;

    if (fd < 0)
        return e->code;
    p->size = st.st_size;
    rc = choose_part(fd, a, p, e);
    if (rc == 0)
        rc = load_part(fd, a, p, e);
    if (rc == 0)
        answer_read(c, a, path, p);
    return rc;
}

static int run_read(void *ctx, struct tb_call *c, struct mo_json json,
                    struct mo_err *e)
{
    struct args a = {.last = NO_LINE, .offset = -1, .limit = TB_BYTES_MAX};
    struct part p = {0};
    struct tb_path path;
    mo_autoarena struct mo_arena arena = {.cap = TB_ARGS_MAX};
    int rc;

    mo_buf_init(&p.bytes, TB_BYTES_MAX);
    rc = tb_args_read(ctx, json, &tb_read_file, &arena, &a, &a.path, &path, e);
    if (rc == 0)
        rc = read_part(ctx, c, &a, &path, &p, e);
    mo_buf_fini(&p.bytes);
    return rc;
}

const struct tb_tool tb_read_file = {
    "read_file",
    "Read a file",
    "Read a file of the workspace, whole, by lines (start_line, end_line) or "
    "by bytes (offset, limit). At most 262144 bytes at a time; the answer says "
    "where to go on.",
    TB_READ_ONLY | TB_IDEMPOTENT,
    in,
    out,
    run_read,
};
