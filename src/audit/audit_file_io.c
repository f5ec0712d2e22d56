/* audit_file_io.c - appends a group of rows to the file, on the worker thread;
 * see audit_file.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit_anchor.h"
#include "audit/audit_file.h"
#include "audit/audit_journal.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rand.h"

#define TRIES       8 /* names for a rotated file */
#define TAIL_STEP   ((size_t)64 * 1024)
#define HEAD_BODY   (2 * (20 + 1) + MO_CHAIN_HEX) /* numbers, hash */
#define HEAD_OLD    (HEAD_BODY + 1)               /* and LF: without a MAC */
#define HEAD_LEN    (HEAD_BODY + 1 + MO_CHAIN_HEX + 1)
#define KEY_LEN     MO_SHA256_LEN
#define KEY_TEXT    ((size_t)2 * KEY_LEN)
#define ANCHOR_ROWS 1000
#define ANCHOR_NS   ((uint64_t)60 * 1000 * MO_MS)
#define OLD_NAME    "audit-%020llu%s.jsonl"

static int make_path(char out[PATH_MAX], const char *dir, const char *name,
                     struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    if (n < 0 || n >= PATH_MAX)
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    return 0;
}

void mo_audit_file_file_close(struct mo_audit_file_file *f)
{
    mo_close_fd(&f->fd);
    mo_close_fd(&f->head);
    explicit_bzero(&f->key, sizeof(f->key));
}

/* --- the key ------------------------------------------------------------- */

static int create_key(const char *path, struct mo_err *e)
{
    unsigned char key[KEY_LEN];
    char text[KEY_TEXT + 1];
    int rc;

    mo_random(key, sizeof(key));
    mo_hex(key, sizeof(key), text);
    text[KEY_TEXT] = '\n'; /* in place of the NUL */
    rc = mo_file_create(path, mo_span(text, sizeof(text)), e);
    explicit_bzero(text, sizeof(text));
    explicit_bzero(key, sizeof(key));
    return rc;
}

static int parse_key(const char *path, struct mo_span s, struct mo_hmac *out,
                     struct mo_err *e)
{
    unsigned char key[KEY_LEN] = {0};
    bool ok = s.n == KEY_TEXT + 1 && s.p[KEY_TEXT] == '\n';

    for (size_t i = 0; ok && i < KEY_LEN; i++) {
        int hi = mo_hex_digit(s.p[2 * i]), lo = mo_hex_digit(s.p[2 * i + 1]);

        ok = hi >= 0 && lo >= 0;
        key[i] = (unsigned char)(ok ? hi << 4 | lo : 0);
    }
    mo_hmac_init(out, mo_span((const char *)key, sizeof(key)));
    explicit_bzero(key, sizeof(key));
    return ok ? 0
              : mo_fail(e, MO_EPOLICY, "%s does not hold 64 hex digits", path);
}

int mo_audit_file_key(const char *dir, bool make, struct mo_hmac *out,
                      struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = KEY_TEXT + 2};
    struct mo_file_stamp stamp;
    char path[PATH_MAX];
    int rc = make_path(path, dir, MO_AUDIT_FILE_KEY, e);

    if (rc < 0)
        return rc;
    (void)mo_buf_room(&b, b.max); /* no growth, which would leave a copy */
    rc = mo_file_read(path, b.max, &b, &stamp, e);
    if (rc == MO_ENOTFOUND && make) {
        mo_err_clear(e);
        rc = create_key(path, e);
        if (rc == 0)
            rc = mo_file_read(path, b.max, &b, &stamp, e);
    }
    if (rc == 0)
        rc = mo_file_trust(path, &stamp, true, e);
    return rc < 0 ? rc : parse_key(path, mo_buf_view(&b), out, e);
}

/* --- the head ------------------------------------------------------------ */

static int read_number(struct mo_span *s, uint64_t *out)
{
    struct mo_span v = mo_span_cut(s, ' ');

    while (v.n > 1 && v.p[0] == '0')
        v = mo_span_skip(v, 1);
    return mo_span_u64(v, out);
}

static int parse_head(struct mo_span s, struct mo_audit_file_mark *out)
{
    mo_chain_init(&out->last, NULL);
    if (read_number(&s, &out->first) < 0 ||
        read_number(&s, &out->last.seq) < 0 || s.n != MO_CHAIN_HEX)
        return MO_EPROTO;
    memcpy(out->last.hash, s.p, MO_CHAIN_HEX);
    return 0;
}

int mo_audit_file_head(const char *dir, const struct mo_hmac *key,
                       struct mo_audit_file_mark *out, struct mo_err *e)
{
    char path[PATH_MAX], text[HEAD_LEN + 1], mac[MO_CHAIN_HEX + 1];
    mo_autofd int fd = -1;
    ssize_t n = -1;

    if (make_path(path, dir, MO_AUDIT_FILE_HEAD, e) < 0)
        return e->code;
    fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd >= 0)
        n = pread(fd, text, sizeof(text), 0);
    if (n <= 0)
        return mo_fail(e, MO_ENOTFOUND, "%s does not exist", path);
    if ((n != (ssize_t)HEAD_OLD && n != (ssize_t)HEAD_LEN) ||
        text[n - 1] != '\n' || parse_head(mo_span(text, HEAD_BODY), out) < 0)
        return mo_fail(e, MO_ENOTFOUND, "%s is incomplete", path);
    out->keyed = n == (ssize_t)HEAD_LEN;
    if (!out->keyed)
        return 0;
    if (key)
        mo_chain_mac(key, mo_span(text, HEAD_BODY), mac);
    if (!key || text[HEAD_BODY] != ' ' ||
        !mo_span_eq_ct(mo_span(text + HEAD_BODY + 1, MO_CHAIN_HEX),
                       mo_span(mac, MO_CHAIN_HEX)))
        return mo_fail(e, MO_EPROTO,
                       MO_AUDIT_FILE_HEAD " was changed, or " MO_AUDIT_FILE_KEY
                                          " was");
    return 0;
}

static int open_head(struct mo_audit_file_file *f, struct mo_err *e)
{
    char path[PATH_MAX];

    if (f->head >= 0)
        return 0;
    if (make_path(path, f->dir, MO_AUDIT_FILE_HEAD, e) < 0)
        return e->code;
    f->head = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    return f->head < 0 ? mo_fail_sys(e, "%s", path) : 0;
}

static int write_head(const struct mo_audit_file_file *f, struct mo_err *e)
{
    char text[HEAD_LEN + 1];
    char mac[MO_CHAIN_HEX + 1];

    (void)snprintf(text, sizeof(text), "%020llu %020llu %s",
                   (unsigned long long)f->first,
                   (unsigned long long)f->chain.seq, f->chain.hash);
    mo_chain_mac(&f->key, mo_span(text, HEAD_BODY), mac);
    (void)snprintf(text + HEAD_BODY, sizeof(text) - HEAD_BODY, " %s\n", mac);
    if (pwrite(f->head, text, HEAD_LEN, 0) != (ssize_t)HEAD_LEN)
        return mo_fail_sys(e, "write %s/" MO_AUDIT_FILE_HEAD, f->dir);
    return 0;
}

/* --- the file ------------------------------------------------------------ */

static int open_file(struct mo_audit_file_file *f, const char *path,
                     struct mo_err *e)
{
    struct stat st;

    f->fd =
        open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (f->fd < 0 || fstat(f->fd, &st) < 0)
        return mo_fail_sys(e, "%s", path);
    if (!S_ISREG(st.st_mode))
        return mo_fail(e, MO_EINVAL, "%s: not a regular file", path);
    f->size = UINT64_MAX; /* not known yet */
    return 0;
}

static bool is_same_file(int fd, const char *path, struct stat *st)
{
    struct stat now;

    return fstat(fd, st) == 0 && stat(path, &now) == 0 &&
           st->st_ino == now.st_ino && st->st_dev == now.st_dev;
}

/* Locks the head, which serves for all files because it is never replaced, and
 * opens the current file if another process has rotated ours. */
static int lock_file(struct mo_audit_file_file *f, const char *path,
                     struct stat *st, struct mo_err *e)
{
    if (open_head(f, e) < 0)
        return e->code;
    while (flock(f->head, LOCK_EX) < 0) {
        if (errno != EINTR)
            return mo_fail_sys(e, "lock %s/" MO_AUDIT_FILE_HEAD, f->dir);
    }
    if (f->fd >= 0 && is_same_file(f->fd, path, st))
        return 0;
    mo_close_fd(&f->fd);
    if (open_file(f, path, e) < 0)
        return e->code;
    return fstat(f->fd, st) < 0 ? mo_fail_sys(e, "%s", path) : 0;
}

static void unlock_file(const struct mo_audit_file_file *f)
{
    if (f->head >= 0)
        (void)flock(f->head, LOCK_UN);
}

/* --- the end of the chain ------------------------------------------------ */

/* Reads the last line of the file; *from is its offset. */
static int read_tail(int fd, uint64_t size, struct mo_buf *b, uint64_t *from,
                     struct mo_err *e)
{
    uint64_t want = TAIL_STEP;

    for (;; want *= 4) {
        uint64_t n = want < size ? want : size;
        ptrdiff_t at = -1;
        char *room;

        mo_buf_reset(b);
        room = mo_buf_room(b, n + 1);
        if (!room)
            return mo_fail(e, mo_buf_err(b), "its last row is too long");
        if (pread(fd, room, n, (off_t)(size - n)) != (ssize_t)n)
            return mo_fail_sys(e, "read");
        mo_buf_add(b, n);
        for (size_t i = n; i-- > 1 && at < 0;)
            if (b->p[i - 1] == '\n' && i < n)
                at = (ptrdiff_t)i;
        if (at < 0 && n < size)
            continue;
        at = at < 0 ? 0 : at;
        *from = size - n + (uint64_t)at;
        mo_buf_drop(b, (size_t)at);
        return 0;
    }
}

static void put_note(struct mo_buf *notes, const char *text)
{
    (void)mo_buf_printf(notes, "\"note\":\"%s\"\n", text);
}

/* Cuts off a partial line that a crash left. */
static int cut_partial_row(struct mo_audit_file_file *f, struct mo_buf *tail,
                           struct mo_buf *notes, struct mo_err *e)
{
    char text[96];
    uint64_t from = 0;

    while (f->size > 0) {
        mo_buf_reset(tail);
        if (read_tail(f->fd, f->size, tail, &from, e) < 0)
            return e->code;
        if (tail->len && tail->p[tail->len - 1] == '\n')
            return 0;
        if (ftruncate(f->fd, (off_t)from) < 0)
            return mo_fail_sys(e, "cut");
        (void)snprintf(text, sizeof(text),
                       "a half written row of %llu bytes was cut off",
                       (unsigned long long)(f->size - from));
        put_note(notes, text);
        f->size = from;
    }
    mo_buf_reset(tail);
    return 0;
}

/* Continues the chain from the head if the file is new or was removed.
 * *floor: the last row that is known to have been written. */
static void resume_head(struct mo_audit_file_file *f, struct mo_chain *floor)
{
    struct mo_audit_file_mark mark = {.first = 1};
    struct mo_err e;

    *floor = f->chain;
    if (f->known.seq > floor->seq) {
        floor->seq = f->known.seq;
        memcpy(floor->hash, f->known.hash, sizeof(floor->hash));
    }
    mo_chain_init(&f->chain, &f->key);
    f->first = 1;
    if (mo_audit_file_head(f->dir, &f->key, &mark, &e) < 0)
        return;
    f->chain.seq = mark.last.seq;
    memcpy(f->chain.hash, mark.last.hash, sizeof(f->chain.hash));
    f->first = mark.first;
    if (mark.keyed && mark.last.seq > floor->seq)
        *floor = f->chain;
}

/* Rows that were written are not in the file: leaves a gap. */
static void skip_missing(struct mo_audit_file_file *f,
                         const struct mo_chain *floor, struct mo_buf *notes)
{
    char text[96];

    if (f->chain.seq >= floor->seq)
        return;
    (void)snprintf(
        text, sizeof(text), "rows %llu to %llu were written and are missing",
        (unsigned long long)f->chain.seq + 1, (unsigned long long)floor->seq);
    put_note(notes, text);
    f->chain.seq = floor->seq;
    memcpy(f->chain.hash, floor->hash, sizeof(f->chain.hash));
}

/* 1: the chain can continue in this file; 0: the file must be renamed. */
static int find_end(struct mo_audit_file_file *f, uint64_t size,
                    struct mo_buf *notes, struct mo_err *e)
{
    mo_autobuf struct mo_buf tail = {.max = MO_AUDIT_FILE_LINE + 1024};
    struct mo_chain floor;
    int rc;

    f->size = size;
    resume_head(f, &floor);
    rc = cut_partial_row(f, &tail, notes, e);
    if (rc == MO_ETOOBIG)
        rc = 0;
    else if (rc == 0)
        rc = tail.len == 0 ||
             mo_chain_resume(&f->chain, mo_span(tail.p, tail.len - 1), e) == 0;
    if (rc >= 0)
        skip_missing(f, &floor, notes);
    return rc;
}

/* --- rotation ------------------------------------------------------------ */

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

static bool is_rotated(const char *name)
{
    size_t n = strlen(name);

    return n > 12 && n < 64 && strncmp(name, "audit-", 6) == 0 &&
           strcmp(name + n - 6, ".jsonl") == 0;
}

int mo_audit_file_files(const char *dir, char (*out)[64], size_t max, size_t *n,
                        struct mo_err *e)
{
    DIR *d = opendir(dir);
    char path[PATH_MAX];
    struct stat st;

    *n = 0;
    if (!d && errno == ENOENT)
        return 0;
    if (!d)
        return mo_fail_sys(e, "%s", dir);
    for (struct dirent *x = readdir(d); x && *n + 1 < max; x = readdir(d))
        if (is_rotated(x->d_name))
            (void)snprintf(out[(*n)++], 64, "%.63s", x->d_name);
    (void)closedir(d);
    qsort(out, *n, 64, compare_names);
    if (make_path(path, dir, MO_AUDIT_FILE_FILE, e) == 0 &&
        stat(path, &st) == 0)
        (void)snprintf(out[(*n)++], 64, "%s", MO_AUDIT_FILE_FILE);
    return 0;
}

#define LISTED 1024

/* The number of the last row of a rotated file, from its name. */
static uint64_t last_row(const char *name)
{
    return strtoull(name + sizeof("audit-") - 1, NULL, 10);
}

static void remove_oldest(struct mo_audit_file_file *f)
{
    mo_autofree char(*names)[64] = mo_alloc(LISTED * sizeof(*names));
    char path[PATH_MAX];
    struct mo_err e;
    size_t n = 0;

    if (!names || mo_audit_file_files(f->dir, names, LISTED, &n, &e) < 0)
        return;
    for (size_t i = 0; i + f->files < n && is_rotated(names[i]); i++) {
        if (make_path(path, f->dir, names[i], &e) < 0 || unlink(path) < 0)
            return;
        f->first = last_row(names[i]) + 1;
    }
}

/* Never replaces a file: a damaged one may have the same name. */
static int link_rotated(const struct mo_audit_file_file *f, const char *path,
                        struct mo_err *e)
{
    unsigned long long seq = f->chain.seq;
    char name[64], old[PATH_MAX];

    (void)snprintf(name, sizeof(name), OLD_NAME, seq, "");
    for (int i = 1; i < TRIES; i++) {
        char again[8];

        if (make_path(old, f->dir, name, e) < 0)
            return e->code;
        if (link(path, old) == 0)
            return 0;
        if (errno != EEXIST)
            break;
        (void)snprintf(again, sizeof(again), ".%d", i);
        (void)snprintf(name, sizeof(name), OLD_NAME, seq, again);
    }
    return mo_fail_sys(e, "rename %s", path);
}

/* Renames the full file; the chain continues in the next one. */
static int rotate_file(struct mo_audit_file_file *f, const char *path,
                       struct mo_err *e)
{
    if (link_rotated(f, path, e) < 0)
        return e->code;
    if (unlink(path) < 0)
        return mo_fail_sys(e, "rename %s", path);
    mo_close_fd(&f->fd);
    remove_oldest(f);
    mo_audit_file_anchor(f);
    return write_head(f, e);
}

/* --- groups -------------------------------------------------------------- */

static int put_rows(struct mo_chain *c, struct mo_span rows, struct mo_buf *out,
                    struct mo_err *e)
{
    while (rows.n) {
        struct mo_span row = mo_span_cut(&rows, '\n');
        int rc = row.n ? mo_chain_put(c, row, out, e) : 0;

        if (rc < 0)
            return rc;
    }
    return 0;
}

/* All or nothing: after a failure the partial group is cut off. */
static int write_rows(struct mo_audit_file_file *f, struct mo_span notes,
                      struct mo_span rows, bool sync, struct mo_err *e)
{
    struct mo_chain next = f->chain;
    mo_autobuf struct mo_buf out = {.max = 3 * MO_AUDIT_FILE_QUEUE};
    int rc;

    rc = put_rows(&next, notes, &out, e);
    if (rc == 0)
        rc = put_rows(&next, rows, &out, e);
    if (rc == 0)
        rc = mo_file_write_all(f->fd, mo_buf_view(&out), e);
    if (rc == 0 && sync && fdatasync(f->fd) < 0)
        rc = mo_fail_sys(e, "sync");
    if (rc == 0) {
        f->chain = next;
        f->size += out.len;
        rc = write_head(f, e);
    } else if (ftruncate(f->fd, (off_t)f->size) < 0) {
        f->size = UINT64_MAX; /* unknown: read again */
    }
    return rc;
}

static int append_group(struct mo_audit_file_file *f, const char *path,
                        struct mo_span rows, bool sync, struct mo_buf *notes,
                        struct mo_err *e)
{
    struct stat st = {.st_size = 0};
    int rc = lock_file(f, path, &st, e);

    if (rc < 0) {
        unlock_file(f);
        return rc;
    }
    rc = (uint64_t)st.st_size == f->size
             ? 1
             : find_end(f, (uint64_t)st.st_size, notes, e);
    if (rc == 0) {
        put_note(notes, "the file before this one cannot be continued");
        rc = rotate_file(f, path, e);
        if (rc == 0)
            rc = lock_file(f, path, &st, e);
        f->size = 0;
    }
    if (rc >= 0)
        rc = write_rows(f, mo_buf_view(notes), rows, sync, e);
    if (rc == 0 && f->size >= f->max)
        rc = rotate_file(f, path, e);
    unlock_file(f);
    return rc;
}

static int prepare(struct mo_audit_file_file *f, struct mo_err *e)
{
    int rc = f->has_key ? 0 : mo_file_mkdir(f->dir, e);

    if (rc == 0 && !f->has_key)
        rc = mo_audit_file_key(f->dir, true, &f->key, e);
    if (rc < 0)
        return rc;
    if (!f->has_key)
        mo_chain_init(&f->chain, &f->key);
    f->has_key = true;
    if (f->known.seq > f->chain.seq)
        f->size = UINT64_MAX; /* look at the end again */
    return 0;
}

void mo_audit_file_anchor(struct mo_audit_file_file *f)
{
    struct mo_audit_witness w = {.seq = f->chain.seq};

    if (!f->anchor[0] || !f->has_key || f->anchored == f->chain.seq)
        return;
    memcpy(w.hash, f->chain.hash, sizeof(w.hash));
    if (mo_audit_anchor_put(f->anchor, f->dir, &w) == 0)
        f->anchored = f->chain.seq;
    f->anchored_ns = mo_now_ns();
}

static bool is_anchor_due(const struct mo_audit_file_file *f)
{
    return f->chain.seq - f->anchored >= ANCHOR_ROWS ||
           mo_now_ns() - f->anchored_ns >= ANCHOR_NS;
}

int mo_audit_file_append(struct mo_audit_file_file *f, struct mo_span rows,
                         bool sync, struct mo_err *e)
{
    char path[PATH_MAX];
    mo_autobuf struct mo_buf all = {.max = 2 * MO_AUDIT_FILE_QUEUE};
    mo_autobuf struct mo_buf notes = {.max = 4096};
    int rc = make_path(path, f->dir, MO_AUDIT_FILE_FILE, e);
    struct mo_audit_left left = {.n = 0};

    if (rc == 0)
        rc = prepare(f, e);
    if (rc < 0)
        return rc;
    if (!f->looked) {
        mo_audit_journal_find(f->dir, &left, &all);
        (void)mo_buf_span(&all, rows);
        rows = mo_buf_err(&all) ? rows : mo_buf_view(&all);
    }
    rc = append_group(f, path, rows, sync, &notes, e);
    if (rc == 0 && !f->looked && mo_buf_err(&all) == 0)
        mo_audit_journal_remove(&left);
    mo_audit_journal_leave(&left);
    f->looked |= rc == 0;
    if (rc < 0)
        f->size = UINT64_MAX;
    else if (is_anchor_due(f))
        mo_audit_file_anchor(f);
    return rc < 0 ? mo_wrap(e, "%s", path) : 0;
}
