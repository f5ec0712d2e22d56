#include "mcp/skill.h"

#include "base/map.h"

#define URI_MAX         ((size_t)8192)
#define DESCRIPTION_MAX ((size_t)1024) /* characters */
#define FILES_MAX       ((size_t)65536)
#define DIGEST          "sha256:"
#define DIGEST_LEN      (sizeof(DIGEST) - 1 + 64)

/* --- URIs ---------------------------------------------------------------- */

static struct mo_span last_segment(struct mo_span s)
{
    size_t at = s.n;

    while (at > 0 && s.p[at - 1] != '/')
        at--;
    return mo_span_skip(s, at);
}

struct mo_span mo_skill_root(struct mo_span uri)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_span root = uri;

    if (!mo_span_ends(uri, MO_SPAN(MO_SKILL_FILE)) ||
        mo_span_search(uri, MO_SPAN("://")) <= 0)
        return none;
    root.n -= sizeof(MO_SKILL_FILE) - 1;
    return last_segment(root).n ? root : none;
}

bool mo_skill_has(struct mo_span root, struct mo_span uri)
{
    return uri.n > root.n + 1 && mo_span_starts(uri, root) &&
           uri.p[root.n] == '/';
}

/* True if no part of the path leads elsewhere. */
static bool is_plain_path(struct mo_span path)
{
    if (mo_span_find(path, '?') >= 0 || mo_span_find(path, '#') >= 0)
        return false;
    while (path.p) {
        struct mo_span part = mo_span_cut(&path, '/');

        if (!part.n || mo_span_is(part, ".") || mo_span_is(part, ".."))
            return false;
    }
    return true;
}

/* --- files --------------------------------------------------------------- */

static bool is_digest(struct mo_json v)
{
    char text[DIGEST_LEN + 1];

    return mo_json_str_copy(v, text, sizeof(text)) == 0 &&
           strlen(text) == DIGEST_LEN &&
           strncmp(text, DIGEST, sizeof(DIGEST) - 1) == 0 &&
           strspn(text + sizeof(DIGEST) - 1, "0123456789abcdef") == 64;
}

static const char *check_file(struct mo_json file, struct mo_span root,
                              struct mo_map *seen)
{
    mo_autobuf struct mo_buf b = {.max = URI_MAX};
    struct mo_span uri;
    uint64_t size = 0;
    int rc;

    if (mo_json_str_buf(mo_json_get(file, "uri"), &b) < 0)
        return "a file has no URI";
    uri = mo_buf_view(&b);
    if (!mo_skill_has(root, uri) ||
        !is_plain_path(mo_span_skip(uri, root.n + 1)))
        return "a file is outside the skill";
    if (!is_digest(mo_json_get(file, "digest")))
        return "a file has no SHA-256 digest";
    if (mo_json_u64(mo_json_get(file, "size"), &size) < 0)
        return "a file has no size";
    rc = mo_map_add(seen, uri, seen);
    return rc == MO_EEXISTS ? "a file is listed twice"
           : rc < 0         ? "it has too many files"
                            : NULL;
}

static const char *check_files(struct mo_json files, struct mo_span root,
                               struct mo_span self)
{
    const char *why = NULL;
    struct mo_map seen;

    if (mo_json_str_eq(files, MO_SPAN("dynamic")))
        return NULL;
    if (!mo_json_is(files, MO_JSON_ARRAY))
        return "resources is not valid";
    mo_map_init(&seen, FILES_MAX);
    mo_json_each (m, files) {
        why = check_file(m.val, root, &seen);
        if (why)
            break;
    }
    if (!why && !mo_map_get(&seen, self))
        why = "resources does not include its SKILL.md";
    mo_map_fini(&seen);
    return why;
}

/* --- frontmatter --------------------------------------------------------- */

/* Lower-case letters, digits and single hyphens. */
static bool is_name(struct mo_span s)
{
    if (s.n == 0 || s.n > MO_SKILL_NAME_MAX ||
        !mo_span_only(s, "abcdefghijklmnopqrstuvwxyz0123456789-"))
        return false;
    return s.p[0] != '-' && s.p[s.n - 1] != '-' &&
           mo_span_search(s, MO_SPAN("--")) < 0;
}

static size_t count_characters(struct mo_span s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.n; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static bool is_text(struct mo_json v, size_t max)
{
    mo_autobuf struct mo_buf b = {.max = 4 * max};

    return mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0 &&
           b.len > 0 && count_characters(mo_buf_view(&b)) <= max;
}

static bool is_string_map(struct mo_json v)
{
    if (!mo_json_is(v, MO_JSON_OBJECT))
        return false;
    mo_json_each (m, v) {
        if (!mo_json_is(m.val, MO_JSON_STRING))
            return false;
    }
    return true;
}

static const char *check_frontmatter(struct mo_json v, struct mo_span dir)
{
    struct mo_json compatibility = mo_json_get(v, "compatibility");
    struct mo_json metadata = mo_json_get(v, "metadata");
    char name[MO_SKILL_NAME_MAX + 1];

    if (mo_json_str_copy(mo_json_get(v, "name"), name, sizeof(name)) < 0 ||
        !is_name(mo_span_cstr(name)))
        return "its name is not valid";
    if (!mo_span_is(dir, name))
        return "its name differs from its directory";
    if (!is_text(mo_json_get(v, "description"), DESCRIPTION_MAX))
        return "its description is not valid";
    if (compatibility.p && !is_text(compatibility, 500))
        return "compatibility is not valid";
    return metadata.p && !is_string_map(metadata) ? "metadata is not valid"
                                                  : NULL;
}

/* --- entries ------------------------------------------------------------- */

const char *mo_skill_check(struct mo_json entry)
{
    mo_autobuf struct mo_buf b = {.max = URI_MAX};
    struct mo_json meta = mo_json_get(entry, "_meta");
    struct mo_span uri, root;
    const char *why;

    if (mo_json_str_buf(mo_json_get(entry, "uri"), &b) < 0)
        return "its URI is too long";
    uri = mo_buf_view(&b);
    root = mo_skill_root(uri);
    if (!root.n)
        return "its URI is not that of a SKILL.md in a named directory";
    why = check_frontmatter(mo_json_get(entry, "frontmatter"),
                            last_segment(root));
    if (!why)
        why = check_files(mo_json_get(entry, "resources"), root, uri);
    if (!why && meta.p && !mo_json_is(meta, MO_JSON_OBJECT))
        why = "_meta is not valid";
    return why;
}

int mo_skill_put_definition(struct mo_json entry, struct mo_buf *out)
{
    struct mo_json front = mo_json_get(entry, "frontmatter");
    struct mo_jw w = mo_jw_object(out);

    mo_jw_copy(&w, front, "description");
    mo_jw_member_obj(&w, "inputSchema");
    mo_jw_copy(&w, entry, "frontmatter");
    mo_jw_copy(&w, entry, "resources");
    mo_jw_end(&w);
    mo_jw_member_obj(&w, "annotations");
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* Appends obj up to the end of its last "uri", with each of them replaced.
 * *from: the end of what was copied. */
static int replace_uri(struct mo_json obj, const char **from,
                       mo_skill_uri_fn fn, void *ctx, struct mo_buf *out)
{
    int rc = 0;

    if (!mo_json_is(obj, MO_JSON_OBJECT))
        return 0;
    mo_json_each (m, obj) {
        if (!mo_json_str_eq(m.key, MO_SPAN("uri")) ||
            !mo_json_is(m.val, MO_JSON_STRING))
            continue;
        (void)mo_buf_put(out, *from, (size_t)(m.val.p - *from));
        rc = fn(ctx, m.val, out);
        if (rc < 0)
            return rc;
        *from = m.val.p + m.val.n;
    }
    return 0;
}

int mo_skill_replace_uris(struct mo_json v, bool entry, const char *list,
                          mo_skill_uri_fn fn, void *ctx, struct mo_buf *out)
{
    const char *from = v.p;
    int rc = 0;

    mo_json_each (m, v) {
        if (entry && mo_json_str_eq(m.key, MO_SPAN("uri")) &&
            mo_json_is(m.val, MO_JSON_STRING)) {
            (void)mo_buf_put(out, from, (size_t)(m.val.p - from));
            rc = fn(ctx, m.val, out);
            from = m.val.p + m.val.n;
        } else if (mo_json_str_eq(m.key, mo_span_cstr(list)) &&
                   mo_json_is(m.val, MO_JSON_ARRAY)) {
            mo_json_each (x, m.val)
                rc = rc < 0 ? rc : replace_uri(x.val, &from, fn, ctx, out);
        }
        if (rc < 0)
            return rc;
    }
    return mo_buf_put(out, from, (size_t)(v.p + v.n - from));
}
