/* models.h - which models can be picked here, and under what names.
 *
 * Every provider with a key is asked for its own list, and model servers on
 * this machine are looked for on their usual ports, all at once and within
 * MO_MODELS_MS; no call that is billed. The answer is kept for
 * MO_MODELS_KEEP_MS; who asks while it is being made waits for the same one.
 * A provider that fails is named with its reason; the demo is always there.
 *
 *   {"provider":"claude","model":"...","models":[{"id":"...","name":"...",
 *     "provider":"claude","context":200000}],
 *    "providers":[{"name":"claude","ok":true,"models":12},
 *                 {"name":"gemini","ok":false,"error":"..."}]}
 *
 * The usual provider's models have their own ids; others' begin with the
 * provider ("gemini:ID"). mo_models_pick() understands these ids and gives the
 * same back. Where a server that speaks OpenAI's protocol is usual and no
 * model is named, the first of its list is used. */
#ifndef MO_AGENT_LLM_MODELS_H
#define MO_AGENT_LLM_MODELS_H

#include "agent/llm/llm.h"
#include "config/config.h"

#define MO_MODELS_MS      5000
#define MO_MODELS_LOCAL   400 /* ms for servers on this machine */
#define MO_MODELS_KEEP_MS 300000

struct mo_models;

/* cfg is referenced, http borrowed. */
struct mo_models *mo_models_new(struct mo_loop *l, struct mo_httpc *http,
                                const struct mo_config *cfg, struct mo_err *e);
/* Another configuration from now on. A list is made anew when it is next asked
 * for. */
void mo_models_config(struct mo_models *m, const struct mo_config *cfg);
/* Nothing is under way any more (the http client is closed). Waiters are
 * told MO_ECANCELED. */
void mo_models_free(struct mo_models *m);

/* done() once, later; json is borrowed. */
int mo_models_list(struct mo_models *m,
                   void (*done)(void *arg, struct mo_span json,
                                const struct mo_err *why),
                   void *arg, struct mo_err *e);

/* The model that is wanted (a name, "provider:name", or nothing), ready to be
 * asked. key: of the front's own; empty: ours. *provider is a constant. model
 * gets its id as the list has it; the name that its provider knows begins at
 * *own. */
int mo_models_pick(struct mo_models *m, struct mo_span wanted,
                   struct mo_span key, struct mo_llm **out,
                   const char **provider, struct mo_buf *model, size_t *own,
                   struct mo_err *e);
/* Does mo_models_pick() need the list first? 1: no. 0: ready() once, later,
 * also when the list could not be had. */
int mo_models_prepare(struct mo_models *m, struct mo_span wanted,
                      void (*ready)(void *arg), void *arg, struct mo_err *e);

/* Tokens a request to that model may have, its longest answer left out; 0:
 * unknown, because nobody has asked for the list yet or it does not say. */
uint64_t mo_models_window(struct mo_models *m, struct mo_span model);

#endif
