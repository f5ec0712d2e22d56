/*
 * api_files.c - the files of a conversation; see api.h.
 *
 * Bytes go between the client and the box (box_files.h) a part at a time: the
 * next part is asked for when the client has taken the last one, and the client
 * is not read while a part is on its way. So a transfer needs the memory of a
 * few parts, whatever the size of the file.
 *
 * Readers of a shared conversation list and download; its owner changes. The
 * row of the audit log is on disk before a file is written or removed. Files
 * are written by a model and its tools: they are never served as a script, and
 * what a browser shows of them is in a sandbox.
 */
#include <stdio.h>

#include "audit/audit.h"
#include "codec/http/url.h"
#include "codec/tar.h"
#include "codec/text/base64.h"
#include "codec/text/utf8.h"
#include "web/api_job.h"
#include "web/box_files.h"

#define PART       ((size_t)192 * 1024) /* bytes; base64 needs no padding */
#define PART_MAX   (PART + (size_t)128 * 1024)
#define ARGS_MAX   ((size_t)512 * 1024)
#define PATH_TEXT  ((size_t)4096)
#define UPLOAD_MAX ((uint64_t)4 * 1024 * 1024 * 1024)
#define PAGE       200 /* entries of the archive that are known ahead */
#define PAGE_MAX   ((size_t)1024 * 1024)
#define NAME_TEXT  ((size_t)1024)

#define POLICY                                                                 \
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; "  \
    "frame-ancestors 'self'"

enum { LIST, DOWNLOAD, ARCHIVE, UPLOAD, REMOVE };

/* Lives as long as its request; an upload until its temporary file is gone. */
struct transfer {
    struct mo_api *api;
    struct mo_req *rq; /* NULL: the client has gone */
    struct mo_box_files *files;
    int what;
    char id[MO_SESSION_ID_MAX + 1];
    char owner[MO_SESSION_OWNER_MAX];
    struct mo_buf path, args, part;
    bool view, auditing, asking, draining;

    uint64_t at, left; /* download: the next byte, and how many */
    uint64_t size, mtime;

    char temp[64]; /* upload: the temporary file's name; "": none */
    bool last;     /* the whole body is here */

    struct mo_buf page, name; /* archive; name: JSON text of the last entry */
    struct mo_json_doc doc;
    struct mo_json_iter entries;
    bool more, executable; /* another page follows; mode of the last entry */
};

static void transfer_free(struct transfer *t)
{
    if (t->files)
        mo_box_files_free(t->files);
    mo_buf_fini(&t->path);
    mo_buf_fini(&t->args);
    mo_buf_fini(&t->part);
    mo_buf_fini(&t->page);
    mo_buf_fini(&t->name);
    mo_free(t);
}

/* --- requests to the box -------------------------------------------------- */

static struct mo_jw begin_args(struct transfer *t)
{
    struct mo_jw w;

    mo_buf_reset(&t->args);
    w = mo_jw_object(&t->args);
    return w;
}

static void put_path(struct transfer *t, struct mo_jw *w)
{
    mo_jw_key(w, "path");
    mo_jw_str(w, mo_buf_view(&t->path));
}

static void ask(struct transfer *t, const char *method, mo_box_files_fn *done)
{
    t->asking = true;
    mo_box_files_ask(t->files, method, mo_buf_view(&t->args), done, t);
}

static void refuse(struct transfer *t, const struct mo_box_files_no *no)
{
    if (t->rq)
        mo_req_problem(t->rq, no->status, no->code, no->text);
}

/* --- list ----------------------------------------------------------------- */

static void on_listed(void *ctx, struct mo_json result,
                      const struct mo_box_files_no *no)
{
    static const char *const members[] = {"path", "entries", "more", "clipped"};
    mo_autobuf struct mo_buf b = {.max = MO_API_ANSWER_MAX};
    struct transfer *t = ctx;
    struct mo_jw w;

    t->asking = false;
    if (no) {
        refuse(t, no);
        return;
    }
    w = mo_jw_object(&b);
    for (size_t i = 0; i < MO_COUNT(members); i++)
        mo_jw_member_raw(&w, members[i],
                         mo_json_text(mo_json_get(result, members[i])));
    mo_jw_end(&w);
    mo_api_send(t->rq, &b);
}

static void put_number(const struct transfer *t, struct mo_jw *w,
                       const char *key, const char *name)
{
    mo_autobuf struct mo_buf b = {.max = 24};
    uint64_t n = 0;

    if (mo_query_get(t->rq->query, key, &b) == 0 &&
        mo_span_u64(mo_buf_view(&b), &n) == 0 && n)
        mo_jw_member_u64(w, name, n);
}

static void start_list(struct transfer *t)
{
    mo_autobuf struct mo_buf after = {.max = PATH_TEXT};
    struct mo_jw w = begin_args(t);

    put_path(t, &w);
    if (mo_query_get(t->rq->query, "after", &after) == 0 && after.len) {
        mo_jw_key(&w, "after");
        mo_jw_str(&w, mo_buf_view(&after));
    }
    put_number(t, &w, "limit", "limit");
    put_number(t, &w, "changedMs", "changed_ms");
    mo_jw_member_bool(&w, "recursive", mo_api_says(t->rq, "recursive", "true"));
    mo_jw_end(&w);
    ask(t, "list", on_listed);
}

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
    mo_autobuf struct mo_buf text = {.max = ARGS_MAX};
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
    struct mo_jw w = begin_args(t);

    put_path(t, &w);
    mo_jw_member_u64(&w, "offset", t->at);
    mo_jw_member_u64(&w, "length", n < PART ? n : PART);
    mo_jw_end(&w);
    ask(t, "read", done);
}

static void next_entry(struct transfer *t);
static void read_entry(struct transfer *t);

static void read_part(struct transfer *t)
{
    if (t->what == ARCHIVE && t->left == 0)
        next_entry(t);
    else if (t->what == ARCHIVE)
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
        refuse(t, no);
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
    mo_autobuf struct mo_buf name = {.max = PATH_TEXT};
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
        if (b->len > PART)
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
    mo_autobuf struct mo_buf b = {.max = 2 * PART_MAX};
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
    mo_autobuf struct mo_buf path = {.max = 2 * PATH_TEXT};
    struct mo_jw w = begin_args(t);
    struct mo_span dir = mo_buf_view(&t->path);

    (void)mo_buf_span(&path, dir);
    (void)mo_buf_putc(&path, '/');
    (void)mo_json_str_buf((struct mo_json){t->name.p, t->name.len}, &path);
    mo_jw_key(&w, "path");
    mo_jw_str(&w, mo_buf_view(&path));
    mo_jw_member_u64(&w, "offset", t->at);
    mo_jw_member_u64(&w, "length", PART);
    mo_jw_end(&w);
    ask(t, "read", done);
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
    mo_autobuf struct mo_buf b = {.max = 2 * PART_MAX};

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
    mo_autobuf struct mo_buf b = {.max = PATH_TEXT};

    (void)mo_tar_put_end(&b);
    if (send_part(t, mo_buf_view(&b)))
        mo_req_end(t->rq);
}

static void next_entry(struct transfer *t)
{
    mo_autobuf struct mo_buf b = {.max = PART_MAX};
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
        refuse(t, no);
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
    struct mo_jw w = begin_args(t);

    put_path(t, &w);
    mo_jw_member_bool(&w, "recursive", true);
    mo_jw_member_u64(&w, "limit", PAGE);
    if (t->name.len)
        mo_jw_member_raw(&w, "after", mo_buf_view(&t->name));
    mo_jw_end(&w);
    ask(t, "list", on_page);
}

/* --- upload --------------------------------------------------------------- */

static void push_upload(struct transfer *t);

static void on_aborted(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    (void)result;
    (void)no;
    transfer_free(ctx);
}

static void ask_temp(struct transfer *t, const char *method,
                     mo_box_files_fn *done)
{
    struct mo_jw w = begin_args(t);

    put_path(t, &w);
    mo_jw_member_cstr(&w, "temp", t->temp);
    mo_jw_end(&w);
    ask(t, method, done);
}

/* The client has gone: removes the temporary file. */
static void abandon_upload(struct transfer *t)
{
    if (t->asking)
        return; /* when that has ended */
    if (t->temp[0])
        ask_temp(t, "abort", on_aborted);
    else
        transfer_free(t);
}

static void on_committed(void *ctx, struct mo_json result,
                         const struct mo_box_files_no *no)
{
    mo_autobuf struct mo_buf b = {.max = 2 * PATH_TEXT};
    struct transfer *t = ctx;
    bool created = false;
    struct mo_jw w;

    t->asking = false;
    t->temp[0] = '\0';
    if (!t->rq) {
        abandon_upload(t);
        return;
    }
    if (no) {
        refuse(t, no);
        return;
    }
    (void)mo_json_bool(mo_json_get(result, "created"), &created);
    w = mo_jw_object(&b);
    put_path(t, &w);
    mo_jw_member_u64(&w, "size", t->at);
    mo_jw_member_bool(&w, "created", created);
    mo_jw_end(&w);
    if (mo_buf_err(&b))
        mo_req_problem(t->rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(t->rq, created ? 201 : 200, "application/json",
                     mo_buf_view(&b));
}

static void on_written(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    mo_autobuf struct mo_buf temp = {.max = sizeof(t->temp) - 1};

    t->asking = false;
    if (no) {
        t->temp[0] = '\0'; /* the box has removed it */
    } else if (mo_json_str_buf(mo_json_get(result, "temp"), &temp) == 0) {
        (void)snprintf(t->temp, sizeof(t->temp), "%s", mo_buf_cstr(&temp));
        t->at += t->size;
    }
    if (!t->rq) {
        abandon_upload(t);
        return;
    }
    if (no) {
        refuse(t, no);
        return;
    }
    mo_buf_drop(&t->part, (size_t)t->size);
    if (!t->last && t->part.len < PART)
        mo_req_body_pause(t->rq, false);
    push_upload(t);
}

/* t->size: bytes of the part on its way. */
static void write_part(struct transfer *t)
{
    struct mo_span bytes = mo_span_head(mo_buf_view(&t->part), PART);
    struct mo_jw w = begin_args(t);
    mo_autobuf struct mo_buf text = {.max = ARGS_MAX};

    put_path(t, &w);
    if (t->temp[0])
        mo_jw_member_cstr(&w, "temp", t->temp);
    mo_jw_member_u64(&w, "offset", t->at);
    (void)mo_base64_put(&text, bytes);
    mo_jw_key(&w, "content");
    mo_jw_str(&w, mo_buf_view(&text));
    mo_jw_end(&w);
    t->size = bytes.n;
    ask(t, "write", on_written);
}

static void push_upload(struct transfer *t)
{
    if (t->asking)
        return;
    if (t->part.len >= PART || (t->last && (t->part.len || !t->temp[0])))
        write_part(t);
    else if (t->last)
        ask_temp(t, "commit", on_committed);
}

static void on_part(struct mo_req *rq, struct mo_span part, bool last)
{
    struct transfer *t = rq->data;

    t->last = last;
    if (mo_buf_span(&t->part, part) < 0) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    if (!last && t->part.len >= PART)
        mo_req_body_pause(rq, true);
    push_upload(t);
}

/* --- remove --------------------------------------------------------------- */

static void ask_remove(struct transfer *t);

static void on_removed(void *ctx, struct mo_json result,
                       const struct mo_box_files_no *no)
{
    struct transfer *t = ctx;
    bool more = false;

    t->asking = false;
    (void)mo_json_bool(mo_json_get(result, "more"), &more);
    if (no)
        refuse(t, no);
    else if (more)
        ask_remove(t);
    else
        mo_api_send_ok(t->rq);
}

static void ask_remove(struct transfer *t)
{
    struct mo_jw w = begin_args(t);

    put_path(t, &w);
    mo_jw_end(&w);
    ask(t, "remove", on_removed);
}

/* --- begin ---------------------------------------------------------------- */

static void start(struct transfer *t)
{
    switch (t->what) {
    case LIST:
        start_list(t);
        break;
    case DOWNLOAD:
        ask_read(t, 0, on_sized);
        break;
    case ARCHIVE:
        list_more(t);
        break;
    case UPLOAD:
        mo_req_body_parts(t->rq, UPLOAD_MAX, on_part);
        break;
    default:
        ask_remove(t);
    }
}

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct transfer *t = ctx;

    t->auditing = false;
    if (!t->rq)
        transfer_free(t);
    else if (why)
        mo_req_problem(t->rq, 503, "audit_failed", why->msg);
    else
        start(t);
}

/* The row that says who changes which file; it comes before the change. */
static void audit_change(struct transfer *t)
{
    int64_t length = t->rq->head->content_length;
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("file"),
        .name = mo_buf_view(&t->path),
        .action = t->what == UPLOAD ? "uploaded" : "removed",
        .session = mo_span_cstr(t->id),
        .decided_by = t->rq->who[0] ? t->rq->who : "operator",
        .via = t->rq->door,
        .count = length > 0 && t->what == UPLOAD ? (uint64_t)length : 0,
    };
    struct mo_err e;

    t->auditing = true;
    if (mo_audit_first(mo_approvals_audit(t->api->approvals), &row, on_audited,
                       t, &e) < 0) {
        t->auditing = false;
        mo_req_problem(t->rq, 503, "audit_failed", e.msg);
    }
}

static void on_gone(struct mo_req *rq)
{
    struct transfer *t = rq->data;

    t->rq = NULL;
    if (t->auditing)
        return; /* on_audited() frees it */
    if (t->what == UPLOAD)
        abandon_upload(t);
    else
        transfer_free(t);
}

static struct transfer *transfer_new(struct mo_api *api, struct mo_req *rq,
                                     const char *id, const char *owner)
{
    struct transfer *t = mo_new(struct transfer);

    if (!t)
        return NULL;
    t->api = api;
    t->rq = rq;
    t->what = rq->arg;
    t->view = mo_api_says(rq, "view", "true");
    (void)snprintf(t->id, sizeof(t->id), "%s", id);
    (void)snprintf(t->owner, sizeof(t->owner), "%s", owner);
    mo_buf_init(&t->path, PATH_TEXT);
    mo_buf_init(&t->args, ARGS_MAX);
    mo_buf_init(&t->part, PART_MAX);
    mo_buf_init(&t->page, PAGE_MAX);
    mo_buf_init(&t->name, 8 * PATH_TEXT);
    t->files = mo_box_files_new(api, rq, id, owner);
    if (t->files)
        return t;
    transfer_free(t);
    return NULL;
}

/* The path of the query; a directory may be left out. */
static bool read_path(struct transfer *t)
{
    bool may_lack = t->what == LIST || t->what == ARCHIVE;
    int rc = mo_query_get(t->rq->query, "path", &t->path);

    if (rc == MO_ENOTFOUND || (rc == 0 && t->path.len == 0))
        rc = may_lack ? mo_buf_puts(&t->path, ".") : MO_EINVAL;
    return rc == 0 && !mo_buf_err(&t->path) &&
           mo_utf8_valid(mo_buf_view(&t->path));
}

/* visits: they are a reader of the session, not its owner. */
static void begin(struct mo_api *api, struct mo_req *rq, const char *id,
                  const char *owner, bool visits)
{
    struct transfer *t = transfer_new(api, rq, id, owner);

    if (!t) {
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    rq->data = t;
    rq->gone = on_gone;
    if (visits)
        mo_box_files_visit(t->files);
    if (!read_path(t))
        mo_req_problem(rq, 400, "bad_path",
                       "?path= names a file of the workspace, in UTF-8 and at "
                       "most 4096 bytes");
    else if (t->what == UPLOAD && rq->head->content_length > 0 &&
             (uint64_t)rq->head->content_length > UPLOAD_MAX)
        mo_req_problem(rq, 413, "file_too_big",
                       "a file may have at most 4 GiB");
    else if (t->what == UPLOAD || t->what == REMOVE)
        audit_change(t);
    else
        start(t);
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct mo_api_job *j = ctx;
    struct mo_session_row row = {.created = 0};
    struct mo_api *api = j->api;
    char id[MO_SESSION_ID_MAX + 1];
    bool visits = false;
    struct mo_req *rq;

    if (why) {
        mo_api_error(j, why);
        return;
    }
    if (rows->n == 0 || mo_session_row(rows->v[0].doc, &row, NULL) < 0) {
        mo_api_problem(j, 404, "not_found", "there is no such session");
        return;
    }
    memcpy(id, j->id, sizeof(id));
    visits = !mo_api_row_is_mine(j, &rows->v[0]);
    rq = mo_api_take(j);
    if (rq)
        begin(api, rq, id, row.owner, visits);
}

/* The person may: whose session is it? */
static void read_row(struct mo_api_job *j)
{
    const struct mo_read r = {.kind = MO_READ_SESSION,
                              .session = mo_span_cstr(j->id)};
    struct mo_err e;

    if (mo_store_read(j->api->store, &r, on_row, j, &e) < 0)
        mo_api_error(j, &e);
}

static void on_request(void *ctx, struct mo_req *rq)
{
    struct mo_api *api = ctx;
    bool is_change = rq->arg == UPLOAD || rq->arg == REMOVE;
    struct mo_api_job *j = NULL;

    if (!mo_api_has(rq, api->sessions, mo_talk_why(api->talk)))
        return;
    j = mo_api_session_job(api, rq);
    if (j && is_change)
        mo_api_if_mine(j, read_row);
    else if (j)
        mo_api_if_shared(j, read_row);
}

int mo_api_files_routes(struct mo_site *s, struct mo_api *api)
{
#define FILES "/api/sessions/{id}/files"
    static const struct mo_route routes[] = {
        {MO_HTTP_GET, FILES, 0, on_request, .arg = LIST},
        {MO_HTTP_GET, FILES "/content", 0, on_request, .arg = DOWNLOAD},
        {MO_HTTP_GET, FILES "/archive", 0, on_request, .arg = ARCHIVE},
        {MO_HTTP_PUT, FILES "/content", 0, on_request, .arg = UPLOAD},
        {MO_HTTP_DELETE, FILES "/content", 0, on_request, .arg = REMOVE},
    };
#undef FILES

    return mo_site_add(s, routes, MO_COUNT(routes), api);
}
