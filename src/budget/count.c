/* count.c - counts the limits of a question: all of them or none.
 *
 * With a shared store everything is one batch there. Otherwise calls and
 * holders are counted here first, and then the days in the store; if that
 * refuses, the holders are released again. (No question has both calls and
 * days.) */
#include <stdio.h>

#include "base/clock.h"
#include "budget/budget_priv.h"
#include "codec/money.h"

#define ROOM     "budget"
#define RENEW_MS (MO_COUNTER_TERM_MS / 3)

struct mo_budget_op { /* the store is asked */
    struct mo_list node;
    struct mo_budget *b;
    struct mo_budget_ask *ask;     /* NULL: nobody waits */
    struct mo_budget_share *share; /* of the asker; or NULL */
    struct mo_hold_row *holds[WANTS];
    struct mo_buf texts; /* person and holder */
    struct wants wants;
};

static bool is_shared(const struct mo_budget *b)
{
    return b->store ? mo_store_is_shared(b->store) : b->awaits_store;
}

bool mo_count_is_joint(const struct mo_budget *b)
{
    return b->shared && !is_shared(b);
}

static bool is_held(const struct want *x)
{
    return x->kind == MO_BUDGET_BOXES || x->kind == MO_BUDGET_TURNS;
}

static bool is_of_day(const struct want *x)
{
    return x->kind == MO_BUDGET_TOKENS || x->kind == MO_BUDGET_MONEY;
}

/* --- refusals ------------------------------------------------------------ */

static void put_wait(char *out, size_t size, uint64_t ms)
{
    uint64_t s = (ms + 999) / 1000;

    if (ms == 0)
        (void)snprintf(out, size, "Try again when one has ended.");
    else if (s < 120)
        (void)snprintf(out, size, "Try again in %llu s.",
                       (unsigned long long)s);
    else
        (void)snprintf(out, size, "Try again in %llu h %llu min (00:00 UTC).",
                       (unsigned long long)(s / 3600),
                       (unsigned long long)(s % 3600 / 60));
}

static void put_limit(struct mo_buf *b, const struct want *x)
{
    static const char *const things[] = {
        [MO_BUDGET_CALLS] = "calls a minute",
        [MO_BUDGET_BOXES] = "boxes at once",
        [MO_BUDGET_TURNS] = "running turns at once",
        [MO_BUDGET_TOKENS] = "model tokens a day",
        [MO_BUDGET_MONEY] = "a day for models",
    };

    if (x->kind == MO_BUDGET_MONEY)
        mo_money_put(b, (int64_t)x->limit);
    else
        mo_buf_u64(b, x->limit);
    mo_buf_printf(b, " %s", things[x->kind]);
}

static void record(struct mo_budget *b, const struct wants *w, size_t which)
{
    const struct want *x = &w->v[which];
    const struct mo_audit_row row = {
        .subject = MO_SPAN("budget"),
        .reason = mo_budget_kind_name(x->kind),
        .who = w->person.n ? w->person : MO_SPAN(OPERATOR),
        .path = mo_span_cstr(x->name),
    };

    b->stats.refused[x->kind]++;
    mo_audit_attempt(b->audit, &row);
}

void mo_count_refuse(struct mo_budget *b, const struct wants *w, size_t which,
                     uint64_t wait_ms, struct mo_budget_no *no)
{
    const struct want *x = &w->v[which];
    mo_autobuf struct mo_buf limit = {.max = 128};
    char wait[80], whose[WHOSE_MAX];

    mo_want_whose(x, whose, sizeof(whose));
    put_limit(&limit, x);
    put_wait(wait, sizeof(wait), wait_ms);
    *no = (struct mo_budget_no){.kind = x->kind, .wait_ms = wait_ms};
    (void)snprintf(no->text, sizeof(no->text),
                   "The limit of %s for %s is reached. %s", mo_buf_cstr(&limit),
                   whose, wait);
    record(b, w, which);
}

void mo_count_refuse_unknown(struct mo_budget *b, const struct wants *w,
                             const char *why, struct mo_budget_no *no)
{
    *no = (struct mo_budget_no){.kind = w->v[0].kind, .is_unknown = true};
    (void)snprintf(no->text, sizeof(no->text), "%s", why);
    record(b, w, 0);
}

static void refuse_uncounted(struct mo_budget *b, const struct wants *w,
                             const struct mo_err *why, struct mo_budget_no *no)
{
    char text[300], whose[WHOSE_MAX];

    mo_want_whose(&w->v[0], whose, sizeof(whose));
    (void)snprintf(text, sizeof(text),
                   "The limits of %s cannot be checked: %.120s. Try again "
                   "later.",
                   whose, why->msg);
    mo_log_err(mo_loop_log(b->loop), MO_WARN, ROOM, why,
               "limits cannot be checked");
    mo_count_refuse_unknown(b, w, text, no);
}

/* --- in the store -------------------------------------------------------- */

static void op_free(struct mo_budget_op *op)
{
    mo_list_del(&op->node);
    for (size_t i = 0; i < WANTS; i++)
        mo_hold_row_free(op->holds[i]);
    mo_buf_fini(&op->texts);
    mo_free(op);
}

static struct mo_budget_op *op_new(struct mo_budget *b, const struct wants *w)
{
    struct mo_budget_op *op = mo_new(struct mo_budget_op);
    size_t n = w->person.n + w->holder.n + 1;

    if (!op)
        return NULL;
    op->b = b;
    op->wants = *w;
    mo_list_init(&op->node);
    mo_buf_init(&op->texts, n);
    if (!mo_buf_room(&op->texts, n)) {
        op_free(op);
        return NULL;
    }
    mo_buf_span(&op->texts, w->person);
    mo_buf_span(&op->texts, w->holder);
    op->wants.person = mo_span(op->texts.p, w->person.n);
    op->wants.holder = mo_span(op->texts.p + w->person.n, w->holder.n);
    mo_list_push(&b->ops, &op->node);
    return op;
}

static size_t put_counters(const struct mo_budget *b, const struct wants *w,
                           struct mo_counter *v, size_t *at)
{
    size_t n = 0;

    for (size_t i = 0; i < w->n; i++) {
        const struct want *x = &w->v[i];

        if (!is_of_day(x) && !is_shared(b))
            continue;
        at[n] = i;
        v[n++] = (struct mo_counter){
            .kind = is_of_day(x) ? MO_COUNTER_DAY
                    : is_held(x) ? MO_COUNTER_HELD
                                 : MO_COUNTER_RATE,
            .name = mo_span_cstr(x->name),
            .holder = is_held(x) ? w->holder : mo_span(NULL, 0),
            .limit = x->limit,
            .add = x->add,
            .day = x->day,
        };
    }
    return n;
}

/* Nobody waits for the yes any more: gives back what it took. */
static void give_back(struct mo_budget *b, struct mo_budget_op *op,
                      uint64_t day)
{
    struct wants back = {.n = 0};

    for (size_t i = 0; i < op->wants.n; i++) {
        const struct want *x = &op->wants.v[i];

        if (x->kind == MO_BUDGET_CALLS)
            continue; /* it was asked, so it counts */
        back.v[back.n] = *x;
        back.v[back.n].add = -x->add;
        back.v[back.n].limit = 0;
        back.v[back.n++].day = day;
    }
    back.holder = op->wants.holder;
    mo_count_tell(b, &back);
}

static void hold_all(struct mo_budget *b, struct mo_budget_op *op)
{
    for (size_t i = 0; i < WANTS; i++) {
        struct mo_hold_row *h = mo_take_ptr(&op->holds[i]);

        if (!h)
            continue;
        if (!mo_local_hold_on(&b->local, mo_span_cstr(h->name),
                              mo_span_cstr(h->holder)))
            mo_local_hold(&b->local, h);
        else
            mo_hold_row_free(h);
    }
    if (!mo_list_empty(&b->local.holds) && is_shared(b) &&
        !mo_timer_on(&b->renew))
        mo_timer_start(b->loop, &b->renew, RENEW_MS);
}

static void release(struct mo_budget *b, struct mo_span name,
                    struct mo_span holder)
{
    if (mo_count_is_joint(b))
        mo_budget_shared_release(b->shared, name, holder);
    else
        mo_hold_row_free(mo_local_held(&b->local, name, holder));
}

static void drop_local(struct mo_budget *b, const struct wants *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (is_held(&w->v[i]))
            release(b, mo_span_cstr(w->v[i].name), w->holder);
}

static void on_counted(void *ctx, const struct mo_counted *c,
                       const struct mo_err *why)
{
    struct mo_budget_op *op = ctx;
    struct mo_budget *b = op->b;
    struct mo_budget_ask *a = op->ask;
    bool yes = !why && !c->refused;
    size_t at[WANTS], n;
    struct mo_counter v[WANTS];
    struct mo_budget_no no;

    n = put_counters(b, &op->wants, v, at);
    if (yes && a)
        hold_all(b, op);
    else if (yes && !b->closing)
        give_back(b, op, c->day);
    else if (!is_shared(b) && !b->closing)
        drop_local(b, &op->wants);
    if (yes && op->share) {
        op->share->is_open = true;
        op->share->day = c->day;
    }
    if (a && why)
        refuse_uncounted(b, &op->wants, why, &no);
    else if (a && c->refused)
        mo_count_refuse(b, &op->wants, c->which < n ? at[c->which] : 0,
                        c->wait_ms, &no);
    op_free(op);
    if (a) {
        a->op = NULL;
        a->done(a, yes ? NULL : &no);
    }
    mo_budget_check(b);
}

static enum mo_budget_answer ask_store(struct mo_budget *b,
                                       const struct wants *w,
                                       struct mo_budget_share *share,
                                       struct mo_budget_ask *a,
                                       struct mo_budget_no *no)
{
    struct mo_budget_op *op = op_new(b, w);
    struct mo_counter v[WANTS];
    size_t at[WANTS];
    struct mo_err e;
    bool ok = op != NULL;
    int rc = 0;

    for (size_t i = 0; ok && is_shared(b) && i < w->n; i++) {
        if (!is_held(&w->v[i]))
            continue;
        op->holds[i] = mo_hold_row_new(mo_span_cstr(w->v[i].name), w->holder);
        ok = op->holds[i] != NULL;
    }
    if (!ok)
        rc = mo_fail(&e, MO_ENOMEM, "out of memory");
    else if (!b->store)
        rc = mo_fail(&e, MO_EUNAVAIL, "the store is not open");
    else
        rc = mo_store_count(b->store, v, put_counters(b, &op->wants, v, at),
                            on_counted, op, &e);
    if (rc < 0) {
        if (op)
            op_free(op);
        refuse_uncounted(b, w, &e, no);
        return MO_BUDGET_NO;
    }
    op->ask = a;
    op->share = share;
    a->op = op;
    return MO_BUDGET_LATER;
}

/* --- in this process ----------------------------------------------------- */

static bool has_local_room(struct mo_budget *b, const struct wants *w, size_t i,
                           uint64_t *wait_ms)
{
    const struct want *x = &w->v[i];
    struct mo_span name = mo_span_cstr(x->name);

    *wait_ms = 0;
    if (x->kind == MO_BUDGET_CALLS)
        return mo_local_has_room(&b->local, name, x->limit, mo_now_ns(),
                                 wait_ms);
    return !is_held(x) || mo_local_held(&b->local, name, w->holder) ||
           mo_local_holders(&b->local, name) < x->limit;
}

/* True if all of it is counted. */
static bool count_local(struct mo_budget *b, const struct wants *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct want *x = &w->v[i];
        struct mo_span name = mo_span_cstr(x->name);
        struct mo_hold_row *h;

        if (x->kind == MO_BUDGET_CALLS)
            mo_local_count(&b->local, name, mo_now_ns());
        if (!is_held(x) || mo_local_hold_on(&b->local, name, w->holder))
            continue;
        h = mo_hold_row_new(name, w->holder);
        if (!h) {
            drop_local(b, w);
            return false;
        }
        mo_local_hold(&b->local, h);
    }
    return true;
}

/* As count_here(), together with the other processes. */
static bool count_jointly(struct mo_budget *b, const struct wants *w,
                          struct mo_budget_no *no)
{
    struct mo_shared_want v[WANTS];
    size_t at[WANTS], n = 0, which = 0;
    uint64_t wait_ms = 0;
    int rc = 0;

    for (size_t i = 0; i < w->n; i++) {
        if (is_of_day(&w->v[i]))
            continue;
        at[n] = i;
        v[n++] = (struct mo_shared_want){
            .name = mo_span_cstr(w->v[i].name),
            .holder = is_held(&w->v[i]) ? w->holder : mo_span(NULL, 0),
            .limit = w->v[i].limit,
        };
    }
    if (n)
        rc = mo_budget_shared_count(b->shared, b->owner, v, n, mo_now_ns(),
                                    &which, &wait_ms);
    if (rc == MO_EBUSY)
        mo_count_refuse(b, w, at[which], wait_ms, no);
    else if (rc < 0)
        refuse_uncounted(b, w, mo_error(MO_ENOMEM, "out of memory"), no);
    return rc == 0;
}

/* Counts what is counted in this process. False: *no says why not. */
static bool count_here(struct mo_budget *b, const struct wants *w,
                       struct mo_budget_no *no)
{
    uint64_t wait_ms;

    mo_local_expire(&b->local, mo_now_ns());
    for (size_t i = 0; i < w->n; i++) {
        if (has_local_room(b, w, i, &wait_ms))
            continue;
        mo_count_refuse(b, w, i, wait_ms, no);
        return false;
    }
    if (count_local(b, w))
        return true;
    refuse_uncounted(b, w, mo_error(MO_ENOMEM, "out of memory"), no);
    return false;
}

static enum mo_budget_answer ask_local(struct mo_budget *b,
                                       const struct wants *w,
                                       struct mo_budget_share *share,
                                       struct mo_budget_ask *a,
                                       struct mo_budget_no *no)
{
    enum mo_budget_answer yes = MO_BUDGET_YES;
    bool days = false;

    for (size_t i = 0; i < w->n; i++)
        days = days || is_of_day(&w->v[i]);
    if (b->shared ? !count_jointly(b, w, no) : !count_here(b, w, no))
        return MO_BUDGET_NO;
    if (days)
        yes = ask_store(b, w, share, a, no);
    if (yes == MO_BUDGET_NO)
        drop_local(b, w);
    return yes;
}

enum mo_budget_answer mo_count_ask(struct mo_budget *b, const struct wants *w,
                                   struct mo_budget_share *share,
                                   struct mo_budget_ask *a,
                                   struct mo_budget_no *no)
{
    if (w->n == 0)
        return MO_BUDGET_YES;
    return is_shared(b) ? ask_store(b, w, share, a, no)
                        : ask_local(b, w, share, a, no);
}

void mo_budget_cancel(struct mo_budget_ask *a)
{
    struct mo_budget_op *op = mo_take_ptr(&a->op);

    if (op) {
        op->ask = NULL;
        op->share = NULL;
    }
}

/* --- without a question -------------------------------------------------- */

static void on_told(void *ctx, const struct mo_counted *c,
                    const struct mo_err *why)
{
    struct mo_budget_op *op = ctx;
    struct mo_budget *b = op->b;

    (void)c;
    if (why)
        mo_log_err(mo_loop_log(b->loop), MO_WARN, ROOM, why,
                   "what was used is not counted");
    op_free(op);
    mo_budget_check(b);
}

void mo_count_tell(struct mo_budget *b, const struct wants *w)
{
    struct mo_counter v[WANTS];
    size_t at[WANTS], n = put_counters(b, w, v, at);
    struct mo_budget_op *op;
    struct mo_err e;

    for (size_t i = 0; i < w->n; i++)
        if (is_held(&w->v[i]) && w->v[i].add < 0)
            release(b, mo_span_cstr(w->v[i].name), w->holder);
    if (n == 0 || !b->store)
        return;
    op = op_new(b, w);
    if (op && mo_store_count(b->store, v, n, on_told, op, &e) == 0)
        return;
    mo_log(mo_loop_log(b->loop), MO_WARN, ROOM, "what was used is not counted");
    if (op)
        op_free(op);
}

/* Holders of a shared store have a term. */
void mo_count_renew(struct mo_timer *t)
{
    struct mo_budget *b = mo_container_of(t, struct mo_budget, renew);

    mo_local_expire(&b->local, mo_now_ns());
    mo_list_each_entry (h, &b->local.holds, struct mo_hold_row, node) {
        struct wants w = {.n = 1, .holder = mo_span_cstr(h->holder)};

        w.v[0] = (struct want){.kind = MO_BUDGET_TURNS, .add = 1};
        (void)snprintf(w.v[0].name, sizeof(w.v[0].name), "%s", h->name);
        mo_count_tell(b, &w);
    }
    if (!mo_list_empty(&b->local.holds))
        mo_timer_start(b->loop, t, RENEW_MS);
}
