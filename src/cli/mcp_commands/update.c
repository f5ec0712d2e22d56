/* mcp update - installs another version of an installed server beside the old
 * one, shows the differences, asks, and switches. */
#include <stdio.h>

#include "cli/mcp_commands/install.h"
#include "cli/mcp_commands/mcp.h"
#include "codec/text/visible.h"
#include "connect/server_link.h"

struct update {
    struct mo_cmd_install k;
    struct mo_buf lock;  /* servers.lock.json as it was */
    struct mo_json old;  /* the entry in it */
    char was[PATH_MAX];  /* directory of the old version */
    struct mo_json next; /* the entry of the new version */
};

static void update_fini(struct update *u)
{
    mo_buf_fini(&u->lock);
    mo_cmd_install_fini(&u->k);
}

/* --- the plan ------------------------------------------------------------- */

static int find_old(struct mo_cli *c, struct update *u)
{
    mo_autobuf struct mo_buf source = {.max = 4096};
    struct mo_json servers;
    struct mo_err e = {0};

    if (mo_place_read_lock(u->k.edit.cfg.now, &u->lock, &servers, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    u->old = mo_json_find(servers, mo_span_cstr(c->args[0]));
    if (!u->old.p)
        return mo_cli_error(c, MO_EXIT_CONFIG,
                            "'%.100s' was not installed by `mcp install`",
                            c->args[0]);
    if (!mo_json_get(u->old, "path").p)
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "'%s' has no files here: an image is pinned by its "
                            "digest, a remote server has no version; uninstall "
                            "it and install it again",
                            c->args[0]);
    (void)mo_json_str_buf(mo_json_get(u->old, "source"), &source);
    if (mo_span_starts(mo_buf_view(&source), MO_SPAN("mcpb:")))
        return mo_cli_error(c, MO_EXIT_FAIL,
                            "'%s' is a bundle, which is pinned by its SHA-256: "
                            "uninstall it and install the new one",
                            c->args[0]);
    return 0;
}

/* Without the parts that npm adds or drops. */
static struct mo_span plain_repository(struct mo_span s)
{
    (void)mo_span_strip(&s, MO_SPAN("git+"));
    if (mo_span_ends(s, MO_SPAN(".git")))
        s.n -= 4;
    return s;
}

/* The kind that was installed: the registry may offer others by now. */
static const char *kind_of(const struct update *u)
{
    mo_autobuf struct mo_buf source = {.max = 1000};

    (void)mo_json_str_buf(mo_json_get(u->old, "source"), &source);
    return mo_span_starts(mo_buf_view(&source), MO_SPAN("pypi:")) ? "pypi"
                                                                  : "npm";
}

/* The program that was chosen. npm's is a path, which may change. */
static const char *bin_of(const struct update *u, struct mo_install_plan *p)
{
    struct mo_span bin;

    return strcmp(kind_of(u), "pypi") == 0 &&
                   mo_json_str(mo_json_get(u->old, "bin"), &p->a, &bin) == 0
               ? mo_arena_strndup(&p->a, bin.p, bin.n)
               : NULL;
}

static int make_plan(struct mo_cli *c, struct update *u, struct mo_err *e)
{
    struct mo_install_plan *p = &u->k.plan;
    struct mo_json name = mo_json_get(u->old, "registry");
    const char *to = mo_cli_get(c, "to");
    mo_autobuf struct mo_buf word = {.max = 1000}, where = {.max = 1000};
    int rc;

    (void)mo_json_str_buf(name.p ? name : mo_json_get(u->old, "source"), &word);
    if (to)
        mo_buf_printf(&word, "@%s", to);
    rc = mo_install_plan_word(p, mo_buf_view(&word), c->args[0], e);
    if (rc == 0)
        rc = mo_cmd_install_ask(c, &u->k, kind_of(u), bin_of(u, p), e);
    if (rc < 0)
        return rc;
    p->missing = NULL; /* given when it was installed */
    mo_install_plan_propose(p);
    (void)mo_json_str_buf(mo_json_get(u->old, "repository"), &where);
    if (where.len &&
        !mo_span_ieq(plain_repository(mo_buf_view(&where)),
                     plain_repository(mo_span_cstr(p->repository))))
        mo_install_plan_warn(p, "the repository changed from %.150s to %.150s",
                             mo_buf_cstr(&where),
                             p->repository ? p->repository : "none");
    return 0;
}

static bool is_same(const struct update *u)
{
    return mo_json_str_eq(mo_json_get(u->old, "version"),
                          mo_span_cstr(u->k.plan.version)) &&
           mo_json_str_eq(mo_json_get(u->old, "integrity"),
                          mo_span_cstr(u->k.plan.integrity));
}

/* --- differences ---------------------------------------------------------- */

static bool differ(struct mo_json a, struct mo_json b)
{
    mo_autobuf struct mo_buf x = {.max = MO_PLACE_LOCK_MAX};
    mo_autobuf struct mo_buf y = {.max = MO_PLACE_LOCK_MAX};

    if (a.p)
        (void)mo_json_compact(a, &x);
    if (b.p)
        (void)mo_json_compact(b, &y);
    return !mo_span_eq(mo_buf_view(&x), mo_buf_view(&y));
}

static void say_value(struct mo_buf *b, struct mo_json v)
{
    mo_autobuf struct mo_buf text = {.max = MO_CMD_TEXT_MAX};

    if (mo_json_is(v, MO_JSON_STRING)) {
        mo_cmd_put_name(b, v);
        return;
    }
    if (v.p)
        (void)mo_json_compact(v, &text);
    mo_buf_span(b, text.len ? mo_buf_view(&text) : MO_SPAN("none"));
}

static void say_package(struct mo_buf *b, struct mo_json key,
                        struct mo_json was, struct mo_json now)
{
    struct mo_json v1 = mo_json_get(was, "version");
    struct mo_json v2 = mo_json_get(now, "version");

    if (!differ(was, now))
        return;
    mo_buf_puts(b, !was.p ? "  + " : !now.p ? "  - " : "  ~ ");
    mo_cmd_put_name(b, key);
    mo_buf_putc(b, ' ');
    if (was.p)
        mo_cmd_put_name(b, v1);
    if (was.p && now.p && !differ(v1, v2))
        mo_buf_puts(b, ", the same version with another content");
    else if (was.p && now.p)
        mo_buf_puts(b, " -> ");
    if (now.p && differ(v1, v2))
        mo_cmd_put_name(b, v2);
    mo_buf_putc(b, '\n');
}

static void say_packages(struct mo_buf *b, struct mo_json was,
                         struct mo_json now)
{
    mo_buf_printf(b, "  packages     %zu -> %zu\n", mo_json_len(was),
                  mo_json_len(now));
    mo_json_each (it, was) {
        mo_autobuf struct mo_buf key = {.max = 4096};

        (void)mo_json_str_buf(it.key, &key);
        say_package(b, it.key, it.val, mo_json_find(now, mo_buf_view(&key)));
    }
    mo_json_each (it, now) {
        mo_autobuf struct mo_buf key = {.max = 4096};

        (void)mo_json_str_buf(it.key, &key);
        if (!mo_json_find(was, mo_buf_view(&key)).p)
            say_package(b, it.key, (struct mo_json){NULL, 0}, it.val);
    }
}

static void say_line(struct mo_buf *b, const char *label, const char *text)
{
    mo_buf_printf(b, "  %-12s ", label);
    mo_visible_name(b, mo_span_cstr(text));
    mo_buf_putc(b, '\n');
}

static const char *const compared[] = {
    "version", "integrity", "repository", "bin", "args", "variables", "hosts"};

static void put_text(struct update *u, struct mo_buf *b)
{
    const struct mo_install_plan *p = &u->k.plan;

    mo_buf_printf(b, "update %s:\n", p->name);
    for (size_t i = 0; i < MO_COUNT(compared); i++) {
        struct mo_json was = mo_json_get(u->old, compared[i]);
        struct mo_json now = mo_json_get(u->next, compared[i]);

        if (!differ(was, now))
            continue;
        mo_buf_printf(b, "  %-12s ", compared[i]);
        say_value(b, was);
        mo_buf_puts(b, " -> ");
        say_value(b, now);
        mo_buf_putc(b, '\n');
    }
    say_packages(b, mo_json_get(u->old, "packages"),
                 mo_json_get(u->next, "packages"));
    if (u->k.done.scripts.len)
        say_line(b, "scripts of", mo_buf_cstr(&u->k.done.scripts));
    for (size_t i = 0; i < p->nnotes; i++)
        say_line(b, "note", p->notes[i]);
    for (size_t i = 0; i < p->nwarnings; i++)
        say_line(b, "WARNING", p->warnings[i]);
}

static void put_json(const struct update *u, bool updated, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_key(&w, "plan");
    mo_install_plan_json(&u->k.plan, &w);
    mo_jw_member_raw(&w, "from", mo_json_text(u->old));
    mo_jw_member_raw(&w, "to", mo_json_text(u->next));
    mo_jw_member_bool(&w, "updated", updated);
    mo_jw_end(&w);
}

static int print(struct mo_cli *c, struct update *u, bool updated)
{
    mo_autobuf struct mo_buf b = {.max = MO_PLACE_LOCK_MAX};

    if (mo_cli_has(c, "json"))
        put_json(u, updated, &b);
    else
        put_text(u, &b);
    return mo_cmd_print(c, &b);
}

/* --- switching ------------------------------------------------------------ */

/* Arguments that the old registry entry had fixed, at the start of args. */
static size_t count_fixed(const struct update *u,
                          const struct mo_config_list *args, size_t from)
{
    size_t n = 0;

    mo_json_each (it, mo_json_get(u->old, "args")) {
        if (from + n >= args->n ||
            !mo_json_str_eq(it.val, mo_span_cstr(args->v[from + n])))
            return 0; /* the person changed them */
        n++;
    }
    return n;
}

/* The arguments of the entry with the new program and the new fixed
 * arguments. False: the entry does not use the installed files. */
static bool put_args(const struct update *u, const struct mo_config_mcp *s,
                     struct mo_buf *b)
{
    const struct mo_install_plan *p = &u->k.plan;
    struct mo_jw w = mo_jw_array(b);
    bool found = false;

    for (size_t i = 0; i < s->args.n; i++) {
        mo_autobuf struct mo_buf path = {.max = 8192};

        if (found ||
            !mo_span_starts(mo_span_cstr(s->args.v[i]), mo_span_cstr(u->was))) {
            mo_jw_cstr(&w, s->args.v[i]);
            continue;
        }
        found = true;
        mo_install_plan_program(p, u->k.done.path, &path);
        mo_jw_buf(&w, &path);
        if (mo_json_len(mo_json_get(u->old, "args")) == 0 ||
            count_fixed(u, &s->args, i + 1)) {
            for (size_t k = 0; k < p->nfixed; k++)
                mo_jw_cstr(&w, p->args[k]);
            i += count_fixed(u, &s->args, i + 1);
        }
    }
    mo_jw_end(&w);
    return found;
}

static int switch_entry(struct mo_cli *c, struct update *u)
{
    const char *path[] = {"mcpServers", c->args[0], "args", NULL};
    struct mo_cmd_edit *m = &u->k.edit;
    const struct mo_config_mcp *s;
    int rc = mo_cmd_edit_open(c, m);

    if (rc)
        return rc;
    m->server = c->args[0];
    m->is_recorded = true;
    s = mo_server_link_find(m->cfg.now, mo_span_cstr(m->server));
    if (!s || !put_args(u, s, &u->k.entry))
        rc = mo_cli_error(c, MO_EXIT_CONFIG,
                          "the configuration does not start '%s' from %s; "
                          "uninstall it and install it again",
                          m->server, u->was);
    if (rc == 0)
        rc = mo_cmd_edit_change(c, m, path, mo_buf_view(&u->k.entry), NULL);
    mo_file_edit_close(&m->file);
    return rc;
}

static int apply(struct mo_cli *c, struct update *u)
{
    struct mo_cmd_install *k = &u->k;
    struct mo_err e = {0};
    int rc = mo_cmd_install_record(c, k, &e);

    if (rc == 0)
        rc = mo_cmd_install_pin(k, mo_buf_view(&k->done.lock), &e);
    if (rc < 0)
        return mo_cmd_install_fail(c, &e);
    rc = switch_entry(c, u);
    if (rc)
        (void)mo_cmd_install_pin(k, mo_json_text(u->old), NULL);
    return rc;
}

/* Downloads the new version; keeps it if the person agrees. */
static int update(struct mo_cli *c, struct update *u)
{
    struct mo_cmd_install *k = &u->k;
    bool json = mo_cli_has(c, "json"), updated = false;
    mo_autobuf struct mo_buf old = {.max = PATH_MAX};
    struct mo_err e = {0};
    int rc = mo_cmd_install_fetch(c, k, &e);

    if (rc < 0)
        return mo_cmd_install_fail(c, &e);
    u->next = (struct mo_json){k->done.lock.p, k->done.lock.len};
    (void)mo_json_str_buf(mo_json_get(u->old, "path"), &old);
    (void)snprintf(u->was, sizeof(u->was), "%.*s/%s", (int)(PATH_MAX / 2),
                   k->place.dir, mo_buf_cstr(&old));
    rc = json ? 0 : print(c, u, false);
    if (rc == 0 && !mo_cli_has(c, "dry-run")) {
        rc = mo_cmd_install_agree(c, k, "Update it?");
        if (rc == 0)
            rc = apply(c, u);
        updated = rc == 0;
    }
    mo_cmd_install_begin(k);
    (void)mo_place_remove(&k->place, c->args[0],
                          updated ? k->done.path : u->was, NULL);
    mo_cmd_install_end(k);
    if (rc == 0 && json)
        rc = print(c, u, updated);
    if (updated && !json)
        (void)dprintf(c->out, "updated '%s'\n", c->args[0]);
    return rc;
}

int mo_run_mcp_update(struct mo_cli *c)
{
    MO_CLEANUP(update_fini)
    struct update u = {.k = MO_CMD_INSTALL, .lock.max = MO_PLACE_LOCK_MAX};
    struct mo_err e = {0};
    int rc = mo_cmd_install_load(c, &u.k);

    if (rc == 0)
        rc = find_old(c, &u);
    if (rc)
        return rc;
    if (make_plan(c, &u, &e) < 0)
        return mo_cmd_install_fail(c, &e);
    if (!is_same(&u))
        return update(c, &u);
    if (mo_cli_has(c, "json"))
        return print(c, &u, false);
    (void)dprintf(c->out, "'%s' is up to date: %s\n", c->args[0],
                  u.k.plan.version);
    return 0;
}
