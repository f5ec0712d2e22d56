/* api_everywhere.h - requests about things that are in any process of the
 * store: pending calls, open conversations, sign-ins.
 *
 * Such a thing is in one process. The others ask it over the relay (relay.h),
 * all at once, for at most MO_RELAY_ASK_MS, with the identity of the person as
 * their own gate has judged it; the process that has it decides what the person
 * may see and do. */
#ifndef MO_WEB_API_EVERYWHERE_H
#define MO_WEB_API_EVERYWHERE_H

#include "web/api.h"

/* True if others are to be asked: not for a request that came from one. */
bool mo_api_asks_others(const struct mo_api *api, const struct mo_req *rq);
/* Answer with the list `here`, the pending calls and the changed tools of the
 * others. One that does not answer is left out. */
void mo_api_list_everywhere(struct mo_api *api, struct mo_req *rq,
                            struct mo_span here);

#define MO_API_NOT_OPEN 421

struct mo_api_question {
    int absent;        /* status of a process that does not have it */
    bool is_only;      /* one process at most has it: its answer is final */
    unsigned ms;       /* 0: MO_RELAY_ASK_MS */
    const char *ctype; /* of a good answer */
    int status;        /* none has it; the texts are literals */
    const char *code, *none;
};
void mo_api_ask_everywhere(struct mo_api *api, struct mo_req *rq,
                           struct mo_span body,
                           const struct mo_api_question *about);
/* Answer as the process does where that call waits, or that tool; 404 with the
 * text `none`, a literal: none has it. */
void mo_api_decide_everywhere(struct mo_api *api, struct mo_req *rq,
                              struct mo_span body, const char *none);
/* The same for the process where a conversation is open; the others answer with
 * MO_API_NOT_OPEN. */
void mo_api_ask_holder(struct mo_api *api, struct mo_req *rq,
                       struct mo_span body, const char *none);

#endif
