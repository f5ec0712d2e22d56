/* budget.h - limit on the messages, and other lines, that a peer sends without
 * being asked.
 *
 * A peer may send MO_LINK_BURST such messages at once, MO_LINK_RATE a second
 * after that, and MO_LINK_NOTES more for each call that it answers. A link
 * stops reading for a while when the budget is used up, and closes when that
 * happened MO_LINK_FLOODS_MAX times without the peer ever catching up.
 *
 * The budget has no clock and no timer: the caller passes the time. */
#ifndef MO_MCP_LINK_BUDGET_H
#define MO_MCP_LINK_BUDGET_H

#include "base/clock.h"
#include "mcp/link/link.h"

struct mo_budget {
    int64_t left;    /* below 0 if one read held more than was left */
    uint64_t filled; /* ns; time of the last refill */
    unsigned floods;
};

static inline void mo_budget_init(struct mo_budget *b, uint64_t now)
{
    *b = (struct mo_budget){.left = MO_LINK_BURST, .filled = now};
}

static inline void mo_budget_fill(struct mo_budget *b, uint64_t now)
{
    uint64_t each = MO_S / MO_LINK_RATE, more = (now - b->filled) / each;

    b->filled += more * each;
    b->left += (int64_t)more;
    if (b->left < MO_LINK_BURST)
        return;
    b->left = MO_LINK_BURST;
    b->filled = now;
    b->floods = 0;
}

/* Count an answer to one of our calls. */
static inline void mo_budget_earn(struct mo_budget *b)
{
    b->left += MO_LINK_NOTES;
    if (b->left < MO_LINK_BURST)
        return;
    b->left = MO_LINK_BURST;
    b->floods = 0;
}

static inline bool mo_budget_spent(const struct mo_budget *b)
{
    return b->left <= 0;
}

/* Count a pause of reading. False: the peer never catches up. */
static inline bool mo_budget_pause(struct mo_budget *b)
{
    return ++b->floods < MO_LINK_FLOODS_MAX;
}
#define MO_BUDGET_FLOOD                                                        \
    mo_error(MO_EPROTO,                                                        \
             "flood: more than %d unrequested messages or other lines a "      \
             "second",                                                         \
             MO_LINK_RATE)

/* Count one unrequested message. */
static inline void mo_budget_take(struct mo_budget *b, uint64_t now)
{
    if (b->left <= 0)
        mo_budget_fill(b, now);
    b->left--;
}

#endif
