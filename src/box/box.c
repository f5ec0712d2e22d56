/* box.c - the life of a box, the same for both drivers.
 *
 * Only mo_box_move() writes a box's state, by one table. A driver's late
 * report (a box is up that was asked to end meanwhile) is handled here, so
 * that drivers need not. */
#include "box/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const cause_names[] = {
    [MO_BOX_STOPPED] = "stopped", [MO_BOX_EXITED] = "exited",
    [MO_BOX_OOM] = "oom",         [MO_BOX_KILLED] = "killed",
    [MO_BOX_LET_GO] = "let go",   [MO_BOX_ENGINE_GONE] = "engine gone",
    [MO_BOX_REFUSED] = "refused",
};

const char *mo_box_cause_name(enum mo_box_cause c)
{
    return (size_t)c < MO_COUNT(cause_names) ? cause_names[c] : "unknown";
}

void mo_box_move(struct mo_box *b, enum mo_box_state to)
{
    static const uint8_t legal[] = {
        [MO_BOX_STARTING] = MO_TO(MO_BOX_PARKED) | MO_TO(MO_BOX_READY) |
                            MO_TO(MO_BOX_ENDING) | MO_TO(MO_BOX_GONE),
        [MO_BOX_PARKED] =
            MO_TO(MO_BOX_CLAIMED) | MO_TO(MO_BOX_ENDING) | MO_TO(MO_BOX_GONE),
        [MO_BOX_CLAIMED] =
            MO_TO(MO_BOX_READY) | MO_TO(MO_BOX_ENDING) | MO_TO(MO_BOX_GONE),
        [MO_BOX_READY] = MO_TO(MO_BOX_ENDING) | MO_TO(MO_BOX_GONE),
        [MO_BOX_ENDING] = MO_TO(MO_BOX_GONE),
        [MO_BOX_GONE] = 0,
    };

    MO_MOVE(b->state, to, legal);
}

/* --- coming -------------------------------------------------------------- */

static void close_io(struct mo_box *b)
{
    if (b->io.io)
        mo_stream_close(b->io.io, NULL);
    if (b->io.err)
        mo_stream_close(b->io.err, NULL);
    b->io = (struct mo_box_io){NULL, NULL};
}

/* Hands a claimed box over, from the loop. */
static void on_claimed(struct mo_later *d)
{
    struct mo_box *b = mo_container_of(d, struct mo_box, later);
    struct mo_box_io io = b->io;

    b->io = (struct mo_box_io){NULL, NULL};
    mo_box_move(b, MO_BOX_READY);
    b->cb->on_ready(b->ctx, b, &io);
}

int mo_box_make(struct mo_boxes *bs, const struct mo_box_cb *cb, void *ctx,
                struct mo_box **out, struct mo_err *e)
{
    struct mo_box *b = NULL;

    if (bs->closing)
        return mo_fail(e, MO_ECLOSED, "box: the program is ending");
    if (bs->n >= MO_BOX_MAX)
        return mo_fail(e, MO_EBUSY, "box: %d boxes are running already",
                       MO_BOX_MAX);
    b = mo_zalloc(bs->ops->box_size);
    if (b == NULL)
        return mo_fail(e, MO_ENOMEM, "box: out of memory");
    *b = (struct mo_box){.bs = bs, .cb = cb, .ctx = ctx};
    mo_list_init(&b->warm);
    mo_later_init(&b->later, on_claimed);
    mo_list_push(&bs->boxes, &b->node);
    bs->n++;
    *out = b;
    return 0;
}

void mo_box_unmake(struct mo_box *b)
{
    mo_later_cancel(&b->later);
    mo_list_del(&b->node);
    b->bs->n--;
    mo_free(b);
}

/* The driver's answer to a request for a box that was just made. */
static int keep_made(struct mo_box *b, int rc)
{
    if (rc < 0)
        mo_box_unmake(b);
    return rc;
}

static int start_or_claim(struct mo_boxes *bs, const struct mo_box_spec *spec,
                          const struct mo_box_cb *cb, void *ctx,
                          struct mo_box **out, struct mo_err *e)
{
    struct mo_box *b = NULL;
    int rc = mo_box_spec_check(spec, e);

    if (rc < 0)
        return rc;
    b = bs->closing ? NULL : mo_box_pool_take(bs, spec);
    if (b) {
        b->cb = cb;
        b->ctx = ctx;
        if (bs->ops->claim)
            bs->ops->claim(b, spec);
        mo_loop_defer(bs->loop, &b->later);
        *out = b;
        return 0;
    }
    rc = mo_box_make(bs, cb, ctx, out, e);
    return rc < 0 ? rc : keep_made(*out, bs->ops->start(*out, spec, false, e));
}

/* The drivers judge mounts in the call, before anything starts. */
int mo_box_start(struct mo_boxes *bs, const struct mo_box_spec *spec,
                 const struct mo_box_cb *cb, void *ctx, struct mo_box **out,
                 struct mo_err *e)
{
    bool mounts = spec->folder || (spec->mounts && *spec->mounts);
    struct mo_err why = {0};
    int rc = start_or_claim(bs, spec, cb, ctx, out, &why);

    if (bs->on_mounts && mounts)
        bs->on_mounts(bs->mounts_ctx, spec, rc < 0 ? &why : NULL);
    if (rc < 0 && e)
        *e = why;
    return rc;
}

int mo_box_adopt(struct mo_boxes *bs, const char *id, const char *session,
                 const struct mo_box_cb *cb, void *ctx, struct mo_box **out,
                 struct mo_err *e)
{
    int rc = mo_box_make(bs, cb, ctx, out, e);

    return rc < 0 ? rc : keep_made(*out, bs->ops->adopt(*out, id, session, e));
}

int mo_box_revive(struct mo_boxes *bs, const char *id,
                  const struct mo_box_spec *spec, const struct mo_box_cb *cb,
                  void *ctx, struct mo_box **out, struct mo_err *e)
{
    int rc = mo_box_spec_check(spec, e);

    if (rc == 0 && bs->ops->revive == NULL)
        return mo_fail(e, MO_ENOTFOUND, "box: %s keeps no workspaces",
                       bs->ops->name);
    if (rc == 0)
        rc = mo_box_make(bs, cb, ctx, out, e);
    return rc < 0 ? rc : keep_made(*out, bs->ops->revive(*out, id, spec, e));
}

void mo_box_up(struct mo_box *b, const char *id, const struct mo_box_io *io)
{
    MO_BUG_ON(strlen(id) >= sizeof(b->id));
    memcpy(b->id, id, strlen(id) + 1);
    if (b->state != MO_BOX_STARTING) {
        b->io = *io;
        close_io(b);
        return;
    }
    if (b->pooled) {
        mo_box_pool_add(b, io);
        return;
    }
    mo_box_move(b, MO_BOX_READY);
    b->cb->on_ready(b->ctx, b, io);
}

/* --- going --------------------------------------------------------------- */

void mo_box_stop(struct mo_box *b)
{
    mo_later_cancel(&b->later);
    close_io(b);
    if (b->state != MO_BOX_ENDING)
        mo_box_move(b, MO_BOX_ENDING);
    b->bs->ops->stop(b);
}

void mo_box_drop_files(struct mo_box *b)
{
    if (b->bs->ops->drop_files && b->state == MO_BOX_READY)
        b->bs->ops->drop_files(b);
}

void mo_box_let_go(struct mo_box *b)
{
    if (b->state == MO_BOX_ENDING)
        return;
    if (b->state != MO_BOX_READY) {
        mo_box_stop(b);
        return;
    }
    mo_box_move(b, MO_BOX_ENDING);
    b->bs->ops->let_go(b);
}

static void finish_close(struct mo_boxes *bs)
{
    if (bs->closing && bs->n == 0)
        bs->ops->close(bs);
}

void mo_box_down(struct mo_box *b, const struct mo_box_end *end)
{
    struct mo_boxes *bs = b->bs;

    mo_later_cancel(&b->later);
    mo_box_move(b, MO_BOX_GONE);
    close_io(b);
    if (b->pooled)
        mo_box_pool_lost(b, end);
    else
        b->cb->on_gone(b->ctx, end);
    mo_box_unmake(b);
    finish_close(bs);
}

/* --- asking -------------------------------------------------------------- */

const char *mo_box_id(const struct mo_box *b)
{
    return b->id;
}

const char *mo_box_files(const struct mo_box *b)
{
    return b->files;
}

bool mo_box_has_old_files(const struct mo_box *b)
{
    return b->old_files;
}

bool mo_boxes_use(const struct mo_boxes *bs, const char *files)
{
    mo_list_each_entry (b, &bs->boxes, struct mo_box, node) {
        if (strcmp(b->files, files) == 0)
            return true;
    }
    return false;
}

static const char *text_of(struct mo_arena *a, struct mo_json v)
{
    char text[MO_BOX_LABEL_MAX] = "";

    (void)mo_json_str_copy(v, text, sizeof(text));
    return mo_arena_strndup(a, text, strlen(text));
}

int mo_boxes_files_row(struct mo_arena *a, struct mo_json name,
                       struct mo_json labels, struct mo_box_row *out)
{
    *out = (struct mo_box_row){
        .id = text_of(a, name),
        .session = text_of(a, mo_json_get(labels, "mo.session")),
        .instance = text_of(a, mo_json_get(labels, "mo.instance")),
        .policy = "",
    };
    return out->id && out->session && out->instance ? 0 : MO_ENOMEM;
}

static int compare_rows(const void *a, const void *b)
{
    return strcmp(((const struct mo_box_row *)a)->id,
                  ((const struct mo_box_row *)b)->id);
}

void mo_boxes_tell_part(struct mo_box_row *rows, size_t n, const char *from,
                        mo_box_rows_fn *done, void *ctx,
                        const struct mo_err *why)
{
    struct mo_box_rows part = {.n = 0};
    size_t first = 0;

    if (n)
        qsort(rows, n, sizeof(*rows), compare_rows);
    while (first < n && strcmp(rows[first].id, from) <= 0)
        first++;
    part.v = n ? rows + first : NULL;
    part.n = n - first;
    if (part.n > MO_BOX_PART_MAX) {
        part.n = MO_BOX_PART_MAX;
        part.next = part.v[part.n - 1].id;
    }
    done(ctx, &part, why);
}

const char *mo_box_driver(const struct mo_box *b)
{
    return b->bs->ops->name;
}

int mo_box_stats(struct mo_box *b, mo_box_stats_fn *done, void *ctx,
                 struct mo_err *e)
{
    if (b->state != MO_BOX_READY)
        return mo_fail(e, MO_ECLOSED, "box: it does not run");
    return b->bs->ops->stats(b, done, ctx, e);
}

int mo_boxes_list(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                  void *ctx, struct mo_err *e)
{
    return bs->ops->list(bs, from, done, ctx, e);
}

int mo_boxes_remove(struct mo_boxes *bs, const char *id, mo_done_fn *done,
                    void *ctx, struct mo_err *e)
{
    return bs->ops->remove(bs, id, done, ctx, e);
}

int mo_boxes_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                   void *ctx, struct mo_err *e)
{
    if (!bs->ops->files)
        return mo_fail(e, MO_ENOTFOUND, "box: %s keeps no workspaces",
                       bs->ops->name);
    return bs->ops->files(bs, from, done, ctx, e);
}

int mo_boxes_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                    void *ctx, struct mo_err *e)
{
    if (!bs->ops->forget)
        return mo_fail(e, MO_ENOTFOUND, "box: %s keeps no workspaces",
                       bs->ops->name);
    return bs->ops->forget(bs, files, done, ctx, e);
}

int mo_boxes_check(struct mo_boxes *bs, mo_boxes_ready_fn *done, void *ctx,
                   struct mo_err *e)
{
    return bs->ops->check(bs, done, ctx, e);
}

const char *mo_boxes_driver(const struct mo_boxes *bs)
{
    return bs->ops->name;
}

const char *mo_boxes_where(const struct mo_boxes *bs)
{
    return bs->place;
}

/* --- all of them --------------------------------------------------------- */

void mo_boxes_are_here(struct mo_boxes *bs, const char *what)
{
    char machine[65] = "";

    (void)gethostname(machine, sizeof(machine) - 1);
    (void)snprintf(bs->place, sizeof(bs->place), "%s:%s", machine, what);
}

void mo_boxes_setup(struct mo_boxes *bs, struct mo_loop *l,
                    const struct mo_box_ops *ops)
{
    bs->ops = ops;
    bs->loop = l;
    mo_list_init(&bs->boxes);
    mo_box_pool_setup(bs);
}

void mo_boxes_close(struct mo_boxes *bs, void (*gone)(void *ctx), void *ctx)
{
    MO_BUG_ON(bs->closing);
    bs->closing = true;
    bs->gone = (struct mo_gone){gone, ctx};
    mo_box_pool_close(bs);
    mo_list_each_entry (b, &bs->boxes, struct mo_box, node)
        mo_box_let_go(b);
    finish_close(bs);
}
