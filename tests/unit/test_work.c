/* test_work.c - the worker: order, limit, done() exactly once.
 *
 * A job may wait at a gate, so the test decides what is running and what is
 * queued; nothing depends on timing. */
#include "mo_test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "loop/work.h"

#define MAX  8
#define JOBS 64
#define LONG 30000 /* ms; a deadline for hangs, not for speed */

struct log {
    int ran[JOBS * 4], nran; /* written by the worker */
    int done[JOBS * 4], ndone;
    int ncanceled, gone;
};

struct task {
    struct mo_job job; /* first: a job is a task */
    struct log *log;
    struct mo_work *w;
    int id, again;
    sem_t *entered, *gate;
    pthread_t where;
    bool canceled;
};

static struct task *task_of(struct mo_job *j)
{
    return mo_container_of(j, struct task, job);
}

static void pass(sem_t *s)
{
    while (sem_wait(s) < 0)
        assert_int_equal(errno, EINTR);
}

static void run(struct mo_job *j)
{
    struct task *t = task_of(j);

    t->where = pthread_self();
    if (t->entered)
        (void)sem_post(t->entered);
    if (t->gate)
        pass(t->gate);
    t->log->ran[t->log->nran++] = t->id;
}

static void done(struct mo_job *j, bool canceled)
{
    struct task *t = task_of(j);

    t->canceled = canceled;
    t->log->ncanceled += canceled;
    t->log->done[t->log->ndone++] = t->id;
    if (t->again-- > 0)
        assert_int_equal(mo_work_submit(t->w, j), 0);
}

static void on_gone(void *ctx)
{
    ((struct log *)ctx)->gone++;
}

static bool is_gone(void *ctx)
{
    return ((struct log *)ctx)->gone > 0;
}

struct fix {
    struct mo_loop *l;
    struct mo_work *w;
    struct log log;
    struct task t[JOBS];
    sem_t entered, gate;
};

static void fix_init(struct fix *f)
{
    struct mo_err e;

    memset(f, 0, sizeof(*f));
    f->l = mo_loop_new(NULL, &e);
    assert_non_null(f->l);
    f->w = mo_work_start(f->l, "tester", MAX, &e);
    assert_non_null(f->w);
    assert_int_equal(sem_init(&f->entered, 0, 0), 0);
    assert_int_equal(sem_init(&f->gate, 0, 0), 0);
    for (int i = 0; i < JOBS; i++) {
        mo_job_init(&f->t[i].job, run, done);
        f->t[i].log = &f->log;
        f->t[i].w = f->w;
        f->t[i].id = i;
    }
}

static void fix_fini(struct fix *f)
{
    assert_true(mo_loop_until(f->l, is_gone, &f->log, LONG));
    assert_int_equal(f->log.gone, 1);
    mo_loop_free(f->l);
    (void)sem_destroy(&f->entered);
    (void)sem_destroy(&f->gate);
}

/* Job 0 runs and waits at the gate; 1..n-1 are queued behind it. */
static void fill(struct fix *f, int n)
{
    f->t[0].entered = &f->entered;
    f->t[0].gate = &f->gate;
    for (int i = 0; i < n; i++)
        assert_int_equal(mo_work_submit(f->w, &f->t[i].job), 0);
    pass(&f->entered);
}

static void test_order(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f);
    fill(&f, MAX);
    assert_int_equal(mo_work_pending(f.w), MAX);
    assert_int_equal(f.log.ndone, 0); /* never from inside submit */
    (void)sem_post(&f.gate);
    mo_loop_run(f.l); /* returns: no job keeps the loop running */
    assert_int_equal(f.log.ndone, MAX);
    assert_int_equal(f.log.nran, MAX);
    for (int i = 0; i < MAX; i++) {
        assert_int_equal(f.log.ran[i], i);
        assert_int_equal(f.log.done[i], i);
        assert_false(f.t[i].canceled);
        assert_false(pthread_equal(f.t[i].where, pthread_self()));
    }
    mo_work_stop(f.w, MO_WORK_DRAIN, on_gone, &f.log);
    assert_int_equal(f.log.gone, 0);
    fix_fini(&f);
}

static void test_bound(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f);
    fill(&f, MAX);
    assert_int_equal(mo_work_submit(f.w, &f.t[MAX].job), MO_EBUSY);
    assert_int_equal(mo_work_pending(f.w), MAX);
    (void)sem_post(&f.gate);
    mo_loop_run(f.l);
    assert_int_equal(f.log.ndone, MAX); /* the rejected job has no done() */
    assert_int_equal(mo_work_submit(f.w, &f.t[MAX].job), 0);
    mo_loop_run(f.l);
    assert_int_equal(f.log.ndone, MAX + 1);
    mo_work_stop(f.w, MO_WORK_CANCEL, on_gone, &f.log);
    fix_fini(&f);
}

static const struct {
    const char *name;
    int jobs;
    enum mo_work_end how, then; /* a second stop */
    int ran, canceled;
} stops[] = {
    {"idle, drain", 0, MO_WORK_DRAIN, MO_WORK_DRAIN, 0, 0},
    {"idle, cancel", 0, MO_WORK_CANCEL, MO_WORK_CANCEL, 0, 0},
    {"one running, cancel", 1, MO_WORK_CANCEL, MO_WORK_CANCEL, 1, 0},
    {"full, cancel", MAX, MO_WORK_CANCEL, MO_WORK_DRAIN, 1, MAX - 1},
    {"full, drain", MAX, MO_WORK_DRAIN, MO_WORK_DRAIN, MAX, 0},
    {"drain, then cancel", MAX, MO_WORK_DRAIN, MO_WORK_CANCEL, 1, MAX - 1},
};

static void stop_row(size_t i)
{
    const char *name = stops[i].name;
    struct fix f;

    fix_init(&f);
    if (stops[i].jobs)
        fill(&f, stops[i].jobs);
    mo_work_stop(f.w, stops[i].how, on_gone, &f.log);
    mo_work_stop(f.w, stops[i].then, NULL, NULL);
    check_row(name, f.log.ndone == 0 && f.log.gone == 0);
    check_row(name, mo_work_submit(f.w, &f.t[JOBS - 1].job) == MO_ECLOSED);
    (void)sem_post(&f.gate);
    fix_fini(&f);
    check_row(name, f.log.ndone == stops[i].jobs);
    check_row(name, f.log.nran == stops[i].ran);
    check_row(name, f.log.ncanceled == stops[i].canceled);
}

static void test_stop(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(stops); i++)
        stop_row(i);
}

/* done() submits its job again: many rounds, at most MAX accepted. */
static void test_again(void **state)
{
    struct fix f;

    (void)state;
    fix_init(&f);
    for (int i = 0; i < MAX; i++) {
        f.t[i].again = 10;
        assert_int_equal(mo_work_submit(f.w, &f.t[i].job), 0);
    }
    mo_loop_run(f.l);
    assert_int_equal(f.log.ndone, MAX * 11);
    assert_int_equal(f.log.nran, MAX * 11);
    assert_int_equal(mo_work_pending(f.w), 0);
    mo_work_stop(f.w, MO_WORK_CANCEL, on_gone, &f.log);
    fix_fini(&f);
}

struct peek {
    struct mo_job job;
    struct mo_work *w;
    struct log *log;
    char name[16];
    sigset_t mask;
    size_t stack;
};

static void peek_run(struct mo_job *j)
{
    struct peek *p = mo_container_of(j, struct peek, job);
    pthread_attr_t attr;

    (void)prctl(PR_GET_NAME, p->name, 0, 0, 0);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &p->mask);
    (void)pthread_getattr_np(pthread_self(), &attr);
    (void)pthread_attr_getstacksize(&attr, &p->stack);
    (void)pthread_attr_destroy(&attr);
}

/* Stopping from inside done() is the usual way to end. */
static void peek_done(struct mo_job *j, bool canceled)
{
    struct peek *p = mo_container_of(j, struct peek, job);

    assert_false(canceled);
    mo_work_stop(p->w, MO_WORK_CANCEL, on_gone, p->log);
}

static void test_thread(void **state)
{
    struct fix f;
    struct peek p = {.name = ""};
    sigset_t before, after;

    (void)state;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    fix_init(&f);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(sigismember(&before, SIGTERM),
                     sigismember(&after, SIGTERM));
    mo_job_init(&p.job, peek_run, peek_done);
    p.w = f.w;
    p.log = &f.log;
    assert_int_equal(mo_work_submit(f.w, &p.job), 0);
    fix_fini(&f);
    assert_string_equal(p.name, "tester");
    assert_int_equal(sigismember(&p.mask, SIGTERM), 1);
    assert_int_equal(sigismember(&p.mask, SIGINT), 1);
    assert_int_equal(sigismember(&p.mask, SIGUSR1), 1);
    assert_in_range(p.stack, 16 * 1024, 2 * MO_WORK_STACK);
}

static void life(void *ctx)
{
    struct mo_loop *l;
    struct mo_work *w;
    struct mo_err e;
    struct log log = {.gone = 0};

    (void)ctx;
    l = mo_loop_new(NULL, &e);
    if (!l)
        return;
    w = mo_work_start(l, "torture", 1, &e);
    if (w) {
        mo_work_stop(w, MO_WORK_DRAIN, on_gone, &log);
        assert_true(mo_loop_until(l, is_gone, &log, LONG));
    } else {
        assert_int_equal(e.code, MO_ENOMEM);
    }
    mo_loop_free(l);
}

static void test_no_memory(void **state)
{
    (void)state;
    torture(life, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),  cmocka_unit_test(test_bound),
        cmocka_unit_test(test_stop),   cmocka_unit_test(test_again),
        cmocka_unit_test(test_thread), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
