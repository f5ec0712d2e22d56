/* turn_budget.c - the budget of a turn and of its calls (budget/budget.h).
 *
 * A person with limits is asked about nothing early (write_ahead.c): each model
 * request begins in mo_turn_ask(), which reserves an estimate first. The
 * provider's numbers replace it in the callback of the request, whatever
 * becomes of the answer. A request that was stopped or lost keeps the estimate:
 * the provider may have worked. */
#include "agent/chat/calls.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/turn.h"

#define OUTPUT_TOKENS   4096 /* if llm.maxOutputTokens is not set */
#define BYTES_PER_TOKEN 4

static struct mo_budget *budget_of(const struct chat *c)
{
    return c->agent->o.budget;
}

/* The owner pays; where there is none, who speaks. */
static struct mo_budget_who payer(const struct chat *c)
{
    return (struct mo_budget_who){
        .person = mo_span_cstr(c->owner[0] ? c->owner : c->person),
        .token = mo_span_cstr(c->grant)};
}

static struct mo_span model_of(const struct chat *c)
{
    return mo_span_skip(mo_buf_view(&c->model.id), c->model.own);
}

bool mo_turn_budget_is_limited(const struct chat *c)
{
    const struct mo_budget_who who = payer(c);

    return mo_budget_limits_turns(budget_of(c), &who);
}

/* --- model requests ------------------------------------------------------ */

static void refuse_turn(struct chat *c, const struct mo_budget_no *no)
{
    unsigned ms = no->wait_ms < UINT32_MAX ? (unsigned)no->wait_ms : UINT32_MAX;

    mo_turn_fail(c, "over_budget", mo_span_cstr(no->text), ms);
}

static void on_reserved(struct mo_budget_ask *a, const struct mo_budget_no *no)
{
    struct chat *c = mo_container_of(a, struct chat, turn.budget);

    c->writes--;
    if (c->state == CHAT_ENDING || c->turn.cancel)
        mo_turn_budget_failed(c, "unsent");
    if (c->state == CHAT_ENDING)
        mo_chat_settle(c);
    else if (c->turn.cancel)
        mo_turn_stopped(c);
    else if (no)
        refuse_turn(c, no);
    else
        mo_turn_reserved(c);
}

static void settle(struct chat *c, const struct mo_usage *used)
{
    const struct mo_budget_who who = payer(c);

    mo_budget_settle(budget_of(c), &who, model_of(c), &c->turn.share, used);
}

bool mo_turn_budget_reserve(struct chat *c)
{
    struct mo_budget *b = budget_of(c);
    const struct mo_budget_who who = payer(c);
    struct mo_budget_request r = {
        .who = &who,
        .turn = mo_span_cstr(c->turn.id),
        .model = model_of(c),
    };
    enum mo_budget_answer yes;
    struct mo_budget_no no;

    settle(c, NULL); /* of a request that was replaced by a summary */
    if (!mo_turn_budget_is_limited(c))
        return true;
    r.most.input = mo_context_window_bytes(c) / BYTES_PER_TOKEN + 1;
    r.most.output = (uint64_t)mo_budget_config(b)->llm.max_output_tokens;
    if (r.most.output == 0)
        r.most.output = OUTPUT_TOKENS;
    c->turn.most = r.most;
    c->turn.budget.done = on_reserved;
    yes = mo_budget_request(b, &r, &c->turn.share, &c->turn.budget, &no);
    if (yes == MO_BUDGET_LATER)
        c->writes++;
    else if (yes == MO_BUDGET_NO)
        refuse_turn(c, &no);
    return yes == MO_BUDGET_YES;
}

/* A provider that reports nothing is not free. */
void mo_turn_budget_used(struct chat *c, const struct mo_llm_reply *r)
{
    struct mo_usage u = {.input = r->usage.input,
                         .output = r->usage.output,
                         .cache_read = r->usage.cache_read,
                         .cache_write = r->usage.cache_write};

    if (u.input == 0)
        u.input = mo_context_window_bytes(c) / BYTES_PER_TOKEN + 1;
    if (u.output == 0)
        u.output = r->entry.n / BYTES_PER_TOKEN + 1;
    settle(c, &u);
}

bool mo_turn_budget_is_free(const char *code)
{
    static const char *const unbilled[] = {
        "auth",        "rate_limit", "overloaded", "too_long",
        "bad_request", "no_model",   "quota",      "unsent",
    };

    for (size_t i = 0; i < MO_COUNT(unbilled); i++)
        if (strcmp(code, unbilled[i]) == 0)
            return true;
    return false;
}

void mo_turn_budget_failed(struct chat *c, const char *code)
{
    if (mo_turn_budget_is_free(code))
        settle(c, NULL);
    else if (c->turn.share.is_open)
        settle(c, &c->turn.most);
}

void mo_turn_budget_end(struct chat *c)
{
    const struct mo_budget_who who = payer(c);

    if (c->turn.id[0])
        mo_budget_release(budget_of(c), MO_BUDGET_TURNS, &who,
                          mo_span_cstr(c->turn.id));
}

unsigned mo_turn_output_max(const struct chat *c)
{
    const struct mo_budget *b = budget_of(c);
    int64_t n = b ? mo_budget_config(b)->llm.max_output_tokens : 0;

    return n > 0 && n < UINT32_MAX ? (unsigned)n : OUTPUT_TOKENS;
}

enum mo_budget_answer mo_turn_budget_share(struct chat *c,
                                           const struct mo_usage *most,
                                           struct mo_budget_share *share,
                                           struct mo_budget_ask *a,
                                           struct mo_budget_no *no)
{
    const struct mo_budget_who who = payer(c);
    const struct mo_budget_request r = {
        .who = &who,
        .turn = mo_span_cstr(c->turn.id),
        .model = model_of(c),
        .most = *most,
    };

    if (!mo_turn_budget_is_limited(c))
        return MO_BUDGET_YES;
    return mo_budget_request(budget_of(c), &r, share, a, no);
}

void mo_turn_budget_settle(struct chat *c, struct mo_budget_share *share,
                           const struct mo_usage *used)
{
    const struct mo_budget_who who = payer(c);

    mo_budget_settle(budget_of(c), &who, model_of(c), share, used);
}

/* --- calls --------------------------------------------------------------- */

static void on_call_counted(struct mo_budget_ask *a,
                            const struct mo_budget_no *no)
{
    struct call *k = mo_container_of(a, struct call, budget);

    k->chat->writes--;
    if (k->canceled)
        mo_chat_call_fail(k, MO_CALL_DONE, "%s", mo_chat_call_stopped(k));
    else if (no)
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: %s",
                          no->text);
    else
        mo_chat_call_start(k);
}

enum mo_budget_answer mo_turn_budget_call(const struct chat *c,
                                          struct mo_budget_ask *ask,
                                          struct mo_budget_no *no)
{
    const struct mo_budget_who who = payer(c);
    const struct mo_budget_call call = {.who = &who};

    return mo_budget_call(budget_of(c), &call, ask, no);
}

/* The gateway counts calls for their server. Its own tools run nothing. */
void mo_chat_call_count(struct call *k)
{
    enum mo_budget_answer yes = MO_BUDGET_YES;
    struct mo_budget_no no;

    k->budget.done = on_call_counted;
    if (k->tool->source == SOURCE_BOX || k->tool->source == SOURCE_SERVERS)
        yes = mo_turn_budget_call(k->chat, &k->budget, &no);
    if (yes == MO_BUDGET_YES)
        mo_chat_call_start(k);
    else if (yes == MO_BUDGET_NO)
        mo_chat_call_fail(k, MO_CALL_DONE, "The call was not run: %s", no.text);
    else
        k->chat->writes++;
}
