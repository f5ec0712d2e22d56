/* docker_files.c - workspaces that outlive their boxes: volumes of the engine.
 *
 * A volume is named mo-files-UID-KEY. UID is the user id of every box that
 * gets it, because an engine cannot map ids: these ids are above those of other
 * boxes, and as a container is named after its id (docker_box.c), no two
 * running boxes share one. Labels say whose it is, as those of a box.
 *
 * An engine limits the bytes of a volume only if its directory is on XFS with
 * project quotas. Others refuse the size; then workspaces are in memory and end
 * with their boxes, unless `unlimited` was asked for.
 *
 * Only boxes of our own image have them: its /workspace is writable, and the
 * engine gives a new volume that mode. */
#include <stdio.h>

#include "base/rand.h"
#include "box/docker_priv.h"

#define PREFIX    "mo-files-"
#define UID_FIRST (MO_CTR_UID_FIRST + DK_SLOTS)
#define UIDS      40000
#define KEY_BYTES 8
#define BODY_MAX  4096
#define ROWS_MAX  ((size_t)4 * 1024 * 1024)

static void create_volume(struct dk_box *b);

unsigned mo_docker_files_uid(const char *name)
{
    struct mo_span rest = mo_span_cstr(name), uid;
    uint64_t n = 0;

    if (!mo_span_strip(&rest, MO_SPAN(PREFIX)))
        return 0;
    uid = mo_span_cut(&rest, '-');
    if (mo_span_u64(uid, &n) < 0 || n < UID_FIRST || n >= UID_FIRST + UIDS ||
        rest.n != 2 * KEY_BYTES || !mo_span_only(rest, "0123456789abcdef"))
        return 0;
    return (unsigned)n;
}

static bool may_keep(const struct dk *d, const struct dk_box *b)
{
    const struct mo_box_spec *s = &b->spec;

    if (!s->keep || s->folder || (s->mounts && *s->mounts) ||
        (s->image && *s->image) || d->facts.podman)
        return false;
    return d->volumes == MO_BOX_VOLUMES_UNLIMITED ||
           (d->volumes == MO_BOX_VOLUMES_LIMITED && !d->no_quota);
}

static void choose_name(struct dk_box *b)
{
    unsigned char r[KEY_BYTES];
    char key[2 * KEY_BYTES + 1];

    mo_random(r, sizeof(r));
    mo_hex(r, sizeof(r), key);
    (void)snprintf(b->b.files, sizeof(b->b.files), PREFIX "%u-%s",
                   (unsigned)(UID_FIRST + mo_random_u64() % UIDS), key);
}

static int ask_volumes(struct dk_box *b, const char *method, const char *name,
                       struct mo_span body, mo_engine_done *done,
                       struct mo_err *e)
{
    char path[160];
    struct mo_engine_req req = {.method = method, .path = path, .body = body};

    (void)snprintf(path, sizeof(path), "/volumes/%s", name);
    return mo_engine_ask(mo_docker_of_box(b)->en, &req, done, b, &b->call, e);
}

static void go_without(struct dk_box *b)
{
    b->b.files[0] = '\0';
    mo_docker_prepare(b);
}

/* --- a new one ----------------------------------------------------------- */

static void on_volume_made(void *ctx, const struct mo_engine_reply *r,
                           const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct dk *d = mo_docker_of_box(b);

    b->call = NULL;
    if (why && !b->stopping && r->status >= 400 &&
        d->volumes == MO_BOX_VOLUMES_LIMITED) {
        d->no_quota = true;
        mo_log_err(mo_loop_log(d->bs.loop), MO_INFO, "box", why,
                   "the engine cannot limit volumes: files end with their box");
        go_without(b);
    } else if (why || b->stopping) {
        mo_docker_give_up(b, why);
    } else {
        mo_docker_prepare(b);
    }
}

static void put_volume(struct mo_buf *body, const struct dk *d,
                       const struct dk_box *b)
{
    struct mo_jw w = mo_jw_object(body);
    char size[MO_U64_DIGITS];

    mo_jw_member_cstr(&w, "Name", b->b.files);
    mo_jw_member_cstr(&w, "Driver", "local");
    mo_jw_member_obj(&w, "Labels");
    mo_jw_member_cstr(&w, "mo.store", d->store);
    mo_jw_member_cstr(&w, "mo.instance", d->instance);
    mo_jw_member_cstr(&w, "mo.session", b->spec.session ? b->spec.session : "");
    mo_jw_member_cstr(&w, "mo.role", "files");
    mo_jw_end(&w);
    if (d->volumes == MO_BOX_VOLUMES_LIMITED) {
        mo_jw_member_obj(&w, "DriverOpts");
        mo_jw_member(&w, "size", mo_u64_text(b->spec.limits.workspace, size));
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

static void create_volume(struct dk_box *b)
{
    mo_autobuf struct mo_buf body = {.max = BODY_MAX};
    struct mo_err e;

    choose_name(b);
    put_volume(&body, mo_docker_of_box(b), b);
    if (ask_volumes(b, "POST", "create", mo_buf_view(&body), on_volume_made,
                    &e) < 0)
        mo_docker_give_up(b, &e);
}

/* --- one that exists ----------------------------------------------------- */

static void on_volume_found(void *ctx, const struct mo_engine_reply *r,
                            const struct mo_err *why)
{
    struct dk_box *b = ctx;
    struct mo_json labels = mo_json_get(r->json, "Labels");
    struct mo_span mine = mo_span_cstr(mo_docker_of_box(b)->store);

    b->call = NULL;
    if (b->stopping || (why && why->code != MO_ENOTFOUND)) {
        mo_docker_give_up(b, why);
    } else if (why || !mo_json_str_eq(mo_json_get(labels, "mo.store"), mine)) {
        create_volume(b);
    } else {
        b->b.old_files = true;
        (void)snprintf(b->b.files, sizeof(b->b.files), "%s", b->spec.files);
        mo_docker_prepare(b);
    }
}

void mo_docker_files_prepare(struct dk_box *b)
{
    const char *old = b->spec.files ? b->spec.files : "";
    struct mo_err e;

    if (b->b.files[0] || !may_keep(mo_docker_of_box(b), b)) {
        mo_docker_prepare(b);
        return;
    }
    mo_docker_move(b, DK_LOOKING);
    if (!mo_docker_files_uid(old))
        create_volume(b);
    else if (ask_volumes(b, "GET", old, mo_span(NULL, 0), on_volume_found, &e) <
             0)
        mo_docker_give_up(b, &e);
}

/* The empty volume is left to the sweep. */
bool mo_docker_files_again(struct dk_box *b)
{
    if (b->b.old_files)
        return false;
    mo_docker_move(b, DK_LOOKING);
    create_volume(b);
    return true;
}

/* --- in the container ---------------------------------------------------- */

int mo_docker_files_fill(struct dk_box *b, struct mo_ctr *c, struct mo_err *e)
{
    struct mo_ctr_bind *v;

    if (!b->b.files[0])
        return 0;
    v = mo_arena_zalloc(&b->arena, (c->nbinds + 1) * sizeof(*v));
    if (!v)
        return mo_fail(e, MO_ENOMEM, "box");
    if (c->nbinds)
        memcpy(v, c->binds, c->nbinds * sizeof(*v));
    v[c->nbinds++] = (struct mo_ctr_bind){.source = b->b.files,
                                          .target = MO_CTR_WORKSPACE,
                                          .rw = true,
                                          .volume = true};
    c->binds = v;
    return 0;
}

int mo_docker_files_read(struct dk_box *b, struct mo_json labels,
                         struct mo_ctr *c, struct mo_err *e)
{
    char name[MO_BOX_ID_MAX] = "";

    (void)mo_json_str_copy(mo_json_get(labels, "mo.files"), name, sizeof(name));
    if (!name[0])
        return 0;
    if (!mo_docker_files_uid(name))
        return mo_fail(e, MO_EPOLICY, "box %s: its label mo.files is not ours",
                       b->id);
    (void)snprintf(b->b.files, sizeof(b->b.files), "%s", name);
    return mo_docker_files_fill(b, c, e);
}

/* --- all of them --------------------------------------------------------- */

struct volumes {
    struct dk *d;
    mo_box_rows_fn *rows;
    mo_done_fn *done;
    void *ctx;
    char from[MO_BOX_ID_MAX]; /* rows after this one */
};

static int read_volumes(struct volumes *q, struct mo_json list,
                        struct mo_arena *a, struct mo_box_row **out, size_t *n)
{
    size_t max = mo_json_len(list);

    *n = 0;
    *out = mo_arena_zalloc(a, (max + 1) * sizeof(**out));
    if (!*out)
        return MO_ENOMEM;
    mo_json_each_while (at, list, *n < max) {
        struct mo_json labels = mo_json_get(at.val, "Labels");
        struct mo_box_row *r = &(*out)[*n];

        if (mo_boxes_files_row(a, mo_json_get(at.val, "Name"), labels, r) < 0)
            return MO_ENOMEM;
        if (mo_docker_files_uid(r->id) && !mo_boxes_use(&q->d->bs, r->id) &&
            mo_json_str_eq(mo_json_get(labels, "mo.store"),
                           mo_span_cstr(q->d->store)))
            ++*n;
    }
    return 0;
}

static void on_volumes(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    struct volumes *q = ctx;
    mo_autoarena struct mo_arena arena = {.cap = ROWS_MAX};
    struct mo_box_row *rows = NULL;
    struct mo_err e;
    size_t n = 0;

    if (!why && read_volumes(q, mo_json_get(r->json, "Volumes"), &arena, &rows,
                             &n) < 0) {
        (void)mo_fail(&e, MO_ENOMEM, "list of volumes");
        why = &e;
    }
    mo_boxes_tell_part(rows, why ? 0 : n, q->from, q->rows, q->ctx, why);
    mo_free(q);
}

static int ask_all(struct dk *d, const char *method, const char *path,
                   mo_engine_done *answer, struct volumes query,
                   struct mo_err *e)
{
    struct mo_engine_req req = {.method = method, .path = path};
    struct volumes *q = mo_new(struct volumes);
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "volumes");
    *q = query;
    rc = mo_engine_ask(d->en, &req, answer, q, NULL, e);
    if (rc < 0)
        mo_free(q);
    return rc;
}

int mo_docker_files(struct mo_boxes *bs, const char *from, mo_box_rows_fn *done,
                    void *ctx, struct mo_err *e)
{
    struct dk *d = mo_docker_of(bs);
    mo_autobuf struct mo_buf label = {.max = 1024};
    mo_autobuf struct mo_buf path = {.max = 1024};
    struct volumes q = {.d = d, .rows = done, .ctx = ctx};
    int rc = mo_buf_printf(&label, "mo.store=%s", d->store);

    (void)snprintf(q.from, sizeof(q.from), "%s", from ? from : "");
    if (rc == 0)
        rc = mo_engine_put_filter(&path, "/volumes?filters=", NULL,
                                  mo_buf_cstr(&label));
    return rc < 0 ? mo_fail(e, rc, "list of volumes")
                  : ask_all(d, NULL, mo_buf_cstr(&path), on_volumes, q, e);
}

static void on_volume_gone(void *ctx, const struct mo_engine_reply *r,
                           const struct mo_err *why)
{
    struct volumes *q = ctx;

    (void)r;
    q->done(q->ctx, why && why->code != MO_ENOTFOUND ? why : NULL);
    mo_free(q);
}

int mo_docker_forget(struct mo_boxes *bs, const char *files, mo_done_fn *done,
                     void *ctx, struct mo_err *e)
{
    struct volumes q = {.d = mo_docker_of(bs), .done = done, .ctx = ctx};
    char path[160];

    if (!mo_docker_files_uid(files))
        return mo_fail(e, MO_EINVAL, "box: no such workspace");
    (void)snprintf(path, sizeof(path), "/volumes/%s", files);
    return ask_all(q.d, "DELETE", path, on_volume_gone, q, e);
}
