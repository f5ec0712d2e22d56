#include "codec/json/jschema_priv.h"

/* jschema_in.c - keywords for the content of objects and arrays. */

#define PAIR_COST 16 /* comparisons of uniqueItems per step */

/* --- objects ------------------------------------------------------------- */

/* Every name in the list is a member of v. `because` may be none. */
static bool need_all(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                     const struct mo_jsv_path *at, struct mo_json because)
{
    struct mo_json_iter it;
    struct mo_json k, name;
    bool ok = true;

    mo_json_iter(&it, list);
    while (mo_json_is(list, MO_JSON_ARRAY) && mo_json_next(&it, &k, &name)) {
        struct mo_jsv_path here = {.up = at, .key = name};

        if (!mo_json_is(name, MO_JSON_STRING))
            continue;
        if (!mo_jsv_spend(c, 1 + v.n / 64))
            return true;
        if (mo_jvalue_find(v, name).p)
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
    if (mo_json_is(s->kw[K_REQUIRED], MO_JSON_BOOL))
        return true; /* draft 3 */
    return need_all(c, s->kw[K_REQUIRED], v, at, (struct mo_json){NULL, 0});
}

bool mo_jsv_min_properties(ARGS)
{
    return mo_jsv_at_least(c, at, s->kw[K_MIN_PROPERTIES], mo_json_len(v),
                           "member");
}

bool mo_jsv_max_properties(ARGS)
{
    return mo_jsv_at_most(c, at, s->kw[K_MAX_PROPERTIES], mo_json_len(v),
                          "member");
}

bool mo_jsv_properties(ARGS)
{
    struct mo_json props = s->kw[K_PROPERTIES], k, val;
    struct mo_json_iter it;
    bool ok = true;

    mo_json_iter(&it, v);
    while (mo_json_next(&it, &k, &val)) {
        struct mo_jsv_path here = {.up = at, .key = k};
        struct mo_json sub;

        if (!mo_jsv_spend(c, 1 + props.n / 64))
            return true;
        sub = mo_jvalue_find(props, k);
        if (sub.p && !mo_jsv_walk(c, sub, val, &here))
            ok = false;
    }
    return ok;
}

/* Check every pattern against every name. */
bool mo_jsv_pattern_properties(ARGS)
{
    struct mo_json_iter patterns, it;
    struct mo_json p, sub, k, val;
    bool ok = true;

    mo_json_iter(&patterns, s->kw[K_PATTERN_PROPERTIES]);
    while (mo_json_next(&patterns, &p, &sub)) {
        mo_json_iter(&it, v);
        while (p.p && mo_json_next(&it, &k, &val)) {
            struct mo_jsv_path here = {.up = at, .key = k};

            if (mo_jsv_matches(c, p, k) == 1 &&
                !mo_jsv_walk(c, sub, val, &here))
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
    struct mo_json_iter it;
    struct mo_json p, sub;

    mo_json_iter(&it, patterns);
    while (mo_json_next(&it, &p, &sub)) {
        if (!p.p || mo_jsv_matches(c, p, k) != 0)
            return true;
    }
    return false;
}

bool mo_jsv_additional_properties(ARGS)
{
    struct mo_json more = s->kw[K_ADDITIONAL_PROPERTIES], k, val;
    struct mo_json props = s->kw[K_PROPERTIES];
    struct mo_json_iter it;
    bool ok = true, yes = true;

    mo_json_bool(more, &yes);
    mo_json_iter(&it, v);
    while (mo_json_next(&it, &k, &val)) {
        struct mo_jsv_path here = {.up = at, .key = k};

        if (!mo_jsv_spend(c, 1 + props.n / 64))
            return true;
        if (mo_jvalue_find(props, k).p ||
            claimed(c, s->kw[K_PATTERN_PROPERTIES], k))
            continue;
        if (!yes)
            ok = mo_jsv_say(c, &here, "is not a known member");
        else if (!mo_jsv_walk(c, more, val, &here))
            ok = false;
    }
    return ok;
}

bool mo_jsv_property_names(ARGS)
{
    struct mo_json_iter it;
    struct mo_json k, val;
    bool ok = true;

    mo_json_iter(&it, v);
    while (mo_json_next(&it, &k, &val)) {
        struct mo_jsv_path here = {.up = at, .key = k};

        if (!mo_jsv_holds(c, s->kw[K_PROPERTY_NAMES], k, &here))
            ok = mo_jsv_say(c, &here, "is not a name allowed here");
    }
    return ok;
}

/* Both kinds of dependencies on a member: names, or a schema. */
static bool depend(struct mo_jsv *c, struct mo_json map, struct mo_json v,
                   const struct mo_jsv_path *at)
{
    struct mo_json_iter it;
    struct mo_json k, then;
    bool ok = true;

    mo_json_iter(&it, map);
    while (mo_json_next(&it, &k, &then)) {
        if (!k.p || !mo_jsv_spend(c, 1 + v.n / 64))
            return true;
        if (!mo_jvalue_find(v, k).p)
            continue;
        if (mo_json_is(then, MO_JSON_ARRAY) ? !need_all(c, then, v, at, k)
                                            : !mo_jsv_walk(c, then, v, at))
            ok = false;
    }
    return ok;
}

bool mo_jsv_dependent_required(ARGS)
{
    return depend(c, s->kw[K_DEPENDENT_REQUIRED], v, at);
}

bool mo_jsv_dependent_schemas(ARGS)
{
    return depend(c, s->kw[K_DEPENDENT_SCHEMAS], v, at);
}

bool mo_jsv_dependencies(ARGS)
{
    return depend(c, s->kw[K_DEPENDENCIES], v, at);
}

/* --- arrays -------------------------------------------------------------- */

bool mo_jsv_min_items(ARGS)
{
    return mo_jsv_at_least(c, at, s->kw[K_MIN_ITEMS], mo_json_len(v), "item");
}

bool mo_jsv_max_items(ARGS)
{
    return mo_jsv_at_most(c, at, s->kw[K_MAX_ITEMS], mo_json_len(v), "item");
}

/* Check item i against schema i; items without a schema are skipped. */
static bool walk_tuple(struct mo_jsv *c, struct mo_json list, struct mo_json v,
                       const struct mo_jsv_path *at)
{
    struct mo_jsv_path here = {.up = at};
    struct mo_json_iter schemas, it;
    struct mo_json k, sub, val;
    bool ok = true;

    mo_json_iter(&schemas, list);
    mo_json_iter(&it, v);
    while (mo_json_next(&schemas, &k, &sub) && mo_json_next(&it, &k, &val)) {
        if (!mo_jsv_walk(c, sub, val, &here))
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
    struct mo_json_iter it;
    struct mo_json k, val;
    bool ok = true;

    mo_json_iter(&it, v);
    while (!c->rc && mo_json_next(&it, &k, &val)) {
        if (here.index >= from && !mo_jsv_walk(c, sub, val, &here))
            ok = false;
        here.index++;
    }
    return ok;
}

bool mo_jsv_prefix_items(ARGS)
{
    if (!mo_json_is(s->kw[K_PREFIX_ITEMS], MO_JSON_ARRAY))
        return mo_jsv_note(c, MO_JSCHEMA_BAD_SCHEMA);
    return walk_tuple(c, s->kw[K_PREFIX_ITEMS], v, at);
}

bool mo_jsv_items(ARGS)
{
    struct mo_json items = s->kw[K_ITEMS], prefix = s->kw[K_PREFIX_ITEMS];
    bool tuple = mo_json_is(prefix, MO_JSON_ARRAY);

    if (mo_json_is(items, MO_JSON_ARRAY))
        return walk_tuple(c, items, v, at);
    return walk_items(c, items, v, at, tuple ? mo_json_len(prefix) : 0);
}

/* Before 2020-12: items after a list of schemas. */
bool mo_jsv_additional_items(ARGS)
{
    struct mo_json items = s->kw[K_ITEMS];

    if (!mo_json_is(items, MO_JSON_ARRAY))
        return true;
    return walk_items(c, s->kw[K_ADDITIONAL_ITEMS], v, at, mo_json_len(items));
}

bool mo_jsv_contains(ARGS)
{
    struct mo_jsv_path here = {.up = at};
    uint64_t min = 1, max = UINT64_MAX, n = 0;
    struct mo_json_iter it;
    struct mo_json k, val;

    if (s->kw[K_MIN_CONTAINS].p &&
        !mo_jsv_count(c, s->kw[K_MIN_CONTAINS], &min))
        min = 0;
    if (s->kw[K_MAX_CONTAINS].p &&
        !mo_jsv_count(c, s->kw[K_MAX_CONTAINS], &max))
        max = UINT64_MAX;
    mo_json_iter(&it, v);
    while (!c->rc && mo_json_next(&it, &k, &val)) {
        n += mo_jsv_holds(c, s->kw[K_CONTAINS], val, &here);
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
    struct mo_json_iter it;
    struct mo_json k, val;
    size_t pairs = 0;
    bool wanted = false;

    mo_json_bool(s->kw[K_UNIQUE_ITEMS], &wanted);
    mo_json_iter(&it, v);
    while (wanted && !c->rc && mo_json_next(&it, &k, &val)) {
        if (again(c, val, it, &pairs))
            return mo_jsv_say(c, &here, "stands in the array twice");
        here.index++;
    }
    return true;
}
