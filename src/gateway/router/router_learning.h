/* router_learning.h - which tools are meant here by which words, learnt from
 * choices.
 *
 * Somebody who was shown candidates for some words (find_tool) and then runs
 * one of them by name has chosen it, and passed over those that stood before
 * it. The next time these words are asked, the chosen one is a little more
 * likely and the others a little less: never by more than LEARNING_SCORE in
 * rank and LEARNING_CONFIDENCE in confidence, so that habit decides between
 * what is near and makes nothing sure that was not almost so.
 *
 * Kept in one file, words and tools only as numbers that nobody can read
 * back; LEARNING_ROWS_MAX pairs, beyond that all are halved and the weak ones
 * go. A file that is taken away (`find --forget`) is forgotten at once.
 *
 * People may also say it straight out (mo_router_learning_teach), which counts
 * like one choice. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_LEARNING_H
#define MO_GATEWAY_ROUTER_ROUTER_LEARNING_H

#include "loop/loop.h"
#include "route/route.h"

#define LEARNING_SCORE      0.4f
#define LEARNING_CONFIDENCE 0.1f
#define LEARNING_CONFIDENCE_MAX                                                \
    0.95f                    /* more than that is not for habit to say */
#define LEARNING_FULL      3 /* so many choices count in full */
#define LEARNING_ROWS_MAX  4096
#define LEARNING_WORDS_MAX 16 /* of a request */
#define LEARNING_SHOWN_MAX 64 /* answers that may still be chosen from */
#define LEARNING_SHOWN_MS  ((uint64_t)600 * 1000)
#define LEARNING_SAVE_MS   2000

struct router_learning;

/* path NULL: only as long as we run. NULL: no memory. */
struct router_learning *mo_router_learning_new(struct mo_loop *l,
                                               const char *path);
void mo_router_learning_free(struct router_learning *h); /* NULL is fine */

/* Put what is known of these words into an answer: it is in order again. */
void mo_router_learning_apply(struct router_learning *h, struct mo_span words,
                              struct mo_route_answer *a);
/* Somebody was shown that; somebody runs a tool by its name. */
void mo_router_learning_shown(struct router_learning *h, const char *who,
                              struct mo_span words,
                              const struct mo_route_answer *a);
void mo_router_learning_chose(struct router_learning *h, const char *who,
                              struct mo_span server, struct mo_span tool);
/* A person says that these words mean that tool, or that they do not. */
void mo_router_learning_teach(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool,
                              bool right);
/* All of it, also the file. */
void mo_router_learning_forget(struct router_learning *h);
/* How many pairs are known, and which way they lean, from -1 to 1. */
size_t mo_router_learning_count(struct router_learning *h);
float mo_router_learning_lean(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool);

#endif
