/* exact.c - one form for arguments, one digest for a call. */
#include "policy/exact.h"

#include <stdio.h>

#include "codec/json/jschema.h"
#include "codec/json/jvalue.h"
#include "codec/sha256.h"
#include "codec/tool_claims.h"
#include "mcp/app.h"

/* Key comparisons per call; enough for about 1,400 members in one object. */
#define PAIRS_MAX    1000000u
#define PROBLEMS_MAX ((size_t)16 * 1024) /* text about bad arguments */

/* Fails if a later member has the same key. */
static int check_key_unique(struct mo_json_iter rest, struct mo_json key,
                            unsigned *pairs, struct mo_err *e)
{
    struct mo_json other, val;

    while (mo_json_next(&rest, &other, &val)) {
        if (*pairs == 0)
            return mo_fail(e, MO_ETOOBIG, "too many members in one object");
        --*pairs;
        if (mo_jvalue_str_same(key, other))
            return mo_fail(e, MO_EPROTO, "the member %.*s is given twice",
                           (int)(key.n > 60 ? 60 : key.n), key.p);
    }
    return 0;
}

/* Fails if an object at any depth has a duplicate member. The parser limits the
 * depth. */
static int check_members(struct mo_json v, unsigned *pairs, struct mo_err *e)
{
    bool object = mo_json_is(v, MO_JSON_OBJECT);
    struct mo_json_iter it;
    struct mo_json key, val;
    int rc = 0;

    mo_json_iter(&it, v);
    while (rc == 0 && mo_json_next(&it, &key, &val)) {
        if (object)
            rc = check_key_unique(it, key, pairs, e);
        if (rc == 0)
            rc = check_members(val, pairs, e);
    }
    return rc;
}

static unsigned read_hex4(const char *p)
{
    unsigned v = 0;

    for (size_t i = 0; i < 4; i++)
        v = v << 4 | (unsigned)mo_hex_digit(p[i]);
    return v;
}

/* Fails on a lone surrogate. Parsers drop, replace or keep it, so the server
 * could read other text than was shown. A backslash occurs only in strings, and
 * the parser has checked every escape. */
static int check_surrogates(struct mo_span text, struct mo_err *e)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        unsigned v = 0;

        if (text.p[i] != '\\')
            continue;
        if (text.p[++i] != 'u')
            continue;
        v = read_hex4(text.p + i + 1);
        i += 4;
        if ((v & 0xf800) != 0xd800)
            continue;
        if (v < 0xdc00 && i + 6 < text.n && text.p[i + 1] == '\\' &&
            text.p[i + 2] == 'u' &&
            (read_hex4(text.p + i + 3) & 0xfc00) == 0xdc00) {
            i += 6;
            continue;
        }
        return mo_fail(e, MO_EPROTO,
                       "\\u%04x is half of a character (a lone surrogate)", v);
    }
    return 0;
}

int mo_exact_args(struct mo_json args, struct mo_buf *out, struct mo_err *e)
{
    unsigned pairs = PAIRS_MAX;
    int rc = 0;

    if (args.p == NULL || mo_json_is(args, MO_JSON_NULL))
        rc = mo_buf_puts(out, "{}");
    else if (!mo_json_is(args, MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "arguments must be a JSON object");
    else if (args.n > MO_EXACT_MAX)
        rc = MO_ETOOBIG;
    else {
        rc = check_members(args, &pairs, e);
        if (rc == 0)
            rc = check_surrogates(mo_json_text(args), e);
        if (rc < 0)
            return mo_wrap(e, "arguments");
        rc = mo_json_compact(args, out);
    }
    return rc < 0 ? mo_fail(e, rc, "arguments: too big") : 0;
}

/* --- schema -------------------------------------------------------------- */

int mo_exact_fits(struct mo_json schema, struct mo_json args, struct mo_err *e)
{
    static const struct mo_jschema_opts o = {.name = "args"};
    struct mo_jschema_result r;
    mo_autobuf struct mo_buf why = {.max = PROBLEMS_MAX};

    if (!schema.p || mo_jschema_check(schema, args, &o, &r, NULL) < 0 ||
        r.valid)
        return 0;
    (void)mo_jschema_put(&why, &r);
    return mo_fail(e, MO_EINVAL,
                   "the arguments do not fit the tool's schema: %s",
                   mo_buf_cstr(&why));
}

/* --- digests ------------------------------------------------------------- */

/* The length prefix makes different lists of parts differ in their bytes. */
static void digest_part(struct mo_sha256 *h, struct mo_span part)
{
    char head[24];
    int n = snprintf(head, sizeof(head), "%zu:", part.n);

    mo_sha256_put(h, head, (size_t)n);
    mo_sha256_put(h, part.p, part.n);
}

static void digest_parts(const char *what, const struct mo_span *parts,
                         size_t n, char out[MO_EXACT_DIGEST])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    digest_part(&h, mo_span_cstr(what));
    for (size_t i = 0; i < n; i++)
        digest_part(&h, parts[i]);
    mo_sha256_end(&h, sum);
    mo_hex(sum, sizeof(sum), out);
}

void mo_exact_tool(const struct mo_tool_def *d, char out[MO_EXACT_DIGEST])
{
    const struct mo_span parts[] = {d->server, d->name, d->description,
                                    d->schema, d->annotations};

    digest_parts("tool", parts, MO_COUNT(parts), out);
}

/* An absent member gives an empty text. */
static int read_str(struct mo_arena *a, struct mo_json v, struct mo_span *out)
{
    *out = (struct mo_span){NULL, 0};
    return mo_json_is(v, MO_JSON_STRING) ? mo_json_str(v, a, out) : 0;
}

int mo_tool_read(struct mo_arena *a, struct mo_span server, struct mo_span own,
                 struct mo_json item, struct mo_tool *t)
{
    struct mo_tool_def *d = &t->def;

    d->server = server;
    d->name = own;
    if ((own.n == 0 && read_str(a, mo_json_get(item, "name"), &d->name) < 0) ||
        read_str(a, mo_json_get(item, "title"), &t->title) < 0 ||
        read_str(a, mo_json_get(item, "description"), &d->description) < 0)
        return MO_ENOMEM;
    d->schema = mo_json_text(mo_json_get(item, "inputSchema"));
    d->annotations = mo_json_text(mo_json_get(item, "annotations"));
    t->output_schema = mo_json_text(mo_json_get(item, "outputSchema"));
    t->claims = mo_claims_of(mo_json_get(item, "annotations"));
    t->app_only = mo_app_is_only(item);
    t->no_app = !mo_app_may_call(item);
    mo_exact_tool(d, t->digest);
    return 0;
}

void mo_exact_call(const struct mo_exact_call *c, char out[MO_EXACT_DIGEST])
{
    const struct mo_span parts[] = {
        c->session, c->call, c->server,
        c->tool,    c->args, mo_span_cstr(c->tool_digest),
    };

    digest_parts("call", parts, MO_COUNT(parts), out);
}
