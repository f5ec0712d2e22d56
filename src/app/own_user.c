#include "app/own_user.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/listen_auth.h"
#include "base/mem.h"
#include "config/listen.h"
#include "config/state_dir.h"
#include "connect/box_drivers.h"
#include "loop/rights.h"

#define PASSWD_MAX ((size_t)1024 * 1024)

enum file { FILE_CONFIG, FILE_DOTENV, FILE_CERT, FILE_KEY };

/* --- who ------------------------------------------------------------------ */

static int read_passwd(struct mo_buf *text, struct mo_err *e)
{
    int rc = mo_file_read(MO_PASSWD_FILE, PASSWD_MAX, text, NULL, e);

    return rc == MO_ENOTFOUND ? 0 : rc;
}

/* Its number is ours only if no other user has it. */
static int find_own(struct mo_span passwd, uid_t *uid, struct mo_err *e)
{
    struct mo_passwd row;

    *uid = MO_OWN_USER_ID;
    if (mo_passwd_find(passwd, MO_OWN_USER_NAME, 0, &row))
        *uid = row.uid;
    else if (mo_passwd_find(passwd, NULL, MO_OWN_USER_ID, &row))
        return mo_fail(e, MO_EPOLICY,
                       "user id %d belongs to %s: make a user for this program "
                       "with `useradd --system " MO_OWN_USER_NAME "`",
                       MO_OWN_USER_ID, row.name);
    return 0;
}

static int find_user(struct mo_own_user *u, const struct mo_config *c,
                     struct mo_span passwd, struct mo_passwd *who,
                     struct mo_err *e)
{
    struct mo_own_user_facts f = {.dir = c->store.dir,
                                  .is_asked = c->server.user != NULL};
    struct stat st;
    int rc = 0;

    f.exists = stat(f.dir, &st) == 0;
    f.owner = f.exists ? st.st_uid : 0;
    f.is_system_dir = strcmp(f.dir, MO_STATE_DIR_STATE) == 0;
    if (f.is_asked) {
        rc = mo_own_user_read(passwd, c->server.user, who, e);
        f.asked = who->uid;
    }
    if (rc == 0 && f.is_system_dir && !f.exists && !f.is_asked)
        rc = find_own(passwd, &f.own, e);
    if (rc == 0)
        rc = mo_own_user_decide(&f, &u->uid, e);
    u->is_asked_root = f.is_asked && f.asked == 0;
    if (rc < 0 || u->uid == 0)
        return rc;
    if (!mo_passwd_find(passwd, NULL, u->uid, who))
        *who = (struct mo_passwd){.uid = u->uid, .gid = (gid_t)u->uid};
    /* files of the group root are not for a user of its own */
    u->gid = who->gid ? who->gid : (gid_t)u->uid;
    return 0;
}

/* --- directories ---------------------------------------------------------- */

/* Missing parents are root's, and others may search them. */
static int make_parents(const char *path, struct mo_err *e)
{
    char part[PATH_MAX];
    size_t n = strlen(path);

    if (n >= sizeof(part))
        return mo_fail(e, MO_ETOOBIG, "%s: too long", path);
    for (size_t i = 1; i < n; i++) {
        if (path[i] != '/')
            continue;
        (void)snprintf(part, sizeof(part), "%.*s", (int)i, path);
        if (mkdir(part, 0755) < 0 && errno != EEXIST)
            return mo_fail_sys(e, "directory %s", part);
    }
    return 0;
}

/* Makes it for the user unless it exists. */
static int make_dir(const struct mo_own_user *u, const char *path,
                    struct mo_err *e)
{
    mode_t mask = umask(022);
    int rc = make_parents(path, e), made;
    mo_autofd int fd = -1;

    made = rc == 0 ? mkdir(path, 0700) : -1;
    if (rc == 0 && made < 0 && errno != EEXIST)
        rc = mo_fail_sys(e, "directory %s", path);
    (void)umask(mask);
    if (rc < 0 || made < 0)
        return rc;
    fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchown(fd, u->uid, u->gid) < 0)
        return mo_fail_sys(e, "directory %s", path);
    return 0;
}

static bool is_users(const struct mo_own_user *u, const char *dir)
{
    struct stat st;

    return dir && dir[0] == '/' && stat(dir, &st) == 0 && S_ISDIR(st.st_mode) &&
           st.st_uid == u->uid;
}

/* HOME if it is the user's, else that of /etc/passwd, else a directory beside
 * the state directory. */
static int find_home(struct mo_own_user *u, const struct mo_config *c,
                     const struct mo_passwd *who, struct mo_err *e)
{
    const char *home = mo_config_find_env(c->environ, "HOME");
    size_t n = strlen(c->store.dir);
    struct stat st;
    int rc;

    if (!is_users(u, home))
        home = is_users(u, who->home) ? who->home : NULL;
    if (home) {
        (void)snprintf(u->home, sizeof(u->home), "%s", home);
        return 0;
    }
    while (n > 1 && c->store.dir[n - 1] == '/')
        n--;
    (void)snprintf(u->home, sizeof(u->home), "%.*s.home", (int)n, c->store.dir);
    if (strcmp(c->store.dir, MO_STATE_DIR_STATE) == 0)
        (void)snprintf(u->home, sizeof(u->home), MO_STATE_DIR_HOME);
    rc = make_dir(u, u->home, e);
    if (rc == 0 && (lstat(u->home, &st) < 0 || !S_ISDIR(st.st_mode) ||
                    st.st_uid != u->uid))
        rc = mo_fail(e, MO_EPOLICY,
                     "%s must be a directory of user %u: it is the HOME of "
                     "servers",
                     u->home, (unsigned)u->uid);
    return rc;
}

static int make_dirs(struct mo_own_user *u, const struct mo_config *c,
                     const struct mo_passwd *who, struct mo_err *e)
{
    int rc = make_dir(u, c->store.dir, e);

    if (rc == 0)
        rc = find_home(u, c, who, e);
    return rc < 0 ? mo_wrap(e,
                            "no place for the state of user %u (set "
                            "MCP_ORCHESTRATOR_STATE_DIR to another)",
                            (unsigned)u->uid)
                  : 0;
}

/* --- what needs root ------------------------------------------------------ */

/* "" if there is none or it is too long. */
static void absolute(const struct mo_own_user *u, const char *path,
                     char out[PATH_MAX])
{
    bool is_full = !path || path[0] == '/';
    int n = snprintf(out, PATH_MAX, "%s%s%s", is_full ? "" : u->cwd,
                     is_full ? "" : "/", path ? path : "");

    if (n < 0 || n >= PATH_MAX)
        out[0] = '\0';
}

static int start_helper(struct mo_own_user *u, const struct mo_config_holder *h,
                        struct mo_err *e)
{
    const struct mo_config *c = h->now;
    char boxes[PATH_MAX];
    struct mo_privileged_opts o = {.uid = u->uid,
                                   .gid = u->gid,
                                   .dir = boxes,
                                   .launcher = mo_box_drivers_launcher()};
    int n = snprintf(boxes, sizeof(boxes), "%s/boxes", u->state_dir);

    if (n < 0 || (size_t)n >= sizeof(boxes))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    absolute(u, h->path, u->files[FILE_CONFIG]);
    absolute(u, ".env", u->files[FILE_DOTENV]);
    absolute(u, c->server.tls.cert, u->files[FILE_CERT]);
    absolute(u, c->server.tls.key, u->files[FILE_KEY]);
    for (size_t i = 0; i < MO_PRIVILEGED_FILES; i++)
        o.files[i] = u->files[i][0] ? u->files[i] : NULL;
    return mo_privileged_start(&o, &u->helper, &u->helper_pid, e);
}

/* A unix socket must be the user's: clients of that user connect to it. */
static int bind_address(struct mo_own_user *u, const struct mo_config_server *c,
                        struct mo_err *e)
{
    int rc = mo_listen_auth_bind(c, u->listeners, e);

    if (rc < 0)
        return rc;
    (void)snprintf(u->listen, sizeof(u->listen), "%s", c->listen);
    u->port = c->port;
    u->workers = c->workers;
    if (mo_listen_is_unix(c->listen) &&
        lchown(c->listen + strlen("unix:"), u->uid, u->gid) < 0)
        return mo_fail_sys(e, "%s", c->listen);
    return 0;
}

/* The group of the engine's socket, if only an engine can make the boxes. In
 * such a group a server is root's equal, so a native box is preferred. */
static size_t find_docker_group(const struct mo_config *c, gid_t *out)
{
    const char *host = c->sandbox.docker_host, *image = c->sandbox.image;
    struct mo_span path;
    struct stat st;

    if (c->sandbox.driver != MO_DRIVER_DOCKER &&
        (c->sandbox.driver != MO_DRIVER_AUTO || !image || image[0] == '/'))
        return 0;
    if (!host)
        host = mo_config_getenv(c, "DOCKER_HOST");
    path = mo_span_cstr(host ? host : "unix:///var/run/docker.sock");
    if (!mo_span_strip(&path, MO_SPAN("unix://")) || stat(path.p, &st) < 0 ||
        !S_ISSOCK(st.st_mode) || st.st_gid == 0 || !(st.st_mode & S_IWGRP))
        return 0;
    *out = st.st_gid;
    return 1;
}

static bool may_setuid(const struct mo_config *c)
{
    for (size_t i = 0; i < c->mcp.n; i++)
        if (!c->mcp.v[i].isolate)
            return true;
    return false;
}

int mo_own_user_reduce(const struct mo_config *c, struct mo_err *e)
{
    return mo_rights_reduce(may_setuid(c), e);
}

static int open_for_root(struct mo_own_user *u, struct mo_config_holder *h,
                         bool serves, struct mo_err *e)
{
    const char *dir = h->now->store.dir;

    if (!getcwd(u->cwd, sizeof(u->cwd)))
        return mo_fail_sys(e, "the working directory");
    absolute(u, dir, u->state_dir);
    if (mo_own_user_reduce(h->now, &u->rights) == 0)
        u->rights.code = 0;
    if (serves && bind_address(u, &h->now->server, e) < 0)
        return e->code;
    return start_helper(u, h, e);
}

/* --- as the user ---------------------------------------------------------- */

static int set_environment(const struct mo_own_user *u,
                           const struct mo_passwd *who, struct mo_err *e)
{
    static const char *const roots[] = {"XDG_CONFIG_HOME", "XDG_STATE_HOME",
                                        "XDG_CACHE_HOME", "XDG_DATA_HOME",
                                        "XDG_RUNTIME_DIR"};
    const char *home = getenv("HOME");
    int rc = 0;

    if (home && strcmp(home, u->home) == 0)
        return 0;
    for (size_t i = 0; i < MO_COUNT(roots); i++)
        rc |= unsetenv(roots[i]);
    rc |= setenv("HOME", u->home, 1);
    rc |= who->name[0] ? setenv("USER", who->name, 1) : unsetenv("USER");
    rc |= who->name[0] ? setenv("LOGNAME", who->name, 1) : unsetenv("LOGNAME");
    return rc < 0 ? mo_fail_sys(e, "environment") : 0;
}

/* Files that an earlier server of root left there. */
static int check_entries(const struct mo_own_user *u, struct mo_err *e)
{
    DIR *d = opendir(u->state_dir);
    struct dirent *en = NULL;
    int rc = 0;

    if (!d)
        return mo_fail_sys(e, "%s", u->state_dir);
    for (en = readdir(d); rc == 0 && en; en = readdir(d))
        if (strcmp(en->d_name, "..") != 0 &&
            faccessat(dirfd(d), en->d_name, R_OK, AT_EACCESS) < 0 &&
            errno == EACCES)
            rc = mo_fail(e, MO_EPOLICY,
                         "user %u owns the state directory but cannot read %s "
                         "in it: `chown -R %u: %s`",
                         (unsigned)u->uid, en->d_name, (unsigned)u->uid,
                         u->state_dir);
    closedir(d);
    return rc;
}

/* It would be missed only when somebody needs it. */
static int check_anchor(const struct mo_own_user *u, const struct mo_config *c,
                        struct mo_err *e)
{
    struct mo_span path = mo_span_cstr(c->audit.anchor);
    mo_autofd int fd = -1;

    if (!mo_span_strip(&path, MO_SPAN("file:")))
        return 0;
    fd = open(path.p, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        return 0;
    return mo_fail_sys(e,
                       "audit.anchor: user %u cannot write %s; change its "
                       "owner",
                       (unsigned)u->uid, path.p);
}

/* A server starts in the working directory, so the user must reach it. */
static int enter_dirs(const struct mo_own_user *u, struct mo_err *e)
{
    if (faccessat(AT_FDCWD, u->state_dir, R_OK | W_OK | X_OK, AT_EACCESS) < 0)
        return mo_fail(e, MO_EPOLICY,
                       "user %u cannot reach the state directory %s: let "
                       "others search the directories above it (chmod o+x), or "
                       "set store.dir to another place",
                       (unsigned)u->uid, u->state_dir);
    if (faccessat(AT_FDCWD, u->cwd, R_OK | X_OK, AT_EACCESS) < 0 &&
        chdir(u->home) < 0)
        return mo_fail_sys(e, "%s", u->home);
    return check_entries(u, e);
}

static int reopen(void *ctx, const char *path, struct mo_buf *out,
                  struct mo_file_stamp *stamp, struct mo_err *e)
{
    const struct mo_own_user *u = ctx;
    mo_autofd int content = -1;
    char step[4096];
    ssize_t n = 1;
    unsigned i = 0;
    int rc;

    while (i < MO_PRIVILEGED_FILES && strcmp(path, u->files[i]) != 0)
        i++;
    rc = mo_privileged_open(u->helper, i, out == NULL, stamp, &content, e);
    for (off_t at = 0; rc == 0 && out && n > 0; at += n) {
        n = pread(content, step, sizeof(step), at);
        if (n < 0)
            rc = mo_fail_sys(e, "%s", path);
        else if (n > 0 && mo_buf_put(out, step, (size_t)n) < 0)
            rc = mo_fail(e, mo_buf_err(out), "%s: too big", path);
    }
    explicit_bzero(step, sizeof(step));
    return rc;
}

/* Root's file, if there is one, else the user's own. */
static int load_again(struct mo_own_user *u, struct mo_config_holder *h,
                      struct mo_config_report *rep, struct mo_err *e)
{
    h->in.environ = environ;
    h->in.dir = u->cwd;
    h->in.trusts_dir |= h->uses_dotenv; /* root has confirmed it */
    h->in.state_dir = u->state_dir;
    h->in.helper = u->helper;
    h->in.reopen = reopen;
    h->in.ctx = u;
    h->generation = 0;
    if (h->file.there || h->named) {
        (void)snprintf(h->path, sizeof(h->path), "%s", u->files[FILE_CONFIG]);
    } else {
        h->is_dirs = false;
        (void)mo_config_home(environ, "config.json", h->path);
    }
    return mo_config_reload(h, rep, e);
}

static int change_user(struct mo_own_user *u, struct mo_config_holder *h,
                       const struct mo_passwd *who, bool serves,
                       struct mo_err *e)
{
    gid_t groups[1];
    size_t n = find_docker_group(h->now, groups);
    bool setuids = may_setuid(h->now);
    int rc = make_dirs(u, h->now, who, e);

    if (rc == 0)
        rc = open_for_root(u, h, serves, e);
    if (rc == 0)
        rc = set_environment(u, who, e);
    if (rc < 0)
        return rc;
    if (mo_rights_become(u->uid, u->gid, groups, n, setuids, e) < 0)
        return mo_wrap(e, "cannot give up root (`serve --user root` keeps it)");
    rc = enter_dirs(u, e);
    return rc < 0 || !serves ? rc : check_anchor(u, h->now, e);
}

/* server.user for somebody who cannot change the user. */
static int check_same_user(const struct mo_config *c, struct mo_span passwd,
                           struct mo_err *e)
{
    struct mo_passwd who;
    int rc = mo_own_user_read(passwd, c->server.user, &who, e);

    if (rc < 0 || who.uid == geteuid())
        return rc;
    return mo_fail(e, MO_EPOLICY,
                   "server.user is %s, and only root can become another user: "
                   "start it as root or as %s, or leave it out",
                   c->server.user, c->server.user);
}

int mo_own_user_enter(struct mo_own_user *u, struct mo_config_holder *h,
                      const struct mo_own_user_opts *o,
                      struct mo_config_report *rep, struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = PASSWD_MAX};
    struct mo_passwd who;
    int rc;

    *rep = (struct mo_config_report){.kept = 0};
    if (geteuid() != 0 && (!o->serves || !h->now->server.user))
        return 0;
    if (read_passwd(&text, e) < 0)
        return e->code;
    if (geteuid() != 0)
        return check_same_user(h->now, mo_buf_view(&text), e);
    rc = find_user(u, h->now, mo_buf_view(&text), &who, e);
    u->stays_root =
        rc == 0 && (u->uid == 0 || (o->keeps_root && h->file.there));
    if (rc < 0 || u->stays_root)
        return rc;
    rc = change_user(u, h, &who, o->serves, e);
    if (rc < 0)
        return rc;
    u->changed = true;
    return load_again(u, h, rep, e);
}

void mo_own_user_close(struct mo_own_user *u)
{
    if (u->helper)
        (void)close(u->helper);
    for (size_t i = 0; i < MO_COUNT(u->listeners); i++)
        if (u->listeners[i])
            (void)close(u->listeners[i]);
    u->helper = 0;
    memset(u->listeners, 0, sizeof(u->listeners));
}

/* --- while it runs -------------------------------------------------------- */

bool mo_own_user_listeners(struct mo_own_user *u,
                           const struct mo_config_server *c,
                           int fds[MO_CONFIG_WORKERS_MAX])
{
    if (!u->listeners[0] || c->port != u->port || c->workers != u->workers ||
        strcmp(c->listen, u->listen) != 0)
        return false;
    memcpy(fds, u->listeners, sizeof(u->listeners));
    memset(u->listeners, 0, sizeof(u->listeners));
    return true;
}

void mo_own_user_file(const struct mo_own_user *u, const char *path, int *fd,
                      char out[PATH_MAX])
{
    struct mo_file_stamp stamp;

    *fd = -1;
    (void)snprintf(out, PATH_MAX, "%s", path);
    if (!u->changed)
        return;
    absolute(u, path, out); /* the working directory may be another now */
    if (access(out, R_OK) == 0 || errno != EACCES)
        return;
    for (unsigned i = 0; i < MO_PRIVILEGED_FILES; i++) {
        if (strcmp(out, u->files[i]) != 0)
            continue;
        if (mo_privileged_open(u->helper, i, false, &stamp, fd, NULL) == 0)
            (void)snprintf(out, PATH_MAX, "/proc/self/fd/%d", *fd);
        return;
    }
}

int mo_own_user_stay(struct mo_own_user *u, const struct mo_config *c,
                     struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = PASSWD_MAX};
    struct mo_passwd who;
    int rc;

    if (geteuid() != 0)
        return 0;
    rc = read_passwd(&text, e);
    if (rc == 0)
        rc = find_user(u, c, mo_buf_view(&text), &who, e);
    if (rc == 0 && u->uid != 0)
        rc = make_dirs(u, c, &who, e);
    u->stays_root = rc == 0;
    return rc;
}

void mo_own_user_begin(const struct mo_own_user *u)
{
    if (u->stays_root && u->uid != 0 &&
        (setegid(u->gid) < 0 || seteuid(u->uid) < 0))
        abort();
}

void mo_own_user_end(const struct mo_own_user *u)
{
    if (u->stays_root && u->uid != 0 && (seteuid(0) < 0 || setegid(0) < 0))
        abort();
}
