/* agree.c - see agree.h. */
#include "engine/agree.h"

#include "codec/json/jvalue.h"

#define STEPS_MAX ((uint64_t)1 << 20)

bool mo_agree_nothing(struct mo_json v)
{
    bool yes = false;
    uint64_t n = 1;

    switch (mo_json_type(v)) {
    case MO_JSON_NONE:
    case MO_JSON_NULL:
        return true;
    case MO_JSON_BOOL:
        return mo_json_bool(v, &yes) == 0 && !yes;
    case MO_JSON_NUMBER:
        return mo_json_u64(v, &n) == 0 && n == 0;
    case MO_JSON_STRING:
        return mo_json_str_eq(v, MO_SPAN(""));
    default:
        return mo_json_len(v) == 0;
    }
}

bool mo_agree_same(struct mo_json a, struct mo_json b)
{
    uint64_t steps = STEPS_MAX;

    if (mo_agree_nothing(a) && mo_agree_nothing(b))
        return true;
    if (!a.p || !b.p)
        return false;
    return mo_jvalue_equal(a, b, &steps) == 1;
}

static bool has_element(struct mo_json array, struct mo_json want)
{
    for (struct mo_json_walk at = mo_json_walk(array); mo_json_step(&at);)
        if (mo_agree_same(at.val, want))
            return true;
    return false;
}

bool mo_agree_set(struct mo_json ours, struct mo_json theirs, bool more)
{
    if (!more && mo_json_len(ours) != mo_json_len(theirs))
        return false;
    for (struct mo_json_walk at = mo_json_walk(ours); mo_json_step(&at);)
        if (!has_element(theirs, at.val))
            return false;
    return true;
}

/* True for "rw,size=1" and "rw,size=1,rprivate" (neither has escapes). */
static bool begins_with(struct mo_json with, struct mo_json text)
{
    return mo_json_is(text, MO_JSON_STRING) && with.n >= 2 &&
           mo_span_starts(mo_json_text(text), mo_span(with.p, with.n - 1));
}

bool mo_agree_ours(struct mo_json ours, struct mo_json theirs, bool longer)
{
    if (!mo_json_is(theirs, MO_JSON_OBJECT))
        return false;
    for (struct mo_json_walk at = mo_json_walk(ours); mo_json_step(&at);) {
        struct mo_json got = mo_jvalue_find(theirs, at.key);

        if (longer ? !begins_with(at.val, got) : !mo_agree_same(at.val, got))
            return false;
    }
    return true;
}
