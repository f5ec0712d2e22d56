/* budget.h - how many unasked messages a peer may send us.
 *
 * So many at once (MO_LINK_BURST), so many a second after that
 * (MO_LINK_RATE), and so many more for each call that it answers
 * (MO_LINK_NOTES): who works much may say much. Who has used them up is not
 * read from for a breath; who is held back MO_LINK_FLOODS_MAX times without
 * ever catching up is given up.
 * No clock and no timer of its own: the caller says what time it is. */
#ifndef MO_MCP_LINK_BUDGET_H
#define MO_MCP_LINK_BUDGET_H

#include "base/clock.h"
#include "mcp/link/link.h"

struct mo_budget {
    int64_t left;    /* below 0: what came in one piece with the last */
    uint64_t filled; /* ns; when it was filled last */
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

/* A call of ours was answered. */
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

/* One message came. */
static inline void mo_budget_take(struct mo_budget *b, uint64_t now)
{
    if (b->left <= 0)
        mo_budget_fill(b, now);
    b->left--;
}

#endif
