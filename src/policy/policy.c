/* policy.c - applies the rules to a call, and compares tools with their pins;
 * see policy.h.
 *
 * tool_pins.h reads and digests a whole definition. To save that on each call,
 * a keyed hash of every definition that matched its pin is cached; only other
 * bytes are compared in full. Changed tools are listed until a person accepts
 * them. */
#include "policy/policy.h"

#include <stdio.h>

#include "base/map.h"
#include "base/rand.h"

#define PERSONS_MAX 3 /* session, remembered, draft */
#define RULES_ARENA ((size_t)64 * 1024 * 1024)
#define FLUSH_MS    1000  /* new pins are written in groups */
#define KNOWN_MAX   16384 /* cached hashes */
#define TEXT_MAX    ((size_t)4 * 1024 * 1024)
#define KEY_MAX     ((size_t)1024) /* longer ones are not cached */

struct view_rules {
    const char *name; /* in the configuration */
    struct mo_rules rules;
};

struct mo_policy {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_arena arena; /* the operator's rules */
    struct mo_rules rules;
    struct view_rules *views; /* of the views that have rules */
    size_t nviews;
    uint64_t loads; /* changes of the configured rules and defaults */
    struct mo_remembered_rules *remembered;
    struct mo_tool_pins *pins; /* NULL: not read yet */
    atomic_uint *pin_changes;  /* of all workers; NULL: there are none */
    struct mo_list changed;    /* of struct changed_tool */
    unsigned nchanged;
    struct mo_map known; /* server NUL tool -> hash of a good definition */
    uint64_t key0, key1; /* of that hash */
    struct mo_timer flush;
    struct mo_shared_rows *rows; /* NULL: rules and pins are only here */
};

/* --- rules of the configuration ------------------------------------------ */

static int copy_args(struct mo_arena *a, const struct mo_config_map *m,
                     struct mo_rule *r)
{
    struct mo_rule_arg *v = mo_arena_alloc(a, (m->n + 1) * sizeof(*v));

    if (v == NULL)
        return MO_ENOMEM;
    for (size_t i = 0; i < m->n; i++)
        v[i] = (struct mo_rule_arg){mo_span_cstr(m->v[i].name),
                                    mo_span_cstr(m->v[i].value)};
    r->args = v;
    r->nargs = m->n;
    return 0;
}

static void copy_claims(const struct mo_config_list *l, struct mo_rule *r)
{
    for (size_t i = 0; i < l->n; i++) {
        const char *s = l->v[i];

        if (*s == '!')
            r->denials |= mo_claim_bit(mo_span_cstr(s + 1));
        else
            r->claims |= mo_claim_bit(mo_span_cstr(s));
    }
}

/* Rules live in the arena, their texts in the configuration. A rule that does
 * not pass mo_rule_check() is an error, which names it by the key. */
static int make_rules(const struct mo_config_rules *from, const char *key,
                      struct mo_arena *a, struct mo_rules *out,
                      struct mo_err *e)
{
    struct mo_rule *v = mo_arena_zalloc(a, (from->n + 1) * sizeof(*v));

    if (v == NULL)
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    for (size_t i = 0; i < from->n; i++) {
        const struct mo_config_rule *f = &from->v[i];

        v[i] = (struct mo_rule){
            .server = mo_span_cstr(f->server),
            .tool = mo_span_cstr(f->tool),
            .reason = mo_span_cstr(f->reason),
            .action = (enum mo_action)f->action,
            .approver = (enum mo_approver)f->approver,
            .panel = mo_panel_of_rule(f),
        };
        v[i].final = !f->remember || v[i].panel.need;
        copy_claims(&f->annotations, &v[i]);
        if (copy_args(a, &f->args, &v[i]) < 0)
            return mo_fail(e, MO_ENOMEM, "rules: out of memory");
        if (mo_rule_check(&v[i], e) < 0)
            return mo_wrap(e, "%s[%zu]", key, i);
    }
    *out = (struct mo_rules){v, from->n};
    return 0;
}

static int make_view_rules(const struct mo_config_views *from,
                           struct mo_arena *a, struct view_rules **out,
                           size_t *n, struct mo_err *e)
{
    struct view_rules *v = mo_arena_zalloc(a, (from->n + 1) * sizeof(*v));
    char key[128];

    *out = v;
    *n = 0;
    if (v == NULL)
        return mo_fail(e, MO_ENOMEM, "rules: out of memory");
    for (size_t i = 0; i < from->n; i++) {
        const struct mo_config_view *f = &from->v[i];

        if (f->rules.n == 0)
            continue;
        (void)snprintf(key, sizeof(key), "views.%s.rules", f->name);
        v[*n].name = f->name;
        if (make_rules(&f->rules, key, a, &v[*n].rules, e) < 0)
            return e->code;
        (*n)++;
    }
    return 0;
}

static bool same_view_rules(const struct mo_policy *p,
                            const struct view_rules *v, size_t n)
{
    bool same = p->nviews == n;

    for (size_t i = 0; same && i < n; i++)
        same = strcmp(p->views[i].name, v[i].name) == 0 &&
               mo_rules_same(&p->views[i].rules, &v[i].rules);
    return same;
}

/* NULL: the view has none, or there is no view. */
static const struct mo_rules *rules_of_view(const struct mo_policy *p,
                                            struct mo_span view)
{
    for (size_t i = 0; view.n && i < p->nviews; i++)
        if (mo_span_is(view, p->views[i].name))
            return &p->views[i].rules;
    return NULL;
}

struct changed_tool {
    struct mo_list node;
    struct mo_tool tool; /* texts in the arena */
    struct mo_arena arena;
    struct mo_buf before;
};

/* Server, NUL, tool. Empty: too long. */
static struct mo_span make_key(char b[KEY_MAX], struct mo_span server,
                               struct mo_span tool)
{
    size_t n = server.n + 1 + tool.n;

    if (n > KEY_MAX || !server.n || !tool.n)
        return mo_span(NULL, 0);
    memcpy(b, server.p, server.n);
    b[server.n] = '\0';
    memcpy(b + server.n + 1, tool.p, tool.n);
    return mo_span(b, n);
}

/* --- the list of changed tools ------------------------------------------- */

static void drop_changed(struct mo_policy *p, struct changed_tool *c)
{
    mo_list_del(&c->node);
    p->nchanged--;
    mo_buf_fini(&c->before);
    mo_arena_fini(&c->arena);
    mo_free(c);
}

static struct changed_tool *find_changed(const struct mo_policy *p,
                                         struct mo_span server,
                                         struct mo_span tool)
{
    mo_list_each_entry (c, &p->changed, struct changed_tool, node)
        if (mo_span_eq(c->tool.def.server, server) &&
            mo_span_eq(c->tool.def.name, tool))
            return c;
    return NULL;
}

/* Without memory the tool is not listed, but still blocked. */
static void list_changed(struct mo_policy *p, const struct mo_tool *t,
                         struct mo_buf *before)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    struct mo_tool_def *def;

    if (c && strcmp(c->tool.digest, t->digest) == 0)
        return;
    if (c)
        drop_changed(p, c);
    c = p->nchanged < MO_POLICY_CHANGED_MAX ? mo_new(struct changed_tool)
                                            : NULL;
    if (!c)
        return;
    mo_arena_init(&c->arena, TEXT_MAX);
    mo_buf_init(&c->before, TEXT_MAX);
    mo_list_push(&p->changed, &c->node);
    p->nchanged++;
    c->tool = *t;
    def = &c->tool.def;
    if (mo_arena_span(&c->arena, def->server, &def->server) < 0 ||
        mo_arena_span(&c->arena, def->name, &def->name) < 0 ||
        mo_arena_span(&c->arena, def->description, &def->description) < 0 ||
        mo_arena_span(&c->arena, def->schema, &def->schema) < 0 ||
        mo_arena_span(&c->arena, def->annotations, &def->annotations) < 0 ||
        mo_buf_span(&c->before, mo_buf_view(before)) < 0)
        drop_changed(p, c);
}

/* --- comparing ----------------------------------------------------------- */

static void on_flush(struct mo_timer *t)
{
    mo_policy_flush_pins(mo_container_of(t, struct mo_policy, flush));
}

void mo_policy_flush_pins(struct mo_policy *p)
{
    mo_timer_stop(p->loop, &p->flush);
    if (p->pins)
        mo_tool_pins_flush(p->pins);
}

/* Another worker may have accepted a definition. */
static void catch_up(struct mo_policy *p)
{
    if (p->pins && mo_tool_pins_catch_up(p->pins))
        mo_map_clear(&p->known);
}

void mo_policy_share_pins(struct mo_policy *p, atomic_uint *changes)
{
    p->pin_changes = changes;
}

/* A rule or a pin of this process: the other servers get it. */
static void on_own_change(void *ctx)
{
    mo_shared_rows_changed(((struct mo_policy *)ctx)->rows);
}

int mo_policy_load_pins(struct mo_policy *p, struct mo_err *e)
{
    int rc = 0;

    if (p->pins) {
        catch_up(p);
        return 0;
    }
    rc =
        mo_tool_pins_open(mo_loop_log(p->loop), p->cfg->store.dir, &p->pins, e);
    if (rc == 0 && p->pin_changes)
        mo_tool_pins_share(p->pins, p->pin_changes);
    if (rc == 0 && p->rows)
        mo_tool_pins_on_change(p->pins, on_own_change, p);
    return rc;
}

bool mo_policy_tool_is_pinned(struct mo_policy *p, const struct mo_tool *t,
                              struct mo_buf *before)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    mo_autobuf struct mo_buf own = {.max = TEXT_MAX};
    struct mo_err e;
    bool same;

    if (mo_policy_load_pins(p, &e) < 0)
        return false;
    same = mo_tool_pins_look(p->pins, t, &own);
    if (!same)
        list_changed(p, t, &own);
    else if (c)
        drop_changed(p, c);
    if (!same && before)
        (void)mo_buf_span(before, mo_buf_view(&own));
    if (same && !mo_timer_on(&p->flush))
        mo_timer_start(p->loop, &p->flush, FLUSH_MS);
    return same;
}

/* Never 0: in the map, NULL means no entry. */
static uint64_t hash_item(const struct mo_policy *p, struct mo_json item)
{
    return mo_siphash(p->key0, p->key1, mo_json_text(item)) | 1;
}

/* True if these bytes matched the pin before. */
static bool is_known(const struct mo_policy *p, struct mo_span key,
                     uint64_t hash)
{
    return key.n && (uintptr_t)mo_map_get(&p->known, key) == (uintptr_t)hash;
}

bool mo_policy_item_is_pinned(struct mo_policy *p, struct mo_span server,
                              struct mo_span tool, struct mo_json item)
{
    uint64_t hash = hash_item(p, item);
    char buf[KEY_MAX];
    struct mo_span key = make_key(buf, server, tool);
    mo_autoarena struct mo_arena a = {.cap = TEXT_MAX};
    struct mo_tool t = {.source = 0};
    bool same;

    catch_up(p);
    if (is_known(p, key, hash))
        return true;
    same = mo_tool_read(&a, server, tool, item, &t) == 0 &&
           mo_policy_tool_is_pinned(p, &t, NULL);
    if (same && key.n)
        (void)mo_map_put(&p->known, key, (void *)(uintptr_t)hash, NULL);
    return same;
}

bool mo_policy_item_changed(void *ctx, struct mo_span server,
                            struct mo_span tool, struct mo_json item)
{
    struct mo_policy *p = ctx;
    struct mo_err e;
    char buf[KEY_MAX];

    catch_up(p);
    if (p->cfg->gateway.approvals == MO_GW_NO_RULES ||
        is_known(p, make_key(buf, server, tool), hash_item(p, item)) ||
        mo_policy_load_pins(p, &e) < 0 ||
        !mo_tool_pins_changed(p->pins, server, tool, item))
        return false;
    /* Lists the tool, so that people see what changed. */
    return !mo_policy_item_is_pinned(p, server, tool, item);
}

/* --- accepting ----------------------------------------------------------- */

int mo_policy_accept_tool(struct mo_policy *p, const struct mo_tool *t)
{
    struct changed_tool *c = find_changed(p, t->def.server, t->def.name);
    struct mo_err e;
    int rc = mo_policy_load_pins(p, &e);

    if (rc == 0)
        rc = mo_tool_pins_accept(p->pins, t);
    if (rc < 0)
        return rc;
    mo_policy_flush_pins(p);
    mo_map_clear(&p->known); /* the old definition is no longer good */
    if (c)
        drop_changed(p, c);
    return 0;
}

const struct mo_tool *mo_policy_find_changed(const struct mo_policy *p,
                                             struct mo_span server,
                                             struct mo_span tool)
{
    const struct changed_tool *c = find_changed(p, server, tool);

    return c ? &c->tool : NULL;
}

static void put_changed(struct mo_jw *w, const struct changed_tool *c)
{
    const struct mo_tool_def *d = &c->tool.def;

    mo_jw_obj(w);
    mo_jw_member(w, "server", d->server);
    mo_jw_member(w, "tool", d->name);
    mo_jw_member(w, "digest", mo_span_cstr(c->tool.digest));
    mo_jw_member_raw(w, "before", mo_buf_view(&c->before));
    mo_jw_member_obj(w, "now");
    mo_jw_member_opt(w, "description", d->description);
    mo_jw_member_raw(w, "inputSchema", d->schema);
    mo_jw_member_raw(w, "annotations", d->annotations);
    mo_jw_end(w);
    mo_jw_end(w);
}

void mo_policy_put_changed(struct mo_policy *p, struct mo_jw *w)
{
    mo_jw_arr(w);
    mo_list_each_entry_safe (c, &p->changed, struct changed_tool, node) {
        if (!mo_policy_tool_is_pinned(p, &c->tool, NULL))
            put_changed(w, c); /* otherwise it was accepted and c is freed */
    }
    mo_jw_end(w);
}

/* --- other servers ------------------------------------------------------- */

static void merge_rules(void *ctx, const struct mo_map *theirs,
                        struct mo_shared_rows *r)
{
    struct mo_policy *p = ctx;

    mo_remembered_rules_merge(p->remembered, theirs, r, mo_loop_log(p->loop));
}

static void merge_pins(void *ctx, const struct mo_map *theirs,
                       struct mo_shared_rows *r)
{
    struct mo_policy *p = ctx;
    struct mo_err e;

    if (mo_policy_load_pins(p, &e) == 0)
        mo_tool_pins_merge(p->pins, theirs, r);
    else
        mo_log_err(mo_loop_log(p->loop), MO_WARN, "pins", &e,
                   "pins of other servers are not used");
}

int mo_policy_share(struct mo_policy *p, struct mo_store *store,
                    struct mo_err *e)
{
    const struct mo_shared_kind kinds[] = {
        {MO_REMEMBERED_RULES_KIND, merge_rules, p},
        {MO_TOOL_PINS_KIND, merge_pins, p},
    };
    int rc;

    if (!mo_store_is_shared(store))
        return 0;
    rc = mo_shared_rows_open(p->loop, store, "policy", kinds, MO_COUNT(kinds),
                             &p->rows, e);
    if (rc < 0)
        return rc;
    mo_remembered_rules_on_change(p->remembered, on_own_change, p);
    if (p->pins)
        mo_tool_pins_on_change(p->pins, on_own_change, p);
    return 0;
}

void mo_policy_unshare(struct mo_policy *p)
{
    mo_remembered_rules_on_change(p->remembered, NULL, NULL);
    if (p->pins)
        mo_tool_pins_on_change(p->pins, NULL, NULL);
    mo_shared_rows_close(mo_take_ptr(&p->rows));
}

const char *mo_policy_why(void *ctx)
{
    const struct mo_policy *p = ctx;

    return p->rows && !mo_shared_rows_are_read(p->rows)
               ? "the rules of the other servers are not read yet"
               : NULL;
}

struct rule_removal {
    struct mo_policy *p;
    char id[MO_REMEMBERED_RULES_ID_MAX];
    void (*done)(void *ctx, const struct mo_err *why);
    void *ctx;
};

/* It is gone for all: now it goes here. */
static void on_rule_gone(void *ctx, const struct mo_err *why)
{
    struct rule_removal x = *(struct rule_removal *)ctx;
    struct mo_err e;

    mo_free(ctx);
    if (!why &&
        mo_remembered_rules_remove(x.p->remembered, mo_span_cstr(x.id), &e) <
            0 &&
        e.code != MO_ENOTFOUND)
        why = &e;
    x.done(x.ctx, why);
}

void mo_policy_remove_rule(struct mo_policy *p, struct mo_span id,
                           void (*done)(void *ctx, const struct mo_err *why),
                           void *ctx)
{
    struct rule_removal *x = NULL;
    struct mo_err e = {0};

    if (!mo_remembered_rules_has(p->remembered, id)) {
        (void)mo_fail(&e, MO_ENOTFOUND, "there is no such rule");
    } else if (!p->rows) {
        (void)mo_remembered_rules_remove(p->remembered, id, &e);
    } else {
        x = mo_new(struct rule_removal);
        if (!x)
            (void)mo_fail(&e, MO_ENOMEM, "rules: out of memory");
    }
    if (x) {
        *x = (struct rule_removal){.p = p, .done = done, .ctx = ctx};
        (void)snprintf(x->id, sizeof(x->id), "%.*s", (int)id.n, id.p);
        if (mo_shared_rows_remove(p->rows, MO_REMEMBERED_RULES_KIND, id,
                                  on_rule_gone, x, &e) == 0)
            return;
        mo_free(x);
    }
    done(ctx, e.code ? &e : NULL);
}

/* --- one call ------------------------------------------------------------ */

/* Which rules and which default apply to each kind of caller. */
static const struct {
    bool session, remembered, draft; /* rules of people that apply */
    bool asks;                       /* false: "ask" was answered elsewhere */
    enum mo_approver approver;       /* if the rule names none */
    enum { BY_CONFIG, BY_GATEWAY, ALLOWED, ASKED } rest; /* no rule matches */
} callers[MO_POLICY_FROMS] = {
    [MO_POLICY_CHAT] = {true, true, false, true, MO_APPROVER_OWNER, BY_CONFIG},
    [MO_POLICY_CHAT_META] = {true, true, false, true, MO_APPROVER_OWNER,
                             ALLOWED},
    [MO_POLICY_CLIENT] = {false, true, false, true, MO_APPROVER_OPERATOR,
                          BY_GATEWAY},
    [MO_POLICY_FORWARDED] = {false, false, false, false, MO_APPROVER_OPERATOR,
                             ALLOWED},
    [MO_POLICY_STAND_IN] = {false, true, false, true, MO_APPROVER_OPERATOR,
                            BY_CONFIG},
    [MO_POLICY_PAGE] = {false, false, false, true, MO_APPROVER_OPERATOR,
                        BY_CONFIG},
    [MO_POLICY_TRY_OUT] = {false, true, true, true, MO_APPROVER_AUTO,
                           BY_CONFIG},
    [MO_POLICY_SESSION_NET] = {true, true, false, true, MO_APPROVER_OWNER,
                               ASKED},
    [MO_POLICY_SERVER_NET] = {true, true, false, true, MO_APPROVER_OPERATOR,
                              ASKED},
};

static enum mo_action default_action(const struct mo_policy *p,
                                     enum mo_policy_from from)
{
    switch (callers[from].rest) {
    case ALLOWED:
        return MO_ACTION_ALLOW;
    case ASKED:
        return MO_ACTION_ASK;
    case BY_GATEWAY:
        return p->cfg->gateway.approvals == MO_GW_ASK_REST ? MO_ACTION_ASK
                                                           : MO_ACTION_ALLOW;
    default:
        return (enum mo_action)p->cfg->approvals.fallback;
    }
}

static struct mo_subject make_subject(const struct mo_policy_call *c,
                                      struct mo_json_doc *doc)
{
    struct mo_subject s = {.server = c->server,
                           .tool = c->tool,
                           .claims = c->claims,
                           .args = c->args,
                           .schema = c->schema};

    if (!s.args.p && mo_json_parse(c->args_text, 0, doc, NULL) == 0)
        s.args = doc->root;
    return s;
}

static bool is_connection(const struct mo_policy_call *c)
{
    return callers[c->from].rest == ASKED || c->from == MO_POLICY_TRY_OUT;
}

static struct mo_verdict finish_verdict(struct mo_verdict v,
                                        enum mo_policy_from from)
{
    if (v.action == MO_ACTION_ASK && !callers[from].asks)
        v.action = MO_ACTION_ALLOW;
    if (v.approver == MO_APPROVER_AUTO)
        v.approver = callers[from].approver;
    if (v.panel.need) /* the owner and the client do not answer */
        v.approver = MO_APPROVER_OPERATOR;
    return v;
}

/* The stricter of two finished verdicts. Of two that ask: the one that fewer
 * may answer. */
static struct mo_verdict stricter(struct mo_verdict a, struct mo_verdict b)
{
    static const int rank[] = {
        [MO_ACTION_ALLOW] = 0, [MO_ACTION_ASK] = 1, [MO_ACTION_DENY] = 2};
    struct mo_panel both;

    if (rank[a.action] != rank[b.action])
        return rank[a.action] > rank[b.action] ? a : b;
    if (a.action != MO_ACTION_ASK)
        return a;
    both = mo_panel_join(&a.panel, &b.panel);
    if (b.approver < a.approver)
        a = b;
    a.panel = both;
    return a;
}

struct mo_verdict mo_policy_judge(const struct mo_policy *p,
                                  const struct mo_policy_call *c)
{
    const struct mo_rules *of_view = rules_of_view(p, c->view);
    const struct mo_rules *persons[PERSONS_MAX] = {
        callers[c->from].session ? c->session : NULL,
        callers[c->from].remembered ? mo_remembered_rules_all(p->remembered)
                                    : NULL,
        callers[c->from].draft ? c->draft : NULL,
    };
    struct mo_json_doc doc;
    struct mo_subject s = make_subject(c, &doc);
    struct mo_verdict v = mo_rules_judge(&p->rules, persons, PERSONS_MAX,
                                         default_action(p, c->from), &s);

    if (mo_span_is(c->tool, MO_RULE_CONNECT) && !is_connection(c))
        return (struct mo_verdict){.action = MO_ACTION_DENY};
    v = finish_verdict(v, c->from);
    if (of_view) {
        struct mo_verdict w =
            mo_rules_judge(of_view, persons, PERSONS_MAX, MO_ACTION_ALLOW, &s);

        w.of_view = w.rule && !w.remembered;
        v = stricter(v, finish_verdict(w, c->from));
    }
    return v;
}

bool mo_policy_may_remember(const struct mo_policy *p,
                            const struct mo_policy_call *c)
{
    struct mo_json_doc doc;
    struct mo_subject s = make_subject(c, &doc);
    enum mo_action rest = (enum mo_action)p->cfg->approvals.fallback;
    struct mo_verdict v;

    if (callers[c->from].rest == ASKED)
        rest = MO_ACTION_ASK;
    v = mo_rules_judge(&p->rules, NULL, 0, rest, &s);
    return v.action == MO_ACTION_ASK && !(v.rule && v.rule->final);
}

bool mo_policy_has_rules(const struct mo_policy *p, struct mo_span view)
{
    if (p->cfg->gateway.approvals == MO_GW_NO_RULES)
        return false;
    return p->cfg->gateway.approvals == MO_GW_ASK_REST || p->rules.n ||
           mo_remembered_rules_all(p->remembered)->n || rules_of_view(p, view);
}

uint64_t mo_policy_version(const struct mo_policy *p)
{
    return p->loads << 32 |
           (uint32_t)mo_remembered_rules_changes(p->remembered);
}

const struct mo_rules *mo_policy_operator_rules(const struct mo_policy *p)
{
    return &p->rules;
}

struct mo_remembered_rules *mo_policy_remembered(const struct mo_policy *p)
{
    return p->remembered;
}

/* --- from open to close -------------------------------------------------- */

const struct mo_config *mo_policy_config(const struct mo_policy *p)
{
    return p->cfg;
}

int mo_policy_reload(struct mo_policy *p, const struct mo_config *cfg,
                     struct mo_err *e)
{
    struct view_rules *views = NULL;
    struct mo_rules rules;
    struct mo_arena arena;
    size_t nviews = 0;
    int rc;

    mo_arena_init(&arena, RULES_ARENA);
    rc =
        make_rules(&cfg->approvals.rules, "approvals.rules", &arena, &rules, e);
    if (rc == 0)
        rc = make_view_rules(&cfg->views, &arena, &views, &nviews, e);
    if (rc < 0) {
        mo_arena_fini(&arena);
        return rc;
    }
    if (!p->cfg || !mo_rules_same(&p->rules, &rules) ||
        !same_view_rules(p, views, nviews) ||
        p->cfg->approvals.fallback != cfg->approvals.fallback ||
        p->cfg->gateway.approvals != cfg->gateway.approvals)
        p->loads++;
    mo_arena_fini(&p->arena);
    p->arena = arena;
    p->rules = rules;
    p->views = views;
    p->nviews = nviews;
    mo_config_unref(p->cfg);
    p->cfg = mo_config_ref(cfg);
    return 0;
}

int mo_policy_open(struct mo_loop *l, const struct mo_config *cfg,
                   struct mo_policy **out, struct mo_err *e)
{
    struct mo_policy *p = mo_new(struct mo_policy);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "policy");
    p->loop = l;
    p->key0 = mo_random_u64();
    p->key1 = mo_random_u64();
    mo_list_init(&p->changed);
    mo_map_init(&p->known, KNOWN_MAX);
    mo_timer_init(&p->flush, on_flush);
    rc = mo_policy_reload(p, cfg, e);
    if (rc == 0)
        rc = mo_remembered_rules_open(cfg->store.dir, &p->remembered, e);
    if (rc < 0) {
        mo_policy_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

void mo_policy_close(struct mo_policy *p)
{
    if (!p)
        return;
    mo_policy_flush_pins(p);
    mo_list_each_entry_safe (c, &p->changed, struct changed_tool, node)
        drop_changed(p, c);
    mo_map_fini(&p->known);
    mo_tool_pins_close(p->pins);
    mo_remembered_rules_close(p->remembered);
    mo_arena_fini(&p->arena);
    mo_config_unref(p->cfg);
    mo_free(p);
}
