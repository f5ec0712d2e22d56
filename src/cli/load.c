/* load.c - configuration loading and printing for commands; see cmd.h. */
#include <stdio.h>

#include "audit/audit_config.h"
#include "cli/cmd.h"
#include "codec/json/json.h"
#include "config/state_record.h"

static int open_input(const struct mo_cli *c, struct mo_cmd_config *cfg,
                      struct mo_config_input in, struct mo_config_report *rep,
                      struct mo_err *e)
{
    int rc;

    in.environ = c->environ;
    in.flags = cfg->flags;
    in.makes_system_dir =
        c->cmd->run == mo_run_serve || c->cmd->run == mo_run_secrets_set ||
        c->cmd->run == mo_run_mcp_install || c->cmd->run == mo_run_config_allow;
    for (size_t i = 0; i < c->ngot; i++) {
        const struct mo_opt *o = c->got[i].opt;

        if (o->key)
            cfg->flags[in.nflags++] =
                (struct mo_config_flag){o->key, o->name, c->got[i].value};
    }
    rc = mo_config_open(&cfg->h, &in, rep, e);
    cfg->now = cfg->h.now;
    return rc;
}

int mo_cmd_open(const struct mo_cli *c, struct mo_cmd_config *cfg,
                struct mo_config_report *rep, struct mo_err *e)
{
    struct mo_config_input in = {.file = mo_cli_get(c, "config")};

    if (!in.file && c->nargs && c->cmd->run == mo_run_config_check)
        in.file = c->args[0];
    return open_input(c, cfg, in, rep, e);
}

int mo_cmd_open_own(const struct mo_cli *c, struct mo_cmd_config *cfg,
                    struct mo_err *e)
{
    struct mo_config_report rep;

    if (open_input(c, cfg, (struct mo_config_input){.only_home = true}, &rep,
                   e) == 0)
        return 0;
    return open_input(c, cfg, (struct mo_config_input){.no_files = true}, &rep,
                      e);
}

/* On the heap: a frame of this size would stay in memory as long as the
 * program runs. */
static int note_untrusted(const struct mo_cli *c, const struct mo_config *now,
                          const struct mo_config_report *rep, struct mo_err *e)
{
    struct mo_cmd_config *own = mo_new(struct mo_cmd_config);
    int rc = own ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");

    if (rc == 0 && !now)
        rc = mo_cmd_open_own(c, own, e);
    if (rc == 0) {
        now = now ? now : own->now;
        rc = mo_own_user_stay(&own->user, now, e);
    }
    if (rc == 0) {
        mo_own_user_begin(&own->user);
        rc = mo_audit_untrusted_now(now, rep, e);
        mo_own_user_end(&own->user);
    }
    if (own)
        mo_cmd_close(own);
    mo_free(own);
    return rc;
}

/* Writes which files were not used. The command itself was refused, or goes on
 * without them, so a failure only says so. */
static void record_untrusted(const struct mo_cli *c,
                             const struct mo_config *now,
                             const struct mo_config_report *rep)
{
    struct mo_err e = {0};

    if (rep->nuntrusted && note_untrusted(c, now, rep, &e) < 0)
        (void)dprintf(c->err, "this is not in the audit log: %s\n", e.msg);
}

void mo_cmd_close(struct mo_cmd_config *cfg)
{
    if (cfg->now)
        mo_config_close(&cfg->h);
    mo_own_user_close(&cfg->user);
    cfg->now = NULL;
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

/* A state directory that a newer version has changed is left alone, and one
 * that is being restored. Commands about the configuration use none; restore
 * replaces it, state check says it. The lock is held until the process ends. */
static int check_state(const struct mo_cli *c, const struct mo_cmd_config *cfg)
{
    const char *dir = cfg->now->store.dir;
    struct mo_err e = {0};
    int lock;

    if (mo_span_starts(mo_span_cstr(c->cmd->name), MO_SPAN("config ")) ||
        c->cmd->run == mo_run_restore || c->cmd->run == mo_run_state_check)
        return 0;
    if (mo_state_use(dir, false, &lock, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (mo_state_record_check(dir, &e) == 0)
        return 0;
    return mo_cli_error(c, MO_EXIT_CONFIG, "%s", e.msg);
}

int mo_cmd_load(const struct mo_cli *c, struct mo_cmd_config *cfg)
{
    struct mo_config_report rep;
    struct mo_err e = {0};
    int rc = mo_cmd_open(c, cfg, &rep, &e);

    if (rc < 0 && rep.errors == 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    mo_cmd_print_report(c, &rep);
    if (rc == 0)
        rc = mo_cmd_change_user(c, cfg);
    else
        rc = MO_EXIT_CONFIG;
    record_untrusted(c, cfg->now, &rep);
    return rc ? rc : check_state(c, cfg);
}

static bool is_one_of(const struct mo_cli *c, mo_cmd_run *const *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (c->cmd->run == v[i])
            return true;
    return false;
}

int mo_cmd_change_user(const struct mo_cli *c, struct mo_cmd_config *cfg)
{
    static mo_cmd_run *const readers[] = {mo_run_config_check,
                                          mo_run_config_show};
    static mo_cmd_run *const editors[] = {
        mo_run_mcp_add,       mo_run_mcp_disable, mo_run_mcp_enable,
        mo_run_mcp_import,    mo_run_mcp_install, mo_run_mcp_remove,
        mo_run_mcp_uninstall, mo_run_mcp_update};
    const struct mo_own_user_opts o = {
        .serves = c->cmd->run == mo_run_serve,
        .keeps_root = is_one_of(c, editors, MO_COUNT(editors)),
    };
    struct mo_config_report *rep = NULL; /* on the heap: see note_untrusted() */
    struct mo_err e = {0};
    int rc;

    if (cfg->h.file.there && is_one_of(c, readers, MO_COUNT(readers)))
        return 0; /* a file of root, and nothing else is read */
    rep = mo_new(struct mo_config_report);
    rc = rep ? mo_own_user_enter(&cfg->user, &cfg->h, &o, rep, &e)
             : mo_fail(&e, MO_ENOMEM, "out of memory");
    cfg->now = cfg->h.now;
    if (rc < 0 && rep)
        mo_cmd_print_report(c, rep);
    mo_free(rep);
    if (rc == 0)
        return 0;
    return mo_cli_error(c, rc == MO_EUNAVAIL ? MO_EXIT_UNAVAIL : MO_EXIT_CONFIG,
                        "%s", e.msg);
}

void mo_cmd_reduce_rights(const struct mo_cmd_config *cfg, struct mo_log *log)
{
    struct mo_err e = cfg->user.rights;

    if (!cfg->user.changed && mo_own_user_reduce(cfg->now, &e) == 0)
        return;
    if (e.code < 0)
        mo_log_err(log, MO_WARN, "rights", &e,
                   "cannot give up rights that are not used");
}

int mo_cmd_print_json(const struct mo_cli *c, const struct mo_buf *b)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf pretty = {.max = MO_CMD_TEXT_MAX};
    struct mo_err e = {0};

    if (mo_buf_err(b))
        pretty.err = mo_buf_err(b);
    else if (mo_json_parse(mo_buf_view(b), 0, &doc, &e) < 0)
        pretty.err = e.code;
    else
        mo_json_pretty(doc.root, &pretty);
    mo_buf_putc(&pretty, '\n');
    return mo_cli_print(c, &pretty);
}

int mo_cmd_print(const struct mo_cli *c, const struct mo_buf *b)
{
    return mo_cli_has(c, "json") ? mo_cmd_print_json(c, b) : mo_cli_print(c, b);
}

void mo_cmd_put_member(struct mo_buf *b, const char *before, struct mo_json v)
{
    if (!v.p)
        return;
    mo_buf_puts(b, before);
    if (mo_json_is(v, MO_JSON_STRING))
        mo_buf_span(b, mo_span(v.p + 1, v.n - 2)); /* stays escaped */
    else
        (void)mo_json_compact(v, b); /* one line */
}
