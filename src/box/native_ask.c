/* native_ask.c - queries about all native boxes: list, remove, check; and which
 * program of a box opened a connection.
 *
 * Each is a job for a worker thread: keepers are found by their sockets and
 * asked one after the other. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "box/native_priv.h"
#include "codec/kept_files.h"

#define ROWS_MEMORY ((size_t)4 * 1024 * 1024)
#define NAMES_MAX   (2 * MO_BOX_PART_MAX)

struct query {
    struct mo_job job;
    struct native *d;
    struct mo_arena arena;
    struct mo_box_row *rows;
    size_t n;
    char id[MO_BOXREQ_ID_MAX + 1];
    struct mo_buf frame; /* check: a request to start */
    struct mo_boxes_ready ready;
    bool kept; /* rows are workspaces: */
    char from[MO_BOXREQ_ID_MAX + 1], next[MO_BOXREQ_ID_MAX + 1]; /* or "" */
    int rc;
    struct mo_err err;
    /* who waits for the result: one of these */
    mo_box_rows_fn *on_rows;
    mo_done_fn *on_removed;
    mo_boxes_ready_fn *on_ready;
    void *ctx;
};

static void query_free(struct query *q)
{
    mo_arena_fini(&q->arena);
    mo_buf_fini(&q->frame);
    mo_free(q);
}

/* On the loop: workspaces of boxes that this process uses are left out. */
static void leave_used(struct query *q)
{
    size_t n = 0;

    for (size_t i = 0; i < q->n; i++)
        if (!mo_boxes_use(&q->d->bs, q->rows[i].id))
            q->rows[n++] = q->rows[i];
    q->n = n;
}

static void query_done(struct mo_job *j, bool canceled)
{
    struct query *q = mo_container_of(j, struct query, job);
    const struct mo_err *why = NULL;

    if (canceled)
        q->rc = mo_fail(&q->err, MO_ECANCELED, "the program is ending");
    if (q->rc)
        why = &q->err;
    if (q->kept)
        leave_used(q);
    if (q->on_rows)
        q->on_rows(q->ctx,
                   &(struct mo_box_rows){.v = q->rows,
                                         .n = why ? 0 : q->n,
                                         .next = q->next[0] ? q->next : NULL},
                   why);
    else if (q->on_removed)
        q->on_removed(q->ctx, why);
    else
        q->on_ready(q->ctx, &q->ready);
    query_free(q);
}

static struct query *query_new(struct mo_boxes *bs,
                               void (*run)(struct mo_job *), void *ctx,
                               struct mo_err *e)
{
    struct query *q = mo_new(struct query);

    if (q == NULL)
        return mo_null(mo_fail(e, MO_ENOMEM, "box: out of memory"));
    q->d = native_of(bs);
    q->ctx = ctx;
    mo_arena_init(&q->arena, ROWS_MEMORY);
    mo_buf_init(&q->frame, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    mo_job_init(&q->job, run, query_done);
    return q;
}

static int query_go(struct query *q, struct mo_err *e)
{
    int rc = mo_native_submit(q->d, &q->job, e);

    if (rc < 0)
        query_free(q);
    return rc;
}

static int keep_row(struct query *q, const struct mo_boxdesc *d)
{
    struct mo_box_row *r = &q->rows[q->n];
    const char *from[] = {d->id, d->session, d->instance, d->policy};
    char *to[MO_COUNT(from)];

    if (strcmp(d->store, q->d->store) != 0)
        return 0;
    for (size_t i = 0; i < MO_COUNT(from); i++) {
        to[i] = mo_arena_strndup(&q->arena, from[i], strlen(from[i]));
        if (to[i] == NULL)
            return mo_fail(&q->err, MO_ENOMEM, "box: too many boxes");
    }
    *r = (struct mo_box_row){
        .id = to[0],
        .session = to[1],
        .instance = to[2],
        .policy = to[3],
        .expires = d->expires,
        .started = d->started,
        .running = d->state != MO_BOX_HAS_ENDED,
        .paused = d->state == MO_BOX_IS_FROZEN,
        .warm = d->session[0] == '\0',
    };
    q->n++;
    return 0;
}

/* Reports dead keepers. A keeper that does not answer or is of another version
 * is left out: it ends by itself when its time is up. */
static int describe_box(struct query *q, const char *id, bool *dead)
{
    struct mo_keeper_answer a;
    mo_autofd int sock = -1;
    int rc = mo_keeper_connect(q->d->dir, id, &sock, NULL);

    if (rc == MO_ECLOSED)
        *dead = true;
    if (rc < 0 || mo_keeper_ask(sock, MO_BOXMSG_DESCRIBE, &a, NULL) < 0)
        return 0;
    if (a.m.type == MO_BOXMSG_DESC && q->n < MO_BOX_MAX)
        rc = keep_row(q, &a.m.u.desc);
    mo_keeper_drop(&a);
    return rc;
}

static void run_list(struct mo_job *j)
{
    struct query *q = mo_container_of(j, struct query, job);
    DIR *dir = opendir(q->d->dir);
    bool dead = false;

    q->rows = mo_arena_zalloc(&q->arena, MO_BOX_MAX * sizeof(*q->rows));
    if (!dir) {
        q->rc = mo_fail_sys(&q->err, "%s", q->d->dir);
        return;
    }
    if (!q->rows)
        q->rc = mo_fail(&q->err, MO_ENOMEM, "box: out of memory");
    while (q->rc == 0) {
        struct dirent *en = readdir(dir);
        struct mo_span name;

        if (!en)
            break;
        name = mo_span_cstr(en->d_name);
        if (!mo_span_ends(name, MO_SPAN(".sock")) ||
            name.n - 5 > MO_BOXREQ_ID_MAX)
            continue;
        (void)snprintf(q->id, sizeof(q->id), "%.*s", (int)(name.n - 5),
                       en->d_name);
        q->rc = describe_box(q, q->id, &dead);
    }
    closedir(dir);
    if (dead)
        (void)mo_keeper_sweep(q->d->launcher, q->d->dir, NULL);
}

/* MO_BOX_MAX boxes are one part. */
int mo_native_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e)
{
    struct query *q = query_new(bs, run_list, ctx, e);

    (void)from;
    if (q == NULL)
        return MO_ENOMEM;
    q->on_rows = done;
    return query_go(q, e);
}

/* --- kept workspaces ------------------------------------------------------ */

/* A file with the label of another store, or without a head, is not ours. */
static int keep_files_row(struct query *q, int dir, const char *id)
{
    char name[MO_BOXREQ_ID_MAX + 16];
    mo_autofd int fd = -1;
    char room[MO_KEPT_HEAD];
    struct mo_span in;
    struct mo_kept_head h;
    struct mo_box_row *r = &q->rows[q->n];
    ssize_t n;

    (void)snprintf(name, sizeof(name), "%s" MO_NATIVE_FILES, id);
    fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    n = fd < 0 ? -1 : pread(fd, room, sizeof(room), 0);
    in = mo_span(room, n < 0 ? 0 : (size_t)n);
    if (mo_kept_take_head(&in, &h, NULL) != 1 ||
        !mo_span_is(h.store, q->d->store))
        return 0;
    *r = (struct mo_box_row){
        .id = mo_arena_strndup(&q->arena, id, strlen(id)),
        .session = mo_arena_strndup(&q->arena, h.session.p, h.session.n),
        .instance = mo_arena_strndup(&q->arena, h.instance.p, h.instance.n),
        .policy = "",
    };
    if (!r->id || !r->session || !r->instance)
        return mo_fail(&q->err, MO_ENOMEM, "box: too many workspaces");
    q->n++;
    return 0;
}

typedef char kept_name[MO_BOXREQ_ID_MAX + 1];

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* The first names in order, as many as a part has. True if some were left
 * out. */
static bool keep_first(kept_name *v, size_t *n)
{
    qsort(v, *n, sizeof(*v), compare_names);
    if (*n <= MO_BOX_PART_MAX)
        return false;
    *n = MO_BOX_PART_MAX;
    return true;
}

/* The part of the names in the directory that follows q->from. However many
 * there are, NAMES_MAX are in memory. */
static size_t read_names(struct query *q, DIR *dir, kept_name *v)
{
    const size_t tail = strlen(MO_NATIVE_FILES);
    bool more = false;
    size_t n = 0;

    for (;;) {
        struct dirent *en = readdir(dir);
        struct mo_span name;

        if (!en)
            break;
        name = mo_span_cstr(en->d_name);
        if (!mo_span_ends(name, MO_SPAN(MO_NATIVE_FILES)) ||
            name.n - tail > MO_BOXREQ_ID_MAX)
            continue;
        (void)snprintf(v[n], sizeof(v[n]), "%.*s", (int)(name.n - tail),
                       en->d_name);
        if (strcmp(v[n], q->from) > 0 && ++n == NAMES_MAX)
            more |= keep_first(v, &n);
    }
    more |= keep_first(v, &n);
    if (more)
        (void)snprintf(q->next, sizeof(q->next), "%s", v[n - 1]);
    return n;
}

static void run_files(struct mo_job *j)
{
    struct query *q = mo_container_of(j, struct query, job);
    DIR *dir = opendir(q->d->dir);
    kept_name *names = mo_arena_zalloc(&q->arena, NAMES_MAX * sizeof(*names));
    size_t n;

    q->rows = mo_arena_zalloc(&q->arena, MO_BOX_PART_MAX * sizeof(*q->rows));
    if (!dir)
        q->rc = mo_fail_sys(&q->err, "%s", q->d->dir);
    else if (!names || !q->rows)
        q->rc = mo_fail(&q->err, MO_ENOMEM, "box: out of memory");
    n = q->rc == 0 ? read_names(q, dir, names) : 0;
    for (size_t i = 0; q->rc == 0 && i < n; i++)
        q->rc = keep_files_row(q, dirfd(dir), names[i]);
    if (dir)
        closedir(dir);
}

int mo_native_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                    void *ctx, struct mo_err *e)
{
    struct query *q = query_new(bs, run_files, ctx, e);

    if (q == NULL)
        return MO_ENOMEM;
    q->on_rows = done;
    q->kept = true;
    (void)snprintf(q->from, sizeof(q->from), "%s", from ? from : "");
    return query_go(q, e);
}

static void run_forget(struct mo_job *j)
{
    struct query *q = mo_container_of(j, struct query, job);
    mo_autofd int dir = open(q->d->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[sizeof(q->id) + 16];

    (void)snprintf(name, sizeof(name), "%s" MO_NATIVE_FILES, q->id);
    if (dir < 0 || (unlinkat(dir, name, 0) < 0 && errno != ENOENT))
        q->rc = mo_fail_sys(&q->err, "kept files %s", q->id);
}

int mo_native_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                     void *ctx, struct mo_err *e)
{
    struct query *q = query_new(bs, run_forget, ctx, e);

    if (q == NULL)
        return MO_ENOMEM;
    q->on_removed = done;
    if (!mo_boxreq_id_ok(files)) {
        query_free(q);
        return mo_fail(e, MO_EINVAL, "box: no such workspace");
    }
    (void)snprintf(q->id, sizeof(q->id), "%s", files);
    return query_go(q, e);
}

static void run_remove(struct mo_job *j)
{
    struct query *q = mo_container_of(j, struct query, job);
    struct mo_keeper_answer a;
    mo_autofd int sock = -1;

    q->rc = mo_keeper_connect(q->d->dir, q->id, &sock, &q->err);
    if (q->rc == 0)
        q->rc = mo_keeper_ask(sock, MO_BOXMSG_KILL, &a, &q->err);
    if (q->rc == 0)
        mo_keeper_drop(&a);
    if (q->rc == MO_ECLOSED)
        q->rc = mo_keeper_sweep(q->d->launcher, q->d->dir, &q->err);
    if (q->rc == MO_ENOTFOUND)
        q->rc = 0;
}

int mo_native_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                     void *ctx, struct mo_err *e)
{
    struct query *q = query_new(bs, run_remove, ctx, e);

    if (q == NULL)
        return MO_ENOMEM;
    q->on_removed = done;
    (void)snprintf(q->id, sizeof(q->id), "%s", id);
    return query_go(q, e);
}

/* Starts a box that does nothing: the best proof that boxes work here. */
static void run_check(struct mo_job *j)
{
    struct query *q = mo_container_of(j, struct query, job);
    struct mo_keeper_answer a = {0};
    mo_autofd int sock = -1;

    q->rc = mo_keeper_spawn(q->d->launcher, &sock, &q->err);
    if (q->rc == 0)
        q->rc = mo_keeper_send(sock, mo_buf_view(&q->frame), -1, &q->err);
    if (q->rc == 0)
        q->rc = mo_keeper_receive(sock, &a, &q->err);
    if (q->rc < 0) {
        (void)snprintf(q->ready.why, sizeof(q->ready.why), "%s", q->err.msg);
        return;
    }
    q->ready.ok = true;
    (void)snprintf(q->ready.what, sizeof(q->ready.what),
                   "mo-box as user %u, landlock %u", (unsigned)a.m.u.desc.uid,
                   (unsigned)a.m.u.desc.landlock);
    mo_keeper_drop(&a);
    if (mo_keeper_ask(sock, MO_BOXMSG_KILL, &a, NULL) == 0)
        mo_keeper_drop(&a);
}

int mo_native_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                    struct mo_err *e)
{
    static const char *const argv[] = {"sleep", "60", NULL};
    const struct mo_box_spec spec = {.limits = mo_box_limits_default,
                                     .argv = argv};
    struct query *q = query_new(bs, run_check, ctx, e);
    struct mo_native_req r;
    int rc;

    if (q == NULL)
        return MO_ENOMEM;
    q->on_ready = done;
    (void)snprintf(q->ready.what, sizeof(q->ready.what), "mo-box");
    rc = mo_native_request(q->d, &spec, MO_BOXMSG_START, &r, e);
    if (rc == 0)
        rc = mo_boxmsg_put(&q->frame, &r.m, e);
    if (rc == 0)
        return query_go(q, e);
    query_free(q);
    return rc;
}

/* --- the program of a connection ------------------------------------------ */

struct search {
    struct mo_job job;
    struct native *d;
    char box[MO_BOXREQ_ID_MAX + 1];
    uint64_t number;
    struct mo_buf frame;
    char program[MO_BOXREQ_TEXT_MAX + 1];
};

static void run_search(struct mo_job *j)
{
    struct search *s = mo_container_of(j, struct search, job);
    struct mo_keeper_answer a;
    mo_autofd int sock = -1;

    if (mo_keeper_connect(s->d->dir, s->box, &sock, NULL) < 0 ||
        mo_keeper_send(sock, mo_buf_view(&s->frame), -1, NULL) < 0 ||
        mo_keeper_receive(sock, &a, NULL) < 0)
        return;
    if (a.m.type == MO_BOXMSG_PROGRAM)
        (void)snprintf(s->program, sizeof(s->program), "%s",
                       a.m.u.program.path);
    mo_keeper_drop(&a);
}

static void search_free(struct search *s)
{
    mo_buf_fini(&s->frame);
    mo_free(s);
}

static void search_done(struct mo_job *j, bool canceled)
{
    struct search *s = mo_container_of(j, struct search, job);

    (void)canceled;
    mo_native_name_caller(&s->d->bs, s->box, s->number, s->program);
    search_free(s);
}

int mo_native_find_program(struct mo_boxes *bs, const char *box,
                           const struct mo_egress_caller *c)
{
    struct search *s = mo_new(struct search);
    char from[MO_IP_TEXT], to[MO_IP_TEXT];
    const struct mo_boxmsg m = {.type = MO_BOXMSG_WHO,
                                .u.who = {.from = from,
                                          .to = to,
                                          .from_port = c->from_port,
                                          .to_port = c->to_port}};
    int rc;

    if (!s)
        return MO_ENOMEM;
    mo_ip_text(&c->from, from);
    mo_ip_text(&c->to, to);
    s->d = native_of(bs);
    s->number = c->number;
    (void)snprintf(s->box, sizeof(s->box), "%s", box);
    mo_buf_init(&s->frame, MO_BOXMSG_HEAD + MO_BOXMSG_MAX);
    mo_job_init(&s->job, run_search, search_done);
    rc = mo_boxmsg_put(&s->frame, &m, NULL);
    if (rc == 0)
        rc = mo_native_submit(s->d, &s->job, NULL);
    if (rc < 0)
        search_free(s);
    return rc;
}
