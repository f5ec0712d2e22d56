/* tally.h - what all conversations have cost since the program started: tokens
 * by model, and calls and tokens by the minute of the last hour.
 *
 * A few counters in fixed memory, written as things happen and read when
 * somebody looks; nothing of it is kept. It knows no conversation.
 *
 * Limits: MO_TALLY_MODELS models by name, all others are summed in one row
 * without a name; names are cut. Minutes beyond the hour are forgotten. */
#ifndef MO_AGENT_CHAT_TALLY_H
#define MO_AGENT_CHAT_TALLY_H

#include "agent/llm/llm.h"
#include "codec/json/json.h"

#define MO_TALLY_MODELS  24
#define MO_TALLY_MINUTES 60

struct mo_tally_model {
    char provider[24], model[96]; /* both empty: the others */
    struct mo_llm_usage usage;
    uint64_t replies;
};

struct mo_tally_minute {
    uint64_t minute; /* since the epoch; which it is about */
    uint64_t calls, failed;
    uint64_t ms, longest_ms; /* of those calls: the sum, the longest */
    uint64_t tokens;         /* in and out */
};

struct mo_tally {
    struct mo_tally_model models[MO_TALLY_MODELS + 1];
    size_t nmodels;
    struct mo_tally_minute minutes[MO_TALLY_MINUTES];
    uint64_t calls, failed;
};

/* A model has answered; now: wall ms. */
void mo_tally_reply(struct mo_tally *t, const char *provider,
                    struct mo_span model, const struct mo_llm_usage *u,
                    uint64_t now);
/* A call has run and ended. */
void mo_tally_call(struct mo_tally *t, uint64_t took_ms, bool failed,
                   uint64_t now);
/* The minute so many before that of now; zeros where nothing happened. */
struct mo_tally_minute mo_tally_at(const struct mo_tally *t, uint64_t now,
                                   unsigned ago);

void mo_usage_add(struct mo_llm_usage *sum, const struct mo_llm_usage *u);
/* The same for what an entry says; none: nothing. */
void mo_usage_read(struct mo_llm_usage *sum, struct mo_json usage);

#endif
