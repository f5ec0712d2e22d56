#include "install/place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "box/roots_path.h"
#include "install/place_fill.h"

#define LOCK_NAME   "servers.lock.json"
#define BESIDE_MODE 0755 /* of what root's place has: others read it */
#define TEMP_PREFIX ".new-"
#define LOCK_MS     1000
#define SHORT       16 /* digits of the digest in a path */

/* --- the place ------------------------------------------------------------ */

int mo_place_join(char out[PATH_MAX], const char *dir, const char *name,
                  struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    return n < 0 || n >= PATH_MAX
               ? mo_fail(e, MO_ETOOBIG, "the path of %.100s is too long", name)
               : 0;
}

static void close_dir(DIR **d)
{
    if (*d)
        (void)closedir(*d);
}

/* Directories that an interrupted installation left. */
static void remove_leftovers(const char *dir)
{
    MO_CLEANUP(close_dir) DIR *d = opendir(dir);
    char path[PATH_MAX];

    for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) {
        if (mo_span_starts(mo_span_cstr(x->d_name), MO_SPAN(TEMP_PREFIX)) &&
            mo_place_join(path, dir, x->d_name, NULL) == 0)
            (void)mo_tree_remove(path, NULL);
    }
}

/* Root's place exists, or root, who asks, would make it. */
static bool is_roots(const char *state, const char *beside)
{
    struct stat st;

    if (stat(state, &st) < 0 || st.st_uid == 0)
        return false;
    return mo_roots_path(beside) || (errno == ENOENT && geteuid() == 0);
}

static int find_place(const struct mo_config *cfg, struct mo_place *p,
                      struct mo_err *e)
{
    char state[PATH_MAX], beside[PATH_MAX];
    int n, rc;

    if (!realpath(cfg->store.dir, state))
        return mo_fail_sys(e, "%s", cfg->store.dir);
    n = snprintf(beside, sizeof(beside), "%s." MO_PLACE_DIR, state);
    if (n < 0 || (size_t)n >= sizeof(beside))
        return mo_fail(e, MO_ETOOBIG, "the path of %.100s is too long", state);
    p->is_roots = is_roots(state, beside);
    if (p->is_roots) {
        (void)snprintf(p->dir, sizeof(p->dir), "%s", beside);
        n = snprintf(p->lock_file, sizeof(p->lock_file), "%s." LOCK_NAME,
                     state);
        return n < 0 || (size_t)n >= sizeof(p->lock_file)
                   ? mo_fail(e, MO_ETOOBIG, "the path of " LOCK_NAME)
                   : 0;
    }
    rc = mo_place_join(p->dir, state, MO_PLACE_DIR, e);
    return rc < 0 ? rc : mo_place_join(p->lock_file, state, LOCK_NAME, e);
}

bool mo_place_is_roots(const struct mo_config *cfg)
{
    struct mo_place p = {.lock = -1};

    return geteuid() == 0 && find_place(cfg, &p, NULL) == 0 && p.is_roots;
}

/* Of a server, or all. Those of root can be read by others. */
static int make_dir(const struct mo_place *p, const char *path,
                    struct mo_err *e)
{
    int rc = mo_file_mkdir(path, e);

    if (rc < 0 || !p->is_roots)
        return rc;
    if (!mo_roots_path(path)) /* in /tmp somebody else could make it */
        return mo_fail(e, MO_EPOLICY, "%s is not root's", path);
    return chmod(path, BESIDE_MODE) < 0 ? mo_fail_sys(e, "%s", path) : 0;
}

int mo_place_open(struct mo_place *p, const struct mo_config *cfg,
                  struct mo_err *e)
{
    char inside[PATH_MAX];
    int rc = mo_file_mkdir(cfg->store.dir, e);

    p->lock = -1;
    if (rc == 0)
        rc = find_place(cfg, p, e);
    if (rc == 0 && p->is_roots && geteuid() != 0)
        rc = mo_fail(e, MO_EPOLICY,
                     "%s is root's: root installs and removes servers here",
                     p->dir);
    if (rc == 0)
        rc = make_dir(p, p->dir, e);
    if (rc == 0)
        rc = mo_place_join(inside, p->dir, "x", e);
    if (rc < 0)
        return rc;
    p->lock = mo_file_lock(inside, LOCK_MS, e);
    if (p->lock < 0)
        return mo_fail(e, e->code, "another installation is running");
    remove_leftovers(p->dir);
    return 0;
}

void mo_place_close(struct mo_place *p)
{
    mo_close_fd(&p->lock);
}

void mo_installed_fini(struct mo_installed *x)
{
    mo_buf_fini(&x->scripts);
    mo_buf_fini(&x->lock);
}

/* --- installing ----------------------------------------------------------- */

static void begin_lock(const struct mo_install_plan *plan, bool scripts,
                       struct mo_jw *w)
{
    mo_autobuf struct mo_buf source = {.max = 1000};
    char date[MO_ISO8601_MAX], who[32];

    mo_install_plan_source(plan, &source);
    mo_wall_format(mo_wall_ms(), date);
    (void)snprintf(who, sizeof(who), "uid %ld", (long)getuid());
    mo_jw_member(w, "source", mo_buf_view(&source));
    mo_jw_member_opt(w, "registry", mo_span_cstr(plan->registry));
    mo_jw_member_opt(w, "version", mo_span_cstr(plan->version));
    mo_jw_member_opt(w, "integrity", mo_span_cstr(plan->integrity));
    mo_jw_member_opt(w, "repository", mo_span_cstr(plan->repository));
    mo_jw_member_opt(w, "bin", mo_span_cstr(plan->bin));
    mo_jw_member_arr(w, "args");
    for (size_t i = 0; i < plan->nfixed; i++)
        mo_jw_cstr(w, plan->args[i]);
    mo_jw_end(w);
    mo_jw_member_arr(w, "variables");
    for (size_t i = 0; i < plan->nvars; i++)
        mo_jw_cstr(w, plan->vars[i].name);
    mo_jw_end(w);
    if (plan->nhosts) {
        mo_jw_member_arr(w, "hosts");
        for (size_t i = 0; i < plan->nhosts; i++)
            mo_jw_cstr(w, plan->hosts[i]);
        mo_jw_end(w);
    }
    mo_jw_member_cstr(w, "installedAt", date);
    mo_jw_member_cstr(w, "by", who);
    if (scripts)
        mo_jw_member_bool(w, "scripts", true);
}

/* Renaming a directory changes its "..", so it must still be writable. */
static int move_in(const struct mo_place *p, const char *temp,
                   const struct mo_install_plan *plan, struct mo_installed *x,
                   struct mo_err *e)
{
    char parent[PATH_MAX];
    mo_autofd int fd = -1;
    int n;

    if (mo_place_join(parent, p->dir, plan->name, e) < 0)
        return e->code;
    n = snprintf(x->path, sizeof(x->path), "%s/%s-%.*s", parent, plan->version,
                 SHORT, x->tree.digest);
    if (n < 0 || (size_t)n >= sizeof(x->path))
        return mo_fail(e, MO_ETOOBIG, "the path is too long");
    if (make_dir(p, parent, e) < 0 || mo_tree_remove(x->path, e) < 0)
        return e->code;
    if (chmod(temp, 0755) < 0 || rename(temp, x->path) < 0 ||
        chmod(x->path, 0555) < 0)
        return mo_fail_sys(e, "%s", x->path);
    fd = open(parent, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fsync(fd) < 0)
        return mo_fail_sys(e, "%s", parent);
    return 0;
}

/* Makes the files read-only, and root's. Nothing may have changed them between
 * the check and that. */
static int seal(const char *temp, uid_t from, struct mo_installed *x,
                struct mo_err *e)
{
    struct mo_tree again;
    int rc = mo_tree_seal(temp, from, e);

    if (rc < 0 || !from)
        return rc;
    rc = mo_tree_read(temp, &again, e);
    if (rc == 0 && strcmp(again.digest, x->tree.digest) != 0)
        rc =
            mo_fail(e, MO_EPOLICY, "its files changed while they were checked");
    return rc;
}

/* Lets the package manager, which runs as that user, write here. */
static int give(const struct mo_fill *f, const char *path, struct mo_err *e)
{
    if (!f->owner)
        return 0;
    return lchown(path, f->owner->uid, f->owner->gid) < 0
               ? mo_fail_sys(e, "%s", path)
               : 0;
}

int mo_fill_write(const struct mo_fill *f, const char *name,
                  struct mo_span text, struct mo_err *e)
{
    char path[PATH_MAX];
    int rc = mo_place_join(path, f->dir, name, e);

    if (rc == 0)
        rc = mo_file_replace(path, text, e);
    return rc < 0 ? rc : give(f, path, e);
}

static int fill(const struct mo_fill *f, struct mo_err *e)
{
    int rc = give(f, f->dir, e);

    if (rc < 0)
        return rc;
    return f->plan->kind == MO_INSTALL_PYPI   ? mo_fill_pypi(f, e)
           : f->plan->kind == MO_INSTALL_MCPB ? mo_fill_mcpb(f, e)
                                              : mo_fill_npm(f, e);
}

static int fill_temp(struct mo_place *p, const struct mo_fill *f,
                     struct mo_err *e)
{
    struct mo_installed *x = f->x;
    int rc;

    begin_lock(f->plan, f->allow_scripts, f->w);
    rc = fill(f, e);
    if (rc == 0)
        rc = mo_tree_read(f->dir, &x->tree, e);
    if (rc == 0)
        rc = seal(f->dir, f->owner ? f->owner->uid : 0, x, e);
    if (rc == 0 && mo_runner_is_stopped(f->tools->run))
        rc = mo_fail(e, MO_ECANCELED, "interrupted; nothing was installed");
    if (rc == 0)
        rc = move_in(p, f->dir, f->plan, x, e);
    mo_jw_member_cstr(f->w, "digest", x->tree.digest);
    mo_jw_member_cstr(f->w, "path",
                      x->path[0] ? x->path + strlen(p->dir) + 1 : "");
    mo_jw_end_all(f->w);
    if (rc == 0 && (mo_buf_err(&x->lock) || mo_buf_err(&x->scripts)))
        rc = mo_fail(e, MO_ETOOBIG, "it has too many packages");
    return rc;
}

int mo_place_add(struct mo_place *p, const struct mo_place_tools *tools,
                 const struct mo_install_plan *plan, bool allow_scripts,
                 struct mo_installed *out, struct mo_err *e)
{
    char temp[PATH_MAX];
    struct mo_jw w;
    const struct mo_fill f = {.plan = plan,
                              .tools = tools,
                              .owner =
                                  p->is_roots && plan->kind != MO_INSTALL_MCPB
                                      ? &tools->run->user
                                      : NULL, /* we unpack it */
                              .dir = temp,
                              .allow_scripts = allow_scripts,
                              .x = out,
                              .w = &w};
    int rc = mo_place_join(temp, p->dir, TEMP_PREFIX "XXXXXX", e);

    out->path[0] = '\0';
    out->scripts = (struct mo_buf){.max = 4096};
    out->lock = (struct mo_buf){.max = MO_PLACE_LOCK_MAX / 8};
    w = mo_jw_object(&out->lock);
    if (rc < 0)
        return rc;
    if (!mkdtemp(temp))
        return mo_fail_sys(e, "%s", temp);
    rc = fill_temp(p, &f, e);
    if (rc < 0) {
        (void)mo_tree_remove(temp, NULL);
        if (out->path[0])
            (void)mo_tree_remove(out->path, NULL);
    }
    return rc;
}

void mo_place_describe(const struct mo_install_plan *plan,
                       struct mo_installed *out)
{
    struct mo_jw w;

    out->path[0] = '\0';
    out->scripts = (struct mo_buf){.max = 0};
    out->lock = (struct mo_buf){.max = MO_PLACE_LOCK_MAX / 8};
    w = mo_jw_object(&out->lock);
    begin_lock(plan, false, &w);
    mo_jw_end(&w);
}

/* --- removing ------------------------------------------------------------- */

int mo_place_remove(struct mo_place *p, const char *name, const char *keep,
                    struct mo_err *e)
{
    char parent[PATH_MAX], path[PATH_MAX];
    int rc = mo_place_join(parent, p->dir, name, e);

    MO_BUG_ON(strchr(name, '/') || name[0] == '.');
    if (rc < 0)
        return rc;
    if (!keep)
        return mo_tree_remove(parent, e);
    {
        MO_CLEANUP(close_dir) DIR *d = opendir(parent);

        for (struct dirent *x = d ? readdir(d) : NULL; x; x = readdir(d)) {
            if (x->d_name[0] == '.' ||
                mo_place_join(path, parent, x->d_name, e) < 0 ||
                strcmp(path, keep) == 0)
                continue;
            if (mo_tree_remove(path, e) < 0)
                rc = e->code;
        }
    }
    return rc;
}

/* --- servers.lock.json ---------------------------------------------------- */

struct pin {
    const char *name;
    struct mo_span json;
    bool is_empty; /* no server is left */
};

static int edit_lock(void *ctx, struct mo_span text, struct mo_buf *out,
                     struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_PLACE_LOCK_MAX};
    struct pin *k = ctx;
    struct mo_json_doc doc = {.root = {NULL, 0}};
    struct mo_jw w = mo_jw_object(&b);

    if (text.p && mo_json_parse(text, 64, &doc, e) < 0)
        return mo_wrap(e, LOCK_NAME);
    mo_jw_member_u64(&w, "lockVersion", 1);
    mo_jw_member_obj(&w, "servers");
    mo_json_each (it, mo_json_get(doc.root, "servers")) {
        if (mo_json_str_eq(it.key, mo_span_cstr(k->name)))
            continue;
        mo_jw_key_raw(&w, it.key);
        mo_jw_raw(&w, mo_json_text(it.val));
    }
    if (k->json.n) {
        mo_jw_key(&w, k->name);
        mo_jw_raw(&w, k->json);
    }
    mo_jw_end_all(&w);
    if (mo_json_parse(mo_buf_view(&b), 64, &doc, e) < 0)
        return mo_wrap(e, LOCK_NAME);
    k->is_empty = mo_json_len(mo_json_get(doc.root, "servers")) == 0;
    (void)mo_json_pretty(doc.root, out);
    return mo_buf_putc(out, '\n');
}

int mo_place_pin(struct mo_place *p, const char *name, struct mo_span json,
                 struct mo_err *e)
{
    struct pin k = {.name = name, .json = json};
    const struct mo_file_change c = {
        .path = p->lock_file,
        .max = MO_PLACE_LOCK_MAX,
        .sync = true,
        .edit = edit_lock,
        .ctx = &k,
    };

    int rc = mo_file_change(&c, e);

    if (rc == 0 && p->is_roots && chmod(p->lock_file, 0644) < 0)
        rc = mo_fail_sys(e, "%s", p->lock_file);
    if (rc == 0 && k.is_empty)
        (void)unlink(p->lock_file);
    return rc;
}

int mo_place_read_lock(const struct mo_config *cfg, struct mo_buf *text,
                       struct mo_json *servers, struct mo_err *e)
{
    struct mo_place p = {.lock = -1};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc;

    *servers = (struct mo_json){"{}", 2};
    text->max = MO_PLACE_LOCK_MAX;
    if (find_place(cfg, &p, NULL) < 0) /* no state yet */
        return 0;
    rc = mo_file_read(p.lock_file, MO_PLACE_LOCK_MAX, text, NULL, e);
    if (rc == MO_ENOTFOUND)
        return 0;
    if (rc == 0)
        rc = mo_json_parse(mo_buf_view(text), 64, &doc, e);
    if (rc < 0)
        return mo_wrap(e, LOCK_NAME);
    *servers = mo_json_get(doc.root, "servers");
    return 0;
}

int mo_place_verify(const struct mo_config *cfg, struct mo_json entry,
                    struct mo_err *e)
{
    struct mo_place p = {.lock = -1};
    char path[PATH_MAX];
    mo_autobuf struct mo_buf b = {.max = PATH_MAX};
    struct mo_tree tree;
    struct stat st;
    int rc;

    if (!mo_json_get(entry, "path").p)
        return 0;
    (void)mo_json_str_buf(mo_json_get(entry, "path"), &b);
    if (!b.len || b.p[0] == '/' || b.p[0] == '.' ||
        mo_span_search(mo_buf_view(&b), MO_SPAN("..")) >= 0)
        return mo_fail(e, MO_EPROTO, LOCK_NAME " has an impossible path");
    rc = find_place(cfg, &p, e);
    if (rc == 0)
        rc = mo_place_join(path, p.dir, mo_buf_cstr(&b), e);
    if (rc < 0)
        return rc;
    if (lstat(path, &st) < 0)
        return mo_fail(e, MO_ENOTFOUND, "its files are missing: %s", path);
    rc = mo_tree_read(path, &tree, e);
    if (rc < 0)
        return mo_wrap(e, "its files were changed");
    if (!mo_json_str_eq(mo_json_get(entry, "digest"),
                        mo_span_cstr(tree.digest)))
        return mo_fail(e, MO_EPOLICY,
                       "its files were changed after the installation: %s",
                       path);
    return 0;
}
