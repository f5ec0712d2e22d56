/* client.c - finds, opens and closes the server of a command. */
#include "cli/mcp_commands/mcp.h"

#include <stdio.h>
#include <unistd.h>

#include "audit/audit.h"
#include "codec/text/visible.h"
#include "connect/server_link.h"

static int no_such_server(struct mo_cli *c, const struct mo_cmd_client *m)
{
    const struct mo_config *cfg = m->cfg.now;

    if (!cfg->file)
        return mo_cli_error(c, MO_EXIT_CONFIG,
                            "there is no server '%.100s': no config file was "
                            "found; use --command or --url without one",
                            m->server);
    return mo_cli_error(c, MO_EXIT_CONFIG,
                        "there is no server '%.100s' in %s; see `mcp list`",
                        m->server, cfg->file);
}

static bool take_era(const struct mo_cli *c, enum mo_conn_mode *mode)
{
    static const char *const words[] = {
        [MO_CONN_LEGACY] = "legacy",
        [MO_CONN_AUTO] = "auto",
        [MO_CONN_MODERN] = "modern",
    };
    const char *word = mo_cli_get(c, "era");

    *mode = MO_CONN_AUTO;
    if (!word)
        return true;
    for (size_t i = 0; i < MO_COUNT(words); i++) {
        *mode = (enum mo_conn_mode)i;
        if (strcmp(word, words[i]) == 0)
            return true;
    }
    return false;
}

bool mo_cmd_timeout(const struct mo_cli *c, uint64_t usual, uint64_t most,
                    uint64_t *ms)
{
    const char *word = mo_cli_get(c, "timeout");
    uint64_t seconds = usual;

    if (word && (mo_span_u64(mo_span_cstr(word), &seconds) < 0 ||
                 seconds == 0 || seconds > most))
        return false;
    *ms = seconds * 1000;
    return true;
}

/* A person can be asked if the input is a terminal. */
static bool may_ask(const struct mo_cli *c, const struct mo_cmd_client *m)
{
    if (mo_cli_has(c, "no-sign-in"))
        return false;
    return mo_cli_has(c, "sign-in") || (!m->many && isatty(STDIN_FILENO) == 1);
}

/* "mcp add" is written as "add". */
int mo_cmd_record_entry(const struct mo_cli *c, const struct mo_config *cfg,
                        const char *server, struct mo_span entry,
                        struct mo_err *e)
{
    struct mo_span verb = mo_span_cstr(c->cmd->name);
    char who[32];
    struct mo_audit_row row = {
        .event = "managed",
        .server = mo_span_cstr(server),
        .entry = entry,
        .by = "command",
    };

    (void)snprintf(who, sizeof(who), "uid %ld", (long)getuid());
    (void)mo_span_strip(&verb, MO_SPAN("mcp "));
    row.subject = verb;
    row.who = mo_span_cstr(who);
    if (mo_audit_first_now(cfg, &row, e) < 0)
        return mo_wrap(e, "not done, because the audit log cannot be written");
    return 0;
}

int mo_cmd_record(const struct mo_cli *c, const struct mo_config *cfg,
                  const char *server, struct mo_err *e)
{
    return mo_cmd_record_entry(c, cfg, server, mo_span(NULL, 0), e);
}

int mo_cmd_client_connect(struct mo_cli *c, struct mo_cmd_client *m,
                          const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_sync_client_opts o = {
        .cfg = m->cfg.now,
        .server = s,
        .command = mo_cli_get(c, "command"),
        .url = mo_cli_get(c, "url"),
        .may_ask = may_ask(c, m),
        .err = c->err,
        .sign_in_needed = &m->needs_sign_in,
    };

    m->needs_sign_in = false;
    if (mo_cli_has(c, "sign-in") && mo_cli_has(c, "no-sign-in"))
        return mo_fail(e, MO_EINVAL, "--sign-in or --no-sign-in, not both");
    if (!s && o.command && o.url)
        return mo_fail(e, MO_EINVAL, "--command or --url, not both");
    if (!take_era(c, &o.mode))
        return mo_fail(e, MO_EINVAL, "--era is auto, legacy or modern");
    if (!mo_cmd_timeout(c, 0, 86400, &o.timeout_ms))
        return mo_fail(e, MO_EINVAL, "--timeout is a number of seconds");
    if (mo_cmd_record(c, m->cfg.now, s ? s->name : NULL, e) < 0)
        return e->code;
    return mo_sync_client_open(&o, &m->client, e);
}

int mo_cmd_client_open(struct mo_cli *c, struct mo_cmd_client *m)
{
    const struct mo_config_mcp *s = NULL;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &m->cfg);

    if (rc)
        return rc;
    if (m->server) {
        s = mo_server_link_find(m->cfg.now, mo_span_cstr(m->server));
        if (!s)
            return no_such_server(c, m);
    }
    rc = mo_cmd_client_connect(c, m, s, &e);
    if (rc < 0 && m->server && !m->needs_sign_in) /* else the name is given */
        (void)mo_wrap(&e, "%s", m->server);
    if (rc < 0)
        rc = mo_cmd_client_error(
            c, m, rc == MO_EINVAL ? MO_EXIT_USAGE : MO_EXIT_UNAVAIL, &e);
    return rc;
}

int mo_cmd_client_error(const struct mo_cli *c, const struct mo_cmd_client *m,
                        int code, const struct mo_err *e)
{
    const char *url = mo_cli_get(c, "url");

    if (!m->needs_sign_in)
        return mo_cli_error(c, code, "%s", e->msg);
    return mo_cli_error(c, MO_EXIT_SIGN_IN,
                        "%s; `" MO_PROGRAM " mcp test --sign-in %s%s` does "
                        "that",
                        e->msg, m->server ? "" : "--url ",
                        m->server ? m->server
                        : url     ? url
                                  : "NAME");
}

void mo_cmd_client_close(struct mo_cmd_client *m)
{
    mo_sync_client_close(m->client);
    m->client = NULL;
    mo_cmd_close(&m->cfg);
}

void mo_cmd_put_text(struct mo_buf *b, struct mo_json v, bool tty)
{
    mo_autobuf struct mo_buf text = {.max = MO_CMD_TEXT_MAX};

    if (!mo_json_is(v, MO_JSON_STRING))
        mo_buf_span(b, mo_json_text(v));
    else if (!tty || mo_json_str_buf(v, &text) < 0)
        (void)mo_json_str_buf(v, b);
    else
        mo_visible_text(b, mo_buf_view(&text));
}

void mo_cmd_put_name(struct mo_buf *b, struct mo_json v)
{
    mo_autobuf struct mo_buf text = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &text) < 0)
        (void)mo_buf_fail(b, mo_buf_err(&text));
    mo_visible_name(b, text.len ? mo_buf_view(&text) : mo_span(NULL, 0));
}
