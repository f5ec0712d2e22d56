#include "mcp/link/link_child.h"

#include <stdio.h>
#include <sys/file.h>

#include "loop/npx_cache.h"
#include "loop/runner.h"

#define DRAIN_MS 200 /* wait for remaining output after the exit */
#define TURN_MS  100 /* between two looks whether its program runs */

/* Three parts end independently: the process, its output (inner) and its
 * stderr. The link ends when all three have ended. */
struct child {
    struct mo_link k;
    struct mo_loop *loop;
    struct mo_proc *p;
    struct mo_stream *io;  /* inner's stream, to close its write side */
    struct mo_stream *err; /* NULL: over */
    struct mo_timer drain;
    struct mo_err fault; /* of the child, before its exit; code 0: none */
    struct mo_exit x;
    bool exited;
    bool runner; /* it may still be installing its program */
    int turn;    /* see struct mo_child_opts; 0 or -1: none */
    struct mo_timer look;
    void (*said)(void *ctx, const char *who, struct mo_span bytes, bool first);
    void *said_ctx;
    char who[MO_CHILD_WHO_MAX];
    size_t tail_len;
    char tail[MO_CHILD_TAIL_MAX];
};

/* --- the turn to install ------------------------------------------------- */

/* Unlocks first: the guardian may have inherited the file. */
static void end_turn(int *turn)
{
    if (*turn <= 0)
        return;
    (void)flock(*turn, LOCK_UN);
    mo_close_fd(turn);
}

static void on_look(struct mo_timer *t)
{
    struct child *c = mo_container_of(t, struct child, look);

    if (!c->exited && mo_runner_installing(mo_proc_pid(c->p)))
        mo_timer_start(c->loop, &c->look, TURN_MS);
    else
        end_turn(&c->turn);
}

/* --- stderr -------------------------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct child *c = ctx;

    if (c->said)
        c->said(c->said_ctx, c->who, mo_span(p, n), c->tail_len == 0);
    c->tail_len =
        mo_tail_add(c->tail, c->tail_len, sizeof(c->tail), mo_span(p, n));
}

/* Appends text as part of one line; returns the new length. */
static size_t put_one_line(char *out, size_t n, struct mo_span text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char ch = (unsigned char)text.p[i];

        out[n++] = ch == '\n' ? '|' : ch < 0x20 || ch == 0x7f ? ' ' : (char)ch;
    }
    out[n] = '\0';
    return n;
}

/* The first line that names an error: programs print a stack or a version
 * after it. None: p NULL. */
static struct mo_span find_error_line(struct mo_span text)
{
    static const char *const words[] = {
        "rror:", "xception:", "anic:", "ERROR", "FATAL", "npm error"};

    while (text.n) {
        struct mo_span line = mo_span_cut(&text, '\n');

        if (!line.n || line.p[0] == ' ' || line.p[0] == '\t')
            continue; /* source text, or a stack */
        for (size_t i = 0; i < MO_COUNT(words); i++) {
            if (mo_span_search(line, mo_span_cstr(words[i])) >= 0)
                return line;
        }
    }
    return mo_span(NULL, 0);
}

/* The beginning or the end of a text, in whole words: half a secret would not
 * be recognised and masked. */
static struct mo_span first_words(struct mo_span s, size_t max)
{
    size_t n = s.n < max ? s.n : max;

    while (n < s.n && n > 0 && (unsigned char)s.p[n] > ' ')
        n--;
    return mo_span_head(s, n);
}

static struct mo_span last_words(struct mo_span s, size_t max)
{
    size_t from = s.n > max ? s.n - max : 0;

    while (from > 0 && from < s.n && (unsigned char)s.p[from] > ' ')
        from++;
    return mo_span_skip(s, from);
}

/* Write the last lines as one line that fits into an error message, after the
 * line with the error if that is not among them. */
static void format_stderr_tail(const struct child *c, char *out, size_t size)
{
    struct mo_span all = {c->tail, c->tail_len}, last, error;
    size_t n = 0;

    while (all.n && (all.p[all.n - 1] == '\n' || all.p[all.n - 1] == '\r'))
        all.n--;
    last = last_words(all, size - 1);
    if (c->tail_len == sizeof(c->tail)) /* its first line is cut */
        (void)mo_span_cut(&all, '\n');
    error = find_error_line(all);
    if (error.p && error.p < last.p) {
        n = put_one_line(out, 0, first_words(error, size * 2 / 3));
        n = put_one_line(out, n, MO_SPAN(" ... "));
        last = last_words(last, size - 1 - n);
    }
    (void)put_one_line(out, n, last);
}

/* --- the end ------------------------------------------------------------- */

/* A package that npx has installed only in part is moved away, once. */
static bool explain_cache(struct child *c, const char *how)
{
    char path[PATH_MAX];
    bool moved;

    if (!mo_npx_cache_named(mo_span(c->tail, c->tail_len), path))
        return false;
    moved = mo_npx_cache_move(path);
    (void)mo_fail(&c->k.why, MO_ECLOSED,
                  "the package was installed only in part (%s): %s%s%s", how,
                  moved ? "it was moved away, connect again to install it"
                        : "delete ",
                  moved ? "" : path, moved ? "" : " and connect again");
    mo_loop_blank(c->loop, &c->k.why);
    mo_log_about(mo_loop_log(c->loop), MO_WARN, "upstream",
                 &(struct mo_log_facts){.server = mo_span_cstr(c->who)},
                 "%s %s", path,
                 moved ? "is incomplete: renamed to .broken" : "is incomplete");
    return true;
}

/* Why the link ends although nobody closed it. */
static void describe_exit(struct child *c)
{
    struct mo_err *e = &c->k.why;
    char how[MO_EXIT_TEXT_MAX], said[180];

    *e = c->fault;
    if (e->code && e->code != MO_ECLOSED)
        return;
    mo_exit_text(c->x, how);
    if (c->runner && explain_cache(c, how))
        return;
    format_stderr_tail(c, said, sizeof(said));
    (void)mo_fail(e, MO_ECLOSED, "the server ended (%s)%s%s", how,
                  said[0] ? "; it said: " : "", said);
    mo_loop_blank(c->loop, e);
}

static void close_if_ended(struct child *c)
{
    if (!c->exited || c->k.inner || c->err)
        return;
    mo_timer_stop(c->loop, &c->drain);
    if (!c->k.closing)
        describe_exit(c);
    mo_proc_free(c->p);
    mo_link_gone(&c->k);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct child *c = ctx;

    (void)why;
    c->err = NULL;
    close_if_ended(c);
}

static const struct mo_stream_cb err_cb = {
    .on_read = on_err_read,
    .on_close = on_err_close,
};

static void on_drained(struct mo_timer *t)
{
    struct child *c = mo_container_of(t, struct child, drain);

    if (c->io)
        mo_stream_close(c->io, NULL);
    if (c->err)
        mo_stream_close(c->err, NULL);
}

static void on_exit_(void *ctx, struct mo_proc *p, struct mo_exit x)
{
    struct child *c = ctx;

    (void)p;
    c->exited = true;
    c->x = x;
    mo_timer_stop(c->loop, &c->look);
    end_turn(&c->turn);
    mo_timer_start(c->loop, &c->drain, c->k.closing ? 1 : DRAIN_MS);
    close_if_ended(c);
}

static const struct mo_proc_cb proc_cb = {.on_exit = on_exit_};

/* --- its output ---------------------------------------------------------- */

static void on_inner_close(void *ctx, const struct mo_err *why)
{
    struct child *c = ctx;

    c->k.inner = NULL;
    c->io = NULL;
    if (!c->k.closing && why)
        c->fault = *why;
    if (!c->exited)
        mo_proc_stop(c->p, NULL);
    close_if_ended(c);
}

static const struct mo_link_cb inner_cb = {
    .on_message = mo_link_pass_message,
    .on_failed = mo_link_pass_failed,
    .on_noise = mo_link_pass_noise,
    .on_close = on_inner_close,
};

/* --- the link's side ----------------------------------------------------- */

static void child_start(struct mo_link *k)
{
    struct child *c = mo_container_of(k, struct child, k);

    mo_stream_attach(c->err, &err_cb, c);
    mo_link_attach(c->k.inner, &inner_cb, c);
}

static bool child_installing(const struct mo_link *k)
{
    const struct child *c = mo_container_of(k, const struct child, k);

    return c->runner && !c->exited && mo_runner_installing(mo_proc_pid(c->p));
}

static void stop_process(struct child *c)
{
    if (!c->runner || !mo_runner_installing(mo_proc_pid(c->p))) {
        mo_proc_stop(c->p, c->io);
        return;
    }
    mo_log_about(mo_loop_log(c->loop), MO_INFO, "upstream",
                 &(struct mo_log_facts){.server = mo_span_cstr(c->who)},
                 "is still being installed: asked to stop, killed after %d s",
                 MO_CHILD_INSTALL_STOP_MS / 1000);
    mo_proc_term(c->p, MO_CHILD_INSTALL_STOP_MS);
}

static void child_close(struct mo_link *k)
{
    struct child *c = mo_container_of(k, struct child, k);

    if (!c->exited)
        stop_process(c);
}

static const struct mo_link_ops child_ops = {
    .start = child_start,
    .close = child_close,
    .installing = child_installing,
};

/* --- the beginning ------------------------------------------------------- */

int mo_link_child(struct mo_guard *g, const struct mo_child_opts *o,
                  struct mo_link **out, struct mo_err *e)
{
    struct mo_proc_opts po = {
        .file = o->argv[0],
        .argv = o->argv,
        .env = o->env,
        .cwd = o->cwd,
        .err = MO_PROC_ERR_STREAM,
        .data_max = o->data_max,
        .hide = o->hide,
        .marked = true,
    };
    struct child *c = mo_new(struct child);
    struct mo_proc_io io;
    int rc;

    if (!c) {
        end_turn(&(int){o->turn});
        return mo_fail(e, MO_ENOMEM, "link");
    }
    c->k.ops = &child_ops;
    c->loop = mo_guard_loop(g);
    c->said = o->said;
    c->said_ctx = o->said_ctx;
    c->runner = o->runner;
    (void)snprintf(c->who, sizeof(c->who), "%s", o->who ? o->who : "");
    c->turn = o->turn;
    mo_timer_init(&c->drain, on_drained);
    mo_timer_init(&c->look, on_look);
    rc = mo_proc_start(g, &po, &proc_cb, c, &c->p, &io, e);
    if (rc == 0) {
        rc = mo_link_lines(c->loop, io.io, o->line_max, &c->k.inner, e);
        if (rc < 0) { /* it owned the stream */
            mo_stream_close(io.err, NULL);
            mo_proc_free(c->p);
        }
    }
    if (rc < 0) {
        end_turn(&c->turn);
        mo_free(c);
        return rc;
    }
    if (c->turn > 0)
        mo_timer_start(c->loop, &c->look, TURN_MS);
    c->io = io.io;
    c->err = io.err;
    *out = &c->k;
    return 0;
}

/* --- environment --------------------------------------------------------- */

/* Variables that say where things are, in which language and zone people are,
 * and how the network is reached. A name that ends in '*' is a prefix. */
static const char *const passed[] = {
    "HOME",
    "LOGNAME",
    "PATH",
    "SHELL",
    "TERM",
    "USER",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
};

static struct mo_span var_name(const char *var)
{
    struct mo_span s = mo_span_cstr(var);

    return mo_span_cut(&s, '=');
}

static bool is_passed(struct mo_span name)
{
    for (size_t i = 0; i < MO_COUNT(passed); i++) {
        struct mo_span want = mo_span_cstr(passed[i]);

        if (want.p[want.n - 1] == '*'
                ? mo_span_starts(name, mo_span_head(want, want.n - 1))
                : mo_span_eq(name, want))
            return true;
    }
    return false;
}

static bool is_given(const char *const *given, size_t n, struct mo_span name)
{
    for (size_t i = 0; i < n; i++) {
        if (mo_span_eq(var_name(given[i]), name))
            return true;
    }
    return false;
}

int mo_child_env(struct mo_arena *a, char *const *ours,
                 const char *const *given, size_t n, const char *const **out,
                 struct mo_err *e)
{
    const char **v;
    size_t at = 0;

    if (n > MO_CHILD_ENV_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d environment variables",
                       MO_CHILD_ENV_MAX);
    v = mo_arena_zalloc(a, (n + MO_CHILD_PASSED_MAX + 1) * sizeof(*v));
    if (!v)
        return mo_fail(e, MO_ENOMEM, "environment");
    for (; ours && *ours && at < MO_CHILD_PASSED_MAX; ours++) {
        struct mo_span name = var_name(*ours);

        if (is_passed(name) && !is_given(given, n, name))
            v[at++] = *ours;
    }
    for (size_t i = 0; i < n; i++)
        v[at++] = given[i];
    *out = v;
    return 0;
}
