#include "app/runtime.h"

#include <limits.h>
#include <stdio.h>

#include "agent/chat/chat.h"
#include "agent/chat/entry.h"
#include "base/file.h"
#include "base/mem.h"
#include "config/state_record.h"
#include "policy/connections.h"
#include "secrets/resolve.h"
#include "session/control.h"
#include "session/instance.h"

#define URL_MAX ((size_t)4096)

struct mo_runtime {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    enum mo_runtime_want want;
    char run[PATH_MAX], label[MO_BOX_DRIVERS_LABEL];
    struct mo_approvals *approvals; /* borrowed; may be NULL */
    struct mo_store *store;
    struct mo_instance *instance;
    struct mo_box_drivers *sandbox;
    struct mo_sessions *sessions;
    struct mo_control *control;
    int in_use;            /* lock of the state directory */
    struct mo_later later; /* next step of opening or closing */
    struct mo_err why;     /* reason why opening failed */
    bool closing;
    void (*done)(void *ctx, struct mo_runtime *h, const struct mo_err *why);
    void *ctx;
    struct mo_gone gone;
};

/* --- closing, in reverse ------------------------------------------------- */

static void runtime_free(struct mo_runtime *h)
{
    struct mo_runtime told = *h;

    mo_close_fd(&h->in_use);
    mo_config_unref(h->cfg);
    mo_free(h);
    if (told.done)
        told.done(told.ctx, NULL, &told.why);
    mo_gone_fire(told.gone);
}

static void close_next(void *ctx)
{
    struct mo_runtime *h = ctx;

    if (h->control)
        mo_control_close(mo_take_ptr(&h->control), close_next, h);
    else if (h->sessions)
        mo_sessions_close(mo_take_ptr(&h->sessions), close_next, h);
    else if (h->sandbox)
        mo_box_drivers_close(mo_take_ptr(&h->sandbox), close_next, h);
    else if (h->instance)
        mo_instance_close(mo_take_ptr(&h->instance), close_next, h);
    else if (h->store)
        mo_store_close(mo_take_ptr(&h->store), close_next, h);
    else
        runtime_free(h);
}

static void on_close(struct mo_later *d)
{
    close_next(mo_container_of(d, struct mo_runtime, later));
}

void mo_runtime_close(struct mo_runtime *h, void (*gone)(void *ctx), void *ctx)
{
    h->done = NULL;
    h->gone = (struct mo_gone){gone, ctx};
    mo_later_init(&h->later, on_close);
    mo_loop_defer(h->loop, &h->later);
}

static void fail_open(struct mo_runtime *h, const struct mo_err *why)
{
    h->why = *why;
    close_next(h);
}

/* --- opening ------------------------------------------------------------- */

/* A failure is logged and does not prevent the start. */
static void open_control(struct mo_runtime *h)
{
    char path[PATH_MAX];
    struct mo_err e;
    int rc = mo_control_path(path, sizeof(path), h->run,
                             mo_instance_name(h->instance), &e);

    if (rc == 0)
        rc = mo_control_open(h->loop, h->sessions, path, &h->control, &e);
    if (rc < 0)
        mo_log_err(mo_loop_log(h->loop), MO_WARN, "session", &e,
                   "`sessions kill` cannot reach this instance");
}

/* Settings that a reload may change. */
static struct mo_sessions_opts settings_of(const struct mo_config_sessions *c)
{
    return (struct mo_sessions_opts){
        .idle_ms = (uint64_t)c->idle_minutes * 60000,
        .sweep_ms = (uint64_t)c->sweep_seconds * 1000,
        .max = c->max < MO_SESSIONS_MAX ? (unsigned)c->max : MO_SESSIONS_MAX,
    };
}

void mo_runtime_reload(struct mo_runtime *h, const struct mo_config *cfg)
{
    const struct mo_sessions_opts o = settings_of(&cfg->sessions);

    if (h->sessions)
        mo_sessions_change(h->sessions, &o);
}

static int open_sessions(struct mo_runtime *h, struct mo_err *e)
{
    bool all = h->want == MO_RUNTIME_SESSIONS;
    struct mo_sessions_opts o = settings_of(&h->cfg->sessions);

    o.store = h->store;
    o.spec = mo_box_drivers_spec(h->cfg, NULL);
    o.spec.keep = h->cfg->sandbox.keep_files;
    o.instance = mo_instance_name(h->instance);
    o.capabilities = MO_SPAN(MO_AGENT_CAPABILITIES);
    o.keep_ms = (uint64_t)h->cfg->sessions.history_ttl_seconds * 1000;
    o.warm = all ? (unsigned)h->cfg->sandbox.warm : 0;
    o.no_janitor = !all;
    o.is_dead = mo_instance_dead;
    o.dead_ctx = h->instance;
    if (o.warm > MO_BOX_WARM_MAX)
        o.warm = MO_BOX_WARM_MAX;
    o.drivers = mo_box_drivers_drivers(h->sandbox, &o.ndrivers);
    return mo_sessions_open(h->loop, &o, &h->sessions, e);
}

static void on_sandbox(void *ctx, struct mo_box_drivers *sb,
                       const struct mo_err *why)
{
    struct mo_runtime *h = ctx;
    struct mo_err e;

    h->sandbox = sb;
    if (why) {
        fail_open(h, why);
        return;
    }
    if (open_sessions(h, &e) < 0) {
        fail_open(h, &e);
        return;
    }
    if (h->want == MO_RUNTIME_SESSIONS)
        open_control(h);
    h->done(h->ctx, h, NULL);
}

/* The URL of the store with references resolved; a relative file is in
 * store.dir. */
static int store_url(const struct mo_config *cfg, struct mo_buf *out,
                     struct mo_err *e)
{
    struct mo_span file;
    mo_autowipe struct mo_buf b = {.max = URL_MAX};
    int rc = mo_reference_resolve(cfg, cfg->store.url, &b, e);

    if (rc < 0)
        return rc;
    file = mo_buf_view(&b);
    if (mo_span_starts(file, MO_SPAN("sqlite:"))) {
        file = mo_span_skip(file, 7);
        mo_buf_puts(out, "sqlite:");
        if (file.n && file.p[0] != '/')
            mo_buf_printf(out, "%s/", cfg->store.dir);
    }
    mo_buf_span(out, file);
    return mo_buf_err(out) ? mo_fail(e, mo_buf_err(out), "store.url") : 0;
}

static int open_store(struct mo_runtime *h, struct mo_err *e)
{
    struct mo_store_opts o = {
        .history_ttl_ms = (uint64_t)h->cfg->sessions.history_ttl_seconds * 1000,
        .audit_ttl_ms = (uint64_t)h->cfg->audit.keep_days * 24 * 3600 * 1000,
        .replicas = (unsigned)h->cfg->store.replicas,
        .text_of = mo_entry_search_text,
    };
    mo_autowipe struct mo_buf url = {.max = URL_MAX};

    if (store_url(h->cfg, &url, e) < 0)
        return e->code;
    o.url = mo_buf_cstr(&url);
    mo_box_drivers_label(h->cfg, o.url, h->label);
    return mo_store_open(h->loop, &o, &h->store, e);
}

/* Checked before the store is opened: opening and closing it would add a
 * quarter to the memory of a gateway. */
static int check_driver(const struct mo_runtime *h, struct mo_err *e)
{
    if (h->want != MO_RUNTIME_SESSIONS ||
        h->cfg->sandbox.driver != MO_DRIVER_NONE)
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "sandbox.driver is \"none\": there are no boxes");
}

static int make_dirs(struct mo_runtime *h, struct mo_err *e)
{
    const char *state = h->cfg->store.dir;
    int n = snprintf(h->run, sizeof(h->run), "%s/run", state);

    if (n < 0 || (size_t)n >= sizeof(h->run))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    if (mo_file_mkdir(state, e) < 0 ||
        mo_state_use(state, true, &h->in_use, e) < 0)
        return e->code;
    return mo_state_record_write(state, e);
}

static void on_connection(void *ctx, const char *session,
                          const struct mo_egress_row *row)
{
    struct mo_runtime *h = ctx;

    const struct mo_connection_from from = {.session = session};

    mo_connections_report(h->approvals, &from, row);
}

static void on_mounts(void *ctx, const struct mo_box_spec *spec,
                      const struct mo_err *why)
{
    struct mo_runtime *h = ctx;
    const struct mo_audit_mounts m = {.session = spec->session,
                                      .mounts = spec->mounts,
                                      .reason = why ? why->msg : NULL};

    mo_audit_mounts(mo_approvals_audit(h->approvals), &m);
}

static struct mo_connection_from
from_session(const struct mo_runtime *h, const char *session, const char *box)
{
    return (struct mo_connection_from){
        .session = session,
        .owner = h->sessions
                     ? mo_session_owner(h->sessions, mo_span_cstr(session))
                     : "",
        .box = box,
    };
}

static enum mo_egress_say on_judge(void *ctx, const char *session,
                                   const char *box,
                                   const struct mo_egress_question *q)
{
    struct mo_runtime *h = ctx;
    struct mo_connection_from from = from_session(h, session, box);

    return mo_connections_judge(h->approvals, &from, q);
}

static void on_ask(void *ctx, const char *session, const char *box,
                   struct mo_egress_ask *a, const struct mo_egress_question *q)
{
    struct mo_runtime *h = ctx;
    struct mo_connection_from from = from_session(h, session, box);

    mo_connections_ask(h->approvals, &from, a, q);
}

static void on_ask_gone(void *ctx, struct mo_egress_ask *a)
{
    mo_connections_gone(((struct mo_runtime *)ctx)->approvals, a);
}

static void on_net_closed(void *ctx, const char *box)
{
    mo_connections_box_gone(((struct mo_runtime *)ctx)->approvals, box);
}

static const struct mo_box_asker asker = {on_judge, on_ask, on_ask_gone,
                                          on_net_closed};

void mo_runtime_approvals(struct mo_runtime *h, struct mo_approvals *approvals)
{
    h->approvals = approvals;
}

static void open_name(struct mo_runtime *h)
{
    struct mo_err e;

    if (mo_instance_open(h->loop, h->store, h->run, &h->instance, &e) < 0)
        mo_log_err(mo_loop_log(h->loop), MO_WARN, "serve", &e,
                   "other servers cannot pass requests on to this one");
}

static void open_parts(struct mo_runtime *h)
{
    struct mo_box_drivers_opts o = {.cfg = h->cfg,
                                    .store = h->label,
                                    .on_connection = on_connection,
                                    .on_mounts = on_mounts,
                                    .asker = &asker,
                                    .connection_ctx = h};
    struct mo_err e;
    int rc = make_dirs(h, &e);

    if (rc == 0)
        rc = check_driver(h, &e);
    if (rc == 0)
        rc = open_store(h, &e);
    if (rc == 0 && h->want == MO_RUNTIME_INSTANCE)
        open_name(h);
    if (rc == 0 && h->want <= MO_RUNTIME_INSTANCE) {
        h->done(h->ctx, h, NULL);
        return;
    }
    if (rc == 0)
        rc = mo_instance_open(h->loop, h->store, h->run, &h->instance, &e);
    if (rc == 0) {
        o.instance = mo_instance_name(h->instance);
        rc = mo_box_drivers_open(h->loop, &o, on_sandbox, h, &e);
    }
    if (rc < 0)
        fail_open(h, &e);
}

static void on_open(struct mo_later *d)
{
    open_parts(mo_container_of(d, struct mo_runtime, later));
}

int mo_runtime_open(struct mo_loop *l, const struct mo_config *cfg,
                    enum mo_runtime_want want,
                    void (*done)(void *ctx, struct mo_runtime *h,
                                 const struct mo_err *why),
                    void *ctx, struct mo_err *e)
{
    struct mo_runtime *h = mo_new(struct mo_runtime);

    if (!h)
        return mo_fail(e, MO_ENOMEM, "runtime");
    h->loop = l;
    h->cfg = mo_config_ref(cfg);
    h->want = want;
    h->in_use = -1;
    h->done = done;
    h->ctx = ctx;
    mo_later_init(&h->later, on_open);
    mo_loop_defer(l, &h->later);
    return 0;
}

/* --- accessors ------------------------------------------------------------ */

struct mo_store *mo_runtime_store(const struct mo_runtime *h)
{
    return h->store;
}

struct mo_sessions *mo_runtime_sessions(const struct mo_runtime *h)
{
    return h->sessions;
}

const char *mo_runtime_instance(const struct mo_runtime *h)
{
    return h->instance ? mo_instance_name(h->instance) : NULL;
}

const char *mo_runtime_dir(const struct mo_runtime *h)
{
    return h->run;
}

/* --- ending a session ----------------------------------------------------- */

struct ending {
    struct mo_runtime *h;
    char id[MO_SESSION_ID_MAX + 1];
    bool forget;
    struct mo_err why; /* result of ending it in this process */
    mo_done_fn *done;
    void *ctx;
};

static void finish_ending(void *ctx, const struct mo_err *why)
{
    struct ending told = *(struct ending *)ctx;

    mo_free(ctx);
    told.done(told.ctx, why);
}

/* Another instance holds the session: ask it if it is on this machine. */
static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct ending *x = ctx;
    char path[PATH_MAX], name[MO_INSTANCE_MAX];
    struct mo_err e;
    int rc = -1;

    (void)fence;
    if (!why && owner.n < sizeof(name) && !memchr(owner.p, '/', owner.n)) {
        (void)snprintf(name, sizeof(name), "%.*s", (int)owner.n, owner.p);
        rc = mo_control_path(path, sizeof(path), x->h->run, name, &e);
    }
    if (rc == 0)
        rc = mo_control_end(x->h->loop, path, mo_span_cstr(x->id), x->forget,
                            finish_ending, x, &e);
    if (rc < 0)
        finish_ending(x, &x->why);
}

static void on_own_end(void *ctx, const struct mo_err *why)
{
    struct ending *x = ctx;
    struct mo_err e;

    if (!why || why->code != MO_EBUSY) {
        finish_ending(x, why);
        return;
    }
    x->why = *why;
    if (mo_lease_holder(x->h->store, mo_span_cstr(x->id), on_holder, x, &e) < 0)
        finish_ending(x, &e);
}

int mo_runtime_end(struct mo_runtime *h, struct mo_span session, bool forget,
                   mo_done_fn *done, void *ctx, struct mo_err *e)
{
    struct ending *x = mo_new(struct ending);
    int rc;

    if (!x)
        return mo_fail(e, MO_ENOMEM, "session");
    x->h = h;
    x->forget = forget;
    x->done = done;
    x->ctx = ctx;
    (void)snprintf(x->id, sizeof(x->id), "%.*s", (int)session.n, session.p);
    rc = mo_session_end(h->sessions, session, forget, on_own_end, x, e);
    if (rc < 0)
        mo_free(x);
    return rc;
}
