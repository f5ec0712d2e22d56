#include "loop/runner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"

#define PATH_SIZE    64
#define CHILDREN_MAX 4096            /* bytes of a list of children */
#define ENVIRON_MAX  ((size_t)65536) /* of a child; the rest is not read */

/* --- commands ------------------------------------------------------------ */

static const struct {
    const char *command, *verb; /* verb NULL: any arguments */
} runners[] = {
    {"npx", NULL},   {"uvx", NULL},   {"bunx", NULL},  {"pnpx", NULL},
    {"npm", "exec"}, {"npm", "x"},    {"pnpm", "dlx"}, {"yarn", "dlx"},
    {"bun", "x"},    {"pipx", "run"}, {"uv", "run"},   {"uv", "tool"},
};

bool mo_runner_is(const char *const *argv)
{
    const char *slash = argv[0] ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argv[0];

    for (size_t i = 0; name && i < MO_COUNT(runners); i++) {
        const char *verb = runners[i].verb;

        if (strcmp(name, runners[i].command) == 0 &&
            (!verb || (argv[1] && strcmp(argv[1], verb) == 0)))
            return true;
    }
    return false;
}

/* --- processes ----------------------------------------------------------- */

/* Bytes read, at most max; 0: none. */
static size_t read_proc(const char *path, char *to, size_t max)
{
    mo_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    size_t n = 0;

    while (fd >= 0 && n < max) {
        ssize_t got = read(fd, to + n, max - n);

        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

/* A script that npm runs for a package, such as postinstall. */
static bool is_install_script(long pid)
{
    static const char key[] = "npm_lifecycle_event=";
    char path[PATH_SIZE];
    mo_autofree char *env = mo_alloc(ENVIRON_MAX);
    struct mo_span rest = {env, 0};

    (void)snprintf(path, sizeof(path), "/proc/%ld/environ", pid);
    if (env)
        rest.n = read_proc(path, env, ENVIRON_MAX);
    while (rest.n) {
        struct mo_span var = mo_span_cut(&rest, '\0');

        if (mo_span_strip(&var, mo_span(key, sizeof(key) - 1)))
            return !mo_span_is(var, "npx");
        if (!rest.p)
            break;
    }
    return false;
}

/* True if a thread of the process has a child that is the program. */
static bool has_program(const char *children)
{
    char text[CHILDREN_MAX + 1];
    char *at = text;

    text[read_proc(children, text, CHILDREN_MAX)] = '\0';
    for (;;) {
        char *end = NULL;
        long pid = strtol(at, &end, 10);

        if (end == at)
            return false;
        if (pid > 0 && !is_install_script(pid))
            return true;
        at = end;
    }
}

bool mo_runner_installing(pid_t runner)
{
    char path[PATH_SIZE + NAME_MAX + 16];
    bool runs = false, any = false;
    DIR *d = NULL;

    (void)snprintf(path, sizeof(path), "/proc/%ld/task", (long)runner);
    d = opendir(path);
    if (!d)
        return false;
    for (const struct dirent *e = readdir(d); e && !runs; e = readdir(d)) {
        if (e->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof(path), "/proc/%ld/task/%s/children",
                       (long)runner, e->d_name);
        any = any || access(path, R_OK) == 0;
        runs = has_program(path);
    }
    (void)closedir(d);
    return any && !runs;
}
