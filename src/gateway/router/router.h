/* router.h - questions to the router, for the owner of a gateway. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_H
#define MO_GATEWAY_ROUTER_ROUTER_H

#include "codec/json/json.h"

struct mo_gateway;

struct mo_gw_find {
    struct mo_span words;
    size_t limit;     /* 0: 5 */
    double threshold; /* least confidence of a result */
    /* True if the tool's definition differs from the pinned one. NULL: not
     * checked. */
    bool (*changed)(void *ctx, struct mo_span server, struct mo_span tool,
                    struct mo_json item);
    void *ctx;
};

/* Writes as JSON which tools the router would choose, and which it rules out
 * and why. Starts no server. 0 or MO_ENOMEM. */
int mo_gateway_find(struct mo_gateway *g, const struct mo_gw_find *f,
                    struct mo_buf *out);

/* A person says that words mean a tool, or do not. False: no such tool. */
struct mo_gw_lesson {
    struct mo_span words, server, tool;
    bool right;
};
bool mo_gateway_teach(struct mo_gateway *g, const struct mo_gw_lesson *l);
/* Deletes everything learnt from choices and lessons, also the file. */
void mo_gateway_forget_learning(struct mo_gateway *g);

/* About how many tokens of tool definitions the meta-tools save a client; 0:
 * the meta-tools are off. */
uint64_t mo_gateway_saved(const struct mo_gateway *g);
/* True if MO_GW_AUTO offers the meta tools, because there are many tools. */
bool mo_gateway_is_large(const struct mo_gateway *g);

struct embeddings_stats; /* embeddings.h */
/* False: there is no embeddings server. */
bool mo_gateway_embeddings(const struct mo_gateway *g,
                           struct embeddings_stats *out);

struct mo_gw_choice {
    struct mo_span server, tool; /* in the arena */
    struct mo_json params;       /* of the arguments, or none */
    float sure;                  /* confidence; 1: the tool was named */
};

/* Finds the tool that `execute` would run with these arguments. 0, or an error
 * if it would run none; the call itself then reports why. */
int mo_gateway_choose(struct mo_gateway *g, uint64_t peer,
                      struct mo_json arguments, struct mo_arena *a,
                      struct mo_gw_choice *out);

#endif
