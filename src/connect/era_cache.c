#include "connect/era_cache.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/json/json.h"
#include "codec/sha256.h"

struct row {
    struct mo_era_cache_key key;
    struct mo_conn_verdict v;
};

struct table {
    struct row rows[MO_ERA_CACHE_MAX];
    size_t n;
};

static const char *const words[] = {
    [MO_ERA_LEGACY] = "legacy",
    [MO_ERA_MODERN] = "modern",
};

void mo_era_cache_key(const char *kind, const char *const *argv,
                      const char *cwd, struct mo_era_cache_key *out)
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 s;

    _Static_assert(2 * MO_SHA256_LEN == MO_ERA_CACHE_KEY_LEN, "key");
    mo_sha256_init(&s);
    mo_sha256_put(&s, kind, strlen(kind) + 1);
    mo_sha256_put(&s, cwd ? cwd : "", strlen(cwd ? cwd : "") + 1);
    for (; *argv; argv++)
        mo_sha256_put(&s, *argv, strlen(*argv) + 1);
    mo_sha256_end(&s, sum);
    mo_hex(sum, sizeof(sum), out->text);
}

/* --- the file ------------------------------------------------------------ */

static void read_row(struct table *t, struct mo_json key, struct mo_json v)
{
    struct mo_json era = mo_json_get(v, "era");
    struct row *r = &t->rows[t->n];

    if (t->n == MO_ERA_CACHE_MAX || key.n != MO_ERA_CACHE_KEY_LEN + 2 ||
        mo_json_u64(mo_json_get(v, "at"), &r->v.at_ms) < 0)
        return;
    r->v.era = MO_ERA_UNKNOWN;
    for (size_t i = MO_ERA_LEGACY; i < MO_COUNT(words); i++) {
        if (mo_json_str_eq(era, mo_span_cstr(words[i])))
            r->v.era = (enum mo_conn_era)i;
    }
    memcpy(r->key.text, key.p + 1, MO_ERA_CACHE_KEY_LEN);
    r->key.text[MO_ERA_CACHE_KEY_LEN] = '\0';
    if (r->v.era != MO_ERA_UNKNOWN)
        t->n++;
}

static void read_table(const char *path, struct table *t)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf b = {.max = MO_ERA_CACHE_FILE_MAX};

    t->n = 0;
    if (mo_file_read(path, MO_ERA_CACHE_FILE_MAX, &b, NULL, NULL) == 0 &&
        mo_json_parse(mo_buf_view(&b), 4, &doc, NULL) == 0) {
        mo_json_each (m, mo_json_get(doc.root, "servers"))
            read_row(t, m.key, m.val);
    }
}

static void put_table(const struct table *t, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "version", 1);
    mo_jw_member_obj(&w, "servers");
    for (size_t i = 0; i < t->n; i++) {
        mo_jw_member_obj(&w, t->rows[i].key.text);
        mo_jw_member_cstr(&w, "era", words[t->rows[i].v.era]);
        mo_jw_member_u64(&w, "at", t->rows[i].v.at_ms);
        mo_jw_end(&w);
    }
    mo_jw_end_all(&w);
    mo_buf_putc(b, '\n');
}

static void write_table(const char *path, const struct table *t)
{
    mo_autobuf struct mo_buf b = {.max = MO_ERA_CACHE_FILE_MAX};

    put_table(t, &b);
    if (!mo_buf_err(&b))
        (void)mo_file_replace(path, mo_buf_view(&b), NULL);
}

/* --- the table ----------------------------------------------------------- */

/* NULL: out of memory, or the path is too long. */
static struct table *open_table(const char *dir, char path[PATH_MAX])
{
    int n = snprintf(path, PATH_MAX, "%s/" MO_ERA_CACHE_FILE, dir);
    struct table *t = n > 0 && n < PATH_MAX ? mo_new(struct table) : NULL;

    if (t)
        read_table(path, t);
    return t;
}

static size_t find_row(const struct table *t,
                       const struct mo_era_cache_key *key)
{
    size_t i = 0;

    while (i < t->n && strcmp(t->rows[i].key.text, key->text) != 0)
        i++;
    return i;
}

static size_t oldest_row(const struct table *t)
{
    size_t at = 0;

    for (size_t i = 1; i < t->n; i++) {
        if (t->rows[i].v.at_ms < t->rows[at].v.at_ms)
            at = i;
    }
    return at;
}

struct mo_conn_verdict mo_era_cache_get(const char *dir,
                                        const struct mo_era_cache_key *key)
{
    struct mo_conn_verdict none = {.era = MO_ERA_UNKNOWN};
    char path[PATH_MAX];
    mo_autofree struct table *t = open_table(dir, path);
    size_t i = t ? find_row(t, key) : 0;

    return t && i < t->n ? t->rows[i].v : none;
}

void mo_era_cache_put(const char *dir, const struct mo_era_cache_key *key,
                      struct mo_conn_verdict v)
{
    char path[PATH_MAX];
    mo_autofree struct table *t = open_table(dir, path);
    size_t i = t ? find_row(t, key) : 0;

    if (!t || (i == t->n && v.era == MO_ERA_UNKNOWN))
        return;
    if (i == t->n && t->n == MO_ERA_CACHE_MAX)
        i = oldest_row(t);
    if (i == t->n)
        t->n++;
    if (v.era == MO_ERA_UNKNOWN)
        t->rows[i] = t->rows[--t->n];
    else
        t->rows[i] = (struct row){*key, v};
    if (mo_file_mkdir(dir, NULL) == 0)
        write_table(path, t);
}
