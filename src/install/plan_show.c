/* plan_show.c - warnings, entry, text and JSON of a plan; see plan.h. */
#include <stdio.h>

#include "codec/http/url.h"
#include "codec/ip.h"
#include "codec/sha256.h"
#include "codec/text/visible.h"
#include "egress/policy.h"
#include "install/plan.h"
#include "install/squat.h"

static const char *const kinds[] = {"npm", "pypi", "mcpb", "oci", "remote"};

bool mo_install_plan_has_files(const struct mo_install_plan *p)
{
    return p->kind == MO_INSTALL_NPM || p->kind == MO_INSTALL_PYPI ||
           p->kind == MO_INSTALL_MCPB;
}

void mo_install_plan_judge(struct mo_install_plan *p)
{
    const char *like = p->kind == MO_INSTALL_NPM || p->kind == MO_INSTALL_PYPI
                           ? mo_squat_resembles(mo_span_cstr(p->package),
                                                p->kind == MO_INSTALL_PYPI)
                           : NULL;

    if (like)
        mo_install_plan_warn(p,
                             "the name resembles the well-known %s, and is "
                             "another package",
                             like);
    if (!p->registry)
        return;
    if (!mo_squat_is_owner(mo_span_cstr(p->registry),
                           mo_span_cstr(p->repository)))
        mo_install_plan_warn(p,
                             "the registry name says it is of another GitHub "
                             "owner than its repository %.200s",
                             p->repository ? p->repository : "(none)");
    if (mo_install_plan_has_files(p) && p->kind != MO_INSTALL_MCPB &&
        (!p->mcp_name || strcmp(p->mcp_name, p->registry) != 0))
        mo_install_plan_warn(p,
                             "the package does not confirm the registry name: "
                             "its %s is %.200s",
                             p->kind == MO_INSTALL_PYPI ? "mcp-name"
                                                        : "mcpName",
                             p->mcp_name ? p->mcp_name : "missing");
}

void mo_install_plan_source(const struct mo_install_plan *p, struct mo_buf *b)
{
    if (p->kind != MO_INSTALL_REMOTE)
        mo_buf_printf(b, "%s:", kinds[p->kind]);
    mo_buf_puts(b, p->package);
}

/* --- hosts ---------------------------------------------------------------- */

int mo_install_plan_host(struct mo_install_plan *p, const char *host,
                         struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = 4096};
    struct mo_egress_policy *policy = NULL;
    struct mo_jw w = mo_jw_object(&b);
    int rc;

    mo_jw_member_arr(&w, "allow");
    mo_jw_cstr(&w, host);
    mo_jw_end_all(&w);
    rc = mo_egress_policy_read(mo_buf_view(&b), &policy, e);
    mo_egress_policy_free(policy);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < p->nhosts; i++)
        if (strcmp(p->hosts[i], host) == 0)
            return 0;
    if (p->nhosts == MO_INSTALL_HOSTS_MAX)
        return mo_fail(e, MO_ETOOBIG, "more than %d hosts",
                       MO_INSTALL_HOSTS_MAX);
    p->hosts[p->nhosts++] = host;
    return 0;
}

static void propose(struct mo_install_plan *p, const char *value)
{
    struct mo_span v = mo_span_cstr(value);
    struct mo_ip ip;
    struct mo_url u;
    char text[300];
    const char *host;
    int n;

    if (!value || mo_url_parse(v, &u, NULL) < 0 || u.host.n == 0 ||
        u.host.n > 253 || mo_ip_parse(u.host, &ip) ||
        !mo_span_only(u.host, MO_ALNUM "-."))
        return;
    n = snprintf(text, sizeof(text), "%.*s:%u", (int)u.host.n, u.host.p,
                 (unsigned)u.port);
    host = n > 0 && u.port ? mo_arena_strndup(&p->a, text, (size_t)n) : NULL;
    if (host)
        (void)mo_install_plan_host(p, host, NULL);
}

void mo_install_plan_propose(struct mo_install_plan *p)
{
    if (!mo_install_plan_has_files(p) || p->nhosts || p->is_unboxed)
        return;
    for (size_t i = 0; i < p->nvars; i++)
        propose(p, p->vars[i].value);
    for (size_t i = 0; i < p->nargs; i++)
        propose(p, p->args[i]);
}

/* --- the entry ------------------------------------------------------------ */

static void put_texts(struct mo_jw *w, const char *key, const char *const *v,
                      size_t n)
{
    mo_jw_member_arr(w, key);
    for (size_t i = 0; i < n; i++)
        mo_jw_cstr(w, v[i]);
    mo_jw_end(w);
}

/* The directory of a bundle is known now. */
static void put_value(struct mo_jw *w, const char *text, const char *dir)
{
    mo_autobuf struct mo_buf b = {.max = 65536};
    struct mo_span rest = mo_span_cstr(text),
                   mark = MO_SPAN(MO_INSTALL_DIRNAME);
    ptrdiff_t at = dir ? mo_span_search(rest, mark) : -1;

    while (at >= 0) {
        mo_buf_span(&b, mo_span_take(&rest, (size_t)at));
        mo_buf_puts(&b, dir);
        rest = mo_span_skip(rest, mark.n);
        at = mo_span_search(rest, mark);
    }
    mo_buf_span(&b, rest);
    mo_jw_buf(w, &b);
}

/* A secret without a value is a reference to the secret store. An optional one
 * is left out: the server would not start without it. */
static void put_vars(const struct mo_install_plan *p, const char *dir,
                     struct mo_jw *w)
{
    bool any = false;

    for (size_t i = 0; i < p->nvars; i++) {
        const struct mo_install_var *v = &p->vars[i];

        if (!v->value && !(v->is_secret && v->is_required))
            continue;
        if (!any)
            mo_jw_member_obj(w,
                             p->kind == MO_INSTALL_REMOTE ? "headers" : "env");
        any = true;
        mo_jw_key(w, v->name);
        if (v->value) {
            put_value(w, v->value, p->kind == MO_INSTALL_MCPB ? dir : NULL);
        } else {
            mo_autobuf struct mo_buf b = {.max = 400};

            mo_buf_printf(&b, "${secret:%s.%s}", p->name, v->name);
            mo_jw_buf(w, &b);
        }
    }
    if (any)
        mo_jw_end(w);
}

/* Python without the environment's and its own packages, and without writing
 * bytecode. */
static const char *const isolated[] = {"-I", "-S", "-B"};

static void put_args(const struct mo_install_plan *p, const char *dir,
                     struct mo_jw *w)
{
    for (size_t i = 0; i < p->nargs; i++)
        put_value(w, p->args[i], p->kind == MO_INSTALL_MCPB ? dir : NULL);
}

void mo_install_plan_program(const struct mo_install_plan *p, const char *dir,
                             struct mo_buf *b)
{
    if (p->kind == MO_INSTALL_MCPB)
        mo_buf_printf(b, "%s/%s", dir, p->bin);
    else if (p->kind == MO_INSTALL_PYPI)
        mo_buf_printf(b, "%s/start.py", dir);
    else
        mo_buf_printf(b, "%s/node_modules/%s/%s", dir, p->package, p->bin);
}

static void put_files(const struct mo_install_plan *p, const char *runtime,
                      const char *dir, struct mo_jw *w)
{
    mo_autobuf struct mo_buf b = {.max = 8192};
    bool bundle = p->kind == MO_INSTALL_MCPB;

    mo_install_plan_program(p, dir, &b);
    mo_jw_member_cstr(w, "command",
                      p->runtime == MO_INSTALL_BINARY ? mo_buf_cstr(&b)
                                                      : runtime);
    mo_jw_member_arr(w, "args");
    for (size_t i = 0; p->kind == MO_INSTALL_PYPI && i < MO_COUNT(isolated);
         i++)
        mo_jw_cstr(w, isolated[i]);
    if (!bundle) /* it names its program in its arguments */
        mo_jw_buf(w, &b);
    put_args(p, dir, w);
    mo_jw_end(w);
    if (!p->is_unboxed) {
        mo_jw_member_cstr(w, "sandbox", "native");
        mo_jw_member_bool(w, "workspace", true);
    }
    if (p->nhosts) {
        mo_jw_member_obj(w, "network");
        put_texts(w, "allow", p->hosts, p->nhosts);
        mo_jw_end(w);
    }
}

void mo_install_plan_entry(const struct mo_install_plan *p, const char *runtime,
                           const char *dir, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    if (mo_install_plan_has_files(p)) {
        put_files(p, runtime, dir, &w);
    } else if (p->kind == MO_INSTALL_OCI) {
        mo_jw_member_cstr(&w, "image", p->package);
        if (p->nargs) {
            mo_jw_member_arr(&w, "args");
            put_args(p, NULL, &w);
            mo_jw_end(&w);
        }
    } else {
        mo_jw_member_cstr(&w, "url", p->package);
        if (strcmp(p->transport, "sse") == 0)
            mo_jw_member_cstr(&w, "transport", "sse");
    }
    put_vars(p, dir, &w);
    mo_jw_end(&w);
}

/* --- for people ----------------------------------------------------------- */

static void say(struct mo_buf *b, const char *label, const char *text)
{
    if (!text)
        return;
    mo_buf_printf(b, "  %-12s ", label);
    mo_visible_name(b, mo_span_head(mo_span_cstr(text), 2000));
    mo_buf_putc(b, '\n');
}

static void say_var(struct mo_buf *b, const struct mo_install_plan *p,
                    const struct mo_install_var *v)
{
    mo_buf_puts(b, "    ");
    mo_visible_name(b, mo_span_cstr(v->name));
    if (v->value) {
        mo_buf_puts(b, " = ");
        mo_visible_name(b, mo_span_head(mo_span_cstr(v->value), 200));
    }
    mo_buf_puts(b, v->is_required ? " (needed" : " (optional");
    mo_buf_puts(b, v->is_secret ? ", secret)" : ")");
    if (v->text) {
        mo_buf_puts(b, ": ");
        mo_visible_name(b, mo_span_head(mo_span_cstr(v->text), 200));
    }
    mo_buf_putc(b, '\n');
    if (v->secret)
        mo_buf_printf(b, "      mcp-orchestrator secrets set %s\n", v->secret);
    else if (v->is_secret && !v->value)
        mo_buf_printf(b, "      %smcp-orchestrator secrets set %s.%s\n",
                      v->is_required ? "" : "to use it, add it to env and: ",
                      p->name, v->name);
}

static void say_command(struct mo_buf *b, const struct mo_install_plan *p,
                        const char *runtime)
{
    mo_buf_puts(b, "  command      ");
    if (p->runtime != MO_INSTALL_BINARY)
        mo_visible_name(b, mo_span_cstr(runtime));
    if (p->kind != MO_INSTALL_MCPB || p->runtime == MO_INSTALL_BINARY) {
        mo_buf_puts(b, " .../");
        mo_visible_name(b, mo_span_cstr(p->bin));
    }
    for (size_t i = 0; i < p->nargs; i++) {
        mo_buf_putc(b, ' ');
        mo_visible_name(b, mo_span_head(mo_span_cstr(p->args[i]), 200));
    }
    mo_buf_putc(b, '\n');
}

static void say_hosts(struct mo_buf *b, const struct mo_install_plan *p)
{
    struct mo_url u;

    mo_buf_puts(b, "  hosts        ");
    if (p->kind == MO_INSTALL_REMOTE &&
        mo_url_parse(mo_span_cstr(p->package), &u, NULL) == 0)
        mo_visible_name(b, u.host);
    else if (p->is_unboxed)
        mo_buf_puts(b, "any");
    else if (p->nhosts == 0)
        mo_buf_puts(b, "none; --allow-host allows some");
    for (size_t i = 0; i < p->nhosts; i++) {
        mo_buf_puts(b, i ? ", " : "");
        mo_visible_name(b, mo_span_cstr(p->hosts[i]));
    }
    mo_buf_putc(b, '\n');
}

/* The further packages that are known before anything is downloaded. */
static void say_packages(struct mo_buf *b, const struct mo_install_plan *p)
{
    struct mo_json list = {p->packages, p->packages ? strlen(p->packages) : 0};

    if (!p->packages || mo_json_len(list) < 2)
        return;
    mo_buf_puts(b, "  needs\n");
    mo_json_each (it, list) {
        if (mo_json_str_eq(it.key, mo_span_cstr(p->package)))
            continue;
        mo_buf_puts(b, "    ");
        (void)mo_json_str_buf(it.key, b);
        mo_buf_putc(b, ' ');
        (void)mo_json_str_buf(mo_json_get(it.val, "version"), b);
        mo_buf_putc(b, ' ');
        (void)mo_json_str_buf(mo_json_get(it.val, "integrity"), b);
        mo_buf_putc(b, '\n');
    }
}

void mo_install_plan_text(const struct mo_install_plan *p, const char *runtime,
                          struct mo_buf *b)
{
    static const char *const what[] = {"package", "package", "bundle", "image",
                                       "address"};

    mo_buf_puts(b, "install ");
    mo_visible_name(b, mo_span_cstr(p->name));
    mo_buf_puts(b, ":\n");
    say(b, "registry", p->registry);
    say(b, what[p->kind], p->package);
    say(b, "version", p->version);
    say(b, "integrity", p->integrity);
    say(b, "sha256", p->sha256);
    say(b, "publisher", p->publisher);
    say(b, "repository", p->repository);
    say(b, "about", p->description);
    say_packages(b, p);
    if (mo_install_plan_has_files(p)) {
        say(b, "runtime", runtime);
        say_command(b, p, runtime);
        say(b, "box",
            p->is_unboxed ? "none: it runs with the rights of your user"
                          : "native: it sees its own files read-only and a "
                            "/workspace of its own");
    }
    if (p->kind == MO_INSTALL_OCI)
        say(b, "runtime", "a Docker box, without network");
    say_hosts(b, p);
    if (p->nvars)
        mo_buf_printf(b, "  %s\n",
                      p->kind == MO_INSTALL_REMOTE ? "headers" : "variables");
    for (size_t i = 0; i < p->nvars; i++)
        say_var(b, p, &p->vars[i]);
    if (p->has_scripts)
        say(b, "scripts",
            "the package has install scripts; they do not run "
            "unless --allow-scripts is given");
    for (size_t i = 0; i < p->nnotes; i++)
        say(b, "note", p->notes[i]);
    for (size_t i = 0; i < p->nwarnings; i++)
        say(b, "WARNING", p->warnings[i]);
}

/* --- for programs --------------------------------------------------------- */

static void put_var(struct mo_jw *w, const struct mo_install_var *v)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", v->name);
    mo_jw_member_opt(w, "description", mo_span_cstr(v->text));
    mo_jw_member_opt(w, "value", mo_span_cstr(v->value));
    mo_jw_member_bool(w, "required", v->is_required);
    mo_jw_member_bool(w, "secret", v->is_secret);
    mo_jw_end(w);
}

void mo_install_plan_json(const struct mo_install_plan *p, struct mo_jw *w)
{
    const struct {
        const char *key, *text;
    } rows[] = {
        {"registry", p->registry},     {"package", p->package},
        {"version", p->version},       {"integrity", p->integrity},
        {"sha256", p->sha256},         {"publisher", p->publisher},
        {"repository", p->repository}, {"description", p->description},
    };

    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", p->name);
    mo_jw_member_cstr(w, "kind", kinds[p->kind]);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        mo_jw_member_opt(w, rows[i].key, mo_span_cstr(rows[i].text));
    if (p->packages)
        mo_jw_member_raw(w, "packages", mo_span_cstr(p->packages));
    put_texts(w, "args", p->args, p->nargs);
    mo_jw_member_u64(w, "fixedArgs", p->nfixed);
    mo_jw_member_arr(w, p->kind == MO_INSTALL_REMOTE ? "headers" : "variables");
    for (size_t i = 0; i < p->nvars; i++)
        put_var(w, &p->vars[i]);
    mo_jw_end(w);
    put_texts(w, "hosts", p->hosts, p->nhosts);
    mo_jw_member_bool(w, "boxed",
                      p->kind != MO_INSTALL_REMOTE && !p->is_unboxed);
    mo_jw_member_bool(w, "installScripts", p->has_scripts);
    put_texts(w, "notes", p->notes, p->nnotes);
    put_texts(w, "warnings", p->warnings, p->nwarnings);
    mo_jw_end(w);
}

void mo_install_plan_digest(const struct mo_install_plan *p, char out[65])
{
    mo_autobuf struct mo_buf b = {.max = MO_INSTALL_BYTES_MAX};
    struct mo_jw w;

    mo_jw_init(&w, &b);
    mo_install_plan_json(p, &w);
    mo_sha256_hex(mo_buf_view(&b), out);
}
