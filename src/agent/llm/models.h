/* models.h - the list of available models, and how a model is chosen by name.
 *
 * Every provider with a key is asked for its list, and model servers on this
 * machine are probed on their usual ports, all at once, within MO_MODELS_MS. No
 * call is billed. The list is cached for MO_MODELS_KEEP_MS; concurrent requests
 * share one list. A provider that fails is listed with its error; the demo is
 * always listed.
 *
 *   {"provider":"claude","model":"...","models":[{"id":"...","name":"...",
 *     "provider":"claude","context":200000}],
 *    "providers":[{"name":"claude","ok":true,"models":12},
 *                 {"name":"gemini","ok":false,"error":"..."},
 *                 {"name":"Ollama","ok":true,"models":3,
 *                  "url":"http://127.0.0.1:11434/v1"}]}
 * "url": a server found on this machine.
 *
 * Models of the default provider have plain ids; the ids of others begin with
 * the provider ("gemini:ID"). mo_models_pick() accepts both
 * and returns the same id. llm.model may have the id of a model on this machine
 * ("Ollama:ID"). If the default provider is a server that speaks
 * OpenAI's protocol and no model is named, the first of its list is used. */
#ifndef MO_AGENT_LLM_MODELS_H
#define MO_AGENT_LLM_MODELS_H

#include "agent/llm/llm.h"
#include "config/config.h"

#define MO_MODELS_MS      5000
#define MO_MODELS_LOCAL   400 /* ms for servers on this machine */
#define MO_MODELS_KEEP_MS 300000
#define MO_MODELS_TEST_MS 10000 /* ms for a test */

struct mo_models;

/* cfg gets a reference; http is borrowed. */
struct mo_models *mo_models_new(struct mo_loop *l, struct mo_httpc *http,
                                const struct mo_config *cfg, struct mo_err *e);
/* Uses another configuration from now on; the next list is a new one. */
void mo_models_config(struct mo_models *m, const struct mo_config *cfg);
/* No request may be active (close the http client first). Waiting callers get
 * MO_ECANCELED. */
void mo_models_free(struct mo_models *m);

typedef void mo_models_fn(void *arg, struct mo_span json,
                          const struct mo_err *why);
/* done() is called once, later; json is borrowed. */
int mo_models_list(struct mo_models *m, mo_models_fn *done, void *arg,
                   struct mo_err *e);

struct mo_model {
    struct mo_llm *llm;
    const char *provider; /* a constant */
    struct mo_buf id;     /* as in the list */
    size_t own;           /* where in id the provider's name of it begins */
};

/* Chooses a model by its name, "provider:name", or empty for the default. key:
 * the member's own key; empty: the configured one. out: all zero but id.max. */
int mo_models_pick(struct mo_models *m, struct mo_span wanted,
                   struct mo_span key, struct mo_model *out, struct mo_err *e);
void mo_model_fini(struct mo_model *model);
/* Does mo_models_pick() need the list first? 1: no. 0: ready() once, later,
 * also when the list could not be had. */
int mo_models_prepare(struct mo_models *m, struct mo_span wanted,
                      void (*ready)(void *arg), void *arg, struct mo_err *e);

struct mo_models_test;

/* Asks a provider of another configuration for its models, to test its key and
 * its address. provider: "claude", "gemini" or "openai". done() is called once,
 * later, with the result, also if it is a failure:
 *
 *   {"ok":true,"models":[{"id":"...","name":"..."}]}
 *   {"ok":false,"cause":"key|credit|address|network|busy","error":"..."}
 *
 * cfg gets a reference. */
int mo_models_test(struct mo_models *m, const struct mo_config *cfg,
                   const char *provider, mo_models_fn *done, void *arg,
                   struct mo_models_test **out, struct mo_err *e);
/* done() is not called any more; the request ends by itself. */
void mo_models_test_drop(struct mo_models_test *t);

/* Does the model take images? As llm.images says; `auto`: as the list says, or
 * else by its name. */
bool mo_models_sees(struct mo_models *m, const struct mo_model *model);

/* Tokens a request to the model may have, without its longest answer. 0:
 * unknown, because the list was not loaded yet or does not say. */
uint64_t mo_models_window(struct mo_models *m, struct mo_span model);

#endif
