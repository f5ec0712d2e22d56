#include "policy/remembered_rules.h"

#include <limits.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/rand.h"

#define ID_BYTES       12
#define NAME_MAX_BYTES 4096 /* the limit of catalogues */

/* All texts of a list live in its arena; a change makes a new list. */
struct list {
    struct mo_arena arena;
    struct mo_rule v[MO_REMEMBERED_RULES_MAX];
    struct mo_json docs[MO_REMEMBERED_RULES_MAX]; /* the JSON of each rule */
    struct mo_rules rules;
};

struct mo_remembered_rules {
    char path[PATH_MAX];
    struct list *now;
    uint64_t changes;
    atomic_uint *shared; /* NULL: there are no other workers */
    unsigned seen;       /* of it */
    void (*on_change)(void *ctx);
    void *on_change_ctx;
};

static void list_free(struct list *l)
{
    if (l == NULL)
        return;
    mo_arena_fini(&l->arena);
    mo_free(l);
}

static struct list *list_new(void)
{
    struct list *l = mo_new(struct list);

    if (l)
        mo_arena_init(&l->arena, MO_REMEMBERED_RULES_FILE_MAX * 4);
    return l;
}

/* --- one rule ------------------------------------------------------------ */

/* Reads a name as a pattern that matches only this name. */
static int read_name(struct mo_arena *a, struct mo_json v, struct mo_span *out)
{
    mo_autobuf struct mo_buf pattern = {.max = NAME_MAX_BYTES * 2};
    mo_autobuf struct mo_buf plain = {.max = NAME_MAX_BYTES};
    int rc = MO_EPROTO;

    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &plain) == 0 &&
        plain.len > 0)
        rc = mo_match_literal(&pattern, mo_buf_view(&plain));
    if (rc == 0) {
        out->n = pattern.len;
        out->p = mo_arena_strndup(a, pattern.p, pattern.len);
        rc = out->p ? 0 : MO_ENOMEM;
    }
    return rc;
}

static int read_args(struct mo_arena *arena, struct mo_json args,
                     struct mo_rule *r)
{
    struct mo_rule_arg *v = NULL;

    if (args.p == NULL)
        return 0;
    if (!mo_json_is(args, MO_JSON_OBJECT))
        return MO_EPROTO;
    v = mo_arena_zalloc(arena, (mo_json_len(args) + 1) * sizeof(*v));
    if (v == NULL)
        return MO_ENOMEM;
    r->args = v;
    mo_json_each (it, args) {
        struct mo_rule_arg *a = &v[r->nargs++];

        if (!mo_json_is(it.val, MO_JSON_STRING) ||
            mo_json_str(it.key, arena, &a->path) < 0 ||
            mo_json_str(it.val, arena, &a->cond) < 0)
            return MO_EPROTO;
    }
    return 0;
}

int mo_remembered_rules_read(struct mo_arena *a, struct mo_json doc,
                             struct mo_rule *r, struct mo_err *e)
{
    bool allow = mo_json_str_eq(mo_json_get(doc, "action"), MO_SPAN("allow"));

    *r = (struct mo_rule){.action = allow ? MO_ACTION_ALLOW : MO_ACTION_DENY};
    if (read_name(a, mo_json_get(doc, "server"), &r->server) < 0 ||
        read_name(a, mo_json_get(doc, "tool"), &r->tool) < 0 ||
        read_args(a, mo_json_get(doc, "args"), r) < 0)
        return mo_fail(e, MO_EINVAL,
                       "a rule needs the strings \"server\" and \"tool\"; "
                       "\"args\" must be an object of strings");
    return mo_rule_check(r, e);
}

static int add_rule(struct list *l, struct mo_span text, struct mo_err *e)
{
    char *copy = NULL;
    struct mo_json_doc doc;
    int rc = 0;

    if (l->rules.n >= MO_REMEMBERED_RULES_MAX)
        return mo_fail(e, MO_EBUSY,
                       "there are already %d rules; remove some first",
                       MO_REMEMBERED_RULES_MAX);
    copy = mo_arena_strndup(&l->arena, text.p, text.n);
    if (copy == NULL)
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    rc = mo_json_parse(mo_span(copy, text.n), 0, &doc, e);
    if (rc == 0)
        rc =
            mo_remembered_rules_read(&l->arena, doc.root, &l->v[l->rules.n], e);
    if (rc < 0)
        return rc;
    l->docs[l->rules.n++] = doc.root;
    l->rules.v = l->v;
    return 0;
}

/* --- the file ------------------------------------------------------------ */

/* Parses the text of the file; NULL: the file does not exist. */
static int read_list(const char *path, struct mo_span text, struct list *l,
                     struct mo_err *e)
{
    struct mo_json all = {NULL, 0};
    struct mo_json_doc doc;
    int rc = 0;

    if (text.p == NULL)
        return 0;
    rc = mo_json_parse(text, 0, &doc, e);
    if (rc == 0)
        all = mo_json_get(doc.root, "rules");
    if (rc == 0 && !mo_json_is(all, MO_JSON_ARRAY))
        rc = mo_fail(e, MO_EINVAL, "\"rules\" is missing");
    mo_json_each_while (it, all, rc == 0)
        rc = add_rule(l, mo_json_text(it.val), e);
    return rc < 0 ? mo_wrap(e,
                            "%s is damaged; repair it, or remove it to "
                            "discard all remembered rules",
                            path)
                  : 0;
}

static int read_file(const char *path, struct list *l, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_REMEMBERED_RULES_FILE_MAX};
    int rc = 0;

    rc = mo_file_read(path, MO_REMEMBERED_RULES_FILE_MAX, &b, NULL, e);
    if (rc == 0)
        rc = read_list(path, mo_span(b.p ? b.p : "", b.len), l, e);
    return rc == MO_ENOTFOUND ? 0 : rc;
}

static void put_list(const struct list *l, struct mo_buf *b)
{
    mo_buf_puts(b, "{\"version\":1,\"rules\":[");
    for (size_t i = 0; i < l->rules.n; i++) {
        mo_buf_puts(b, i ? ",\n" : "\n");
        mo_buf_span(b, mo_json_text(l->docs[i]));
    }
    mo_buf_puts(b, "]}\n");
}

struct edit {
    const char *path;
    struct list *l;     /* read from the current file */
    struct mo_span add; /* a rule; empty: remove one */
    struct mo_span id;
};

static int remove_rule(struct list *l, struct mo_span id, struct mo_err *e)
{
    size_t n = 0;

    for (size_t i = 0; i < l->rules.n; i++) {
        if (mo_json_str_eq(mo_json_get(l->docs[i], "id"), id))
            continue;
        l->v[n] = l->v[i];
        l->docs[n++] = l->docs[i];
    }
    if (n == l->rules.n)
        return mo_fail(e, MO_ENOTFOUND, "there is no such rule");
    l->rules.n = n;
    return 0;
}

static int edit_text(void *ctx, struct mo_span text, struct mo_buf *out,
                     struct mo_err *e)
{
    struct edit *x = ctx;
    int rc = read_list(x->path, text, x->l, e);

    if (rc == 0)
        rc = x->add.n ? add_rule(x->l, x->add, e) : remove_rule(x->l, x->id, e);
    if (rc == 0)
        put_list(x->l, out);
    return rc;
}

/* Takes the list that was written to the file, and tells the other workers. */
static void take_list(struct mo_remembered_rules *a, struct list *l)
{
    list_free(a->now);
    a->now = l;
    a->changes++;
    if (a->shared && atomic_fetch_add(a->shared, 1) == a->seen)
        a->seen++; /* else there is more than our change to read */
}

/* Reads the file again, adds or removes a rule, writes the file and makes the
 * result the current list. */
static int change_file(struct mo_remembered_rules *a, struct mo_span add,
                       struct mo_span id, struct mo_err *e)
{
    struct edit x = {a->path, list_new(), add, id};
    const struct mo_file_change c = {.path = a->path,
                                     .max = MO_REMEMBERED_RULES_FILE_MAX,
                                     .sync = true,
                                     .edit = edit_text,
                                     .ctx = &x};
    int rc = x.l ? mo_file_change(&c, e)
                 : mo_fail(e, MO_ENOMEM, "rules: out of memory");

    if (rc < 0) {
        list_free(x.l);
        return rc;
    }
    take_list(a, x.l);
    if (a->on_change)
        a->on_change(a->on_change_ctx);
    return 0;
}

/* --- adding -------------------------------------------------------------- */

int mo_remembered_rules_add(struct mo_remembered_rules *a,
                            const struct mo_remembered_rule_wish *wish,
                            char id[MO_REMEMBERED_RULES_ID_MAX],
                            struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_REMEMBERED_RULES_FILE_MAX};
    struct mo_jw w;

    _Static_assert(MO_TOKEN_LEN(ID_BYTES) + 1 == MO_REMEMBERED_RULES_ID_MAX,
                   "an id");
    mo_random_token(id, ID_BYTES);
    w = mo_jw_object(&b);
    mo_jw_member(&w, "id", mo_span_cstr(id));
    mo_jw_member(&w, "server", wish->server);
    mo_jw_member(&w, "tool", wish->tool);
    mo_jw_member(
        &w, "action",
        mo_span_cstr(wish->action == MO_ACTION_ALLOW ? "allow" : "deny"));
    mo_jw_member_raw(&w, "args", wish->conditions);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    mo_jw_member(&w, "who", mo_span_cstr(wish->who));
    mo_jw_end(&w);
    return mo_buf_err(&b)
               ? mo_fail(e, b.err, "the rule is too big")
               : change_file(a, mo_buf_view(&b), mo_span(NULL, 0), e);
}

/* --- listing, removing --------------------------------------------------- */

/* Reads what another worker has changed. If it cannot, it tries again with the
 * next question. */
static void catch_up(const struct mo_remembered_rules *shown)
{
    struct mo_remembered_rules *a =
        (struct mo_remembered_rules *)(uintptr_t)shown;
    unsigned seen = a->shared ? atomic_load(a->shared) : a->seen;
    struct list *l = seen != a->seen ? list_new() : NULL;
    struct mo_err e;

    if (!l)
        return;
    if (read_file(a->path, l, &e) < 0) {
        list_free(l);
        return;
    }
    list_free(a->now);
    a->now = l;
    a->seen = seen;
    a->changes++;
}

void mo_remembered_rules_share(struct mo_remembered_rules *a,
                               atomic_uint *changes)
{
    a->shared = changes;
    a->seen = atomic_load(changes) - 1; /* it was read before */
}

const struct mo_rules *
mo_remembered_rules_all(const struct mo_remembered_rules *a)
{
    catch_up(a);
    return &a->now->rules;
}

uint64_t mo_remembered_rules_changes(const struct mo_remembered_rules *a)
{
    catch_up(a);
    return a->changes;
}

struct mo_span mo_remembered_rules_doc(const struct mo_remembered_rules *a,
                                       size_t i)
{
    MO_BUG_ON(i >= a->now->rules.n);
    return mo_json_text(a->now->docs[i]);
}

static bool list_has(const struct list *l, struct mo_span id)
{
    for (size_t i = 0; i < l->rules.n; i++)
        if (mo_json_str_eq(mo_json_get(l->docs[i], "id"), id))
            return true;
    return false;
}

bool mo_remembered_rules_has(const struct mo_remembered_rules *a,
                             struct mo_span id)
{
    catch_up(a);
    return list_has(a->now, id);
}

int mo_remembered_rules_remove(struct mo_remembered_rules *a, struct mo_span id,
                               struct mo_err *e)
{
    return change_file(a, mo_span(NULL, 0), id, e);
}

/* --- other servers -------------------------------------------------------- */

struct merge {
    const char *path;
    const struct mo_map *theirs;
    const struct mo_log *log;
    struct list *l;
    bool changed;
};

/* A rule of another server; what cannot be read or has no room is left out. */
static void add_theirs(struct merge *m, struct mo_span id,
                       const struct mo_shared_row *row)
{
    struct mo_json_doc doc;
    struct mo_err e;

    if (row->is_gone) {
        m->changed |= remove_rule(m->l, id, NULL) == 0;
        return;
    }
    if (list_has(m->l, id))
        return;
    if (mo_json_parse(mo_span(row->doc, row->n), 0, &doc, &e) < 0 ||
        !mo_json_str_eq(mo_json_get(doc.root, "id"), id) ||
        add_rule(m->l, mo_span(row->doc, row->n), &e) < 0)
        mo_log(m->log, MO_WARN, "rules",
               "a remembered rule of another server is not used: %.*s",
               (int)id.n, id.p);
    else
        m->changed = true;
}

static int merge_text(void *ctx, struct mo_span text, struct mo_buf *out,
                      struct mo_err *e)
{
    struct merge *m = ctx;
    int rc = read_list(m->path, text, m->l, e);

    if (rc < 0)
        return rc;
    mo_map_each (en, m->theirs)
        add_theirs(m, mo_map_key(en), en->value);
    if (m->changed)
        put_list(m->l, out);
    return 0;
}

void mo_remembered_rules_merge(struct mo_remembered_rules *a,
                               const struct mo_map *theirs,
                               struct mo_shared_rows *r,
                               const struct mo_log *log)
{
    struct merge m = {a->path, theirs, log, list_new(), false};
    const struct mo_file_change c = {.path = a->path,
                                     .max = MO_REMEMBERED_RULES_FILE_MAX,
                                     .sync = true,
                                     .edit = merge_text,
                                     .ctx = &m};
    struct mo_err e;
    int rc = m.l ? mo_file_change(&c, &e)
                 : mo_fail(&e, MO_ENOMEM, "rules: out of memory");

    if (rc < 0)
        mo_log_err(log, MO_WARN, "rules", &e, "rules of other servers");
    for (size_t i = 0; rc == 0 && i < m.l->rules.n; i++) {
        mo_autobuf struct mo_buf id = {.max = MO_REMEMBERED_RULES_ID_MAX};

        if (mo_json_str_buf(mo_json_get(m.l->docs[i], "id"), &id) == 0 &&
            !mo_map_get(theirs, mo_buf_view(&id)))
            mo_shared_rows_put(r, MO_REMEMBERED_RULES_KIND, mo_buf_view(&id),
                               mo_json_text(m.l->docs[i]));
    }
    if (rc == 0 && m.changed)
        take_list(a, m.l);
    else
        list_free(m.l);
}

void mo_remembered_rules_on_change(struct mo_remembered_rules *a,
                                   void (*changed)(void *ctx), void *ctx)
{
    a->on_change = changed;
    a->on_change_ctx = ctx;
}

int mo_remembered_rules_open(const char *dir, struct mo_remembered_rules **out,
                             struct mo_err *e)
{
    struct mo_remembered_rules *a = mo_new(struct mo_remembered_rules);
    int n = 0, rc = 0;

    if (a)
        a->now = list_new();
    if (a == NULL || a->now == NULL) {
        mo_remembered_rules_close(a);
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    }
    n = snprintf(a->path, sizeof(a->path), "%s/" MO_REMEMBERED_RULES_FILE, dir);
    rc = (size_t)n >= sizeof(a->path)
             ? mo_fail(e, MO_ETOOBIG, "store.dir is too long")
             : read_file(a->path, a->now, e);
    if (rc < 0) {
        mo_remembered_rules_close(a);
        return rc;
    }
    *out = a;
    return 0;
}

void mo_remembered_rules_close(struct mo_remembered_rules *a)
{
    if (a == NULL)
        return;
    list_free(a->now);
    mo_free(a);
}
