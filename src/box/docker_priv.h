/* docker_priv.h - shared by the files of the docker driver.
 *
 * docker.c has the engine: connected when first needed and again after it was
 * away, our image in it, its events. docker_box.c is the life of one box,
 * docker_end.c its end, docker_ctr.c the container it asks for, docker_mounts.c
 * the host's folders in it, docker_net.c its network (docker_net_far.c if the
 * engine is elsewhere), docker_trust.c the certificates it trusts,
 * docker_files.c its kept workspace, docker_ask.c the queries about boxes.
 *
 * Invariants:
 *  1. Only mo_docker_move() writes a box's step.
 *  2. A box waits for at most one answer of the engine (`call`), and while it
 *     is being created for its attach too (`attaching`).
 *  3. `made`: a container of ours may exist, under `id` or, if the answer to
 *     create never came, under `name`. Ending the box removes it. */
#ifndef MO_BOX_DOCKER_PRIV_H
#define MO_BOX_DOCKER_PRIV_H

#include "base/map.h"
#include "box/box_net.h"
#include "box/driver.h"
#include "box/net_socket.h"
#include "box/net_stream.h"
#include "engine/ctr.h"
#include "engine/engine.h"
#include "engine/image.h"
#include "engine/watch.h"
#include "loop/split.h"

#define DK_SLOTS      MO_BOX_MAX
#define DK_NAME_MAX   32
#define DK_CLEAN_MAX  256 /* foreign images that passed the scan */
#define DK_ARENA_MAX  ((size_t)512 * 1024)
#define DK_LABELS     10
#define DK_SLOT_TRIES 32

/* Containers of ours, in the label mo.role. */
#define DK_ROLE_BOX "box"
#define DK_ROLE_NET "network"

#define DK_NET_KEY_MAX   17 /* bytes, NUL included */
#define DK_NET_PATH_MAX  4096
#define DK_NET_LABEL_MAX (DK_NET_KEY_MAX + MO_BOX_ID_MAX)
#define DK_TRUST_MAX     (MO_CTR_VOLUME + 32)

/* Waits until the engine is connected (and has our image); go() once. */
struct dk_wait {
    struct mo_list node;
    void (*go)(struct dk_wait *w, const struct mo_err *why);
    bool image; /* our image is needed too */
};

struct dk {
    struct mo_boxes bs; /* first */
    struct mo_engine *en;
    struct mo_watch *watch;
    struct mo_engine_facts facts;
    char *store, *instance, *dir;
    struct mo_span toolbox, launcher;
    const struct mo_host_guard *guard; /* or NULL */
    const char *const *mounts;         /* of adopted boxes, or NULL */
    char *network;                     /* of boxes that are adopted; "": none */
    struct mo_image_tar image;         /* tar is empty once the engine has it */
    struct mo_buf seccomp[2]; /* the profile, or (podman) its path; [1]: of
                                 boxes with a network */
    bool greeted, greeting, image_ok, image_asked;
    bool far; /* the engine is elsewhere: it does not see our directories */
    enum mo_box_volumes volumes;
    bool no_quota; /* it has refused to limit a volume */
    struct mo_list waiting;
    struct mo_later later;
    struct mo_map clean; /* ids of scanned images; their ca_files + 1 */
    bool slots[DK_SLOTS];
};

enum dk_step {
    DK_WAITING,  /* for the engine, for our image */
    DK_LOOKING,  /* scanning a foreign image */
    DK_NETWORK,  /* making the network */
    DK_CREATING, /* create */
    DK_CHECKING, /* inspect and attach */
    DK_STARTING, /* start */
    DK_UP,
    DK_JUDGING,  /* something ended: inspect tells what */
    DK_FINDING,  /* does the container exist? */
    DK_REMOVING, /* remove */
    DK_DONE,     /* mo_box_down() is next */
};

/* The network of a box (docker_net.c). */
struct dk_net {
    char key[DK_NET_KEY_MAX]; /* "": there is none */
    char id[MO_BOX_ID_MAX];   /* of the network container, once it is known */
    bool made;                /* that may exist, under its id or its name */
    bool waiting, started, keep;
    struct mo_timer timer; /* while waiting */
    struct mo_net_socket *socket;
    struct mo_err failed; /* code 0: not */
    int fds[MO_NET_SOCKETS_MAX];
    size_t nfds;
    bool far; /* its connections come over a stream, not its sockets */
    struct dk_far *stream;      /* that stream; NULL: there is none */
    bool greeted, v6;           /* it works; the box has IPv6 */
    bool ending;                /* mo_docker_net_end() waits for an attach */
    unsigned tries;             /* to attach again */
    bool files, filled;         /* files are sent over it; they are there */
    char volume[MO_CTR_VOLUME]; /* they are in this volume */
    struct mo_box_net net;
    const char *argv[6];
    struct mo_ctr_label labels[4];
    char label[DK_NET_LABEL_MAX]; /* of the box: "KEY:ID" */
    char ports[MO_BOX_PORTS_MAX], path[DK_NET_PATH_MAX];
};

struct dk_box {
    struct mo_box b; /* first */
    enum dk_step step;
    struct dk_wait wait;
    struct mo_arena arena; /* texts of spec and ctr */
    struct mo_box_spec spec;
    struct mo_image *image; /* foreign; NULL: ours */
    struct mo_ctr ctr;
    struct mo_host_inode *inodes; /* of ctr.binds, as they were judged */
    size_t judged;                /* the first ones; the others are ours */
    char trust[DK_TRUST_MAX];     /* label (docker_trust.c), or "" */
    const char *const *ca_env;    /* variables for it, or NULL */
    struct dk_net net;
    struct mo_engine_call *call, *attaching;
    struct mo_split_io io; /* split: NULL once it has ended */
    struct mo_timer timer; /* next attempt */
    struct mo_later later; /* continues from the loop */
    struct mo_err why;     /* code 0: none */
    struct mo_box_end end;
    char id[MO_BOX_ID_MAX], name[DK_NAME_MAX];
    char session[MO_BOX_LABEL_MAX]; /* of an adopted one */
    int slot;                       /* -1: none */
    unsigned tries, looks;
    bool paused; /* an adopted one was, when it was found */
    bool adopted, warm, made, stopping, letting_go, has_end;
    bool streams_ours; /* io's streams are still ours */
    bool eof, broken;  /* the attach has ended; with a broken frame */
    bool oom;          /* an event said that a process ran out of memory */
};

static inline struct dk *mo_docker_of(const struct mo_boxes *bs)
{
    return mo_container_of(bs, struct dk, bs);
}

static inline struct dk_box *mo_docker_box_of(const struct mo_box *b)
{
    return mo_container_of(b, struct dk_box, b);
}

static inline struct dk *mo_docker_of_box(const struct dk_box *b)
{
    return mo_docker_of(b->b.bs);
}

/* docker.c */
/* far: the engine does not see our directories. */
void mo_docker_set_far(struct dk *d, bool far);
void mo_docker_wait(struct dk *d, struct dk_wait *w); /* go() from the loop */

/* docker_ctr.c: fill b->ctr from b->spec; slot and image are known. */
int mo_docker_ctr_fill(struct dk *d, struct dk_box *b, struct mo_err *e);

/* docker_mounts.c: sets b->ctr's binds and user; judges the paths. */
int mo_docker_mounts_fill(struct dk_box *b, struct mo_err *e);
/* MO_EPOLICY: a path is no longer what was judged. */
int mo_docker_mounts_again(struct dk_box *b, struct mo_err *e);
/* Only sets c's binds, which live in a. */
int mo_docker_binds(struct mo_arena *a, const char *const *mounts,
                    const char *folder, struct mo_ctr *c, struct mo_err *e);

/* docker_trust.c: adds mounts of certificates to b->ctr; sets b->trust. */
int mo_docker_trust_fill(struct dk_box *b, struct mo_err *e);
/* Does the box need certificates? */
bool mo_docker_trust_wanted(const struct dk_box *b);
/* ... also as a keystore? */
bool mo_docker_trust_java(const struct dk_box *b);
/* Adds the binds to c that an adopted box's label tells. */
int mo_docker_trust_read(struct dk_box *b, struct mo_json labels,
                         struct mo_ctr *c, struct mo_err *e);

/* docker_files.c: sets b->b.files, then mo_docker_prepare(). */
void mo_docker_files_prepare(struct dk_box *b);
/* The user id is taken: makes another volume. False: it has files already. */
bool mo_docker_files_again(struct dk_box *b);
unsigned mo_docker_files_uid(const char *name); /* 0: not one of ours */
/* Adds the volume of b, or that of an adopted box's label, to c. */
int mo_docker_files_fill(struct dk_box *b, struct mo_ctr *c, struct mo_err *e);
int mo_docker_files_read(struct dk_box *b, struct mo_json labels,
                         struct mo_ctr *c, struct mo_err *e);
int mo_docker_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                    void *ctx, struct mo_err *e);
int mo_docker_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                     void *ctx, struct mo_err *e);

/* docker_box.c */
void mo_docker_prepare(struct dk_box *b); /* network and container */
int mo_docker_box_start(struct mo_box *b, const struct mo_box_spec *spec,
                        bool warm, struct mo_err *e);
int mo_docker_box_adopt(struct mo_box *b, const char *id, const char *session,
                        struct mo_err *e);
void mo_docker_box_stop(struct mo_box *b);
void mo_docker_box_let_go(struct mo_box *b);
void mo_docker_box_park(struct mo_box *b);
void mo_docker_box_claim(struct mo_box *b, const struct mo_box_spec *spec);
void mo_docker_move(struct dk_box *b, enum dk_step to);
/* Asks for "/containers/" what tail; the call is b->call. */
int mo_docker_ask(struct dk_box *b, const char *method, const char *what,
                  const char *tail, mo_engine_done *done, struct mo_err *e);
/* POST "/containers/" tail with a body. */
int mo_docker_post(struct dk_box *b, const char *tail, struct mo_span body,
                   mo_engine_done *done, struct mo_err *e);
/* The network is there, or not. */
void mo_docker_net_up(struct dk_box *b, const struct mo_err *why);
void mo_docker_retry(struct dk_box *b, void (*fire)(struct mo_timer *t),
                     uint64_t ms);

/* docker_end.c */
/* The engine reported an end of the container, or events were lost. */
void mo_docker_box_news(struct dk_box *b);
void mo_docker_box_later(struct mo_later *l); /* handles events and a stop */
void mo_docker_box_cut(void *ctx, enum mo_split_end how,
                       const struct mo_err *why);
/* The box cannot start: because of why, or because it was stopped. */
void mo_docker_give_up(struct dk_box *b, const struct mo_err *why);
/* Removes what is left of the container, then reports the end. */
void mo_docker_wind_up(struct dk_box *b);

void mo_docker_net_gone(struct dk_box *b); /* answers mo_docker_net_end() */

/* docker_net.c */
/* Starts the network container; mo_docker_net_up() later. */
int mo_docker_net_start(struct dk_box *b, struct mo_err *e);
/* Gets the sockets of an adopted box's; mo_docker_net_up() later. */
int mo_docker_net_find(struct dk_box *b, struct mo_err *e);
void mo_docker_net_cancel(struct dk_box *b); /* no mo_docker_net_up() */
/* Begins to relay, if there is a network. */
int mo_docker_net_relay(struct dk_box *b, const char *session,
                        struct mo_err *e);
/* Ends the relay and removes the network container, unless it is to be kept.
 * mo_docker_net_gone() once, maybe at once. */
void mo_docker_net_end(struct dk_box *b, bool keep);
/* Reads a box's labels. False: it has no network. */
bool mo_docker_net_read_label(struct mo_json labels, char key[DK_NET_KEY_MAX],
                              char id[MO_BOX_ID_MAX]);
/* The same for the labels of a network container. */
bool mo_docker_net_read_key(struct mo_json labels, char key[DK_NET_KEY_MAX]);
void mo_docker_net_name(const char *key, char out[DK_NAME_MAX]);
void mo_docker_net_rmdir(const struct dk *d, const char *key);

/* Tells docker_net.c that the stream works, or why not. */
void mo_docker_net_greeted(struct dk_box *b, const struct mo_err *why);

/* docker_net_far.c */
/* Attaches to the network container and greets it: mo_docker_net_attached()
 * when it can be started, then mo_docker_net_greeted(). */
int mo_docker_far_open(struct dk_box *b, struct mo_err *e);
/* Sends the certificates; mo_docker_net_greeted() again when they are there. */
int mo_docker_far_send_files(struct dk_box *b, struct mo_err *e);
/* Closes the stream. False: mo_docker_net_end() must be called again, which
 * happens later. */
bool mo_docker_far_close(struct dk_box *b);
void mo_docker_net_attached(struct dk_box *b, const struct mo_err *why);

/* docker_ask.c */
/* Removes this container only, whatever it is. */
int mo_docker_remove_one(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                         void *ctx, struct mo_err *e);
int mo_docker_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                    struct mo_err *e);
int mo_docker_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e);
int mo_docker_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                     void *ctx, struct mo_err *e);
int mo_docker_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                    struct mo_err *e);

#endif
