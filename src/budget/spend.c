#include "budget/spend.h"

#include "base/clock.h"
#include "budget/budget_priv.h"
#include "codec/money.h"

#define DAY_MS         ((uint64_t)24 * 3600 * 1000)
#define PERSON         "person:"
#define TOKEN          "token:"
#define SPEND_NAME_MAX MO_COUNTER_NAME_MAX

struct subject { /* whose rows are being read */
    char name[SPEND_NAME_MAX + 1];
    size_t n; /* 0: none */
    uint64_t tokens, money, unpriced;
};

struct spend {
    struct mo_budget *b;
    mo_spend_fn *done;
    void *ctx;
    bool one; /* of one person */
    uint64_t day;
    unsigned found;
    struct subject now;
    struct mo_buf prefix, last, people, tokens;
    struct mo_jw people_w, tokens_w;
};

static void spend_free(struct spend *s)
{
    s->b->readers--;
    mo_budget_check(s->b);
    mo_buf_fini(&s->prefix);
    mo_buf_fini(&s->last);
    mo_buf_fini(&s->people);
    mo_buf_fini(&s->tokens);
    mo_free(s);
}

static void put_money(struct mo_jw *w, const char *key, int64_t amount)
{
    mo_autobuf struct mo_buf b = {.max = 64};

    mo_money_put(&b, amount);
    mo_jw_member(w, key, mo_buf_view(&b));
}

static void put_limits(struct mo_jw *w, const struct mo_config_budget *c)
{
    const struct {
        enum mo_budget_kind kind;
        int64_t n;
    } v[] = {
        {MO_BUDGET_CALLS, c->calls},
        {MO_BUDGET_BOXES, c->boxes},
        {MO_BUDGET_TURNS, c->turns},
        {MO_BUDGET_TOKENS, c->tokens},
    };

    mo_jw_member_obj(w, "limits");
    for (size_t i = 0; i < MO_COUNT(v); i++)
        if (v[i].n)
            mo_jw_member_i64(w, mo_budget_kind_name(v[i].kind), v[i].n);
    if (c->money)
        put_money(w, mo_budget_kind_name(MO_BUDGET_MONEY), c->money);
    mo_jw_end(w);
}

/* The rows of a subject are complete. */
static void put_subject(struct spend *s)
{
    struct subject *x = &s->now;
    struct mo_span name = mo_span(x->name, x->n);
    bool is_person = mo_span_strip(&name, MO_SPAN(PERSON));
    bool is_token = !is_person && mo_span_strip(&name, MO_SPAN(TOKEN));
    struct mo_jw *w = is_token ? &s->tokens_w : &s->people_w;
    const struct mo_config_budget *c = is_token
                                           ? mo_budget_of_token(s->b, name)
                                           : mo_budget_of_person(s->b, name);

    if (!x->n)
        return;
    s->found += is_person;
    if (is_person && !name.n)
        name = MO_SPAN("operator");
    mo_jw_obj(w);
    mo_jw_member(w, is_token ? "id" : "name", name);
    mo_jw_member_u64(w, "tokens", x->tokens);
    if (x->unpriced && x->unpriced >= x->tokens)
        mo_jw_member_raw(w, "money", MO_SPAN("null"));
    else
        put_money(w, "money", (int64_t)x->money);
    mo_jw_member_u64(w, "unpricedTokens", x->unpriced);
    if (c)
        put_limits(w, c);
    mo_jw_end(w);
    *x = (struct subject){.n = 0};
}

static void begin_subject(struct spend *s, struct mo_span name)
{
    s->now = (struct subject){.n = name.n < SPEND_NAME_MAX ? name.n
                                                           : SPEND_NAME_MAX};
    memcpy(s->now.name, name.p, s->now.n);
}

static void take_row(struct spend *s, const struct mo_row *r)
{
    struct mo_span kind = r->id, name = mo_span_cut(&kind, '\t');

    if (!mo_span_eq(name, mo_span(s->now.name, s->now.n))) {
        put_subject(s);
        begin_subject(s, name);
    }
    if (mo_span_is(kind, "tokens"))
        s->now.tokens = r->seq;
    else if (mo_span_is(kind, "money"))
        s->now.money = r->seq;
    else if (mo_span_is(kind, "unpriced"))
        s->now.unpriced = r->seq;
}

static void finish(struct spend *s, const struct mo_err *why)
{
    mo_autobuf struct mo_buf out = {.max = MO_SPEND_TEXT_MAX};
    char date[MO_ISO8601_MAX];
    struct mo_jw w = mo_jw_object(&out);

    put_subject(s);
    if (s->one && !s->found) { /* nothing was spent */
        struct mo_span name = mo_buf_view(&s->prefix);

        begin_subject(s, mo_span_head(name, name.n - 1));
        put_subject(s);
    }
    mo_jw_end(&s->people_w);
    mo_jw_end(&s->tokens_w);
    mo_wall_format(s->day * DAY_MS, date);
    mo_jw_member(&w, "day", mo_span(date, 10));
    mo_jw_member_raw(&w, "people", mo_buf_view(&s->people));
    mo_jw_member_raw(&w, "tokens", mo_buf_view(&s->tokens));
    mo_jw_end(&w);
    mo_buf_pass_err(&out, &s->people);
    mo_buf_pass_err(&out, &s->tokens);
    if (!why && mo_buf_err(&out))
        s->done(s->ctx, mo_span(NULL, 0),
                mo_error(mo_buf_err(&out), "the answer is too long"));
    else
        s->done(s->ctx, why ? mo_span(NULL, 0) : mo_buf_view(&out), why);
    spend_free(s);
}

static int ask_page(struct spend *s, struct mo_err *e);

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct spend *s = ctx;
    struct mo_err e;

    for (size_t i = 0; !why && i < rows->n; i++)
        take_row(s, &rows->v[i]);
    if (!why && rows->more && rows->n &&
        mo_buf_set(&s->last, rows->v[rows->n - 1].id) == 0) {
        if (ask_page(s, &e) == 0)
            return;
        why = &e;
    }
    finish(s, why);
}

static int ask_page(struct spend *s, struct mo_err *e)
{
    const struct mo_read r = {.kind = MO_READ_DAY,
                              .after = s->day,
                              .text = mo_buf_view(&s->prefix),
                              .id = mo_buf_view(&s->last),
                              .limit = MO_STORE_ROWS_MAX};
    struct mo_store *store = mo_budget_store_now(s->b);

    if (!store)
        return mo_fail(e, MO_EUNAVAIL, "the store is not open");
    return mo_store_read(store, &r, on_rows, s, e);
}

int mo_spend_read(struct mo_budget *b, const char *person, unsigned ago,
                  mo_spend_fn *done, void *ctx, struct mo_err *e)
{
    struct spend *s = mo_new(struct spend);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "spend");
    s->b = b;
    b->readers++;
    s->done = done;
    s->ctx = ctx;
    s->one = person != NULL;
    s->day = mo_wall_ms() / DAY_MS - ago;
    mo_buf_init(&s->prefix, SPEND_NAME_MAX);
    mo_buf_init(&s->last, SPEND_NAME_MAX);
    mo_buf_init(&s->people, MO_SPEND_TEXT_MAX);
    mo_buf_init(&s->tokens, MO_SPEND_TEXT_MAX);
    s->people_w = mo_jw_array(&s->people);
    s->tokens_w = mo_jw_array(&s->tokens);
    if (person)
        mo_buf_printf(&s->prefix, PERSON "%s\t", person);
    rc = mo_buf_err(&s->prefix) ? mo_fail(e, MO_EINVAL, "the name is too long")
                                : ask_page(s, e);
    if (rc < 0)
        spend_free(s);
    return rc;
}
