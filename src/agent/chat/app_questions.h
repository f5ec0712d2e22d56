/* app_questions.h - calls of apps in a conversation that wait for the person.
 *
 * A question is answered by the same call with its digest, which covers the
 * conversation, a nonce, server, tool, its definition and the exact arguments.
 * Limit: MO_APP_QUESTIONS of a conversation; a new one replaces the oldest. */
#ifndef MO_AGENT_CHAT_APP_QUESTIONS_H
#define MO_AGENT_CHAT_APP_QUESTIONS_H

#include "base/rand.h"
#include "policy/exact.h"

#define MO_APP_QUESTIONS 8
#define MO_APP_NONCE     16 /* bytes */

struct app_questions {
    size_t next;
    struct app_question {
        char digest[MO_EXACT_DIGEST]; /* "": unused */
        char card[MO_TOKEN_LEN(MO_APP_NONCE) + 1];
        uint64_t expires; /* ns */
    } v[MO_APP_QUESTIONS];
};

#endif
