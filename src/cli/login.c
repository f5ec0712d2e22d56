/* login, logout, whoami - signs a person in at a server of this program
 * (connect/remote.h), from a terminal.
 *
 * Everything that the server and its provider say is shown as text that cannot
 * move the cursor. Ctrl-C ends the program at any time; nothing is kept of a
 * sign-in that did not end well. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/runtime_wait.h"
#include "codec/text/visible.h"
#include "connect/remote.h"
#include "loop/spawn.h"

#define LINE_MAX_ ((size_t)16 * 1024)

struct login {
    struct mo_cmd_runtime m;
    struct mo_cli *c;
    struct mo_remote *remote;
    const struct mo_remote_provider *provider;
};

static void end_login(struct login *l)
{
    mo_remote_close(l->remote);
    mo_cmd_runtime_close(&l->m);
}

#define autologin MO_CLEANUP(end_login)

static int begin_login(struct mo_cli *c, struct login *l)
{
    struct mo_err e;
    int rc = mo_cmd_runtime_load(c, &l->m);

    if (rc)
        return rc;
    l->c = c;
    rc = mo_remote_open(l->m.loop, l->m.cfg.now, c->nargs ? c->args[0] : NULL,
                        &l->remote, &e);
    if (rc < 0)
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    return 0;
}

/* --- the person ---------------------------------------------------------- */

/* A browser of this desktop, if there is one: no shell, no output. */
static void open_browser(const struct login *l, const char *url)
{
    const char *const argv[] = {"xdg-open", url, NULL};
    mo_autofd int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    mo_autofd int pidfd = -1;
    struct mo_spawn s = {
        .file = argv[0],
        .argv = argv,
        .env = (const char *const *)l->c->environ,
        .fds = {null, null, null},
        .outlive = true,
    };
    pid_t pid;

    if (mo_cli_has(l->c, "no-browser") || isatty(STDIN_FILENO) != 1 ||
        (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY") &&
         !getenv("BROWSER")) ||
        null < 0)
        return;
    (void)mo_spawn(&s, &pid, &pidfd, NULL);
}

static void on_url(void *ctx, const char *url)
{
    struct login *l = ctx;

    (void)dprintf(l->c->err,
                  "To sign in with %s, open this address in a browser on this "
                  "machine:\n\n  %s\n\nWaiting ...\n",
                  l->provider->title, url);
    open_browser(l, url);
}

static void on_device(void *ctx, const struct mo_oauth_device *d,
                      const struct mo_oauth_server *issuer)
{
    struct login *l = ctx;
    bool elsewhere = !mo_oauth_same_host(d->url, issuer->issuer);

    (void)dprintf(l->c->err,
                  "To sign in with %s, open this address on any device:\n\n"
                  "  %s\n\nand enter the code:\n\n  %s\n\n",
                  l->provider->title, d->url, d->user_code);
    if (d->url_with_code)
        (void)dprintf(l->c->err,
                      "This address has the code already:\n\n  %s\n\n",
                      d->url_with_code);
    if (elsewhere)
        (void)dprintf(l->c->err,
                      "The address is on another host than the provider, "
                      "%s. Make sure that\nyou know it.\n",
                      issuer->issuer);
    (void)dprintf(l->c->err, "Waiting for %llu minutes ...\n",
                  (unsigned long long)((d->life_ms + 59999) / 60000));
    if (!elsewhere)
        open_browser(l, d->url_with_code ? d->url_with_code : d->url);
}

/* --- login --------------------------------------------------------------- */

static int choose_provider(struct login *l, struct mo_err *e)
{
    const char *want = mo_cli_get(l->c, "provider");
    mo_autobuf struct mo_buf names = {.max = LINE_MAX_};
    const struct mo_remote_provider *v;
    size_t n;
    int rc = mo_remote_providers(l->remote, &v, &n, e);

    if (rc < 0)
        return rc;
    for (size_t i = 0; i < n; i++) {
        if (want ? strcmp(v[i].name, want) == 0 : n == 1)
            l->provider = &v[i];
        (void)mo_buf_printf(&names, "%s%s", i ? ", " : "", v[i].name);
    }
    if (l->provider)
        return 0;
    return mo_fail(e, MO_EINVAL, "%s has %s: %.150s", mo_remote_url(l->remote),
                   want ? "no such provider, but"
                        : "several providers; choose with --provider",
                   mo_buf_cstr(&names));
}

/* {"name", "role"} of GET /api/me. */
static int print_me(struct login *l, const char *before, struct mo_buf *me)
{
    mo_autobuf struct mo_buf raw = {.max = LINE_MAX_}, b = {.max = LINE_MAX_};
    struct mo_json_doc d;
    struct mo_json name;

    if (mo_json_parse(mo_buf_view(me), 0, &d, NULL) < 0 ||
        !mo_json_is(d.root, MO_JSON_OBJECT))
        return mo_cli_error(l->c, MO_EXIT_FAIL, "%s sent no usable answer",
                            mo_remote_url(l->remote));
    if (mo_cli_has(l->c, "json"))
        return mo_cmd_print_json(l->c, me);
    name = mo_json_get(d.root, "name");
    mo_cmd_put_member(&raw, "", name);
    mo_cmd_put_member(&raw, name.p ? " (" : "(", mo_json_get(d.root, "role"));
    (void)mo_buf_printf(&b, "%s%s as ", before, mo_remote_url(l->remote));
    mo_visible_name(&b, mo_buf_view(&raw));
    (void)mo_buf_puts(&b, ")\n");
    return mo_cli_print(l->c, &b);
}

static int exit_code(const struct mo_err *e)
{
    return e->code == MO_EINVAL      ? MO_EXIT_USAGE
           : e->code == MO_EUNAVAIL  ? MO_EXIT_UNAVAIL
           : e->code == MO_ENOTFOUND ? MO_EXIT_UNAVAIL
                                     : MO_EXIT_FAIL;
}

int mo_run_login(struct mo_cli *c)
{
    autologin struct login l = {.c = c};
    mo_autobuf struct mo_buf me = {.max = LINE_MAX_};
    const struct mo_remote_person person = {on_device, on_url, &l};
    struct mo_err e;
    int rc = begin_login(c, &l);

    if (rc)
        return rc;
    if (choose_provider(&l, &e) < 0 ||
        mo_remote_login(l.remote, l.provider, &person, &me, &e) < 0)
        return mo_cli_error(c, exit_code(&e), "%s", e.msg);
    return print_me(&l, "signed in at ", &me);
}

int mo_run_logout(struct mo_cli *c)
{
    autologin struct login l = {.c = c};
    mo_autobuf struct mo_buf b = {.max = LINE_MAX_};
    struct mo_err e;
    int rc = begin_login(c, &l);

    if (rc)
        return rc;
    if (mo_remote_logout(l.remote, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    (void)mo_buf_printf(&b, "signed out of %s\n", mo_remote_url(l.remote));
    return mo_cli_print(c, &b);
}

int mo_run_whoami(struct mo_cli *c)
{
    autologin struct login l = {.c = c};
    mo_autobuf struct mo_buf me = {.max = LINE_MAX_};
    struct mo_err e;
    int status = 0, rc = begin_login(c, &l);

    if (rc)
        return rc;
    rc = mo_remote_ask(l.remote, "/api/me", mo_span(NULL, 0), &status, &me, &e);
    if (rc < 0)
        return mo_cli_error(c, status == 401 ? MO_EXIT_SIGN_IN : exit_code(&e),
                            "%s", e.msg);
    if (status != 200)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s answers %d",
                            mo_remote_url(l.remote), status);
    return print_me(&l, "signed in at ", &me);
}
