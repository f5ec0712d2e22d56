#include "codec/json/jschema_priv.h"

/* jschema_in.c - keywords for the content of objects and arrays. */

#define PAIR_COST 16 /* comparisons of uniqueItems per step */

/* --- objects ------------------------------------------------------------- */

/* Every name in the list is a member of v. `because` may be none. */
static bool need_all(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                     const struct mo_jsv_path *at, struct mo_json because)
{
    bool ok = true;

    if (!mo_json_is(list, MO_JSON_ARRAY))
        return true;
    mo_json_each (it, list) {
        struct mo_jsv_path here = {.up = at, .key = it.val};

        if (!mo_json_is(it.val, MO_JSON_STRING))
            continue;
        if (!mo_jsv_spend(c, 1 + v.n / 64))
            return true;
        if (mo_jvalue_find(v, it.val).p)
            continue;
        if (because.p)
            ok = mo_jsv_say(c, &here, "is required with %.*s", SHOW(because));
        else
            ok = mo_jsv_say(c, &here, "is required");
    }
    return ok;
}

bool mo_jsv_required(ARGS)
{
    if (mo_json_is(s->kw[k], MO_JSON_BOOL))
        return true; /* draft 3 */
    return need_all(c, s->kw[k], v, at, (struct mo_json){NULL, 0});
}

bool mo_jsv_properties(ARGS)
{
    bool ok = true;

    mo_json_each (it, v) {
        struct mo_jsv_path here = {.up = at, .key = it.key};
        struct mo_json sub;

        if (!mo_jsv_spend(c, 1 + s->kw[k].n / 64))
            return true;
        sub = mo_jvalue_find(s->kw[k], it.key);
        if (sub.p && !mo_jsv_walk(c, sub, it.val, &here))
            ok = false;
    }
    return ok;
}

/* Check every pattern against every name. */
bool mo_jsv_pattern_properties(ARGS)
{
    bool ok = true;

    if (!mo_json_is(s->kw[k], MO_JSON_OBJECT))
        return true;
    mo_json_each (pattern, s->kw[k]) {
        mo_json_each (it, v) {
            struct mo_jsv_path here = {.up = at, .key = it.key};

            if (mo_jsv_matches(c, pattern.key, it.key) == 1 &&
                !mo_jsv_walk(c, pattern.val, it.val, &here))
                ok = false;
            if (c->rc)
                return true;
        }
    }
    return ok;
}

/* True if a pattern matches the name. An unsupported pattern counts as a match:
 * no false alarm. */
static bool claimed(struct mo_jsv *c, struct mo_json patterns, struct mo_json k)
{
    mo_json_each (it, patterns) {
        if (!it.key.p || mo_jsv_matches(c, it.key, k) != 0)
            return true;
    }
    return false;
}

bool mo_jsv_additional_properties(ARGS)
{
    struct mo_json props = s->kw[K_PROPERTIES];
    bool ok = true, yes = true;

    mo_json_bool(s->kw[k], &yes);
    mo_json_each (it, v) {
        struct mo_jsv_path here = {.up = at, .key = it.key};

        if (!mo_jsv_spend(c, 1 + props.n / 64))
            return true;
        if (mo_jvalue_find(props, it.key).p ||
            claimed(c, s->kw[K_PATTERN_PROPERTIES], it.key))
            continue;
        if (!yes)
            ok = mo_jsv_say(c, &here, "is not a known member");
        else if (!mo_jsv_walk(c, s->kw[k], it.val, &here))
            ok = false;
    }
    return ok;
}

bool mo_jsv_property_names(ARGS)
{
    bool ok = true;

    mo_json_each (it, v) {
        struct mo_jsv_path here = {.up = at, .key = it.key};

        if (!mo_jsv_holds(c, s->kw[k], it.key, &here))
            ok = mo_jsv_say(c, &here, "is not a name allowed here");
    }
    return ok;
}

/* Both kinds of dependencies on a member: names, or a schema. */
bool mo_jsv_dependencies(ARGS)
{
    bool ok = true;

    mo_json_each (it, s->kw[k]) {
        if (!it.key.p || !mo_jsv_spend(c, 1 + v.n / 64))
            return true;
        if (!mo_jvalue_find(v, it.key).p)
            continue;
        if (mo_json_is(it.val, MO_JSON_ARRAY)
                ? !need_all(c, it.val, v, at, it.key)
                : !mo_jsv_walk(c, it.val, v, at))
            ok = false;
    }
    return ok;
}

/* --- arrays -------------------------------------------------------------- */

/* Check item i against schema i; items without a schema are skipped. */
static bool walk_tuple(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                       const struct mo_jsv_path *at)
{
    struct mo_jsv_path here = {.up = at};
    struct mo_json_iter items;
    struct mo_json k, item;
    bool ok = true;

    mo_json_iter(&items, v);
    mo_json_each_while (it, list, mo_json_next(&items, &k, &item)) {
        if (!mo_jsv_walk(c, it.val, item, &here))
            ok = false;
        here.index++;
    }
    return ok;
}

/* Check items from `from` on against one schema. */
static bool walk_items(struct mo_jsv *c, struct mo_json sub, struct mo_json v,
                       const struct mo_jsv_path *at, size_t from)
{
    struct mo_jsv_path here = {.up = at};
    bool ok = true;

    mo_json_each_while (it, v, !c->rc) {
        if (here.index >= from && !mo_jsv_walk(c, sub, it.val, &here))
            ok = false;
        here.index++;
    }
    return ok;
}

bool mo_jsv_prefix_items(ARGS)
{
    if (!mo_json_is(s->kw[k], MO_JSON_ARRAY))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    return walk_tuple(c, s->kw[k], v, at);
}

bool mo_jsv_items(ARGS)
{
    struct mo_json prefix = s->kw[K_PREFIX_ITEMS];
    bool tuple = mo_json_is(prefix, MO_JSON_ARRAY);

    if (mo_json_is(s->kw[k], MO_JSON_ARRAY))
        return walk_tuple(c, s->kw[k], v, at);
    return walk_items(c, s->kw[k], v, at, tuple ? mo_json_len(prefix) : 0);
}

/* Before 2020-12: items after a list of schemas. */
bool mo_jsv_additional_items(ARGS)
{
    struct mo_json items = s->kw[K_ITEMS];

    if (!mo_json_is(items, MO_JSON_ARRAY))
        return true;
    return walk_items(c, s->kw[k], v, at, mo_json_len(items));
}

bool mo_jsv_contains(ARGS)
{
    struct mo_jsv_path here = {.up = at};
    uint64_t min = 1, max = UINT64_MAX, n = 0;

    if (s->kw[K_MIN_CONTAINS].p &&
        !mo_jsv_count(c, s->kw[K_MIN_CONTAINS], &min))
        min = 0;
    if (s->kw[K_MAX_CONTAINS].p &&
        !mo_jsv_count(c, s->kw[K_MAX_CONTAINS], &max))
        max = UINT64_MAX;
    mo_json_each_while (it, v, !c->rc) {
        n += mo_jsv_holds(c, s->kw[k], it.val, &here);
        here.index++;
    }
    if (n < min)
        return mo_jsv_say(c, at, "must have %llu item%s of the wanted form",
                          (unsigned long long)min, mo_jsv_plural(min));
    return n <= max || mo_jsv_say(c, at, "has too many items of one form");
}

/* Scan scalars, of which there may be many, without counting each. */
static bool same(struct mo_jsv *c, struct mo_json a, struct mo_json b)
{
    enum mo_json_type t = mo_json_type(a);

    if (t != mo_json_type(b))
        return false;
    if (t == MO_JSON_NUMBER)
        return mo_jvalue_cmp(a, b) == 0;
    if (t == MO_JSON_STRING)
        return mo_jvalue_str_same(a, b);
    return mo_jsv_equal(c, a, b);
}

/* True if the rest of the array holds an equal item. */
static bool again(struct mo_jsv *c, struct mo_json one,
                  struct mo_json_iter rest, size_t *pairs)
{
    struct mo_json k, other;

    while (!c->rc && mo_json_next(&rest, &k, &other)) {
        size_t cost = (one.n + other.n) / 64 + (++*pairs % PAIR_COST == 0);

        if (cost > 0 && !mo_jsv_spend(c, cost))
            return false;
        if (same(c, one, other))
            return true;
    }
    return false;
}

bool mo_jsv_unique_items(ARGS)
{
    struct mo_jsv_path here = {.up = at};
    size_t pairs = 0;
    bool wanted = false;

    mo_json_bool(s->kw[k], &wanted);
    mo_json_each_while (it, v, wanted && !c->rc) {
        if (again(c, it.val, it.at, &pairs))
            return mo_jsv_say(c, &here, "stands in the array twice");
        here.index++;
    }
    return true;
}
