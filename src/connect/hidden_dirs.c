#include "connect/hidden_dirs.h"

#include "connect/installed_files.h"

int mo_hidden_dirs_init(struct mo_hide *h, const struct mo_config *cfg,
                        struct mo_err *e)
{
    char home[PATH_MAX];
    int rc = mo_file_mkdir(cfg->store.dir, e);

    if (rc == 0)
        rc = mo_hide_add(h, cfg->store.dir, e);
    if (rc == 0)
        mo_hide_show(h, MO_INSTALLED_DIR);
    if (mo_config_home(cfg->environ, NULL, home) &&
        mo_file_mkdir(home, NULL) == 0 && !mo_hide_has(h, home))
        (void)mo_hide_add(h, home, NULL);
    if (cfg->file)
        (void)mo_hide_keep(h, cfg->file, NULL);
    (void)mo_hide_keep(h, ".env", NULL);
    return rc;
}

static int refuse(const struct mo_config_mcp *s, const char *what,
                  const char *path, struct mo_err *e)
{
    return mo_fail(e, MO_EINVAL,
                   "%s '%s' is in a directory that servers cannot see: move "
                   "it, or set mcpServers.%s.isolate to false",
                   what, path, s->name);
}

int mo_hidden_dirs_check(const struct mo_hide *h, const struct mo_config_mcp *s,
                         struct mo_err *e)
{
    if (mo_hide_has(h, s->command))
        return refuse(s, "the program", s->command, e);
    if (s->cwd && mo_hide_has(h, s->cwd))
        return refuse(s, "the working directory", s->cwd, e);
    for (size_t i = 0; i < s->args.n; i++) {
        if (mo_hide_has(h, s->args.v[i]))
            return refuse(s, "the argument", s->args.v[i], e);
    }
    return 0;
}
