/* chat_priv.h - struct chat and struct mo_agent, shared by the files of this
 * folder. calls.h, turn.h and load_tools.h have sections for several files.
 *
 * Ownership: an agent owns its chats, a chat its members, entries and calls.
 * chat.h states the invariants. */
#ifndef MO_AGENT_CHAT_CHAT_PRIV_H
#define MO_AGENT_CHAT_CHAT_PRIV_H

#include <stdio.h>

#include "agent/chat/app_questions.h"
#include "agent/chat/branch.h"
#include "agent/chat/chat.h"
#include "agent/chat/chat_mode.h"
#include "agent/chat/session_memory.h"
#include "agent/chat/sure_write.h"
#include "agent/chat/tally.h"
#include "agent/chat/turn.h"
#include "base/map.h"
#include "base/rand.h"
#include "servers/tools.h"

#define ID_BYTES  MO_MESSAGE_BYTES
#define ID_MAX    (MO_TOKEN_LEN(ID_BYTES) + 1)
#define WHO_MAX   MO_PERSON_MAX
#define GRANT_MAX MO_CHAT_GRANT_MAX

enum chat_state {
    CHAT_OPENING, /* waits for session, box, tools, history */
    CHAT_IDLE,
    CHAT_SAVING,  /* a user message is being written (write_ahead.c) */
    CHAT_ASKING,  /* the model answers */
    CHAT_KEEPING, /* its reply is being written */
    CHAT_CALLS,   /* its calls are pending or running */
    CHAT_RESULTS, /* their results are being written (write_ahead.c) */
    CHAT_ENDING,  /* nothing new starts */
};

struct ack { /* a command that waits for its answer */
    mo_ack_fn *fn;
    void *ctx;
};

struct message { /* a user message in the queue */
    struct mo_list node;
    char id[ID_MAX];
    char by[MO_PERSON_MAX]; /* who said it; "": the operator */
    struct ack ack;
    bool writing; /* as a queued entry, at the moment */
    bool stored;  /* as a queued entry, and acknowledged */
    uint64_t at;  /* when it was stored, if it was read again: wall ms */
    bool again;   /* whether the store has its user entry is unknown */
    bool is_auto; /* the program's words: branching.c */
    bool is_edit; /* it follows the entry `to`, on a branch of its own */
    uint64_t to;
    size_t n;
    char text[];
};

struct mo_member {
    struct mo_list node;
    struct chat *chat;
    const struct mo_member_cb *cb;
    void *ctx;
    bool greeted; /* has had "system:ready" and "session:history" */
    char who[WHO_MAX];
    const char *door;         /* or NULL */
    char name[MO_PERSON_MAX]; /* "": the operator, by token or locally */
    char grant[GRANT_MAX];    /* id of the personal token; "": none */
    enum mo_role role;
    const struct mo_people *people; /* or NULL */
    char *groups;                   /* mo_member_groups(); or NULL */
    bool is_operator;
    /* A reader (readers.h); chat is NULL while the session is not open. */
    bool reads, judged, may_decide;
    struct mo_agent *agent;
    char session[MO_SESSION_ID_MAX + 1];
};

/* The current conversation in memory. */
struct transcript {
    struct mo_list list; /* struct entry, oldest first */
    size_t n;
    uint64_t last_id;          /* of an entry */
    uint64_t seq;              /* of the last entry stored */
    struct entry *unkept;      /* being written; the last of list */
    struct entry *summary;     /* the newest, or NULL: context_window.c */
    uint64_t until;            /* the summary covers entries up to this seq */
    uint64_t cut;              /* until of the summary that is being made */
    struct mo_llm_usage spent; /* of all entries that were ever in memory */
    struct branches branches;
};

/* The turn that is running; its id is empty between turns. */
struct turn {
    char id[ID_MAX];
    char asker[MO_PERSON_MAX];  /* who said its message; "": the operator */
    struct message *saying;     /* the message that is being written */
    struct images *images;      /* of that message; or NULL */
    uint64_t began;             /* mo_now_ns() */
    struct mo_trace_span *span; /* NULL: it is not recorded */
    unsigned steps;             /* model requests so far */
    bool cancel;                /* a member asked to stop the turn */
    bool busy;                  /* mo_session_busy() was called */
    bool stuck;                 /* mo_turn_stuck() is due, from the loop */
    bool unheard; /* the end of a cancelled request ends the turn */
    struct mo_llm_x *asking;
    struct write_ahead ahead;
    struct mo_buf shown;   /* text of the current reply so far */
    struct mo_buf thought; /* thinking of the current reply so far */
    struct mo_llm_usage usage;
    struct mo_budget_ask budget; /* turn_budget.c */
    struct mo_budget_share share;
    struct mo_usage most; /* the estimate of the share */
};

/* The calls of the current step. */
struct step_calls {
    struct mo_list list;      /* struct call, in the model's order */
    struct mo_timer expiry;   /* the next approval timeout */
    struct mo_list questions; /* of servers: elicit.c */
    struct mo_list samples;   /* likewise: sampling.c */
    unsigned recovering;      /* calls being looked up */
};

struct chat {
    struct mo_agent *agent;
    enum chat_state state;
    char id[MO_SESSION_ID_MAX + 1];
    char owner[MO_SESSION_OWNER_MAX]; /* while opening: who opens it */
    char person[MO_PERSON_MAX];       /* who spoke last, before the turn */
    char grant[GRANT_MAX];            /* with which personal token */
    struct mo_list members;           /* and readers */
    unsigned nmembers;                /* without readers */

    struct mo_hold *hold;
    struct mo_session_info info; /* texts belong to the session */
    bool ready;                  /* info is valid */
    struct mo_tools *tools;
    bool stale; /* box or servers changed since tools were loaded */
    struct tool_load *tool_load;    /* tools are being loaded */
    struct gateway_client *gateway; /* connection to the gateway; or NULL */
    struct mo_list blocked;         /* changed tools: load_tools.c */
    struct skills *skills;          /* NULL: none: skills.c */
    struct mo_buf troubles;         /* missing tools and why; each with a NUL */

    struct mo_model model;
    struct mo_buf wanted, key, title;
    struct mo_buf labels; /* a document (about.h) without the title */
    uint64_t said_at;     /* wall ms of the person's last message; 0: none */
    bool other_model;     /* than it had when the session was last open */
    bool repick;          /* providers may be configured otherwise by now */
    struct mo_buf next, next_key; /* the model after this turn; or empty */
    struct ack rereading; /* who asked for another branch: branching.c */
    struct ack *sleep;    /* who asked to end the box; or NULL: wish.c */
    bool is_leaving;      /* its session goes to sleep */

    struct transcript transcript;

    struct mo_list queue; /* struct message */
    unsigned nqueue;
    bool stalled; /* the first could not be stored; it waits for the next */
    struct mo_list doubts; /* messages that may be stored: doubts.h */
    unsigned ndoubts;
    struct doubt *settling; /* the store is asked about it; or NULL */

    struct turn turn;
    struct sure_writing sure; /* the entry that the turn waits for */
    struct step_calls calls;
    struct mo_later later; /* runs on_later() from the loop */
    struct mo_later soon;  /* runs mo_write_ahead_ask() */
    unsigned writes;       /* callbacks that must come before it can end */
    struct remembered remembered;
    struct tools_off *off; /* NULL: nothing is switched off */
    struct app_questions apps;
    struct chat_mode mode;
    struct titling *titling; /* a title of the model: titles.c; or NULL */
    bool titled;             /* it was asked for one, some time */
    struct mo_buf hints;     /* about tools for scripts: script_tools.c */
    char hints_of[ID_MAX];   /* the turn that they are for */
};

struct mo_agent {
    struct mo_loop *loop;
    struct mo_agent_opts o;
    struct mo_map chats; /* session id -> struct chat * */
    struct mo_tally tally;
    struct mo_list readers; /* struct mo_member, whose session is not open */
    unsigned nreaders;      /* of those and of chats */
    unsigned nlooks;        /* reads of rows under way */
    struct mo_timer look;   /* the next reads of all rows: readers.c */
    bool closing;
    struct mo_timer ending;    /* while closing waits for calls */
    uint64_t ends_at;          /* of that */
    unsigned ngateway_clients; /* connections to the gateway */
    struct mo_list app_calls;  /* under way: apps.c */
    struct mo_gone gone;
    struct mo_later later;
    void (*opened)(void *ctx, struct mo_span session); /* or NULL */
    void *opened_ctx;
    void (*on_point)(void *ctx, const char *name);
    void *point_ctx;
};

/* --- agent.c ------------------------------------------------------------- */

void mo_agent_forget(struct chat *c);    /* removes it from the table */
void mo_agent_check(struct mo_agent *a); /* frees it if it is closed */
void mo_agent_point(struct mo_agent *a, const char *name);
void mo_member_free(struct mo_member *m); /* when it is in no list any more */
void mo_chat_take_payer(struct chat *c, const struct mo_member *m);
/* A message of the member for the queue, with a new id. NULL: refused, and
 * `ack` was answered. */
struct message *mo_chat_message_new(struct mo_member *m, struct mo_span text,
                                    struct ack *ack);

/* --- chat.c -------------------------------------------------------------- */

extern const struct mo_hold_cb mo_chat_hold_cb;
struct chat *mo_chat_new(struct mo_agent *a, const struct mo_join *j,
                         struct mo_err *e);
void mo_chat_free(struct chat *c);
void mo_chat_greet_new(struct chat *c); /* members who had no events yet */
/* Reads the history, then resumes an interrupted turn. */
void mo_chat_read_history(struct chat *c);
void mo_chat_resume(struct chat *c);
/* Finds the person whose message the turn answers. */
void mo_chat_recall_asker(struct chat *c);
void mo_chat_tools(struct chat *c, const struct mo_err *why); /* are loaded */
void mo_chat_opened(struct chat *c); /* calls were recovered */
void mo_chat_finish(struct chat *c, const char *reason,
                    const struct mo_err *why);
void mo_chat_move(struct chat *c, enum chat_state to);
/* Logs the error and ends the chat. */
void mo_chat_fail(struct chat *c, const struct mo_err *why);
/* Schedules the next step: a queued message, or the end. */
void mo_chat_settle(struct chat *c);
void mo_chat_ack(struct ack *a, const char *code, const char *message);
void mo_chat_ack_ok(struct ack *a, struct mo_span extra);

/* --- chat_model.c -------------------------------------------------------- */

/* Chooses the model of a chat that is opening; mo_chat_read_history() follows.
 */
void mo_chat_open_model(struct chat *c);
/* The id of the present model with its provider's name, because another one
 * may be the default by now. */
void mo_chat_put_model_id(const struct chat *c, struct mo_buf *b);
/* Takes over the present settings of the model's provider. If the model is
 * gone, members get an error and the old one stays. */
void mo_chat_repick(struct chat *c);
/* Another model from now on, or from the end of the turn on. Empty, or the one
 * it has: no change. */
void mo_chat_change_model(struct chat *c, struct mo_span model,
                          struct mo_span key);
/* Between two turns: changes the model if another one is wanted. */
void mo_chat_switch_due(struct chat *c);
/* The history is read. True: the change of the model since then is being
 * written, and mo_chat_resume() follows. */
bool mo_chat_note_switch(struct chat *c);

/* --- wish.c -------------------------------------------------------------- */

/* Copies the acknowledgement for later. NULL: out of memory, and it was sent.
 */
struct ack *mo_chat_keep_ack(mo_ack_fn *done, void *ctx);
/* Ends the box if that was asked for and nothing is under way. True: no turn
 * may begin any more. */
bool mo_chat_sleep_due(struct chat *c);
void mo_chat_sleep_drop(struct chat *c); /* the chat ends */

#endif
