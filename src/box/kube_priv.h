/* kube_priv.h - shared by the files of the kubernetes driver.
 *
 * kube.c has the cluster: reached when first needed, the NetworkPolicy of all
 * boxes, the watch of their pods. kube_box.c is the life of one box, kube_end.c
 * its end, kube_hold.c the start of its program, kube_net.c its network,
 * kube_pod.c the pod it asks for, kube_files.c the claim of its files,
 * kube_claim.c why that has no volume, kube_label.c the label of a warm box
 * that was taken, kube_ask.c the queries about boxes.
 *
 * Invariants:
 *  1. Only mo_kbox_move() writes a box's step.
 *  2. A box waits for at most one answer of the cluster (`call`).
 *  3. `made`: a pod of ours may exist under `name`. Ending the box removes it.
 *     `claim_made` and not `owned`: likewise its claim, after the pod.
 *  4. A change of a pod is handled from the loop (`later`), never from inside
 *     the watch. */
#ifndef MO_BOX_KUBE_PRIV_H
#define MO_BOX_KUBE_PRIV_H

#include "box/driver.h"
#include "box/net_stream.h"
#include "kube/access.h"
#include "kube/api.h"
#include "kube/pod.h"
#include "kube/pods.h"

#define KB_NAME_MAX  32
#define KB_LABEL_MAX 64
#define KB_ARENA_MAX ((size_t)512 * 1024)
#define KB_BODY_MAX  4096

/* User ids of boxes. */
#define KB_UID_FIRST 100000u
#define KB_UID_COUNT 1000000000u

/* Labels mo.role of pods and of claims. */
#define KB_ROLE_BOX   "box"
#define KB_ROLE_FILES "files"

/* Waits until the cluster is ready for boxes; go() once. */
struct kb_wait {
    struct mo_list node;
    void (*go)(struct kb_wait *w, const struct mo_err *why);
};

struct kb {
    struct mo_boxes bs; /* first */
    struct mo_kube *api;
    struct mo_pods *watch;
    struct mo_kube_call *greeting;
    struct mo_list waiting;
    struct mo_later later;
    struct mo_timer relabel;  /* kube_label.c */
    bool no_labels;           /* they may not be changed */
    bool no_claim_labels;     /* likewise, of claims */
    bool claims;              /* files are kept in claims */
    bool policy_ok;           /* it was seen, and no pod was deleted since */
    bool lost;                /* the pods cannot be watched */
    bool no_exec;             /* no right to it: boxes have no network */
    char *network;            /* of boxes that are adopted */
    char store[KB_LABEL_MAX]; /* as a label */
    char *instance, *ns, *image, *runtime_class, *node_selector, *pull_secret,
        *pull_policy, *storage_class;
    char policy_uid[64];
};

enum kb_step {
    KB_WAITING,   /* for the cluster */
    KB_FINDING,   /* adopting: is it there, and ours? */
    KB_CLAIMING,  /* the claim of its files: found or made */
    KB_CREATING,  /* create */
    KB_PENDING,   /* until its container runs */
    KB_NETWORK,   /* its relay */
    KB_ATTACHING, /* attach */
    KB_UP,
    KB_JUDGING,  /* something ended: the pod tells what */
    KB_REMOVING, /* delete */
    KB_DONE,     /* mo_box_down() is next */
};

struct kb_exec;

struct kb_net {
    bool wanted;  /* the pod has a container for it */
    bool files;   /* ... which gets certificates */
    bool waiting; /* the start of the box waits for it */
    bool ending;
    char ports[MO_BOX_PORTS_MAX];
    struct mo_box_net net;
    struct kb_exec *exec;         /* the relay is being started */
    struct mo_net_stream *stream; /* ... and was */
    struct mo_timer timer;
    uint64_t since; /* ns: waiting */
    unsigned tries;
};

struct kb_box {
    struct mo_box b; /* first */
    enum kb_step step;
    struct kb_wait wait;
    struct mo_arena arena; /* texts of spec and pod */
    struct mo_box_spec spec;
    struct mo_pod pod;
    struct mo_pod_state state; /* as last told */
    struct mo_kube_call *call;
    struct mo_split_io io; /* split: NULL once it has ended */
    struct mo_timer timer; /* next attempt */
    struct mo_later later; /* continues from the loop */
    struct kb_net net;
    struct mo_err why; /* code 0: none */
    struct mo_box_end end;
    char name[KB_NAME_MAX], uid[64];
    uint64_t since, began; /* ns: its step, its pod */
    uint64_t claim_asked;  /* ns: about its claim; 0: not yet */
    unsigned tries;
    unsigned pods; /* that were deleted before they ran */
    bool adopted, warm, made, stopping, letting_go, has_end;
    bool overdue;      /* it did not start in time: only the reason is open */
    bool claim_made;   /* it made its claim, or asked for that */
    bool owned;        /* an owner was told of it, and of its claim */
    bool taken;        /* its pod still says that it is warm (kube_label.c) */
    bool streams_ours; /* io's streams are still ours */
    bool eof, broken;  /* the attach has ended; with a broken frame */
    bool seen;         /* state has changed */
    bool doubt;        /* the pod may be gone: ask */
    bool listed;       /* told since the last list began */
    bool held;         /* attached; its program waits for us (kube_hold.c) */
    bool heard[2];     /* ... and has answered, on stdout and stderr */
    unsigned asked;
};

static inline struct kb *mo_kb_of(const struct mo_boxes *bs)
{
    return mo_container_of(bs, struct kb, bs);
}

static inline struct kb_box *mo_kbox_of(const struct mo_box *b)
{
    return mo_container_of(b, struct kb_box, b);
}

static inline struct kb *mo_kb_of_box(const struct kb_box *b)
{
    return mo_kb_of(b->b.bs);
}

/* True if the state is of another pod, which has got its name. */
static inline bool mo_kbox_is_other(const struct kb_box *b,
                                    const struct mo_pod_state *s)
{
    return b->uid[0] && strcmp(b->uid, s->uid) != 0;
}

/* kube.c */
void mo_kb_wait(struct kb *d, struct kb_wait *w); /* go() from the loop */

/* kube_pod.c: fills b->pod from b->spec; gives the box a new name. */
int mo_kbox_fill(struct kb *d, struct kb_box *b, struct mo_err *e);
/* A text as the value of a label: itself, or a digest of it. */
void mo_kb_label(const char *text, char out[KB_LABEL_MAX]);
/* True if the object has our store's labels, and that role. */
bool mo_kb_is_ours(const struct kb *d, struct mo_json object, const char *role);
unsigned mo_kb_new_uid(void); /* by chance */

/* kube_box.c */
int mo_kbox_start(struct mo_box *b, const struct mo_box_spec *spec, bool warm,
                  struct mo_err *e);
int mo_kbox_adopt(struct mo_box *b, const char *id, const char *session,
                  struct mo_err *e);
void mo_kbox_stop(struct mo_box *b);
void mo_kbox_let_go(struct mo_box *b);
void mo_kbox_move(struct kb_box *b, enum kb_step to);
/* Asks for the pod; the call is b->call. tail: of the path; body: or NULL. */
int mo_kbox_ask(struct kb_box *b, const char *method, const char *tail,
                struct mo_span body, mo_kube_done *done, struct mo_err *e);
void mo_kbox_retry(struct kb_box *b, void (*fire)(struct mo_timer *t),
                   uint64_t ms);
/* Continues a start with the state of the pod. */
void mo_kbox_pending(struct kb_box *b);
/* From the watch. */
void mo_kbox_news(struct kb_box *b);

void mo_kbox_create(struct kb_box *b); /* its pod; its files are ready */
void mo_kbox_bring_up(struct kb_box *b);
void mo_kbox_attach(struct kb_box *b);
/* Again after a pause, a few times; then the box is given up because of why. */
void mo_kbox_attach_later(struct kb_box *b, const struct mo_err *why);

/* kube_hold.c */
void mo_kbox_hold(struct kb_box *b);
void mo_kbox_held(struct kb_box *b);         /* from the loop */
void mo_kbox_drop_streams(struct kb_box *b); /* if they are ours */

/* kube_net.c */
/* Sets what b is to have, or had; MO_EINVAL: a pod cannot have that. */
int mo_kbox_net_want(struct kb_box *b, const struct mo_box_spec *spec,
                     struct mo_err *e);
int mo_kbox_net_read(struct kb_box *b, struct mo_json notes, struct mo_err *e);
/* mo_kbox_attach() follows, or the end of the box. */
void mo_kbox_net_start(struct kb_box *b);
void mo_kbox_net_end(struct kb_box *b); /* mo_kbox_net_gone(), maybe at once */

/* kube_files.c */
/* The user id in the name of a claim; 0: it is not a name of ours. */
unsigned mo_kb_files_uid(const char *name);
/* mo_kbox_create() follows, or the end of the box. */
void mo_kbox_files_prepare(struct kb_box *b);
/* Of a pod that is adopted. */
int mo_kbox_files_read(struct kb_box *b, struct mo_json notes,
                       struct mo_err *e);
/* Removes the claim if no owner has seen it: true, and mo_kbox_down() follows.
 */
bool mo_kbox_files_drop(struct kb_box *b);
int mo_kb_put_claim(const struct kb *d, const char *name, const char *session,
                    uint64_t size, struct mo_buf *body);
int mo_kb_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                void *ctx, struct mo_err *e);
int mo_kb_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                 void *ctx, struct mo_err *e);

/* kube_claim.c */
bool mo_kbox_claim_due(const struct kb_box *b); /* time to ask about it */
/* mo_kbox_pending() or mo_kbox_give_up() follows; false: nothing is asked. */
bool mo_kbox_claim_ask(struct kb_box *b);

/* kube_end.c */
void mo_kbox_down(struct kb_box *b);     /* reports the end; nothing is left */
void mo_kbox_net_gone(struct kb_box *b); /* the last step of a box */
void mo_kbox_later(struct mo_later *l);  /* handles changes and a stop */
void mo_kbox_cut(void *ctx, enum mo_split_end how, const struct mo_err *why);
/* The box cannot start: because of why, or because it was stopped. */
void mo_kbox_give_up(struct kb_box *b, const struct mo_err *why);
/* The cluster or the pod's node cannot be asked: the pod may run on. */
void mo_kbox_engine_gone(struct kb_box *b, const struct mo_err *why);
/* Removes what is left of the pod, then reports the end. */
void mo_kbox_wind_up(struct kb_box *b);
/* The pod has ended, or was deleted: why is in b->state. */
void mo_kbox_ended(struct kb_box *b);

/* kube_label.c */
void mo_kb_label_setup(struct kb *d);
void mo_kbox_claim(struct mo_box *b, const struct mo_box_spec *spec);

/* kube_ask.c */
int mo_kb_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                struct mo_err *e);
int mo_kb_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
               void *ctx, struct mo_err *e);
int mo_kb_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                 void *ctx, struct mo_err *e);
int mo_kb_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                struct mo_err *e);
/* Reads objects into out, which has room for all, and counts the rows. 0 or
 * MO_ENOMEM. */
typedef int mo_kb_read_fn(struct kb *d, struct mo_json items,
                          struct mo_arena *a, struct mo_box_row *out,
                          size_t *n);
/* A part of the objects with that role. kind: its plural in the API. */
int mo_kb_query(struct kb *d, const char *kind, const char *role,
                const char *from, mo_kb_read_fn *read, mo_box_rows_fn *done,
                void *ctx, struct mo_err *e);
/* Removes an object of ours by its name; a name that is unknown is a success.
 * kind: its plural in the API. */
int mo_kb_remove_object(struct kb *d, const char *kind, const char *name,
                        const char *role, mo_done_fn *done, void *ctx,
                        struct mo_err *e);
/* The body of a DELETE: at once, and only this pod. uid: may be "". */
int mo_kb_put_delete(struct mo_buf *b, const char *uid);

#endif
