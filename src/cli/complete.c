/* complete - prints names for shell completion, one a line.
 *
 * It runs when a person presses a key, so it starts no server, asks nobody, has
 * no network, writes nothing and says nothing about errors. It shows what the
 * person's own configuration and state directory say. If a file of the working
 * directory is not confirmed, nothing is printed: the command itself would say
 * so.
 *
 * Names come from other people's servers and files, and shells are easily made
 * to evaluate words: a name with anything but letters, digits and "_.@/-" is
 * left out. */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "gateway/catalog/catalog.h"
#include "secrets/key.h"
#include "servers/gateway_setup.h"

void mo_cmd_put_completion(struct mo_buf *b, struct mo_span name)
{
    if (name.n && name.p[0] != '-' && mo_span_only(name, MO_ALNUM "_.@/-")) {
        mo_buf_span(b, name);
        mo_buf_putc(b, '\n');
    }
}

static void put_servers(const struct mo_config *c, struct mo_buf *b)
{
    for (size_t i = 0; i < c->mcp.n; i++)
        mo_cmd_put_completion(b, mo_span_cstr(c->mcp.v[i].name));
}

static void put_views(const struct mo_config *c, struct mo_buf *b)
{
    for (size_t i = 0; i < c->views.n; i++)
        mo_cmd_put_completion(b, mo_span_cstr(c->views.v[i].name));
}

static void put_secrets(const struct mo_config *c, struct mo_buf *b)
{
    struct mo_secrets *s = NULL;
    struct mo_err e;

    if (mo_secrets_for(c, false, &s, &e) == 0)
        for (size_t i = 0; i < mo_secrets_count(s); i++)
            mo_cmd_put_completion(b, mo_secrets_at(s, i).name);
    mo_secrets_close(s);
}

static void put_tool(void *ctx, struct mo_span name)
{
    mo_cmd_put_completion(ctx, name);
}

static void put_tools(const struct mo_config *c, const char *server,
                      struct mo_buf *b)
{
    char dir[PATH_MAX];
    int n =
        snprintf(dir, sizeof(dir), "%s/" MO_GATEWAY_SETUP_CACHE, c->store.dir);

    if (server && n > 0 && (size_t)n < sizeof(dir))
        mo_catalog_cached_tools(dir, server, put_tool, b);
}

/* A database is neither created nor asked over the network. */
static bool has_database(const struct mo_config *c)
{
    struct mo_span url = mo_span_cstr(c->store.url), file;
    char path[PATH_MAX];
    struct stat st;
    int n;

    if (!mo_span_starts(url, MO_SPAN("sqlite:")))
        return false;
    file = mo_span_skip(url, strlen("sqlite:"));
    n = snprintf(path, sizeof(path), "%s%s%.*s",
                 file.n && file.p[0] == '/' ? "" : c->store.dir,
                 file.n && file.p[0] == '/' ? "" : "/", (int)file.n, file.p);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 &&
           S_ISREG(st.st_mode);
}

static int put_names(struct mo_cli *c, const struct mo_config *now,
                     const char *kind)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (strcmp(kind, "server") == 0)
        put_servers(now, &b);
    else if (strcmp(kind, "view") == 0)
        put_views(now, &b);
    else if (strcmp(kind, "secret") == 0)
        put_secrets(now, &b);
    else if (strcmp(kind, "tool") == 0)
        put_tools(now, c->nargs > 1 ? c->args[1] : NULL, &b);
    return mo_cli_print(c, &b);
}

static void be_silent(void)
{
    int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

    if (fd >= 0 && fd != STDERR_FILENO) {
        (void)dup2(fd, STDERR_FILENO);
        (void)close(fd);
    }
}

int mo_run_complete(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_config_report *rep = mo_new(struct mo_config_report);
    struct mo_err e;
    bool usable;

    be_silent();
    usable = rep && mo_cmd_open(c, &cfg, rep, &e) == 0 && !rep->nuntrusted;
    mo_free(rep);
    if (!usable)
        return MO_EXIT_CONFIG;
    if (strcmp(c->args[0], "session") == 0)
        return has_database(cfg.now) ? mo_cmd_complete_sessions(c) : 0;
    if (mo_cmd_change_user(c, &cfg))
        return MO_EXIT_CONFIG;
    return put_names(c, cfg.now, c->args[0]);
}
