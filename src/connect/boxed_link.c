#include "connect/boxed_link.h"

#include "connect/box_drivers.h"
#include "connect/boxed_sweep.h"
#include "connect/installed_files.h"
#include "connect/resolved_server.h"
#include "connect/workspace.h"
#include "policy/connections.h"

#define ARENA_MAX       ((size_t)1024 * 1024) /* arena of one box */
/* The output and the box end separately. After the first of them has ended,
 * wait this long for the other. */
#define DRAIN_MS        1000
#define TAIL_MAX        120 /* bytes of stderr quoted in an error */
#define MIB             ((uint64_t)1024 * 1024)
/* Open files of an installed server: Node.js opens all modules of a large
 * package at once. */
#define INSTALLED_FILES 4096

struct place { /* opened box drivers and the boxes that wait for them */
    struct mo_list node;
    struct mo_boxed_link *all;
    const struct mo_config *cfg;
    int driver;
    const char *image;         /* owned by cfg, or NULL */
    struct mo_box_drivers *sb; /* NULL: being opened */
    struct mo_list waiting;    /* struct boxed */
    bool sweeping, closing;    /* closing waits for the sweep */
};

struct mo_boxed_link {
    struct mo_loop *loop;
    struct mo_stderr_tail *stderr_tail;
    struct mo_approvals *approvals; /* of their connections, or NULL */
    char instance[MO_BOXED_NAME_MAX];
    struct mo_list places;
    struct mo_later later; /* runs the next step of closing */
    struct mo_gone gone;
};

struct boxed { /* one box and its link */
    struct mo_link k;
    struct mo_list node; /* linked while it waits for the drivers */
    struct mo_loop *loop;
    struct mo_arena a; /* owns the texts of spec */
    struct mo_box_spec spec;
    struct mo_conn *conn; /* waits for the link; NULL: has it */
    struct mo_box *box;   /* NULL: not started or gone */
    struct mo_stream *err;
    struct mo_timer drain;
    struct mo_later later; /* ends the link from the loop */
    struct mo_stderr_tail *stderr_tail;
    const char *name; /* name of the server */
    size_t tail_len;
    char tail[TAIL_MAX];
};

bool mo_boxed_link_is(const struct mo_config_mcp *s)
{
    return s->boxed || s->image ||
           (s->command &&
            (s->sandbox == MO_DRIVER_NATIVE || s->sandbox == MO_DRIVER_DOCKER ||
             s->sandbox == MO_DRIVER_KUBERNETES));
}

/* --- end of a box --------------------------------------------------------- */

/* The environment of a box holds the values of secrets. */
static void wipe_env(const char *const *env)
{
    union {
        const char *given;
        char *taken;
    } u;

    for (; env && *env; env++) {
        u.given = *env;
        explicit_bzero(u.taken, strlen(u.taken));
    }
}

static void boxed_fini(struct boxed *x)
{
    mo_timer_stop(x->loop, &x->drain);
    mo_later_cancel(&x->later);
    wipe_env(x->spec.env);
    mo_arena_fini(&x->a);
}

/* Ends a box that never became a link. */
static void give_up(struct boxed *x, const struct mo_err *why)
{
    struct mo_conn *c = x->conn;
    struct mo_err e = *why;

    boxed_fini(x);
    mo_free(x);
    mo_conn_dialed(c, NULL, &e);
}

static void maybe_over(struct boxed *x)
{
    if (x->box || x->k.inner || x->err)
        return;
    if (x->conn) {
        give_up(x, &x->k.why);
        return;
    }
    if (!x->k.cb)
        return; /* no callbacks set yet: reported by boxed_start() */
    boxed_fini(x);
    mo_link_gone(&x->k);
}

static void on_over(struct mo_later *d)
{
    maybe_over(mo_container_of(d, struct boxed, later));
}

static void close_parts(struct boxed *x)
{
    if (x->k.inner)
        mo_link_close(x->k.inner, NULL);
    if (x->err)
        mo_stream_close(x->err, NULL);
    if (x->box)
        mo_box_stop(x->box);
}

/* The output or the box has ended and the other had DRAIN_MS. */
static void on_drained(struct mo_timer *t)
{
    close_parts(mo_container_of(t, struct boxed, drain));
}

static void tell_cause(struct boxed *x, const struct mo_box_end *end)
{
    const char *more = end->why ? end->why->msg : "";
    int code = end->why ? end->why->code : MO_ECLOSED;
    struct mo_span last = mo_span_trim(mo_span(x->tail, x->tail_len));

    if (x->k.closing || (x->k.why.code && x->k.why.code != MO_ECLOSED))
        return;
    (void)mo_fail(&x->k.why, code, "its box ended: %s%s%s%s%.*s",
                  mo_box_cause_name(end->cause), *more ? ": " : "", more,
                  last.n ? "; it said: " : "", (int)last.n, last.p);
}

static void on_box_gone(void *ctx, const struct mo_box_end *end)
{
    struct boxed *x = ctx;

    x->box = NULL;
    tell_cause(x, end);
    if (x->k.inner || x->err)
        mo_timer_start(x->loop, &x->drain, DRAIN_MS);
    else
        maybe_over(x);
}

/* --- the last bytes of stderr --------------------------------------------- */

static void on_err_read(void *ctx, char *p, size_t n)
{
    struct boxed *x = ctx;

    mo_stderr_tail_add(x->stderr_tail, x->name, mo_span(p, n),
                       x->tail_len == 0);
    x->tail_len = mo_tail_add(x->tail, x->tail_len, TAIL_MAX, mo_span(p, n));
    for (size_t i = 0; i < x->tail_len; i++)
        x->tail[i] = (unsigned char)x->tail[i] < ' ' ? ' ' : x->tail[i];
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct boxed *x = ctx;

    (void)why;
    x->err = NULL;
    maybe_over(x);
}

static const struct mo_stream_cb err_cb = {.on_read = on_err_read,
                                           .on_close = on_err_close};

/* --- the link: frames below, connection above ----------------------------- */

static void on_inner_close(void *ctx, const struct mo_err *why)
{
    struct boxed *x = ctx;

    x->k.inner = NULL;
    if (why && !x->k.why.code)
        x->k.why = *why;
    if (x->box && !x->k.closing)
        mo_timer_start(x->loop, &x->drain, DRAIN_MS); /* for the cause */
    maybe_over(x);
}

static const struct mo_link_cb inner_cb = {
    .on_message = mo_link_pass_message,
    .on_failed = mo_link_pass_failed,
    .on_noise = mo_link_pass_noise,
    .on_close = on_inner_close,
};

static void boxed_start(struct mo_link *k)
{
    struct boxed *x = mo_container_of(k, struct boxed, k);

    if (x->k.inner)
        mo_link_attach(x->k.inner, &inner_cb, x);
    else
        mo_loop_defer(x->loop, &x->later);
}

static void boxed_close(struct mo_link *k)
{
    struct boxed *x = mo_container_of(k, struct boxed, k);

    close_parts(x);
    mo_loop_defer(x->loop, &x->later);
}

static const struct mo_link_ops ops = {
    .start = boxed_start,
    .close = boxed_close,
};

/* --- start of a box ------------------------------------------------------- */

static void on_box_ready(void *ctx, struct mo_box *b,
                         const struct mo_box_io *io)
{
    struct boxed *x = ctx;
    struct mo_conn *c = x->conn;

    x->err = io->err;
    if (x->err)
        mo_stream_attach(x->err, &err_cb, x);
    if (mo_link_lines(x->loop, io->io, 0, &x->k.inner, &x->k.why) < 0) {
        mo_box_stop(b);
        return;
    }
    x->conn = NULL;
    mo_conn_dialed(c, &x->k, NULL);
}

static struct mo_boxes *driver_of(const struct place *p, struct mo_err *e)
{
    size_t n = 0;
    struct mo_boxes *const *v = mo_box_drivers_drivers(p->sb, &n);

    if (n == 0)
        (void)mo_fail(e, MO_EUNAVAIL, "no box driver is open");
    return n ? v[0] : NULL;
}

static void start_box(struct place *p, struct boxed *x)
{
    static const struct mo_box_cb cb = {on_box_ready, on_box_gone};
    struct mo_err e = {0};
    struct mo_boxes *of = driver_of(p, &e);

    if (!of || mo_box_start(of, &x->spec, &cb, x, &x->box, &e) < 0)
        give_up(x, &e);
}

/* --- drivers for one kind of server --------------------------------------- */

static void place_free(struct place *p)
{
    mo_list_del(&p->node);
    mo_config_unref(p->cfg);
    mo_free(p);
}

static void close_place(struct place *p);

static void on_swept(void *ctx)
{
    struct place *p = ctx;

    p->sweeping = false;
    if (p->closing)
        close_place(p);
}

/* If opening the drivers failed, the next link tries again. */
static void on_sandbox(void *ctx, struct mo_box_drivers *sb,
                       const struct mo_err *why)
{
    struct place *p = ctx;
    struct mo_boxes *of;
    struct mo_list all;

    mo_list_init(&all);
    mo_list_splice(&all, &p->waiting);
    p->sb = sb;
    mo_list_drain (x, &all, struct boxed, node) {
        if (sb)
            start_box(p, x);
        else
            give_up(x, why);
    }
    if (!sb) {
        place_free(p);
        return;
    }
    of = driver_of(p, NULL);
    p->sweeping = of && mo_boxed_sweep(of, on_swept, p, NULL) == 0;
}

static struct place *find_place(struct mo_boxed_link *all,
                                const struct mo_config *cfg,
                                const struct mo_config_mcp *s)
{
    mo_list_each_entry (p, &all->places, struct place, node) {
        if (p->driver == s->sandbox &&
            mo_server_link_same(p->image, s->image) &&
            mo_server_link_same(p->cfg->sandbox.docker_host,
                                cfg->sandbox.docker_host))
            return p;
    }
    return NULL;
}

static void on_connection(void *ctx, const char *server,
                          const struct mo_egress_row *row)
{
    struct mo_boxed_link *b = ctx;
    const struct mo_connection_from from = {.server = server};

    mo_connections_report(b->approvals, &from, row);
}

static void on_mounts(void *ctx, const struct mo_box_spec *spec,
                      const struct mo_err *why)
{
    struct mo_boxed_link *b = ctx;
    const struct mo_audit_mounts m = {.server = spec->owner,
                                      .mounts = spec->mounts,
                                      .workspace = spec->folder,
                                      .reason = why ? why->msg : NULL};

    mo_audit_mounts(mo_approvals_audit(b->approvals), &m);
}

static enum mo_egress_say on_judge(void *ctx, const char *server,
                                   const char *box,
                                   const struct mo_egress_question *q)
{
    struct mo_boxed_link *b = ctx;
    const struct mo_connection_from from = {.server = server, .box = box};

    return mo_connections_judge(b->approvals, &from, q);
}

static void on_ask(void *ctx, const char *server, const char *box,
                   struct mo_egress_ask *a, const struct mo_egress_question *q)
{
    struct mo_boxed_link *b = ctx;
    const struct mo_connection_from from = {.server = server, .box = box};

    mo_connections_ask(b->approvals, &from, a, q);
}

static void on_ask_gone(void *ctx, struct mo_egress_ask *a)
{
    mo_connections_gone(((struct mo_boxed_link *)ctx)->approvals, a);
}

static void on_net_closed(void *ctx, const char *box)
{
    mo_connections_box_gone(((struct mo_boxed_link *)ctx)->approvals, box);
}

static const struct mo_box_asker asker = {on_judge, on_ask, on_ask_gone,
                                          on_net_closed};

static struct place *open_place(struct mo_boxed_link *all,
                                const struct mo_config *cfg,
                                const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_box_drivers_opts o = {
        .cfg = cfg,
        .store = MO_BOXED_STORE,
        .instance = all->instance,
        .driver = s->sandbox,
        .image = s->image,
        .on_connection = on_connection,
        .on_mounts = on_mounts,
        .asker = &asker,
        .connection_ctx = all,
    };
    struct place *p = mo_new(struct place);

    if (!p)
        return mo_null(mo_fail(e, MO_ENOMEM, "sandbox"));
    p->all = all;
    p->cfg = mo_config_ref(cfg);
    p->driver = s->sandbox;
    p->image = s->image;
    mo_list_init(&p->waiting);
    mo_list_push(&all->places, &p->node);
    if (mo_box_drivers_open(all->loop, &o, on_sandbox, p, e) == 0)
        return p;
    place_free(p);
    return NULL;
}

/* --- box specification ---------------------------------------------------- */

/* False: the image's own command runs, or the toolbox. */
static bool has_command(const struct mo_config_mcp *s)
{
    return s->args.n || (s->command &&
                         (s->image || strcmp(s->command, MO_BOX_TOOLBOX) != 0));
}

static int fill_spec(struct boxed *x, const struct mo_config *cfg,
                     const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_box_spec raw = mo_box_drivers_spec(cfg, s->image);
    struct mo_resolved_server t = {.a = &x->a};
    char folder[PATH_MAX];
    int rc = 0;

    if (s->cwd)
        return mo_fail(e, MO_EINVAL,
                       "cwd: not allowed, a box has its own workspace");
    if (s->memory_mb)
        raw.limits.memory = (uint64_t)s->memory_mb * MIB;
    if (s->cpus > 0)
        raw.limits.cpu_milli = (unsigned)(s->cpus * 1000);
    if (s->pids)
        raw.limits.pids = (unsigned)s->pids;
    rc = mo_installed_files(&x->a, cfg, s, &raw.installed, e);
    if (rc == 0 && s->workspace) {
        rc = mo_workspace_make(cfg, s->name, folder, e);
        raw.folder = folder;
    }
    if (raw.installed)
        raw.limits.open_files = INSTALLED_FILES;
    if (rc == 0)
        rc = mo_resolved_server_env(&t, cfg, s, &raw.env, e);
    if (rc == 0 && has_command(s))
        rc = mo_resolved_server_words(&t, s, e);
    if (rc < 0)
        return rc;
    mo_resolved_server_hide(&t, x->loop, s->name);
    raw.with_us = true;
    raw.network = s->network.json;
    raw.mounts = s->mounts.v;
    raw.owner = s->name;
    raw.argv = t.child.argv;
    rc = mo_box_spec_copy(&x->a, &raw, &x->spec);
    mo_resolved_server_wipe(&t);
    if (rc < 0)
        return mo_fail(e, MO_ENOMEM, "box");
    return mo_box_spec_check(&x->spec, e);
}

int mo_boxed_link_dial(struct mo_boxed_link *b, const struct mo_config *cfg,
                       const struct mo_config_mcp *s, struct mo_conn *c,
                       struct mo_err *e)
{
    struct place *p = NULL;
    struct boxed *x = mo_new(struct boxed);

    if (!x)
        return mo_fail(e, MO_ENOMEM, "box");
    x->k.ops = &ops;
    x->loop = b->loop;
    x->conn = c;
    x->stderr_tail = b->stderr_tail;
    mo_arena_init(&x->a, ARENA_MAX);
    mo_timer_init(&x->drain, on_drained);
    mo_later_init(&x->later, on_over);
    x->name = mo_arena_strndup(&x->a, s->name, strlen(s->name));
    if (!x->name)
        (void)mo_fail(e, MO_ENOMEM, "box");
    else if (fill_spec(x, cfg, s, e) == 0) {
        p = find_place(b, cfg, s);
        p = p ? p : open_place(b, cfg, s, e);
    }
    if (!p) {
        boxed_fini(x);
        mo_free(x);
        return e->code;
    }
    if (p->sb)
        start_box(p, x);
    else
        mo_list_push(&p->waiting, &x->node);
    return 0;
}

/* --- open and close ------------------------------------------------------- */

static void on_place_gone(void *ctx)
{
    struct place *p = ctx;
    struct mo_boxed_link *b = p->all;

    place_free(p);
    mo_loop_defer(b->loop, &b->later);
}

static void close_place(struct place *p)
{
    p->closing = true;
    if (!p->sweeping)
        mo_box_drivers_close(p->sb, on_place_gone, p);
}

static void on_later(struct mo_later *d)
{
    struct mo_boxed_link *b = mo_container_of(d, struct mo_boxed_link, later);
    struct mo_gone gone = b->gone;
    struct place *p = mo_list_first(&b->places, struct place, node);

    if (p) {
        close_place(p);
        return;
    }
    mo_free(b);
    mo_gone_fire(gone);
}

int mo_boxed_link_new(struct mo_loop *l, struct mo_stderr_tail *tail,
                      struct mo_boxed_link **out, struct mo_err *e)
{
    struct mo_boxed_link *b = mo_new(struct mo_boxed_link);

    if (!b)
        return mo_fail(e, MO_ENOMEM, "boxes");
    b->loop = l;
    b->stderr_tail = tail;
    mo_list_init(&b->places);
    mo_later_init(&b->later, on_later);
    mo_boxed_link_name(b->instance);
    *out = b;
    return 0;
}

void mo_boxed_link_approvals(struct mo_boxed_link *b,
                             struct mo_approvals *approvals)
{
    b->approvals = approvals;
}

void mo_boxed_link_close(struct mo_boxed_link *b, void (*gone)(void *ctx),
                         void *ctx)
{
    b->gone = (struct mo_gone){gone, ctx};
    mo_loop_defer(b->loop, &b->later);
}
