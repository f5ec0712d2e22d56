#include "toolbox/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/text/utf8.h"
#include "toolbox/tree.h"

#define ROUND_NS   (10 * MO_MS)
#define SETTLE_NS  (2 * MO_MS)
#define HELD_NS    (100 * MO_MS) /* between two looks at a waiting script */
#define ROUNDS_MAX 300           /* three seconds, then give up */
#define TICK_NS    (100 * MO_MS) /* between two reports of live output */
#define LIVE_MAX   ((size_t)8 * 1024) /* per report */
#define DRAIN_MAX  ((size_t)1024 * 1024)

#define TO(s) (1u << (s))

static void job_move(struct tb_job *j, enum tb_job_state to)
{
    static const unsigned legal[TB_JOB_STATES] = {
        [TB_JOB_RUNNING] = TO(TB_JOB_KILLING) | TO(TB_JOB_LEFT),
        [TB_JOB_LEFT] = TO(TB_JOB_KILLING),
        [TB_JOB_KILLING] = 0,
    };

    MO_BUG_ON(!(legal[j->state] & TO(to)));
    j->state = to;
}

/* --- closing ------------------------------------------------------------- */

static void close_watch(struct tb_watch *w, int *fd)
{
    tb_watch_stop(w);
    mo_close_fd(fd);
}

static void job_free(struct tb_job *j)
{
    mo_list_del(&j->node);
    j->exec->njobs--;
    tb_timer_stop(&j->deadline);
    tb_timer_stop(&j->round);
    tb_timer_stop(&j->tick);
    close_watch(&j->in, &j->in_fd);
    close_watch(&j->report, &j->report_fd);
    mo_close_fd(&j->order);
    for (int i = 0; i < TB_STREAMS; i++) {
        close_watch(&j->streams[i].watch, &j->streams[i].fd);
        tb_clip_fini(&j->streams[i].clip);
        mo_buf_fini(&j->streams[i].fresh);
    }
    mo_buf_fini(&j->input);
    tb_idle_stop(&j->clean);
    tb_script_free(j->script);
    mo_free(j);
}

/* Invariant 1. The files of a script are removed first, step by step. */
static void job_free_if_over(struct tb_job *j)
{
    if (j->keeper || j->call)
        return;
    if (j->script && !tb_script_clean(j->script))
        tb_idle_start(j->exec->loop, &j->clean);
    else
        job_free(j);
}

static void on_clean(struct tb_idle *i)
{
    job_free_if_over(mo_container_of(i, struct tb_job, clean));
}

/* --- live output --------------------------------------------------------- */

static struct mo_span whole_chars(struct mo_span s)
{
    for (size_t back = 1; back <= 3 && back <= s.n; back++) {
        const char *c = s.p + s.n - back;

        if (mo_utf8_is_tail(*c))
            continue;
        return (unsigned char)*c < 0xC0 || mo_utf8_len(c, s.p + s.n)
                   ? s
                   : mo_span_head(s, s.n - back);
    }
    return s;
}

static void tell_fresh(struct tb_job *j, bool last)
{
    static const char *const names[] = {"stdout", "stderr"};

    for (int i = 0; i < TB_STREAMS; i++) {
        struct tb_stream *st = &j->streams[i];
        struct mo_span s = mo_buf_view(&st->fresh);
        struct mo_span told = last ? s : whole_chars(s);

        if (told.n == 0)
            continue;
        tb_call_live(j->call, names[i], told, told.n + st->skipped);
        st->skipped = 0;
        mo_buf_drop(&st->fresh, told.n);
    }
}

static void on_tick(struct tb_timer *t)
{
    struct tb_job *j = mo_container_of(t, struct tb_job, tick);

    if (j->call && !j->exec->paused)
        tell_fresh(j, false);
}

static void add_fresh(struct tb_stream *st, struct mo_span s)
{
    struct tb_job *j = st->job;

    if (!j->call || !tb_call_is_live(j->call))
        return;
    if (s.n > LIVE_MAX) {
        st->skipped += s.n - LIVE_MAX;
        s = mo_span_skip(s, s.n - LIVE_MAX);
    }
    if (st->fresh.len + s.n > LIVE_MAX) {
        size_t drop = st->fresh.len + s.n - LIVE_MAX;

        st->skipped += drop;
        mo_buf_drop(&st->fresh, drop);
    }
    if (mo_buf_span(&st->fresh, s) < 0)
        mo_buf_fini(&st->fresh); /* no memory: the answer still has it */
    if (mo_list_empty(&j->tick.node))
        tb_timer_start(j->exec->loop, &j->tick, TICK_NS);
}

/* --- the end ------------------------------------------------------------- */

static ssize_t read_some(struct tb_stream *st)
{
    char buf[16384];
    ssize_t n = read(st->fd, buf, sizeof(buf));

    if (n > 0) {
        (void)tb_clip_put(&st->clip, mo_span(buf, (size_t)n));
        add_fresh(st, mo_span(buf, (size_t)n));
    }
    return n;
}

/* Read what is left in the pipes after the processes are gone. */
static void drain_output(struct tb_job *j)
{
    for (int i = 0; i < TB_STREAMS; i++) {
        struct tb_stream *st = &j->streams[i];
        size_t all = 0;
        ssize_t n = 1;

        while (st->fd >= 0 && n > 0 && all < DRAIN_MAX) {
            n = read_some(st);
            all += n > 0 ? (size_t)n : 0;
        }
    }
}

static void answer_job(struct tb_job *j)
{
    if (!j->call)
        return;
    drain_output(j);
    tell_fresh(j, true);
    tb_timer_stop(&j->deadline);
    tb_script_close(j->script);
    tb_job_answer(j);
    j->call = NULL;
    for (int i = 0; i < TB_STREAMS; i++)
        tb_clip_fini(&j->streams[i].clip);
}

/* Ended, the keeper reported what is left, and the output is closed. */
static void check_over(struct tb_job *j)
{
    if (j->state != TB_JOB_RUNNING || !j->ended ||
        !(j->left || j->report_fd < 0) || j->streams[TB_OUT].fd >= 0 ||
        j->streams[TB_ERR].fd >= 0)
        return;
    answer_job(j);
    job_move(j, TB_JOB_LEFT);
    job_free_if_over(j);
}

/* A script leaves nothing behind. Most have nothing, and their keeper ends by
 * itself before the first round. */
static void end_script(struct tb_job *j)
{
    if (!j->script || !j->keeper || j->state != TB_JOB_RUNNING)
        return; /* without a keeper nothing is left: see check_over() */
    job_move(j, TB_JOB_KILLING);
    tb_timer_stop(&j->deadline);
    tb_timer_start(j->exec->loop, &j->round, SETTLE_NS);
}

static void kill_round(struct tb_job *j)
{
    int alive = tb_tree_kill(j->keeper, NULL, 0);

    if (alive < 0 && j->command)
        (void)kill(-j->command, SIGKILL); /* the best possible without /proc */
    if (alive <= 0 || j->rounds >= ROUNDS_MAX)
        (void)kill(j->keeper, SIGKILL);
    if (j->rounds++ >= ROUNDS_MAX)
        answer_job(j);
    tb_timer_start(j->exec->loop, &j->round, ROUND_NS);
}

static void on_round(struct tb_timer *t)
{
    kill_round(mo_container_of(t, struct tb_job, round));
}

static void job_kill(struct tb_job *j)
{
    if (j->state == TB_JOB_KILLING)
        return;
    job_move(j, TB_JOB_KILLING);
    tb_timer_stop(&j->deadline);
    if (j->keeper)
        kill_round(j);
    else
        answer_job(j); /* the output is held by a foreign process */
}

static void on_deadline(struct tb_timer *t)
{
    struct tb_job *j = mo_container_of(t, struct tb_job, deadline);
    uint64_t held = tb_script_held(j->script);

    if (held > j->extended) { /* the timeout is of the script's own time */
        uint64_t more = held - j->extended;

        j->extended = held;
        tb_timer_start(j->exec->loop, t, more > HELD_NS ? more : HELD_NS);
        return;
    }
    j->timed_out = true;
    job_kill(j);
    job_free_if_over(j);
}

static void on_cancel(struct tb_call *c)
{
    struct tb_job *j = c->job;

    j->call = NULL;
    tb_script_close(j->script);
    job_kill(j);
    job_free_if_over(j);
}

/* --- events from the processes ------------------------------------------- */

static void on_output(struct tb_watch *w)
{
    struct tb_stream *st = mo_container_of(w, struct tb_stream, watch);
    ssize_t n = read_some(st);

    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
        return;
    close_watch(&st->watch, &st->fd);
    check_over(st->job);
}

static void on_input(struct tb_watch *w)
{
    struct tb_job *j = mo_container_of(w, struct tb_job, in);
    struct mo_span rest = mo_span_skip(mo_buf_view(&j->input), j->written);
    ssize_t n = rest.n ? write(j->in_fd, rest.p, rest.n) : 0;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    j->written += n > 0 ? (size_t)n : 0;
    if (n < 0 || j->written == j->input.len)
        close_watch(&j->in, &j->in_fd); /* all written, or nobody reads it */
}

static void take_report(struct tb_job *j, const struct tb_report *r)
{
    switch ((enum tb_report_kind)r->kind) {
    case TB_STARTED:
        j->command = r->value;
        break;
    case TB_NO_EXEC:
        j->no_exec = r->value;
        break;
    case TB_ENDED:
        j->ended = true;
        j->status = r->value;
        end_script(j);
        break;
    case TB_LEFT:
        j->left = !j->script;
        break;
    }
}

/* Reports ended without the command's end: its keeper was killed. */
static void on_report(struct tb_watch *w)
{
    struct tb_job *j = mo_container_of(w, struct tb_job, report);
    struct tb_report r;
    ssize_t n = read(j->report_fd, &r, sizeof(r));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n == (ssize_t)sizeof(r)) {
        take_report(j, &r);
        check_over(j);
        return;
    }
    close_watch(&j->report, &j->report_fd);
    if (!j->ended && j->state == TB_JOB_RUNNING) {
        j->lost = !j->no_exec;
        job_kill(j);
        job_free_if_over(j);
        return;
    }
    check_over(j);
}

/* --- start --------------------------------------------------------------- */

enum { P_IN, P_OUT, P_ERR, P_ORDER, P_REPORT, PIPES };

struct pipes {
    int fd[PIPES][2];
};

static void close_all_pipes(struct pipes *p)
{
    for (int i = 0; i < PIPES; i++) {
        mo_close_fd(&p->fd[i][0]);
        mo_close_fd(&p->fd[i][1]);
    }
}

static int open_pipes(struct pipes *p)
{
    memset(p, -1, sizeof(*p));
    for (int i = 0; i < PIPES; i++) {
        if (pipe2(p->fd[i], O_CLOEXEC) < 0)
            return -1;
    }
    return 0;
}

static void watch_output(struct tb_exec *x, struct tb_watch *w, int *to,
                         int *from, short events,
                         void (*ready)(struct tb_watch *w))
{
    *to = mo_take_fd(from);
    (void)fcntl(*to, F_SETFL, O_NONBLOCK);
    tb_watch_start(x->loop, w, *to, events, ready);
}

static void job_watch(struct tb_job *j, struct pipes *p)
{
    struct tb_exec *x = j->exec;
    short reads = x->paused ? 0 : POLLIN;

    watch_output(x, &j->in, &j->in_fd, &p->fd[P_IN][1], POLLOUT, on_input);
    watch_output(x, &j->report, &j->report_fd, &p->fd[P_REPORT][0], POLLIN,
                 on_report);
    for (int i = 0; i < TB_STREAMS; i++)
        watch_output(x, &j->streams[i].watch, &j->streams[i].fd,
                     &p->fd[P_OUT + i][0], reads, on_output);
    j->order = mo_take_fd(&p->fd[P_ORDER][1]);
}

static struct tb_job *job_new(struct tb_exec *x, const struct tb_job_opts *o)
{
    struct tb_job *j = mo_new(struct tb_job);

    if (!j)
        return NULL;
    j->exec = x;
    j->order = j->in_fd = j->report_fd = -1;
    for (int i = 0; i < TB_STREAMS; i++) {
        j->streams[i].job = j;
        j->streams[i].fd = -1;
        tb_clip_init(&j->streams[i].clip, o->room);
        mo_buf_init(&j->streams[i].fresh, LIVE_MAX);
    }
    tb_timer_init(&j->deadline, on_deadline);
    tb_timer_init(&j->round, on_round);
    tb_timer_init(&j->tick, on_tick);
    tb_idle_init(&j->clean, on_clean);
    mo_buf_init(&j->input, o->input.n ? o->input.n : 1);
    mo_list_push(&x->jobs, &j->node);
    x->njobs++;
    if (mo_buf_span(&j->input, o->input) < 0) {
        job_free(j);
        return NULL;
    }
    return j;
}

static int job_fork(struct tb_job *j, struct pipes *p, struct tb_start *s,
                    struct mo_err *e)
{
    if (open_pipes(p) < 0)
        return mo_fail_sys(e, "no pipes for the command");
    s->in = p->fd[P_IN][0];
    s->out = p->fd[P_OUT][1];
    s->err = p->fd[P_ERR][1];
    s->order = p->fd[P_ORDER][0];
    s->report = p->fd[P_REPORT][1];
    j->keeper = tb_keeper_start(s);
    if (j->keeper > 0)
        return 0;
    j->keeper = 0;
    return mo_fail_sys(e, "no new process can be started (end some of those "
                          "that run)");
}

int tb_job_start(struct tb_exec *x, struct tb_call *c, struct tb_start *s,
                 const struct tb_job_opts *o, struct mo_err *e)
{
    struct pipes p;
    struct tb_job *j;
    int rc;

    if (x->njobs >= TB_JOBS_MAX)
        return mo_fail(e, MO_EBUSY,
                       "%d commands have processes that still run in the "
                       "background: end some of them first",
                       TB_JOBS_MAX);
    j = job_new(x, o);
    if (!j)
        return mo_fail(e, MO_ENOMEM, "out of memory for the command");
    rc = job_fork(j, &p, s, e);
    if (rc == 0)
        job_watch(j, &p);
    close_all_pipes(&p);
    if (rc < 0) {
        job_free(j);
        return rc;
    }
    j->began = mo_now_ns();
    j->call = c;
    j->script = o->script;
    c->job = j;
    c->cancel = on_cancel;
    tb_timer_start(x->loop, &j->deadline, o->timeout);
    return 0;
}

/* --- all jobs ------------------------------------------------------------ */

/* Processes that lost their keeper are our children now. Every child that is
 * not a keeper is one of them, or below one. */
static void on_hunt(struct tb_timer *t)
{
    struct tb_exec *x = mo_container_of(t, struct tb_exec, hunt);
    pid_t spare[TB_JOBS_MAX];
    size_t n = 0;

    mo_list_each (it, &x->jobs) {
        struct tb_job *j = mo_container_of(it, struct tb_job, node);

        if (j->keeper)
            spare[n++] = j->keeper;
    }
    if (tb_tree_kill(getpid(), spare, n) > 0 && x->hunt_rounds++ < ROUNDS_MAX)
        tb_timer_start(x->loop, t, ROUND_NS);
}

void tb_exec_init(struct tb_exec *x, struct tb_loop *l)
{
    *x = (struct tb_exec){.loop = l};
    mo_list_init(&x->jobs);
    tb_timer_init(&x->hunt, on_hunt);
}

void tb_exec_reaped(struct tb_exec *x, pid_t pid, int status)
{
    mo_list_each_safe (it, &x->jobs) {
        struct tb_job *j = mo_container_of(it, struct tb_job, node);

        if (j->keeper != pid)
            continue;
        j->keeper = 0;
        tb_timer_stop(&j->round);
        if (WIFSIGNALED(status)) {
            x->hunt_rounds = 0;
            tb_timer_start(x->loop, &x->hunt, MO_MS);
        }
        if (j->state == TB_JOB_KILLING)
            answer_job(j);
        job_free_if_over(j);
        return;
    }
}

void tb_exec_pause(struct tb_exec *x, bool paused)
{
    x->paused = paused;
    mo_list_each (it, &x->jobs) {
        struct tb_job *j = mo_container_of(it, struct tb_job, node);

        for (int i = 0; i < TB_STREAMS; i++)
            j->streams[i].watch.events = paused ? 0 : POLLIN;
        if (j->script && j->script->channel)
            tb_channel_pause(j->script->channel, paused);
        if (!paused && j->call)
            tb_timer_start(x->loop, &j->tick, TICK_NS);
    }
}

void tb_exec_stop(struct tb_exec *x)
{
    mo_list_each_safe (it, &x->jobs) {
        struct tb_job *j = mo_container_of(it, struct tb_job, node);

        job_kill(j);
        job_free_if_over(j);
    }
}

bool tb_exec_is_idle(const struct tb_exec *x)
{
    return x->njobs == 0 && mo_list_empty(&x->hunt.node);
}

void tb_exec_fini(struct tb_exec *x)
{
    while (!mo_list_empty(&x->jobs))
        job_free(mo_container_of(x->jobs.next, struct tb_job, node));
}
