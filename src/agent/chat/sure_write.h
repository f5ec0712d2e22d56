/* sure_write.h - writes an entry of a turn, and repeats that while the store
 * does not answer.
 *
 * A turn whose message was acknowledged does not end because the store is away
 * for a while: it waits, and members are told so once. A write that was not
 * acknowledged may have happened. So before each repetition the entries that
 * were added since are read; if this one is among them, it is not written
 * again.
 *
 * The turn has one such write at a time. It ends with the chat: whoever has
 * the session next goes on from what is stored.
 *
 * Limit: none in number; the pauses grow to 8 s, because an attempt may have a
 * row in the audit log. */
#ifndef MO_AGENT_CHAT_SURE_WRITE_H
#define MO_AGENT_CHAT_SURE_WRITE_H

#include "agent/chat/chat_write.h"
#include "loop/loop.h"

struct sure_write {
    struct mo_span doc; /* of the entry; the owner keeps it until done() */
    /* Starts one batch with the entry, as mo_chat_write(). done() gets NULL as
     * its arg. */
    int (*write)(struct chat *c, void *arg, chat_written *done,
                 struct mo_err *e);
    chat_written *done;
    void *arg; /* of write() and done() */
};

struct sure_writing { /* part of struct chat */
    struct sure_write now;
    uint64_t after; /* seq of the last entry before the first attempt */
    uint64_t pause; /* ms before the next attempt; 0: this is the first */
    struct mo_timer timer;
    bool is_waiting; /* for the timer */
};

void mo_sure_write_init(struct chat *c);
/* done(c, arg, why) is called once, later: the entry is stored, or the store
 * refuses it, or the chat ends. If MO_E* is returned, never. */
int mo_sure_write(struct chat *c, const struct sure_write *w, struct mo_err *e);
/* The chat is ending: nothing is repeated any more. done() may be called from
 * inside. */
void mo_sure_write_stop(struct chat *c);

#endif
