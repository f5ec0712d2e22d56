/* fuzz_json_diff.cc - our scanner and cursor against simdjson's DOM: both
 * accept or both refuse, and what they accept has the same values.
 *
 * Known differences, each recognised and passed over, nothing else is:
 * - simdjson refuses numbers outside int64/uint64/double; for us a number is
 *   text until somebody asks for its value.
 * - simdjson refuses some lone surrogates written as escapes and encodes
 *   others as they are; for us they read as U+FFFD.
 * - we refuse more than MO_JSON_DEPTH_MAX levels, simdjson more than 1024.
 *
 * The only C++ of the project; built with -Dfuzz=true alone. */
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <simdjson.h>
#include <string>
#include <string_view>

extern "C" {
#include "codec/json/json.h"
}

using namespace simdjson;

static void must(bool ok)
{
    if (!ok)
        abort();
}

/* Whether the text has an escape of a surrogate at all. */
static bool has_surrogate_escape(std::string_view t)
{
    for (size_t i = 0; i + 3 < t.size(); i++) {
        if (t[i] == '\\' && t[i + 1] == 'u' && (t[i + 2] | 32) == 'd' &&
            strchr("89abcdefABCDEF", t[i + 3]))
            return true;
    }
    return false;
}

static bool out_of_range(mo_json v)
{
    std::string_view t(v.p, v.n);
    int64_t i;
    uint64_t u;
    double d;

    if (t.find_first_of(".eE") != t.npos)
        return mo_json_f64(v, &d) < 0 || v.n > 1024;
    return mo_json_i64(v, &i) < 0 && mo_json_u64(v, &u) < 0;
}

static bool has_big_number(mo_json v)
{
    struct mo_json_iter it;
    mo_json k, val;

    if (mo_json_is(v, MO_JSON_NUMBER))
        return out_of_range(v);
    mo_json_iter(&it, v);
    while (mo_json_next(&it, &k, &val)) {
        if (has_big_number(val))
            return true;
    }
    return false;
}

/* Where half a pair was replaced, simdjson has bytes of its own. */
static void same_string(mo_json ours, std::string_view theirs)
{
    struct mo_buf b;
    std::string_view got;

    mo_buf_init(&b, (size_t)8 << 20);
    must(mo_json_str_buf(ours, &b) == 0);
    got = std::string_view(b.p ? b.p : "", b.len);
    if (!has_surrogate_escape(std::string_view(ours.p, ours.n)) ||
        got.find("\xef\xbf\xbd") == got.npos)
        must(got == theirs);
    mo_buf_fini(&b);
}

static void same_number(mo_json v, dom::element el)
{
    int64_t i;
    uint64_t u;
    double d;

    if (el.type() == dom::element_type::INT64)
        must(mo_json_i64(v, &i) == 0 && i == int64_t(el));
    else if (el.type() == dom::element_type::UINT64)
        must(mo_json_u64(v, &u) == 0 && u == uint64_t(el));
    else if (v.n <= 1024)
        must(mo_json_f64(v, &d) == 0 && d == double(el));
}

static void same_value(mo_json v, dom::element el);

static void same_array(mo_json v, dom::array a)
{
    struct mo_json_iter it;
    mo_json k, val;

    mo_json_iter(&it, v);
    for (dom::element el : a) {
        must(mo_json_next(&it, &k, &val));
        same_value(val, el);
    }
    must(!mo_json_next(&it, &k, &val));
}

static void same_object(mo_json v, dom::object o)
{
    struct mo_json_iter it;
    mo_json k, val;

    mo_json_iter(&it, v);
    for (dom::key_value_pair kv : o) {
        must(mo_json_next(&it, &k, &val));
        same_string(k, kv.key);
        same_value(val, kv.value);
    }
    must(!mo_json_next(&it, &k, &val));
}

static void same_value(mo_json v, dom::element el)
{
    bool b;

    switch (mo_json_type(v)) {
    case MO_JSON_NULL:
        return must(el.is_null());
    case MO_JSON_BOOL:
        return must(mo_json_bool(v, &b) == 0 && el.is_bool() && bool(el) == b);
    case MO_JSON_NUMBER:
        must(el.is_number());
        return same_number(v, el);
    case MO_JSON_STRING:
        must(el.is_string());
        return same_string(v, std::string_view(el));
    case MO_JSON_ARRAY:
        must(el.is_array());
        return same_array(v, dom::array(el));
    case MO_JSON_OBJECT:
        must(el.is_object());
        return same_object(v, dom::object(el));
    default:
        abort();
    }
}

/* We accept, they refuse: only for the reasons above. */
static void excuse(error_code err, mo_json root, std::string_view text)
{
    if (err == STRING_ERROR)
        return must(has_surrogate_escape(text));
    must(has_big_number(root)); /* the code's name differs by version */
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static dom::parser parser;
    std::string_view text((const char *)data, n);
    padded_string padded(text);
    struct mo_json_doc doc;
    struct mo_err e;
    dom::element root;
    error_code err;
    bool ours;

    memset(&e, 0, sizeof(e));
    ours = mo_json_parse(mo_span(text.data(), n), 0, &doc, &e) == 0;
    err = parser.parse(padded).get(root);
    if (!ours)
        must(err != SUCCESS || strstr(e.msg, "nested too deeply"));
    else if (err != SUCCESS)
        excuse(err, doc.root, text);
    else
        same_value(doc.root, root);
    return 0;
}
