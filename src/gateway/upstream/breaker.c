#include "gateway/upstream/breaker.h"

#include <stddef.h>

#include "base/err.h"

#define SLICE_MS (MO_BREAKER_WINDOW_MS / MO_BREAKER_SLICES)

static void breaker_move(struct mo_breaker *b, enum mo_breaker_state to)
{
    static const uint8_t legal[] = {
        [MO_BREAKER_CLOSED] = MO_TO(MO_BREAKER_OPEN),
        [MO_BREAKER_OPEN] = MO_TO(MO_BREAKER_HALF),
        [MO_BREAKER_HALF] = MO_TO(MO_BREAKER_OPEN) | MO_TO(MO_BREAKER_CLOSED),
    };

    MO_MOVE(b->state, to, legal);
}

/* The pause after that many failures: doubled with each but the first. */
static uint64_t doubled(uint64_t ms, unsigned fails, uint64_t most)
{
    for (unsigned i = 1; i < fails && ms < most; i++)
        ms *= 2;
    return ms < most ? ms : most;
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
    return doubled(MO_BREAKER_MS, b->opens, MO_BREAKER_MOST_MS);
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

/* --- backoff ------------------------------------------------------------- */

void mo_backoff_failed(struct mo_backoff *b, uint64_t now, uint64_t random)
{
    uint64_t half;

    if (b->fails < UINT32_MAX)
        b->fails++;
    half = doubled(MO_BACKOFF_MS, b->fails, MO_BACKOFF_MOST_MS) / 2;
    b->until = now + half + random % (half + 1);
}

void mo_backoff_pause(struct mo_backoff *b, uint64_t now, uint64_t ms)
{
    b->until = now + ms;
}

void mo_backoff_reset(struct mo_backoff *b)
{
    *b = (struct mo_backoff){0};
}

uint64_t mo_backoff_wait(const struct mo_backoff *b, uint64_t now)
{
    return b->until > now ? b->until - now : 0;
}
