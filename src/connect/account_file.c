#include "connect/account_file.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

#define NAMES_MAX   ((size_t)4096)
#define CONTENT_MAX (2 * MO_TOKENS_FILE_MAX)

/* --- names ---------------------------------------------------------------- */

static void put_name(struct mo_buf *b, struct mo_span name)
{
    for (unsigned i = 0; i < 4; i++)
        (void)mo_buf_putc(b, (char)(name.n >> (8 * i) & 0xff));
    (void)mo_buf_span(b, name);
}

static bool take_name(struct mo_span *from, struct mo_span *out)
{
    size_t n = 0;

    if (from->n < 4)
        return false;
    for (unsigned i = 0; i < 4; i++)
        n |= (size_t)(unsigned char)from->p[i] << (8 * i);
    *from = mo_span_skip(*from, 4);
    if (from->n < n)
        return false;
    *out = mo_span_take(from, n);
    return true;
}

/* what: separates the files of persons and of clients. */
static int put_names(struct mo_buf *b, char what, struct mo_span server,
                     struct mo_span person)
{
    (void)mo_buf_putc(b, what);
    put_name(b, server);
    put_name(b, person);
    return mo_buf_err(b);
}

#define PERSON 'p'
#define CLIENT 'c'

void mo_account_key(struct mo_span server, struct mo_span person,
                    char out[MO_SHA256_HEX + 1])
{
    unsigned char sum[MO_SHA256_LEN];
    const struct mo_span v[] = {server, person};
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, "p", 1);
    for (size_t i = 0; i < MO_COUNT(v); i++) {
        const unsigned char n[] = {
            (unsigned char)v[i].n, (unsigned char)(v[i].n >> 8),
            (unsigned char)(v[i].n >> 16), (unsigned char)(v[i].n >> 24)};

        mo_sha256_put(&h, n, sizeof(n));
        mo_sha256_put(&h, v[i].p, v[i].n);
    }
    mo_sha256_end(&h, sum);
    mo_hex(sum, sizeof(sum), out);
}

bool mo_account_is_key(const char *name)
{
    return strspn(name, "0123456789abcdef") == MO_SHA256_HEX &&
           !name[MO_SHA256_HEX];
}

int mo_account_path(const struct mo_config *c, const char *key,
                    char out[PATH_MAX])
{
    int n =
        snprintf(out, PATH_MAX, "%s/" MO_ACCOUNTS_DIR "/%s", c->store.dir, key);

    return n < 0 || n >= PATH_MAX ? MO_ETOOBIG : 0;
}

bool mo_account_exists(const struct mo_config *c, struct mo_span server,
                       struct mo_span person)
{
    char key[MO_SHA256_HEX + 1], path[PATH_MAX];

    mo_account_key(server, person, key);
    return mo_account_path(c, key, path) == 0 && access(path, F_OK) == 0;
}

/* --- the content ---------------------------------------------------------- */

static int seal_content(void *ctx, struct mo_span plain, struct mo_buf *out,
                        struct mo_err *e)
{
    const struct mo_account_file *f = ctx;
    mo_autowipe struct mo_buf all = {.max = CONTENT_MAX};
    int rc;

    (void)mo_buf_span(&all, mo_buf_view(&f->names));
    rc = mo_buf_span(&all, plain);
    if (rc == 0)
        rc = mo_secrets_seal(f->vault, mo_span_cstr(f->key), mo_buf_view(&all),
                             out);
    return rc < 0 ? mo_fail(e, rc, "connection") : 0;
}

static int open_content(void *ctx, struct mo_span sealed, struct mo_buf *out,
                        struct mo_err *e)
{
    const struct mo_account_file *f = ctx;
    mo_autowipe struct mo_buf all = {.max = CONTENT_MAX};
    struct mo_span names = mo_buf_view(&f->names);
    int rc = mo_secrets_unseal(f->vault, mo_span_cstr(f->key), sealed, &all, e);

    if (rc < 0)
        return rc;
    if (!mo_span_starts(mo_buf_view(&all), names))
        return mo_fail(e, MO_EPROTO, "the connection of somebody else");
    rc = mo_buf_span(out, mo_span_skip(mo_buf_view(&all), names.n));
    return rc < 0 ? mo_fail(e, rc, "connection") : 0;
}

static int claim_file(void *ctx)
{
    const struct mo_account_file *f = ctx;

    return *f->shared ? mo_shared_accounts_claim(*f->shared, f->key) : 0;
}

static void unclaim_file(void *ctx)
{
    const struct mo_account_file *f = ctx;

    if (*f->shared)
        mo_shared_accounts_unclaim(*f->shared, f->key);
}

static void file_changed(void *ctx, bool removed)
{
    const struct mo_account_file *f = ctx;

    if (*f->shared)
        mo_shared_accounts_changed(*f->shared, f->key, removed);
}

void mo_account_file_share(struct mo_account_file *f,
                           struct mo_shared_accounts *const *shared)
{
    f->shared = shared;
    f->seal.claim = claim_file;
    f->seal.unclaim = unclaim_file;
    f->seal.changed = file_changed;
}

static int file_init(struct mo_account_file *f, const struct mo_config *c,
                     const struct mo_secrets *vault, char what,
                     struct mo_span server, struct mo_span person,
                     struct mo_err *e)
{
    char path[PATH_MAX];
    int rc;

    *f = (struct mo_account_file){.vault = vault};
    f->seal = (struct mo_tokens_seal){
        .seal = seal_content, .open = open_content, .ctx = f};
    mo_buf_init(&f->names, NAMES_MAX);
    rc = put_names(&f->names, what, server, person);
    mo_sha256_hex(mo_buf_view(&f->names), f->key);
    if (rc == 0)
        rc = mo_account_path(c, f->key, path);
    if (rc == 0)
        f->path = mo_strndup(path, strlen(path));
    if (rc == 0 && !f->path)
        rc = MO_ENOMEM;
    return rc < 0 ? mo_fail(e, rc, "the name of a connection") : 0;
}

int mo_account_file_init(struct mo_account_file *f, const struct mo_config *c,
                         const struct mo_secrets *vault, struct mo_span server,
                         struct mo_span person, struct mo_err *e)
{
    return file_init(f, c, vault, PERSON, server, person, e);
}

int mo_account_client_init(struct mo_account_file *f, const struct mo_config *c,
                           const struct mo_secrets *vault,
                           struct mo_span server, struct mo_err *e)
{
    return file_init(f, c, vault, CLIENT, server, mo_span(NULL, 0), e);
}

void mo_account_file_fini(struct mo_account_file *f)
{
    mo_buf_fini(&f->names);
    mo_free(f->path);
}

int mo_account_file_open(struct mo_account_file *f, struct mo_tokens **out,
                         struct mo_err *e)
{
    char dir[PATH_MAX];
    char *cut;

    (void)snprintf(dir, sizeof(dir), "%s", f->path);
    cut = strrchr(dir, '/');
    if (cut)
        *cut = '\0';
    (void)mo_file_mkdir(dir, NULL); /* if this fails, saving reports it */
    if (mo_tokens_open_sealed(f->path, &f->seal, out, e) == 0)
        return 0;
    if (e->code != MO_EPROTO || unlink(f->path) < 0)
        return e->code;
    /* damaged or forged: as if the person had never connected */
    return mo_tokens_open_sealed(f->path, &f->seal, out, e);
}

/* --- all of them ---------------------------------------------------------- */

struct walk {
    const struct mo_config *c;
    const struct mo_secrets *vault;
    int (*fn)(void *ctx, const struct mo_account_info *i);
    void *ctx;
    unsigned bad;
};

bool mo_account_names(struct mo_span content, struct mo_account_info *out)
{
    if (content.n == 0 || *content.p != PERSON)
        return false;
    content = mo_span_skip(content, 1);
    return take_name(&content, &out->server) &&
           take_name(&content, &out->person);
}

/* Reads the names of a file. False: it is a client's, or does not open. */
static bool read_names(struct walk *w, const char *key, struct mo_buf *plain,
                       struct mo_account_info *out)
{
    mo_autobuf struct mo_buf sealed = {.max = CONTENT_MAX};
    char path[PATH_MAX], again[MO_SHA256_HEX + 1];
    struct mo_file_stamp stamp;

    if (mo_account_path(w->c, key, path) < 0 ||
        mo_file_read(path, CONTENT_MAX, &sealed, &stamp, NULL) < 0)
        return false;
    out->since_ms = (uint64_t)stamp.mtime.tv_sec * 1000;
    if (mo_secrets_unseal(w->vault, mo_span_cstr(key), mo_buf_view(&sealed),
                          plain, NULL) < 0) {
        w->bad++;
        return false;
    }
    if (!mo_account_names(mo_buf_view(plain), out))
        return false;
    mo_account_key(out->server, out->person, again);
    return strcmp(again, key) == 0;
}

static int visit(struct walk *w, const char *key)
{
    mo_autowipe struct mo_buf plain = {.max = CONTENT_MAX};
    struct mo_account_info info = {.tokens = NULL};
    struct mo_account_file f;
    struct mo_tokens *tokens = NULL;
    int rc = 0;

    if (!read_names(w, key, &plain, &info))
        return 0;
    if (mo_account_file_init(&f, w->c, w->vault, info.server, info.person,
                             NULL) == 0 &&
        mo_tokens_open_sealed(f.path, &f.seal, &tokens, NULL) == 0) {
        info.tokens = tokens;
        rc = w->fn(w->ctx, &info);
    }
    mo_tokens_close(tokens);
    mo_account_file_fini(&f);
    return rc;
}

int mo_accounts_each(const struct mo_config *c, const struct mo_secrets *vault,
                     int (*fn)(void *ctx, const struct mo_account_info *i),
                     void *ctx, unsigned *bad, struct mo_err *e)
{
    struct walk w = {c, vault, fn, ctx, 0};
    char dir[PATH_MAX];
    DIR *d = NULL;
    int rc = 0;

    if (mo_account_path(c, "", dir) < 0)
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    d = opendir(dir);
    if (!d && errno != ENOENT)
        return mo_fail_sys(e, "%s", dir);
    for (struct dirent *en = d ? readdir(d) : NULL; en && rc == 0;
         en = readdir(d)) {
        if (mo_account_is_key(en->d_name))
            rc = visit(&w, en->d_name);
    }
    if (d)
        (void)closedir(d);
    if (bad)
        *bad = w.bad;
    return rc;
}
