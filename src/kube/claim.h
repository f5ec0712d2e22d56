/* claim.h - a PersistentVolumeClaim that holds the files of a box.
 *
 * mo_claim_write() makes the body of a create request. The cluster binds the
 * claim to a volume by itself; if it does not, its events say why, and
 * mo_claim_explain() puts that into plain words.
 *
 * No I/O. Limits: a body of MO_CLAIM_BODY_MAX bytes. */
#ifndef MO_KUBE_CLAIM_H
#define MO_KUBE_CLAIM_H

#include "kube/pod.h"

#define MO_CLAIM_BODY_MAX 8192
#define MO_CLAIM_WHY_MAX  200

struct mo_claim {
    const char *name;
    const struct mo_pod_pair *labels, *annotations;
    size_t nlabels, nannotations;
    const char *storage_class; /* NULL or "": the cluster's default */
    uint64_t size;             /* bytes; rounded up to MiB */
};

/* MO_ETOOBIG, MO_ENOMEM. */
int mo_claim_write(const struct mo_claim *c, struct mo_buf *b);

/* Why a pod with a claim does not start. */
struct mo_claim_trouble {
    bool hopeless; /* nobody will give it a volume unless a person does */
    char why[MO_CLAIM_WHY_MAX];
};

/* events: an EventList about the claim, or none if it could not be read.
 * placing: the scheduler's words about the pod, or "". */
void mo_claim_explain(struct mo_json events, const char *placing,
                      struct mo_claim_trouble *out);
/* True if the scheduler's words are about a claim or its volume. */
bool mo_claim_is_meant(const char *placing);

#endif
