#include "app/workers.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/mem.h"
#include "loop/spawn.h"

#define DELAY_MS     200 /* after the first early end, then twice as long */
#define DELAY_MAX_MS 5000
#define PAGE_MAX     ((size_t)1024 * 1024) /* of metrics; untouched memory */
#define READ_TRIES   100

enum word {
    LISTENS = 'L',
    STOP = 'T',
    RELOAD = 'H',
    PUBLISH = 'P',
    TELL = 'M'
};

struct mo_workers_shared {
    struct mo_workers_common common;
    struct {
        atomic_bool was_ready, alive;
        _Atomic char name[MO_INSTANCE_MAX]; /* its first byte is set last */
        /* Odd while the page is being written, and for ever if its worker was
         * killed then: the next one begins anew. */
        atomic_uint version;
        _Atomic size_t n;
        char page[PAGE_MAX];
    } v[MO_WORKERS_MAX];
};

struct worker {
    pid_t pid; /* 0: not running */
    int control;
    bool listens, again;
    unsigned early;      /* ends in a row, soon after the start */
    uint64_t began, due; /* ns; due: when to start it, 0: not planned */
};

struct parent {
    const struct mo_workers_opts *o;
    struct mo_log *log;
    pid_t self;
    int listeners[MO_WORKERS_MAX];
    struct worker v[MO_WORKERS_MAX];
    int signals; /* signalfd */
    sigset_t before;
    struct mo_workers_shared *shared;
    bool told, closing, again; /* again: the drain was ended */
    int code;
};

static const int taken[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};

/* --- orders --------------------------------------------------------------- */

/* False: the other side does not read. One that has ended is noticed by
 * SIGCHLD. */
static bool say(int control, enum word word)
{
    char c = (char)word;
    ssize_t n;

    do {
        n = send(control, &c, 1, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    return n == 1 || errno != EAGAIN;
}

static void pass_on(struct parent *p, const char *text, size_t n,
                    const struct worker *but)
{
    for (unsigned i = 0; i < p->o->count; i++)
        if (p->v[i].pid && &p->v[i] != but)
            (void)send(p->v[i].control, text, n, MSG_NOSIGNAL);
}

static void say_all(struct parent *p, enum word word, const struct worker *but)
{
    for (unsigned i = 0; i < p->o->count; i++)
        if (p->v[i].pid && &p->v[i] != but && !say(p->v[i].control, word) &&
            word == STOP)
            (void)kill(p->v[i].pid, SIGKILL);
}

static void kill_all(struct parent *p)
{
    for (unsigned i = 0; i < p->o->count; i++)
        if (p->v[i].pid)
            (void)kill(p->v[i].pid, SIGKILL);
}

/* The sockets first: then new connections are refused, not kept waiting. */
static void begin_end(struct parent *p, int code)
{
    p->closing = true;
    p->code = p->code ? p->code : code;
    for (unsigned i = 0; i < p->o->count; i++)
        mo_close_fd(&p->listeners[i]);
    say_all(p, STOP, NULL);
}

static bool is_over(const struct parent *p)
{
    for (unsigned i = 0; i < p->o->count; i++)
        if (p->v[i].pid)
            return false;
    return p->closing;
}

/* --- starting ------------------------------------------------------------- */

static void plan(struct worker *w, unsigned ms)
{
    w->due = mo_now_ns() + ms * MO_MS;
}

static void become_worker(struct parent *p, unsigned i, int control,
                          struct mo_worker *out)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != p->self) /* it died before */
        _exit(MO_EXIT_FAIL);
    for (unsigned k = 0; k < p->o->count; k++) {
        mo_close_fd(&p->v[k].control);
        if (k != i)
            mo_close_fd(&p->listeners[k]);
    }
    mo_close_fd(&p->signals);
    (void)signal(SIGTERM, SIG_IGN);
    (void)signal(SIGINT, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    (void)sigprocmask(SIG_SETMASK, &p->before, NULL);
    p->log->worker = i + 1;
    *out =
        (struct mo_worker){.number = i + 1,
                           .count = p->o->count,
                           .again = p->v[i].again,
                           .listener = p->listeners[i],
                           .control = control,
                           .shared = p->shared,
                           .written = atomic_load(&p->shared->common.written),
                           .found = atomic_load(&p->shared->common.found),
                           .common = &p->shared->common};
}

static void ended(struct parent *p, unsigned i, struct mo_exit x);

/* True in the worker. */
static bool start(struct parent *p, unsigned i, struct mo_worker *out)
{
    struct worker *w = &p->v[i];
    int pair[2];
    pid_t pid = -1;

    w->due = 0;
    w->began = mo_now_ns();
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
                   pair) == 0) {
        pid = fork();
        if (pid == 0) {
            (void)close(pair[0]);
            become_worker(p, i, pair[1], out);
            return true;
        }
        (void)close(pair[1]);
        if (pid < 0)
            (void)close(pair[0]);
    }
    if (pid < 0) {
        mo_log(p->log, MO_ERROR, "serve", "worker %u cannot be started: %s",
               i + 1, strerror(errno));
        ended(p, i, (struct mo_exit){.code = MO_EXIT_FAIL});
        return false;
    }
    w->pid = pid;
    w->control = pair[0];
    w->again = true;
    atomic_store(&p->shared->v[i].alive, true);
    return false;
}

/* True in the worker that was started. */
static bool start_due(struct parent *p, struct mo_worker *out)
{
    for (unsigned i = 0; i < p->o->count && !p->closing; i++)
        if (!p->v[i].pid && p->v[i].due && p->v[i].due <= mo_now_ns() &&
            start(p, i, out))
            return true;
    return false;
}

/* --- ending --------------------------------------------------------------- */

static unsigned delay_of(unsigned early)
{
    unsigned ms = early ? DELAY_MS : 0;

    while (early-- > 1 && ms < DELAY_MAX_MS)
        ms *= 2;
    return ms < DELAY_MAX_MS ? ms : DELAY_MAX_MS;
}

static void start_again(struct parent *p, unsigned i, const char *how)
{
    struct worker *w = &p->v[i];
    bool is_early = mo_now_ns() - w->began < MO_WORKERS_EARLY_MS * MO_MS;
    unsigned ms;

    w->early = is_early ? w->early + 1 : 0;
    if (w->early == MO_WORKERS_EARLY_MAX) {
        mo_log(p->log, MO_ERROR, "serve",
               "worker %u has ended %u times soon after its start (the last "
               "time: %s); stopping all",
               i + 1, w->early, how);
        begin_end(p, MO_EXIT_FAIL);
        return;
    }
    ms = delay_of(w->early);
    mo_log(p->log, MO_WARN, "serve",
           "worker %u has ended (%s); starting it again in %u ms", i + 1, how,
           ms);
    plan(w, ms);
}

static void ended(struct parent *p, unsigned i, struct mo_exit x)
{
    char how[MO_EXIT_TEXT_MAX];

    mo_exit_text(x, how);
    p->v[i].pid = 0;
    p->v[i].listens = false;
    mo_close_fd(&p->v[i].control);
    atomic_store(&p->shared->v[i].alive, false);
    atomic_store(&p->shared->v[i].name[0], '\0');
    mo_crowd_clear(&p->shared->common.crowd, i);
    mo_budget_shared_clear(&p->shared->common.budget, i + 1);
    if (p->closing && (x.signal || x.code)) {
        mo_log(p->log, MO_ERROR, "serve", "worker %u: %s", i + 1, how);
        p->code = p->code ? p->code : MO_EXIT_FAIL;
    } else if (!p->closing && !p->told && x.code > 0) {
        begin_end(p, x.code); /* it has said why */
    } else if (!p->closing) {
        start_again(p, i, how);
    }
}

/* The parent has one other child, the privileged helper: the workers notice its
 * end by themselves. */
static void reap(struct parent *p)
{
    int status = 0;

    for (pid_t pid = waitpid(-1, &status, WNOHANG); pid > 0;
         pid = waitpid(-1, &status, WNOHANG)) {
        struct mo_exit x = {.code = -1};

        if (WIFEXITED(status))
            x.code = WEXITSTATUS(status);
        else
            x.signal = WTERMSIG(status);
        for (unsigned i = 0; i < p->o->count; i++)
            if (p->v[i].pid == pid)
                ended(p, i, x);
    }
}

/* --- what happens --------------------------------------------------------- */

static void on_listens(struct parent *p, unsigned i)
{
    bool all = true;

    p->v[i].listens = true;
    for (unsigned k = 0; k < p->o->count; k++) {
        all = all && p->v[k].listens;
        if (!p->told && !p->v[k].pid && !p->v[k].due)
            plan(&p->v[k], 0);
    }
    if (all && !p->told && !p->closing) {
        p->told = true;
        p->o->ready(p->o->ctx);
    }
}

static void read_control(struct parent *p, unsigned i)
{
    char text[1 + MO_WORKERS_TEXT] = "";

    while (p->v[i].pid) {
        ssize_t n = recv(p->v[i].control, text, sizeof(text), 0);

        if (n == 0) /* it ends: poll() would return at once until it has */
            mo_close_fd(&p->v[i].control);
        if (n <= 0)
            break;
        if (text[0] == LISTENS)
            on_listens(p, i);
        else if (text[0] == RELOAD || text[0] == PUBLISH)
            say_all(p, (enum word)text[0], &p->v[i]);
        else if (text[0] == TELL)
            pass_on(p, text, (size_t)n, &p->v[i]);
    }
}

static void on_signal(struct parent *p, int signo)
{
    if (signo == SIGCHLD) {
        reap(p);
    } else if (signo == SIGHUP) {
        say_all(p, RELOAD, NULL);
        p->o->ordered(p->o->ctx, signo);
    } else if (p->closing && p->o->drains && !p->again) {
        p->again = true;
        say_all(p, STOP, NULL);
    } else if (p->closing) {
        mo_log(p->log, MO_WARN, "serve", "second signal: stopping at once");
        p->code = MO_EXIT_FAIL;
        kill_all(p);
    } else {
        mo_log(p->log, MO_DEBUG, "serve", "stopping %u workers", p->o->count);
        begin_end(p, MO_EXIT_OK);
        p->o->ordered(p->o->ctx, signo);
    }
}

static void read_signals(struct parent *p)
{
    struct signalfd_siginfo s;

    while (read(p->signals, &s, sizeof(s)) == (ssize_t)sizeof(s))
        on_signal(p, (int)s.ssi_signo);
}

/* Milliseconds until a worker is to be started; -1: none is. */
static int wait_ms(const struct parent *p)
{
    uint64_t now = mo_now_ns(), best = UINT64_MAX;

    for (unsigned i = 0; i < p->o->count && !p->closing; i++)
        if (!p->v[i].pid && p->v[i].due && p->v[i].due < best)
            best = p->v[i].due;
    if (best == UINT64_MAX)
        return -1;
    return best <= now ? 0 : (int)((best - now) / MO_MS) + 1;
}

static void wait_for_news(struct parent *p)
{
    struct pollfd v[1 + MO_WORKERS_MAX] = {
        {.fd = p->signals, .events = POLLIN}};

    for (unsigned i = 0; i < p->o->count; i++)
        v[1 + i] = (struct pollfd){.fd = p->v[i].pid ? p->v[i].control : -1,
                                   .events = POLLIN};
    if (poll(v, 1 + p->o->count, wait_ms(p)) < 0)
        return;
    for (unsigned i = 0; i < p->o->count; i++)
        if (v[1 + i].revents & POLLIN)
            read_control(p, i);
    if (v[0].revents)
        read_signals(p);
}

/* --- the parent ----------------------------------------------------------- */

static int init_common(struct mo_workers_common *c, struct mo_err *e)
{
    int rc = mo_strikes_shared_init(&c->strikes, e);

    mo_crowd_init(&c->crowd);
    if (rc == 0)
        rc = mo_budget_shared_init(&c->budget, e);
    if (rc == 0)
        rc = mo_proofs_shared_init(&c->proofs, e);
    if (rc == 0)
        rc = mo_logins_ended_init(&c->ended, e);
    return rc;
}

static int open_parent(struct parent *p, struct mo_err *e)
{
    sigset_t set;
    int rc;

    for (unsigned i = 0; i < MO_WORKERS_MAX; i++) {
        p->v[i].control = -1;
        p->listeners[i] = i < p->o->count ? p->o->listeners[i] : -1;
    }
    p->shared = mmap(NULL, sizeof(*p->shared), PROT_READ | PROT_WRITE,
                     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p->shared == MAP_FAILED)
        return mo_fail_sys(e, "shared memory");
    rc = init_common(&p->shared->common, e);
    if (rc < 0)
        return rc;
    (void)sigemptyset(&set);
    for (size_t i = 0; i < MO_COUNT(taken); i++)
        (void)sigaddset(&set, taken[i]);
    (void)sigprocmask(SIG_BLOCK, &set, &p->before);
    p->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return p->signals < 0 ? mo_fail_sys(e, "signals") : 0;
}

bool mo_workers_start(const struct mo_workers_opts *o, struct mo_worker *w,
                      int *code)
{
    struct parent p = {.o = o, .log = o->log, .self = getpid(), .signals = -1};
    struct mo_err e;

    if (open_parent(&p, &e) < 0) {
        mo_log_err(o->log, MO_ERROR, "serve", &e, "cannot start");
        begin_end(&p, MO_EXIT_FAIL);
    } else {
        plan(&p.v[0], 0);
    }
    while (!is_over(&p)) {
        if (start_due(&p, w))
            return true;
        wait_for_news(&p);
    }
    mo_close_fd(&p.signals);
    if (p.shared != MAP_FAILED)
        (void)munmap(p.shared, sizeof(*p.shared));
    *code = p.code;
    return false;
}

/* --- a worker ------------------------------------------------------------- */

static void on_order(void *ctx, int fd)
{
    struct mo_worker *w = ctx;
    char text[1 + MO_WORKERS_TEXT] = "";
    ssize_t n = recv(fd, text, sizeof(text), 0);
    char c = text[0];

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        _Exit(MO_EXIT_FAIL); /* the parent has ended */
    if (n == 1 && c == STOP)
        w->order(w->ctx, SIGTERM);
    else if (n == 1 && c == RELOAD)
        w->order(w->ctx, SIGHUP);
    else if (n == 1 && c == PUBLISH)
        w->publish(w->ctx);
    else if (n > 1 && c == TELL && w->told)
        w->told(w->ctx, mo_span(text + 1, (size_t)n - 1));
}

void mo_worker_listen(struct mo_worker *w,
                      void (*told)(void *ctx, struct mo_span text))
{
    w->told = told;
}

void mo_worker_tell(struct mo_worker *w, struct mo_span text)
{
    char all[1 + MO_WORKERS_TEXT] = {TELL};

    if (!w->number || text.n > MO_WORKERS_TEXT)
        return;
    memcpy(all + 1, text.p, text.n);
    (void)send(w->control, all, 1 + text.n, MSG_NOSIGNAL);
}

int mo_worker_open(struct mo_worker *w, struct mo_loop *l,
                   void (*order)(void *ctx, int signo),
                   void (*publish)(void *ctx), void *ctx, struct mo_err *e)
{
    if (!w->number)
        return 0;
    w->order = order;
    w->publish = publish;
    w->ctx = ctx;
    return mo_watch_open(l, w->control, on_order, w, &w->watch, e);
}

void mo_worker_close(struct mo_worker *w)
{
    if (!w->number)
        return;
    mo_watch_close(mo_take_ptr(&w->watch));
    w->number = 0; /* the memory stays: streams that end later still count */
}

void mo_worker_listens(struct mo_worker *w)
{
    if (w->number)
        (void)say(w->control, LISTENS);
}

void mo_worker_wrote(struct mo_worker *w)
{
    if (!w->number)
        return;
    if (atomic_fetch_add(&w->common->written, 1) == w->written)
        w->written++;
    (void)say(w->control, RELOAD);
}

bool mo_worker_is_behind(struct mo_worker *w)
{
    unsigned now = w->number ? atomic_load(&w->common->written) : w->written;
    bool is_behind = now != w->written;

    w->written = now;
    return is_behind;
}

void mo_worker_found(struct mo_worker *w)
{
    if (w->number && atomic_fetch_add(&w->common->found, 1) == w->found)
        w->found++;
}

bool mo_worker_is_told(struct mo_worker *w)
{
    unsigned now = w->number ? atomic_load(&w->common->found) : w->found;
    bool is_told = now != w->found;

    w->found = now;
    return is_told;
}

void mo_worker_settled(struct mo_worker *w)
{
    if (w->number)
        atomic_store(&w->shared->v[w->number - 1].was_ready, true);
}

void mo_worker_name(struct mo_worker *w, const char *instance)
{
    size_t n = strnlen(instance, MO_INSTANCE_MAX - 1);

    if (!w->number)
        return;
    for (size_t i = n + 1; i > 0; i--)
        atomic_store(&w->shared->v[w->number - 1].name[i - 1],
                     i > n ? '\0' : instance[i - 1]);
}

bool mo_worker_named(const struct mo_worker *w, unsigned number,
                     char out[MO_INSTANCE_MAX])
{
    bool is_alive = number >= 1 && number <= w->count &&
                    atomic_load(&w->shared->v[number - 1].alive);

    for (size_t i = 0; is_alive && i < MO_INSTANCE_MAX; i++)
        out[i] = atomic_load(&w->shared->v[number - 1].name[i]);
    return is_alive && out[0];
}

const char *mo_worker_why(void *ctx)
{
    struct mo_worker *w = ctx;

    for (unsigned i = 0; w->number && i < w->count; i++) {
        if (atomic_load(&w->shared->v[i].was_ready))
            continue;
        (void)snprintf(w->why, sizeof(w->why), "worker %u is being prepared",
                       i + 1);
        return w->why;
    }
    return NULL;
}

void mo_worker_publish(struct mo_worker *w, struct mo_span page)
{
    unsigned i = w->number - 1;
    unsigned odd = atomic_load(&w->shared->v[i].version) | 1;

    if (page.n > PAGE_MAX)
        page.n = 0;
    atomic_store(&w->shared->v[i].version, odd);
    atomic_thread_fence(memory_order_seq_cst);
    if (page.n)
        memcpy(w->shared->v[i].page, page.p, page.n);
    atomic_store(&w->shared->v[i].n, page.n);
    atomic_store(&w->shared->v[i].version, odd + 1);
}

void mo_worker_ask(struct mo_worker *w, unsigned versions[MO_WORKERS_MAX])
{
    for (unsigned i = 0; i < w->count; i++)
        versions[i] = atomic_load(&w->shared->v[i].version);
    (void)say(w->control, PUBLISH);
}

bool mo_worker_answered(const struct mo_worker *w,
                        const unsigned versions[MO_WORKERS_MAX])
{
    for (unsigned i = 0; i < w->count; i++)
        if (i + 1 != w->number && atomic_load(&w->shared->v[i].alive) &&
            atomic_load(&w->shared->v[i].version) - versions[i] < 2)
            return false;
    return true;
}

/* Nothing if it is changed all the time, or was left half-written. */
int mo_worker_page(const struct mo_worker *w, unsigned number,
                   struct mo_buf *out)
{
    unsigned i = number - 1;

    for (int tries = 0; tries < READ_TRIES; tries++) {
        unsigned before = atomic_load(&w->shared->v[i].version);
        size_t n = atomic_load(&w->shared->v[i].n);

        mo_buf_reset(out);
        if (n > PAGE_MAX || mo_buf_put(out, w->shared->v[i].page, n) < 0)
            return MO_ENOMEM;
        atomic_thread_fence(memory_order_seq_cst);
        if (!(before & 1) && atomic_load(&w->shared->v[i].version) == before)
            return 0;
    }
    mo_buf_reset(out);
    return 0;
}
