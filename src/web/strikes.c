#include "web/strikes.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

static void address_of(char out[MO_STRIKES_NAME], const char *peer)
{
    const char *colon = strrchr(peer, ':');
    size_t n = colon ? (size_t)(colon - peer) : strlen(peer);

    (void)snprintf(out, MO_STRIKES_NAME, "%.*s", (int)n, peer);
}

static struct mo_strike *row_of(struct mo_strikes *s, const char *address)
{
    struct mo_strike *oldest = &s->v[0];

    for (size_t i = 0; i < MO_STRIKES_PEERS; i++) {
        if (strcmp(s->v[i].peer, address) == 0)
            return &s->v[i];
        if (s->v[i].since < oldest->since)
            oldest = &s->v[i];
    }
    memset(oldest, 0, sizeof(*oldest));
    memcpy(oldest->peer, address, MO_STRIKES_NAME);
    return oldest;
}

unsigned mo_strikes_add(struct mo_strikes *s, const char *peer, uint64_t now)
{
    char address[MO_STRIKES_NAME] = "";
    struct mo_strike *k;
    uint64_t end;

    address_of(address, peer);
    k = row_of(s, address);
    end = k->since + MO_STRIKES_MS * MO_MS;
    if (k->n == 0 || now >= end) {
        k->n = 0;
        k->since = now;
        end = now + MO_STRIKES_MS * MO_MS;
    }
    if (++k->n <= MO_STRIKES_FREE)
        return 0;
    return (unsigned)((end - now) / (1000 * MO_MS)) + 1;
}

int mo_strikes_shared_init(struct mo_strikes_shared *s, struct mo_err *e)
{
    return mo_lock_init(&s->lock, e);
}

unsigned mo_strikes_shared_add(struct mo_strikes_shared *s, const char *peer,
                               uint64_t now)
{
    unsigned wait;

    if (!mo_lock_take(&s->lock)) /* a row may have no end */
        for (size_t i = 0; i < MO_STRIKES_PEERS; i++)
            s->s.v[i].peer[MO_STRIKES_NAME - 1] = 0;
    wait = mo_strikes_add(&s->s, peer, now);
    mo_lock_drop(&s->lock);
    return wait;
}
