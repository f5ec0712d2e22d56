#include "toolbox/script.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rand.h"
#include "toolbox/job.h"
#include "toolbox/remove.h"

#define TIMEOUT_S   60
#define FILES_MAX   64
#define FILES_BYTES ((size_t)1024 * 1024)
#define CLEAN_STEP  2000 /* entries */
#define TOKEN       12   /* random bytes in the directory's name */
#define MEMORY_MIN  16   /* MiB */
#define MEMORY_MAX  1048576
#define MIB         ((uint64_t)1024 * 1024)
#define DESCRIPTOR  "MO_TOOLS_FD="
#define FD_TEXT_MAX (sizeof(DESCRIPTOR) + MO_U64_DIGITS)

extern char **environ;

/* In the order of language_names. -B: no compiled copies of files that live for
 * one run. -u: output is there when the script is killed. */
static const struct language {
    const char *program, *file, *options[3];
} languages[] = {
    {"python3", "main.py", {"-B", "-u", NULL}},
    {"node", "main.mjs", {NULL}},
};

static const char *const language_names[] = {"python", "javascript", NULL};

struct args {
    unsigned language;
    struct mo_span code;
    uint64_t timeout; /* ns */
    int64_t memory, room;
};

static const struct tb_field in[] = {
    {"language", NULL, TB_CHOICE, true, offsetof(struct args, language), 0, 0,
     language_names},
    {"code", "The script. Its output is what it prints.", TB_TEXT, true,
     offsetof(struct args, code)},
    {"timeout",
     "Seconds until it and all it started are killed, without the time in "
     "which calls of tools are open. Default 60.",
     TB_SECONDS, false, offsetof(struct args, timeout), 0, TB_TIMEOUT_S_MAX},
    {"memory_mb", "MiB of memory that it may allocate.", TB_INT, false,
     offsetof(struct args, memory), MEMORY_MIN, MEMORY_MAX},
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
    {"calls", "Calls of tools that it made.", TB_INT, true, 0},
    {0},
};

/* --- interpreters -------------------------------------------------------- */

static bool is_program(struct mo_span dir, const char *name)
{
    char path[TB_PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%.*s/%s", (int)dir.n, dir.p, name);

    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool is_in_path(const char *name)
{
    const char *path = getenv("PATH");
    struct mo_span rest = path ? mo_span_cstr(path) : MO_SPAN("/bin:/usr/bin");

    while (rest.p) {
        struct mo_span dir = mo_span_cut(&rest, ':');

        if (dir.n && dir.n < TB_PATH_MAX && is_program(dir, name))
            return true;
    }
    return false;
}

unsigned tb_script_languages(void)
{
    unsigned found = 0;

    for (unsigned i = 0; i < MO_COUNT(languages); i++)
        found |= is_in_path(languages[i].program) ? 1u << i : 0;
    return found;
}

static int check_language(const struct tb_box *box, unsigned wanted,
                          struct mo_err *e)
{
    mo_autobuf struct mo_buf there = {.max = 64};

    if (box->languages & (1u << wanted))
        return 0;
    for (unsigned i = 0; i < MO_COUNT(languages); i++) {
        if (box->languages & (1u << i))
            mo_buf_printf(&there, " %s", language_names[i]);
    }
    return mo_fail(e, MO_EINVAL, "there is no %s in this box; there is:%s",
                   languages[wanted].program,
                   there.len ? mo_buf_cstr(&there)
                             : " no interpreter. Scripts need a box whose "
                               "image has Python or Node");
}

/* --- files --------------------------------------------------------------- */

static int write_all(int fd, struct mo_span s)
{
    while (s.n) {
        ssize_t n = write(fd, s.p, s.n);

        if (n < 0 && errno != EINTR)
            return -1;
        s = mo_span_skip(s, n > 0 ? (size_t)n : 0);
    }
    return 0;
}

static int write_file(int dir, const char *name, struct mo_span content,
                      struct mo_err *e)
{
    mo_autofd int fd = openat(
        dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (fd < 0 || write_all(fd, content) < 0)
        return mo_fail_sys(e, "the script's file %s cannot be written", name);
    return 0;
}

static bool is_name(struct mo_span s)
{
    return s.n && s.n <= NAME_MAX && !mo_span_is(s, ".") &&
           !mo_span_is(s, "..") && mo_span_find(s, '/') < 0 &&
           mo_span_find(s, '\0') < 0;
}

/* The files of the peer, members of an object. */
static int write_files(int dir, struct mo_json files, struct mo_arena *a,
                       struct mo_err *e)
{
    size_t n = 0, bytes = 0;

    mo_json_each (it, files) {
        struct mo_span name, content;

        if (!mo_json_is(it.val, MO_JSON_STRING) ||
            mo_json_str(it.key, a, &name) < 0 ||
            mo_json_str(it.val, a, &content) < 0 || !is_name(name))
            return mo_fail(e, MO_EINVAL, "a file of the script is impossible");
        bytes += content.n;
        if (++n > FILES_MAX || bytes > FILES_BYTES)
            return mo_fail(e, MO_ETOOBIG,
                           "more than %d files or 1 MiB beside the script",
                           FILES_MAX);
        name = mo_span_dup(a, name);
        if (!name.p)
            return mo_fail(e, MO_ENOMEM, "out of memory");
        if (write_file(dir, name.p, content, e) < 0)
            return e->code;
    }
    return 0;
}

static int make_dir(struct tb_script *s, struct mo_err *e)
{
    const char *tmp = getenv("TMPDIR");
    char token[MO_TOKEN_LEN(TOKEN) + 1], path[NAME_MAX + 1];
    int n;

    mo_random_token(token, TOKEN);
    n = snprintf(path, sizeof(path), "%s/mo-script-%s",
                 tmp && tmp[0] == '/' ? tmp : "/tmp", token);
    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_EINVAL, "the name of TMPDIR is too long");
    if (mkdir(path, 0700) < 0)
        return mo_fail_sys(e, "no directory %s for the script", path);
    memcpy(s->dir, path, sizeof(path));
    return 0;
}

static int put_files(struct tb_script *s, const struct args *a,
                     struct mo_json files, struct mo_arena *arena,
                     struct mo_err *e)
{
    mo_autofd int dir = -1;

    if (make_dir(s, e) < 0)
        return e->code;
    dir = open(s->dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return mo_fail_sys(e, "%s", s->dir);
    if (write_files(dir, files, arena, e) < 0)
        return e->code;
    return write_file(dir, languages[a->language].file, a->code, e);
}

/* --- the end ------------------------------------------------------------- */

void tb_script_close(struct tb_script *s)
{
    if (s && s->channel)
        tb_channel_close(s->channel);
}

bool tb_script_clean(struct tb_script *s)
{
    if (s && s->dir[0] && tb_remove_tree(AT_FDCWD, s->dir, CLEAN_STEP) > 0)
        return false;
    if (s)
        s->dir[0] = '\0'; /* removed, or it cannot be */
    return true;
}

void tb_script_free(struct tb_script *s)
{
    if (!s)
        return;
    (void)tb_script_clean(s);
    if (s->channel)
        tb_channel_free(s->channel);
    mo_free(s);
}

uint64_t tb_script_calls(const struct tb_script *s)
{
    return s && s->channel ? s->channel->asked : 0;
}

uint64_t tb_script_held(const struct tb_script *s)
{
    return s && s->channel ? tb_channel_held(s->channel) : 0;
}

const char *tb_script_fault(const struct tb_script *s)
{
    return s && s->channel && s->channel->why.code ? s->channel->why.msg : NULL;
}

/* --- the start ----------------------------------------------------------- */

static int put_argv(const struct tb_script *s, const struct language *l,
                    struct mo_arena *a, struct tb_start *to, struct mo_err *e)
{
    size_t size = strlen(s->dir) + strlen(l->file) + 2;
    char *path = mo_arena_alloc(a, size);
    const char *words[] = {l->program, path, NULL, NULL};
    size_t n = 1;

    to->argv = mo_arena_zalloc(a, (MO_COUNT(words) + 1) * sizeof(char *));
    if (!path || !to->argv)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    (void)snprintf(path, size, "%s/%s", s->dir, l->file);
    for (size_t i = 0; l->options[i]; i++)
        words[n++] = l->options[i];
    words[n++] = path;
    for (size_t i = 0; i < n; i++) {
        to->argv[i] = mo_arena_strndup(a, words[i], strlen(words[i]));
        if (!to->argv[i])
            return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    return 0;
}

/* Our environment, and the descriptor. */
static int put_env(struct mo_arena *a, struct tb_start *to, struct mo_err *e)
{
    size_t own = 0, n = 0;
    char *text = mo_arena_alloc(a, FD_TEXT_MAX);

    while (environ[own])
        own++;
    to->env = mo_arena_zalloc(a, (own + 2) * sizeof(char *));
    if (!text || !to->env)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    for (size_t i = 0; i < own; i++) {
        if (strncmp(environ[i], DESCRIPTOR, sizeof(DESCRIPTOR) - 1) != 0)
            to->env[n++] = environ[i];
    }
    (void)snprintf(text, FD_TEXT_MAX, DESCRIPTOR "%d", to->channel);
    if (to->channel)
        to->env[n] = text;
    return 0;
}

/* *theirs: the script's end, to be closed after the start. */
static int open_channel(struct tb_box *box, struct tb_call *c,
                        struct tb_script *s, int *theirs, struct mo_err *e)
{
    int pair[2];

    if (!c->token.n)
        return mo_fail(e, MO_EINVAL,
                       "a script with tools needs a progressToken");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return mo_fail_sys(e, "no socket for the script");
    *theirs = pair[1];
    s->channel = tb_channel_open(&box->loop, c, pair[0]);
    if (!s->channel)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    tb_channel_pause(s->channel, box->exec.paused);
    return 0;
}

static int start_script(struct tb_box *box, struct tb_call *c,
                        const struct args *a, struct tb_script *s,
                        struct mo_arena *arena, struct mo_err *e)
{
    struct mo_json files =
        mo_json_get(mo_json_get(c->meta, "mcp-orchestrator/script"), "files");
    struct tb_start start = {.cwd = box->root.fd,
                             .data = (uint64_t)a->memory * MIB};
    struct tb_job_opts o = {
        .room = (size_t)a->room, .timeout = a->timeout, .script = s};
    mo_autofd int theirs = -1;

    if (put_files(s, a, files, arena, e) < 0 ||
        (files.p && open_channel(box, c, s, &theirs, e) < 0))
        return e->code;
    start.channel = theirs < 0 ? 0 : theirs;
    if (put_argv(s, &languages[a->language], arena, &start, e) < 0 ||
        put_env(arena, &start, e) < 0)
        return e->code;
    return tb_job_start(&box->exec, c, &start, &o, e);
}

static int run_script(void *ctx, struct tb_call *c, struct mo_json json,
                      struct mo_err *e)
{
    mo_autoarena struct mo_arena arena = {.cap = 2 * TB_ARGS_MAX};
    struct args a = {.timeout = TIMEOUT_S * MO_S, .room = TB_ROOM};
    struct tb_box *box = ctx;
    struct tb_script *s;

    if (tb_fields_read(json, in, &arena, &a, e) < 0 ||
        check_language(box, a.language, e) < 0)
        return e->code;
    if (a.timeout == 0)
        return mo_fail(e, MO_EINVAL, "timeout must be more than 0 seconds");
    s = mo_new(struct tb_script);
    if (!s)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (start_script(box, c, &a, s, &arena, e) == 0)
        return 0;
    tb_script_free(s);
    return e->code;
}

const struct tb_tool tb_run_script = {
    "run_script",
    "Run a script",
    "Run a Python or JavaScript script in the workspace and get what it "
    "prints. At its end, at its timeout, or when cancelled, everything it "
    "started is killed.",
    TB_DESTRUCTIVE | TB_OPEN_WORLD,
    in,
    out,
    run_script,
};

/* --- answers ------------------------------------------------------------- */

static struct tb_channel *find_channel(struct tb_box *box, struct mo_json token)
{
    mo_list_each (it, &box->exec.jobs) {
        struct tb_job *j = mo_container_of(it, struct tb_job, node);

        if (j->call && j->script && j->script->channel &&
            mo_span_eq(j->call->token, mo_json_text(token)))
            return j->script->channel;
    }
    return NULL;
}

static int run_answer(void *ctx, struct mo_json args, struct mo_jw *w,
                      struct mo_err *e)
{
    struct tb_channel *ch =
        find_channel(ctx, mo_json_get(args, "progressToken"));
    struct mo_json result = mo_json_get(args, "result");
    struct mo_json error = mo_json_get(args, "error");
    uint64_t id;

    if (mo_json_u64(mo_json_get(args, "id"), &id) < 0 ||
        !result.p == !error.p ||
        !mo_json_is(result.p ? result : error, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "an answer has an id, and a result or an error");
    mo_jw_member_bool(w, "delivered",
                      ch && tb_channel_answer(ch, id,
                                              result.p ? "result" : "error",
                                              result.p ? result : error));
    return 0;
}

const struct tb_method tb_script_methods[] = {
    {"mcp-orchestrator/script/answer", run_answer},
    {NULL, NULL},
};
