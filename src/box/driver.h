/* driver.h - the interface between box.c and its drivers.
 *
 * box.c has the state table, the pool and the promises of box.h. A driver does
 * the work and reports by mo_box_up() and mo_box_down(), from the loop, never
 * from inside the call that asked.
 *
 * A driver's structs embed ours first: struct mo_boxes in the object that its
 * opening function makes (mo_boxes_setup()), struct mo_box in each box (box.c
 * allocates and zeroes box_size bytes).
 *
 * Invariants:
 *  1. For each box on which start, adopt or revive returned 0, the driver
 *     calls mo_box_up() at most once and mo_box_down() exactly once, last;
 *     after that it does not touch the box.
 *  2. stop may come in any state, also before mo_box_up(), and more than once;
 *     let_go only after it. mo_box_down() follows either. */
#ifndef MO_BOX_DRIVER_H
#define MO_BOX_DRIVER_H

#include "base/list.h"
#include "base/mem.h"
#include "box/box.h"
#include "codec/json/json.h"

struct mo_box_ops {
    const char *name;
    size_t box_size; /* of the driver's box, struct mo_box first */
    int (*start)(struct mo_box *b, const struct mo_box_spec *spec, bool warm,
                 struct mo_err *e);
    int (*adopt)(struct mo_box *b, const char *id, const char *session,
                 struct mo_err *e);
    /* NULL: workspaces are never kept */
    int (*revive)(struct mo_box *b, const char *id,
                  const struct mo_box_spec *spec, struct mo_err *e);
    void (*stop)(struct mo_box *b);
    void (*let_go)(struct mo_box *b);
    void (*drop_files)(struct mo_box *b); /* or NULL */
    /* Parks a warm box / gives it to spec's session. Both may be NULL and may
     * take time: the program sees its input only when it runs. */
    void (*park)(struct mo_box *b);
    void (*claim)(struct mo_box *b, const struct mo_box_spec *spec);
    int (*stats)(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                 struct mo_err *e);
    int (*list)(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                void *ctx, struct mo_err *e);
    int (*remove)(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                  void *ctx, struct mo_err *e);
    /* Kept workspaces; both NULL: none are kept. */
    int (*files)(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                 void *ctx, struct mo_err *e);
    int (*forget)(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                  void *ctx, struct mo_err *e);
    int (*check)(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                 struct mo_err *e);
    /* Called when no box is left. Frees bs, then mo_gone_fire(bs->gone), later.
     */
    void (*close)(struct mo_boxes *bs);
};

struct mo_box_pool {
    struct mo_arena arena; /* the spec's texts */
    struct mo_box_spec spec;
    struct mo_list ready;   /* parked, oldest first */
    struct mo_timer refill; /* runs while it is not full */
    struct mo_box *filling; /* the box being started, or NULL */
    unsigned want, have;    /* have: parked */
    unsigned failures;      /* in a row */
};

struct mo_boxes {
    const struct mo_box_ops *ops;
    struct mo_loop *loop;
    struct mo_list boxes; /* all that exist */
    unsigned n;
    struct mo_box_pool pool;
    mo_box_connection_fn *on_connection; /* as in the options */
    const struct mo_box_asker *asker;    /* likewise */
    void *connection_ctx;
    mo_egress_secret_fn *secret; /* likewise */
    void *secret_ctx;
    struct mo_tls_authority
        *authority;          /* ends TLS of `inject`; NULL: not yet */
    char *authority_dir;     /* its files (box_trust.h); NULL: there are none */
    const char *network_way; /* mo_boxes_network_way() */
    /* Looks for the program of a connection of this box, as mo_egress_find_fn.
     * NULL: this driver cannot. */
    int (*find_program)(struct mo_boxes *bs, const char *box,
                        const struct mo_egress_caller *c);
    bool closing;
    mo_box_mounts_fn *on_mounts; /* or NULL */
    void *mounts_ctx;
    char place[MO_BOX_WHERE_MAX]; /* mo_boxes_where() */
    struct mo_gone gone;
};

enum mo_box_state {
    MO_BOX_STARTING,
    MO_BOX_PARKED,  /* warm, without a session */
    MO_BOX_CLAIMED, /* taken; on_ready will follow */
    MO_BOX_READY,
    MO_BOX_ENDING, /* stop or let_go was asked */
    MO_BOX_GONE,
};

struct mo_box {
    struct mo_boxes *bs;
    struct mo_list node; /* in bs->boxes */
    struct mo_list warm; /* in bs->pool.ready */
    enum mo_box_state state;
    const struct mo_box_cb *cb;
    void *ctx;
    struct mo_box_io io; /* ours until on_ready */
    struct mo_later later;
    bool pooled; /* in the pool: cb is NULL */
    char id[MO_BOX_ID_MAX];
    char files[MO_BOX_ID_MAX]; /* of mo_box_files(); the driver writes it */
    bool old_files;            /* of mo_box_has_old_files(); likewise */
};

/* True if a box of bs has the workspace of that id. */
bool mo_boxes_use(const struct mo_boxes *bs, const char *files);
/* The row of a workspace, from its name and its labels. 0 or MO_ENOMEM. */
int mo_boxes_files_row(struct mo_arena *a, struct mo_json name,
                       struct mo_json labels, struct mo_box_row *out);
/* For a driver that has all rows at once: sorts them by id, and tells the part
 * that follows the id `from` ("": the first part). */
void mo_boxes_tell_part(struct mo_box_row *rows, size_t n, const char *from,
                        mo_box_rows_fn *done, void *ctx,
                        const struct mo_err *why);

/* For the driver's opening function. A copy of s or, if it is NULL, of "". */
static inline char *mo_boxes_text(const char *s)
{
    return mo_strndup(s ? s : "", s ? strlen(s) : 0);
}
/* Its boxes and workspaces are on this machine: at `what`. */
void mo_boxes_are_here(struct mo_boxes *bs, const char *what);
void mo_boxes_setup(struct mo_boxes *bs, struct mo_loop *l,
                    const struct mo_box_ops *ops);

/* The program runs with these streams (paused; owned by the box's owner from
 * here on). */
void mo_box_up(struct mo_box *b, const char *id, const struct mo_box_io *io);
void mo_box_down(struct mo_box *b, const struct mo_box_end *end);

/* --- box.c and pool.c between themselves --------------------------------- */

int mo_box_make(struct mo_boxes *bs, const struct mo_box_cb *cb, void *ctx,
                struct mo_box **out, struct mo_err *e);
void mo_box_unmake(struct mo_box *b); /* it never started */
void mo_box_move(struct mo_box *b, enum mo_box_state to);
void mo_box_pool_setup(struct mo_boxes *bs);
void mo_box_pool_close(struct mo_boxes *bs);
/* Takes a parked box of that spec out of the pool; NULL: none. */
struct mo_box *mo_box_pool_take(struct mo_boxes *bs,
                                const struct mo_box_spec *spec);
void mo_box_pool_add(struct mo_box *b, const struct mo_box_io *io);
void mo_box_pool_lost(struct mo_box *b, const struct mo_box_end *end);

#endif
