/*
 * audit_file_query.c - is the audit log what was written? See audit_file.h.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit_file.h"
#include "base/mem.h"
#include "codec/frame.h"
#include "codec/json/json.h"

#define READ_STEP ((size_t)256 * 1024)
#define FILES_MAX 1024

struct look {
    struct mo_audit_file_report *r;
    struct mo_chain chain;
    struct mo_audit_file_mark head;
    bool has_head, met_head;
};

static void found(struct look *k, const struct mo_err *why)
{
    k->r->ok = false;
    k->r->why = *why;
}

/* The head must be the row of that number; rows behind it may be newer. */
static int check_head(struct look *k, struct mo_err *e)
{
    if (!k->has_head || k->chain.seq != k->head.last.seq)
        return 0;
    k->met_head = true;
    if (strcmp(k->chain.hash, k->head.last.hash) == 0)
        return 0;
    return mo_fail(e, MO_EPROTO,
                   "row %llu is not the one that was written last",
                   (unsigned long long)k->chain.seq);
}

static int check_line(struct look *k, struct mo_span line, struct mo_err *e)
{
    int rc;

    k->r->line++;
    rc = mo_chain_check(&k->chain, line, e);
    if (rc < 0)
        return rc;
    k->r->rows++;
    if (!k->r->first)
        k->r->first = k->chain.seq;
    if (k->has_head && k->r->first > k->head.first)
        return mo_fail(e, MO_EPROTO, "rows %llu to %llu are missing",
                       (unsigned long long)k->head.first,
                       (unsigned long long)k->r->first - 1);
    k->r->last = k->chain.seq;
    return check_head(k, e);
}

static int check_bytes(struct look *k, struct mo_frame *f, struct mo_span in,
                       struct mo_err *e)
{
    struct mo_span line;
    int rc = mo_frame_next(f, &in, &line);

    for (; rc == 1; rc = mo_frame_next(f, &in, &line)) {
        if (check_line(k, line, e) < 0)
            return e->code;
    }
    return rc < 0 ? mo_fail(e, MO_EPROTO, "a line is too long") : 0;
}

/* A raw CR before an LF is no part of ours: frames would swallow it. */
static bool has_cr(struct mo_span s)
{
    return mo_span_find(s, '\r') >= 0;
}

/* A group that is being written: only up to the size it had. */
static int check_file(struct look *k, int fd, uint64_t size, struct mo_err *e)
{
    mo_autofree char *step = mo_alloc(READ_STEP);
    struct mo_frame f;
    uint64_t at = 0;
    int rc = step ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");

    mo_frame_init(&f, MO_AUDIT_FILE_LINE + 1024);
    while (rc == 0 && at < size) {
        uint64_t want = size - at < READ_STEP ? size - at : READ_STEP;
        ssize_t n = pread(fd, step, want, (off_t)at);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            rc = mo_fail(e, MO_EPROTO, "it ends before its end");
        else if (has_cr(mo_span(step, (size_t)n)))
            rc = mo_fail(e, MO_EPROTO,
                         "a byte stands there that we never "
                         "write");
        else
            rc = check_bytes(k, &f, mo_span(step, (size_t)n), e);
        at += n > 0 ? (uint64_t)n : 0;
    }
    if (rc == 0 && mo_frame_waiting(&f)) {
        k->r->line++;
        rc = mo_fail(e, MO_EPROTO, "its last row is not whole");
    }
    mo_frame_fini(&f);
    return rc;
}

/* The size by which no group is half written, and the head of then. */
static uint64_t size_of(struct look *k, int fd, const char *dir)
{
    char path[PATH_MAX];
    struct mo_err e;
    struct stat st;
    mo_autofd int lock = -1;

    if (dir) {
        (void)snprintf(path, sizeof(path), "%s/" MO_AUDIT_FILE_HEAD, dir);
        lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (lock >= 0)
            (void)flock(lock, LOCK_SH);
        k->has_head = mo_audit_file_head(dir, &k->head, &e) == 0;
        if (k->head.last.seq > k->chain.seq)
            k->met_head = false;
    }
    if (fstat(fd, &st) < 0)
        st.st_size = 0;
    return (uint64_t)st.st_size;
}

static int look_at(struct look *k, const char *path, const char *name,
                   const char *dir, struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct mo_err why;
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "%s: not a regular file", path);
    (void)snprintf(k->r->file, sizeof(k->r->file), "%s", name);
    k->r->line = 0;
    k->r->files++;
    if (check_file(k, fd, size_of(k, fd, dir), &why) < 0)
        found(k, &why);
    return 0;
}

/* Rows of the end are missing if the last one that was written is. */
static void check_end(struct look *k)
{
    struct mo_err why;

    if (!k->r->ok || k->met_head || (!k->has_head && !k->r->rows))
        return;
    if (!k->has_head)
        (void)mo_fail(&why, MO_EPROTO,
                      MO_AUDIT_FILE_HEAD
                      " is missing, which says where it ends");
    else
        (void)mo_fail(&why, MO_EPROTO,
                      "rows after %llu are missing, up to %llu",
                      (unsigned long long)k->r->last,
                      (unsigned long long)k->head.last.seq);
    found(k, &why);
}

static int look_at_all(struct look *k, const char *dir, struct mo_err *e)
{
    mo_autofree char(*names)[64] = mo_alloc(FILES_MAX * sizeof(*names));
    char path[PATH_MAX];
    size_t n = 0;
    int rc = names ? mo_audit_file_files(dir, names, FILES_MAX, &n, e)
                   : mo_fail(e, MO_ENOMEM, "out of memory");

    k->has_head = rc == 0 && mo_audit_file_head(dir, &k->head, e) == 0;
    for (size_t i = 0; rc == 0 && k->r->ok && i < n; i++) {
        int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

        if (len < 0 || (size_t)len >= sizeof(path))
            return mo_fail(e, MO_ETOOBIG, "%s is too long", dir);
        rc = look_at(k, path, names[i], i + 1 == n ? dir : NULL, e);
    }
    if (rc == 0)
        check_end(k);
    return rc;
}

int mo_audit_file_verify(const char *dir, const char *file,
                         struct mo_audit_file_report *r, struct mo_err *e)
{
    struct look k = {.r = r};
    const char *slash = file ? strrchr(file, '/') : NULL;

    *r = (struct mo_audit_file_report){.ok = true};
    mo_chain_init(&k.chain);
    k.chain.open = true; /* older files may have been taken away */
    if (file)
        return look_at(&k, file, slash ? slash + 1 : file, NULL, e);
    return look_at_all(&k, dir, e);
}

int mo_audit_file_put_report(const struct mo_audit_file_report *r,
                             struct mo_buf *out)
{
    struct mo_jw w;

    mo_jw_init(&w, out);
    mo_jw_obj(&w);
    mo_jw_key(&w, "ok");
    mo_jw_bool(&w, r->ok);
    mo_jw_key(&w, "rows");
    mo_jw_u64(&w, r->rows);
    mo_jw_key(&w, "first");
    mo_jw_u64(&w, r->first);
    mo_jw_key(&w, "last");
    mo_jw_u64(&w, r->last);
    mo_jw_key(&w, "files");
    mo_jw_u64(&w, r->files);
    if (!r->ok) {
        mo_jw_key(&w, "file");
        mo_jw_cstr(&w, r->file);
        mo_jw_key(&w, "line");
        mo_jw_u64(&w, r->line);
        mo_jw_key(&w, "why");
        mo_jw_cstr(&w, r->why.msg);
    }
    mo_jw_end(&w);
    return mo_buf_err(out);
}
