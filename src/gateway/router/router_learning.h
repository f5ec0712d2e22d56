/* router_learning.h - learns from choices which tools people mean by words.
 *
 * A client that was shown candidates (find_tool) and then runs one of them
 * by name has chosen it over those ranked before it. For the same words the
 * chosen tool then ranks a little higher and the others lower, by at most
 * LEARNING_SCORE in score and LEARNING_CONFIDENCE in confidence: enough to
 * decide between close candidates, not to make an unlikely tool certain. A
 * person may also teach it directly (mo_router_learning_teach): that counts
 * like one choice for each word, and for exactly these words, in any order, the
 * tool comes first whatever the scores are.
 *
 * Kept in one file, with words and tools only as hashes. Limit:
 * LEARNING_ROWS_MAX pairs; beyond it weak pairs are dropped and all counts
 * are halved. If the file is deleted (`find --forget`), everything is
 * forgotten at once. */
#ifndef MO_GATEWAY_ROUTER_ROUTER_LEARNING_H
#define MO_GATEWAY_ROUTER_ROUTER_LEARNING_H

#include <stdatomic.h>

#include "loop/loop.h"
#include "route/route.h"

#define LEARNING_SCORE          0.4f
#define LEARNING_CONFIDENCE     0.1f
/* Confidence is not raised above this. */
#define LEARNING_CONFIDENCE_MAX 0.95f
#define LEARNING_FULL           3 /* choices for the full effect */
#define LEARNING_ROWS_MAX       4096
#define LEARNING_WORDS_MAX      16 /* of a request */
#define LEARNING_SHOWN_MAX      64 /* answers that are remembered */
#define LEARNING_SHOWN_MS       ((uint64_t)600 * 1000)
#define LEARNING_SAVE_MS        2000

struct router_learning;

/* path NULL: in memory only. NULL: out of memory. */
struct router_learning *mo_router_learning_new(struct mo_loop *l,
                                               const char *path);
/* Shares it with other workers, which have the same file: `changes` counts how
 * often it was written. Choices are written within LEARNING_SAVE_MS, lessons at
 * once. */
void mo_router_learning_share(struct router_learning *h, atomic_uint *changes);
void mo_router_learning_free(struct router_learning *h); /* may be NULL */

/* Adjusts scores and confidences of an answer and sorts it again. */
void mo_router_learning_apply(struct router_learning *h, struct mo_span words,
                              struct mo_route_answer *a);
/* Records which answer a client was shown, and which tool it ran by name. */
void mo_router_learning_shown(struct router_learning *h, const char *who,
                              struct mo_span words,
                              const struct mo_route_answer *a);
void mo_router_learning_chose(struct router_learning *h, const char *who,
                              struct mo_span server, struct mo_span tool);
/* A person says that these words mean that tool, or that they do not. */
void mo_router_learning_teach(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool,
                              bool right);
/* Deletes everything, also the file. */
void mo_router_learning_forget(struct router_learning *h);
/* The number of known pairs; and what is learnt about one tool, -1 to 1. */
size_t mo_router_learning_count(struct router_learning *h);
float mo_router_learning_lean(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool);

#endif
