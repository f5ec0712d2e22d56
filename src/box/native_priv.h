/* native_priv.h - shared by the files of the native driver. See native.c. */
#ifndef MO_BOX_NATIVE_PRIV_H
#define MO_BOX_NATIVE_PRIV_H

#include "box/box_net.h"
#include "box/box_trust.h"
#include "box/driver.h"
#include "box/keeper.h"
#include "loop/work.h"

#define MO_NATIVE_FILES      ".files" /* of a kept workspace (launcher/kept.h) */
#define MO_NATIVE_WORKERS    4
#define MO_NATIVE_LINGER_MAX (1000ull * 3600 * 24 * 30)

struct native {
    struct mo_boxes bs;
    struct mo_work *work[MO_NATIVE_WORKERS];
    unsigned working; /* workers that are not joined yet */
    unsigned next;
    int launcher, toolbox; /* sealed memory; launcher: or a helper's socket,
                              toolbox: or -1 */
    char *dir, *store, *instance, *network;
    const struct mo_host_guard *guard; /* or NULL */
};

static inline struct native *native_of(struct mo_boxes *bs)
{
    return mo_container_of(bs, struct native, bs);
}

/* Submits to the worker with the fewest jobs. MO_EBUSY. */
int mo_native_submit(struct native *d, struct mo_job *j, struct mo_err *e);

/* --- native_req.c -------------------------------------------------------- */

struct mo_native_req {
    struct mo_boxmsg m; /* texts: of the spec, the driver and this struct */
    char id[MO_BOXREQ_ID_MAX + 1];
    char digest[MO_BOX_DIGEST_MAX];
    char ports[MO_BOX_PORTS_MAX];
    char ca[MO_BOX_TRUST_MAX];
    char installed[MO_BOX_INSTALLED_MAX][MO_MOUNT_TEXT_MAX + 48];
    char files[MO_BOXREQ_ID_MAX + 1]; /* of its kept workspace, or "" */
    bool old_files;                   /* which has files already */
    char mounts[MO_MOUNTS_MAX][MO_MOUNT_TEXT_MAX + 2 * (MO_U64_DIGITS + 1)];
};

/* Makes START or RESTART for a box of that spec with a new id. */
int mo_native_request(struct native *d, const struct mo_box_spec *spec,
                      enum mo_boxmsg_type type, struct mo_native_req *out,
                      struct mo_err *e);
uint64_t mo_native_linger(const struct mo_box_spec *spec);

/* --- native_ask.c: as the calls of box.h --------------------------------- */

int mo_native_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e);
int mo_native_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                     void *ctx, struct mo_err *e);
int mo_native_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                    void *ctx, struct mo_err *e);
int mo_native_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                     void *ctx, struct mo_err *e);
int mo_native_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                    struct mo_err *e);
/* As mo_boxes.find_program; mo_native_name_caller() follows. */
int mo_native_find_program(struct mo_boxes *bs, const char *box,
                           const struct mo_egress_caller *c);

/* --- native.c: the answer to it ------------------------------------------ */

/* A box that is gone does not get it. */
void mo_native_name_caller(struct mo_boxes *bs, const char *box,
                           uint64_t number, const char *program);

#endif
