#include "loop/npx_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"

#define HASH        16 /* hex digits */
#define CMDLINE_MAX 4096

/* --- the text ------------------------------------------------------------- */

static bool tells_of_damage(struct mo_span line)
{
    static const char *const words[] = {
        "ENOTEMPTY",
        "Cannot find module",
        "Cannot find package",
        "Invalid package config",
    };

    for (size_t i = 0; i < MO_COUNT(words); i++)
        if (mo_span_search(line, mo_span_cstr(words[i])) >= 0)
            return true;
    return false;
}

static bool is_hash(struct mo_span s)
{
    for (size_t i = 0; i < HASH; i++)
        if (s.n < HASH ||
            !(mo_is_digit(s.p[i]) || (s.p[i] >= 'a' && s.p[i] <= 'f')))
            return false;
    return s.n == HASH || s.p[HASH] == '/' || s.p[HASH] == '\'' ||
           s.p[HASH] == '"' || (unsigned char)s.p[HASH] <= ' ';
}

/* Where the path begins that has the '/' at `at`. */
static size_t path_start(struct mo_span s, size_t at)
{
    while (at > 0 && (unsigned char)s.p[at - 1] > ' ' && s.p[at - 1] != '\'' &&
           s.p[at - 1] != '"' && s.p[at - 1] != '(')
        at--;
    return at;
}

static bool read_line(struct mo_span line, char path[PATH_MAX])
{
    const struct mo_span mark = MO_SPAN("/_npx/");
    ptrdiff_t at = tells_of_damage(line) ? mo_span_search(line, mark) : -1;
    size_t from, n;

    if (at < 0 || !is_hash(mo_span_skip(line, (size_t)at + mark.n)))
        return false;
    from = path_start(line, (size_t)at);
    if (mo_span_starts(mo_span_skip(line, from), MO_SPAN("file://")))
        from += strlen("file://");
    n = (size_t)at + mark.n + HASH - from;
    if (n >= PATH_MAX || line.p[from] != '/')
        return false;
    memcpy(path, line.p + from, n);
    path[n] = '\0';
    return true;
}

/* Damage and place are in one line: a server may complain of other files and
 * print a stack with its own place. */
bool mo_npx_cache_named(struct mo_span said, char path[PATH_MAX])
{
    while (said.n)
        if (read_line(mo_span_cut(&said, '\n'), path))
            return true;
    return false;
}

/* --- the directory -------------------------------------------------------- */

static bool is_cache(const char *path)
{
    char file[PATH_MAX];
    struct stat st;
    int n = snprintf(file, sizeof(file), "%s/node_modules", path);

    return strstr(path, "/../") == NULL && lstat(path, &st) == 0 &&
           S_ISDIR(st.st_mode) && st.st_uid == geteuid() && n > 0 &&
           (size_t)n < sizeof(file) && lstat(file, &st) == 0 &&
           S_ISDIR(st.st_mode);
}

static bool runs_from(const char *pid, const char *path)
{
    char name[64], text[CMDLINE_MAX];
    ssize_t n = 0;
    mo_autofd int fd = -1;

    (void)snprintf(name, sizeof(name), "/proc/%.20s/cmdline", pid);
    fd = open(name, O_RDONLY | O_CLOEXEC);
    n = fd < 0 ? 0 : read(fd, text, sizeof(text));
    return n > 0 && memmem(text, (size_t)n, path, strlen(path)) != NULL;
}

static bool is_used(const char *path)
{
    DIR *d = opendir("/proc");
    bool used = d == NULL;

    for (const struct dirent *e = d ? readdir(d) : NULL; e && !used;
         e = readdir(d))
        used = mo_is_digit(e->d_name[0]) && runs_from(e->d_name, path);
    if (d)
        (void)closedir(d);
    return used;
}

bool mo_npx_cache_move(const char *path)
{
    char to[PATH_MAX];
    int n = snprintf(to, sizeof(to), "%s.broken", path);

    return n > 0 && (size_t)n < sizeof(to) && is_cache(path) &&
           !is_used(path) && rename(path, to) == 0;
}
