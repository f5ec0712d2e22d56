#include "connect/box_mounts.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "connect/workspace.h"

/* --- files of this program ------------------------------------------------ */

static void guard_path(struct mo_box_guard *x, const char *path)
{
    size_t n = 0;

    while (x->paths[n])
        n++;
    if (path && path[0] == '/' && n < MO_BOX_GUARD_PATHS)
        x->paths[n] = path;
}

/* Relative to the working directory; "" if it is too long. */
static const char *absolute(const char *path, char out[PATH_MAX])
{
    char dir[PATH_MAX];
    int n = -1;

    if (path && path[0] == '/')
        n = snprintf(out, PATH_MAX, "%s", path);
    else if (path && getcwd(dir, sizeof(dir)))
        n = snprintf(out, PATH_MAX, "%s/%s", dir, path);
    if (n < 0 || n >= PATH_MAX)
        out[0] = '\0';
    return out;
}

static const char *after(const char *text, const char *prefix)
{
    size_t n = strlen(prefix);

    return text && strncmp(text, prefix, n) == 0 ? text + n : NULL;
}

void mo_box_guard_init(struct mo_box_guard *x, const struct mo_config *cfg)
{
    *x = (struct mo_box_guard){.g = {.home = NULL}};
    x->g.paths = x->paths;
    if (mo_config_owner_home(cfg, x->home))
        x->g.home = x->home;
    guard_path(x, cfg->store.dir);
    if (mo_config_home(cfg->environ, NULL, x->config))
        guard_path(x, x->config);
    guard_path(x, absolute(cfg->file, x->file));
    guard_path(x, absolute(".env", x->dotenv));
    guard_path(x, cfg->server.tls.key);
    guard_path(x, after(cfg->secrets.key, "file:"));
    guard_path(x, after(cfg->sandbox.docker_host, "unix://"));
    guard_path(x, after(cfg->audit.anchor, "file:"));
}

/* --- for people ----------------------------------------------------------- */

int mo_box_mounts_judge(const struct mo_config *cfg, const char *text,
                        struct mo_mount *out, struct mo_err *e)
{
    struct mo_box_guard guard;
    struct mo_host_inode at;
    int rc = mo_mount_parse(mo_span_cstr(text), NULL, out, e);

    mo_box_guard_init(&guard, cfg);
    return rc ? rc : mo_host_path_judge(out, &guard.g, &at, e);
}

static bool has_workspace(const struct mo_config *cfg,
                          const struct mo_config_mcp *s, char path[PATH_MAX])
{
    return s->workspace && mo_workspace_path(cfg, s->name, path, NULL) == 0;
}

void mo_box_mounts_put(struct mo_jw *w, const struct mo_config *cfg,
                       const struct mo_config_mcp *s)
{
    char path[PATH_MAX];

    if (s->mounts.v)
        mo_jw_member_arr(w, "mounts");
    for (size_t i = 0; s->mounts.v && s->mounts.v[i]; i++) {
        struct mo_mount m;
        struct mo_err e;
        int rc = mo_box_mounts_judge(cfg, s->mounts.v[i], &m, &e);

        mo_jw_obj(w);
        mo_jw_member_cstr(w, "host", m.host);
        mo_jw_member_cstr(w, "box", m.box);
        mo_jw_member_cstr(w, "mode", m.rw ? "rw" : "ro");
        if (rc < 0)
            mo_jw_member_cstr(w, "error", e.msg);
        mo_jw_end(w);
    }
    if (s->mounts.v)
        mo_jw_end(w);
    if (has_workspace(cfg, s, path))
        mo_jw_member_cstr(w, "workspace", path);
}

void mo_box_mounts_print(struct mo_buf *b, const struct mo_config *cfg,
                         const struct mo_config_mcp *s)
{
    char path[PATH_MAX];

    for (size_t i = 0; s->mounts.v && s->mounts.v[i]; i++) {
        struct mo_mount m;
        struct mo_err e;
        int rc = mo_box_mounts_judge(cfg, s->mounts.v[i], &m, &e);

        mo_buf_printf(b, "    %s %s", m.rw ? "reads and writes" : "reads",
                      m.host);
        if (strcmp(m.host, m.box) != 0)
            mo_buf_printf(b, " as %s", m.box);
        if (rc < 0)
            mo_buf_printf(b, " (refused: %s)", e.msg);
        mo_buf_putc(b, '\n');
    }
    if (has_workspace(cfg, s, path))
        mo_buf_printf(b, "    keeps its files in %s\n", path);
}
