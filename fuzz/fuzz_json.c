/* fuzz_json.c - any bytes into the JSON rooms; what they promise is checked:
 * the vector and the plain build agree, bad_at is the first wrong byte, the
 * cursor finds what the scanner accepted, re-emitting changes only blanks,
 * quoting and unquoting are each other's inverse. */
#include <stdlib.h>

#include "../tests/unit/json_plain.h"
#include "codec/json/json.h"
#include "codec/text/utf8.h"

#define MAX ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Before bad_at all is well; with that byte it no longer is. */
static void check_bad_at(struct mo_span text, size_t bad_at)
{
    struct mo_json_doc doc;
    int rc;

    must(bad_at <= text.n);
    rc = mo_json_parse(mo_span_head(text, bad_at), 0, &doc, NULL);
    must(rc == 0 || doc.bad_at == bad_at);
    if (bad_at == text.n)
        return;
    rc = mo_json_parse(mo_span_head(text, bad_at + 1), 0, &doc, NULL);
    must(rc == MO_EPROTO && doc.bad_at == bad_at);
}

static void check_string(struct mo_json v)
{
    struct mo_json_doc doc;
    struct mo_arena a;
    struct mo_buf plain, quoted;
    struct mo_span s;

    mo_arena_init(&a, MAX);
    mo_buf_init(&plain, MAX);
    mo_buf_init(&quoted, MAX);
    must(mo_json_str(v, &a, &s) == 0);
    must(mo_json_str_buf(v, &plain) == 0);
    must(mo_span_eq(s, mo_buf_view(&plain)));
    must(mo_utf8_valid(s));
    must(mo_json_str_eq(v, s));
    must(mo_json_quote(&quoted, s) == 0);
    must(mo_json_parse(mo_buf_view(&quoted), 0, &doc, NULL) == 0);
    must(mo_json_str_eq(doc.root, s));
    mo_buf_fini(&plain);
    mo_buf_fini(&quoted);
    mo_arena_fini(&a);
}

static void check_number(struct mo_json v)
{
    int64_t i;
    double d;

    if (mo_json_i64(v, &i) == 0)
        must(mo_json_f64(v, &d) == 0 && d == (double)i);
}

static void check_value(struct mo_json v);

static void check_members(struct mo_json v)
{
    struct mo_json_iter it, other;
    struct mo_json k, val, k2, val2;
    size_t n = 0;

    mo_json_iter(&it, v);
    plain_json_iter(&other, v);
    while (mo_json_next(&it, &k, &val)) {
        must(plain_json_next(&other, &k2, &val2));
        must(k.p == k2.p && k.n == k2.n && val.p == val2.p && val.n == val2.n);
        if (k.p)
            check_string(k);
        check_value(val);
        n++;
    }
    must(!plain_json_next(&other, &k2, &val2));
    must(mo_json_len(v) == n);
    must(n == 0 || mo_json_at(v, n - 1).p == val.p);
    must(mo_json_at(v, n).p == NULL);
}

/* A value the cursor cuts out is one value, exactly. Deep ones are not parsed
 * again at every level: that would be quadratic. */
static void check_value(struct mo_json v)
{
    struct mo_json_doc doc;

    if (v.n < 256) {
        must(mo_json_parse(mo_json_text(v), 0, &doc, NULL) == 0);
        must(doc.root.p == v.p && doc.root.n == v.n);
    }
    if (mo_json_is(v, MO_JSON_STRING))
        check_string(v);
    else if (mo_json_is(v, MO_JSON_NUMBER))
        check_number(v);
    else
        check_members(v);
}

static void check_emit(struct mo_json v)
{
    struct mo_buf one, two, pretty;
    struct mo_json_doc doc;

    mo_buf_init(&one, MAX);
    mo_buf_init(&two, MAX);
    mo_buf_init(&pretty, MAX);
    must(mo_json_compact(v, &one) == 0);
    must(mo_json_parse(mo_buf_view(&one), 0, &doc, NULL) == 0);
    must(!doc.has_nl && one.len <= v.n);
    must(mo_json_compact(doc.root, &two) == 0);
    must(mo_span_eq(mo_buf_view(&one), mo_buf_view(&two)));
    if (mo_json_pretty(v, &pretty) == 0) {
        mo_buf_reset(&two);
        must(mo_json_parse(mo_buf_view(&pretty), 0, &doc, NULL) == 0);
        must(mo_json_compact(doc.root, &two) == 0);
        must(mo_span_eq(mo_buf_view(&one), mo_buf_view(&two)));
    }
    mo_buf_fini(&one);
    mo_buf_fini(&two);
    mo_buf_fini(&pretty);
}

/* The bytes as a text to be written: what is valid comes back. */
static void check_quote(struct mo_span s)
{
    struct mo_json_doc doc;
    struct mo_buf b;

    mo_buf_init(&b, MAX);
    must(mo_json_quote(&b, s) == 0);
    must(mo_json_parse(mo_buf_view(&b), 0, &doc, NULL) == 0);
    must(mo_json_is(doc.root, MO_JSON_STRING));
    must(mo_json_str_eq(doc.root, s) == mo_utf8_valid(s));
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span text = mo_span((const char *)data, n);
    struct mo_json_doc doc, plain;
    struct mo_err e = {0};
    int rc = mo_json_parse(text, 0, &doc, &e);

    must(rc == 0 || (rc == MO_EPROTO && e.code == rc && e.msg[0]));
    must(plain_json_parse(text, 0, &plain, NULL) == rc);
    must(doc.root.p == plain.root.p && doc.root.n == plain.root.n);
    must(doc.bad_at == plain.bad_at && doc.has_nl == plain.has_nl);
    check_quote(text);
    if (rc < 0) {
        check_bad_at(text, doc.bad_at);
        return 0;
    }
    check_value(doc.root);
    check_emit(doc.root);
    return 0;
}
