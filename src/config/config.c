/* config.c - merges the layers of the configuration; see config.h. */
#include "config/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/passwd.h"
#include "config/read.h"
#include "config/state_dir.h"
#include "config/trust.h"

/* A configuration, its reference count and its arena, in one allocation. */
struct counted_config {
    unsigned refs;
    struct mo_arena arena;
    struct mo_config cfg;
};

/* --- environment --------------------------------------------------------- */

const char *mo_config_find_env(char *const *envp, const char *name)
{
    size_t n = strlen(name);

    for (; envp && *envp; envp++) {
        if (strncmp(*envp, name, n) == 0 && (*envp)[n] == '=' && (*envp)[n + 1])
            return *envp + n + 1;
    }
    return NULL;
}

const char *mo_config_getenv(const struct mo_config *c, const char *name)
{
    const char *v = mo_config_find_env(c->environ, name);
    const struct mo_dotenv_var *var;

    if (v)
        return v;
    var = mo_dotenv_find(&c->env, name);
    return var && *var->value ? var->value : NULL;
}

static void dotenv_path(const struct mo_config_holder *h, char out[PATH_MAX])
{
    (void)snprintf(out, PATH_MAX, "%s%s.env", h->in.dir ? h->in.dir : "",
                   h->in.dir ? "/" : "");
}

bool mo_config_home(char *const *envp, const char *file, char out[PATH_MAX])
{
    const char *xdg = mo_config_find_env(envp, "XDG_CONFIG_HOME");
    const char *home = mo_config_find_env(envp, "HOME");

    out[0] = '\0';
    if (!xdg && !home)
        return false;
    (void)snprintf(out, PATH_MAX, "%s%s/" MO_CONFIG_DIR "%s%s",
                   xdg ? xdg : home, xdg ? "" : "/.config", file ? "/" : "",
                   file ? file : "");
    return true;
}

bool mo_config_owner_home(const struct mo_config *c, char out[PATH_MAX])
{
    const char *home = mo_config_find_env(c->environ, "HOME");
    struct mo_file_stamp st = {.there = false};
    struct mo_passwd who;

    if (c->file)
        mo_file_stamp(c->file, &st);
    if (st.there && st.owner != geteuid())
        home = mo_passwd_get(NULL, st.owner, &who) ? who.home : NULL;
    return home && home[0] == '/' && realpath(home, out) != NULL;
}

/* The directory that has `path`, without links. */
static bool dir_of(const char *path, char out[PATH_MAX])
{
    const char *slash = strrchr(path, '/');
    char dir[PATH_MAX];

    (void)snprintf(dir, sizeof(dir), "%.*s",
                   slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    return realpath(dir, out) != NULL;
}

/* The user's home directory, or one that has the file they named. */
static bool is_known_dir(const struct mo_config_holder *h, const char *path)
{
    const char *named = h->in.file;
    const char *home = mo_config_find_env(h->in.environ, "HOME");
    char dir[PATH_MAX], known[PATH_MAX];

    if (!named)
        named = mo_config_find_env(h->in.environ, "MCP_ORCHESTRATOR_CONFIG");
    return dir_of(path, dir) &&
           ((named && dir_of(named, known) && strcmp(dir, known) == 0) ||
            (home && realpath(home, known) && strcmp(dir, known) == 0));
}

/* May a file of the working directory be used? Asked only at the start: while
 * we run, its owner may change it. */
static bool is_confirmed(const struct mo_config_holder *h, const char *path,
                         struct mo_span text)
{
    char list[PATH_MAX];

    (void)mo_config_home(h->in.environ, MO_CONFIG_ALLOWED, list);
    return h->in.trusts_dir || is_known_dir(h, path) ||
           mo_trust_is_allowed(list, path, text);
}

/* --- files that this user cannot read ------------------------------------- */

static int read_text(const struct mo_config_holder *h, const char *path,
                     struct mo_buf *out, struct mo_file_stamp *stamp,
                     struct mo_err *e)
{
    int rc = mo_file_read(path, out->max, out, stamp, e);

    if (rc < 0 && e->sys == EACCES && h->in.reopen)
        rc = h->in.reopen(h->in.ctx, path, out, stamp, e);
    return rc;
}

static void read_stamp(const struct mo_config_holder *h, const char *path,
                       struct mo_file_stamp *out)
{
    mo_file_stamp(path, out);
    if (!out->there && h->in.reopen && access(path, F_OK) < 0 &&
        errno == EACCES)
        (void)h->in.reopen(h->in.ctx, path, NULL, out, NULL);
}

/* --- .env ----------------------------------------------------------------- */

static void find_used(void *ctx, const char *path, const struct mo_key *k,
                      void *field)
{
    struct mo_config_load *l = ctx;
    struct mo_span names = mo_span_cstr(k->env);

    (void)path;
    (void)field;
    while (k->env && names.p) {
        struct mo_span name = mo_span_cut(&names, ',');

        for (size_t i = 0; i < l->cfg->env.n; i++)
            if (mo_span_is(name, l->cfg->env.v[i].name))
                l->dotenv_matters = true;
    }
}

static void note_untrusted(struct mo_config_report *rep, const char *path,
                           const char *reason)
{
    struct mo_config_untrusted *u = &rep->untrusted[rep->nuntrusted];

    if (rep->nuntrusted == MO_COUNT(rep->untrusted))
        return;
    (void)snprintf(u->path, sizeof(u->path), "%s", path);
    u->reason = reason;
    rep->nuntrusted++;
}

/* Every project has its .env: say nothing if it holds none of our variables. */
static void forget_dotenv(struct mo_config_load *l, const char *path)
{
    mo_keys_walk(&mo_config_keys, l->cfg, find_used, l);
    l->cfg->env = (struct mo_dotenv){.n = 0};
    if (!l->dotenv_matters)
        return;
    note_untrusted(l->rep, path, "not_confirmed");
    mo_config_warn(l->rep,
                   "%s is not used: read it, then confirm it with "
                   "`mcp-orchestrator config allow`",
                   path);
}

static void read_dotenv(struct mo_config_load *l, struct mo_config_holder *h)
{
    char path[PATH_MAX];
    mo_autobuf struct mo_buf text = {.max = MO_DOTENV_FILE_MAX};
    struct mo_err e = {0};
    unsigned line = 0;
    int rc;

    dotenv_path(h, path);
    rc = read_text(h, path, &text, &h->dotenv, &e);
    if (rc == 0 && !h->now)
        h->uses_dotenv = is_confirmed(h, path, mo_buf_view(&text));
    if (rc == 0 && h->uses_dotenv) {
        rc = mo_file_trust(path, &h->dotenv, false, &e);
        if (rc < 0)
            note_untrusted(l->rep, path, "not_trusted");
    }
    if (rc == 0)
        rc = mo_dotenv_parse(l->arena, mo_buf_view(&text), &l->cfg->env, &line,
                             &e);
    if (rc == MO_ENOMEM)
        l->no_memory = true;
    else if (rc != MO_ENOTFOUND && !h->uses_dotenv)
        forget_dotenv(l, path);
    else if (rc < 0 && line)
        mo_config_error(l->rep, "%s:%u: %s", path, line, e.msg);
    else if (rc < 0 && rc != MO_ENOTFOUND)
        mo_config_error(l->rep, "%s", e.msg);
}

/* --- the file ------------------------------------------------------------ */

/* The path of the file if none is named; true: the working directory's. */
static bool default_file(const struct mo_config_holder *h, char out[PATH_MAX])
{
    struct mo_file_stamp there;
    char homes[PATH_MAX];

    (void)snprintf(out, PATH_MAX, "%s%s" MO_CONFIG_FILE,
                   h->in.dir ? h->in.dir : "", h->in.dir ? "/" : "");
    mo_file_stamp(out, &there);
    if (there.there || !mo_config_home(h->in.environ, "config.json", homes))
        return true;
    memcpy(out, homes, sizeof(homes));
    return false;
}

/* --config, else the environment, else the default path. A named file must
 * exist. Found once: a reload never reads another file. */
static void find_file(struct mo_config_holder *h, const struct mo_config *c)
{
    const char *asked = h->in.file;

    if (h->now)
        return;
    if (h->in.only_home) {
        (void)mo_config_home(h->in.environ, "config.json", h->path);
        return;
    }
    if (!asked)
        asked = mo_config_getenv(c, "MCP_ORCHESTRATOR_CONFIG");
    h->named = asked != NULL;
    if (asked)
        (void)snprintf(h->path, sizeof(h->path), "%s", asked);
    else
        h->is_dirs = default_file(h, h->path);
}

static int check_file(const struct mo_config_holder *h, struct mo_span text,
                      struct mo_config_report *rep, struct mo_err *e)
{
    int rc = mo_file_trust(h->path, &h->file, false, e);

    if (rc < 0)
        note_untrusted(rep, h->path, "not_trusted");
    if (rc < 0 || h->now || !h->is_dirs || is_confirmed(h, h->path, text))
        return rc;
    note_untrusted(rep, h->path, "not_confirmed");
    return mo_fail(e, MO_EPOLICY,
                   "%s can start programs and was not confirmed: read it, then "
                   "run `mcp-orchestrator config allow`, or name it with "
                   "--config",
                   h->path);
}

static int read_file(struct mo_config_load *l, struct mo_config_holder *h,
                     struct mo_err *e)
{
    struct mo_err why = {0};
    mo_autobuf struct mo_buf text = {.max = MO_CONFIG_FILE_MAX};
    int rc;

    find_file(h, l->cfg);
    rc = read_text(h, h->path, &text, &h->file, &why);
    if (rc == MO_ENOTFOUND && !h->named)
        return 0;
    if (rc == 0)
        rc = check_file(h, mo_buf_view(&text), l->rep, &why);
    if (rc < 0) {
        mo_config_error(l->rep, "%s", why.msg);
        return mo_fail(e, rc, "%s", why.msg);
    }
    l->file = mo_arena_strndup(l->arena, h->path, strlen(h->path));
    l->text = mo_buf_view(&text);
    l->cfg->file = l->file;
    rc =
        l->file ? mo_config_read(l, e) : mo_fail(e, MO_ENOMEM, "out of memory");
    l->text = mo_span(NULL, 0);
    if (l->literal_secret && (h->file.mode & 0077))
        mo_config_warn(l->rep,
                       "%s contains a secret and can be read by other users; "
                       "chmod 600 it, or use ${env:NAME}",
                       h->path);
    return rc;
}

/* --- variables and flags ------------------------------------------------- */

struct layer {
    struct mo_config_load *l;
    enum mo_layer layer;
};

static void set_from_layer(struct mo_config_load *l, const struct mo_key *k,
                           void *field, const char *path,
                           const struct mo_config_origin *from,
                           const char *value)
{
    struct mo_err e = {0};

    mo_config_note(l, field, from->layer, from->name, from->line, 0);
    if (mo_config_set_text(l, k, field, value, &e) < 0)
        mo_config_error_of(l, field, "'%s' %s", path, e.msg);
}

/* Sets a key from the first of its variables that this layer has. */
static void apply_env(void *ctx, const char *path, const struct mo_key *k,
                      void *field)
{
    struct layer *y = ctx;
    struct mo_span names = mo_span_cstr(k->env);

    while (k->env && names.p) {
        struct mo_span s = mo_span_cut(&names, ',');
        struct mo_config_origin from = {.layer = y->layer};
        const struct mo_dotenv_var *var;
        const char *value = NULL;
        char *name = mo_arena_strndup(y->l->arena, s.p, s.n);

        if (!name) {
            y->l->no_memory = true;
            return;
        }
        from.name = name;
        var = mo_dotenv_find(&y->l->cfg->env, name);
        if (y->layer == MO_LAYER_ENV) {
            value = mo_config_find_env(y->l->cfg->environ, name);
        } else if (var && *var->value) {
            value = var->value;
            from.name = ".env";
            from.line = var->line;
        }
        if (value) {
            set_from_layer(y->l, k, field, path, &from, value);
            return;
        }
    }
}

static void apply_flags(struct mo_config_load *l,
                        const struct mo_config_input *in)
{
    for (size_t i = 0; i < in->nflags; i++) {
        const struct mo_config_flag *f = &in->flags[i];
        struct mo_config_origin from = {.layer = MO_LAYER_FLAG,
                                        .name = f->flag};
        void *field;
        const struct mo_key *k =
            mo_keys_path(&mo_config_keys, f->key, l->cfg, &field);

        MO_BUG_ON(!k);
        set_from_layer(l, k, field, f->key, &from, f->value);
    }
}

/* --- loading ------------------------------------------------------------- */

/* Sets the default of store.dir. */
static void set_default_dir(struct mo_config_load *l,
                            const struct mo_config_input *in)
{
    const char *dir = in->state_dir;
    char path[PATH_MAX];

    if (l->cfg->store.dir)
        return;
    if (!dir) {
        mo_state_dir_default(l->cfg->environ, in->makes_system_dir, path);
        dir = path;
    }
    l->cfg->store.dir = mo_arena_strndup(l->arena, dir, strlen(dir));
    if (!l->cfg->store.dir)
        l->no_memory = true;
    mo_config_note(l, &l->cfg->store.dir, MO_LAYER_DEFAULT, "default", 0, 0);
}

/* Makes store.dir absolute: other programs, which work elsewhere, get it. */
static void make_dir_absolute(struct mo_config_load *l)
{
    const char *dir = l->cfg->store.dir;
    char cwd[PATH_MAX], path[PATH_MAX];
    int n;

    if (!dir || dir[0] == '/' || !getcwd(cwd, sizeof(cwd)))
        return;
    n = snprintf(path, sizeof(path), "%s/%s", cwd, dir);
    if (n < 0 || (size_t)n >= sizeof(path)) {
        mo_config_error(l->rep, "the state directory %s: the path is too long",
                        dir);
        return;
    }
    l->cfg->store.dir = mo_arena_strndup(l->arena, path, (size_t)n);
    if (!l->cfg->store.dir)
        l->no_memory = true;
}

/* Whoever may write there replaces rules, pins and the token. Root uses the
 * directory of another user as that user (app/own_user.h). */
static void check_state_dir(struct mo_config_load *l)
{
    struct mo_file_stamp dir;
    struct mo_err e;

    if (!l->cfg->store.dir)
        return;
    mo_file_stamp(l->cfg->store.dir, &dir);
    if (geteuid() == 0) {
        dir.group = dir.group == dir.owner ? 0 : dir.group;
        dir.owner = 0;
    }
    if (dir.there && mo_file_trust(l->cfg->store.dir, &dir, false, &e) < 0)
        mo_config_error(l->rep, "the state directory %s", e.msg);
}

/* The server that runs the scripts of clients: a toolbox in a box. */
static void add_scripts_server(struct mo_config_load *l)
{
    struct mo_config_scripts *s = &l->cfg->gateway.scripts;
    struct mo_config_mcps none;
    void *field = &none;
    const struct mo_key *k =
        mo_keys_path(&mo_config_keys, "mcpServers", l->cfg, &field);

    s->server = NULL;
    if (!s->enabled)
        return;
    for (size_t i = 0; i < l->cfg->mcp.n; i++)
        if (strcmp(l->cfg->mcp.v[i].name, MO_CONFIG_SCRIPTS) == 0)
            mo_config_error_of(
                l, &s->enabled,
                "'gateway.scripts.enabled': the server '" MO_CONFIG_SCRIPTS
                "' needs another name");
    s->server = mo_arena_new(l->arena, struct mo_config_mcp);
    if (!s->server) {
        l->no_memory = true;
        return;
    }
    mo_config_defaults(l, k->sub, s->server);
    s->server->name = MO_CONFIG_SCRIPTS;
    s->server->sandbox = l->cfg->sandbox.driver;
    s->server->image = l->cfg->sandbox.image;
    if (!s->server->image || !*s->server->image)
        s->server->command = "mo-toolbox"; /* else the image's own command */
    s->server->memory_mb = s->memory_mb;
    s->server->era = MO_SERVER_ERA_LEGACY; /* it is ours: no probe */
    s->server->boxed = true;
}

static int load_layers(struct mo_config_load *l, struct mo_config_holder *h,
                       struct mo_err *e)
{
    struct layer dotenv = {l, MO_LAYER_DOTENV}, env = {l, MO_LAYER_ENV};
    int rc;

    mo_config_defaults(l, &mo_config_keys, l->cfg);
    if (!h->in.only_home && !h->in.no_files)
        read_dotenv(l, h); /* first: it may name the config file */
    rc = h->in.no_files ? 0 : read_file(l, h, e);
    if (rc == MO_ENOMEM)
        return rc;
    mo_keys_walk(&mo_config_keys, l->cfg, apply_env, &dotenv);
    mo_keys_walk(&mo_config_keys, l->cfg, apply_env, &env);
    apply_flags(l, &h->in);
    set_default_dir(l, &h->in);
    make_dir_absolute(l);
    check_state_dir(l);
    add_scripts_server(l);
    if (rc == 0)
        mo_config_check(l);
    if (l->no_memory)
        return mo_fail(e, MO_ENOMEM, "configuration: out of memory");
    if (l->rep->errors)
        return mo_fail(e, MO_EINVAL, "%u mistake%s in the configuration: %s",
                       l->rep->errors, l->rep->errors == 1 ? "" : "s",
                       l->rep->v[0].text);
    return 0;
}

static struct counted_config *counted_of(const struct mo_config *c)
{
    /* Only this file changes the count; all others see a const struct. */
    return mo_container_of((uintptr_t)c, struct counted_config, cfg);
}

static int load_config(struct mo_config_holder *h, struct mo_config_report *rep,
                       struct mo_err *e)
{
    struct counted_config *k = mo_new(struct counted_config);
    struct mo_config_load l = {.rep = rep};
    int rc;

    *rep = (struct mo_config_report){.kept = 0};
    if (!k)
        return mo_fail(e, MO_ENOMEM, "configuration: out of memory");
    k->refs = 1;
    mo_arena_init(&k->arena, MO_CONFIG_ARENA_MAX);
    k->cfg.environ = h->in.environ;
    k->cfg.helper = h->in.helper;
    l.cfg = &k->cfg;
    l.arena = &k->arena;
    rc = load_layers(&l, h, e);
    if (rc < 0) {
        mo_config_unref(&k->cfg);
        return rc;
    }
    k->cfg.generation = ++h->generation;
    mo_config_unref(h->now);
    h->now = &k->cfg;
    return 0;
}

int mo_config_open(struct mo_config_holder *h, const struct mo_config_input *in,
                   struct mo_config_report *rep, struct mo_err *e)
{
    *h = (struct mo_config_holder){.in = *in};
    return load_config(h, rep, e);
}

typedef int record_fn(void *ctx, const char *path, struct mo_span text,
                      struct mo_err *e);

static int allow_file(const struct mo_config_holder *h, const char *path,
                      record_fn *record, void *ctx, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = MO_CONFIG_FILE_MAX};
    struct mo_file_stamp stamp;
    char list[PATH_MAX];
    int rc = mo_file_read(path, MO_CONFIG_FILE_MAX, &text, &stamp, e);

    (void)mo_config_home(h->in.environ, MO_CONFIG_ALLOWED, list);
    if (rc == 0)
        rc = mo_file_trust(path, &stamp, false, e);
    if (rc == 0 && record)
        rc = record(ctx, path, mo_buf_view(&text), e);
    return rc < 0 ? rc : mo_trust_allow(list, path, mo_buf_view(&text), e);
}

int mo_config_allow(const struct mo_config_input *in, record_fn *record,
                    void *ctx, struct mo_err *e)
{
    const struct mo_config_holder h = {.in = *in};
    char path[2][PATH_MAX];
    int rc = 0;

    dotenv_path(&h, path[0]);
    path[1][0] = '\0';
    (void)snprintf(path[1], PATH_MAX, "%s%s" MO_CONFIG_FILE,
                   in->dir ? in->dir : "", in->dir ? "/" : "");
    for (size_t i = 0; rc == 0 && i < MO_COUNT(path); i++) {
        rc = allow_file(&h, path[i], record, ctx, e);
        if (rc == MO_ENOTFOUND)
            rc = 0;
    }
    return rc;
}

int mo_config_written(const struct mo_config_holder *h, struct mo_err *e)
{
    return !h->is_dirs || h->in.trusts_dir || is_known_dir(h, h->path)
               ? 0
               : allow_file(h, h->path, NULL, NULL, e);
}

void mo_config_close(struct mo_config_holder *h)
{
    mo_config_unref(h->now);
    h->now = NULL;
}

int mo_config_reload(struct mo_config_holder *h, struct mo_config_report *rep,
                     struct mo_err *e)
{
    int rc = load_config(h, rep, e);

    if (rc < 0)
        (void)mo_wrap(e, "keeping the old configuration");
    return rc;
}

bool mo_config_stale(const struct mo_config_holder *h)
{
    struct mo_file_stamp now;
    char path[PATH_MAX];

    dotenv_path(h, path);
    read_stamp(h, path, &now);
    if (!mo_file_same(&now, &h->dotenv))
        return true;
    read_stamp(h, h->path, &now);
    return !mo_file_same(&now, &h->file);
}

const struct mo_config *mo_config_ref(const struct mo_config *c)
{
    counted_of(c)->refs++;
    return c;
}

void mo_config_unref(const struct mo_config *c)
{
    struct counted_config *k = c ? counted_of(c) : NULL;

    if (!k || --k->refs > 0)
        return;
    mo_arena_fini(&k->arena);
    mo_free(k);
}

const struct mo_config_origin *mo_config_origin(const struct mo_config *c,
                                                const void *field)
{
    for (const struct mo_config_origin *o = c->origins; o; o = o->next) {
        if (o->field == field)
            return o;
    }
    return NULL;
}
