#include "connect/box_drivers.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/json/json.h"
#include "codec/sha256.h"
#include "connect/box_mounts.h"
#include "engine/image.h"
#include "secrets/resolve.h"

#define SECOND_MS 3000 /* wait for a driver that is only swept */
#define MIB       ((uint64_t)1024 * 1024)
#define NODES_MAX ((size_t)16 * 1024) /* bytes of a node selector */

/* The two small programs that this one carries with it (scripts/embed), so that
 * neither is missing or of another version: mo-toolbox runs inside boxes,
 * mo-box makes native ones. */
extern const char mo_helper_toolbox[], mo_helper_toolbox_end[];
extern const char mo_helper_launcher[], mo_helper_launcher_end[];

/* A driver that is being opened. */
struct driver {
    struct mo_boxes *bs;
    struct mo_boxes_ready ready;
};

struct mo_box_drivers {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    struct mo_box_drivers_opts o; /* owns the texts below */
    char store[MO_BOX_DRIVERS_LABEL], instance[64], image[512];
    struct mo_box_guard guard;
    struct driver v[MO_BOX_DRIVERS_DRIVERS];
    struct mo_boxes *open[MO_BOX_DRIVERS_DRIVERS];
    struct mo_boxes_ready readys[MO_BOX_DRIVERS_DRIVERS];
    size_t n;
    size_t step; /* index of the driver being checked */
    bool answered;
    struct mo_timer late;
    unsigned closing; /* drivers being closed, plus one for the struct itself */
    struct mo_err why; /* of the first selected driver that failed */
    struct mo_later later;
    mo_box_drivers_fn *done;
    void *ctx;
    struct mo_gone gone;
};

static const struct {
    int driver;
    const char *name;
    int (*open)(struct mo_loop *l, const struct mo_boxes_opts *o,
                struct mo_boxes **out, struct mo_err *e);
} kinds[MO_BOX_DRIVERS_DRIVERS] = {
    {MO_DRIVER_NATIVE, "native", mo_boxes_native},
    {MO_DRIVER_DOCKER, "docker", mo_boxes_docker},
    {MO_DRIVER_KUBERNETES, "kubernetes", mo_boxes_kubernetes},
};

/* --- which drivers to open ------------------------------------------------ */

static bool is_selected(const struct mo_box_drivers *sb, size_t i)
{
    bool path = sb->image[0] == '/', named = sb->image[0] && !path;

    if (kinds[i].driver == MO_DRIVER_KUBERNETES) /* only by its name */
        return sb->o.driver == MO_DRIVER_KUBERNETES;
    if (sb->o.all)
        return true;
    if (sb->o.driver != MO_DRIVER_AUTO)
        return kinds[i].driver == sb->o.driver;
    return kinds[i].driver == MO_DRIVER_NATIVE ? !named : !path;
}

static void no_driver(const struct mo_box_drivers *sb, struct mo_err *e)
{
    if (sb->o.driver == MO_DRIVER_NONE)
        (void)mo_fail(e, MO_EPOLICY,
                      "sandbox.driver is \"none\": there are no boxes");
    else if (sb->why.code)
        (void)mo_fail(e, MO_EUNAVAIL,
                      "no box can be made here: %s; `doctor` says more",
                      sb->why.msg);
    else
        (void)mo_fail(e, MO_EUNAVAIL, "no box can be made here");
}

/* --- closing ------------------------------------------------------------- */

static void on_over(struct mo_later *d)
{
    struct mo_box_drivers *sb =
        mo_container_of(d, struct mo_box_drivers, later);
    struct mo_box_drivers told = *sb;

    mo_config_unref(sb->cfg);
    mo_free(sb);
    mo_gone_fire(told.gone);
    if (told.done)
        told.done(told.ctx, NULL, &told.why);
}

static void on_one_gone(void *ctx)
{
    struct mo_box_drivers *sb = ctx;

    sb->closing--;
    if (sb->closing == 0)
        mo_loop_defer(sb->loop, &sb->later);
}

static void close_all(struct mo_box_drivers *sb)
{
    sb->closing = 1;
    mo_timer_stop(sb->loop, &sb->late);
    for (size_t i = 0; i < MO_BOX_DRIVERS_DRIVERS; i++) {
        if (!sb->v[i].bs)
            continue;
        sb->closing++;
        mo_boxes_close(mo_take_ptr(&sb->v[i].bs), on_one_gone, sb);
    }
    on_one_gone(sb);
}

void mo_box_drivers_close(struct mo_box_drivers *sb, void (*gone)(void *ctx),
                          void *ctx)
{
    sb->done = NULL;
    sb->gone = (struct mo_gone){gone, ctx};
    close_all(sb);
}

/* --- check the drivers one after the other -------------------------------- */

static void check_next(struct mo_box_drivers *sb);

static void refuse(struct mo_box_drivers *sb, size_t i)
{
    const struct mo_boxes_ready *r = &sb->v[i].ready;
    char first[sizeof(sb->why.msg)];

    (void)snprintf(first, sizeof(first), "%s", sb->why.msg);
    (void)mo_fail(&sb->why, MO_EUNAVAIL, "%s%s%s: %s", first,
                  first[0] ? "; " : "", kinds[i].name, r->why);
}

/* The first driver that works starts boxes. A second one is only swept. */
static void settle_one(struct mo_box_drivers *sb)
{
    size_t i = sb->step++;

    mo_timer_stop(sb->loop, &sb->late);
    sb->answered = true;
    if (sb->v[i].bs && (sb->v[i].ready.ok || sb->o.all)) {
        sb->open[sb->n] = sb->v[i].bs;
        sb->readys[sb->n++] = sb->v[i].ready;
    } else if (sb->n == 0) {
        refuse(sb, i);
    }
    check_next(sb);
}

static void on_checked(void *ctx, const struct mo_boxes_ready *r)
{
    struct mo_box_drivers *sb = ctx;

    if (sb->answered)
        return; /* the timeout came first */
    sb->v[sb->step].ready = *r;
    settle_one(sb);
}

static void on_late(struct mo_timer *t)
{
    struct mo_box_drivers *sb = mo_container_of(t, struct mo_box_drivers, late);
    struct mo_boxes_ready *r = &sb->v[sb->step].ready;

    r->ok = false;
    (void)snprintf(r->why, sizeof(r->why), "it does not answer");
    settle_one(sb);
}

/* --- secrets of networks -------------------------------------------------- */

static void hide_value(void *ctx, struct mo_span value)
{
    const struct mo_box_drivers *sb = ctx;

    if (mo_loop_secret(sb->loop, value) < 0)
        mo_log(mo_loop_log(sb->loop), MO_WARN, "egress",
               "not every secret can be kept out of the log by its value");
}

static int resolve_secret(void *ctx, const char *text, struct mo_buf *out,
                          struct mo_err *e)
{
    struct mo_box_drivers *sb = ctx;

    return mo_reference_resolve_told(sb->cfg, text, out, hide_value, sb, e);
}

/* --- open ----------------------------------------------------------------- */

static void put_nodes(const struct mo_config_map *m, struct mo_buf *b)
{
    struct mo_jw w;

    if (m->n == 0)
        return;
    w = mo_jw_object(b);
    for (size_t i = 0; i < m->n; i++)
        mo_jw_member_cstr(&w, m->v[i].name, m->v[i].value);
    mo_jw_end_all(&w);
}

static const char *pull_name(int policy)
{
    static const char *const names[] = {[MO_PULL_IF_NOT_PRESENT] =
                                            "IfNotPresent",
                                        [MO_PULL_ALWAYS] = "Always",
                                        [MO_PULL_NEVER] = "Never"};

    return names[policy];
}

static void check_driver(struct mo_box_drivers *sb, size_t i)
{
    const struct mo_config_kubernetes *k = &sb->cfg->sandbox.kubernetes;
    mo_autobuf struct mo_buf nodes = {.max = NODES_MAX};
    struct mo_box_cluster cluster = {
        .kubeconfig = k->kubeconfig,
        .context = k->context,
        .ns = k->ns,
        .image = k->image,
        .runtime_class = k->runtime_class,
        .pull_secret = k->pull_secret,
        .pull_policy = pull_name(k->pull_policy),
        .claims = k->claims,
        .storage_class = k->storage_class,
    };
    struct mo_boxes_opts o = {
        .cluster = &cluster,
        .store = sb->store,
        .instance = sb->instance,
        .dir = sb->cfg->store.dir,
        .toolbox = {mo_helper_toolbox,
                    (size_t)(mo_helper_toolbox_end - mo_helper_toolbox)},
        .launcher = mo_box_drivers_launcher(),
        .helper = sb->cfg->helper,
        .engine = sb->cfg->sandbox.docker_host,
        .volumes = (enum mo_box_volumes)sb->cfg->sandbox.docker_volumes,
        .network = sb->cfg->sandbox.network.json,
        .mounts = sb->cfg->sandbox.mounts.v,
        .guard = &sb->guard.g,
        .on_connection = sb->o.on_connection,
        .on_mounts = sb->o.on_mounts,
        .asker = sb->o.asker,
        .connection_ctx = sb->o.connection_ctx,
        .secret = resolve_secret,
        .secret_ctx = sb,
    };
    struct driver *d = &sb->v[i];
    struct mo_err e;
    int rc;

    put_nodes(&k->node_selector, &nodes);
    cluster.node_selector = mo_buf_cstr(&nodes);
    rc = mo_buf_err(&nodes) ? mo_fail(&e, mo_buf_err(&nodes), "nodeSelector")
                            : kinds[i].open(sb->loop, &o, &d->bs, &e);
    sb->answered = false;
    if (rc == 0)
        rc = mo_boxes_check(d->bs, on_checked, sb, &e);
    if (rc == 0) {
        if (sb->n > 0 && !sb->o.all)
            mo_timer_start(sb->loop, &sb->late, SECOND_MS);
        return;
    }
    (void)snprintf(d->ready.why, sizeof(d->ready.why), "%s", e.msg);
    settle_one(sb);
}

static void check_next(struct mo_box_drivers *sb)
{
    struct mo_err e;

    while (sb->step < MO_BOX_DRIVERS_DRIVERS && !is_selected(sb, sb->step))
        sb->step++;
    if (sb->step < MO_BOX_DRIVERS_DRIVERS) {
        check_driver(sb, sb->step);
        return;
    }
    if (sb->n == 0) {
        no_driver(sb, &e);
        sb->why = e;
        close_all(sb);
        return;
    }
    sb->done(sb->ctx, sb, NULL);
}

static void on_begin(struct mo_later *d)
{
    struct mo_box_drivers *sb =
        mo_container_of(d, struct mo_box_drivers, later);

    mo_later_init(&sb->later, on_over);
    check_next(sb);
}

int mo_box_drivers_open(struct mo_loop *l, const struct mo_box_drivers_opts *o,
                        mo_box_drivers_fn *done, void *ctx, struct mo_err *e)
{
    struct mo_box_drivers *sb = mo_new(struct mo_box_drivers);
    const char *image = o->image ? o->image : o->cfg->sandbox.image;
    int rc;

    if (!sb)
        return mo_fail(e, MO_ENOMEM, "sandbox");
    sb->loop = l;
    sb->o = *o;
    sb->cfg = mo_config_ref(o->cfg);
    if (o->driver == MO_DRIVER_AUTO)
        sb->o.driver = o->cfg->sandbox.driver;
    (void)snprintf(sb->store, sizeof(sb->store), "%s", o->store);
    (void)snprintf(sb->instance, sizeof(sb->instance), "%s", o->instance);
    (void)snprintf(sb->image, sizeof(sb->image), "%s", image ? image : "");
    sb->done = done;
    sb->ctx = ctx;
    mo_box_guard_init(&sb->guard, sb->cfg);
    mo_timer_init(&sb->late, on_late);
    mo_later_init(&sb->later, on_begin);
    rc = mo_file_mkdir(sb->cfg->store.dir, e);
    if (rc < 0) {
        mo_config_unref(sb->cfg);
        mo_free(sb);
        return rc;
    }
    mo_loop_defer(l, &sb->later);
    return 0;
}

struct mo_boxes *const *mo_box_drivers_drivers(const struct mo_box_drivers *sb,
                                               size_t *n)
{
    *n = sb->n;
    return sb->open;
}

const struct mo_boxes_ready *
mo_box_drivers_ready(const struct mo_box_drivers *sb, size_t i)
{
    return &sb->readys[i];
}

/* --- box specification and store label ------------------------------------ */

struct mo_span mo_box_drivers_launcher(void)
{
    return mo_span(mo_helper_launcher,
                   (size_t)(mo_helper_launcher_end - mo_helper_launcher));
}

static struct mo_span toolbox_bytes(void)
{
    return mo_span(mo_helper_toolbox,
                   (size_t)(mo_helper_toolbox_end - mo_helper_toolbox));
}

int mo_box_drivers_save_image(const char *path, char tag[MO_BOX_DRIVERS_TAG],
                              struct mo_err *e)
{
    struct mo_image_parts p = {.toolbox = toolbox_bytes(),
                               .launcher = mo_box_drivers_launcher()};
    struct mo_image_tar t;
    int rc = mo_image_make_here(&p, &t, e);

    if (rc == 0)
        rc = mo_file_save(path, mo_buf_view(&t.tar), 0644, e);
    (void)snprintf(tag, MO_BOX_DRIVERS_TAG, "%s", t.tag);
    mo_buf_fini(&t.tar);
    return rc;
}

struct mo_box_spec mo_box_drivers_spec(const struct mo_config *cfg,
                                       const char *image)
{
    const struct mo_config_sandbox *c = &cfg->sandbox;
    struct mo_box_spec s = {.limits = mo_box_limits_default,
                            .image = image ? image : c->image,
                            .network = c->network.json,
                            .mounts = c->mounts.v,
                            .session = ""};

    s.limits.memory = (uint64_t)c->memory_mb * MIB;
    s.limits.cpu_milli = (unsigned)(c->cpus * 1000);
    s.limits.pids = (unsigned)c->pids;
    s.limits.workspace = (uint64_t)c->workspace_mb * MIB;
    s.limits.file_size = s.limits.workspace;
    return s;
}

static void put_span(struct mo_sha256 *h, struct mo_span s)
{
    mo_sha256_put(h, s.p, s.n);
}

/* redis://user:secret@host/0 -> redis://host/0 */
static void put_url_without_password(struct mo_sha256 *h, struct mo_span url)
{
    ptrdiff_t slashes = mo_span_search(url, MO_SPAN("://"));
    struct mo_span rest = mo_span_skip(url, (size_t)(slashes + 3));
    ptrdiff_t at = slashes < 0 ? -1 : mo_span_find(rest, '@');

    if (at < 0) {
        put_span(h, url);
        return;
    }
    put_span(h, mo_span_head(url, (size_t)slashes + 3));
    put_span(h, mo_span_skip(rest, (size_t)at + 1));
}

void mo_box_drivers_label(const struct mo_config *cfg, const char *url,
                          char out[MO_BOX_DRIVERS_LABEL])
{
    struct mo_span u = mo_span_cstr(url);
    unsigned char sum[MO_SHA256_LEN];
    char real[PATH_MAX];
    struct mo_sha256 h;

    mo_sha256_init(&h);
    put_url_without_password(&h, u);
    if (mo_span_starts(u, MO_SPAN("sqlite:")) && realpath(cfg->store.dir, real))
        put_span(&h, mo_span_cstr(real));
    mo_sha256_end(&h, sum);
    mo_hex(sum, MO_BOX_DRIVERS_LABEL / 2, out);
}
