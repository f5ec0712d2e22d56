/* test_store_procs.c - the promises of store.h between processes: what a
 * SIGKILL leaves behind, who holds a lease, who wins a race. Both backends.
 *
 * Children tell the parent by pipes and by a page they share. Nothing here
 * depends on who is faster; where a deadline is given it is so long that only
 * a wake-up that never comes can miss it. */
#include "store_kit.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/sql.h"

static const struct backend sqlite_backend = {"sqlite", false};
static const struct backend redis_backend = {"redis", true};

#define S(x)    MO_SPAN(x)
#define PROCS   4
#define TAKERS  16 /* of each process */
#define RACES   40
#define KILLS   6
#define HOUR_MS 3600000

/* For skip_if_emulated(). */
#define NO_THREADS "a child of a program that had threads cannot start any"

static const struct mo_write session_w = {.kind = MO_WRITE_SESSION,
                                          .doc = {"{}", 2}};

/* --- children ------------------------------------------------------------ */

/* Runs body in a child that dies with us; its stdout is *out (may be NULL). */
static pid_t child(struct fix *f, void (*body)(struct fix *f, int out, int n),
                   int n, int *out)
{
    int fds[2] = {-1, -1};
    pid_t pid;

    if (out)
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        fix_open(f);
        body(f, fds[1], n);
        fix_close(f);
        _exit(0);
    }
    if (out) {
        (void)close(fds[1]);
        *out = fds[0];
    }
    return pid;
}

static void bury(pid_t pid)
{
    int st = 0;

    assert_int_equal(waitpid(pid, &st, 0), pid);
    assert_true(WIFEXITED(st));
    assert_int_equal(WEXITSTATUS(st), 0);
}

/* In a child nothing may escape to cmocka: a wrong value ends it. */
#define must(cond)                                                             \
    do {                                                                       \
        if (!(cond)) {                                                         \
            (void)fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);   \
            _exit(9);                                                          \
        }                                                                      \
    } while (0)

static void *shared_page(size_t n)
{
    void *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                   -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

/* --- crash in the middle ------------------------------------------------- */

struct stream_of {
    struct fix *f;
    int out;
    unsigned asked;
};

static void ask_next(struct stream_of *s);

/* What was acknowledged to us goes out at once. */
static void on_ack(void *ctx, const struct mo_written *w,
                   const struct mo_err *why)
{
    struct stream_of *s = ctx;
    uint64_t seq = w->seq;

    must(!why);
    must(write(s->out, &seq, sizeof(seq)) == sizeof(seq));
    ask_next(s);
}

/* A batch of an entry and a call: both or none must be there later. */
static void ask_next(struct stream_of *s)
{
    char doc[64], id[32];
    struct mo_write w[2] = {{.kind = MO_WRITE_ENTRY},
                            {.kind = MO_WRITE_CALL, .doc = S("{}")}};
    struct mo_store_batch b = {S("crash"), 0, w, 2};
    struct mo_err e;

    (void)snprintf(doc, sizeof(doc), "e%u|some words to find it by", s->asked);
    (void)snprintf(id, sizeof(id), "c%d.%u", (int)getpid(), s->asked);
    s->asked++;
    w[0].doc = mo_span_cstr(doc);
    w[0].text = S("some words to find it by");
    w[1].id = mo_span_cstr(id);
    must(mo_store_write(s->f->s, &b, on_ack, s, &e) == 0);
}

static void write_for_ever(struct fix *f, int out, int n)
{
    struct stream_of s = {f, out, 0};

    (void)n;
    for (int i = 0; i < 8; i++)
        ask_next(&s);
    mo_loop_run(f->l);
}

/* Reads acknowledgements until the child is dead and the pipe is empty. */
static uint64_t read_acks(int fd, pid_t pid, int kill_after)
{
    uint64_t seq, last = 0;
    int n = 0;

    while (read(fd, &seq, sizeof(seq)) == sizeof(seq)) {
        last = seq > last ? seq : last;
        if (++n == kill_after)
            (void)kill(pid, SIGKILL);
    }
    (void)close(fd);
    (void)waitpid(pid, NULL, 0);
    return last;
}

static size_t count_rows(struct fix *f, enum mo_read_kind kind)
{
    struct mo_read r = {.kind = kind, .session = S("crash"), .limit = 1000};
    size_t n = 0;

    do {
        assert_int_equal(get(f, r), 0);
        for (size_t i = 0; i < f->n; i++)
            assert_true(f->rows[i].seq > r.after);
        n += f->n;
        if (f->n)
            r.after = f->rows[f->n - 1].seq;
    } while (f->more);
    return n;
}

static size_t hits(struct fix *f, const char *text)
{
    assert_int_equal(GET(f, .kind = MO_READ_SEARCH, .limit = 1000,
                         .text = mo_span_cstr(text)),
                     0);
    return f->n;
}

/* Every page of the file is as it must be. */
static void check_file(const struct fix *f)
{
    const char *path = f->url + strlen("sqlite:");
    struct mo_sqlite_lib lib;
    struct mo_sql q;
    struct mo_err e;

    if (f->b->redis)
        return;
    assert_int_equal(mo_sqlite_load(&lib, &e), 0);
    assert_int_equal(mo_sql_open(&q, &lib, path, 1000, &e), 0);
    assert_int_equal(mo_sql_check(&q, path, &e), 0);
    mo_sql_close(&q);
}

static void test_killed(void **state)
{
    uint64_t acked = 0;
    struct fix f;
    int out;

    skip_if_emulated(NO_THREADS);
    fix_init(&f, *state);
    assert_int_equal(put(&f, "crash", 0, &session_w, 1), 0);
    fix_close(&f);
    for (int i = 0; i < KILLS; i++) {
        pid_t pid = child(&f, write_for_ever, 0, &out);
        size_t entries, calls;

        acked = read_acks(out, pid, 1 + (int)(mo_random_u64() % 60));
        if (f.b->redis && i % 2) { /* the server too */
            redis_stop(&f.server);
            (void)unlink(f.url + strlen("redis+unix:"));
            f.server = redis_start(f.dir);
        }
        fix_open(&f);
        check_file(&f);
        entries = count_rows(&f, MO_READ_HISTORY);
        calls = count_rows(&f, MO_READ_CALLS);
        assert_true(entries >= acked);
        assert_int_equal(entries, calls);
        /* indexed or not when it was killed */
        assert_int_equal(hits(&f, "words"), entries > 1000 ? 1000 : entries);
        fix_close(&f);
    }
    fix_fini(&f);
}

/* --- a search, and what another process has said ---------------------------
 */

static void say_once(struct fix *f, int out, int n)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY,
                         .doc = S("1|elsewhere"),
                         .text = S("elsewhere")};

    (void)n;
    must(put(f, "s", 0, &w, 1) == 0);
    must(write(out, "", 1) == 1);
    (void)pause(); /* it lives, and has not closed anything */
}

static void test_search_elsewhere(void **state)
{
    struct fix f;
    char byte;

    skip_if_emulated(NO_THREADS);
    fix_init(&f, *state);
    assert_int_equal(put(&f, "s", 0, &session_w, 1), 0);
    for (size_t i = 1; i <= 3; i++) {
        struct fix other = f;
        int out;
        pid_t pid = child(&other, say_once, 0, &out);

        assert_int_equal(read(out, &byte, 1), 1);
        assert_int_equal(hits(&f, "elsewhere"), i);
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, NULL, 0);
        (void)close(out);
    }
    fix_fini(&f);
}

/* --- a stampede for one lease -------------------------------------------- */

struct stampede {
    atomic_uint inside, worst, held;
    uint64_t fences[PROCS * TAKERS];
};

struct taker {
    struct stampede *st;
    struct mo_loop *l;
    struct mo_lease *lease;
    struct mo_timer timer;
    unsigned *left;
};

static void leave(struct mo_timer *t)
{
    struct taker *k = mo_container_of(t, struct taker, timer);

    atomic_fetch_sub(&k->st->inside, 1);
    mo_lease_drop(k->lease);
    (*k->left)--;
}

static void enter(void *ctx, struct mo_lease *l, uint64_t fence,
                  const struct mo_err *why)
{
    struct taker *k = ctx;
    unsigned now, i;

    (void)l;
    if (why)
        (void)fprintf(stderr, "not held: %s\n", why->msg);
    must(!why);
    now = atomic_fetch_add(&k->st->inside, 1) + 1;
    if (now > atomic_load(&k->st->worst))
        atomic_store(&k->st->worst, now);
    i = atomic_fetch_add(&k->st->held, 1);
    k->st->fences[i] = fence;
    mo_timer_start(k->l, &k->timer, mo_random_u64() % 4);
}

static void never(void *ctx, const struct mo_err *why)
{
    (void)ctx;
    (void)fprintf(stderr, "lost: %s\n", why->msg);
    _exit(8);
}

static bool none_left(void *ctx)
{
    return *(unsigned *)ctx == 0;
}

static struct stampede *stampede_page;

static void take_many(struct fix *f, int out, int n)
{
    static const struct mo_lease_cb cb = {enter, never};
    struct taker k[TAKERS];
    unsigned left = TAKERS;
    char owner[32];
    struct mo_err e;

    (void)out;
    (void)snprintf(owner, sizeof(owner), "proc%d", n);
    for (int i = 0; i < TAKERS; i++) {
        k[i] = (struct taker){.st = stampede_page, .l = f->l, .left = &left};
        mo_timer_init(&k[i].timer, leave);
        must(mo_lease_take(f->s, S("one"), mo_span_cstr(owner), LONG, &cb,
                           &k[i], &k[i].lease, &e) == 0);
    }
    must(mo_loop_until(f->l, none_left, &left, LONG));
}

/* A term is an hour: who is not told of a release never gets it. */
static void test_stampede(void **state)
{
    pid_t pids[PROCS];
    struct fix f;

    skip_if_emulated(NO_THREADS);
    fix_prepare(&f, *state);
    stampede_page = shared_page(sizeof(*stampede_page));
    f.o.lease_ttl_ms = HOUR_MS;
    fix_open(&f);
    fix_close(&f);
    for (int i = 0; i < PROCS; i++)
        pids[i] = child(&f, take_many, i, NULL);
    for (int i = 0; i < PROCS; i++)
        bury(pids[i]);
    assert_int_equal(atomic_load(&stampede_page->worst), 1);
    assert_int_equal(atomic_load(&stampede_page->held), PROCS * TAKERS);
    for (int i = 1; i < PROCS * TAKERS; i++)
        assert_true(stampede_page->fences[i] > stampede_page->fences[i - 1]);
    (void)munmap(stampede_page, sizeof(*stampede_page));
    fix_fini(&f);
}

/* --- asleep while another took over -------------------------------------- */

/* Says its fence, waits until it is lost, then says what a write under the
 * old fence brought. */
static void hold_and_lose(struct fix *f, int out, int n)
{
    struct mo_write w = {.kind = MO_WRITE_ENTRY, .doc = S("late")};
    struct held h;
    int64_t code;

    (void)n;
    must(take_wait(f, &h, "s", "sleeper", 0) == 0);
    must(write(out, &h.fence, sizeof(h.fence)) == sizeof(h.fence));
    must(mo_loop_until(f->l, kit_has_lost, &h, LONG));
    code = put(f, "s", h.fence, &w, 1);
    must(write(out, &code, sizeof(code)) == sizeof(code));
}

static void test_stalled(void **state)
{
    uint64_t fence = 0;
    int64_t code = 0;
    struct held mine;
    struct fix f;
    pid_t pid;
    int out;

    skip_if_emulated(NO_THREADS);
    fix_prepare(&f, *state);
    f.o.lease_ttl_ms = 800;
    fix_open(&f);
    assert_int_equal(put(&f, "s", 0, &session_w, 1), 0);
    fix_close(&f);
    pid = child(&f, hold_and_lose, 0, &out);
    assert_int_equal(read(out, &fence, sizeof(fence)), sizeof(fence));
    assert_int_equal(kill(pid, SIGSTOP), 0);
    fix_open(&f);
    assert_int_equal(take_wait(&f, &mine, "s", "heir", LONG), 0);
    assert_true(mine.fence > fence);
    assert_int_equal(kill(pid, SIGCONT), 0);
    assert_int_equal(read(out, &code, sizeof(code)), sizeof(code));
    assert_int_equal(code, MO_EPOLICY);
    bury(pid);
    (void)close(out);
    assert_int_equal(GET(&f, .kind = MO_READ_HISTORY, .session = S("s")), 0);
    assert_int_equal(f.n, 0);
    mo_lease_drop(mine.lease);
    fix_fini(&f);
}

/* A holder that is killed is followed at the end of its term. */
static void test_holder_killed(void **state)
{
    uint64_t fence = 0;
    struct held mine;
    struct fix f;
    pid_t pid;
    int out;

    skip_if_emulated(NO_THREADS);
    fix_prepare(&f, *state);
    f.o.lease_ttl_ms = 800;
    fix_open(&f);
    fix_close(&f);
    pid = child(&f, hold_and_lose, 0, &out);
    assert_int_equal(read(out, &fence, sizeof(fence)), sizeof(fence));
    fix_open(&f);
    take(&f, &mine, "s", "heir", LONG);
    (void)kill(pid, SIGKILL);
    (void)waitpid(pid, NULL, 0);
    (void)close(out);
    assert_true(mo_loop_until(f.l, kit_answered, &mine, LONG));
    assert_int_equal(mine.code, 0);
    assert_true(mine.fence > fence);
    mo_lease_drop(mine.lease);
    fix_fini(&f);
}

/* --- one call, many who want to run it ----------------------------------- */

static atomic_uint *wins;

static void race(struct fix *f, int out, int n)
{
    (void)out;
    (void)n;
    for (int i = 0; i < RACES; i++) {
        char id[16];
        struct mo_write w = {.kind = MO_WRITE_MOVE,
                             .from = MO_CALL_BIT(MO_CALL_PENDING),
                             .to = MO_CALL_RUNNING};
        int rc;

        (void)snprintf(id, sizeof(id), "c%d", i);
        w.id = mo_span_cstr(id);
        rc = put(f, "s", 0, &w, 1);
        must(rc == 0 || rc == MO_EPOLICY);
        if (rc == 0)
            atomic_fetch_add(&wins[i], 1);
    }
}

static void test_race(void **state)
{
    pid_t pids[PROCS];
    struct fix f;

    skip_if_emulated(NO_THREADS);
    fix_init(&f, *state);
    wins = shared_page(RACES * sizeof(*wins));
    assert_int_equal(put(&f, "s", 0, &session_w, 1), 0);
    for (int i = 0; i < RACES; i++) {
        char id[16];
        struct mo_write w = {.kind = MO_WRITE_CALL, .doc = S("{}")};

        (void)snprintf(id, sizeof(id), "c%d", i);
        w.id = mo_span_cstr(id);
        assert_int_equal(put(&f, "s", 0, &w, 1), 0);
    }
    fix_close(&f);
    for (int i = 0; i < PROCS; i++)
        pids[i] = child(&f, race, i, NULL);
    for (int i = 0; i < PROCS; i++)
        bury(pids[i]);
    for (int i = 0; i < RACES; i++)
        assert_int_equal(atomic_load(&wins[i]), 1);
    (void)munmap(wins, RACES * sizeof(*wins));
    fix_fini(&f);
}

#define ON(backend, fn)                                                        \
    {                                                                          \
#        backend "/" #        fn, fn, NULL, NULL,                              \
            (void *)(uintptr_t)&backend##_backend                              \
    }
#define ALL(fn) ON(sqlite, fn), ON(redis, fn)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        ALL(test_killed),        ALL(test_stampede), ALL(test_stalled),
        ALL(test_holder_killed), ALL(test_race),     ALL(test_search_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
