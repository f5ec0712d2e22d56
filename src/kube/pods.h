/* pods.h - the pods with a label, and every change of them.
 *
 * The pods are listed once, in parts (list.h), then watched from there. A
 * watch that ends is begun again where it ended; if the cluster does not
 * remember that far (410), the pods are listed again, as they are if it has
 * forgotten a place in the list. While the cluster cannot be reached the next
 * attempt follows after a pause that doubles up to PAUSE_MAX_MS. Bookmarks and
 * a time limit keep the watch from being idle, so that a dead connection is
 * noticed.
 *
 * Limits: an event of MO_PODS_LINE_MAX bytes. */
#ifndef MO_KUBE_PODS_H
#define MO_KUBE_PODS_H

#include "kube/api.h"

#define MO_PODS_LINE_MAX ((size_t)1024 * 1024)

struct mo_pods;

struct mo_pods_cb {
    /* A pod as it is now; deleted: as it was last. */
    void (*on_pod)(void *ctx, struct mo_json pod, bool deleted);
    /* All pods that exist have been told since on_list(). */
    void (*on_list)(void *ctx);
    void (*on_listed)(void *ctx);
    /* Changes are missed from here on, until on_list(). */
    void (*on_lost)(void *ctx, const struct mo_err *why);
};

/* selector: "mo.store=x", as it stands in a query. cb fires from the loop. */
int mo_pods_start(struct mo_loop *l, struct mo_kube *k, const char *ns,
                  const char *selector, const struct mo_pods_cb *cb, void *ctx,
                  struct mo_pods **out, struct mo_err *e);
void mo_pods_stop(struct mo_pods *p);
/* True between on_listed() and on_lost(). */
bool mo_pods_is_up(const struct mo_pods *p);

#endif
