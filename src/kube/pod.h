/* pod.h - a box's pod: its policy as one table, and its state.
 *
 * Every field that we send is a row of one table in pod.c: its place, its value
 * and how the cluster's version is compared. mo_pod_write() makes the body of a
 * create request of the rows. mo_pod_compare() walks the same rows with the pod
 * that the cluster has made, because admission may change or add anything. A
 * second table names what must be absent.
 *
 * The fixed rows depend on this program only: they are checked for a pod of
 * which we do not know the request (adoption).
 *
 * No I/O. Limits: a body of MO_POD_BODY_MAX bytes. */
#ifndef MO_KUBE_POD_H
#define MO_KUBE_POD_H

#include "codec/json/json.h"

#define MO_POD_BODY_MAX  ((size_t)256 * 1024)
#define MO_POD_CONTAINER "box"
#define MO_POD_WORKSPACE "/workspace"
#define MO_POD_NET       "net" /* the container with the box's network */
#define MO_POD_FILES     "/run/ca-certificates" /* of that network */
#define MO_POD_POLICY    "mo-boxes"             /* name of the NetworkPolicy */

struct mo_pod_pair {
    const char *key, *value;
};

struct mo_pod {
    const char *name;
    const char *image;
    const char *const *argv; /* NULL-terminated; NULL: the image's own */
    const char *const *env;  /* "K=V", NULL-terminated */
    const char *workdir;     /* NULL: the image's own */
    unsigned uid;            /* and gid */
    const struct mo_pod_pair *labels, *annotations;
    size_t nlabels, nannotations;
    const char *policy_uid;    /* of the NetworkPolicy that owns the pod */
    const char *runtime_class; /* these four: NULL or "": none */
    const char *node_selector; /* a JSON object of texts */
    const char *pull_secret;
    const char *pull_policy;
    bool once; /* stdin ends when the first client detaches */
    uint64_t memory, workspace, tmp; /* bytes */
    const char *claim;               /* that is its workspace; NULL: memory */
    unsigned cpu_milli;
    const char *net_image; /* NULL: it has no network */
    bool net_files;        /* the network has files for the box */
};

/* MO_ETOOBIG, MO_ENOMEM. */
int mo_pod_write(const struct mo_pod *p, struct mo_buf *b);
/* MO_EPOLICY names the first field that differs from what was asked for. */
int mo_pod_compare(const struct mo_pod *p, struct mo_json pod,
                   struct mo_err *e);
/* The fixed rows only, of a pod with a network and its files, or without.
 * claim: as above. */
int mo_pod_compare_fixed(struct mo_json pod, bool net, bool files,
                         const char *claim, struct mo_err *e);

/* The NetworkPolicy of all boxes: no connection in or out. */
int mo_pod_policy_write(struct mo_buf *b);
int mo_pod_policy_compare(struct mo_json policy, struct mo_err *e);

/* --- state --------------------------------------------------------------- */

enum mo_pod_phase {
    MO_POD_WAITING, /* not yet running */
    MO_POD_RUNNING,
    MO_POD_ENDED, /* its program has ended, or the pod was evicted */
};

struct mo_pod_state {
    enum mo_pod_phase phase;
    bool hopeless;  /* waiting, and will not start by itself */
    bool lost;      /* running, but its node does not answer */
    bool deleting;  /* somebody has deleted it */
    bool evicted;   /* ended by the cluster, not by its program */
    bool oom;       /* ended, out of memory */
    bool never_ran; /* ended: its program could not be started */
    bool net_ended; /* running, but its network has ended */
    int code;       /* ended: exit status, or -1 */
    char name[80], uid[64], node[80];
    bool unplaced; /* waiting: no node was found for it */
    char why[200]; /* why it waits, or ended; "" if unknown */
};

/* MO_EPROTO: it is no pod. */
int mo_pod_read(struct mo_json pod, struct mo_pod_state *out, struct mo_err *e);

#endif
