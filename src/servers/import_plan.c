#include "servers/import_plan.h"

#include "codec/json/jvalue.h"
#include "secrets/key.h"

#define STEPS_MAX ((uint64_t)1000 * 1000)

static const char *const words[] = {
    [MO_PLAN_ADD] = "add",         [MO_PLAN_SAME] = "same",
    [MO_PLAN_DIFFERS] = "differs", [MO_PLAN_REPLACE] = "replace",
    [MO_PLAN_CANNOT] = "cannot",
};

const char *mo_plan_word(enum mo_plan_action a)
{
    return words[a];
}

bool mo_plan_writes(const struct mo_plan *p, size_t i)
{
    return p->todo[i] == MO_PLAN_ADD || p->todo[i] == MO_PLAN_REPLACE;
}

/* --- comparing ---------------------------------------------------------------
 */

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
    mo_json_each (m, theirs) {
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

/* --- making a plan -------------------------------------------------------- */

static enum mo_plan_action action_for(const struct mo_plan *p,
                                      const struct mo_import_server *s,
                                      struct mo_json mine)
{
    if (s->cannot[0])
        return MO_PLAN_CANNOT;
    if (!mine.p)
        return MO_PLAN_ADD;
    if (mo_import_same(mine, s->json))
        return MO_PLAN_SAME;
    return p->replace ? MO_PLAN_REPLACE : MO_PLAN_DIFFERS;
}

static void decide_actions(struct mo_plan *p, struct mo_json ours)
{
    for (size_t i = 0; i < p->im.n; i++) {
        const struct mo_import_server *s = &p->im.v[i];

        p->todo[i] = action_for(p, s, mo_json_get(ours, s->name));
        if (!mo_plan_writes(p, i))
            continue;
        p->writes++;
        for (struct mo_import_secret *x = s->secrets; x; x = x->next) {
            p->keys += x->value != NULL;
            p->asks += x->value == NULL;
        }
    }
}

int mo_plan_make(struct mo_plan *p, struct mo_span theirs, struct mo_span ours,
                 const char *home, struct mo_err *e)
{
    const struct mo_import_opts o = {.home = home, .store = p->store};
    struct mo_json_doc doc = {.bad_at = 0};
    int rc = 0;

    mo_arena_init(&p->a, MO_IMPORT_ARENA_MAX);
    rc = mo_import_read(&p->a, theirs, &o, &p->im, e);
    if (rc < 0) {
        mo_plan_fini(p);
        return rc;
    }
    p->todo = mo_arena_zalloc(&p->a, (p->im.n + 1) * sizeof(*p->todo));
    if (p->todo == NULL) {
        mo_plan_fini(p);
        return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    (void)mo_json_parse(ours, 0, &doc, NULL);
    decide_actions(p, mo_json_get(doc.root, "mcpServers"));
    return 0;
}

void mo_plan_fini(struct mo_plan *p)
{
    mo_import_wipe(&p->im);
    mo_arena_fini(&p->a);
    p->im = (struct mo_import){.n = 0};
}

/* --- showing a plan ------------------------------------------------------- */

static void put_secrets(struct mo_jw *w, const struct mo_import_server *s)
{
    mo_jw_arr(w);
    for (struct mo_import_secret *x = s->secrets; x; x = x->next) {
        mo_jw_obj(w);
        mo_jw_member_cstr(w, "name", x->name);
        mo_jw_member_bool(w, "known", x->value != NULL);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void put_server(struct mo_jw *w, const struct mo_import_server *s,
                       enum mo_plan_action todo)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", s->name);
    mo_jw_member_cstr(w, "was", s->was ? s->was : s->name);
    mo_jw_member_cstr(w, "action", words[todo]);
    mo_jw_member_cstr(w, "why", s->cannot[0] ? s->cannot : NULL);
    mo_jw_member(w, "leftOut", mo_buf_view(&s->left_out));
    mo_jw_member_bool(w, "keyInArgs", s->key_in_args);
    mo_jw_key(w, "secrets");
    put_secrets(w, s);
    mo_jw_end(w);
}

void mo_plan_json(const struct mo_plan *p, const char *file, bool written,
                  struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    if (file)
        mo_jw_member_cstr(&w, "file", file);
    mo_jw_member_cstr(&w, "format", p->im.format);
    mo_jw_member_bool(&w, "written", written);
    mo_jw_member_arr(&w, "servers");
    for (size_t i = 0; i < p->im.n; i++)
        put_server(&w, &p->im.v[i], p->todo[i]);
    mo_jw_end_all(&w);
}

/* --- applying a plan ------------------------------------------------------ */

static bool has_same_secret(const struct mo_secrets *store, struct mo_span name,
                            struct mo_span value)
{
    mo_autowipe struct mo_buf b = {.max = MO_SECRET_MAX + 64};

    return mo_secrets_has(store, name) &&
           mo_secrets_get(store, name, &b, NULL) == 0 &&
           mo_span_eq_ct(mo_buf_view(&b), value);
}

/* An equal secret is left alone; a different one is not overwritten without
 * replace. */
static int store_key(const struct mo_plan *p, struct mo_secrets *store,
                     const struct mo_import_secret *x, struct mo_err *e)
{
    struct mo_span name = mo_span_cstr(x->name), value = {x->value, x->n};

    if (has_same_secret(store, name, value))
        return 0;
    if (mo_secrets_has(store, name) && !p->replace)
        return mo_fail(e, MO_EEXISTS,
                       "the secret '%s' exists with another value; --replace "
                       "overwrites it",
                       x->name);
    return mo_secrets_put(store, name, value, e);
}

static int store_keys(const struct mo_plan *p, const struct mo_config *cfg,
                      struct mo_err *e)
{
    struct mo_secrets *store = NULL;
    int rc = 0;

    if (!p->store || p->keys == 0)
        return 0;
    rc = mo_secrets_for(cfg, true, &store, e);
    for (size_t i = 0; rc == 0 && i < p->im.n; i++) {
        if (!mo_plan_writes(p, i))
            continue;
        for (struct mo_import_secret *x = p->im.v[i].secrets; rc == 0 && x;
             x = x->next)
            rc = x->value ? store_key(p, store, x, e) : 0;
    }
    mo_secrets_close(store);
    return rc;
}

int mo_plan_write(const struct mo_plan *p, const struct mo_config *cfg,
                  struct mo_file_edit *r, struct mo_err *e)
{
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < p->im.n; i++) {
        const struct mo_import_server *s = &p->im.v[i];
        const char *path[] = {"mcpServers", s->name, NULL};

        if (mo_plan_writes(p, i))
            rc = mo_file_edit_set(r, path, mo_json_text(s->json), e);
    }
    /* before the file, so that no reference lacks its value */
    return rc < 0 ? rc : store_keys(p, cfg, e);
}
