/* kube_claim.c - asks the cluster why a pod with a claim does not start.
 *
 * The pod only says that it has no node yet; the events of the claim say who
 * refuses a volume and why. Without the right to list events the scheduler's
 * words must do. */
#include <stdio.h>

#include "box/kube_priv.h"
#include "kube/claim.h"

#define CLAIM_MS 10000 /* until it is asked, and between two questions */

static bool waits_for_claim(const struct kb_box *b)
{
    return b->b.files[0] && b->state.unplaced &&
           mo_claim_is_meant(b->state.why);
}

bool mo_kbox_claim_due(const struct kb_box *b)
{
    uint64_t from = b->claim_asked ? b->claim_asked : b->began;

    return waits_for_claim(b) && mo_now_ns() - from > CLAIM_MS * MO_MS;
}

static void on_events(void *ctx, const struct mo_kube_reply *r,
                      const struct mo_err *why)
{
    struct kb_box *b = ctx;
    struct mo_json none = {NULL, 0};
    struct mo_claim_trouble t;

    b->call = NULL;
    if (b->has_end) {
        mo_kbox_wind_up(b);
        return;
    }
    mo_claim_explain(why ? none : r->json, b->state.why, &t);
    if (b->stopping || (!t.hopeless && !b->overdue))
        mo_kbox_pending(b);
    else if (waits_for_claim(b))
        mo_kbox_give_up(b, mo_error(MO_EUNAVAIL,
                                    "its files cannot be reached: claim %s: %s",
                                    b->b.files, t.why));
    else
        mo_kbox_give_up(
            b, mo_error(MO_ETIMEOUT, "its pod did not start: %s", t.why));
}

/* Of the claim, or of the pod if its node cannot mount the volume. */
bool mo_kbox_claim_ask(struct kb_box *b)
{
    struct kb *d = mo_kb_of_box(b);
    char path[MO_KUBE_PATH_MAX];
    struct mo_kube_req req = {.path = path};

    if (!b->b.files[0] || (b->state.unplaced && !waits_for_claim(b)))
        return false;
    b->claim_asked = mo_now_ns();
    (void)snprintf(path, sizeof(path),
                   "/api/v1/namespaces/%s/events?fieldSelector="
                   "involvedObject.name%%3D%s",
                   d->ns, b->state.unplaced ? b->b.files : b->name);
    return mo_kube_ask(d->api, &req, on_events, b, &b->call, NULL) == 0;
}
