/* audit_verify.c - verifies the files of the audit log; see audit_file.h. */
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

struct verify {
    struct mo_audit_file_report *r;
    struct mo_hmac key;
    struct mo_chain chain;
    struct mo_audit_file_mark head;
    struct mo_err bad_head; /* its MAC is wrong */
    bool has_key, has_head, met_head;
    const struct mo_audit_witness *witness; /* the next one */
    size_t nwitness;
};

static void read_head(struct verify *k, const char *dir)
{
    struct mo_err e;
    int rc = mo_audit_file_head(dir, k->has_key ? &k->key : NULL, &k->head, &e);

    k->has_head = rc == 0;
    mo_err_clear(&k->bad_head);
    if (rc == MO_EPROTO)
        k->bad_head = e;
}

/* A witness of a row that is not kept any more says nothing. */
static int check_witnesses(struct verify *k, struct mo_err *e)
{
    for (; k->nwitness && k->witness->seq <= k->chain.seq;
         k->witness++, k->nwitness--) {
        if (k->witness->seq < k->chain.seq ||
            strcmp(k->witness->hash, k->chain.hash) == 0)
            continue;
        return mo_fail(e, MO_EPROTO,
                       "row %llu is not the one that %s remembers",
                       (unsigned long long)k->chain.seq, k->witness->by);
    }
    return 0;
}

/* The row with the head's number must have its hash. Rows after it are newer
 * than the head. */
static int check_head(struct verify *k, struct mo_err *e)
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

static int check_line(struct verify *k, struct mo_span line, struct mo_err *e)
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
    rc = check_head(k, e);
    return rc < 0 ? rc : check_witnesses(k, e);
}

static int check_bytes(struct verify *k, struct mo_frame *f, struct mo_span in,
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

/* Rows have no raw CR. The frame parser would drop one before an LF, so it is
 * checked here. */
static bool has_cr(struct mo_span s)
{
    return mo_span_find(s, '\r') >= 0;
}

/* Checks `size` bytes only: a group may be written after them. */
static int check_file(struct verify *k, int fd, uint64_t size, struct mo_err *e)
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
            rc = mo_fail(e, MO_EPROTO,
                         "the file became shorter while it was read");
        else if (has_cr(mo_span(step, (size_t)n)))
            rc = mo_fail(e, MO_EPROTO,
                         "a CR byte, which is never written to the log");
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

/* Reads size and head under the lock, so that no group is half written. */
static uint64_t read_size_and_head(struct verify *k, int fd, const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    mo_autofd int lock = -1;

    if (dir) {
        (void)snprintf(path, sizeof(path), "%s/" MO_AUDIT_FILE_HEAD, dir);
        lock = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        if (lock >= 0)
            (void)flock(lock, LOCK_SH);
        read_head(k, dir);
        if (k->head.last.seq > k->chain.seq)
            k->met_head = false;
    }
    if (fstat(fd, &st) < 0)
        st.st_size = 0;
    return (uint64_t)st.st_size;
}

static int verify_file(struct verify *k, const char *path, const char *name,
                       const char *dir, struct mo_err *e)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat st;

    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "%s: not a regular file", path);
    (void)snprintf(k->r->file, sizeof(k->r->file), "%s", name);
    k->r->line = 0;
    k->r->files++;
    k->r->ok =
        check_file(k, fd, read_size_and_head(k, fd, dir), &k->r->why) == 0;
    return 0;
}

static int check_end_head(const struct verify *k, struct mo_err *e)
{
    if (k->bad_head.code)
        return mo_fail(e, MO_EPROTO, "%s", k->bad_head.msg);
    if (!k->has_head && !k->r->files && !k->has_key)
        return mo_fail(e, MO_EPROTO,
                       "there is no log: nothing was written yet, or it was "
                       "removed");
    if (!k->has_head)
        return mo_fail(e, MO_EPROTO,
                       MO_AUDIT_FILE_HEAD
                       " is missing, so the last row is unknown");
    if (!k->met_head && k->r->last != k->head.last.seq)
        return mo_fail(e, MO_EPROTO, "rows after %llu are missing, up to %llu",
                       (unsigned long long)k->r->last,
                       (unsigned long long)k->head.last.seq);
    if (k->has_key && !k->head.keyed)
        return mo_fail(e, MO_EPROTO,
                       MO_AUDIT_FILE_HEAD " has no MAC, but the log has a key");
    return 0;
}

/* Rows may be missing at the end: the head or a witness knows. */
static void check_end(struct verify *k)
{
    struct mo_err *e = &k->r->why;

    if (!k->r->ok)
        return;
    k->r->ok = check_end_head(k, e) == 0;
    if (k->r->ok && k->nwitness)
        k->r->ok =
            mo_fail(e, MO_EPROTO,
                    "rows after %llu are missing: %s remembers row %llu",
                    (unsigned long long)k->r->last,
                    k->witness[k->nwitness - 1].by,
                    (unsigned long long)k->witness[k->nwitness - 1].seq) == 0;
}

static int verify_all(struct verify *k, const char *dir, struct mo_err *e)
{
    mo_autofree char(*names)[64] = mo_alloc(FILES_MAX * sizeof(*names));
    char path[PATH_MAX];
    size_t n = 0;
    int rc = names ? mo_audit_file_files(dir, names, FILES_MAX, &n, e)
                   : mo_fail(e, MO_ENOMEM, "out of memory");

    if (rc == 0)
        read_head(k, dir);
    for (size_t i = 0; rc == 0 && k->r->ok && i < n; i++) {
        int len = snprintf(path, sizeof(path), "%s/%s", dir, names[i]);

        if (len < 0 || (size_t)len >= sizeof(path))
            return mo_fail(e, MO_ETOOBIG, "%s is too long", dir);
        rc = verify_file(k, path, names[i], i + 1 == n ? dir : NULL, e);
    }
    if (rc == 0)
        check_end(k);
    return rc;
}

int mo_audit_file_verify_with(const char *dir, const char *file,
                              const struct mo_audit_witness *v, size_t n,
                              struct mo_audit_file_report *r, struct mo_err *e)
{
    struct verify k = {.r = r, .witness = v, .nwitness = n};
    const char *slash = file ? strrchr(file, '/') : NULL;
    int rc = mo_audit_file_key(dir, false, &k.key, e);

    *r = (struct mo_audit_file_report){.ok = true};
    if (rc < 0 && rc != MO_ENOTFOUND)
        return rc;
    k.has_key = rc == 0;
    mo_chain_init(&k.chain, k.has_key ? &k.key : NULL);
    k.chain.open = true; /* older files may have been removed */
    if (file)
        rc = verify_file(&k, file, slash ? slash + 1 : file, NULL, e);
    else
        rc = verify_all(&k, dir, e);
    explicit_bzero(&k.key, sizeof(k.key));
    return rc;
}

int mo_audit_file_verify(const char *dir, const char *file,
                         struct mo_audit_file_report *r, struct mo_err *e)
{
    return mo_audit_file_verify_with(dir, file, NULL, 0, r, e);
}

int mo_audit_file_put_report(const struct mo_audit_file_report *r,
                             struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_bool(&w, "ok", r->ok);
    mo_jw_member_u64(&w, "rows", r->rows);
    mo_jw_member_u64(&w, "first", r->first);
    mo_jw_member_u64(&w, "last", r->last);
    mo_jw_member_u64(&w, "files", r->files);
    if (!r->ok) {
        mo_jw_member(&w, "file", mo_span_cstr(r->file));
        mo_jw_member_u64(&w, "line", r->line);
        mo_jw_member(&w, "why", mo_span_cstr(r->why.msg));
    }
    mo_jw_end(&w);
    return mo_buf_err(out);
}
