/* tally.h - usage counters since the program started: tokens by model, calls
 * and tokens per minute of the last hour, and tokens per quarter of an hour of
 * the last day.
 *
 * Fixed memory, no I/O, nothing is stored. It knows nothing of conversations.
 *
 * Limits: MO_TALLY_MODELS models by name; the others share one row without a
 * name. Long names are cut. Only the last MO_TALLY_MINUTES minutes are kept. */
#ifndef MO_AGENT_CHAT_TALLY_H
#define MO_AGENT_CHAT_TALLY_H

#include "agent/llm/llm.h"
#include "codec/json/json.h"

#define MO_TALLY_MODELS   24
#define MO_TALLY_MINUTES  60
#define MO_TALLY_QUARTERS 96

struct mo_tally_model {
    char provider[24], model[96]; /* both empty: all other models */
    struct mo_llm_usage usage;
    uint64_t replies;
};

struct mo_tally_minute {
    uint64_t minute; /* minutes since the epoch */
    uint64_t calls, failed;
    uint64_t ms, longest_ms; /* sum and maximum of the call durations */
    uint64_t tokens;         /* input and output */
};

struct mo_tally_quarter {
    uint64_t quarter; /* quarters of an hour since the epoch */
    uint64_t tokens;
};

struct mo_tally {
    struct mo_tally_model models[MO_TALLY_MODELS + 1];
    size_t nmodels;
    struct mo_tally_minute minutes[MO_TALLY_MINUTES];
    struct mo_tally_quarter quarters[MO_TALLY_QUARTERS];
    uint64_t calls, failed;
    uint64_t tools_sent, tools_plain; /* tokens: tool_tokens.h */
};

/* Counts one reply of a model; now: wall ms. */
void mo_tally_reply(struct mo_tally *t, const char *provider,
                    struct mo_span model, const struct mo_llm_usage *u,
                    uint64_t now);
/* Counts one call that ended. */
void mo_tally_call(struct mo_tally *t, uint64_t took_ms, bool failed,
                   uint64_t now);
/* Counts what tools have cost one request. */
void mo_tally_tools(struct mo_tally *t, uint64_t sent, uint64_t plain);
/* Returns the counters of the minute `ago` minutes before now; zeros if nothing
 * happened. */
struct mo_tally_minute mo_tally_at(const struct mo_tally *t, uint64_t now,
                                   unsigned ago);

/* Tokens of the quarter of an hour `ago` quarters before the present one. */
uint64_t mo_tally_tokens(const struct mo_tally *t, uint64_t now, unsigned ago);

/* Adds the "usage" object of an entry; missing: adds nothing. */
void mo_usage_read(struct mo_llm_usage *sum, struct mo_json usage);

#endif
