/* audit list, tail, verify - reads the file of the audit log
 * (audit/audit_file.h).
 *
 * list and tail print rows from the file, newest last; verify checks that the
 * rows were not changed. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "audit/audit_anchor.h"
#include "audit/audit_mark.h"
#include "cli/runtime_wait.h"
#include "codec/frame.h"
#include "codec/json/json.h"

#define LIST_ROWS 50
#define TAIL_ROWS 10
#define ROWS_MAX  100000
#define NAP_MS    200
#define FILES_MAX 1024

/* The last rows, in a ring. */
struct rows {
    struct mo_buf *v;
    size_t max, n; /* n: number of rows seen */
};

struct opened {
    struct mo_cmd_config cfg;
    struct mo_cli *c;
    char path[PATH_MAX];
    bool json;
};

static void close_log(struct opened *o)
{
    mo_cmd_close(&o->cfg);
}

#define autolog MO_CLEANUP(close_log)

static int open_log(struct mo_cli *c, struct opened *o)
{
    int rc = mo_cmd_load(c, &o->cfg);
    int n;

    if (rc)
        return rc;
    o->c = c;
    o->json = mo_cli_has(c, "json");
    n = snprintf(o->path, sizeof(o->path), "%s/" MO_AUDIT_FILE_FILE,
                 o->cfg.now->store.dir);
    if (n > 0 && (size_t)n < sizeof(o->path))
        return 0;
    return mo_cli_error(c, MO_EXIT_CONFIG, "store.dir is too long");
}

/* --- text of one row ------------------------------------------------------ */

static void put_what(struct mo_buf *b, struct mo_json what)
{
    static const struct {
        const char *key, *before;
    } rows[] = {
        {"kind", "  "},
        {"server", " "},
        {"tool", "."},
        {"outcome", " = "},
        {"isError", " error="},
        {"ms", " ms="},
        {"by", " by="},
        {"decidedBy", " decided by="},
        {"who", " who="},
        {"door", " door="},
        {"reason", " reason="},
        {"peer", " peer="},
        {"origin", " origin="},
        {"path", " path="},
        {"count", " count="},
        {"words", " words="},
        {"candidates", " -> "},
        {"mounts", " "},
        {"workspace", " keeps="},
        {"refused", " refused="},
        {"accepted", " accepted="},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        mo_cmd_put_member(b, rows[i].before, mo_json_get(what, rows[i].key));
}

static void put_row(const struct opened *o, struct mo_span line,
                    struct mo_buf *b)
{
    struct mo_json_doc d;

    if (o->json || mo_json_parse(line, 0, &d, NULL) < 0) {
        (void)mo_buf_span(b, line);
    } else {
        mo_cmd_put_member(b, "", mo_json_get(d.root, "seq"));
        mo_cmd_put_member(b, "  ", mo_json_get(d.root, "at"));
        mo_cmd_put_member(b, "  ", mo_json_get(d.root, "note"));
        mo_cmd_put_member(b, "  session ", mo_json_get(d.root, "session"));
        put_what(b, mo_json_get(d.root, "what"));
    }
    (void)mo_buf_putc(b, '\n');
}

/* --- the last rows ------------------------------------------------------- */

static int keep_row(struct rows *r, struct mo_span line)
{
    struct mo_buf *b = &r->v[r->n++ % r->max];

    return mo_buf_set(b, line);
}

static int rows_init(struct rows *r, size_t max)
{
    *r = (struct rows){.max = max};
    r->v = mo_zalloc(max * sizeof(*r->v));
    for (size_t i = 0; r->v && i < max; i++)
        mo_buf_init(&r->v[i], MO_AUDIT_FILE_LINE + 1024);
    return r->v ? 0 : MO_ENOMEM;
}

static void rows_fini(struct rows *r)
{
    for (size_t i = 0; r->v && i < r->max; i++)
        mo_buf_fini(&r->v[i]);
    mo_free(r->v);
}

#define autorows MO_CLEANUP(rows_fini)

/* Reads new rows; f keeps an incomplete line. */
static int read_some(int fd, struct mo_frame *f, struct rows *r,
                     struct mo_err *e)
{
    char step[64 * 1024];
    ssize_t n = read(fd, step, sizeof(step));
    struct mo_span in, line;
    int rc;

    if (n < 0 && errno == EINTR)
        return 1;
    if (n < 0)
        return mo_fail_sys(e, "read");
    in = mo_span(step, (size_t)n);
    rc = mo_frame_next(f, &in, &line);
    for (; rc == 1; rc = mo_frame_next(f, &in, &line))
        if (keep_row(r, line) < 0)
            return mo_fail(e, MO_ENOMEM, "out of memory");
    if (rc < 0)
        return mo_fail(e, rc, "a line is too long");
    return n > 0;
}

static int read_file(const char *path, struct rows *r, struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct mo_frame f;
    int rc = 1;

    if (fd < 0)
        return errno == ENOENT ? 0 : mo_fail_sys(e, "%s", path);
    mo_frame_init(&f, MO_AUDIT_FILE_LINE + 1024);
    while (rc > 0)
        rc = read_some(fd, &f, r, e);
    mo_frame_fini(&f);
    return rc;
}

/* Reads the newest file, and the previous one if that has too few rows. */
static int read_last(const struct opened *o, struct rows *r, struct mo_err *e)
{
    const char *dir = o->cfg.now->store.dir;
    mo_autofree char(*names)[64] = mo_alloc(FILES_MAX * sizeof(*names));
    size_t n = 0;
    int rc = names ? mo_audit_file_files(dir, names, FILES_MAX, &n, e)
                   : mo_fail(e, MO_ENOMEM, "out of memory");

    for (size_t i = n > 2 ? n - 2 : 0; rc == 0 && i < n; i++) {
        char path[PATH_MAX];
        int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

        if (len > 0 && (size_t)len < sizeof(path))
            rc = read_file(path, r, e);
    }
    return rc;
}

static int print_rows(const struct opened *o, const struct rows *r)
{
    size_t n = r->n < r->max ? r->n : r->max;
    mo_autobuf struct mo_buf b = {.max = 2 * MO_AUDIT_FILE_LINE + n * 4096};

    for (size_t i = r->n - n; i < r->n; i++) {
        put_row(o, mo_buf_view(&r->v[i % r->max]), &b);
        if (b.len > MO_CMD_TEXT_MAX / 2) {
            if (mo_cli_print(o->c, &b))
                return MO_EXIT_FAIL;
            mo_buf_reset(&b);
        }
    }
    return b.len ? mo_cli_print(o->c, &b) : MO_EXIT_OK;
}

static size_t read_row_count(const struct mo_cli *c, size_t usual)
{
    uint64_t n = 0;

    if (mo_span_u64(mo_span_cstr(mo_cli_get(c, "rows")), &n) < 0 || n == 0)
        return usual;
    return n < ROWS_MAX ? (size_t)n : ROWS_MAX;
}

/* Prints the last rows; an exit code. */
static int print_last(const struct opened *o, struct rows *r, size_t usual)
{
    struct mo_err e;

    if (rows_init(r, read_row_count(o->c, usual)) < 0)
        return mo_cli_error(o->c, MO_EXIT_FAIL, "out of memory");
    if (read_last(o, r, &e) < 0)
        return mo_cli_error(o->c, MO_EXIT_FAIL, "%s", e.msg);
    return print_rows(o, r);
}

int mo_run_audit_list(struct mo_cli *c)
{
    autolog struct opened o = {.c = c};
    autorows struct rows r = {.v = NULL};
    int rc = open_log(c, &o);

    return rc ? rc : print_last(&o, &r, LIST_ROWS);
}

/* --- tail ---------------------------------------------------------------- */

/* Prints new rows until the process is stopped. A rotated file is read to its
 * end before the next one is opened. */
static int follow_log(const struct opened *o, struct rows *r, struct mo_err *e)
{
    static const struct timespec nap = {.tv_nsec = NAP_MS * 1000000L};
    mo_autofd int fd = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct mo_frame f;
    int rc = 0;

    if (fd >= 0)
        (void)lseek(fd, 0, SEEK_END);
    mo_frame_init(&f, MO_AUDIT_FILE_LINE + 1024);
    while (rc >= 0) {
        rc = fd >= 0 ? read_some(fd, &f, r, e) : 0;
        if (r->n && print_rows(o, r) != MO_EXIT_OK)
            break;
        r->n = 0;
        if (rc != 0)
            continue;
        if (nanosleep(&nap, NULL) < 0)
            break;
        if (fd < 0 || access(o->path, F_OK) == 0) {
            int next = open(o->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
            off_t at = fd >= 0 ? lseek(fd, 0, SEEK_CUR) : 0;

            if (next >= 0 && fd >= 0 && lseek(next, 0, SEEK_END) >= at) {
                (void)close(next); /* the same file, or it already grew */
                continue;
            }
            mo_close_fd(&fd);
            fd = next;
            if (fd >= 0)
                (void)lseek(fd, 0, SEEK_SET);
        }
    }
    mo_frame_fini(&f);
    return rc < 0 ? rc : 0;
}

int mo_run_audit_tail(struct mo_cli *c)
{
    autolog struct opened o = {.c = c};
    autorows struct rows r = {.v = NULL};
    struct mo_err e;
    int rc = open_log(c, &o);

    if (rc == 0)
        rc = print_last(&o, &r, TAIL_ROWS);
    r.n = 0;
    if (rc == 0 && mo_cli_has(c, "follow") && follow_log(&o, &r, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return rc;
}

/* --- verify -------------------------------------------------------------- */

static int print_report(struct mo_cli *c, const struct mo_audit_file_report *r)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc;

    if (mo_cli_has(c, "json"))
        (void)mo_audit_file_put_report(r, &b);
    else if (r->ok)
        (void)mo_buf_printf(
            &b,
            "ok: %llu rows, %llu to %llu, in %u file%s, as "
            "they were written\n",
            (unsigned long long)r->rows, (unsigned long long)r->first,
            (unsigned long long)r->last, r->files, r->files == 1 ? "" : "s");
    else
        (void)mo_buf_printf(&b, "NOT AS WRITTEN: %s line %llu: %s\n",
                            r->file[0] ? r->file : MO_AUDIT_FILE_FILE,
                            (unsigned long long)r->line, r->why.msg);
    rc = mo_cmd_print(c, &b);
    return rc ? rc : r->ok ? MO_EXIT_OK : MO_EXIT_FAIL;
}

/* A verification with what is remembered outside of the files. */
struct verifying {
    struct mo_cmd_runtime m; /* the store */
    struct mo_audit_witness mark, *anchors;
    size_t nanchors;
};

static void verifying_fini(struct verifying *v)
{
    mo_cmd_runtime_close(&v->m);
    mo_free(v->anchors);
}

static void on_mark(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct verifying *v = ctx;

    v->m.done = true;
    if (why)
        v->m.why = *why;
    else if (rows->n)
        (void)mo_audit_mark_read(rows->v[0].doc, &v->mark);
}

/* A database that does not exist is not created here. */
static bool is_store_there(const struct mo_config *cfg)
{
    struct mo_span file = mo_span_cstr(cfg->store.url);
    char path[PATH_MAX];
    int n;

    if (!mo_span_strip(&file, MO_SPAN("sqlite:")))
        return true;
    n = snprintf(path, sizeof(path), "%s%s%s",
                 file.p[0] == '/' ? "" : cfg->store.dir,
                 file.p[0] == '/' ? "" : "/", file.p);
    return n > 0 && (size_t)n < sizeof(path) && access(path, F_OK) == 0;
}

static int read_mark(struct mo_cli *c, struct verifying *v)
{
    const struct mo_config *cfg = v->m.cfg.now;
    char id[MO_AUDIT_MARK_ID];
    struct mo_read r = {.kind = MO_READ_MARK};
    int rc = 0;

    if (!is_store_there(cfg))
        return 0;
    rc = mo_cmd_runtime_begin(&v->m, MO_RUNTIME_STORE);
    if (rc)
        return rc;
    mo_audit_mark_id(cfg->store.dir, id);
    r.id = mo_span_cstr(id);
    if (mo_store_read(mo_runtime_store(v->m.runtime), &r, on_mark, v,
                      &v->m.why) == 0)
        mo_cmd_runtime_wait(&v->m);
    return v->m.why.code ? mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", v->m.why.msg)
                         : 0;
}

/* First with the anchor, then with the store: each witness is asked. */
static int verify_log(struct verifying *v, const char *dir, const char *file,
                      struct mo_audit_file_report *r, struct mo_err *e)
{
    int rc =
        mo_audit_file_verify_with(dir, file, v->anchors, v->nanchors, r, e);

    if (rc == 0 && r->ok && v->mark.seq)
        rc = mo_audit_file_verify_with(dir, file, &v->mark, 1, r, e);
    return rc;
}

int mo_run_audit_verify(struct mo_cli *c)
{
    MO_CLEANUP(verifying_fini) struct verifying v = {.nanchors = 0};
    const char *file = c->nargs ? c->args[0] : NULL;
    const char *anchor = mo_cli_get(c, "anchor");
    struct mo_audit_file_report r;
    const char *dir = NULL;
    struct mo_err e;
    int rc = mo_cmd_runtime_load(c, &v.m);

    if (rc == 0 && !file)
        rc = read_mark(c, &v);
    if (rc)
        return rc;
    dir = v.m.cfg.now->store.dir;
    if (anchor &&
        mo_audit_anchor_read(anchor, dir, &v.anchors, &v.nanchors, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    if (verify_log(&v, dir, file, &r, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    return print_report(c, &r);
}
