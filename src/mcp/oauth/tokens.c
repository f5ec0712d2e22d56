#include "mcp/oauth/tokens.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/list.h"
#include "base/mem.h"
#include "codec/json/json.h"
#include "mcp/oauth/oauth_addr.h"

#define ENTRY_MAX ((size_t)256 * 1024)

struct entry {
    struct mo_list node; /* oldest first */
    struct mo_arena a;
    struct mo_token k;
};

struct mo_tokens {
    char *path;                        /* NULL: memory only */
    const struct mo_tokens_seal *seal; /* NULL: plain text */
    struct mo_list entries;
    size_t n;
    struct mo_file_stamp seen; /* the file when last read or written */
    bool unsaved;              /* there are changes not in the file */
    bool claimed;              /* by seal->claim() */
};

/* The texts of an entry and their names in the file. */
static const struct {
    const char *key;
    size_t at;
} fields[] = {
    {"issuer", offsetof(struct mo_token, issuer)},
    {"server", offsetof(struct mo_token, server)},
    {"resource", offsetof(struct mo_token, resource)},
    {"token_endpoint", offsetof(struct mo_token, endpoint)},
    {"revocation_endpoint", offsetof(struct mo_token, revocation)},
    {"client_id", offsetof(struct mo_token, client)},
    {"client_secret", offsetof(struct mo_token, secret)},
    {"auth_method", offsetof(struct mo_token, method)},
    {"redirect_uri", offsetof(struct mo_token, redirect)},
    {"access_token", offsetof(struct mo_token, access)},
    {"refresh_token", offsetof(struct mo_token, refresh)},
    {"scope", offsetof(struct mo_token, scope)},
    {"dpop_key", offsetof(struct mo_token, dpop)},
};

static const char **field_slot(struct mo_token *k, size_t i)
{
    return (const char **)((char *)k + fields[i].at);
}

static const char *field_text(const struct mo_token *k, size_t i)
{
    return *(const char *const *)((const char *)k + fields[i].at);
}

/* --- entries ------------------------------------------------------------- */

static void entry_free(struct entry *en)
{
    mo_list_del(&en->node);
    mo_arena_fini(&en->a);
    mo_free(en);
}

static struct entry *entry_new(const struct mo_token *k)
{
    struct entry *en = mo_new(struct entry);

    if (!en)
        return NULL;
    mo_list_init(&en->node);
    mo_arena_init(&en->a, ENTRY_MAX);
    en->k.expires_ms = k->expires_ms;
    en->k.local = k->local;
    for (size_t i = 0; i < MO_COUNT(fields); i++) {
        if (mo_oauth_copy(&en->a, field_text(k, i), field_slot(&en->k, i)) <
            0) {
            entry_free(en);
            return NULL;
        }
    }
    return en;
}

static bool is_pair(const struct mo_token *k, const char *issuer,
                    const char *server)
{
    return strcmp(k->server, server) == 0 &&
           (!issuer || strcmp(k->issuer, issuer) == 0);
}

static void drop_entries(struct mo_tokens *t, const char *issuer,
                         const char *server)
{
    mo_list_each_entry_safe (en, &t->entries, struct entry, node) {
        if (!is_pair(&en->k, issuer, server))
            continue;
        entry_free(en);
        t->n--;
    }
}

static void insert_entry(struct mo_tokens *t, struct entry *en)
{
    drop_entries(t, en->k.issuer, en->k.server);
    if (t->n == MO_TOKENS_MAX) {
        entry_free(mo_container_of(t->entries.next, struct entry, node));
        t->n--;
    }
    mo_list_push(&t->entries, &en->node);
    t->n++;
}

const struct mo_token *mo_tokens_get(const struct mo_tokens *t,
                                     const char *issuer, const char *server)
{
    const struct mo_token *found = NULL;

    mo_list_each_entry (en, &t->entries, struct entry, node) {
        if (is_pair(&en->k, issuer, server))
            found = &en->k;
    }
    return found;
}

const struct mo_token *mo_tokens_at(const struct mo_tokens *t, size_t i)
{
    mo_list_each_entry (en, &t->entries, struct entry, node) {
        if (i-- == 0)
            return &en->k;
    }
    return NULL;
}

/* --- the file ------------------------------------------------------------ */

static void write_entry(struct mo_jw *w, const struct mo_token *k)
{
    mo_jw_obj(w);
    for (size_t i = 0; i < MO_COUNT(fields); i++) {
        if (field_text(k, i))
            mo_jw_member_cstr(w, fields[i].key, field_text(k, i));
    }
    mo_jw_member_u64(w, "expires_ms", k->expires_ms);
    mo_jw_member_bool(w, "local", k->local);
    mo_jw_end(w);
}

static int write_all(const struct mo_tokens *t, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "version", 1);
    mo_jw_member_arr(&w, "tokens");
    mo_list_each (n, &t->entries)
        write_entry(&w, &mo_container_of(n, struct entry, node)->k);
    mo_jw_end_all(&w);
    return mo_buf_putc(b, '\n');
}

static int remove_file(struct mo_tokens *t, struct mo_err *e)
{
    bool was_there = unlink(t->path) == 0;
    bool failed = !was_there && errno != ENOENT;

    t->unsaved = failed;
    mo_file_stamp(t->path, &t->seen);
    if (was_there && t->seal->changed)
        t->seal->changed(t->seal->ctx, true);
    return failed ? mo_fail_sys(e, "token file %s", t->path) : 0;
}

/* The time of the file says which version is the newest, also to servers whose
 * clock is ahead: each is later than the one before. */
static void make_later(struct mo_tokens *t, const struct mo_file_stamp *before)
{
    const struct timespec *old = &before->mtime, *now = &t->seen.mtime;
    struct timespec v[2] = {{.tv_nsec = UTIME_OMIT},
                            {old->tv_sec, old->tv_nsec + 1000 * 1000}};

    if (!before->there || now->tv_sec > old->tv_sec ||
        (now->tv_sec == old->tv_sec && now->tv_nsec >= v[1].tv_nsec))
        return;
    if (v[1].tv_nsec >= 1000 * 1000 * 1000) {
        v[1].tv_sec++;
        v[1].tv_nsec -= 1000 * 1000 * 1000;
    }
    (void)utimensat(AT_FDCWD, t->path, v, AT_SYMLINK_NOFOLLOW);
    mo_file_stamp(t->path, &t->seen);
}

static int save_file(struct mo_tokens *t, struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = MO_TOKENS_FILE_MAX};
    mo_autowipe struct mo_buf sealed = {.max = 2 * MO_TOKENS_FILE_MAX};
    struct mo_file_stamp before;
    struct mo_span text;
    int rc;

    if (!t->path)
        return 0;
    if (t->seal && t->n == 0)
        return remove_file(t, e);
    rc = write_all(t, &b);
    text = mo_buf_view(&b);
    if (rc == 0 && t->seal) {
        rc = t->seal->seal(t->seal->ctx, text, &sealed, e);
        text = mo_buf_view(&sealed);
    } else if (rc < 0) {
        (void)mo_fail(e, rc, "token file %s", t->path);
    }
    if (rc == 0 && mo_file_save(t->path, text, 0600, e) < 0)
        rc = mo_wrap(e, "token file");
    t->unsaved = rc < 0;
    before = t->seen;
    mo_file_stamp(t->path, &t->seen);
    if (rc == 0 && t->seal)
        make_later(t, &before);
    if (rc == 0 && t->seal && t->seal->changed)
        t->seal->changed(t->seal->ctx, false);
    return rc;
}

static int read_entry(struct mo_tokens *t, struct mo_json v)
{
    struct mo_token k = {.expires_ms = 0};
    struct entry *en = NULL;
    mo_autoarena struct mo_arena a = {.cap = ENTRY_MAX};
    int rc = 0;

    for (size_t i = 0; i < MO_COUNT(fields) && rc == 0; i++) {
        struct mo_json f = mo_json_get(v, fields[i].key);
        struct mo_span s;

        if (!mo_json_is(f, MO_JSON_STRING))
            continue;
        rc = mo_json_str(f, &a, &s);
        if (rc == 0)
            rc = mo_oauth_keep(&a, s, field_slot(&k, i));
    }
    (void)mo_json_u64(mo_json_get(v, "expires_ms"), &k.expires_ms);
    k.local = mo_json_flag(v, "local");
    if (rc == 0 && (!k.issuer || !k.server))
        rc = MO_EPROTO;
    if (rc == 0)
        en = entry_new(&k);
    if (en)
        insert_entry(t, en);
    else if (rc == 0)
        rc = MO_ENOMEM;
    return rc;
}

static int read_text(struct mo_tokens *t, struct mo_span text, struct mo_err *e)
{
    struct mo_json_doc doc;
    int rc = mo_json_parse(text, 8, &doc,
                           NULL); /* the parser's error may quote secrets */

    if (rc < 0)
        return mo_fail(e, rc, "token file %s is malformed", t->path);
    mo_json_each_while (m, mo_json_get(doc.root, "tokens"), rc == 0)
        rc = read_entry(t, m.val);
    return rc < 0 ? mo_fail(e, rc, "token file %s", t->path) : 0;
}

static int read_fd(struct mo_tokens *t, int fd, struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = 2 * MO_TOKENS_FILE_MAX};
    mo_autowipe struct mo_buf plain = {.max = 2 * MO_TOKENS_FILE_MAX};
    ssize_t n = 1;

    while (n > 0) {
        char *room = mo_buf_room(&b, 4096);

        n = room ? read(fd, room, 4096) : 0;
        if (n > 0)
            mo_buf_add(&b, (size_t)n);
    }
    if (n < 0)
        return mo_fail_sys(e, "token file %s", t->path);
    if (mo_buf_err(&b))
        return mo_fail(e, mo_buf_err(&b), "token file %s", t->path);
    if (!b.len || !t->seal)
        return b.len ? read_text(t, mo_buf_view(&b), e) : 0;
    if (t->seal->open(t->seal->ctx, mo_buf_view(&b), &plain, e) < 0)
        return mo_wrap(e, "token file %s", t->path);
    return read_text(t, mo_buf_view(&plain), e);
}

static int load_file(struct mo_tokens *t, struct mo_err *e)
{
    mo_autofd int fd = -1;
    struct stat st;

    mo_file_stamp(t->path, &t->seen); /* a change from here on is seen */
    fd = open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &st) < 0)
        return mo_fail_sys(e, "token file %s", t->path);
    if (!S_ISREG(st.st_mode) || (st.st_mode & 077) || st.st_uid != geteuid())
        return mo_fail(
            e, MO_EPOLICY,
            "token file %s must be readable by its owner only (chmod 600)",
            t->path);
    return read_fd(t, fd, e);
}

/* --- other processes ----------------------------------------------------- */

static bool is_seen(const struct mo_tokens *t)
{
    struct mo_file_stamp now;

    mo_file_stamp(t->path, &now);
    if (!now.there)
        return !t->seal || !t->seen.there;
    return mo_file_same(&now, &t->seen);
}

bool mo_tokens_unsaved(const struct mo_tokens *t)
{
    return t->unsaved;
}

void mo_tokens_sync(struct mo_tokens *t)
{
    struct mo_tokens *now = NULL;

    if (!t->path || t->unsaved || is_seen(t) ||
        mo_tokens_open_sealed(t->path, t->seal, &now, NULL) < 0 || !now)
        return;
    mo_list_each_safe (n, &t->entries)
        entry_free(mo_container_of(n, struct entry, node));
    mo_list_splice(&t->entries, &now->entries);
    t->n = now->n;
    t->seen = now->seen;
    mo_tokens_close(now);
}

/* Locks the current file: the file that replaces it, which ends the claim, is
 * another one. */
int mo_tokens_claim(struct mo_tokens *t, int *fd)
{
    mo_autofd int f =
        t->path ? open(t->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;

    *fd = -1;
    if (f >= 0 && flock(f, LOCK_EX | LOCK_NB) < 0)
        return errno == EWOULDBLOCK ? MO_EBUSY : 0;
    if (t->seal && t->seal->claim && !t->claimed) {
        if (t->seal->claim(t->seal->ctx) == MO_EBUSY)
            return MO_EBUSY;
        t->claimed = true;
    }
    *fd = mo_take_fd(&f);
    return 0;
}

void mo_tokens_unclaim(struct mo_tokens *t, int *fd)
{
    mo_close_fd(fd);
    if (!t || !t->claimed)
        return;
    t->claimed = false;
    t->seal->unclaim(t->seal->ctx);
}

/* Returns the descriptor that holds the lock; -1: continue without one. */
static int lock_dir(const struct mo_tokens *t)
{
    return t->path ? mo_file_lock(t->path, MO_TOKENS_LOCK_MS, NULL) : -1;
}

/* --- the store ----------------------------------------------------------- */

int mo_tokens_open(const char *path, struct mo_tokens **out, struct mo_err *e)
{
    return mo_tokens_open_sealed(path, NULL, out, e);
}

int mo_tokens_open_sealed(const char *path, const struct mo_tokens_seal *seal,
                          struct mo_tokens **out, struct mo_err *e)
{
    struct mo_tokens *t = mo_new(struct mo_tokens);
    int rc = 0;

    if (!t)
        return mo_fail(e, MO_ENOMEM, "tokens");
    mo_list_init(&t->entries);
    t->seal = seal;
    if (path) {
        t->path = mo_strndup(path, strlen(path));
        rc = t->path ? load_file(t, e) : mo_fail(e, MO_ENOMEM, "tokens");
    }
    if (rc < 0)
        mo_tokens_close(t);
    else
        *out = t;
    return rc;
}

void mo_tokens_close(struct mo_tokens *t)
{
    if (!t)
        return;
    mo_list_each_safe (n, &t->entries)
        entry_free(mo_container_of(n, struct entry, node));
    mo_free(t->path);
    mo_free(t);
}

int mo_tokens_put(struct mo_tokens *t, const struct mo_token *k,
                  struct mo_err *e)
{
    mo_autofd int held = lock_dir(t);
    struct entry *en =
        entry_new(k); /* k may point into the entry that is replaced */

    (void)held; /* until we return */
    if (!en)
        return mo_fail(e, MO_ENOMEM, "tokens");
    mo_tokens_sync(t);
    insert_entry(t, en);
    return save_file(t, e);
}

int mo_tokens_drop(struct mo_tokens *t, const char *issuer, const char *server,
                   struct mo_err *e)
{
    mo_autofd int held = lock_dir(t);

    (void)held; /* until we return */
    mo_tokens_sync(t);
    drop_entries(t, issuer, server);
    return save_file(t, e);
}
