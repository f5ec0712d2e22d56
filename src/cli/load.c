/* load.c - configuration loading and printing for commands; see cmd.h. */
#include <stdio.h>

#include "cli/cmd.h"
#include "codec/json/json.h"

#define FLAG_MAX 32

/* Collects the options that set configuration keys. */
static void collect_flags(const struct mo_cli *c, struct mo_cmd_flags *flags)
{
    flags->n = 0;
    for (size_t i = 0; i < c->ngot; i++) {
        const struct mo_opt *o = c->got[i].opt;

        if (o->key)
            flags->v[flags->n++] =
                (struct mo_config_flag){o->key, o->name, c->got[i].value};
    }
}

int mo_cmd_open(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h, struct mo_config_report *rep,
                struct mo_err *e)
{
    struct mo_config_input in = {
        .file = mo_cli_get(c, "config"),
        .environ = c->environ,
        .flags = flags->v,
    };

    if (!in.file && c->nargs && c->cmd->run == mo_run_config_check)
        in.file = c->args[0];
    collect_flags(c, flags);
    in.nflags = flags->n;
    return mo_config_open(h, &in, rep, e);
}

void mo_cmd_print_report(const struct mo_cli *c,
                         const struct mo_config_report *rep)
{
    for (unsigned i = 0; i < rep->kept; i++)
        (void)dprintf(c->err, "%s%s\n", rep->v[i].text,
                      rep->v[i].warning ? " (warning)" : "");
    if (rep->errors + rep->warnings > rep->kept)
        (void)dprintf(c->err, "... and %u more\n",
                      rep->errors + rep->warnings - rep->kept);
}

int mo_cmd_load(const struct mo_cli *c, struct mo_cmd_flags *flags,
                struct mo_config_holder *h)
{
    struct mo_config_report rep;
    struct mo_err e = {0};

    if (mo_cmd_open(c, flags, h, &rep, &e) == 0) {
        mo_cmd_print_report(c, &rep);
        return 0;
    }
    if (rep.errors == 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    mo_cmd_print_report(c, &rep);
    return MO_EXIT_CONFIG;
}

int mo_cmd_print_json(const struct mo_cli *c, struct mo_buf *b)
{
    struct mo_json_doc doc;
    struct mo_buf pretty;
    struct mo_err e = {0};

    mo_buf_init(&pretty, MO_CMD_TEXT_MAX);
    if (mo_buf_err(b))
        pretty.err = mo_buf_err(b);
    else if (mo_json_parse(mo_buf_view(b), 0, &doc, &e) < 0)
        pretty.err = e.code;
    else
        mo_json_pretty(doc.root, &pretty);
    mo_buf_putc(&pretty, '\n');
    mo_buf_fini(b);
    return mo_cli_print(c, &pretty);
}

void mo_cmd_put_member(struct mo_buf *b, const char *before, struct mo_json v)
{
    if (!v.p)
        return;
    mo_buf_puts(b, before);
    if (mo_json_is(v, MO_JSON_STRING))
        mo_buf_span(b, mo_span(v.p + 1, v.n - 2)); /* stays escaped */
    else
        mo_buf_span(b, mo_json_text(v));
}
