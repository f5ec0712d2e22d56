#include "mcp/skill_file.h"

#include "codec/json/jvalue.h"
#include "codec/sha256.h"
#include "codec/text/base64.h"
#include "codec/text/utf8.h"
#include "codec/yaml.h"

#define BOM           "\xef\xbb\xbf"
#define FRONT_MAX     ((size_t)256 * 1024) /* bytes of a frontmatter */
#define COMPARE_STEPS ((uint64_t)1000000)
#define DIGEST_OFFSET 7 /* "sha256:" */

bool mo_skill_is_verifiable(struct mo_json entry)
{
    return mo_json_is(mo_json_get(entry, "resources"), MO_JSON_ARRAY);
}

struct mo_json mo_skill_listed(struct mo_json entry, struct mo_span uri)
{
    static const struct mo_json none = {NULL, 0};

    mo_json_each (m, mo_json_get(entry, "resources")) {
        if (mo_json_str_eq(mo_json_get(m.val, "uri"), uri))
            return m.val;
    }
    return none;
}

/* --- bytes of a result --------------------------------------------------- */

static int decode_blob(struct mo_json blob, struct mo_buf *out,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf text = {.max = 2 * MO_SKILL_FILE_MAX};
    int rc = mo_json_str_buf(blob, &text);

    if (rc == 0)
        rc = mo_base64_decode(mo_buf_view(&text), out);
    return rc < 0 ? mo_fail(e, rc, "the file is not valid base64") : 0;
}

int mo_skill_file_bytes(struct mo_json result, struct mo_span uri,
                        struct mo_buf *out, struct mo_err *e)
{
    struct mo_json found = {NULL, 0}, text, blob;
    int rc = 0;

    mo_json_each (m, mo_json_get(result, "contents")) {
        if (mo_json_str_eq(mo_json_get(m.val, "uri"), uri) && found.p)
            return mo_fail(e, MO_EPROTO, "the file was sent twice");
        if (mo_json_str_eq(mo_json_get(m.val, "uri"), uri))
            found = m.val;
    }
    text = mo_json_get(found, "text");
    blob = mo_json_get(found, "blob");
    if (mo_json_is(text, MO_JSON_STRING) == mo_json_is(blob, MO_JSON_STRING))
        return mo_fail(e, MO_EPROTO, "the server did not send the file");
    if (blob.p)
        return decode_blob(blob, out, e);
    rc = mo_json_str_buf(text, out);
    return rc < 0 ? mo_fail(e, rc, "the file is too long") : 0;
}

/* --- frontmatter --------------------------------------------------------- */

static struct mo_span cut_line(struct mo_span *s)
{
    struct mo_span line = mo_span_cut(s, '\n');

    if (line.n && line.p[line.n - 1] == '\r')
        line.n--;
    return line;
}

/* "---", with blanks after it. */
static bool is_fence(struct mo_span line)
{
    return mo_span_starts(line, MO_SPAN("---")) &&
           mo_span_only(mo_span_skip(line, 3), " \t");
}

/* The YAML between the first two fences; p NULL: there is none. */
static struct mo_span front_of(struct mo_span text)
{
    static const struct mo_span none = {NULL, 0};
    struct mo_span rest = text, front;

    if (mo_span_starts(rest, MO_SPAN(BOM)))
        rest = mo_span_skip(rest, sizeof(BOM) - 1);
    if (!mo_span_is(cut_line(&rest), "---") || !rest.p)
        return none;
    front = rest;
    while (rest.p) {
        const char *at = rest.p;

        if (is_fence(cut_line(&rest))) {
            front.n = (size_t)(at - front.p);
            return front;
        }
    }
    return none;
}

static int check_front(struct mo_json entry, struct mo_span text,
                       struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = FRONT_MAX};
    struct mo_span front = front_of(text);
    uint64_t steps = COMPARE_STEPS;
    struct mo_json_doc doc;
    struct mo_err why;

    if (!front.p)
        return mo_fail(e, MO_EPROTO, "SKILL.md has no frontmatter");
    if (mo_yaml_core_to_json(front, &b, &why) < 0)
        return mo_fail(e, MO_EPROTO, "the frontmatter of SKILL.md: %s",
                       why.msg);
    if (mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) < 0 ||
        mo_jvalue_equal(doc.root, mo_json_get(entry, "frontmatter"), &steps) !=
            1)
        return mo_fail(e, MO_EPROTO,
                       "the frontmatter of SKILL.md is not that of the list");
    return 0;
}

/* --- verification -------------------------------------------------------- */

static int check_sum(struct mo_json file, struct mo_span bytes,
                     struct mo_err *e)
{
    char want[DIGEST_OFFSET + MO_SHA256_HEX + 1], sum[MO_SHA256_HEX + 1];
    uint64_t size = 0;

    if (mo_json_u64(mo_json_get(file, "size"), &size) < 0 || size != bytes.n)
        return mo_fail(e, MO_EPROTO,
                       "the file has %zu bytes, and the list says %llu",
                       bytes.n, (unsigned long long)size);
    mo_sha256_hex(bytes, sum);
    if (mo_json_str_copy(mo_json_get(file, "digest"), want, sizeof(want)) < 0 ||
        strcmp(want + DIGEST_OFFSET, sum) != 0)
        return mo_fail(e, MO_EPROTO,
                       "the file is not the one whose digest is listed");
    return 0;
}

int mo_skill_verify(struct mo_json entry, struct mo_span uri,
                    struct mo_span bytes, struct mo_err *e)
{
    struct mo_json file = mo_skill_listed(entry, uri);
    int rc = 0;

    if (mo_skill_is_verifiable(entry)) {
        if (!file.p)
            return mo_fail(e, MO_EPROTO, "the skill lists no such file");
        rc = check_sum(file, bytes, e);
    }
    if (rc == 0 && mo_json_str_eq(mo_json_get(entry, "uri"), uri)) {
        if (!mo_utf8_valid(bytes))
            return mo_fail(e, MO_EPROTO, "SKILL.md is not text in UTF-8");
        rc = check_front(entry, bytes, e);
    }
    return rc;
}
