/* file_edit.c - edits, checks and saves the configuration file; see
 * file_edit.h. */
#include "config/file_edit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "config/json_edit.h"

/* Resolves links; a file that does not exist keeps its path. */
static int real_path(const char *path, char out[PATH_MAX], struct mo_err *e)
{
    int n;

    if (realpath(path, out))
        return 0;
    if (errno != ENOENT)
        return mo_fail_sys(e, "%s", path);
    n = snprintf(out, PATH_MAX, "%s", path);
    return n < 0 || n >= PATH_MAX ? mo_fail(e, MO_ETOOBIG, "path too long") : 0;
}

static int make_parent_dir(const char *path, struct mo_err *e)
{
    char dir[PATH_MAX];
    char *slash;

    (void)snprintf(dir, sizeof(dir), "%s", path);
    slash = strrchr(dir, '/');
    if (!slash || slash == dir)
        return 0;
    *slash = '\0';
    return mo_file_mkdir(dir, e);
}

/* If the directory does not exist, there is no other writer. */
static int take_lock(struct mo_file_edit *r, unsigned ms, struct mo_err *e)
{
    struct mo_err why = {0};

    r->lock = mo_file_lock(r->path, ms, &why);
    if (r->lock >= 0 || why.sys == ENOENT)
        return 0;
    *e = why;
    return why.code;
}

static int read_text(struct mo_file_edit *r, struct mo_err *e)
{
    int rc = mo_file_read(r->path, MO_CONFIG_FILE_MAX, &r->text, &r->stamp, e);

    if (rc != MO_ENOTFOUND)
        return rc;
    mo_err_clear(e);
    return mo_buf_puts(&r->text, "{}\n");
}

/* A server that gave up root may have a file of root (app/own_user.h). */
static int refuse_roots(const char *path, struct mo_err *e)
{
    return mo_fail(e, MO_EPOLICY,
                   "%s is root's and this server is not root: change it as "
                   "root, with `mcp-orchestrator mcp`",
                   path);
}

static int check_writable(const struct mo_file_edit *r, struct mo_err *e)
{
    char dir[PATH_MAX];
    char *slash;

    (void)snprintf(dir, sizeof(dir), "%s", r->path);
    slash = strrchr(dir, '/');
    if (!r->h->in.helper || !slash)
        return 0;
    slash[slash == dir] = '\0';
    if (faccessat(AT_FDCWD, dir, W_OK, AT_EACCESS) == 0 || errno == ENOENT)
        return 0;
    return refuse_roots(r->path, e);
}

static int open_file_edit(struct mo_file_edit *r,
                          const struct mo_config_holder *h, unsigned ms,
                          struct mo_err *e)
{
    int rc;

    *r = (struct mo_file_edit){.h = h, .lock = -1};
    mo_buf_init(&r->text, MO_CONFIG_FILE_MAX);
    rc = real_path(h->path, r->path, e);
    if (rc < 0 && e->sys == EACCES && h->in.helper)
        rc = refuse_roots(h->path, e);
    if (rc == 0)
        rc = check_writable(r, e);
    if (rc == 0)
        rc = take_lock(r, ms, e);
    if (rc == 0)
        rc = read_text(r, e);
    if (rc < 0)
        mo_file_edit_close(r);
    return rc;
}

int mo_file_edit_open(struct mo_file_edit *r, const struct mo_config_holder *h,
                      struct mo_err *e)
{
    return open_file_edit(r, h, MO_FILE_EDIT_LOCK_MS, e);
}

int mo_file_edit_open_now(struct mo_file_edit *r,
                          const struct mo_config_holder *h, struct mo_err *e)
{
    return open_file_edit(r, h, 0, e);
}

void mo_file_edit_close(struct mo_file_edit *r)
{
    mo_buf_wipe(&r->text);
    mo_close_fd(&r->lock);
}

int mo_file_edit_set(struct mo_file_edit *r, const char *const *path,
                     struct mo_span value, struct mo_err *e)
{
    struct mo_buf next;
    int rc;

    mo_buf_init(&next, MO_CONFIG_FILE_MAX);
    rc = value.n
             ? mo_json_edit_set(mo_buf_view(&r->text), path, value, &next, e)
             : mo_json_edit_del(mo_buf_view(&r->text), path, &next, e);
    if (rc < 0) {
        mo_buf_fini(&next);
        return mo_wrap(e, "%s", r->path);
    }
    mo_buf_wipe(&r->text);
    r->text = next;
    r->changed = true;
    return 0;
}

/* --- saving -------------------------------------------------------------- */

/* Replaces the name of the temporary file at the start of messages. */
static void rename_in_report(struct mo_config_report *rep, const char *tried,
                             const char *path)
{
    for (unsigned i = 0; i < rep->kept; i++) {
        char was[MO_CONFIG_PROBLEM_BYTES];
        struct mo_config_problem *p = &rep->v[i];

        if (!mo_span_starts(mo_span_cstr(p->text), mo_span_cstr(tried)))
            continue;
        memcpy(was, p->text, sizeof(was));
        (void)snprintf(p->text, sizeof(p->text), "%.*s%s", (int)sizeof(was) / 2,
                       path, was + strlen(tried));
    }
}

int mo_file_edit_try(struct mo_file_edit *r, struct mo_config_holder *h,
                     struct mo_config_report *rep, struct mo_err *e)
{
    struct mo_config_input in = r->h->in;
    char tried[PATH_MAX];
    int n = snprintf(tried, sizeof(tried), "%s.new", r->path);
    int rc;

    if (n < 0 || (size_t)n >= sizeof(tried))
        return mo_fail(e, MO_ETOOBIG, "%s: path too long", r->path);
    *rep = (struct mo_config_report){.kept = 0};
    rc = make_parent_dir(r->path, e);
    if (rc == 0)
        rc = mo_file_replace(tried, mo_buf_view(&r->text), e);
    if (rc < 0)
        return rc;
    in.file = tried;
    rc = mo_config_open(h, &in, rep, e);
    if (rc == 0)
        h->in.file = NULL; /* the file is removed below */
    (void)unlink(tried);
    rename_in_report(rep, tried, r->path);
    return rc;
}

static int save_backup(const struct mo_file_edit *r, mode_t mode,
                       struct mo_err *e)
{
    char path[PATH_MAX];
    mo_autowipe struct mo_buf b = {.max = MO_CONFIG_FILE_MAX};
    int n = snprintf(path, sizeof(path), "%s.bak", r->path);
    int rc;

    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "%s: path too long", r->path);
    rc = mo_file_read(r->path, MO_CONFIG_FILE_MAX, &b, NULL, e);
    if (rc == 0)
        rc = mo_file_save(path, mo_buf_view(&b), mode, e);
    return rc;
}

int mo_file_edit_save(struct mo_file_edit *r, struct mo_config_report *rep,
                      struct mo_err *e)
{
    mode_t mode = r->stamp.there ? r->stamp.mode & 0777 : 0600;
    struct mo_config_holder h;
    struct mo_file_stamp now;
    int rc = 0;

    *rep = (struct mo_config_report){.kept = 0};
    if (!r->changed)
        return 0;
    rc = mo_file_edit_try(r, &h, rep, e);
    if (rc < 0)
        return rc;
    mo_config_close(&h);
    mo_file_stamp(r->path, &now);
    if (!mo_file_same(&now, &r->stamp))
        return mo_fail(e, MO_EBUSY,
                       "%s was changed by another program meanwhile; try again",
                       r->path);
    if (r->stamp.there)
        rc = save_backup(r, mode, e);
    if (rc == 0)
        rc = mo_file_save(r->path, mo_buf_view(&r->text), mode, e);
    return rc < 0 ? rc : mo_config_written(r->h, e);
}
