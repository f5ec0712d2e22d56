#include "people/proofs_shared.h"

#include "codec/sha256.h"
#include "people/proof.h"

int mo_proofs_shared_init(struct mo_proofs_shared *s, struct mo_err *e)
{
    s->tables[0].turn = 1;
    s->tables[1].turn = 2;
    return mo_lock_init(&s->lock, e);
}

/* A table is emptied by a number that none of its slots has. */
static void turn(struct mo_proofs_shared *s, uint64_t now_s)
{
    struct mo_proofs_table *old = &s->tables[1 - s->now];

    if (now_s < s->since_s + 2 * MO_PROOF_WINDOW_S)
        return;
    old->turn += 2;
    old->n = 0;
    s->now = 1 - s->now;
    s->since_s = now_s;
}

/* The slot that has the digest, or the free one where it belongs. */
static struct mo_proofs_slot *slot_of(struct mo_proofs_table *t,
                                      const unsigned char digest[16])
{
    uint64_t at;

    memcpy(&at, digest, sizeof(at));
    for (;; at++) {
        struct mo_proofs_slot *x = &t->v[at % MO_PROOFS_SHARED_SLOTS];

        if (x->turn != t->turn || memcmp(x->digest, digest, 16) == 0)
            return x;
    }
}

int mo_proofs_shared_add(struct mo_proofs_shared *s, struct mo_span id,
                         uint64_t now_s)
{
    unsigned char digest[MO_SHA256_LEN];
    struct mo_sha256 h;
    struct mo_proofs_table *now, *before;
    struct mo_proofs_slot *x;
    int rc = 0;

    mo_sha256_init(&h);
    mo_sha256_put(&h, id.p, id.n);
    mo_sha256_end(&h, digest);
    (void)mo_lock_take(&s->lock); /* one that died has written no turn yet */
    turn(s, now_s);
    now = &s->tables[s->now];
    before = &s->tables[1 - s->now];
    x = slot_of(now, digest);
    if (x->turn == now->turn || slot_of(before, digest)->turn == before->turn)
        rc = MO_EEXISTS;
    else if (now->n >= MO_PROOFS_SHARED_MAX)
        rc = MO_EBUSY;
    if (rc == 0) {
        now->n++;
        memcpy(x->digest, digest, sizeof(x->digest));
        x->turn = now->turn;
    }
    mo_lock_drop(&s->lock);
    return rc;
}
