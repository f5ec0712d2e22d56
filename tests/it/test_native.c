/* The native driver with real boxes: argv[1] is mo-box. */
#include "mo_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file.h"
#include "box/box.h"
#include "codec/kept_files.h"
#include "loop/loop.h"

#define WAIT_MS 60000 /* only a failure waits that long */

static struct mo_span launcher;

struct world {
    struct mo_loop *loop;
    struct mo_log log;
    struct mo_boxes *bs;
    char dir[64];
    bool closed;
};

struct owner {
    struct mo_box *b;
    struct mo_stream *io, *err;
    struct mo_buf out, errs;
    unsigned ready, gone;
    struct mo_box_end end;
    struct mo_err why;
    char id[MO_BOX_ID_MAX];
};

/* --- the owner of a box -------------------------------------------------- */

static void on_out(void *ctx, char *p, size_t n)
{
    struct owner *o = ctx;

    (void)mo_buf_put(&o->out, p, n);
}

static void on_err(void *ctx, char *p, size_t n)
{
    struct owner *o = ctx;

    (void)mo_buf_put(&o->errs, p, n);
}

static void on_io_close(void *ctx, const struct mo_err *why)
{
    struct owner *o = ctx;

    (void)why;
    o->io = NULL;
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct owner *o = ctx;

    (void)why;
    o->err = NULL;
}

static const struct mo_stream_cb io_cb = {.on_read = on_out,
                                          .on_close = on_io_close};
static const struct mo_stream_cb err_cb = {.on_read = on_err,
                                           .on_close = on_err_close};

static void on_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    struct owner *o = ctx;

    o->ready++;
    snprintf(o->id, sizeof(o->id), "%s", mo_box_id(b));
    o->io = io->io;
    o->err = io->err;
    mo_stream_attach(o->io, &io_cb, o);
    mo_stream_attach(o->err, &err_cb, o);
}

static void on_gone(void *ctx, const struct mo_box_end *end)
{
    struct owner *o = ctx;

    o->gone++;
    o->b = NULL;
    o->end = *end;
    if (end->why)
        o->why = *end->why;
    o->end.why = end->why ? &o->why : NULL;
    if (o->io)
        mo_stream_close(o->io, NULL);
    if (o->err)
        mo_stream_close(o->err, NULL);
}

static const struct mo_box_cb box_cb = {on_ready, on_gone};

static void owner_init(struct owner *o)
{
    *o = (struct owner){0};
    mo_buf_init(&o->out, (size_t)4 << 20);
    mo_buf_init(&o->errs, 65536);
}

static void owner_fini(struct owner *o)
{
    mo_buf_fini(&o->out);
    mo_buf_fini(&o->errs);
}

static bool is_ready(void *ctx)
{
    struct owner *o = ctx;

    return o->ready || o->gone;
}

static bool is_gone(void *ctx)
{
    struct owner *o = ctx;

    return o->gone && !o->io && !o->err;
}

static bool has_out(void *ctx)
{
    struct owner *o = ctx;

    return o->out.len || o->gone;
}

static void await(struct world *w, bool (*pred)(void *), void *ctx)
{
    assert_true(mo_loop_until(w->loop, pred, ctx, WAIT_MS));
}

/* --- the driver ---------------------------------------------------------- */

static void on_closed(void *ctx)
{
    ((struct world *)ctx)->closed = true;
}

static bool is_closed(void *ctx)
{
    return ((struct world *)ctx)->closed;
}

static void open_boxes(struct world *w, const char *instance)
{
    struct mo_boxes_opts o = {.store = "st",
                              .instance = instance,
                              .dir = w->dir,
                              .launcher = launcher};
    struct mo_err e;

    w->closed = false;
    if (mo_boxes_native(w->loop, &o, &w->bs, &e) < 0)
        fail_msg("%s", e.msg);
}

static void close_boxes(struct world *w)
{
    mo_boxes_close(w->bs, on_closed, w);
    await(w, is_closed, w);
}

static int setup(void **state)
{
    struct world *w = mo_new(struct world);

    snprintf(w->dir, sizeof(w->dir), "/tmp/mo-native-XXXXXX");
    assert_non_null(mkdtemp(w->dir));
    mo_log_init(&w->log, 2);
    w->loop = mo_loop_new(&w->log, NULL);
    assert_non_null(w->loop);
    open_boxes(w, "one");
    *state = w;
    return 0;
}

/* rmdir is the judge: a box that was left has its socket there. */
static int teardown(void **state)
{
    struct world *w = *state;
    char boxes[80];
    int rc;

    close_boxes(w);
    mo_loop_free(w->loop);
    mo_log_fini(&w->log);
    snprintf(boxes, sizeof(boxes), "%s/boxes", w->dir);
    rc = rmdir(boxes) < 0 || rmdir(w->dir) < 0 ? -1 : 0;
    mo_free(w);
    return rc;
}

static struct mo_box_spec spec_of(const char *const *argv, uint64_t linger_ms)
{
    return (struct mo_box_spec){.limits = mo_box_limits_default,
                                .argv = argv,
                                .session = "s1",
                                .linger_ms = linger_ms};
}

static void start(struct world *w, struct owner *o, const char *script,
                  uint64_t linger_ms)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    struct mo_box_spec spec = spec_of(argv, linger_ms);
    struct mo_err e;

    owner_init(o);
    if (mo_box_start(w->bs, &spec, &box_cb, o, &o->b, &e) < 0)
        fail_msg("%s", e.msg);
    assert_int_equal(o->ready + o->gone, 0);
}

static void assert_out(struct owner *o, const char *want)
{
    assert_string_equal(mo_buf_cstr(&o->out), want);
}

/* --- asking -------------------------------------------------------------- */

struct said {
    bool done;
    int code;
    size_t n;
    struct {
        char id[MO_BOX_ID_MAX], session[64], instance[64];
        bool running, warm;
    } rows[8];
    struct mo_box_stats stats;
    struct mo_boxes_ready ready;
};

static bool is_said(void *ctx)
{
    return ((struct said *)ctx)->done;
}

static void on_rows(void *ctx, const struct mo_box_rows *rows,
                    const struct mo_err *why)
{
    const struct mo_box_row *v = rows->v;
    size_t n = rows->n;
    struct said *s = ctx;

    s->done = true;
    s->code = why ? why->code : 0;
    s->n = n;
    for (size_t i = 0; i < n && i < MO_COUNT(s->rows); i++) {
        snprintf(s->rows[i].id, sizeof(s->rows[i].id), "%s", v[i].id);
        snprintf(s->rows[i].session, 64, "%s", v[i].session);
        snprintf(s->rows[i].instance, 64, "%s", v[i].instance);
        s->rows[i].running = v[i].running;
        s->rows[i].warm = v[i].warm;
    }
}

static struct said list(struct world *w)
{
    struct said s = {0};

    assert_int_equal(mo_boxes_list(w->bs, NULL, on_rows, &s, NULL), 0);
    await(w, is_said, &s);
    assert_int_equal(s.code, 0);
    return s;
}

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct said *s = ctx;

    s->done = true;
    s->code = why ? why->code : 0;
}

static void remove_box(struct world *w, const char *id)
{
    struct said s = {0};

    assert_int_equal(mo_boxes_remove(w->bs, id, on_removed, &s, NULL), 0);
    await(w, is_said, &s);
    assert_int_equal(s.code, 0);
}

static void on_stats(void *ctx, const struct mo_box_stats *st,
                     const struct mo_err *why)
{
    struct said *s = ctx;

    s->done = true;
    s->code = why ? why->code : 0;
    if (st)
        s->stats = *st;
}

static void on_check(void *ctx, const struct mo_boxes_ready *r)
{
    struct said *s = ctx;

    s->done = true;
    s->ready = *r;
}

/* --- tests --------------------------------------------------------------- */

static void test_exit(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "echo out; echo err >&2; exit 5", 0);
    await(w, is_gone, &o);
    assert_int_equal(o.ready, 1);
    assert_int_equal(o.gone, 1);
    assert_int_equal(o.end.cause, MO_BOX_EXITED);
    assert_int_equal(o.end.code, 5);
    assert_false(o.end.workspace_kept);
    assert_out(&o, "out\n");
    assert_string_equal(mo_buf_cstr(&o.errs), "err\n");
    assert_int_equal(list(w).n, 0);
    owner_fini(&o);
}

/* The end must not overtake the last of a large output. */
static void test_last_words(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "head -c 1000000 /dev/zero", 0);
    await(w, is_gone, &o);
    assert_int_equal(o.out.len, 1000000);
    owner_fini(&o);
}

static void test_talk_and_stop(void **state)
{
    struct world *w = *state;
    struct said s = {0};
    struct owner o;

    start(w, &o, "while read l; do echo \"got $l\"; done", 1000);
    await(w, is_ready, &o);
    assert_int_equal(mo_stream_write(o.io, MO_SPAN("hello\n")), 0);
    await(w, has_out, &o);
    assert_out(&o, "got hello\n");
    assert_int_equal(mo_box_stats(o.b, on_stats, &s, NULL), 0);
    await(w, is_said, &s);
    assert_true(s.stats.memory > 0 && s.stats.pids == 2);
    mo_box_stop(o.b);
    mo_box_stop(o.b);
    assert_int_equal(o.gone, 0);
    await(w, is_gone, &o);
    assert_int_equal(o.end.cause, MO_BOX_STOPPED);
    assert_int_equal(list(w).n, 0);
    owner_fini(&o);
}

/* A box that nobody may adopt reads the end of its input; one that outlives
 * us does not. */
static void test_end_of_input(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "cat; echo end", 0);
    await(w, is_ready, &o);
    assert_int_equal(mo_stream_write(o.io, MO_SPAN("in ")), 0);
    mo_stream_shutdown(o.io);
    await(w, is_gone, &o);
    assert_out(&o, "in end\n");
    owner_fini(&o);
}

static void test_stop_at_once(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "sleep 1000", 1000);
    mo_box_stop(o.b);
    await(w, is_gone, &o);
    assert_int_equal(o.ready, 0);
    assert_int_equal(o.end.cause, MO_BOX_STOPPED);
    assert_int_equal(list(w).n, 0);
    owner_fini(&o);
}

static void test_refused(void **state)
{
    static const char *const argv[] = {"/nope", NULL};
    struct world *w = *state;
    struct mo_box_spec spec = spec_of(argv, 1000);
    struct owner o;

    owner_init(&o);
    assert_int_equal(mo_box_start(w->bs, &spec, &box_cb, &o, &o.b, NULL), 0);
    await(w, is_gone, &o);
    assert_int_equal(o.ready, 0);
    assert_int_equal(o.end.cause, MO_BOX_REFUSED);
    assert_non_null(o.end.why);
    assert_int_equal(o.end.why->code, MO_ENOTFOUND);
    assert_non_null(strstr(o.end.why->msg, "/nope"));
    /* without a toolbox there is nothing to run by default */
    spec.argv = NULL;
    assert_int_equal(mo_box_start(w->bs, &spec, &box_cb, &o, &o.b, NULL),
                     MO_EUNAVAIL);
    owner_fini(&o);
}

static void test_oom_and_revive(void **state)
{
    static const char *const argv[] = {"cat", "f", NULL};
    struct world *w = *state;
    struct mo_box_spec spec = spec_of(argv, 0);
    struct owner o, r;
    char id[MO_BOX_ID_MAX];

    start(w, &o, "echo kept > f; kill -9 $$", 60000);
    await(w, is_gone, &o);
    assert_int_equal(o.end.cause, MO_BOX_KILLED);
    assert_int_equal(o.end.signal, 9);
    assert_true(o.end.workspace_kept);
    snprintf(id, sizeof(id), "%s", o.id);
    assert_int_equal(list(w).n, 1);
    assert_false(list(w).rows[0].running);
    owner_init(&r);
    assert_int_equal(mo_box_revive(w->bs, id, &spec, &box_cb, &r, &r.b, NULL),
                     0);
    await(w, is_gone, &r);
    assert_out(&r, "kept\n");
    assert_string_equal(r.id, id);
    assert_int_equal(list(w).n, 0); /* linger 0: it went with its program */
    owner_fini(&r);
    owner_init(&r);
    assert_int_equal(mo_box_revive(w->bs, id, &spec, &box_cb, &r, &r.b, NULL),
                     0);
    await(w, is_gone, &r);
    assert_int_equal(r.end.cause, MO_BOX_REFUSED);
    assert_int_equal(r.end.why->code, MO_ENOTFOUND);
    owner_fini(&o);
    owner_fini(&r);
}

static void test_adopt(void **state)
{
    struct world *w = *state;
    struct owner o, again;
    struct said s;

    start(w, &o, "echo first > f; while read l; do cat f; echo $l >> f; done",
          60000);
    await(w, is_ready, &o);
    assert_int_equal(mo_stream_write(o.io, MO_SPAN("second\n")), 0);
    await(w, has_out, &o);
    mo_box_let_go(o.b);
    await(w, is_gone, &o);
    assert_int_equal(o.end.cause, MO_BOX_LET_GO);
    close_boxes(w);
    open_boxes(w, "two");
    s = list(w);
    assert_int_equal(s.n, 1);
    assert_string_equal(s.rows[0].id, o.id);
    assert_string_equal(s.rows[0].session, "s1");
    assert_string_equal(s.rows[0].instance, "one");
    assert_true(s.rows[0].running);
    owner_init(&again);
    assert_int_equal(
        mo_box_adopt(w->bs, o.id, "s", &box_cb, &again, &again.b, NULL), 0);
    await(w, is_ready, &again);
    assert_int_equal(mo_stream_write(again.io, MO_SPAN("x\n")), 0);
    await(w, has_out, &again);
    assert_out(&again, "first\nsecond\n");
    mo_box_stop(again.b);
    await(w, is_gone, &again);
    owner_fini(&o);
    owner_fini(&again);
}

static void test_remove(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "sleep 1000", 60000);
    await(w, is_ready, &o);
    mo_box_let_go(o.b);
    await(w, is_gone, &o);
    assert_int_equal(list(w).n, 1);
    remove_box(w, o.id);
    assert_int_equal(list(w).n, 0);
    remove_box(w, o.id); /* unknown is removed already */
    remove_box(w, "../../etc");
    owner_fini(&o);
}

#define KEPT (2 * MO_BOX_PART_MAX + 9)

/* The parts of a list of workspaces that were told so far. */
struct kept_list {
    bool done;
    unsigned parts, n;
    char last[MO_BOX_ID_MAX], next[MO_BOX_PLACE_MAX];
};

static bool is_kept_said(void *ctx)
{
    return ((struct kept_list *)ctx)->done;
}

static void on_kept(void *ctx, const struct mo_box_rows *rows,
                    const struct mo_err *why)
{
    struct kept_list *k = ctx;

    assert_null(why);
    assert_true(rows->n <= MO_BOX_PART_MAX);
    for (size_t i = 0; i < rows->n; i++) { /* each once: in order */
        assert_true(strcmp(rows->v[i].id, k->last) > 0);
        snprintf(k->last, sizeof(k->last), "%s", rows->v[i].id);
    }
    k->n += (unsigned)rows->n;
    k->parts++;
    snprintf(k->next, sizeof(k->next), "%s", rows->next ? rows->next : "");
    k->done = true;
}

static void make_kept(const char *boxes, unsigned i, const char *store)
{
    mo_autobuf struct mo_buf b = {.max = MO_KEPT_HEAD};
    struct mo_kept_head h = {.store = mo_span_cstr(store),
                             .session = MO_SPAN("s"),
                             .instance = MO_SPAN("gone")};
    char path[120];
    mo_autofd int fd = -1;

    mo_kept_put_head(&b, &h);
    snprintf(path, sizeof(path), "%s/k%05u.files", boxes, i);
    fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(mo_file_write_all(fd, mo_buf_view(&b), NULL), 0);
}

/* More than fit in a part, one in ten of another store. */
static void test_many_workspaces(void **state)
{
    struct world *w = *state;
    struct kept_list k = {.parts = 0};
    unsigned others = 0;
    char boxes[80], path[120];

    snprintf(boxes, sizeof(boxes), "%s/boxes", w->dir);
    for (unsigned i = 0; i < KEPT; i++) {
        make_kept(boxes, i, i % 10 == 3 ? "other" : "st");
        others += i % 10 == 3;
    }
    do {
        k.done = false;
        assert_int_equal(
            mo_boxes_files(w->bs, k.next[0] ? k.next : NULL, on_kept, &k, NULL),
            0);
        await(w, is_kept_said, &k);
    } while (k.next[0]);
    assert_int_equal(k.n, KEPT - others);
    assert_int_equal(k.parts, 3);
    for (unsigned i = 0; i < KEPT; i++) {
        snprintf(path, sizeof(path), "%s/k%05u.files", boxes, i);
        assert_int_equal(unlink(path), 0);
    }
}

/* Somebody else removes the box under our hands. */
static void test_taken_away(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "sleep 1000", 60000);
    await(w, is_ready, &o);
    remove_box(w, o.id);
    await(w, is_gone, &o);
    assert_int_equal(o.end.cause, MO_BOX_STOPPED);
    assert_false(o.end.workspace_kept);
    owner_fini(&o);
}

/* Who listens on the box's socket. */
static pid_t keeper_of(struct world *w, const char *id)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    mo_autofd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct ucred who;
    socklen_t n = sizeof(who);
    char path[200];

    snprintf(path, sizeof(path), "%s/boxes/%s.sock", w->dir, id);
    assert_true(strlen(path) < sizeof(a.sun_path));
    memcpy(a.sun_path, path, strlen(path) + 1);
    assert_int_equal(connect(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n), 0);
    return who.pid;
}

/* The keeper is killed: the box dies with it, and list sweeps the rest. */
static void test_keeper_killed(void **state)
{
    struct world *w = *state;
    struct owner o;

    start(w, &o, "sleep 1000", 60000);
    await(w, is_ready, &o);
    assert_int_equal(kill(keeper_of(w, o.id), SIGKILL), 0);
    await(w, is_gone, &o);
    assert_int_equal(o.end.cause, MO_BOX_ENGINE_GONE);
    assert_non_null(o.end.why);
    assert_int_equal(list(w).n, 0);
    owner_fini(&o);
}

static bool one_warm(void *ctx)
{
    return mo_boxes_warm_now(((struct world *)ctx)->bs) == 1;
}

static void test_warm(void **state)
{
    static const char *const argv[] = {"cat", NULL};
    struct world *w = *state;
    struct mo_box_spec spec = spec_of(argv, 60000);
    struct owner o;
    struct said s;

    assert_int_equal(mo_boxes_warm(w->bs, &spec, 1, NULL), 0);
    await(w, one_warm, w);
    s = list(w);
    assert_true(s.n == 1 && s.rows[0].warm);
    owner_init(&o);
    assert_int_equal(mo_box_start(w->bs, &spec, &box_cb, &o, &o.b, NULL), 0);
    await(w, is_ready, &o);
    assert_string_equal(o.id, s.rows[0].id);
    assert_int_equal(mo_boxes_warm(w->bs, &spec, 0, NULL), 0);
    assert_int_equal(mo_stream_write(o.io, MO_SPAN("warm")), 0);
    await(w, has_out, &o);
    assert_out(&o, "warm");
    s = list(w);
    for (size_t i = 0; i < s.n; i++)
        if (strcmp(s.rows[i].id, o.id) == 0)
            assert_string_equal(s.rows[i].session, "s1");
    mo_box_stop(o.b);
    await(w, is_gone, &o);
    owner_fini(&o);
}

static void test_check(void **state)
{
    struct world *w = *state;
    struct said s = {0};

    assert_int_equal(mo_boxes_check(w->bs, on_check, &s, NULL), 0);
    await(w, is_said, &s);
    if (!s.ready.ok)
        fail_msg("%s", s.ready.why);
    assert_int_equal(list(w).n, 0);
}

static void test_many(void **state)
{
    enum { N = 20 };
    static struct owner o[N];
    struct world *w = *state;

    for (int i = 0; i < N; i++)
        start(w, &o[i], "cat", 0);
    for (int i = 0; i < N; i++)
        await(w, is_ready, &o[i]);
    for (int i = 0; i < N; i++) {
        char text[16];

        assert_int_equal(o[i].gone, 0);
        snprintf(text, sizeof(text), "number %d", i);
        assert_int_equal(mo_stream_write(o[i].io, mo_span_cstr(text)), 0);
        await(w, has_out, &o[i]);
        assert_out(&o[i], text);
        mo_box_stop(o[i].b);
    }
    for (int i = 0; i < N; i++) {
        await(w, is_gone, &o[i]);
        owner_fini(&o[i]);
    }
    assert_int_equal(list(w).n, 0);
}

/* From opening to closing, with memory that fails anywhere between. */
static void whole_life(void *ctx)
{
    static const char *const argv[] = {"echo", "x", NULL};
    struct world *w = ctx;
    struct mo_box_spec spec = spec_of(argv, 0);
    struct mo_boxes_opts opts = {
        .store = "st", .instance = "i", .dir = w->dir, .launcher = launcher};
    struct mo_boxes *bs;
    struct owner o;

    w->closed = false;
    if (mo_boxes_native(w->loop, &opts, &bs, NULL) < 0) {
        mo_loop_run(w->loop); /* what was begun is taken back there */
        return;
    }
    owner_init(&o);
    if (mo_box_start(bs, &spec, &box_cb, &o, &o.b, NULL) == 0)
        await(w, is_gone, &o);
    mo_boxes_close(bs, on_closed, w);
    await(w, is_closed, w);
    owner_fini(&o);
}

static void test_torture(void **state)
{
    struct world *w = *state;

    torture(whole_life, w);
    w->closed = false;
    assert_int_equal(list(w).n, 0);
}

static bool read_launcher(const char *path)
{
    static char bytes[4 << 20];
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, bytes, sizeof(bytes));

    launcher = mo_span(bytes, n < 0 ? 0 : (size_t)n);
    return n > 0;
}

#define BOX_TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        BOX_TEST(test_exit),           BOX_TEST(test_last_words),
        BOX_TEST(test_talk_and_stop),  BOX_TEST(test_end_of_input),
        BOX_TEST(test_stop_at_once),   BOX_TEST(test_refused),
        BOX_TEST(test_oom_and_revive), BOX_TEST(test_adopt),
        BOX_TEST(test_remove),         BOX_TEST(test_taken_away),
        BOX_TEST(test_keeper_killed),  BOX_TEST(test_warm),
        BOX_TEST(test_check),          BOX_TEST(test_many),
        BOX_TEST(test_torture),        BOX_TEST(test_many_workspaces),
    };

    if (geteuid() != 0) {
        printf("needs root\n");
        return 77;
    }
    if (argc < 2 || !read_launcher(argv[1]))
        return 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
