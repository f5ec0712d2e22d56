/* open - prints the link that signs a browser in to the running server; health
 * - asks it the same question, and prints no link.
 *
 * `open` does not start the browser: the link would then stand in a command
 * line, where every user can read it. */
#include <stdio.h>

#include "base/exit.h"
#include "cli/runtime_wait.h"
#include "web/approvals_socket.h"

struct opening {
    struct mo_cmd_runtime m;
    struct mo_buf link;
};

static void end_opening(struct opening *o)
{
    mo_buf_wipe(&o->link);
    mo_cmd_runtime_close(&o->m);
}

/* 1: this process serves the page, and its link is read. */
static int ask_process(void *ctx, const char *path)
{
    struct opening *o = ctx;
    int status = 0;
    struct mo_err e;

    mo_buf_reset(&o->link);
    return mo_approvals_socket_ask(o->m.loop, path, "GET",
                                   MO_APPROVALS_SOCKET_LINK, mo_span(NULL, 0),
                                   &status, &o->link, &e) == 0 &&
           status == 200;
}

/* 0: the link of a running server is in o. Otherwise the exit code, and the
 * error is printed. */
static int find_server(struct mo_cli *c, struct opening *o)
{
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &o->m);

    if (rc)
        return rc;
    rc = mo_approvals_socket_each(o->m.cfg.now->store.dir, ask_process, o, &e);
    if (rc == 1)
        return 0;
    if (rc < 0 && rc != MO_ENOTFOUND)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return mo_cli_error(c, MO_EXIT_UNAVAIL,
                        "no server with a page is running with the state "
                        "directory %s; start one with `mcp-orchestrator serve`",
                        o->m.cfg.now->store.dir);
}

int mo_run_open(struct mo_cli *c)
{
    MO_CLEANUP(end_opening)
    struct opening o = {.link = {.max = MO_APPROVALS_SOCKET_BYTES}};
    int rc = find_server(c, &o);

    if (rc)
        return rc;
    return printf("%s\n", mo_buf_cstr(&o.link)) < 0 ? MO_EXIT_FAIL : MO_EXIT_OK;
}

int mo_run_health(struct mo_cli *c)
{
    MO_CLEANUP(end_opening)
    struct opening o = {.link = {.max = MO_APPROVALS_SOCKET_BYTES}};
    int rc = find_server(c, &o);

    if (rc)
        return rc;
    return puts("the server answers") < 0 ? MO_EXIT_FAIL : MO_EXIT_OK;
}
