/* work.c - a mutex, a condition, two lists and an async handle.
 *
 * `queue` goes to the thread, `ready` comes back. `lock` protects both, a job's
 * state and the members marked "lock". Everything else belongs to the loop's
 * thread. `bell` is a uv_async, sent after each job and once at the end of the
 * thread. */
#include "loop/work.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#include "loop/priv.h"

struct mo_work {
    struct mo_loop *loop;
    char name[16];
    unsigned max;
    unsigned pending; /* accepted and not yet done() */
    bool stopping;
    struct mo_gone gone;
    uv_async_t bell;
    pthread_t thread;

    pthread_mutex_t lock;
    pthread_cond_t more;
    struct mo_list queue, ready; /* lock */
    bool ending;                 /* lock: exit when the queue is empty */
    bool ended;                  /* lock: set last by the thread */
};

/* --- worker thread ------------------------------------------------------- */

/* The next job, or NULL to exit. Takes the lock. */
static struct mo_job *next_job(struct mo_work *w)
{
    struct mo_job *j;

    pthread_mutex_lock(&w->lock);
    while (mo_list_empty(&w->queue) && !w->ending)
        pthread_cond_wait(&w->more, &w->lock);
    j = mo_list_first(&w->queue, struct mo_job, node);
    if (j) {
        mo_list_del(&j->node);
        j->state = MO_JOB_RUNNING;
    } else {
        w->ended = true;
    }
    pthread_mutex_unlock(&w->lock);
    return j;
}

static void hand_back(struct mo_work *w, struct mo_job *j)
{
    pthread_mutex_lock(&w->lock);
    j->state = MO_JOB_DONE;
    mo_list_push(&w->ready, &j->node);
    pthread_mutex_unlock(&w->lock);
    (void)uv_async_send(&w->bell);
}

static void *run_worker(void *arg)
{
    struct mo_work *w = arg;
    struct mo_job *j = next_job(w);

    while (j) {
        j->run(j);
        hand_back(w, j);
        j = next_job(w);
    }
    (void)uv_async_send(&w->bell); /* w lives until the thread is joined */
    return NULL;
}

/* --- loop thread --------------------------------------------------------- */

/* A referenced handle keeps the loop running. */
static void keep_loop(struct mo_work *w)
{
    if (w->pending || w->stopping)
        uv_ref((uv_handle_t *)&w->bell);
    else
        uv_unref((uv_handle_t *)&w->bell);
}

static void on_closed(uv_handle_t *h)
{
    struct mo_work *w = h->data;
    struct mo_gone gone = w->gone;

    pthread_cond_destroy(&w->more);
    pthread_mutex_destroy(&w->lock);
    mo_free(w);
    mo_gone_fire(gone);
}

static void finish_job(struct mo_work *w, struct mo_job *j)
{
    bool canceled = j->canceled;

    j->state = MO_JOB_OUT;
    w->pending--;
    keep_loop(w);
    j->done(j, canceled);
}

static bool take_ready(struct mo_work *w, struct mo_list *into)
{
    bool ended;

    pthread_mutex_lock(&w->lock);
    mo_list_splice(into, &w->ready);
    ended = w->ended;
    pthread_mutex_unlock(&w->lock);
    return ended;
}

/* Take only jobs that were ready now, so a job that submits itself again cannot
 * block the loop here. After the thread has ended and nothing is pending, no
 * more signals come. */
static void on_bell(uv_async_t *h)
{
    struct mo_work *w = h->data;
    struct mo_list now;
    bool ended;

    mo_list_init(&now);
    ended = take_ready(w, &now);
    mo_list_drain (j, &now, struct mo_job, node) {
        finish_job(w, j);
    }
    if (!ended || w->pending)
        return;
    (void)pthread_join(w->thread, NULL);
    uv_close((uv_handle_t *)h, on_closed);
}

int mo_work_submit(struct mo_work *w, struct mo_job *j)
{
    MO_BUG_ON(j->state != MO_JOB_OUT);
    if (w->stopping)
        return MO_ECLOSED;
    if (w->pending >= w->max)
        return MO_EBUSY;
    w->pending++;
    keep_loop(w);
    pthread_mutex_lock(&w->lock);
    j->state = MO_JOB_QUEUED;
    j->canceled = false;
    mo_list_push(&w->queue, &j->node);
    pthread_mutex_unlock(&w->lock);
    pthread_cond_signal(&w->more); /* unlocked first, so it need not wait */
    return 0;
}

/* The caller holds the lock. */
static void cancel_queued(struct mo_work *w, struct mo_job *j)
{
    j->canceled = true;
    j->state = MO_JOB_DONE;
    mo_list_del(&j->node);
    mo_list_push(&w->ready, &j->node);
}

unsigned mo_work_pending(const struct mo_work *w)
{
    return w->pending;
}

void mo_work_stop(struct mo_work *w, enum mo_work_end how,
                  void (*gone)(void *ctx), void *ctx)
{
    if (!w)
        return;
    if (!w->stopping)
        w->gone = (struct mo_gone){gone, ctx};
    w->stopping = true;
    keep_loop(w);
    pthread_mutex_lock(&w->lock);
    w->ending = true;
    while (how == MO_WORK_CANCEL && !mo_list_empty(&w->queue))
        cancel_queued(w, mo_container_of(w->queue.next, struct mo_job, node));
    pthread_cond_signal(&w->more);
    pthread_mutex_unlock(&w->lock);
    (void)uv_async_send(&w->bell);
}

/* --- start --------------------------------------------------------------- */

/* A thread inherits its creator's signal mask, so all signals are blocked while
 * it is created: none can reach it unmasked. */
static int make_thread(struct mo_work *w)
{
    sigset_t all, old;
    pthread_attr_t attr;
    int rc = pthread_attr_init(&attr);

    if (rc)
        return rc;
    (void)pthread_attr_setstacksize(&attr, MO_WORK_STACK);
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    rc = pthread_create(&w->thread, &attr, run_worker, w);
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
    (void)pthread_attr_destroy(&attr);
    if (rc == 0)
        (void)pthread_setname_np(w->thread, w->name);
    return rc;
}

static struct mo_work *work_new(struct mo_loop *l, const char *name,
                                unsigned max)
{
    struct mo_work *w = mo_new(struct mo_work);

    if (!w)
        return NULL;
    w->loop = l;
    w->max = max;
    (void)snprintf(w->name, sizeof(w->name), "%s", name);
    mo_list_init(&w->queue);
    mo_list_init(&w->ready);
    (void)pthread_mutex_init(&w->lock, NULL);
    (void)pthread_cond_init(&w->more, NULL);
    w->bell.data = w;
    return w;
}

struct mo_work *mo_work_start(struct mo_loop *l, const char *name, unsigned max,
                              struct mo_err *e)
{
    struct mo_work *w = work_new(l, name, max);
    int rc;

    MO_BUG_ON(max == 0);
    if (!w)
        return mo_null(mo_fail(e, MO_ENOMEM, "worker %s", name));
    rc = uv_async_init(&l->uv, &w->bell, on_bell);
    if (rc < 0) {
        (void)mo_fail_uv(e, rc, "worker %s", name);
        pthread_cond_destroy(&w->more);
        pthread_mutex_destroy(&w->lock);
        mo_free(w);
        return NULL;
    }
    rc = make_thread(w);
    if (rc) {
        (void)mo_fail_uv(e, -rc, "worker %s: thread", name);
        uv_close((uv_handle_t *)&w->bell, on_closed);
        return NULL;
    }
    keep_loop(w);
    return w;
}
