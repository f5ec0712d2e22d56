#include "gateway/upstream/breaker.h"

#include <stddef.h>

#include "base/err.h"

#define SLICE_MS (MO_BREAKER_WINDOW_MS / MO_BREAKER_SLICES)

#define TO(s) (1u << (s))

static void breaker_move(struct mo_breaker *b, enum mo_breaker_state to)
{
    static const uint8_t legal[] = {
        [MO_BREAKER_CLOSED] = TO(MO_BREAKER_OPEN),
        [MO_BREAKER_OPEN] = TO(MO_BREAKER_HALF),
        [MO_BREAKER_HALF] = TO(MO_BREAKER_OPEN) | TO(MO_BREAKER_CLOSED),
    };

    MO_BUG_ON(!(legal[b->state] & TO(to)));
    b->state = to;
}

/* --- window of recent calls ---------------------------------------------- */

static void count_call(struct mo_breaker *b, uint64_t now, bool fault)
{
    uint64_t slice = now / SLICE_MS;
    size_t i = (size_t)(slice % MO_BREAKER_SLICES);

    if (b->seen[i].slice != slice) {
        b->seen[i].slice = slice;
        b->seen[i].good = b->seen[i].bad = 0;
    }
    if (fault)
        b->seen[i].bad++;
    else
        b->seen[i].good++;
}

static bool over_fault_share(const struct mo_breaker *b, uint64_t now)
{
    uint64_t slice = now / SLICE_MS, good = 0, bad = 0;

    for (size_t i = 0; i < MO_BREAKER_SLICES; i++) {
        if (b->seen[i].slice + MO_BREAKER_SLICES <= slice)
            continue;
        good += b->seen[i].good;
        bad += b->seen[i].bad;
    }
    return good + bad >= MO_BREAKER_MIN &&
           bad * 100 > (good + bad) * MO_BREAKER_SHARE;
}

/* --- states -------------------------------------------------------------- */

static uint64_t pause_ms(const struct mo_breaker *b)
{
    uint64_t ms = MO_BREAKER_MS;

    for (unsigned i = 1; i < b->opens && ms < MO_BREAKER_MOST_MS; i++)
        ms *= 2;
    return ms < MO_BREAKER_MOST_MS ? ms : MO_BREAKER_MOST_MS;
}

static void open_breaker(struct mo_breaker *b, uint64_t now)
{
    breaker_move(b, MO_BREAKER_OPEN);
    b->trial = false;
    if (b->opens < UINT32_MAX)
        b->opens++;
    b->until = now + pause_ms(b);
}

bool mo_breaker_allow(struct mo_breaker *b, uint64_t now)
{
    if (b->state == MO_BREAKER_CLOSED)
        return true;
    if (mo_breaker_wait(b, now) > 0)
        return false;
    if (b->state == MO_BREAKER_OPEN)
        breaker_move(b, MO_BREAKER_HALF);
    b->trial = true;
    b->until = now + pause_ms(b);
    return true;
}

void mo_breaker_cancel_trial(struct mo_breaker *b)
{
    if (b->state != MO_BREAKER_HALF)
        return;
    b->trial = false;
    b->until = 0;
}

static bool report_while_closed(struct mo_breaker *b, uint64_t now, bool fault)
{
    count_call(b, now, fault);
    b->row = fault ? b->row + 1 : 0;
    if (!fault || (b->row < MO_BREAKER_ROW && !over_fault_share(b, now)))
        return false;
    open_breaker(b, now);
    return true;
}

bool mo_breaker_report(struct mo_breaker *b, uint64_t now, bool fault)
{
    if (b->state == MO_BREAKER_CLOSED)
        return report_while_closed(b, now, fault);
    if (b->state == MO_BREAKER_OPEN)
        return false; /* a call that began before it opened */
    if (fault) {
        open_breaker(b, now);
        return true;
    }
    breaker_move(b, MO_BREAKER_CLOSED);
    mo_breaker_reset(b);
    return false;
}

void mo_breaker_reset(struct mo_breaker *b)
{
    *b = (struct mo_breaker){0};
}

uint64_t mo_breaker_wait(const struct mo_breaker *b, uint64_t now)
{
    bool waits = b->state == MO_BREAKER_OPEN ||
                 (b->state == MO_BREAKER_HALF && b->trial);

    return waits && b->until > now ? b->until - now : 0;
}

const char *mo_breaker_name(enum mo_breaker_state s)
{
    static const char *const names[] = {
        [MO_BREAKER_CLOSED] = "closed",
        [MO_BREAKER_OPEN] = "open",
        [MO_BREAKER_HALF] = "half-open",
    };

    return s < MO_BREAKER_STATES ? names[s] : "?";
}
