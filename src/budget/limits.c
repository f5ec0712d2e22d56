/* limits.c - the configured limits, by name. */
#include <stdio.h>

#include "budget/budget_priv.h"
#include "config/keys.h"

#define SUBJECT_MAX (MO_COUNTER_NAME_MAX / 2) /* bytes of a name */

void mo_limits_fini(struct limits *l)
{
    mo_map_fini(&l->people);
    mo_map_fini(&l->tokens);
    mo_map_fini(&l->views);
    mo_map_fini(&l->servers);
}

static int read_list(struct mo_map *m, const struct mo_config_budget_list *l)
{
    int rc = 0;

    for (size_t i = 0; i < l->n && rc == 0; i++)
        rc = mo_map_put(m, mo_span_cstr(l->v[i].name), &l->v[i], NULL);
    return rc;
}

static int read_limit(struct mo_map *m, const char *name, int64_t *limit)
{
    return *limit ? mo_map_put(m, mo_span_cstr(name), limit, NULL) : 0;
}

int mo_limits_read(struct limits *l, const struct mo_config *c)
{
    int rc;

    mo_map_init_lent(&l->people, MO_KEY_BUDGETS_MAX);
    mo_map_init_lent(&l->tokens, MO_KEY_BUDGETS_MAX);
    mo_map_init_lent(&l->views, MO_KEY_VIEWS_MAX);
    mo_map_init_lent(&l->servers, MO_KEY_MCP_MAX);
    rc = read_list(&l->people, &c->budgets.people);
    if (rc == 0)
        rc = read_list(&l->tokens, &c->budgets.tokens);
    for (size_t i = 0; i < c->views.n && rc == 0; i++)
        rc = read_limit(&l->views, c->views.v[i].name,
                        &c->views.v[i].calls_per_minute);
    for (size_t i = 0; i < c->mcp.n && rc == 0; i++)
        rc = read_limit(&l->servers, c->mcp.v[i].name,
                        &c->mcp.v[i].calls_per_minute);
    if (rc < 0)
        mo_limits_fini(l);
    return rc;
}

static const struct mo_config_budget *find_budget(const struct mo_map *m,
                                                  struct mo_span name)
{
    const struct mo_config_budget *c = m->len ? mo_map_get(m, name) : NULL;

    return c || !m->len ? c : mo_map_get(m, MO_SPAN("*"));
}

const struct mo_config_budget *mo_budget_of_person(const struct mo_budget *b,
                                                   struct mo_span name)
{
    return find_budget(&b->limits.people, name.n ? name : MO_SPAN(OPERATOR));
}

const struct mo_config_budget *mo_budget_of_token(const struct mo_budget *b,
                                                  struct mo_span id)
{
    return id.n ? find_budget(&b->limits.tokens, id) : NULL;
}

static uint64_t limit_of(const struct mo_config_budget *c,
                         enum mo_budget_kind kind)
{
    const int64_t v[] = {
        [MO_BUDGET_CALLS] = c ? c->calls : 0,
        [MO_BUDGET_BOXES] = c ? c->boxes : 0,
        [MO_BUDGET_TURNS] = c ? c->turns : 0,
        [MO_BUDGET_TOKENS] = c ? c->tokens : 0,
        [MO_BUDGET_MONEY] = c ? c->money : 0,
    };

    return (uint64_t)v[kind];
}

static size_t put_part(struct want *x, size_t at, struct mo_span part)
{
    size_t n =
        part.n < MO_COUNTER_NAME_MAX - at ? part.n : MO_COUNTER_NAME_MAX - at;

    if (n)
        memcpy(x->name + at, part.p, n);
    return at + n;
}

static const struct {
    const char *before, *behind;
} parts[] = {
    [MO_BUDGET_CALLS] = {"", ""},        [MO_BUDGET_BOXES] = {"boxes:", ""},
    [MO_BUDGET_TURNS] = {"turns:", ""},  [MO_BUDGET_TOKENS] = {"", "\ttokens"},
    [MO_BUDGET_MONEY] = {"", "\tmoney"},
};

/* Calls: person:bob. Things at once: turns:person:bob. Days: person:bob, a
 * tab, tokens. */
void mo_want_add(struct wants *w, enum mo_budget_kind kind, const char *what,
                 struct mo_span name, uint64_t limit, int64_t add)
{
    struct want *x = &w->v[w->n];
    size_t n;

    MO_BUG_ON(w->n >= WANTS);
    w->n++;
    x->kind = kind;
    x->limit = limit;
    x->add = add;
    x->day = 0;
    n = put_part(x, 0, mo_span_cstr(parts[kind].before));
    n = put_part(x, n, mo_span_cstr(what));
    n = put_part(x, n, MO_SPAN(":"));
    n = put_part(x, n, mo_span_head(name, SUBJECT_MAX));
    n = put_part(x, n, mo_span_cstr(parts[kind].behind));
    x->name[n] = '\0';
}

void mo_want_whose(const struct want *x, char *out, size_t size)
{
    struct mo_span rest = mo_span_cstr(x->name), what;

    (void)mo_span_strip(&rest, mo_span_cstr(parts[x->kind].before));
    what = mo_span_cut(&rest, ':');
    rest = mo_span_cut(&rest, '\t');
    if (!mo_span_is(what, "person"))
        (void)snprintf(out, size, "the %.*s %.*s", (int)what.n, what.p,
                       (int)rest.n, rest.p);
    else if (rest.n)
        (void)snprintf(out, size, "%.*s", (int)rest.n, rest.p);
    else
        (void)snprintf(out, size, "the " OPERATOR);
}

void mo_want_unpriced(struct want *x)
{
    size_t n = strlen(x->name) - strlen("tokens");

    (void)snprintf(x->name + n, sizeof(x->name) - n, "unpriced");
}

void mo_limits_add(const struct mo_budget *b, struct wants *w,
                   const struct mo_budget_who *who, enum mo_budget_kind kind,
                   int64_t add)
{
    uint64_t limit = limit_of(mo_budget_of_person(b, who->person), kind);

    if (limit)
        mo_want_add(w, kind, "person", who->person, limit, add);
    limit = limit_of(mo_budget_of_token(b, who->token), kind);
    if (limit)
        mo_want_add(w, kind, "token", who->token, limit, add);
}

void mo_limits_add_named(const struct mo_map *m, struct wants *w,
                         const char *kind, struct mo_span name)
{
    const int64_t *limit = m->len && name.n ? mo_map_get(m, name) : NULL;

    if (limit)
        mo_want_add(w, MO_BUDGET_CALLS, kind, name, (uint64_t)*limit, 1);
}
