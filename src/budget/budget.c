/* budget.c - see budget.h. */
#include "budget/budget_priv.h"

#include <stdio.h>

#include "base/clock.h"

const char *mo_budget_kind_name(enum mo_budget_kind k)
{
    static const char *const names[] = {
        [MO_BUDGET_CALLS] = "callsPerMinute",
        [MO_BUDGET_BOXES] = "boxes",
        [MO_BUDGET_TURNS] = "turns",
        [MO_BUDGET_TOKENS] = "tokensPerDay",
        [MO_BUDGET_MONEY] = "moneyPerDay",
    };

    return names[k];
}

/* --- life ---------------------------------------------------------------- */

int mo_budget_new(struct mo_loop *l, const struct mo_config *c,
                  struct mo_audit *audit, struct mo_budget **out,
                  struct mo_err *e)
{
    struct mo_budget *b = mo_new(struct mo_budget);

    if (!b)
        return mo_fail(e, MO_ENOMEM, "budgets");
    if (mo_limits_read(&b->limits, c) < 0) {
        mo_free(b);
        return mo_fail(e, MO_ENOMEM, "budgets");
    }
    b->loop = l;
    b->cfg = mo_config_ref(c);
    b->audit = audit;
    mo_local_init(&b->local);
    mo_list_init(&b->ops);
    mo_timer_init(&b->renew, mo_count_renew);
    *out = b;
    return 0;
}

int mo_budget_reload(struct mo_budget *b, const struct mo_config *c,
                     struct mo_err *e)
{
    const struct mo_config *old = b->cfg;
    struct limits now;

    if (mo_limits_read(&now, c) < 0)
        return mo_fail(e, MO_ENOMEM, "budgets");
    mo_limits_fini(&b->limits);
    b->limits = now;
    b->cfg = mo_config_ref(c);
    mo_config_unref(old);
    return 0;
}

void mo_budget_await_store(struct mo_budget *b, bool on)
{
    const char *url = b->cfg->store.url;

    b->awaits_store = on || (url && strncmp(url, "sqlite:", 7) != 0);
}

void mo_budget_share(struct mo_budget *b, struct mo_budget_shared *s,
                     unsigned owner)
{
    b->shared = s;
    b->owner = owner;
}

void mo_budget_store(struct mo_budget *b, struct mo_store *s)
{
    if (b)
        b->store = s;
}

void mo_budget_check(struct mo_budget *b)
{
    if (!b->closing || b->readers || !mo_list_empty(&b->ops))
        return;
    mo_limits_fini(&b->limits);
    mo_local_fini(&b->local);
    mo_config_unref(b->cfg);
    mo_free(b);
}

void mo_budget_close(struct mo_budget *b)
{
    if (!b)
        return;
    b->closing = true;
    b->store = NULL;
    b->audit = NULL;
    mo_timer_stop(b->loop, &b->renew);
    mo_budget_check(b);
}

/* --- calls --------------------------------------------------------------- */

bool mo_budget_limits_calls(const struct mo_budget *b)
{
    return b && (b->limits.people.len | b->limits.tokens.len |
                 b->limits.views.len | b->limits.servers.len);
}

enum mo_budget_answer mo_budget_call(struct mo_budget *b,
                                     const struct mo_budget_call *c,
                                     struct mo_budget_ask *a,
                                     struct mo_budget_no *no)
{
    struct wants w MO_UNINITIALIZED;

    if (!mo_budget_limits_calls(b))
        return MO_BUDGET_YES;
    w.n = 0;
    w.holder = mo_span(NULL, 0);
    w.person = c->who ? c->who->person : mo_span(NULL, 0);
    if (c->who)
        mo_limits_add(b, &w, c->who, MO_BUDGET_CALLS, 1);
    mo_limits_add_named(&b->limits.views, &w, "view", c->view);
    mo_limits_add_named(&b->limits.servers, &w, "server", c->server);
    return mo_count_ask(b, &w, NULL, a, no);
}

/* --- things at once ------------------------------------------------------ */

enum mo_budget_answer
mo_budget_hold(struct mo_budget *b, enum mo_budget_kind kind,
               const struct mo_budget_who *who, struct mo_span holder,
               struct mo_budget_ask *a, struct mo_budget_no *no)
{
    struct wants w = {.holder = holder, .person = who->person};

    if (!b)
        return MO_BUDGET_YES;
    mo_limits_add(b, &w, who, kind, 1);
    return mo_count_ask(b, &w, NULL, a, no);
}

static bool holds_nothing(const struct mo_budget *b)
{
    return mo_list_empty(&b->local.holds) && !mo_count_is_joint(b);
}

/* Also what was held under a limit that is gone now. */
void mo_budget_release(struct mo_budget *b, enum mo_budget_kind kind,
                       const struct mo_budget_who *who, struct mo_span holder)
{
    struct wants w = {.holder = holder};

    if (!b || holds_nothing(b))
        return;
    mo_want_add(&w, kind, "person", who->person, 0, -1);
    if (who->token.n)
        mo_want_add(&w, kind, "token", who->token, 0, -1);
    mo_count_tell(b, &w);
}

void mo_budget_release_after(struct mo_budget *b, enum mo_budget_kind kind,
                             const struct mo_budget_who *who,
                             struct mo_span holder, uint64_t ms)
{
    struct wants w = {.holder = holder};

    if (!b || holds_nothing(b))
        return;
    mo_want_add(&w, kind, "person", who->person, 0, 0);
    if (who->token.n)
        mo_want_add(&w, kind, "token", who->token, 0, 0);
    for (size_t i = 0; i < w.n; i++) {
        struct mo_span name = mo_span_cstr(w.v[i].name);
        struct mo_hold_row *h = mo_local_held(&b->local, name, holder);

        if (mo_count_is_joint(b))
            mo_budget_shared_release_at(b->shared, name, holder,
                                        mo_now_ns() + ms * MO_MS);
        else if (h)
            h->until = mo_now_ns() + ms * MO_MS;
    }
}

const struct mo_budget_holding mo_budget_holding = {
    mo_budget_hold, mo_budget_release, mo_budget_release_after};

/* --- models -------------------------------------------------------------- */

bool mo_budget_limits_turns(const struct mo_budget *b,
                            const struct mo_budget_who *who)
{
    struct wants w = {.n = 0};

    if (!b)
        return false;
    mo_limits_add(b, &w, who, MO_BUDGET_TURNS, 1);
    mo_limits_add(b, &w, who, MO_BUDGET_TOKENS, 1);
    mo_limits_add(b, &w, who, MO_BUDGET_MONEY, 1);
    return w.n > 0;
}

/* If anything is limited, tokens and money are both counted, so that the share
 * can be settled whatever the limits are then. */
static void add_share(const struct mo_budget *b, struct wants *w,
                      const struct mo_budget_who *who,
                      const struct mo_budget_share *share)
{
    const struct {
        const char *what;
        struct mo_span name;
        const struct mo_config_budget *limits;
    } v[] = {
        {"person", who->person, mo_budget_of_person(b, who->person)},
        {"token", who->token, mo_budget_of_token(b, who->token)},
    };

    for (size_t i = 0; i < (who->token.n ? 2 : 1); i++) {
        const struct mo_config_budget *l = v[i].limits;

        mo_want_add(w, MO_BUDGET_TOKENS, v[i].what, v[i].name,
                    l ? (uint64_t)l->tokens : 0, (int64_t)share->tokens);
        if (share->money >= 0)
            mo_want_add(w, MO_BUDGET_MONEY, v[i].what, v[i].name,
                        l ? (uint64_t)l->money : 0, share->money);
    }
}

static bool is_money_limited(const struct mo_budget *b,
                             const struct mo_budget_who *who)
{
    struct wants w = {.n = 0};

    mo_limits_add(b, &w, who, MO_BUDGET_MONEY, 0);
    return w.n > 0;
}

static void refuse_unpriced(struct mo_budget *b,
                            const struct mo_budget_request *r,
                            struct mo_budget_no *no)
{
    struct wants w = {.person = r->who->person};
    char text[300], whose[WHOSE_MAX];

    mo_limits_add(b, &w, r->who, MO_BUDGET_MONEY, 0);
    mo_want_whose(&w.v[0], whose, sizeof(whose));
    (void)snprintf(text, sizeof(text),
                   "The money of %s for models is limited, and the model "
                   "%.*s has no price. Choose another model, or have its price "
                   "added to `prices`.",
                   whose, (int)(r->model.n < 80 ? r->model.n : 80),
                   r->model.n ? r->model.p : "");
    mo_count_refuse_unknown(b, &w, text, no);
}

enum mo_budget_answer mo_budget_request(struct mo_budget *b,
                                        const struct mo_budget_request *r,
                                        struct mo_budget_share *share,
                                        struct mo_budget_ask *a,
                                        struct mo_budget_no *no)
{
    struct wants w = {.holder = r->turn, .person = r->who->person};
    struct mo_config_price price;

    *share = (struct mo_budget_share){.money = -1};
    if (!b || !mo_budget_limits_turns(b, r->who))
        return MO_BUDGET_YES;
    share->tokens = mo_usage_tokens(&r->most);
    if (mo_price_find(b->cfg, r->model, &price))
        share->money = mo_price_cost(&price, &r->most);
    if (share->money < 0 && is_money_limited(b, r->who)) {
        refuse_unpriced(b, r, no);
        return MO_BUDGET_NO;
    }
    if (r->turn.n > 0)
        mo_limits_add(b, &w, r->who, MO_BUDGET_TURNS, 1);
    add_share(b, &w, r->who, share);
    return mo_count_ask(b, &w, share, a, no);
}

/* Adds what was used less what the share has counted already. */
static void settle_one(struct wants *w, const char *what, struct mo_span name,
                       const struct mo_budget_share *share, int64_t tokens,
                       int64_t money)
{
    int64_t had_tokens = share->is_open ? (int64_t)share->tokens : 0;
    int64_t had_money = share->is_open && share->money > 0 ? share->money : 0;
    size_t first = w->n;

    mo_want_add(w, MO_BUDGET_TOKENS, what, name, 0, tokens - had_tokens);
    if (money > 0 || had_money > 0)
        mo_want_add(w, MO_BUDGET_MONEY, what, name, 0,
                    (money > 0 ? money : 0) - had_money);
    if (money < 0 && tokens > 0) {
        mo_want_add(w, MO_BUDGET_TOKENS, what, name, 0, tokens);
        mo_want_unpriced(&w->v[w->n - 1]);
    }
    for (size_t i = first; i < w->n; i++)
        w->v[i].day = share->is_open ? share->day : 0;
}

void mo_budget_settle(struct mo_budget *b, const struct mo_budget_who *who,
                      struct mo_span model, struct mo_budget_share *share,
                      const struct mo_usage *used)
{
    struct wants w = {.person = who->person};
    struct mo_config_price price;
    int64_t tokens = used ? (int64_t)mo_usage_tokens(used) : 0, money = 0;

    if (!b || b->closing || (!used && !share->is_open))
        return;
    if (used)
        money = mo_price_find(b->cfg, model, &price)
                    ? mo_price_cost(&price, used)
                    : -1;
    settle_one(&w, "person", who->person, share, tokens, money);
    if (who->token.n)
        settle_one(&w, "token", who->token, share, tokens, money);
    share->is_open = false;
    b->stats.tokens += (uint64_t)tokens;
    b->stats.money += money > 0 ? (uint64_t)money : 0;
    b->stats.unpriced += money < 0 ? (uint64_t)tokens : 0;
    mo_count_tell(b, &w);
}

/* --- what there is ------------------------------------------------------- */

struct mo_budget_stats mo_budget_stats(const struct mo_budget *b)
{
    return b->stats;
}

const struct mo_config *mo_budget_config(const struct mo_budget *b)
{
    return b->cfg;
}

struct mo_store *mo_budget_store_now(const struct mo_budget *b)
{
    return b->store;
}
