/*
 * exact.c - one form for arguments, one digest for a call.
 */
#include "policy/exact.h"

#include <stdio.h>

#include "codec/json/jvalue.h"
#include "codec/sha256.h"

/* Pairs of keys compared in one call: a thousand members in one object. */
#define PAIRS_MAX 1000000u

/* Every later member against this one. */
static int once(struct mo_json_iter rest, struct mo_json key, unsigned *pairs,
                struct mo_err *e)
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

/* The parser has bounded the depth already. */
static int twice(struct mo_json v, unsigned *pairs, struct mo_err *e)
{
    bool object = mo_json_is(v, MO_JSON_OBJECT);
    struct mo_json_iter it;
    struct mo_json key, val;
    int rc = 0;

    mo_json_iter(&it, v);
    while (rc == 0 && mo_json_next(&it, &key, &val)) {
        if (object)
            rc = once(it, key, pairs, e);
        if (rc == 0)
            rc = twice(val, pairs, e);
    }
    return rc;
}

static unsigned hex4(const char *p)
{
    unsigned v = 0;

    for (size_t i = 0; i < 4; i++) {
        unsigned c = (unsigned char)p[i];

        v = v << 4 | (c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    return v;
}

/* Half of a pair is no character: some readers drop it, some replace it, some
 * keep it, and what runs would not be what was shown. A backslash stands only
 * in strings, and the parser has seen each escape. */
static int halves(struct mo_span text, struct mo_err *e)
{
    for (size_t i = 0; i + 1 < text.n; i++) {
        unsigned v = 0;

        if (text.p[i] != '\\')
            continue;
        if (text.p[++i] != 'u')
            continue;
        v = hex4(text.p + i + 1);
        i += 4;
        if ((v & 0xf800) != 0xd800)
            continue;
        if (v < 0xdc00 && i + 6 < text.n && text.p[i + 1] == '\\' &&
            text.p[i + 2] == 'u' && (hex4(text.p + i + 3) & 0xfc00) == 0xdc00) {
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
        rc = twice(args, &pairs, e);
        if (rc == 0)
            rc = halves(mo_json_text(args), e);
        if (rc < 0)
            return mo_wrap(e, "arguments");
        rc = mo_json_compact(args, out);
    }
    return rc < 0 ? mo_fail(e, rc, "arguments: too big") : 0;
}

/* --- digests ------------------------------------------------------------- */

/* Each part with its length in front: no two lists of parts read alike. */
static void put(struct mo_sha256 *h, struct mo_span part)
{
    char head[24];
    int n = snprintf(head, sizeof(head), "%zu:", part.n);

    mo_sha256_put(h, head, (size_t)n);
    mo_sha256_put(h, part.p, part.n);
}

static void digest(const char *what, const struct mo_span *parts, size_t n,
                   char out[MO_EXACT_DIGEST])
{
    unsigned char sum[MO_SHA256_LEN];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    put(&h, mo_span_cstr(what));
    for (size_t i = 0; i < n; i++)
        put(&h, parts[i]);
    mo_sha256_end(&h, sum);
    mo_hex(sum, sizeof(sum), out);
}

void mo_exact_tool(const struct mo_tool_def *d, char out[MO_EXACT_DIGEST])
{
    const struct mo_span parts[] = {d->server, d->name, d->description,
                                    d->schema, d->annotations};

    digest("tool", parts, MO_COUNT(parts), out);
}

void mo_exact_call(const struct mo_exact_call *c, char out[MO_EXACT_DIGEST])
{
    const struct mo_span parts[] = {
        c->session, c->call, c->server,
        c->tool,    c->args, mo_span_cstr(c->tool_digest),
    };

    digest("call", parts, MO_COUNT(parts), out);
}
