/* exec.c - execute_command: its arguments and its answer. */
#include "toolbox/exec.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/text/utf8.h"
#include "toolbox/job.h"

#define TIMEOUT_S 30
#define WORDS_MAX 4096 /* of argv, of env */

extern char **environ;

struct args {
    struct mo_span command, cwd, input;
    struct mo_json argv, env;
    uint64_t timeout; /* ns */
    int64_t room;
};

static const struct tb_field in[] = {
    {"command", "Shell command, run by /bin/sh -c. Or give argv.", TB_TEXT,
     false, offsetof(struct args, command)},
    {"argv", "Program and its arguments, passed as they are, without a shell.",
     TB_TEXTS, false, offsetof(struct args, argv)},
    {"cwd", "Working directory, relative to the workspace.", TB_TEXT, false,
     offsetof(struct args, cwd)},
    {"env", "Environment variables to add.", TB_MAP, false,
     offsetof(struct args, env)},
    {"stdin", "Text for its standard input; without it that is empty.", TB_TEXT,
     false, offsetof(struct args, input)},
    {"timeout", "Seconds until it and all it started are killed. Default 30.",
     TB_SECONDS, false, offsetof(struct args, timeout), 0, TB_TIMEOUT_S_MAX},
    {"max_output",
     "Bytes kept of each stream, half from its beginning, half from its end. "
     "Default 65536.",
     TB_INT, false, offsetof(struct args, room), 256, TB_ROOM_MAX},
    {0},
};

static const struct tb_field out[] = {
    {"stdout", NULL, TB_TEXT, true, 0},
    {"stderr", NULL, TB_TEXT, true, 0},
    {"exit_code", "Absent when it did not exit by itself.", TB_INT, false, 0},
    {"signal", "What it was killed by.", TB_TEXT, false, 0},
    {"timed_out", NULL, TB_BOOL, true, 0},
    {"duration_ms", NULL, TB_INT, true, 0},
    {"stdout_bytes", "Bytes it wrote, kept or not.", TB_INT, true, 0},
    {"stderr_bytes", NULL, TB_INT, true, 0},
    {"truncated", "Some of the output is cut out.", TB_BOOL, true, 0},
    {"left_running", "It left processes running in the background.", TB_BOOL,
     true, 0},
    {0},
};

/* --- the answer ---------------------------------------------------------- */

static const char *signal_name(int sig)
{
    static const struct {
        int sig;
        const char *name;
    } rows[] = {
        {SIGHUP, "SIGHUP"},   {SIGINT, "SIGINT"},   {SIGQUIT, "SIGQUIT"},
        {SIGILL, "SIGILL"},   {SIGTRAP, "SIGTRAP"}, {SIGABRT, "SIGABRT"},
        {SIGBUS, "SIGBUS"},   {SIGFPE, "SIGFPE"},   {SIGKILL, "SIGKILL"},
        {SIGSEGV, "SIGSEGV"}, {SIGPIPE, "SIGPIPE"}, {SIGALRM, "SIGALRM"},
        {SIGTERM, "SIGTERM"}, {SIGXCPU, "SIGXCPU"}, {SIGXFSZ, "SIGXFSZ"},
        {SIGSYS, "SIGSYS"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].sig == sig)
            return rows[i].name;
    }
    return "another signal";
}

static bool has_exited(const struct tb_job *j)
{
    return j->ended && WIFEXITED(j->status);
}

/* NULL if it was not killed, as far as is known. */
static const char *killed_by(const struct tb_job *j)
{
    if (j->ended)
        return WIFSIGNALED(j->status) ? signal_name(WTERMSIG(j->status)) : NULL;
    return "SIGKILL";
}

static void put_text(struct mo_jw *w, const char *key, struct mo_span s)
{
    mo_jw_key(w, key);
    mo_jw_str(w, s.n ? s : MO_SPAN(""));
}

static void put_data(struct mo_buf *b, const struct tb_job *j,
                     const struct mo_buf text[TB_STREAMS])
{
    const struct tb_clip *o = &j->streams[TB_OUT].clip;
    const struct tb_clip *r = &j->streams[TB_ERR].clip;
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    put_text(&w, "stdout", mo_buf_view(&text[TB_OUT]));
    put_text(&w, "stderr", mo_buf_view(&text[TB_ERR]));
    if (has_exited(j))
        mo_jw_member_u64(&w, "exit_code", (uint64_t)WEXITSTATUS(j->status));
    else
        put_text(&w, "signal", mo_span_cstr(killed_by(j)));
    mo_jw_member_bool(&w, "timed_out", j->timed_out);
    mo_jw_member_u64(&w, "duration_ms", (mo_now_ns() - j->began) / MO_MS);
    mo_jw_member_u64(&w, "stdout_bytes", o->total);
    mo_jw_member_u64(&w, "stderr_bytes", r->total);
    mo_jw_member_bool(&w, "truncated", tb_clip_cut(o) || tb_clip_cut(r));
    if (j->script)
        mo_jw_member_u64(&w, "calls", tb_script_calls(j->script));
    else
        mo_jw_member_bool(&w, "left_running", j->left && !j->timed_out);
    mo_jw_end(&w);
}

static void end_line(struct mo_buf *b)
{
    if (b->len && b->p[b->len - 1] != '\n')
        mo_buf_putc(b, '\n');
}

/* Say how it ended, if that is worth a line. */
static void put_end(struct mo_buf *b, const struct tb_job *j)
{
    uint64_t ms = (mo_now_ns() - j->began) / MO_MS;

    end_line(b);
    if (j->timed_out)
        mo_buf_printf(
            b,
            "[killed after %llu.%llu s, its timeout, with all it had started; "
            "give a longer timeout%s]\n",
            (unsigned long long)ms / 1000, (unsigned long long)ms / 100 % 10,
            j->script ? ""
                      : ", or redirect the output of what shall stay in the "
                        "background: cmd >log 2>&1 &");
    else if (j->lost)
        mo_buf_puts(b, "[the process that watched the command was "
                       "killed, and the command with it]\n");
    else if (!has_exited(j))
        mo_buf_printf(b, "[killed by %s]\n", killed_by(j));
    else if (WEXITSTATUS(j->status))
        mo_buf_printf(b, "[exit code %d]\n", WEXITSTATUS(j->status));
    if (j->left && !j->timed_out)
        mo_buf_puts(b, "[it left processes running in the background]\n");
    if (tb_script_fault(j->script))
        mo_buf_printf(b, "[it sent a wrong line to the tools: %s]\n",
                      tb_script_fault(j->script));
}

static void put_words(struct mo_buf *b, const struct tb_job *j,
                      const struct mo_buf text[TB_STREAMS])
{
    bool plain = has_exited(j) && !WEXITSTATUS(j->status) && !j->left &&
                 !tb_script_fault(j->script);

    mo_buf_span(b, mo_buf_view(&text[TB_OUT]));
    if (text[TB_ERR].len) {
        end_line(b);
        mo_buf_puts(b, "[stderr]\n");
        mo_buf_span(b, mo_buf_view(&text[TB_ERR]));
    }
    if (!plain || j->timed_out)
        put_end(b, j);
    if (b->len == 0)
        mo_buf_puts(b, "(no output)");
}

static int fail_no_exec(int sys, struct mo_err *e)
{
    static const struct {
        int sys;
        const char *why;
    } rows[] = {
        {E2BIG, "the command or its environment is longer than the system "
                "takes: put it into a file, or use stdin"},
        {ENOENT, "there is no such program (a `command` needs /bin/sh)"},
        {EACCES, "that program may not be executed"},
        {ENOEXEC, "that file is no program"},
        {EAGAIN, "no new process can be started: end some of those that run"},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (rows[i].sys == sys)
            return mo_fail(e, MO_EINVAL, "not started: %s", rows[i].why);
    }
    errno = sys;
    return mo_fail_sys(e, "not started");
}

void tb_job_answer(struct tb_job *j)
{
    struct mo_buf text[TB_STREAMS];
    struct tb_result r;
    struct mo_err e = {0};

    if (j->no_exec) {
        (void)fail_no_exec(j->no_exec, &e);
        tb_call_fail(j->call, &e);
        return;
    }
    tb_result_init(&r);
    for (int i = 0; i < TB_STREAMS; i++) {
        mo_buf_init(&text[i], TB_ROOM_MAX + 128);
        (void)tb_clip_text(&j->streams[i].clip, &text[i]);
    }
    put_data(&r.data, j, text);
    put_words(&r.text, j, text);
    r.failed = j->timed_out || !has_exited(j) || WEXITSTATUS(j->status);
    tb_call_done(j->call, &r);
    for (int i = 0; i < TB_STREAMS; i++)
        mo_buf_fini(&text[i]);
    tb_result_fini(&r);
}

/* --- the arguments ------------------------------------------------------- */

static int copy_word(struct mo_arena *a, struct mo_span s, char **to,
                     struct mo_err *e)
{
    if (s.n && memchr(s.p, '\0', s.n))
        return mo_fail(e, MO_EINVAL,
                       "a NUL character cannot be given to a program");
    *to = mo_arena_strndup(a, s.p, s.n);
    return *to ? 0 : mo_fail(e, MO_ENOMEM, "the command is too long");
}

static int json_word(struct mo_arena *a, struct mo_json v, char **to,
                     struct mo_err *e)
{
    struct mo_span s;

    if (mo_json_str(v, a, &s) < 0)
        return mo_fail(e, MO_ENOMEM, "the command is too long");
    return copy_word(a, s, to, e);
}

static int shell_argv(struct mo_arena *a, struct mo_span command, char **argv,
                      struct mo_err *e)
{
    if (copy_word(a, MO_SPAN("/bin/sh"), &argv[0], e) < 0 ||
        copy_word(a, MO_SPAN("-c"), &argv[1], e) < 0)
        return e->code;
    return copy_word(a, command, &argv[2], e);
}

static int put_argv(struct mo_arena *a, const struct args *in_args, char ***to,
                    struct mo_err *e)
{
    size_t n = in_args->argv.p ? mo_json_len(in_args->argv) : 3;
    struct mo_json_iter it;
    struct mo_json key, val;

    if (!in_args->command.p == !in_args->argv.p)
        return mo_fail(e, MO_EINVAL, "give either command or argv");
    if (n == 0 || n > WORDS_MAX)
        return mo_fail(e, MO_EINVAL, "argv must hold 1 to %d strings",
                       WORDS_MAX);
    *to = mo_arena_zalloc(a, (n + 1) * sizeof(char *));
    if (!*to)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (!in_args->argv.p)
        return shell_argv(a, in_args->command, *to, e);
    n = 0;
    mo_json_iter(&it, in_args->argv);
    while (mo_json_next(&it, &key, &val)) {
        if (json_word(a, val, &(*to)[n++], e) < 0)
            return e->code;
    }
    return 0;
}

/* "NAME=value" of a member of env. */
static int env_word(struct mo_arena *a, struct mo_json key, struct mo_json val,
                    char **to, struct mo_err *e)
{
    struct mo_span name, value;
    char *p;

    if (mo_json_str(key, a, &name) < 0 || mo_json_str(val, a, &value) < 0)
        return mo_fail(e, MO_ENOMEM, "env is too long");
    if (name.n == 0 || mo_span_find(name, '=') >= 0 ||
        mo_span_find(name, '\0') >= 0 || mo_span_find(value, '\0') >= 0)
        return mo_fail(e, MO_EINVAL, "env holds an impossible name or value");
    p = mo_arena_alloc(a, name.n + value.n + 2);
    if (!p)
        return mo_fail(e, MO_ENOMEM, "env is too long");
    memcpy(p, name.p, name.n);
    p[name.n] = '=';
    if (value.n)
        memcpy(p + name.n + 1, value.p, value.n);
    p[name.n + value.n + 1] = '\0';
    *to = p;
    return 0;
}

static bool same_name(const char *a, const char *b)
{
    const char *eq = strchr(a, '=');

    return eq && strncmp(a, b, (size_t)(eq - a) + 1) == 0;
}

/* Our environment, overridden by the given one. */
static int put_env(struct mo_arena *a, struct mo_json env, char ***to,
                   struct mo_err *e)
{
    size_t own = 0, n = 0, fresh = env.p ? mo_json_len(env) : 0;
    struct mo_json_iter it;
    struct mo_json key, val;

    while (environ[own])
        own++;
    if (fresh > WORDS_MAX)
        return mo_fail(e, MO_EINVAL, "env has more than %d members", WORDS_MAX);
    *to = mo_arena_zalloc(a, (own + fresh + 1) * sizeof(char *));
    if (!*to)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    mo_json_iter(&it, env);
    while (mo_json_next(&it, &key, &val)) {
        if (env_word(a, key, val, &(*to)[n++], e) < 0)
            return e->code;
    }
    for (size_t i = 0; i < own; i++) {
        bool hidden = false;

        for (size_t k = 0; k < fresh && !hidden; k++)
            hidden = same_name((*to)[k], environ[i]);
        if (!hidden)
            (*to)[n++] = environ[i];
    }
    return 0;
}

static int start_command(struct tb_box *box, struct tb_call *c,
                         struct mo_json json, struct mo_arena *arena,
                         struct mo_err *e)
{
    struct args a = {
        .cwd = MO_SPAN("."), .timeout = TIMEOUT_S * MO_S, .room = TB_ROOM};
    struct tb_start s = {0};
    struct tb_job_opts o;
    struct tb_path p;
    mo_autofd int cwd = -1;

    if (tb_args_read(box, json, &tb_execute_command, arena, &a, &a.cwd, &p, e) <
            0 ||
        put_argv(arena, &a, &s.argv, e) < 0 ||
        put_env(arena, a.env, &s.env, e) < 0)
        return e->code;
    if (a.timeout == 0)
        return mo_fail(e, MO_EINVAL, "timeout must be more than 0 seconds");
    cwd = tb_open_dir(&box->root, &p, O_PATH, e);
    if (cwd < 0)
        return e->code;
    s.cwd = cwd;
    o = (struct tb_job_opts){
        .input = a.input, .room = (size_t)a.room, .timeout = a.timeout};
    return tb_job_start(&box->exec, c, &s, &o, e);
}

static int run_exec(void *ctx, struct tb_call *c, struct mo_json json,
                    struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = 2 * TB_ARGS_MAX};

    return start_command(ctx, c, json, &arena, e);
}

const struct tb_tool tb_execute_command = {
    "execute_command",
    "Run a command",
    "Run a command in the workspace and get its stdout, stderr and exit code. "
    "At its timeout, or when cancelled, it is killed with everything it "
    "started. It has no terminal. To leave something running, redirect its "
    "output: cmd >log 2>&1 &",
    TB_DESTRUCTIVE | TB_OPEN_WORLD,
    in,
    out,
    run_exec,
};
