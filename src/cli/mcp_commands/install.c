/* mcp install - shows what the installation of a server means, asks, and does
 * it. */
#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/doctor/doctor.h"
#include "cli/mcp_commands/install.h"
#include "cli/mcp_commands/mcp.h"
#include "connect/server_link.h"
#include "install/registry.h"

void mo_cmd_install_fini(struct mo_cmd_install *k)
{
    mo_bundle_close(&k->bundle);
    mo_runner_close(&k->run);
    mo_place_close(&k->place);
    mo_installed_fini(&k->done);
    mo_buf_fini(&k->entry);
    mo_install_plan_fini(&k->plan);
    mo_cmd_edit_close(&k->edit);
}

/* --- whose files -----------------------------------------------------------
 */

int mo_cmd_install_load(struct mo_cli *c, struct mo_cmd_install *k)
{
    struct mo_own_user *u = &k->edit.cfg.user;
    struct mo_err e = {0};
    int rc = mo_cmd_load(c, &k->edit.cfg);

    if (rc || !u->stays_root || u->uid == 0)
        return rc;
    if (mo_own_user_stay(u, k->edit.cfg.now, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    k->run.user = (struct mo_run_user){u->uid, u->gid, u->home};
    k->as_owner = !mo_place_is_roots(k->edit.cfg.now);
    return 0;
}

void mo_cmd_install_begin(const struct mo_cmd_install *k)
{
    if (k->as_owner)
        mo_own_user_begin(&k->edit.cfg.user);
}

void mo_cmd_install_end(const struct mo_cmd_install *k)
{
    if (k->as_owner)
        mo_own_user_end(&k->edit.cfg.user);
}

int mo_cmd_install_fail(const struct mo_cli *c, const struct mo_err *e)
{
    int code = e->code == MO_EINVAL ? MO_EXIT_USAGE
               : e->code == MO_EUNAVAIL || e->code == MO_ENOTFOUND
                   ? MO_EXIT_UNAVAIL
                   : MO_EXIT_FAIL;

    return mo_cli_error(c, code, "%s", e->msg);
}

/* --- the plan ------------------------------------------------------------- */

static int ask_registry(struct mo_cmd_install *k, const char *kind,
                        struct mo_err *e)
{
    struct mo_install_plan *p = &k->plan;
    mo_autobuf struct mo_buf b = {.max = MO_REGISTRY_ANSWER_MAX};
    struct mo_json row;
    int rc;

    mo_own_user_begin(&k->edit.cfg.user);
    rc = mo_registry_get(k->edit.cfg.now, mo_span_cstr(p->registry),
                         mo_span_cstr(p->version), &b, e);
    mo_own_user_end(&k->edit.cfg.user);
    if (rc < 0)
        return rc;
    row = (struct mo_json){b.p, b.len};
    if (mo_json_str_eq(mo_registry_status(row), MO_SPAN("deleted")))
        return mo_fail(e, MO_EPOLICY, "%s was deleted from the registry",
                       p->registry);
    if (mo_json_str_eq(mo_registry_status(row), MO_SPAN("deprecated")))
        mo_install_plan_note(p, "deprecated in the registry");
    p->version = NULL;
    rc = mo_install_plan_server(p, mo_json_get(row, "server"), kind, e);
    return rc < 0 ? mo_wrap(e, "%s", p->registry) : 0;
}

static int ask_npm(struct mo_cmd_install *k, const char *bin, struct mo_err *e)
{
    struct mo_install_plan *p = &k->plan;
    mo_autobuf struct mo_buf b = {.max = MO_NPM_TEXT_MAX};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc;

    mo_own_user_begin(&k->edit.cfg.user); /* who must be able to run them */
    rc = mo_npm_open(&k->npm, &k->run, e);
    mo_own_user_end(&k->edit.cfg.user);
    if (rc == 0)
        rc = mo_npm_view(&k->npm, mo_span_cstr(p->package),
                         mo_span_cstr(p->version ? p->version : "latest"), &b,
                         e);
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(&b), 0, &doc, e);
    return rc < 0 ? rc : mo_install_plan_npm(p, doc.root, bin, e);
}

static int open_python(struct mo_cmd_install *k, bool needs_pip,
                       struct mo_err *e)
{
    int rc;

    mo_own_user_begin(&k->edit.cfg.user); /* who must be able to run it */
    rc = mo_pip_open(&k->pip, &k->run, !k->plan.is_unboxed, needs_pip, e);
    mo_own_user_end(&k->edit.cfg.user);
    return rc;
}

static int ask_pip(struct mo_cmd_install *k, const char *bin, struct mo_err *e)
{
    struct mo_install_plan *p = &k->plan;
    mo_autobuf struct mo_buf b = {.max = MO_PIP_TEXT_MAX};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc = open_python(k, true, e);

    if (rc == 0)
        rc = mo_pip_resolve(&k->pip, mo_span_cstr(p->package),
                            mo_span_cstr(p->version), &b, e);
    if (rc == 0 && mo_json_parse(mo_buf_view(&b), 0, &doc, e) < 0)
        rc = mo_fail(e, MO_EPROTO, "pip's report is not usable");
    return rc < 0 ? rc : mo_install_plan_pypi(p, doc.root, bin, e);
}

/* Its variables are in the bundle, so it is downloaded before the plan is
 * shown. */
static int ask_bundle(struct mo_cli *c, struct mo_cmd_install *k,
                      struct mo_err *e)
{
    struct mo_install_plan *p = &k->plan;
    mo_autobuf struct mo_buf b = {.max = MO_BUNDLE_MANIFEST};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc;

    (void)dprintf(c->err, "downloading %s\n", p->package);
    mo_own_user_begin(&k->edit.cfg.user);
    rc = mo_bundle_fetch(&k->bundle, &k->run, p->package, p->sha256, e);
    mo_own_user_end(&k->edit.cfg.user);
    if (rc == 0)
        rc = mo_bundle_manifest(&k->bundle, &b, e);
    if (rc == 0 && mo_json_parse(mo_buf_view(&b), 32, &doc, e) < 0)
        rc = mo_fail(e, MO_EPROTO, "its manifest is no valid JSON");
    if (rc == 0)
        rc = mo_install_plan_mcpb(p, doc.root, e);
    if (rc == 0 && p->runtime == MO_INSTALL_NODE)
        rc = mo_npm_open_node(&k->npm, &k->run, e);
    if (rc == 0 && p->runtime == MO_INSTALL_PYTHON)
        rc = open_python(k, false, e);
    return rc;
}

const char *mo_cmd_install_runtime(const struct mo_cmd_install *k)
{
    return k->plan.runtime == MO_INSTALL_PYTHON ? k->pip.python
           : k->plan.runtime == MO_INSTALL_NODE ? k->npm.node
                                                : "";
}

int mo_cmd_install_ask(struct mo_cli *c, struct mo_cmd_install *k,
                       const char *kind, const char *bin, struct mo_err *e)
{
    int rc = k->plan.registry ? ask_registry(k, kind, e) : 0;

    if (rc == 0 && mo_install_plan_has_files(&k->plan))
        rc = mo_runner_open(&k->run, k->edit.cfg.now, c->err, e);
    if (rc == 0 && k->plan.kind == MO_INSTALL_NPM)
        rc = ask_npm(k, bin, e);
    if (rc == 0 && k->plan.kind == MO_INSTALL_PYPI)
        rc = ask_pip(k, bin, e);
    if (rc == 0 && k->plan.kind == MO_INSTALL_MCPB)
        rc = ask_bundle(c, k, e);
    if (rc == 0)
        mo_install_plan_judge(&k->plan);
    return rc;
}

/* --allow-host; `none` means that the proposed ones are not agreed to. */
static int take_hosts(struct mo_cli *c, struct mo_cmd_install *k)
{
    bool none = false;
    struct mo_err e = {0};

    for (size_t i = 0; i < c->ngot; i++) {
        if (strcmp(c->got[i].opt->name, "allow-host") != 0)
            continue;
        if (!mo_install_plan_has_files(&k->plan) || k->plan.is_unboxed)
            return mo_cli_error(c, MO_EXIT_USAGE,
                                "--allow-host is for packages in a box");
        if (strcmp(c->got[i].value, "none") == 0)
            none = true;
        else if (mo_install_plan_host(&k->plan, c->got[i].value, &e) < 0)
            return mo_cli_error(c, MO_EXIT_USAGE, "--allow-host: %s", e.msg);
    }
    if (!none)
        mo_install_plan_propose(&k->plan);
    return 0;
}

/* Variables and arguments of the command line. 0, or an exit code. */
static int take_given(struct mo_cli *c, struct mo_cmd_install *k)
{
    struct mo_err e = {0};

    for (size_t i = 0; i < c->ngot; i++) {
        struct mo_span name, value;
        int rc;

        if (strcmp(c->got[i].opt->name, "env") != 0)
            continue;
        rc = mo_cmd_pair(c, "env", c->got[i].value, '=', &name, &value);
        if (rc)
            return rc;
        if (mo_install_plan_set(&k->plan, name, value, &e) < 0)
            return mo_cmd_install_fail(c, &e);
    }
    for (size_t i = 1; i < c->nargs; i++) {
        k->plan.missing = NULL;
        if (mo_install_plan_arg(&k->plan, c->args[i], &e) < 0)
            return mo_cmd_install_fail(c, &e);
    }
    return take_hosts(c, k);
}

/* Says in advance that a box cannot start for this user. */
static void note_boxes(struct mo_cmd_install *k)
{
    static void (*const checks[])(const struct mo_doctor *d,
                                  struct mo_finding *f) = {mo_check_cgroup,
                                                           mo_check_userns};
    static const char *const names[] = {"control groups", "user namespaces"};
    const struct mo_doctor d = {.cfg = k->edit.cfg.now};

    if (!mo_install_plan_has_files(&k->plan) || k->plan.is_unboxed)
        return;
    for (size_t i = 0; i < MO_COUNT(checks); i++) {
        struct mo_finding f = {.health = MO_HEALTH_OK};

        checks[i](&d, &f);
        if (f.health != MO_HEALTH_OK)
            mo_install_plan_note(&k->plan,
                                 "a box cannot start for this user (%s: "
                                 "%.120s): %.180s",
                                 names[i], f.text, f.todo);
    }
}

static int name_is_taken(struct mo_cli *c, const struct mo_config *cfg,
                         const char *name)
{
    if (!mo_server_link_find(cfg, mo_span_cstr(name)))
        return 0;
    return mo_cli_error(c, MO_EXIT_FAIL,
                        "there is a server '%s' already: give the new one "
                        "another name with --name",
                        name);
}

static int make_plan(struct mo_cli *c, struct mo_cmd_install *k)
{
    struct mo_err e = {0};
    int rc = mo_install_plan_word(&k->plan, mo_span_cstr(c->args[0]),
                                  mo_cli_get(c, "name"), &e);

    k->plan.is_unboxed = mo_cli_has(c, "unboxed");
    if (rc == 0 && name_is_taken(c, k->edit.cfg.now, k->plan.name))
        return MO_EXIT_FAIL;
    if (rc == 0)
        rc = mo_cmd_install_ask(c, k, mo_cli_get(c, "kind"),
                                mo_cli_get(c, "bin"), &e);
    if (rc == 0)
        note_boxes(k);
    return rc < 0 ? mo_cmd_install_fail(c, &e) : take_given(c, k);
}

/* --- the person's yes ----------------------------------------------------- */

/* Ctrl-C is a no: while npm may run, it does not end the process. */
static bool ask_person(struct mo_cli *c, const struct mo_cmd_install *k,
                       const char *question)
{
    struct pollfd p[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                         {.fd = k->run.signals, .events = POLLIN}};
    char answer[64];
    ssize_t n;

    (void)dprintf(c->err, "%s%s [y/N] ",
                  k->plan.nwarnings ? "There is a warning. " : "", question);
    if (poll(p, MO_COUNT(p), -1) < 0 || p[1].revents)
        return false;
    n = read(STDIN_FILENO, answer, sizeof(answer));
    return n > 0 && (answer[0] == 'y' || answer[0] == 'Y');
}

int mo_cmd_install_agree(struct mo_cli *c, const struct mo_cmd_install *k,
                         const char *question)
{
    bool tty = isatty(STDIN_FILENO) == 1;

    if (k->plan.nwarnings && !mo_cli_has(c, "accept-warnings") &&
        (mo_cli_has(c, "yes") || !tty))
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "nothing was changed, because of the warning: %s; "
                            "--accept-warnings goes on anyway",
                            k->plan.warnings[0]);
    if (mo_cli_has(c, "yes"))
        return 0;
    if (!tty)
        return mo_cli_error(
            c, MO_EXIT_FAIL,
            "nothing was changed: nobody can be asked here; --yes "
            "agrees to the plan, --dry-run only prints it");
    return ask_person(c, k, question)
               ? 0
               : mo_cli_error(c, MO_EXIT_FAIL, "nothing was changed");
}

/* --- the installation ----------------------------------------------------- */

int mo_cmd_install_record(const struct mo_cli *c,
                          const struct mo_cmd_install *k, struct mo_err *e)
{
    const struct mo_install_plan *p = &k->plan;
    mo_autobuf struct mo_buf b = {.max = MO_CMD_ENTRY_MAX},
                             source = {.max = 1000};
    struct mo_jw w = mo_jw_object(&b);
    int rc;

    mo_install_plan_source(p, &source);
    mo_jw_member(&w, "source", mo_buf_view(&source));
    mo_jw_member_opt(&w, "registry", mo_span_cstr(p->registry));
    mo_jw_member_opt(&w, "version", mo_span_cstr(p->version));
    mo_jw_member_opt(&w, "integrity", mo_span_cstr(p->integrity));
    mo_jw_end(&w);
    mo_own_user_begin(&k->edit.cfg.user);
    rc = mo_cmd_record_entry(c, k->edit.cfg.now, p->name, mo_buf_view(&b), e);
    mo_own_user_end(&k->edit.cfg.user);
    return rc;
}

int mo_cmd_install_pin(struct mo_cmd_install *k, struct mo_span json,
                       struct mo_err *e)
{
    int rc;

    mo_cmd_install_begin(k);
    rc = mo_place_pin(&k->place, k->plan.name, json, e);
    mo_cmd_install_end(k);
    return rc;
}

static void undo(struct mo_cmd_install *k)
{
    (void)mo_cmd_install_pin(k, mo_span(NULL, 0), NULL);
    mo_cmd_install_begin(k);
    (void)mo_place_remove(&k->place, k->plan.name, NULL, NULL);
    mo_cmd_install_end(k);
}

static int save_entry(struct mo_cli *c, struct mo_cmd_install *k)
{
    const char *path[] = {"mcpServers", k->plan.name, NULL};
    struct mo_cmd_edit *m = &k->edit;
    int rc = mo_cmd_edit_open(c, m);

    m->server = k->plan.name;
    m->is_recorded = true;
    if (rc == 0)
        rc = name_is_taken(c, m->cfg.now, k->plan.name);
    if (rc == 0)
        rc = mo_cmd_edit_change(c, m, path, mo_buf_view(&k->entry), NULL);
    mo_file_edit_close(&m->file);
    return rc;
}

int mo_cmd_install_fetch(struct mo_cli *c, struct mo_cmd_install *k,
                         struct mo_err *e)
{
    const struct mo_install_plan *p = &k->plan;
    const struct mo_place_tools tools = {&k->run, &k->npm, &k->pip, &k->bundle};
    int rc;

    mo_cmd_install_begin(k);
    rc = mo_place_open(&k->place, k->edit.cfg.now, e);
    if (rc == 0 && mo_install_plan_has_files(p)) {
        if (p->kind != MO_INSTALL_MCPB)
            (void)dprintf(c->err, "%s downloads %s %s\n",
                          p->kind == MO_INSTALL_PYPI ? "pip" : "npm",
                          p->package, p->version);
        rc = mo_place_add(&k->place, &tools, p, mo_cli_has(c, "allow-scripts"),
                          &k->done, e);
    } else if (rc == 0) {
        mo_place_describe(p, &k->done);
    }
    mo_cmd_install_end(k);
    return rc;
}

/* 0, or an exit code. On failure nothing stays. */
static int install(struct mo_cli *c, struct mo_cmd_install *k)
{
    struct mo_err e = {0};
    int rc = mo_cmd_install_record(c, k, &e);

    if (rc == 0)
        rc = mo_cmd_install_fetch(c, k, &e);
    if (rc < 0)
        return mo_cmd_install_fail(c, &e);
    mo_install_plan_entry(&k->plan, mo_cmd_install_runtime(k), k->done.path,
                          &k->entry);
    rc = mo_cmd_install_pin(k, mo_buf_view(&k->done.lock), &e);
    rc = rc < 0 ? mo_cmd_install_fail(c, &e) : save_entry(c, k);
    if (rc)
        undo(k);
    return rc;
}

/* --- output --------------------------------------------------------------- */

/* problem: why it cannot be installed yet, or NULL. */
static int print_json(struct mo_cli *c, const struct mo_cmd_install *k,
                      bool installed, const char *problem)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);
    char digest[65];

    mo_install_plan_digest(&k->plan, digest);
    mo_jw_key(&w, "plan");
    mo_install_plan_json(&k->plan, &w);
    mo_jw_member_cstr(&w, "agreed", digest);
    mo_jw_member_opt(&w, "problem", mo_span_cstr(problem));
    mo_jw_member_bool(&w, "installed", installed);
    if (installed && k->done.path[0]) {
        mo_jw_member_cstr(&w, "path", k->done.path);
        mo_jw_member_cstr(&w, "digest", k->done.tree.digest);
        mo_jw_member_u64(&w, "bytes", k->done.tree.bytes);
        mo_jw_member(&w, "scriptsOf", mo_buf_view(&k->done.scripts));
    }
    if (installed)
        mo_jw_member_raw(&w, "entry", mo_buf_view(&k->entry));
    mo_jw_end(&w);
    return mo_cmd_print_json(c, &b);
}

static int print_plan(struct mo_cli *c, const struct mo_cmd_install *k)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    mo_install_plan_text(&k->plan, mo_cmd_install_runtime(k), &b);
    return mo_cli_print(c, &b);
}

static int print_done(struct mo_cli *c, const struct mo_cmd_install *k)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    const struct mo_install_plan *p = &k->plan;

    mo_buf_printf(&b, "installed '%s'", p->name);
    if (k->done.path[0])
        mo_buf_printf(&b, " in %s (%llu KiB)", k->done.path,
                      (unsigned long long)(k->done.tree.bytes / 1024));
    mo_buf_putc(&b, '\n');
    if (k->done.scripts.len)
        mo_buf_printf(&b, "install scripts %s run: %.*s\n",
                      mo_cli_has(c, "allow-scripts") ? "were" : "were not",
                      (int)k->done.scripts.len, k->done.scripts.p);
    for (size_t i = 0; i < p->nvars; i++) {
        const struct mo_install_var *v = &p->vars[i];

        if (v->secret)
            mo_buf_printf(&b, "set its key: " MO_PROGRAM " secrets set %s\n",
                          v->secret);
        else if (v->is_secret && v->is_required && !v->value)
            mo_buf_printf(&b, "set its key: " MO_PROGRAM " secrets set %s.%s\n",
                          p->name, v->name);
    }
    mo_buf_printf(&b, "try it: " MO_PROGRAM " mcp test %s\n", p->name);
    return mo_cli_print(c, &b);
}

/* --agreed: the plan is still the one that somebody saw. 0, or an exit code. */
static int check_agreed(struct mo_cli *c, const struct mo_cmd_install *k)
{
    const char *agreed = mo_cli_get(c, "agreed");
    char digest[65];

    mo_install_plan_digest(&k->plan, digest);
    if (!agreed || strcmp(agreed, digest) == 0)
        return 0;
    return mo_cli_error(c, MO_EXIT_FAIL,
                        "nothing was changed: the plan is another one now; "
                        "look at it again");
}

int mo_run_mcp_install(struct mo_cli *c)
{
    MO_CLEANUP(mo_cmd_install_fini) struct mo_cmd_install k = MO_CMD_INSTALL;
    bool json = mo_cli_has(c, "json"), dry = mo_cli_has(c, "dry-run");
    struct mo_err e = {0};
    int rc;

    if (c->nargs > 1 && c->dashes != 1)
        return mo_cli_error(c, MO_EXIT_USAGE,
                            "one SERVER; its arguments stand after --");
    rc = mo_cmd_install_load(c, &k);
    if (rc == 0)
        rc = make_plan(c, &k);
    if (rc == 0 && !json)
        rc = print_plan(c, &k);
    if (rc)
        return rc;
    if (mo_install_plan_check(&k.plan, &e) < 0 && !(json && dry))
        return mo_cli_error(c, MO_EXIT_USAGE, "%s", e.msg);
    if (dry)
        return json ? print_json(c, &k, false, e.code ? e.msg : NULL) : 0;
    rc = check_agreed(c, &k);
    if (rc == 0)
        rc = mo_cmd_install_agree(c, &k, "Install it?");
    if (rc == 0)
        rc = install(c, &k);
    if (rc)
        return rc;
    return json ? print_json(c, &k, true, NULL) : print_done(c, &k);
}
