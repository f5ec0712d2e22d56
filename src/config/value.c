/* value.c - checks, copies and stores one configuration value.
 *
 * The error of a setter is a sentence without its subject ("must be ..."); the
 * caller adds the key's name and the place. A setter of a list or map sets
 * l->at to the invalid entry. */
#include <stdio.h>

#include "config/read.h"

#include "base/nearest.h"
#include "codec/money.h"
#include "config/reference.h"

static int fail_no_memory(struct mo_config_load *l, struct mo_err *e)
{
    l->no_memory = true;
    return mo_fail(e, MO_ENOMEM, "out of memory");
}

static int set_bool(struct mo_config_load *l, const struct mo_key *k,
                    void *field, struct mo_json v, struct mo_err *e)
{
    (void)l, (void)k;
    if (mo_json_bool(v, field) < 0)
        return mo_fail(e, MO_EINVAL, "must be true or false");
    return 0;
}

static int set_int(struct mo_config_load *l, const struct mo_key *k,
                   void *field, struct mo_json v, struct mo_err *e)
{
    int64_t n = 0;

    (void)l;
    if (!mo_json_is(v, MO_JSON_NUMBER) || mo_json_i64(v, &n) < 0 ||
        (double)n < k->min || (double)n > k->max)
        return mo_fail(e, MO_EINVAL, "must be a whole number from %.0f to %.0f",
                       k->min, k->max);
    memcpy(field, &n, sizeof(n));
    return 0;
}

static int set_num(struct mo_config_load *l, const struct mo_key *k,
                   void *field, struct mo_json v, struct mo_err *e)
{
    double n = 0;

    (void)l;
    if (!mo_json_is(v, MO_JSON_NUMBER) || mo_json_f64(v, &n) < 0 ||
        !(n >= k->min && n <= k->max))
        return mo_fail(e, MO_EINVAL, "must be a number from %g to %g", k->min,
                       k->max);
    memcpy(field, &n, sizeof(n));
    return 0;
}

/* True if the text would be a reference in a key that allows them; any other
 * "${" is plain text. */
static bool has_reference(struct mo_span s)
{
    return mo_span_search(s, MO_SPAN("${secret:")) >= 0 ||
           mo_span_search(s, MO_SPAN("${env:")) >= 0 ||
           mo_span_search(s, MO_SPAN("${file:")) >= 0;
}

static int check_text(struct mo_config_load *l, const struct mo_key *k,
                      struct mo_span s, const char *copy, struct mo_err *e)
{
    const char *why;
    bool ref = false;

    if (s.n > MO_KEY_TEXT_MAX)
        return mo_fail(e, MO_EINVAL, "must not be longer than %zu KiB",
                       MO_KEY_TEXT_MAX / 1024);
    if (memchr(s.p, '\0', s.n))
        return mo_fail(e, MO_EINVAL, "must not contain a NUL character");
    if (k->flags & MO_KEY_REF) {
        ref = mo_reference_any(s);
        if (mo_reference_check(s, e) < 0)
            return MO_EINVAL;
    } else if (has_reference(s)) {
        return mo_fail(e, MO_EINVAL,
                       "must not refer to a secret: it would be readable by "
                       "others here; use env or headers");
    }
    if ((k->flags & MO_KEY_SECRET) && k->type == MO_KEY_STR && !ref)
        l->literal_secret = true;
    why = k->check && !ref ? k->check(copy) : NULL;
    return why ? mo_fail(e, MO_EINVAL, "%s", why) : 0;
}

static int store_text(struct mo_config_load *l, const struct mo_key *k,
                      const char **out, struct mo_span s, struct mo_err *e)
{
    char *copy = mo_arena_strndup(l->arena, s.p, s.n);
    int rc;

    if (!copy)
        return fail_no_memory(l, e);
    rc = check_text(l, k, mo_span(copy, s.n), copy, e);
    if (rc == 0)
        *out = copy;
    return rc;
}

static int store_json_text(struct mo_config_load *l, const struct mo_key *k,
                           const char **out, struct mo_json v, struct mo_err *e)
{
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING))
        return mo_fail(e, MO_EINVAL, "%s",
                       k->wrong ? k->wrong : "must be a text in double quotes");
    if (mo_json_str(v, l->arena, &s) < 0)
        return fail_no_memory(l, e);
    return store_text(l, k, out, s, e);
}

static int set_str(struct mo_config_load *l, const struct mo_key *k,
                   void *field, struct mo_json v, struct mo_err *e)
{
    return store_json_text(l, k, field, v, e);
}

static int fail_bad_word(const struct mo_key *k, struct mo_span s,
                         struct mo_err *e)
{
    char list[160] = "";
    struct mo_nearest near;

    mo_nearest_init(&near, s);
    for (size_t i = 0; i < k->nwords; i++) {
        size_t n = strlen(list);

        mo_nearest_offer(&near, k->words[i].word);
        if (!k->words[i].alias)
            (void)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
                           k->words[i].word);
    }
    if (near.best)
        return mo_fail(e, MO_EINVAL, "must be one of %s; did you mean '%s'?",
                       list, near.best);
    return mo_fail(e, MO_EINVAL, "must be one of %s", list);
}

static int store_word(const struct mo_key *k, void *field, struct mo_span s,
                      struct mo_err *e)
{
    for (size_t i = 0; i < k->nwords; i++) {
        if (mo_span_ieq(s, mo_span_cstr(k->words[i].word))) {
            memcpy(field, &k->words[i].value, sizeof(int));
            return 0;
        }
    }
    return fail_bad_word(k, s, e);
}

static int set_word(struct mo_config_load *l, const struct mo_key *k,
                    void *field, struct mo_json v, struct mo_err *e)
{
    struct mo_span s = mo_span(NULL, 0);

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str(v, l->arena, &s) < 0)
        return fail_no_memory(l, e);
    return store_word(k, field, s, e);
}

/* The digits are read as they are written: no rounding. */
static int set_money(struct mo_config_load *l, const struct mo_key *k,
                     void *field, struct mo_json v, struct mo_err *e)
{
    int64_t amount = 0;

    (void)l;
    if (!mo_json_is(v, MO_JSON_NUMBER) ||
        mo_money_read(mo_json_text(v), &amount) < 0 ||
        (double)amount > k->max * MO_MONEY_ONE)
        return mo_fail(e, MO_EINVAL,
                       "must be an amount from 0 to %.15g, with at most six "
                       "digits after the point",
                       k->max);
    memcpy(field, &amount, sizeof(amount));
    return 0;
}

static int set_list(struct mo_config_load *l, const struct mo_key *k,
                    void *field, struct mo_json v, struct mo_err *e)
{
    struct mo_config_list list = {.n = 0};
    size_t n = mo_json_len(v);

    if (!mo_json_is(v, MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "must be a list of texts: [\"...\"]");
    if (n > k->max_items)
        return mo_fail(e, MO_EINVAL, "must not have more than %zu entries",
                       k->max_items);
    if (n == 0 && (k->flags & MO_KEY_FILLED))
        return mo_fail(e, MO_EINVAL,
                       "must not be empty; leave it out to choose all");
    list.v = mo_arena_alloc(l->arena, sizeof(*list.v) * n);
    if (!list.v)
        return fail_no_memory(l, e);
    mo_json_each (it, v) {
        int rc = store_json_text(l, k, &list.v[list.n], it.val, e);

        l->at = it.val.p;
        if (rc < 0)
            return mo_wrap(e, "entry %zu", list.n + 1);
        list.n++;
    }
    memcpy(field, &list, sizeof(list));
    return 0;
}

static bool map_has_name(const struct mo_config_map *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++) {
        if (strcmp(m->v[i].name, name) == 0)
            return true;
    }
    return false;
}

/* Refuses names of variables and headers that could inject another one. */
static const char *check_map_name(const char *name)
{
    for (const char *p = name; *p; p++) {
        if ((unsigned char)*p <= 0x20 || *p == '=' || *p == ':' || *p == 0x7f)
            return "must have names without blanks, '=' and ':'";
    }
    return *name ? NULL : "must not have an empty name";
}

static int store_pair(struct mo_config_load *l, const struct mo_key *k,
                      struct mo_config_map *m, struct mo_json key,
                      struct mo_json val, struct mo_err *e)
{
    static const struct mo_key name_key = {.type = MO_KEY_MAP,
                                           .check = check_map_name};
    struct mo_config_pair *p = &m->v[m->n];
    int rc = store_json_text(l, &name_key, &p->name, key, e);

    if (rc < 0)
        return rc;
    if (map_has_name(m, p->name))
        return mo_fail(e, MO_EINVAL, "must not have '%.60s' twice", p->name);
    rc = store_json_text(l, k, &p->value, val, e);
    if (rc < 0)
        return mo_wrap(e, "'%.60s'", p->name);
    m->n++;
    return 0;
}

static int set_map(struct mo_config_load *l, const struct mo_key *k,
                   void *field, struct mo_json v, struct mo_err *e)
{
    struct mo_config_map map = {.n = 0};
    size_t n = mo_json_len(v);

    if (!mo_json_is(v, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL,
                       "must be an object of texts: {\"NAME\": \"...\"}");
    if (n > k->max_items)
        return mo_fail(e, MO_EINVAL, "must not have more than %zu entries",
                       k->max_items);
    map.v = mo_arena_alloc(l->arena, sizeof(*map.v) * n);
    if (!map.v)
        return fail_no_memory(l, e);
    mo_json_each (it, v) {
        int rc = store_pair(l, k, &map, it.key, it.val, e);

        l->at = it.key.p;
        if (rc < 0)
            return rc;
    }
    memcpy(field, &map, sizeof(map));
    return 0;
}

typedef int set_fn(struct mo_config_load *l, const struct mo_key *k,
                   void *field, struct mo_json v, struct mo_err *e);

static set_fn *const setters[] = {
    [MO_KEY_BOOL] = set_bool, [MO_KEY_INT] = set_int,
    [MO_KEY_NUM] = set_num,   [MO_KEY_MONEY] = set_money,
    [MO_KEY_STR] = set_str,   [MO_KEY_WORD] = set_word,
    [MO_KEY_LIST] = set_list, [MO_KEY_MAP] = set_map,
};

int mo_config_set_json(struct mo_config_load *l, const struct mo_key *k,
                       void *field, struct mo_json v, struct mo_err *e)
{
    MO_BUG_ON(k->type > MO_KEY_MAP);
    l->at = v.p;
    return setters[k->type](l, k, field, v, e);
}

int mo_config_set_text(struct mo_config_load *l, const struct mo_key *k,
                       void *field, const char *text, struct mo_err *e)
{
    struct mo_span s = mo_span_cstr(text);
    struct mo_json_doc doc = {.bad_at = 0};

    MO_BUG_ON(k->type > MO_KEY_WORD);
    if (k->type == MO_KEY_STR)
        return store_text(l, k, field, s, e);
    if (k->type == MO_KEY_WORD)
        return store_word(k, field, s, e);
    /* Numbers and booleans are written as in the file. If the text is not
     * JSON, doc.root is empty and the setter reports the error. */
    (void)mo_json_parse(s, MO_CONFIG_DEPTH_MAX, &doc, NULL);
    return setters[k->type](l, k, field, doc.root, e);
}

void mo_config_note(struct mo_config_load *l, const void *field,
                    enum mo_layer layer, const char *name, unsigned line,
                    unsigned col)
{
    struct mo_config_origin *o =
        mo_arena_new(l->arena, struct mo_config_origin);

    if (!o) {
        l->no_memory = true;
        return;
    }
    *o = (struct mo_config_origin){
        l->cfg->origins, field, layer, name, line, col};
    l->cfg->origins = o;
}

void mo_config_defaults(struct mo_config_load *l, const struct mo_keys *keys,
                        void *base)
{
    for (size_t i = 0; i < keys->n; i++) {
        const struct mo_key *k = &keys->v[i];
        char *field = (char *)base + k->off;
        struct mo_err e = {0};

        if (k->type == MO_KEY_SECTION)
            mo_config_defaults(l, k->sub, field);
        if (!k->def)
            continue;
        mo_config_set_text(l, k, field, k->def, &e);
        MO_BUG_ON(e.code &&
                  e.code != MO_ENOMEM); /* a bad default in the table */
    }
}
