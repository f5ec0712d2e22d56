#include "codec/json/jvalue.h"
#include "servers/import.h"

#define STEPS_MAX ((uint64_t)1000 * 1000)

static bool equal(struct mo_json a, struct mo_json b)
{
    uint64_t steps = STEPS_MAX;

    return a.p && b.p ? mo_jvalue_equal(a, b, &steps) == 1 : a.p == b.p;
}

/* Compares env or headers: a reference on our side equals any value on
 * theirs. */
static bool same_map(struct mo_json ours, struct mo_json theirs)
{
    if (mo_json_len(ours) != mo_json_len(theirs))
        return false;
    for (struct mo_json_walk m = mo_json_walk(theirs); mo_json_step(&m);) {
        struct mo_json mine = mo_jvalue_find(ours, m.key);
        bool ref = mo_span_starts(mo_json_text(mine), MO_SPAN("\"${secret:"));

        if (!mine.p || (!ref && !equal(mine, m.val)))
            return false;
    }
    return true;
}

bool mo_import_same(struct mo_json ours, struct mo_json imported)
{
    static const struct {
        const char *key;
        bool map;
    } rows[] = {{"command", false}, {"args", false},  {"url", false},
                {"image", false},   {"cwd", false},   {"transport", false},
                {"env", true},      {"headers", true}};

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_json a = mo_json_get(ours, rows[i].key);
        struct mo_json b = mo_json_get(imported, rows[i].key);
        bool empty = mo_json_len(a) == 0 && mo_json_len(b) == 0;

        if (strcmp(rows[i].key, "transport") == 0) {
            if (!a.p)
                a = mo_json_get(ours, "type");
            if (mo_json_str_eq(a, MO_SPAN("sse")) != (b.p != NULL))
                return false;
            continue;
        }
        if (rows[i].map ? !same_map(a, b)
                        : !equal(a, b) && !(empty && (!a.p || !b.p) &&
                                            i == 1)) /* no args, [] */
            return false;
    }
    return true;
}
