/* call - one tool of one MCP server, from the command line. */
#include <stdio.h>
#include <unistd.h>

#include "app/cli/mcp.h"

/* --- what is printed ------------------------------------------------------ */

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
    struct mo_json key, val;
    struct mo_json_iter it;

    mo_json_iter(&it, content);
    while (mo_json_next(&it, &key, &val))
        put_block(b, val, tty);
    if (mo_json_len(content) == 0 && more.p) {
        (void)mo_json_pretty(more, b);
        mo_buf_putc(b, '\n');
    }
}

static int print_result(struct mo_cli *c, struct mo_json result)
{
    bool failed = false;
    struct mo_buf b;
    int rc;

    (void)mo_json_bool(mo_json_get(result, "isError"), &failed);
    mo_buf_init(&b, MO_PEER_TEXT_MAX);
    if (mo_cli_has(c, "json")) {
        (void)mo_json_pretty(result, &b);
        mo_buf_putc(&b, '\n');
    } else {
        put_result(&b, result, isatty(c->out) == 1);
    }
    rc = mo_cli_print(c, &b);
    return rc ? rc : failed ? MO_EXIT_FAIL : MO_EXIT_OK;
}

/* --- what is sent --------------------------------------------------------- */

/* {"name":TOOL,"arguments":ARGS} */
static int put_params(struct mo_buf *b, const char *tool, const char *args,
                      struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_jw w;

    if (mo_json_parse(mo_span_cstr(args), 0, &doc, e) < 0)
        return mo_wrap(e, "the arguments are no JSON");
    if (!mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "the arguments must be a JSON object, as in "
                       "'{\"name\": 1}'");
    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "name");
    mo_jw_cstr(&w, tool);
    mo_jw_key(&w, "arguments");
    mo_jw_raw(&w, mo_json_text(doc.root));
    mo_jw_end(&w);
    return mo_buf_err(b);
}

static int call(struct mo_cli *c, struct mo_cmd_peer *m, struct mo_span params)
{
    struct mo_json result;
    struct mo_err e = {0};
    int rc = mo_cmd_peer_open(c, m);

    if (rc)
        return rc;
    rc = mo_peer_call(m->peer, "tools/call", params, &result, &e);
    if (rc == 0)
        return print_result(c, result);
    return mo_cli_error(c, rc == MO_EINVAL ? MO_EXIT_FAIL : MO_EXIT_UNAVAIL,
                        "%s", e.msg);
}

static int run(struct mo_cli *c)
{
    bool typed = mo_cli_has(c, "command") || mo_cli_has(c, "url");
    size_t at = typed ? 0 : 1;
    struct mo_cmd_peer m = {.server = typed ? NULL : c->args[0]};
    struct mo_err e = {0};
    struct mo_buf params;
    int rc;

    if (c->nargs < at + 1 || c->nargs > at + 2)
        return mo_cli_error(c, MO_EXIT_USAGE,
                            typed ? "needs TOOL and its arguments"
                                  : "needs SERVER, TOOL and its arguments");
    mo_buf_init(&params, MO_CMD_TEXT_MAX);
    rc = put_params(&params, c->args[at],
                    c->nargs > at + 1 ? c->args[at + 1] : "{}", &e);
    if (rc < 0)
        rc = mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    else
        rc = call(c, &m, mo_buf_view(&params));
    mo_cmd_peer_close(&m);
    mo_buf_fini(&params);
    return rc;
}

static const struct mo_opt opts[] = {MO_OPT_COMMAND, MO_OPT_URL, MO_OPT_ERA,
                                     MO_OPT_TIMEOUT, MO_OPT_JSON};

const struct mo_cmd mo_cmd_call = {
    .name = "call",
    .summary = "Call one tool of an MCP server and print its answer",
    .args = "[SERVER] TOOL [JSON]",
    .max_args = 3,
    .min_args = 1,
    .text = "SERVER is a name from the configuration; with --command it is "
            "left out. The server is started, asked and stopped. Ends with 1 "
            "if the tool says that it failed, 4 if the server does not work.",
    .example = "call files read_file '{\"path\":\"/tmp/a.txt\"}'",
    .example_says = "reads a file with the configured server 'files'",
    .opts = opts,
    .nopts = MO_COUNT(opts),
    .run = run,
};
