/* connections list, remove - persons' own sign-ins at servers with
 * `credentials: user` (connect/accounts.h).
 *
 * A running server notices a removed connection at the next call of its
 * person. No token is printed. */
#include "base/clock.h"
#include "cli/cmd.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"
#include "connect/accounts.h"
#include "connect/server_link.h"
#include "secrets/key.h"

#define PRINT_DATE 16 /* 2026-11-15T09:20 */
#define REMOVE_MS  40000

/* --- list ----------------------------------------------------------------- */

struct listing {
    struct mo_buf *text;
    struct mo_jw *w; /* NULL: for people */
    size_t n;
};

static int list_one(void *ctx, const struct mo_account_info *i)
{
    struct listing *l = ctx;
    const struct mo_token *k = mo_tokens_at(i->tokens, 0);
    char date[MO_ISO8601_MAX];

    l->n++;
    mo_wall_format(i->since_ms, date);
    if (!l->w) {
        (void)mo_buf_printf(
            l->text, "%-24.*s %-24.*s %.*sZ\n", (int)i->server.n, i->server.p,
            i->person.n ? (int)i->person.n : 10,
            i->person.n ? i->person.p : "(operator)", PRINT_DATE, date);
        return 0;
    }
    mo_jw_obj(l->w);
    mo_jw_member(l->w, "server", i->server);
    mo_jw_member(l->w, "person", i->person);
    mo_jw_member_u64(l->w, "since", i->since_ms);
    if (k)
        mo_jw_member_cstr(l->w, "issuer", k->issuer);
    mo_jw_end(l->w);
    return 0;
}

static int list_all(struct mo_cli *c, const struct mo_config *cfg,
                    const struct mo_secrets *vault)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    bool json = mo_cli_has(c, "json");
    struct mo_jw w = {.b = NULL};
    struct listing l = {&b, json ? &w : NULL, 0};
    unsigned bad = 0;
    struct mo_err e = {0};

    if (json) {
        w = mo_jw_object(&b);
        mo_jw_member_arr(&w, "connections");
    }
    if (mo_accounts_each(cfg, vault, list_one, &l, &bad, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    if (json)
        mo_jw_end_all(&w);
    else if (l.n == 0)
        (void)mo_buf_puts(&b, "nobody is connected\n");
    if (bad && !json)
        (void)mo_buf_printf(&b,
                            "%u cannot be read: damaged, or sealed with "
                            "another key\n",
                            bad);
    return mo_cmd_print(c, &b);
}

int mo_run_connections_list(struct mo_cli *c)
{
    mo_autoconfig struct mo_cmd_config cfg = {.now = NULL};
    struct mo_secrets *vault = NULL;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &cfg);

    if (rc)
        return rc;
    if (mo_secrets_for(cfg.now, true, &vault, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    rc = list_all(c, cfg.now, vault);
    mo_secrets_close(vault);
    return rc;
}

/* --- remove --------------------------------------------------------------- */

struct removal {
    struct mo_cmd_runtime m;
    struct mo_server_link *link;
    bool done;
    struct mo_err why; /* why the issuer was not told */
};

static void on_removed(void *ctx, const char *text, const struct mo_err *why)
{
    struct removal *r = ctx;

    (void)text;
    r->done = true;
    if (why)
        r->why = *why;
}

static bool is_done(void *ctx)
{
    return ((struct removal *)ctx)->done;
}

static void end_removal(struct removal *r)
{
    if (r->link) {
        mo_server_link_close(r->link, mo_cmd_runtime_done, &r->m);
        mo_cmd_runtime_wait(&r->m);
    }
    mo_cmd_runtime_close(&r->m);
}

/* The row is on the disk before the tokens go. */
static int audit_removal(struct mo_cli *c, struct removal *r,
                         const char *person)
{
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("account"),
        .server = mo_span_cstr(c->args[0]),
        .outcome = "disconnected",
        .via = "command",
        .who = mo_span_cstr(person),
    };
    struct mo_err e = {0};

    if (mo_audit_first_now(r->m.cfg.now, &row, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    return 0;
}

int mo_run_connections_remove(struct mo_cli *c)
{
    MO_CLEANUP(end_removal) struct removal r = {.link = NULL};
    const char *person = mo_cli_get(c, "person");
    struct mo_accounts *all = NULL;
    struct mo_err e = {0};
    int rc = mo_cmd_runtime_load(c, &r.m);

    if (rc)
        return rc;
    person = person ? person : "";
    r.m.log.level = MO_ERROR;
    if (!mo_account_exists(r.m.cfg.now, mo_span_cstr(c->args[0]),
                           mo_span_cstr(person)))
        return mo_cli_error(c, MO_EXIT_FAIL, "%s is not connected to %s",
                            *person ? person : "the operator", c->args[0]);
    rc = audit_removal(c, &r, person);
    if (rc)
        return rc;
    if (mo_server_link_new(r.m.loop, r.m.cfg.now, &r.link, &e) == 0)
        all = mo_server_link_accounts(r.link, &e);
    if (!all ||
        mo_accounts_remove(all, c->args[0], person, on_removed, &r, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    (void)mo_loop_until(r.m.loop, is_done, &r, REMOVE_MS);
    if (r.why.code)
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "the tokens are removed here, but the issuer may "
                            "still accept them: %s",
                            r.why.msg);
    return MO_EXIT_OK;
}
