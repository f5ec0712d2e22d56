/* box run, image - runs one command in its own box; builds the image of docker
 * boxes. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/rand.h"
#include "cli/runtime_wait.h"

#define INPUT_MAX   ((size_t)16 * 1024 * 1024) /* bytes of a file as stdin */
#define INPUT_HIGH  ((size_t)256 * 1024)
#define SIGNAL_BASE 128

struct run {
    struct mo_cmd_runtime m;
    struct mo_box_drivers *sandbox;
    struct mo_box *box;
    struct mo_stream *io, *err, *in; /* NULL: ended */
    struct mo_signal *signals[2];
    bool gone, stopped, broken; /* broken: our output was closed */
    struct mo_box_end end;
    struct mo_err end_why;
};

/* Done when the box and both outputs have ended. */
static void check_done(struct run *r)
{
    r->m.done = r->gone && !r->io && !r->err && !r->in;
}

/* --- output --------------------------------------------------------------- */

static void pass_on(struct run *r, int fd, const char *p, size_t n)
{
    if (!r->broken && mo_file_write_all(fd, mo_span(p, n), NULL) < 0) {
        r->broken = true;
        if (r->box)
            mo_box_stop(r->box);
    }
}

static void on_out(void *ctx, char *p, size_t n)
{
    struct run *r = ctx;

    pass_on(r, r->m.c->out, p, n);
}

static void on_err(void *ctx, char *p, size_t n)
{
    struct run *r = ctx;

    pass_on(r, r->m.c->err, p, n);
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct run *r = ctx;

    (void)why;
    r->io = NULL;
    if (r->in)
        mo_stream_close(r->in, NULL);
    check_done(r);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct run *r = ctx;

    (void)why;
    r->err = NULL;
    check_done(r);
}

static void on_drain(void *ctx)
{
    struct run *r = ctx;

    if (r->in)
        mo_stream_resume(r->in);
}

/* --- input ---------------------------------------------------------------- */

static void on_in(void *ctx, char *p, size_t n)
{
    struct run *r = ctx;

    if (!r->io || mo_stream_write(r->io, mo_span(p, n)) < 0)
        mo_stream_close(r->in, NULL);
    else if (mo_stream_queued(r->io) > INPUT_HIGH)
        mo_stream_pause(r->in);
}

static void on_in_close(void *ctx, const struct mo_err *why)
{
    struct run *r = ctx;

    (void)why;
    r->in = NULL;
    if (r->io)
        mo_stream_shutdown(r->io);
    check_done(r);
}

/* A file is read at once, a pipe or terminal as data arrives. */
static void begin_input(struct run *r)
{
    static const struct mo_stream_cb cb = {.on_read = on_in,
                                           .on_close = on_in_close};
    struct stat st;
    mo_autobuf struct mo_buf b = {.max = INPUT_MAX};
    ssize_t n = 1;
    int fd;

    if (fstat(STDIN_FILENO, &st) < 0)
        return;
    if (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode) || isatty(STDIN_FILENO)) {
        fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
        if (fd >= 0 && mo_stream_from_fds(r->m.loop, fd, -1, &r->in, NULL) == 0)
            mo_stream_attach(r->in, &cb, r);
        return;
    }
    while (S_ISREG(st.st_mode) && n > 0 && mo_buf_room(&b, 65536)) {
        n = read(STDIN_FILENO, mo_buf_room(&b, 65536), 65536);
        if (n > 0)
            mo_buf_add(&b, (size_t)n);
    }
    mo_stream_limit(r->io, INPUT_MAX);
    (void)mo_stream_write(r->io, mo_buf_view(&b));
    mo_stream_shutdown(r->io);
}

/* --- box ------------------------------------------------------------------ */

static void on_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    static const struct mo_stream_cb out = {
        .on_read = on_out, .on_drain = on_drain, .on_close = on_out_close};
    static const struct mo_stream_cb err = {.on_read = on_err,
                                            .on_close = on_err_close};
    struct run *r = ctx;

    r->box = b;
    r->io = io->io;
    r->err = io->err;
    mo_stream_attach(r->io, &out, r);
    if (r->err)
        mo_stream_attach(r->err, &err, r);
    begin_input(r);
}

static void on_gone(void *ctx, const struct mo_box_end *end)
{
    struct run *r = ctx;

    r->gone = true;
    r->box = NULL;
    r->end = *end;
    r->end.why = NULL;
    if (end->why) {
        r->end_why = *end->why;
        r->end.why = &r->end_why;
    }
    if (r->in)
        mo_stream_close(r->in, NULL);
    check_done(r);
}

static void on_signal(void *ctx, int signo)
{
    struct run *r = ctx;

    (void)signo;
    r->stopped = true;
    if (r->box)
        mo_box_stop(r->box);
}

/* "native", "docker", "kubernetes", or an image; NULL: from the configuration.
 */
static void read_where(const char *word, struct mo_box_drivers_opts *o)
{
    if (word && strcmp(word, "native") == 0)
        o->driver = MO_DRIVER_NATIVE;
    else if (word && strcmp(word, "docker") == 0)
        o->driver = MO_DRIVER_DOCKER;
    else if (word && strcmp(word, "kubernetes") == 0)
        o->driver = MO_DRIVER_KUBERNETES;
    else
        o->image = word;
}

static void on_sandbox(void *ctx, struct mo_box_drivers *sb,
                       const struct mo_err *why)
{
    struct run *r = ctx;

    r->sandbox = sb;
    r->m.done = true;
    if (why)
        r->m.why = *why;
}

static int open_sandbox(struct run *r, const struct mo_box_drivers_opts *o)
{
    if (mo_box_drivers_open(r->m.loop, o, on_sandbox, r, &r->m.why) == 0)
        mo_cmd_runtime_wait(&r->m);
    r->m.done = false;
    return r->m.why.code;
}

static void close_run(struct run *r)
{
    if (r->sandbox) {
        r->m.done = false;
        mo_box_drivers_close(r->sandbox, mo_cmd_runtime_done, &r->m);
        mo_cmd_runtime_wait(&r->m);
    }
    mo_cmd_runtime_close(&r->m);
}

#define autorun MO_CLEANUP(close_run)

static void start_box(struct run *r, const struct mo_box_drivers_opts *o,
                      const char *const *argv)
{
    static const struct mo_box_cb cb = {on_ready, on_gone};
    struct mo_box_spec spec = mo_box_drivers_spec(r->m.cfg.now, o->image);
    struct mo_boxes *const *v;
    size_t n;

    spec.argv = argv;
    spec.linger_ms = 0;  /* the box is never adopted */
    spec.with_us = true; /* else an engine ends the output with the input */
    v = mo_box_drivers_drivers(r->sandbox, &n);
    if (mo_box_start(v[0], &spec, &cb, r, &r->box, &r->m.why) == 0)
        mo_cmd_runtime_wait(&r->m);
}

static void watch_signals(struct run *r, bool on)
{
    static const int signals[] = {SIGINT, SIGTERM};

    for (size_t i = 0; i < MO_COUNT(signals); i++) {
        if (on)
            r->signals[i] =
                mo_signal_start(r->m.loop, signals[i], on_signal, r, NULL);
        else if (r->signals[i])
            mo_signal_stop(r->signals[i]);
    }
}

/* Exit status of the command, as a shell reports it. */
static int status_of(struct run *r)
{
    const struct mo_box_end *end = &r->end;
    const char *more = end->why ? end->why->msg : "";

    if (r->m.why.code)
        return mo_cli_error(r->m.c, MO_EXIT_UNAVAIL, "%s", r->m.why.msg);
    if (r->stopped)
        return SIGNAL_BASE + SIGINT;
    if (end->cause == MO_BOX_EXITED && end->code >= 0)
        return end->code;
    (void)mo_cli_error(r->m.c, 0, "the box: %s%s%s",
                       mo_box_cause_name(end->cause), *more ? ": " : "", more);
    if (end->cause == MO_BOX_REFUSED || end->cause == MO_BOX_ENGINE_GONE)
        return MO_EXIT_UNAVAIL;
    return SIGNAL_BASE + (end->signal ? end->signal : SIGKILL);
}

int mo_run_box_run(struct mo_cli *c)
{
    const char *argv[MO_CLI_ARGS_MAX + 1] = {NULL};
    bool where = c->dashes != SIZE_MAX && c->dashes > 0;
    autorun struct run r = {.gone = false};
    char instance[24] = "run";
    struct mo_box_drivers_opts o = {.store = "run", .instance = instance};
    size_t first = where ? 1 : 0;
    int rc;

    if (c->dashes == SIZE_MAX || c->dashes > 1 || c->nargs <= first)
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "usage: box run [DRIVER|IMAGE] "
                            "-- COMMAND ARGUMENTS...");
    for (size_t i = first; i < c->nargs; i++)
        argv[i - first] = c->args[i];
    rc = mo_cmd_runtime_load(c, &r.m);
    if (rc)
        return rc;
    o.cfg = r.m.cfg.now;
    read_where(where ? c->args[0] : NULL, &o);
    mo_random_token(instance + 3, 12);
    watch_signals(&r, true);
    if (open_sandbox(&r, &o) == 0)
        start_box(&r, &o, argv);
    rc = status_of(&r);
    watch_signals(&r, false);
    return rc;
}

/* For nodes of a cluster, which get images from elsewhere. */
static int save_image(struct mo_cli *c, const char *path)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    char tag[MO_BOX_DRIVERS_TAG];
    struct mo_err e;

    if (mo_box_drivers_save_image(path, tag, &e) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", e.msg);
    mo_buf_printf(&b, "image %s written to %s\n", tag, path);
    return mo_cli_print(c, &b);
}

int mo_run_box_image(struct mo_cli *c)
{
    struct mo_box_drivers_opts o = {
        .store = "image", .instance = "image", .driver = MO_DRIVER_DOCKER};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    autorun struct run r = {.gone = false};
    int rc;

    if (mo_cli_has(c, "out"))
        return save_image(c, mo_cli_get(c, "out"));
    rc = mo_cmd_runtime_load(c, &r.m);
    if (rc)
        return rc;
    o.cfg = r.m.cfg.now;
    if (open_sandbox(&r, &o) < 0)
        return mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", r.m.why.msg);
    mo_buf_printf(&b, "image loaded: %s\n",
                  mo_box_drivers_ready(r.sandbox, 0)->what);
    return mo_cli_print(c, &b);
}
