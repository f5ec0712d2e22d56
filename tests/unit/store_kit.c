/* store_kit.c - starts the backends of store_kit.h and waits for answers. */
#include "store_kit.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a redis-server of our own ------------------------------------------- */

#define REDIS_SERVER "/usr/bin/redis-server"

static bool redis_answers(const char *dir)
{
    char path[96];

    (void)snprintf(path, sizeof(path), "%s/redis.sock", dir);
    return access(path, F_OK) == 0;
}

pid_t redis_start(const char *dir)
{
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        char sock[96];
        int fd = open("/dev/null", O_WRONLY | O_CLOEXEC);

        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        (void)snprintf(sock, sizeof(sock), "%s/redis.sock", dir);
        (void)dup2(fd, 1);
        (void)execl(REDIS_SERVER, REDIS_SERVER, "--port", "0", "--unixsocket",
                    sock, "--dir", dir, "--appendonly", "yes", "--appendfsync",
                    "always", "--save", "", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 2000 && !redis_answers(dir); i++)
        (void)usleep(10000);
    assert_true(redis_answers(dir));
    return pid;
}

void redis_stop(pid_t *pid)
{
    if (*pid <= 0)
        return;
    (void)kill(*pid, SIGKILL);
    (void)waitpid(*pid, NULL, 0);
    *pid = 0;
}

/* A missing part is a named skip; scripts/test makes it a failure in CI. */
static void need_redis(void)
{
    if (access(REDIS_SERVER, X_OK) == 0)
        return;
    (void)printf("redis-server\n");
    skip();
}

/* Directories of this process, removed at exit if a failed test left them.
 * The servers die with the test. A forked child removes nothing. */
static struct {
    pid_t owner;
    size_t n;
    char dirs[64][64];
} made;

static int rm_one(const char *p, const struct stat *st, int flag, struct FTW *f)
{
    (void)st;
    (void)flag;
    (void)f;
    return remove(p);
}

static void dir_remove(const char *dir)
{
    (void)nftw(dir, rm_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void clear_away(void)
{
    for (size_t i = 0; made.owner == getpid() && i < made.n; i++)
        dir_remove(made.dirs[i]);
}

/* --- opening and closing ------------------------------------------------- */

static void dir_make(char *dir, size_t n)
{
    (void)snprintf(dir, n, "/tmp/mo-store-XXXXXX");
    assert_non_null(mkdtemp(dir));
    if (!made.owner)
        (void)atexit(clear_away);
    made.owner = getpid();
    if (made.n < MO_COUNT(made.dirs))
        (void)snprintf(made.dirs[made.n++], sizeof(made.dirs[0]), "%s", dir);
}

void kit_text(struct mo_span doc, struct mo_buf *out)
{
    (void)mo_span_cut(&doc, '|');
    if (doc.p)
        mo_buf_span(out, doc);
}

void fix_prepare(struct fix *f, const struct backend *b)
{
    memset(f, 0, sizeof(*f));
    f->b = b;
    if (b->redis)
        need_redis();
    dir_make(f->dir, sizeof(f->dir));
    if (b->redis) {
        f->server = redis_start(f->dir);
        (void)snprintf(f->url, sizeof(f->url), "redis+unix:%s/redis.sock",
                       f->dir);
    } else {
        (void)snprintf(f->url, sizeof(f->url), "sqlite:%s/store.db", f->dir);
    }
    f->o.url = f->url;
    f->o.deadline_ms = 30000;
    f->o.text_of = kit_text;
    mo_arena_init(&f->mem, (size_t)256 * 1024 * 1024);
}

void fix_open(struct fix *f)
{
    struct mo_err e;

    f->gone = false;
    f->l = mo_loop_new(NULL, &e);
    assert_non_null(f->l);
    if (mo_store_open(f->l, &f->o, &f->s, &e) < 0)
        fail_msg("open: %s", e.msg);
}

void fix_init(struct fix *f, const struct backend *b)
{
    fix_prepare(f, b);
    fix_open(f);
}

void kit_gone(void *ctx)
{
    ((struct fix *)ctx)->gone = true;
}

bool kit_is_gone(void *ctx)
{
    return ((struct fix *)ctx)->gone;
}

void fix_close(struct fix *f)
{
    mo_store_close(f->s, kit_gone, f);
    assert_true(mo_loop_until(f->l, kit_is_gone, f, LONG));
    f->s = NULL;
    mo_loop_free(f->l);
    f->l = NULL;
}

void fix_fini(struct fix *f)
{
    if (f->s)
        fix_close(f);
    redis_stop(&f->server);
    mo_arena_fini(&f->mem);
    dir_remove(f->dir);
}

/* --- calls that wait ----------------------------------------------------- */

static bool kit_done(void *ctx)
{
    return ((struct fix *)ctx)->done;
}

static int kit_wait(struct fix *f)
{
    assert_true(mo_loop_until(f->l, kit_done, f, LONG));
    if (f->code == MO_EUNAVAIL && getenv("MO_TEST_SAY"))
        print_message("%s\n", f->msg);
    return f->code;
}

static void kit_note(struct fix *f, const struct mo_err *why)
{
    assert_false(f->done); /* exactly once */
    f->done = true;
    f->code = why ? why->code : 0;
    (void)snprintf(f->msg, sizeof(f->msg), "%s", why ? why->msg : "");
}

static void kit_written(void *ctx, const struct mo_written *w,
                        const struct mo_err *why)
{
    struct fix *f = ctx;

    f->w = *w;
    kit_note(f, why);
}

int put(struct fix *f, const char *session, uint64_t fence,
        const struct mo_write *w, size_t n)
{
    struct mo_store_batch b = {mo_span_cstr(session), fence, w, n};
    struct mo_err e;
    int rc;

    f->done = false;
    rc = mo_store_write(f->s, &b, kit_written, f, &e);
    return rc < 0 ? rc : kit_wait(f);
}

static struct mo_span kit_copy(struct fix *f, struct mo_span s)
{
    char *p = mo_arena_strndup(&f->mem, s.p, s.n);

    assert_non_null(p);
    return mo_span(p, s.n);
}

void kit_rows(void *ctx, const struct mo_rows *rows, const struct mo_err *why)
{
    struct fix *f = ctx;

    f->n = rows->n;
    f->more = rows->more;
    f->rows = mo_arena_alloc(&f->mem, (rows->n + 1) * sizeof(*f->rows));
    assert_non_null(f->rows);
    for (size_t i = 0; i < rows->n; i++) {
        f->rows[i] = rows->v[i];
        f->rows[i].session = kit_copy(f, rows->v[i].session);
        f->rows[i].id = kit_copy(f, rows->v[i].id);
        f->rows[i].doc = kit_copy(f, rows->v[i].doc);
        f->rows[i].shares = kit_copy(f, rows->v[i].shares);
    }
    kit_note(f, why);
}

int get(struct fix *f, struct mo_read r)
{
    struct mo_err e;
    int rc;

    f->done = false;
    f->n = 0;
    mo_arena_reset(&f->mem);
    rc = mo_store_read(f->s, &r, kit_rows, f, &e);
    return rc < 0 ? rc : kit_wait(f);
}

bool row_is(const struct fix *f, size_t i, const char *doc)
{
    return i < f->n && mo_span_is(f->rows[i].doc, doc);
}

static void kit_who(void *ctx, struct mo_span owner, uint64_t fence,
                    const struct mo_err *why)
{
    struct fix *f = ctx;

    (void)snprintf(f->owner, sizeof(f->owner), "%.*s", (int)owner.n,
                   owner.n ? owner.p : "");
    f->fence = fence;
    kit_note(f, why);
}

int who(struct fix *f, const char *name)
{
    struct mo_err e;
    int rc;

    f->done = false;
    rc = mo_lease_holder(f->s, mo_span_cstr(name), kit_who, f, &e);
    return rc < 0 ? rc : kit_wait(f);
}

/* --- leases -------------------------------------------------------------- */

static void kit_held(void *ctx, struct mo_lease *l, uint64_t fence,
                     const struct mo_err *why)
{
    struct held *h = ctx;
    static unsigned order;

    h->answered++;
    h->order = ++order;
    h->fence = fence;
    h->code = why ? why->code : 0;
    (void)snprintf(h->msg, sizeof(h->msg), "%s", why ? why->msg : "");
    if (why)
        h->lease = NULL;
    else
        assert_ptr_equal(l, h->lease);
}

static void kit_lost(void *ctx, const struct mo_err *why)
{
    struct held *h = ctx;

    h->lost++;
    h->lease = NULL;
    h->code = why->code;
}

void take(struct fix *f, struct held *h, const char *name, const char *owner,
          uint64_t wait_ms)
{
    static const struct mo_lease_cb cb = {kit_held, kit_lost};
    struct mo_err e;

    *h = (struct held){.f = f};
    if (mo_lease_take(f->s, mo_span_cstr(name), mo_span_cstr(owner), wait_ms,
                      &cb, h, &h->lease, &e) < 0)
        fail_msg("take: %s", e.msg);
    assert_int_equal(h->answered, 0); /* never from inside */
}

bool kit_answered(void *ctx)
{
    return ((struct held *)ctx)->answered > 0;
}

bool kit_has_lost(void *ctx)
{
    return ((struct held *)ctx)->lost > 0;
}

int take_wait(struct fix *f, struct held *h, const char *name,
              const char *owner, uint64_t wait_ms)
{
    take(f, h, name, owner, wait_ms);
    assert_true(mo_loop_until(f->l, kit_answered, h, LONG));
    return h->code;
}
