/* box.h - a hardened, ephemeral place where one session's programs run.
 *
 * A box runs one program (our toolbox, or any MCP server) and is spoken to
 * over the program's stdin and stdout only. This room gives out those bytes as
 * streams, reports when and why the box ended, and leaves nothing behind. It
 * knows no MCP, and of sessions only a label; the rooms above decide who may
 * have a box.
 *
 * Three drivers keep the same policy (struct mo_box_spec): `docker` (Engine
 * API, any engine that speaks it), `native` (mo-box) and `kubernetes` (pods of
 * a cluster). A box outlives the process: after a restart the boxes of earlier
 * processes are listed, and adopted or removed.
 *
 * Invariants:
 *  1. on_ready fires at most once, on_gone exactly once, last, for every box
 *     handed out; the box is freed after it. Neither fires from inside a call
 *     of this room.
 *  2. The streams belong to the box's owner from on_ready on (attach, close);
 *     closing them does not end the box.
 *  3. After on_gone nothing of the box exists: no process, cgroup, mount,
 *     container; unless it was let go, or ended with MO_BOX_ENGINE_GONE
 *     because the engine could not be asked: then the next sweep finds it.
 *  4. A box is never used for two sessions, nor is a workspace.
 *  5. A workspace that is kept is not removed with its box: only by
 *     mo_boxes_forget().
 *
 * Limits: MO_BOX_MAX boxes of one host at a time. */
#ifndef MO_BOX_BOX_H
#define MO_BOX_BOX_H

#include "base/str.h"
#include "box/host_path.h"
#include "egress/relay.h"
#include "loop/stream.h"

#define MO_BOX_MAX           1024
#define MO_BOX_ID_MAX        80 /* bytes, NUL included */
#define MO_BOX_LABEL_MAX     128
#define MO_BOX_INSTALLED_MAX 4  /* directories of a program */
#define MO_BOX_WORDS_MAX     64 /* of a command, of an environment */
#define MO_BOX_TOOLBOX       "mo-toolbox"

/* --- policy -------------------------------------------------------------- */

struct mo_box_limits {
    uint64_t memory;                       /* bytes, swap included; 512 MiB */
    unsigned cpu_milli;                    /* 500 = half a core */
    unsigned pids;                         /* 128 */
    uint64_t workspace;                    /* bytes of /workspace; 256 MiB */
    uint64_t tmp;                          /* bytes of /tmp; 64 MiB */
    unsigned workspace_inodes, tmp_inodes; /* 65536, 16384 */
    uint64_t file_size;                    /* one file; as workspace */
    unsigned open_files;                   /* 256 */
};
extern const struct mo_box_limits mo_box_limits_default;

struct mo_box_spec {
    struct mo_box_limits limits;
    const char *image;       /* docker: NULL or "" = ours; native: a directory
                                with an unpacked image, NULL = view of the host */
    const char *const *argv; /* NULL: the toolbox (or the image's own);
                                argv[0] MO_BOX_TOOLBOX without an image: the
                                toolbox with these arguments */
    const char *const
        *env;            /* NULL-terminated "K=V", added to ours; NULL: none */
    const char *network; /* which hosts it may reach, as JSON
                            (egress/policy.h); NULL or "": none */
    const char *const *installed; /* directories and files that its program runs
                                     from: read-only, at their own paths; native
                                     only; NULL: none */
    const char *const *mounts;    /* of the host, each "HOST:BOX:ro" as of
                                     mo_mount_put(); NULL: none */
    const char *folder;  /* directory of the host that is its /workspace, kept
                            after the box; NULL: memory */
    bool keep;           /* its workspace outlives it: mo_box_files() */
    const char *files;   /* keep: the workspace to start with, if it is still
                            there; NULL or "": a new one */
    const char *owner;   /* in records of its connections; NULL: session */
    const char *session; /* label; "" for a box kept warm */
    uint64_t expires;    /* wall s; after that a sweep may remove it */
    uint64_t linger_ms;  /* how long it may live unattached */
    bool with_us; /* docker: the program's stdin ends when this process dies, so
                     that it does not run on unused; the next sweep removes the
                     stopped container */
};

/* --- the life of a box --------------------------------------------------- */

struct mo_boxes; /* one driver, ready for use */
struct mo_box;

enum mo_box_cause {
    MO_BOX_STOPPED,     /* we ended it */
    MO_BOX_EXITED,      /* its program ended by itself (code) */
    MO_BOX_OOM,         /* it reached its memory limit */
    MO_BOX_KILLED,      /* by a signal that was not ours */
    MO_BOX_LET_GO,      /* mo_box_let_go(): it lives on */
    MO_BOX_ENGINE_GONE, /* the engine or keeper cannot be reached */
    MO_BOX_REFUSED,     /* it never started (why) */
};

struct mo_box_end {
    enum mo_box_cause cause;
    int code;                 /* exit status, or -1 */
    int signal;               /* or 0 */
    bool workspace_kept;      /* mo_box_revive() can restore its files */
    const struct mo_err *why; /* details, or NULL */
};
const char *mo_box_cause_name(enum mo_box_cause c); /* "oom", "killed", ... */

struct mo_box_io {
    struct mo_stream *io;  /* reads its stdout, writes its stdin */
    struct mo_stream *err; /* reads its stderr; may be NULL */
};

struct mo_box_cb {
    void (*on_ready)(void *ctx, struct mo_box *b, const struct mo_box_io *io);
    void (*on_gone)(void *ctx, const struct mo_box_end *end);
};

/* Starts a fresh box: a warm one if the pool has one of that spec, else cold.
 */
int mo_box_start(struct mo_boxes *bs, const struct mo_box_spec *spec,
                 const struct mo_box_cb *cb, void *ctx, struct mo_box **out,
                 struct mo_err *e);
/* Attaches to a running box (listed under that id), for that session: a box
 * that was kept warm may not be listed with one. Bytes of an earlier
 * conversation may come first; a line may begin in the middle. */
int mo_box_adopt(struct mo_boxes *bs, const char *id, const char *session,
                 const struct mo_box_cb *cb, void *ctx, struct mo_box **out,
                 struct mo_err *e);
/* A fresh box with the workspace of one that ended with workspace_kept. */
int mo_box_revive(struct mo_boxes *bs, const char *id,
                  const struct mo_box_spec *spec, const struct mo_box_cb *cb,
                  void *ctx, struct mo_box **out, struct mo_err *e);

void mo_box_stop(struct mo_box *b); /* kill, remove; on_gone follows */
/* Before mo_box_stop(): its files will be forgotten, so saving them is not
 * worth it. mo_boxes_forget() is still needed. */
void mo_box_drop_files(struct mo_box *b);
void mo_box_let_go(struct mo_box *b); /* detach; it lives on; on_gone follows */

const char *mo_box_id(const struct mo_box *b); /* "" before on_ready */
/* The id of its workspace, if that outlives the box; else "". A later box gets
 * the files with it (spec.files), mo_boxes_forget() removes them. */
const char *mo_box_files(const struct mo_box *b);
/* True if it was started with the files of spec.files. */
bool mo_box_has_old_files(const struct mo_box *b);
const char *mo_box_driver(const struct mo_box *b);

struct mo_box_stats {
    uint64_t memory, memory_peak; /* bytes */
    uint64_t cpu_us;
    unsigned pids;
};
typedef void mo_box_stats_fn(void *ctx, const struct mo_box_stats *s,
                             const struct mo_err *why);
int mo_box_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                 struct mo_err *e);

/* --- all boxes of a driver ----------------------------------------------- */

struct mo_box_row {
    const char *id, *session, *instance, *policy; /* policy: sha256 hex */
    uint64_t expires, started;                    /* wall s */
    bool running, paused, warm;
};
/* A part of a list: MO_BOX_PART_MAX rows at most. next: where the next part
 * begins; NULL: this is the last one. Borrowed. */
#define MO_BOX_PART_MAX  4096
#define MO_BOX_PLACE_MAX 656
struct mo_box_rows {
    const struct mo_box_row *v;
    size_t n;
    const char *next;
};
typedef void mo_box_rows_fn(void *ctx, const struct mo_box_rows *rows,
                            const struct mo_err *why);

/* Lists every box with our store's label, of every instance, dead ones too.
 * from: the `next` of the part before, or NULL: the first part. A box that
 * begins or ends meanwhile may be missing, and one may come twice; done()
 * once. */
int mo_boxes_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                  void *ctx, struct mo_err *e);
/* Removes one by id in any state; an unknown id is a success. */
int mo_boxes_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                    void *ctx, struct mo_err *e);

/* Lists the kept workspaces with our store's label, but those of boxes that
 * this process uses: id, session (may be "") and instance of each. A driver
 * that keeps none fails with MO_ENOTFOUND, here and below. */
int mo_boxes_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e);
/* Removes a kept workspace; an unknown id is a success. */
int mo_boxes_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                    void *ctx, struct mo_err *e);

/* Keeps n boxes of that spec ready (paused or parked); 0: none. Refilled one
 * at a time with backoff; at most MO_BOX_WARM_MAX. */
#define MO_BOX_WARM_MAX 32
int mo_boxes_warm(struct mo_boxes *bs, const struct mo_box_spec *spec,
                  unsigned n, struct mo_err *e);
unsigned mo_boxes_warm_now(const struct mo_boxes *bs); /* ready */

const char *mo_boxes_driver(const struct mo_boxes *bs);
/* Where its boxes and workspaces are, if only this machine reaches them: the
 * machine and a directory or an engine. "": every machine reaches the same. */
#define MO_BOX_WHERE_MAX 256
const char *mo_boxes_where(const struct mo_boxes *bs);
/* How connections come out of boxes with a network; for `doctor`. Known for
 * sure once one has run. */
const char *mo_boxes_network_way(const struct mo_boxes *bs);

/* Whether the driver can keep its promises on this machine; for `doctor`. */
struct mo_boxes_ready {
    bool ok;
    char what[160]; /* "Docker 20.10.24 at unix:///var/run/docker.sock" */
    char why[240];  /* not ok: what is missing and what to do */
};
typedef void mo_boxes_ready_fn(void *ctx, const struct mo_boxes_ready *r);
int mo_boxes_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                   struct mo_err *e);

/* Removes warm boxes and lets boxes in use go; gone(ctx) once, later. */
void mo_boxes_close(struct mo_boxes *bs, void (*gone)(void *ctx), void *ctx);

/* --- opening a driver ---------------------------------------------------- */

/* A connection of a box has ended or was refused. owner: of its spec. */
typedef void mo_box_connection_fn(void *ctx, const char *owner,
                                  const struct mo_egress_row *row);

/* A box with mounts is about to start or was refused (why). */
typedef void mo_box_mounts_fn(void *ctx, const struct mo_box_spec *spec,
                              const struct mo_err *why);
/* Callbacks for hosts that a box's network asks about (egress/relay.h). */
struct mo_box_asker {
    enum mo_egress_say (*judge)(void *ctx, const char *owner, const char *box,
                                const struct mo_egress_question *q);
    void (*ask)(void *ctx, const char *owner, const char *box,
                struct mo_egress_ask *a, const struct mo_egress_question *q);
    void (*gone)(void *ctx, struct mo_egress_ask *a);
    void (*closed)(void *ctx, const char *box); /* its network has ended */
};

/* The cluster of kubernetes boxes. NULL or "": the default. */
struct mo_box_cluster {
    const char *kubeconfig, *context; /* kube/access.h */
    const char *ns;                   /* namespace; the context's */
    const char *image;                /* with our toolbox; needed unless a spec
                                         names one */
    const char *runtime_class, *pull_secret;
    const char *node_selector; /* a JSON object of texts */
    const char *pull_policy;   /* IfNotPresent */
    bool claims;               /* kept workspaces are claims; false: nowhere */
    const char *storage_class; /* of the claims; the cluster's default */
};

/* Whether workspaces of docker boxes are kept: in volumes. */
enum mo_box_volumes {
    MO_BOX_VOLUMES_NONE,
    MO_BOX_VOLUMES_LIMITED,   /* if the engine limits their size */
    MO_BOX_VOLUMES_UNLIMITED, /* also without a limit */
};

struct mo_boxes_opts {
    const char *store;      /* label: which store's sessions these are, a stable
                               id of it; boxes of other stores are not ours */
    const char *instance;   /* label: this run of the program */
    const char *dir;        /* 0700, ours: sockets and locks (native) */
    struct mo_span toolbox; /* the bytes of mo-toolbox */
    struct mo_span launcher; /* the bytes of mo-box (native) */
    int helper;         /* socket of the privileged helper, which runs mo-box
                           (native); 0: none */
    const char *engine; /* docker: as DOCKER_HOST; NULL: the default places */
    enum mo_box_volumes volumes;          /* docker */
    const struct mo_box_cluster *cluster; /* kubernetes; NULL: the defaults */
    const char *network;       /* as of a spec, for boxes that are adopted */
    const char *const *mounts; /* the same; borrowed */
    const struct mo_host_guard *guard;   /* borrowed; may be NULL */
    mo_box_connection_fn *on_connection; /* may be NULL */
    mo_box_mounts_fn *on_mounts;         /* may be NULL */
    const struct mo_box_asker *asker;    /* NULL: nobody is asked */
    void *connection_ctx;                /* of all three */
    mo_egress_secret_fn *secret; /* for `inject` of networks; may be NULL */
    void *secret_ctx;
};

int mo_boxes_docker(struct mo_loop *l, const struct mo_boxes_opts *o,
                    struct mo_boxes **out, struct mo_err *e);
int mo_boxes_native(struct mo_loop *l, const struct mo_boxes_opts *o,
                    struct mo_boxes **out, struct mo_err *e);
int mo_boxes_kubernetes(struct mo_loop *l, const struct mo_boxes_opts *o,
                        struct mo_boxes **out, struct mo_err *e);

/* --- specs (spec.c) ------------------------------------------------------ */

/* MO_EINVAL for a spec that no driver could keep; says which part and why. */
int mo_box_spec_check(const struct mo_box_spec *s, struct mo_err *e);
/* True if its command is our toolbox with arguments. */
bool mo_box_spec_names_toolbox(const struct mo_box_spec *s);
/* True if the specs promise the same to the program inside; labels and times
 * do not count. */
bool mo_box_spec_same(const struct mo_box_spec *a, const struct mo_box_spec *b);
struct mo_arena;
int mo_box_spec_copy(struct mo_arena *a, const struct mo_box_spec *from,
                     struct mo_box_spec *to);
/* sha256, hex and NUL, of everything mo_box_spec_same() compares. */
#define MO_BOX_DIGEST_MAX 65
void mo_box_spec_digest(const struct mo_box_spec *s,
                        char out[MO_BOX_DIGEST_MAX]);

#endif
