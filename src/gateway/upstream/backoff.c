#include "gateway/upstream/backoff.h"

static uint64_t longest_pause(unsigned fails)
{
    uint64_t ms = MO_BACKOFF_MS;

    for (unsigned i = 1; i < fails && ms < MO_BACKOFF_MOST_MS; i++)
        ms *= 2;
    return ms < MO_BACKOFF_MOST_MS ? ms : MO_BACKOFF_MOST_MS;
}

void mo_backoff_failed(struct mo_backoff *b, uint64_t now, uint64_t random)
{
    uint64_t half;

    if (b->fails < UINT32_MAX)
        b->fails++;
    half = longest_pause(b->fails) / 2;
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
