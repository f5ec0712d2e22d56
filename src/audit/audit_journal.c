#include "audit/audit_journal.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "audit/audit_file.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rand.h"
#include "codec/json/json.h"

#define PREFIX   "audit.open-"
#define ID_BYTES 9 /* random */
#define NAME_LEN (sizeof(PREFIX) - 1 + 2 * (size_t)ID_BYTES)
#define LEFT_MAX ((size_t)64 * 1024 * 1024)
#define TAIL                                                                   \
    ",\"outcome\":\"unknown\",\"reason\":\"the program ended before the call " \
    "did\"}"

struct mo_audit_open {
    struct mo_list node;
    uint64_t no, group; /* group 0: its outcome is not in the log */
    size_t n;
    char members[];
};

void mo_audit_journal_init(struct mo_audit_journal *j, const char *dir)
{
    *j = (struct mo_audit_journal){.dir = dir, .fd = -1};
    mo_list_init(&j->open);
    mo_buf_init(&j->line, MO_AUDIT_FILE_QUEUE);
}

static int path_of(char out[PATH_MAX], const char *dir, const char *name,
                   const char *more, struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s%s", dir, name, more);

    if (n < 0 || n >= PATH_MAX)
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    return 0;
}

void mo_audit_journal_fini(struct mo_audit_journal *j)
{
    char path[PATH_MAX];
    struct mo_err e;

    if (mo_list_empty(&j->open) && j->name[0] &&
        path_of(path, j->dir, j->name, "", &e) == 0)
        (void)unlink(path);
    mo_list_drain (o, &j->open, struct mo_audit_open, node)
        mo_free(o);
    mo_close_fd(&j->fd);
    mo_buf_fini(&j->line);
}

/* --- the file ------------------------------------------------------------ */

static void make_name(struct mo_audit_journal *j)
{
    unsigned char id[ID_BYTES];

    mo_random(id, sizeof(id));
    memcpy(j->name, PREFIX, sizeof(PREFIX));
    mo_hex(id, sizeof(id), j->name + sizeof(PREFIX) - 1);
}

static void put_open(struct mo_buf *b, const struct mo_audit_open *o)
{
    (void)mo_buf_u64(b, o->no);
    (void)mo_buf_putc(b, ' ');
    (void)mo_buf_put(b, o->members, o->n);
    (void)mo_buf_putc(b, '\n');
}

/* Writes a file with the open calls and puts it in the place of the old one.
 * It is locked before it has its name: nobody takes it for a dead one. */
static int renew_file(struct mo_audit_journal *j, struct mo_err *e)
{
    char path[PATH_MAX], beside[PATH_MAX];
    mo_autofd int fd = -1;
    int rc;

    if (!j->name[0])
        make_name(j);
    if (path_of(path, j->dir, j->name, "", e) < 0 ||
        path_of(beside, j->dir, j->name, ".new", e) < 0)
        return e->code;
    fd =
        open(beside, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return mo_fail_sys(e, "%s", beside);
    mo_buf_reset(&j->line);
    mo_list_each_entry (o, &j->open, struct mo_audit_open, node)
        put_open(&j->line, o);
    rc = mo_buf_err(&j->line)
             ? mo_fail(e, mo_buf_err(&j->line), "too many calls are open")
             : mo_file_write_all(fd, mo_buf_view(&j->line), e);
    if (rc == 0 && rename(beside, path) < 0)
        rc = mo_fail_sys(e, "%s", path);
    if (rc < 0)
        return rc;
    mo_close_fd(&j->fd);
    j->fd = mo_take_fd(&fd);
    j->size = j->line.len;
    return 0;
}

/* All or nothing: a partial line is overwritten by the next one, and ignored
 * by readers because it has no LF. */
static int write_line(struct mo_audit_journal *j, struct mo_err *e)
{
    ssize_t n;

    if (mo_buf_err(&j->line))
        return mo_fail(e, mo_buf_err(&j->line), "the row is too big");
    n = pwrite(j->fd, j->line.p, j->line.len, (off_t)j->size);
    if (n != (ssize_t)j->line.len) {
        int rc = n < 0 ? mo_fail_sys(e, "%s/%s", j->dir, j->name)
                       : mo_fail(e, MO_EIO, "%s/%s: the disk is full", j->dir,
                                 j->name);

        if (n > 0)
            (void)!ftruncate(j->fd, (off_t)j->size);
        return rc;
    }
    j->size += (uint64_t)n;
    return 0;
}

static int prepare_file(struct mo_audit_journal *j, struct mo_err *e)
{
    int rc = 0;

    if (j->fd >= 0 && j->size < MO_AUDIT_JOURNAL_MAX)
        return 0;
    if (j->fd >= 0 && mo_list_empty(&j->open)) {
        j->size = 0;
        return ftruncate(j->fd, 0) < 0 ? mo_fail_sys(e, "%s", j->name) : 0;
    }
    if (j->fd < 0)
        rc = mo_file_mkdir(j->dir, e);
    return rc < 0 ? rc : renew_file(j, e);
}

/* --- calls --------------------------------------------------------------- */

int mo_audit_journal_begin(struct mo_audit_journal *j, struct mo_span members,
                           struct mo_audit_open **out, struct mo_err *e)
{
    int rc = prepare_file(j, e);
    struct mo_audit_open *o = NULL;

    if (rc == 0 && mo_span_find(members, '\n') >= 0)
        rc = mo_fail(e, MO_EINVAL, "a row is one line");
    if (rc < 0)
        return rc;
    o = mo_alloc(sizeof(*o) + members.n);
    if (!o)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *o = (struct mo_audit_open){.no = j->last + 1, .n = members.n};
    memcpy(o->members, members.p, members.n);
    mo_buf_reset(&j->line);
    put_open(&j->line, o);
    rc = write_line(j, e);
    if (rc < 0) {
        mo_free(o);
        return rc;
    }
    j->last++;
    mo_list_push(&j->open, &o->node);
    *out = o;
    return 0;
}

void mo_audit_journal_end(struct mo_audit_open *o, uint64_t group)
{
    o->group = group;
}

void mo_audit_journal_written(struct mo_audit_journal *j, uint64_t group)
{
    struct mo_err e;

    mo_buf_reset(&j->line);
    mo_list_each_entry_safe (o, &j->open, struct mo_audit_open, node) {
        if (!o->group || o->group > group)
            continue;
        (void)mo_buf_putc(&j->line, '-');
        (void)mo_buf_u64(&j->line, o->no);
        (void)mo_buf_putc(&j->line, '\n');
        mo_list_del(&o->node);
        mo_free(o);
    }
    if (j->line.len)
        (void)write_line(j, &e); /* else there may be a second row */
}

/* --- files of dead processes --------------------------------------------- */

/* Locks the file; -1: its process lives. */
static int lock_left(const char *dir, const char *name)
{
    mo_autofd int fd = -1;
    char path[PATH_MAX];
    struct mo_err e;

    if (path_of(path, dir, name, "", &e) == 0)
        fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return -1;
    return mo_take_fd(&fd);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* The numbers of the calls that have ended, sorted; one per line at most. */
static size_t find_ended(struct mo_span rest, uint64_t *v)
{
    size_t n = 0;

    while (mo_span_find(rest, '\n') >= 0) {
        struct mo_span line = mo_span_cut(&rest, '\n');

        if (mo_span_strip(&line, MO_SPAN("-")) && mo_span_u64(line, &v[n]) == 0)
            n++;
    }
    qsort(v, n, sizeof(*v), compare_numbers);
    return n;
}

/* Only whole rows: the file may have been damaged. */
static void put_left(struct mo_span members, struct mo_buf *out)
{
    mo_autobuf struct mo_buf b = {.max = members.n + 256};
    struct mo_json_doc d;

    (void)mo_buf_putc(&b, '{');
    (void)mo_buf_span(&b, members);
    (void)mo_buf_putc(&b, '}');
    if (mo_buf_err(&b) || mo_json_parse(mo_buf_view(&b), 0, &d, NULL) < 0 ||
        !mo_json_is(mo_json_get(d.root, "what"), MO_JSON_OBJECT) ||
        members.p[members.n - 1] != '}')
        return;
    (void)mo_buf_span(out, mo_span_head(members, members.n - 1));
    (void)mo_buf_puts(out, TAIL "\n");
}

static void put_all_left(struct mo_span rest, struct mo_buf *out)
{
    mo_autofree uint64_t *ended = mo_alloc((rest.n / 2 + 1) * sizeof(*ended));
    size_t n = ended ? find_ended(rest, ended) : 0;

    while (mo_span_find(rest, '\n') >= 0) {
        struct mo_span line = mo_span_cut(&rest, '\n');
        struct mo_span head = mo_span_cut(&line, ' ');
        uint64_t no = 0;

        if (mo_span_u64(head, &no) == 0 && line.n &&
            (n == 0 || !bsearch(&no, ended, n, sizeof(no), compare_numbers)))
            put_left(line, out);
    }
}

static void read_left(int fd, struct mo_buf *out)
{
    mo_autobuf struct mo_buf text = {.max = LEFT_MAX + 1};
    struct stat st;
    char *room;
    ssize_t n;

    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        (uint64_t)st.st_size > LEFT_MAX)
        return;
    room = mo_buf_room(&text, (size_t)st.st_size + 1);
    n = room ? pread(fd, room, (size_t)st.st_size, 0) : 0;
    if (n > 0)
        put_all_left(mo_span(room, (size_t)n), out);
}

static bool is_journal(const char *name)
{
    return strlen(name) == NAME_LEN &&
           strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0;
}

void mo_audit_journal_find(const char *dir, struct mo_audit_left *l,
                           struct mo_buf *out)
{
    DIR *d = opendir(dir);

    l->dir = dir;
    l->n = 0;
    if (!d)
        return;
    for (struct dirent *x = readdir(d); x && l->n < MO_AUDIT_LEFT_MAX;
         x = readdir(d)) {
        int fd = is_journal(x->d_name) ? lock_left(dir, x->d_name) : -1;

        if (fd < 0)
            continue;
        read_left(fd, out);
        l->v[l->n].fd = fd;
        (void)snprintf(l->v[l->n++].name, sizeof(l->v[0].name), "%.63s",
                       x->d_name);
    }
    (void)closedir(d);
}

void mo_audit_journal_remove(struct mo_audit_left *l)
{
    char path[PATH_MAX];
    struct mo_err e;

    for (size_t i = 0; i < l->n; i++)
        if (path_of(path, l->dir, l->v[i].name, "", &e) == 0)
            (void)unlink(path);
}

void mo_audit_journal_leave(struct mo_audit_left *l)
{
    for (size_t i = 0; i < l->n; i++)
        mo_close_fd(&l->v[i].fd);
    l->n = 0;
}
