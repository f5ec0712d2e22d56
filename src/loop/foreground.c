#include "loop/foreground.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "loop/priv.h"
#include "loop/spawn.h"

/* The terminal sends these to the whole process group at once, so a signal that
 * ends the editor has reached this process before the editor's exit is seen. */
static const int typed[] = {SIGINT, SIGQUIT};

struct mo_foreground {
    struct mo_foreground_opts o;
    struct sigaction was[MO_COUNT(typed)];
    uv_poll_t poll;
    pid_t pid;
    int pidfd;
    bool freed;
    struct mo_exit exit;
};

static void ignore_typed(struct mo_foreground *f)
{
    const struct sigaction ignore = {.sa_handler = SIG_IGN};

    for (size_t i = 0; i < MO_COUNT(typed); i++)
        (void)sigaction(typed[i], &ignore, &f->was[i]);
}

static void restore_typed(const struct mo_foreground *f)
{
    for (size_t i = 0; i < MO_COUNT(typed); i++)
        (void)sigaction(typed[i], &f->was[i], NULL);
}

static void on_closed(uv_handle_t *h)
{
    struct mo_foreground *f = h->data;
    struct mo_foreground_opts o = f->o;
    struct mo_exit x = f->exit;
    bool told = !f->freed;

    (void)mo_spawn_ended(f->pidfd, WNOHANG, &f->exit);
    mo_close_fd(&f->pidfd);
    restore_typed(f);
    mo_free(f);
    if (told)
        o.on_exit(o.ctx, x);
}

static void on_ready(uv_poll_t *h, int status, int events)
{
    struct mo_foreground *f = h->data;

    (void)status;
    (void)events;
    if (mo_spawn_ended(f->pidfd, WNOHANG | WNOWAIT, &f->exit))
        uv_close((uv_handle_t *)h, on_closed);
}

int mo_foreground_start(struct mo_loop *l, const struct mo_foreground_opts *o,
                        struct mo_foreground **out, struct mo_err *e)
{
    const struct mo_spawn s = {
        .file = o->file,
        .argv = o->argv,
        .env = o->env,
        .fds = {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO},
        .foreground = true,
    };
    struct mo_foreground *f = mo_new(struct mo_foreground);
    int rc;

    if (!f)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    f->o = *o;
    ignore_typed(f);
    rc = mo_spawn(&s, &f->pid, &f->pidfd, e);
    if (rc == 0) {
        rc = mo_loop_watch(l, &f->poll, f->pidfd, on_ready, f);
        if (rc == 0) {
            *out = f;
            return 0;
        }
        rc = mo_fail_uv(e, rc, "cannot watch the program");
        (void)kill(f->pid, SIGKILL);
        (void)mo_spawn_ended(f->pidfd, 0, &f->exit);
        mo_close_fd(&f->pidfd);
    }
    restore_typed(f);
    mo_free(f);
    return rc;
}

void mo_foreground_free(struct mo_foreground *f)
{
    f->freed = true;
    (void)kill(f->pid, SIGTERM); /* not reaped, so the pid is still its own */
    if (!uv_is_closing((uv_handle_t *)&f->poll))
        uv_close((uv_handle_t *)&f->poll, on_closed);
}
