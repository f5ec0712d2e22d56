/* tally.c - see tally.h. */
#include "agent/chat/tally.h"

#include <stdio.h>

#define MINUTE_MS  60000
#define QUARTER_MS (15 * MINUTE_MS)

void mo_usage_read(struct mo_llm_usage *sum, struct mo_json usage)
{
    struct mo_llm_usage u = {.input = 0};

    if (usage.p == NULL)
        return;
    (void)mo_json_u64(mo_json_get(usage, "input"), &u.input);
    (void)mo_json_u64(mo_json_get(usage, "output"), &u.output);
    (void)mo_json_u64(mo_json_get(usage, "cacheRead"), &u.cache_read);
    (void)mo_json_u64(mo_json_get(usage, "cacheWrite"), &u.cache_write);
    mo_llm_usage_add(sum, &u);
}

static struct mo_tally_minute *minute_of(struct mo_tally *t, uint64_t now)
{
    uint64_t minute = now / MINUTE_MS;
    struct mo_tally_minute *m = &t->minutes[minute % MO_TALLY_MINUTES];

    if (m->minute != minute)
        *m = (struct mo_tally_minute){.minute = minute};
    return m;
}

static struct mo_tally_quarter *quarter_of(struct mo_tally *t, uint64_t now)
{
    uint64_t quarter = now / QUARTER_MS;
    struct mo_tally_quarter *q = &t->quarters[quarter % MO_TALLY_QUARTERS];

    if (q->quarter != quarter)
        *q = (struct mo_tally_quarter){.quarter = quarter};
    return q;
}

/* Returns the row of the model, a new row, or the row of all others. */
static struct mo_tally_model *row_of(struct mo_tally *t, const char *provider,
                                     struct mo_span model)
{
    struct mo_tally_model want = {.replies = 0};

    (void)snprintf(want.provider, sizeof(want.provider), "%s", provider);
    (void)snprintf(want.model, sizeof(want.model), "%.*s", (int)model.n,
                   model.n > 0 ? model.p : "");
    for (size_t i = 0; i < t->nmodels; i++)
        if (strcmp(t->models[i].provider, want.provider) == 0 &&
            strcmp(t->models[i].model, want.model) == 0)
            return &t->models[i];
    if (t->nmodels >= MO_TALLY_MODELS) {
        t->nmodels = MO_TALLY_MODELS + 1;
        return &t->models[MO_TALLY_MODELS];
    }
    t->models[t->nmodels] = want;
    return &t->models[t->nmodels++];
}

void mo_tally_reply(struct mo_tally *t, const char *provider,
                    struct mo_span model, const struct mo_llm_usage *u,
                    uint64_t now)
{
    struct mo_tally_model *row = row_of(t, provider ? provider : "", model);

    row->replies++;
    mo_llm_usage_add(&row->usage, u);
    minute_of(t, now)->tokens += u->input + u->output;
    quarter_of(t, now)->tokens += u->input + u->output;
}

uint64_t mo_tally_tokens(const struct mo_tally *t, uint64_t now, unsigned ago)
{
    uint64_t quarter = now / QUARTER_MS;
    const struct mo_tally_quarter *q;

    quarter -= ago < quarter ? ago : quarter;
    q = &t->quarters[quarter % MO_TALLY_QUARTERS];
    return ago < MO_TALLY_QUARTERS && q->quarter == quarter ? q->tokens : 0;
}

void mo_tally_call(struct mo_tally *t, uint64_t took_ms, bool failed,
                   uint64_t now)
{
    struct mo_tally_minute *m = minute_of(t, now);

    t->calls++;
    t->failed += failed;
    m->calls++;
    m->failed += failed;
    m->ms += took_ms;
    if (took_ms > m->longest_ms)
        m->longest_ms = took_ms;
}

void mo_tally_tools(struct mo_tally *t, uint64_t sent, uint64_t plain)
{
    t->tools_sent += sent;
    t->tools_plain += plain;
}

struct mo_tally_minute mo_tally_at(const struct mo_tally *t, uint64_t now,
                                   unsigned ago)
{
    uint64_t minute = now / MINUTE_MS;
    const struct mo_tally_minute *m;

    minute -= ago < minute ? ago : minute;
    m = &t->minutes[minute % MO_TALLY_MINUTES];
    if (ago >= MO_TALLY_MINUTES || m->minute != minute)
        return (struct mo_tally_minute){.minute = minute};
    return *m;
}
