/* token create, list, revoke - personal tokens of the running server.
 *
 * The server is asked over its local socket (web/approvals_socket.h), so a
 * revocation takes effect at once, whichever store it has. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/runtime_wait.h"
#include "web/approvals_socket.h"

#define URL_MAX_   128
#define BODY_MAX   ((size_t)8 * 1024)
#define ANSWER_MAX ((size_t)16 * 1024 * 1024)

struct asking {
    struct mo_cmd_runtime m;
    const char *method, *url;
    struct mo_span body;
    int status;
    struct mo_buf answer;
};

static void end_asking(struct asking *a)
{
    mo_buf_wipe(&a->answer);
    mo_cmd_runtime_close(&a->m);
}

#define autoasking MO_CLEANUP(end_asking)

/* 1: this process has tokens, and has answered. */
static int ask_process(void *ctx, const char *path)
{
    struct asking *a = ctx;
    struct mo_err e;

    mo_buf_reset(&a->answer);
    return mo_approvals_socket_ask(a->m.loop, path, a->method, a->url, a->body,
                                   &a->status, &a->answer, &e) == 0 &&
           a->status != MO_API_NO_TOKENS;
}

static int explain(struct mo_cli *c, struct asking *a)
{
    mo_autobuf struct mo_buf why = {.max = 4096};
    struct mo_json_doc d = {.bad_at = 0};

    if (mo_json_parse(mo_buf_view(&a->answer), 0, &d, NULL) == 0)
        (void)mo_json_str_buf(mo_json_get(d.root, "detail"), &why);
    return mo_cli_error(c, MO_EXIT_FAIL, "%s",
                        why.len ? mo_buf_cstr(&why) : "the server refused it");
}

/* 0: a server has answered with success. */
static int ask_server(struct mo_cli *c, struct asking *a, struct mo_json_doc *d)
{
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &a->m);

    if (rc)
        return rc;
    mo_buf_init(&a->answer, ANSWER_MAX);
    rc = mo_approvals_socket_each(a->m.cfg.now->store.dir, ask_process, a, &e);
    if (rc != 1)
        return mo_cli_error(c, MO_EXIT_UNAVAIL,
                            "no server is running with the state directory %s; "
                            "start one with `mcp-orchestrator serve`",
                            a->m.cfg.now->store.dir);
    if (a->status >= 300 ||
        mo_json_parse(mo_buf_view(&a->answer), 0, d, NULL) < 0)
        return explain(c, a);
    return 0;
}

/* --- list ---------------------------------------------------------------- */

static void put_time(struct mo_buf *b, const char *label, struct mo_json v)
{
    char text[MO_ISO8601_MAX];
    uint64_t at = 0;

    (void)mo_json_u64(v, &at);
    mo_wall_format(at, text);
    (void)mo_buf_printf(b, "%s%s\n", label, at ? text : "never");
}

static void put_views(struct mo_buf *b, struct mo_json views)
{
    bool any = false;

    mo_json_each (it, views) {
        mo_cmd_put_member(b, any ? ", " : "  views      ", it.val);
        any = true;
    }
    if (any)
        mo_buf_putc(b, '\n');
}

static void put_token(struct mo_buf *b, struct mo_json v)
{
    struct mo_json owner = mo_json_get(v, "owner");

    mo_cmd_put_member(b, "", mo_json_get(v, "id"));
    mo_cmd_put_member(b, "\n  name       ", mo_json_get(v, "name"));
    if (mo_json_str_eq(owner, MO_SPAN("")))
        mo_buf_puts(b, "\n  owner      the operator");
    else
        mo_cmd_put_member(b, "\n  owner      ", owner);
    mo_cmd_put_member(b, "\n  role       ", mo_json_get(v, "role"));
    mo_buf_putc(b, '\n');
    put_views(b, mo_json_get(v, "views"));
    put_time(b, "  expires    ", mo_json_get(v, "expires"));
    put_time(b, "  last used  ", mo_json_get(v, "used"));
}

int mo_run_token_list(struct mo_cli *c)
{
    autoasking struct asking a = {.method = "GET", .url = "/api/tokens"};
    mo_autobuf struct mo_buf out = {.max = ANSWER_MAX};
    struct mo_json_doc d = {.bad_at = 0};
    int rc = ask_server(c, &a, &d);
    struct mo_json list;

    if (rc)
        return rc;
    list = mo_json_get(d.root, "tokens");
    if (mo_cli_has(c, "json"))
        mo_buf_span(&out, mo_json_text(list));
    else if (mo_json_len(list) == 0)
        mo_buf_puts(&out, "there are no personal tokens\n");
    mo_json_each_while (it, list, !mo_cli_has(c, "json"))
        put_token(&out, it.val);
    return mo_cmd_print(c, &out);
}

/* --- create -------------------------------------------------------------- */

static void put_view_options(const struct mo_cli *c, struct mo_jw *w)
{
    if (!mo_cli_has(c, "view"))
        return;
    mo_jw_member_arr(w, "views");
    for (size_t i = 0; i < c->ngot; i++)
        if (strcmp(c->got[i].opt->name, "view") == 0)
            mo_jw_cstr(w, c->got[i].value);
    mo_jw_end(w);
}

/* 0, or an exit code. */
static int put_request(struct mo_cli *c, struct mo_buf *b)
{
    static const char *const texts[] = {"name", "role", "person"};
    const char *days = mo_cli_get(c, "days");
    struct mo_jw w = mo_jw_object(b);
    struct mo_json_doc d = {.bad_at = 0};

    for (size_t i = 0; i < MO_COUNT(texts); i++)
        if (mo_cli_has(c, texts[i]))
            mo_jw_member_cstr(&w, texts[i], mo_cli_get(c, texts[i]));
    put_view_options(c, &w);
    if (days && (mo_json_parse(mo_span_cstr(days), 0, &d, NULL) < 0 ||
                 !mo_json_is(d.root, MO_JSON_NUMBER)))
        return mo_cli_error(c, MO_EXIT_USAGE, "--days needs a number");
    if (days)
        mo_jw_member_raw(&w, "days", mo_json_text(d.root));
    mo_jw_end(&w);
    return mo_buf_err(b) ? mo_cli_error(c, MO_EXIT_FAIL, "too long") : 0;
}

int mo_run_token_create(struct mo_cli *c)
{
    autoasking struct asking a = {.method = "POST", .url = "/api/tokens"};
    mo_autobuf struct mo_buf body = {.max = BODY_MAX};
    mo_autowipe struct mo_buf out = {.max = ANSWER_MAX};
    struct mo_json_doc d = {.bad_at = 0};
    int rc;

    if (!mo_cli_has(c, "name"))
        return mo_cli_error(c, MO_EXIT_USAGE, "--name says what it is for");
    rc = put_request(c, &body);
    a.body = mo_buf_view(&body);
    if (rc == 0)
        rc = ask_server(c, &a, &d);
    if (rc)
        return rc;
    if (mo_cli_has(c, "json")) {
        mo_buf_span(&out, mo_json_text(d.root));
        return mo_cmd_print(c, &out);
    }
    put_token(&out, d.root);
    mo_cmd_put_member(&out, "The token, shown only now:\n",
                      mo_json_get(d.root, "token"));
    mo_buf_putc(&out, '\n');
    return mo_cmd_print(c, &out);
}

/* --- revoke -------------------------------------------------------------- */

int mo_run_token_revoke(struct mo_cli *c)
{
    char url[URL_MAX_];
    autoasking struct asking a = {.method = "DELETE", .url = url};
    mo_autobuf struct mo_buf out = {.max = 256};
    struct mo_json_doc d = {.bad_at = 0};
    int rc;

    if (strlen(c->args[0]) > 64 ||
        !mo_span_only(mo_span_cstr(c->args[0]), MO_ALNUM "_-"))
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "that is no id; `token list` shows them");
    (void)snprintf(url, sizeof(url), "/api/tokens/%s", c->args[0]);
    rc = ask_server(c, &a, &d);
    if (rc)
        return rc;
    (void)mo_buf_printf(&out, "revoked %s\n", c->args[0]);
    return mo_cmd_print(c, &out);
}
