/* catalog_cache.c - the cache file of a server's lists.
 *
 * A file is one JSON object: version, name, digest, date, capabilities, info,
 * notes and the lists, each as it is kept in memory; or `late` instead of them.
 * The file name is a hash of the server's name, which may contain any
 * character. A file that is incomplete, too big or of another server is
 * ignored. */
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/sha256.h"
#include "gateway/catalog/catalog_priv.h"

#define VERSION   "3"
#define FILE_HASH 32 /* hex digits of the file name */

static int cache_path(const char *dir, const char *name, char out[PATH_MAX])
{
    char hex[65];
    int n = 0;

    mo_sha256_hex(mo_span_cstr(name), hex);
    n = snprintf(out, PATH_MAX, "%s/%.*s.json", dir, FILE_HASH, hex);
    return n > 0 && n < PATH_MAX - 16 ? 0 : MO_ETOOBIG;
}

/* --- reading ------------------------------------------------------------- */

/* Members of a cache file. */
enum field {
    F_VERSION,
    F_NAME,
    F_DIGEST,
    F_DATE,
    F_CAPS,
    F_INFO,
    F_NOTES,
    F_LATE,
    F_LISTS, /* then one for each kind */
    F_COUNT = F_LISTS + MO_CAT_KINDS,
};

static const char *const field_names[F_LISTS] = {
    [F_VERSION] = "version", [F_NAME] = "name",         [F_DIGEST] = "digest",
    [F_DATE] = "date",       [F_CAPS] = "capabilities", [F_INFO] = "info",
    [F_NOTES] = "notes",     [F_LATE] = "late",
};

static int read_fields(struct mo_span text, struct mo_json out[F_COUNT])
{
    const char *names[F_COUNT];

    for (size_t f = 0; f < F_COUNT; f++)
        names[f] =
            f < F_LISTS ? field_names[f] : mo_catalog_kinds[f - F_LISTS].list;
    return mo_json_parse_members(text, names, F_COUNT, out, NULL);
}

static bool is_or_none(struct mo_json v, enum mo_json_type t)
{
    return v.p == NULL || mo_json_is(v, t);
}

static bool is_cache_of(const struct mo_json v[F_COUNT], const char *name,
                        const char *digest)
{
    if (!mo_span_is(mo_json_text(v[F_VERSION]), VERSION) ||
        !mo_json_str_eq(v[F_NAME], mo_span_cstr(name)) ||
        !mo_json_str_eq(v[F_DIGEST], mo_span_cstr(digest)) ||
        !is_or_none(v[F_CAPS], MO_JSON_OBJECT) ||
        !is_or_none(v[F_INFO], MO_JSON_OBJECT))
        return false;
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        if (!is_or_none(v[F_LISTS + k], MO_JSON_ARRAY))
            return false;
    return true;
}

static void read_date(struct mo_json v, char out[MO_ISO8601_MAX])
{
    if (mo_json_is(v, MO_JSON_STRING) && v.n == MO_ISO8601_MAX + 1) {
        memcpy(out, v.p + 1, MO_ISO8601_MAX - 1);
        out[MO_ISO8601_MAX - 1] = '\0';
    }
}

/* Notes are one array for each kind: mended, left out, with their texts. */
static int read_notes(struct mo_json v, struct server_lists *out)
{
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        struct mo_json one = mo_json_get(v, mo_catalog_kinds[k].list);
        struct list_faults *faults = NULL;
        struct mo_definition_notes *n;
        uint64_t mended = 0, left_out = 0;

        if (!one.p)
            continue;
        faults = mo_catalog_lists_own_faults(out, k);
        if (!faults)
            return MO_ENOMEM;
        n = &faults->notes;
        (void)mo_json_u64(mo_json_at(one, 0), &mended);
        (void)mo_json_str_copy(mo_json_at(one, 1), n->mended,
                               sizeof(n->mended));
        (void)mo_json_u64(mo_json_at(one, 2), &left_out);
        (void)mo_json_str_copy(mo_json_at(one, 3), n->left_out,
                               sizeof(n->left_out));
        n->nmended = (size_t)mended;
        n->nleft_out = (size_t)left_out;
    }
    return 0;
}

/* A value that is too long is ignored. */
static int read_extra(struct mo_json v, struct mo_buf *out)
{
    if (v.p == NULL || v.n > CAT_EXTRA_MAX)
        return 0;
    return mo_json_compact(v, out);
}

int mo_catalog_cache_parse(struct mo_span text, const char *name,
                           const char *digest, struct server_lists *out)
{
    struct mo_json v[F_COUNT];

    if (read_fields(text, v) < 0 || !is_cache_of(v, name, digest))
        return MO_EPROTO;
    out->late = mo_span_is(mo_json_text(v[F_LATE]), "true");
    if (out->late)
        return 0;
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        if (v[F_LISTS + k].p == NULL)
            continue;
        out->list[k] =
            mo_catalog_lists_parse(out, (enum mo_cat_kind)k, v[F_LISTS + k]);
        if (out->list[k] == NULL)
            return MO_ENOMEM;
    }
    if (read_extra(v[F_CAPS], &out->caps) < 0 ||
        read_extra(v[F_INFO], &out->info) < 0 ||
        read_notes(v[F_NOTES], out) < 0)
        return MO_ENOMEM;
    read_date(v[F_DATE], out->date);
    out->known = true;
    out->dirty = false;
    return 0;
}

int mo_catalog_cache_read(const char *dir, const char *name, const char *digest,
                          struct server_lists *out)
{
    char path[PATH_MAX];
    mo_autobuf struct mo_buf text = {.max = CAT_FILE_MAX};
    int rc = cache_path(dir, name, path);

    if (rc == 0)
        rc = mo_file_read_own(path, &text);
    if (rc == 0)
        rc = mo_catalog_cache_parse(mo_buf_view(&text), name, digest, out);
    return rc == MO_ENOMEM ? rc : 0;
}

void mo_catalog_cached_tools(const char *cache, const char *server,
                             void (*fn)(void *ctx, struct mo_span name),
                             void *ctx)
{
    char path[PATH_MAX];
    mo_autobuf struct mo_buf text = {.max = CAT_FILE_MAX};
    mo_autobuf struct mo_buf name = {.max = CAT_FILE_MAX};
    struct mo_json v[F_COUNT];

    if (cache_path(cache, server, path) < 0 ||
        mo_file_read_own(path, &text) < 0 ||
        read_fields(mo_buf_view(&text), v) < 0 ||
        !mo_json_str_eq(v[F_NAME], mo_span_cstr(server)))
        return;
    mo_json_each (it, v[F_LISTS + MO_CAT_TOOLS]) {
        mo_buf_reset(&name);
        if (mo_json_str_buf(mo_json_get(it.val, "name"), &name) == 0)
            fn(ctx, mo_buf_view(&name));
    }
}

/* --- writing ------------------------------------------------------------- */

static void put_notes(struct mo_jw *w, const struct server_lists *s)
{
    mo_jw_member_obj(w, "notes");
    for (size_t k = 0; k < MO_CAT_KINDS; k++) {
        const struct mo_definition_notes *n =
            &mo_catalog_lists_faults(s, k)->notes;

        if (!n->nmended && !n->nleft_out)
            continue;
        mo_jw_member_arr(w, mo_catalog_kinds[k].list);
        mo_jw_u64(w, n->nmended);
        mo_jw_cstr(w, n->mended);
        mo_jw_u64(w, n->nleft_out);
        mo_jw_cstr(w, n->left_out);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static int put_document(const char *name, const char *digest,
                        const struct server_lists *s, struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_raw(&w, "version", MO_SPAN(VERSION));
    mo_jw_member_cstr(&w, "name", name);
    mo_jw_member_cstr(&w, "digest", digest);
    mo_jw_member_cstr(&w, "date", s->date);
    mo_jw_member_raw(&w, "capabilities", mo_buf_view(&s->caps));
    mo_jw_member_raw(&w, "info", mo_buf_view(&s->info));
    put_notes(&w, s);
    if (s->late)
        mo_jw_member_bool(&w, "late", true);
    for (size_t k = 0; k < MO_CAT_KINDS; k++)
        if (s->list[k])
            mo_jw_member_raw(&w, mo_catalog_kinds[k].list,
                             mo_buf_view(&s->list[k]->text));
    mo_jw_end(&w);
    return mo_buf_err(out);
}

int mo_catalog_cache_write(const char *dir, const char *name,
                           const char *digest, struct server_lists *s)
{
    char path[PATH_MAX];
    mo_autobuf struct mo_buf b = {.max = CAT_FILE_MAX};
    int rc = cache_path(dir, name, path);

    mo_wall_format(mo_wall_ms(), s->date);
    if (rc == 0)
        rc = put_document(name, digest, s, &b);
    if (rc == 0)
        rc = mo_file_mkdir(dir, NULL);
    if (rc == 0)
        rc = mo_file_replace(path, mo_buf_view(&b), NULL);
    return rc;
}

void mo_catalog_forget(const char *dir, const char *name)
{
    char path[PATH_MAX];

    if (cache_path(dir, name, path) == 0)
        (void)unlink(path);
}
