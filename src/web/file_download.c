/* file_download.c - a file of a conversation, or all of them as an archive. See
 * api_files.c.
 *
 * Files are written by a model and its tools: they are never served as a
 * script, and what a browser shows of them is in a sandbox. */
#include <stdio.h>

#include "codec/http/url.h"
#include "codec/tar.h"
#include "codec/text/base64.h"
#include "web/file_transfer.h"

#define PAGE      200 /* entries of the archive that are known ahead */
#define NAME_TEXT ((size_t)1024)

#define POLICY                                                                 \
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "  \
    "frame-ancestors 'self'"

/* --- headers -------------------------------------------------------------- */

static struct mo_span last_name(struct mo_span path)
{
    for (size_t i = path.n; i > 0; i--)
        if (path.p[i - 1] == '/')
            return mo_span_skip(path, i);
    return path;
}

/* Never a script or a style sheet: a page could load those from here. */
static const char *type_of(struct mo_span name)
{
    static const struct {
        const char *end, *type;
    } rows[] = {
        {".png", "image/png"},       {".jpg", "image/jpeg"},
        {".jpeg", "image/jpeg"},     {".gif", "image/gif"},
        {".webp", "image/webp"},     {".svg", "image/svg+xml"},
        {".avif", "image/avif"},     {".bmp", "image/bmp"},
        {".ico", "image/x-icon"},    {".pdf", "application/pdf"},
        {".mp4", "video/mp4"},       {".webm", "video/webm"},
        {".mp3", "audio/mpeg"},      {".wav", "audio/wav"},
        {".ogg", "audio/ogg"},       {".html", "text/html; charset=utf-8"},
        {".zip", "application/zip"}, {".htm", "text/html; charset=utf-8"},
    };
    static const char *const texts[] = {
        ".txt", ".md",  ".csv", ".tsv",  ".json", ".js",  ".ts",
        ".css", ".xml", ".yml", ".yaml", ".py",   ".c",   ".h",
        ".sh",  ".log", ".rs",  ".go",   ".java", ".sql", ".toml",
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_span end = mo_span_cstr(rows[i].end);

        if (name.n > end.n &&
            mo_span_ieq(mo_span_skip(name, name.n - end.n), end))
            return rows[i].type;
    }
    for (size_t i = 0; i < MO_COUNT(texts); i++)
        if (mo_span_ends(name, mo_span_cstr(texts[i])))
            return "text/plain; charset=utf-8";
    return "application/octet-stream";
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_' ||
           c == ' ';
}

/* The name in ASCII for old clients, and as it is (RFC 6266). */
static void put_headers(struct mo_req *rq, struct mo_span name, bool view)
{
    mo_autobuf struct mo_buf b = {.max = 4 * NAME_TEXT};

    name = mo_span_head(name, NAME_TEXT);
    (void)mo_buf_puts(&b, view ? "inline" : "attachment");
    (void)mo_buf_puts(&b, "; filename=\"");
    for (size_t i = 0; i < name.n; i++)
        (void)mo_buf_putc(&b, is_plain(name.p[i]) ? name.p[i] : '_');
    (void)mo_buf_puts(&b, "\"; filename*=UTF-8''");
    (void)mo_pct_encode(&b, name);
    if (mo_buf_err(&b) == 0)
        mo_req_header(rq, "Content-Disposition", mo_buf_view(&b));
    mo_req_header(rq, "Content-Security-Policy", MO_SPAN(POLICY));
}

/* --- download ------------------------------------------------------------- */

static void read_part(struct transfer *t);

/* The client has taken everything: go on. */
static void on_drain(struct mo_req *rq)
{
    struct transfer *t = rq->data;

    if (!t || !t->draining)
        return;
    t->draining = false;
    read_part(t);
}

/* False: the client is gone. */
static bool send_part(struct transfer *t, struct mo_span bytes)
{
    if (mo_req_write(t->rq, bytes) == 0)
        return true;
    mo_req_abort(t->rq);
    return false;
}

/* The bytes of an answer to "read"; MO_EPROTO: the file is not the one that was
 * announced. */
static int take_bytes(struct transfer *t, struct mo_json result, bool same)
{
    mo_autobuf struct mo_buf text = {.max = TRANSFER_ARGS_MAX};
    uint64_t size = 0, mtime = 0;

    mo_buf_reset(&t->part);
    if (mo_json_u64(mo_json_get(result, "size"), &size) < 0 ||
        mo_json_u64(mo_json_get(result, "mtime"), &mtime) < 0 ||
        mo_json_str_buf(mo_json_get(result, "content"), &text) < 0 ||
        mo_base64_decode(mo_buf_view(&text), &t->part) < 0)
        return MO_EPROTO;
    if (same && (size != t->size || mtime != t->mtime))
        return MO_EPROTO;
    t->size = size;
    t->mtime = mtime;
    return 0;
}

static void on_bytes(void *ctx, struct mo_json result,
                     const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    struct mo_span bytes;

    t->asking = false;
    if (no || take_bytes(t, result, true) < 0 || t->part.len == 0) {
        mo_req_abort(t->rq); /* the head has been sent */
        return;
    }
    bytes = mo_span_head(mo_buf_view(&t->part), t->left);
    t->at += bytes.n;
    t->left -= bytes.n;
    if (!send_part(t, bytes))
        return;
    if (t->left == 0)
        mo_req_end(t->rq);
    else if (mo_req_queued(t->rq))
        t->draining = true;
    else
        read_part(t);
}

static void ask_read(struct transfer *t, uint64_t n, mo_box_files_fn *done)
{
    struct mo_jw w = mo_transfer_args(t);

    mo_transfer_put_path(t, &w);
    mo_jw_member_u64(&w, "offset", t->at);
    mo_jw_member_u64(&w, "length", n < TRANSFER_PART ? n : TRANSFER_PART);
    mo_jw_end(&w);
    mo_transfer_ask(t, "read", done);
}

static void next_entry(struct transfer *t);
static void read_entry(struct transfer *t);

static void read_part(struct transfer *t)
{
    if (t->what == TRANSFER_ARCHIVE && t->left == 0)
        next_entry(t);
    else if (t->what == TRANSFER_ARCHIVE)
        read_entry(t);
    else
        ask_read(t, t->left, on_bytes);
}

/* One range of bytes (RFC 9110 14.2): "bytes=A-B", "bytes=A-", "bytes=-N".
 * 1: t->at and t->left are set; 0: all of it; MO_EINVAL: it cannot be
 * satisfied. Other forms are ignored. */
static int read_range(struct transfer *t)
{
    struct mo_span to = mo_http_get(t->rq->head, "Range"), from;
    uint64_t a = 0, b = t->size ? t->size - 1 : 0;

    t->at = 0;
    t->left = t->size;
    if (!mo_span_strip(&to, MO_SPAN("bytes=")) || memchr(to.p, ',', to.n))
        return 0;
    from = mo_span_cut(&to, '-');
    if (!to.p || (from.n && mo_span_u64(from, &a) < 0) ||
        (to.n && mo_span_u64(to, &b) < 0) || (!from.n && !to.n))
        return 0;
    if (!from.n) {
        a = b < t->size ? t->size - b : 0;
        b = t->size ? t->size - 1 : 0;
    }
    if (a >= t->size || b < a)
        return MO_EINVAL;
    t->at = a;
    t->left = (b < t->size ? b + 1 : t->size) - a;
    return 1;
}

static void on_sized(void *ctx, struct mo_json result,
                     const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    struct mo_span name = last_name(mo_buf_view(&t->path));
    char text[96];
    int range;

    t->asking = false;
    if (no) {
        mo_transfer_refuse(t, no);
        return;
    }
    if (take_bytes(t, result, false) < 0) {
        mo_req_problem(t->rq, 502, "failed", "the box gave a bad answer");
        return;
    }
    range = read_range(t);
    if (range < 0) {
        (void)snprintf(text, sizeof(text), "bytes */%llu",
                       (unsigned long long)t->size);
        mo_req_header(t->rq, "Content-Range", mo_span_cstr(text));
        mo_req_problem(t->rq, 416, "bad_range", "the file is shorter");
        return;
    }
    put_headers(t->rq, name, t->view);
    mo_req_header(t->rq, "Accept-Ranges", MO_SPAN("bytes"));
    if (range > 0) {
        (void)snprintf(text, sizeof(text), "bytes %llu-%llu/%llu",
                       (unsigned long long)t->at,
                       (unsigned long long)(t->at + t->left - 1),
                       (unsigned long long)t->size);
        mo_req_header(t->rq, "Content-Range", mo_span_cstr(text));
    }
    mo_req_start_sized(t->rq, range > 0 ? 206 : 200, type_of(name), t->left);
    mo_req_on_drain(t->rq, on_drain);
    if (t->left == 0 || t->rq->head->method == MO_HTTP_HEAD)
        mo_req_end(t->rq);
    else
        read_part(t);
}

/* --- archive -------------------------------------------------------------- */

static void list_more(struct transfer *t);

static void send_buf(struct transfer *t, struct mo_buf *b)
{
    if (mo_buf_err(b)) {
        mo_req_abort(t->rq);
        return;
    }
    if (!send_part(t, mo_buf_view(b)))
        return;
    if (mo_req_queued(t->rq))
        t->draining = true;
    else
        read_part(t);
}

static void put_entry_head(struct transfer *t, struct mo_buf *b,
                           enum mo_tar_kind kind)
{
    mo_autobuf struct mo_buf name = {.max = TRANSFER_PATH_MAX};
    struct mo_tar_entry e = {
        .kind = kind,
        .mode = kind == MO_TAR_DIR || t->executable ? 0755 : 0644};

    (void)mo_json_str_buf((struct mo_json){t->name.p, t->name.len}, &name);
    if (kind == MO_TAR_DIR)
        (void)mo_buf_putc(&name, '/');
    e.path = mo_buf_view(&name);
    if (mo_buf_err(&name))
        (void)mo_buf_fail(b, mo_buf_err(&name));
    else
        (void)mo_tar_put_pax_head(b, &e, kind == MO_TAR_DIR ? 0 : t->size,
                                  t->mtime / 1000);
}

/* A file that became shorter is filled with zeros: its size is announced. */
static void send_entry_part(struct transfer *t, struct mo_buf *b)
{
    static const char zeros[MO_TAR_BLOCK];
    struct mo_span bytes = mo_span_head(mo_buf_view(&t->part), t->left);

    (void)mo_buf_span(b, bytes);
    while (bytes.n == 0 && t->left) {
        size_t n = t->left < sizeof(zeros) ? (size_t)t->left : sizeof(zeros);

        (void)mo_buf_put(b, zeros, n);
        t->left -= n;
        t->at += n;
        if (b->len > TRANSFER_PART)
            break;
    }
    t->at += bytes.n;
    t->left -= bytes.n;
    if (t->left == 0)
        (void)mo_buf_put(b, zeros, mo_tar_padding(t->at));
    send_buf(t, b);
}

static void on_entry_part(void *ctx, struct mo_json result,
                          const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    mo_autobuf struct mo_buf b = {.max = 2 * TRANSFER_PART_MAX};
    uint64_t size = t->size;

    t->asking = false;
    mo_buf_reset(&t->part);
    if ((no && no->status >= 500) ||
        (!no && take_bytes(t, result, false) < 0)) {
        mo_req_abort(t->rq);
        return;
    }
    t->size = size;
    send_entry_part(t, &b);
}

static void ask_entry(struct transfer *t, mo_box_files_fn *done)
{
    mo_autobuf struct mo_buf path = {.max = 2 * TRANSFER_PATH_MAX};
    struct mo_jw w = mo_transfer_args(t);
    struct mo_span dir = mo_buf_view(&t->path);

    (void)mo_buf_span(&path, dir);
    (void)mo_buf_putc(&path, '/');
    (void)mo_json_str_buf((struct mo_json){t->name.p, t->name.len}, &path);
    mo_jw_key(&w, "path");
    mo_jw_str(&w, mo_buf_view(&path));
    mo_jw_member_u64(&w, "offset", t->at);
    mo_jw_member_u64(&w, "length", TRANSFER_PART);
    mo_jw_end(&w);
    mo_transfer_ask(t, "read", done);
}

static void read_entry(struct transfer *t)
{
    ask_entry(t, on_entry_part);
}

/* The first part says how long the file is; one that cannot be read, or is gone
 * by now, is left out. */
static void on_entry(void *ctx, struct mo_json result,
                     const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    mo_autobuf struct mo_buf b = {.max = 2 * TRANSFER_PART_MAX};

    t->asking = false;
    t->left = 0;
    if (no && no->status < 500) {
        next_entry(t);
        return;
    }
    if (no || take_bytes(t, result, false) < 0) {
        mo_req_abort(t->rq);
        return;
    }
    t->left = t->size;
    put_entry_head(t, &b, MO_TAR_FILE);
    send_entry_part(t, &b);
}

static void end_archive(struct transfer *t)
{
    mo_autobuf struct mo_buf b = {.max = TRANSFER_PATH_MAX};

    (void)mo_tar_put_end(&b);
    if (send_part(t, mo_buf_view(&b)))
        mo_req_end(t->rq);
}

static void next_entry(struct transfer *t)
{
    mo_autobuf struct mo_buf b = {.max = TRANSFER_PART_MAX};
    struct mo_json key, entry, type;

    while (mo_json_next(&t->entries, &key, &entry)) {
        type = mo_json_get(entry, "type");
        if (mo_buf_set(&t->name, mo_json_text(mo_json_get(entry, "name"))) < 0)
            break;
        t->at = t->left = 0;
        t->executable = mo_json_flag(entry, "executable");
        if (mo_json_str_eq(type, MO_SPAN("file"))) {
            ask_entry(t, on_entry);
            return;
        }
        if (mo_json_str_eq(type, MO_SPAN("directory"))) {
            (void)mo_json_u64(mo_json_get(entry, "mtime"), &t->mtime);
            put_entry_head(t, &b, MO_TAR_DIR);
            send_buf(t, &b);
            return;
        }
    }
    if (t->more)
        list_more(t);
    else
        end_archive(t);
}

static void on_page(void *ctx, struct mo_json result,
                    const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    bool first = t->page.len == 0;
    char name[MO_SESSION_ID_MAX + 8];

    t->asking = false;
    if (no && first) {
        mo_transfer_refuse(t, no);
        return;
    }
    t->more = false;
    if (no || mo_buf_set(&t->page, mo_json_text(result)) < 0 ||
        mo_json_parse(mo_buf_view(&t->page), 0, &t->doc, NULL) < 0) {
        mo_req_abort(t->rq);
        return;
    }
    (void)mo_json_bool(mo_json_get(t->doc.root, "more"), &t->more);
    mo_json_iter(&t->entries, mo_json_get(t->doc.root, "entries"));
    if (first) {
        (void)snprintf(name, sizeof(name), "%s.tar", t->id);
        put_headers(t->rq, mo_span_cstr(name), false);
        mo_req_start(t->rq, 200, "application/x-tar");
        mo_req_on_drain(t->rq, on_drain);
    }
    if (t->rq->head->method == MO_HTTP_HEAD)
        mo_req_end(t->rq);
    else
        next_entry(t);
}

static void list_more(struct transfer *t)
{
    struct mo_jw w = mo_transfer_args(t);

    mo_transfer_put_path(t, &w);
    mo_jw_member_bool(&w, "recursive", true);
    mo_jw_member_u64(&w, "limit", PAGE);
    if (t->name.len)
        mo_jw_member_raw(&w, "after", mo_buf_view(&t->name));
    mo_jw_end(&w);
    mo_transfer_ask(t, "list", on_page);
}

/* --- begin ---------------------------------------------------------------- */

void mo_transfer_download(struct transfer *t)
{
    ask_read(t, 0, on_sized);
}

void mo_transfer_archive(struct transfer *t)
{
    list_more(t);
}
