#include "connect/installed_files.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "codec/mount.h"

/* The part of path that is STATE/servers/NAME/VERSION; n == 0: none. end: what
 * follows the state directory. */
static struct mo_span package_dir(const char *path, const char *state,
                                  struct mo_span end)
{
    struct mo_span s = mo_span_cstr(path), rest = s, name, version;

    if (!mo_span_strip(&rest, mo_span_cstr(state)) ||
        !mo_span_strip(&rest, end) || mo_span_search(rest, MO_SPAN("..")) >= 0)
        return mo_span(NULL, 0);
    name = mo_span_cut(&rest, '/');
    version = rest.p ? mo_span_cut(&rest, '/') : mo_span(NULL, 0);
    if (!name.n || !version.n || !rest.n)
        return mo_span(NULL, 0);
    return mo_span_head(s, (size_t)(version.p + version.n - s.p));
}

static bool is_of_system(const char *path)
{
    static const char *const dirs[] = {"/usr", "/bin", "/sbin", "/lib"};

    for (size_t i = 0; i < MO_COUNT(dirs); i++)
        if (mo_path_is_in(path, dirs[i]))
            return true;
    return false;
}

static struct mo_span find_dir(const struct mo_config *cfg,
                               const struct mo_config_mcp *s)
{
    char state[PATH_MAX];
    struct mo_span dir = {NULL, 0};

    if (!s->command || !realpath(cfg->store.dir, state))
        return dir;
    for (size_t i = 0; dir.n == 0 && i < s->args.n; i++) {
        dir =
            package_dir(s->args.v[i], state, MO_SPAN("/" MO_INSTALLED_DIR "/"));
        if (dir.n == 0)
            dir = package_dir(s->args.v[i], state,
                              MO_SPAN("." MO_INSTALLED_DIR "/"));
    }
    return dir;
}

int mo_installed_files(struct mo_arena *a, const struct mo_config *cfg,
                       const struct mo_config_mcp *s, const char *const **out,
                       struct mo_err *e)
{
    struct mo_span dir = find_dir(cfg, s);
    const char **v;

    *out = NULL;
    if (dir.n == 0)
        return 0;
    v = mo_arena_zalloc(a, (MO_INSTALLED_FILES_MAX + 1) * sizeof(*v));
    if (v)
        v[0] = mo_arena_strndup(a, dir.p, dir.n);
    if (!v || !v[0])
        return mo_fail(e, MO_ENOMEM, "installed files");
    if (s->command[0] == '/' && !is_of_system(s->command))
        v[1] = s->command;
    *out = v;
    return 0;
}
