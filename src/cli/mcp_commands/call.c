/* call - calls one tool of one MCP server. */
#include <stdio.h>
#include <unistd.h>

#include "cli/mcp_commands/mcp.h"

/* --- output --------------------------------------------------------------- */

static void put_block(struct mo_buf *b, struct mo_json block, bool tty)
{
    struct mo_json type = mo_json_get(block, "type");
    struct mo_json text = mo_json_get(block, "text");
    struct mo_json inner = mo_json_get(block, "resource");

    if (!text.p)
        text = mo_json_get(inner, "text");
    if (mo_json_is(text, MO_JSON_STRING)) {
        mo_cmd_put_text(b, text, tty);
        mo_buf_putc(b, '\n');
        return;
    }
    mo_buf_putc(b, '[');
    mo_cmd_put_text(b, type, tty);
    if (mo_json_get(block, "mimeType").p) {
        mo_buf_putc(b, ' ');
        mo_cmd_put_text(b, mo_json_get(block, "mimeType"), tty);
    }
    if (mo_json_get(block, "uri").p) {
        mo_buf_putc(b, ' ');
        mo_cmd_put_text(b, mo_json_get(block, "uri"), tty);
    }
    mo_buf_puts(b, "; --json shows it]\n");
}

static void put_result(struct mo_buf *b, struct mo_json result, bool tty)
{
    struct mo_json content = mo_json_get(result, "content");
    struct mo_json more = mo_json_get(result, "structuredContent");

    mo_json_each (it, content)
        put_block(b, it.val, tty);
    if (mo_json_len(content) == 0 && more.p) {
        (void)mo_json_pretty(more, b);
        mo_buf_putc(b, '\n');
    }
}

static int print_result(struct mo_cli *c, struct mo_json result)
{
    bool failed = false;
    mo_autobuf struct mo_buf b = {.max = MO_SYNC_CLIENT_TEXT_MAX};
    int rc;

    (void)mo_json_bool(mo_json_get(result, "isError"), &failed);
    if (mo_cli_has(c, "json")) {
        (void)mo_json_pretty(result, &b);
        mo_buf_putc(&b, '\n');
    } else {
        put_result(&b, result, isatty(c->out) == 1);
    }
    rc = mo_cli_print(c, &b);
    return rc ? rc : failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}

/* --- call ----------------------------------------------------------------- */

static int check_args(const char *args, struct mo_err *e)
{
    struct mo_json_doc doc;

    if (mo_json_parse(mo_span_cstr(args), 0, &doc, e) < 0)
        return mo_wrap(e, "the arguments are not JSON");
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "the arguments must be a JSON object, as in "
                       "'{\"name\": 1}'");
    return 0;
}

static int call_tool(struct mo_cli *c, struct mo_cmd_client *m,
                     const char *tool, const char *args)
{
    struct mo_json result;
    struct mo_err e = {0};
    int rc = mo_cmd_client_open(c, m);

    if (rc)
        return rc;
    rc = mo_sync_client_tool(m->client, tool, mo_span_cstr(args), &result, &e);
    if (rc == 0)
        return print_result(c, result);
    return mo_cmd_client_error(
        c, m, rc == MO_EINVAL ? MO_EXIT_FAIL : MO_EXIT_UNAVAIL, &e);
}

int mo_run_call(struct mo_cli *c)
{
    bool typed = mo_cli_has(c, "command") || mo_cli_has(c, "url");
    size_t at = typed ? 0 : 1;
    mo_autoclient struct mo_cmd_client m = {.server =
                                                typed ? NULL : c->args[0]};
    const char *args = c->nargs > at + 1 ? c->args[at + 1] : "{}";
    struct mo_err e = {0};

    if (c->nargs < at + 1 || c->nargs > at + 2)
        return mo_cli_error(c, MO_EXIT_USAGE,
                            typed ? "needs TOOL and its arguments"
                                  : "needs SERVER, TOOL and its arguments");
    if (check_args(args, &e) < 0)
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    return call_tool(c, &m, c->args[at], args);
}
