#include "connect/box_probe.h"

#include <stdio.h>

#include "base/mem.h"
#include "connect/box_drivers.h"
#include "connect/probe_hosts.h"

#define MIB        ((uint64_t)1024 * 1024)
#define OUTPUT_MAX ((size_t)64 * 1024)
#define SCRIPT_MAX ((size_t)16 * 1024)
#define PROBE_MS   60000 /* timeout of one box */
#define CLOSE_MS   60000

/* Limits of the probe box. The script contains the same numbers. */
static const struct mo_box_limits limits = {
    .memory = 64 * MIB,
    .cpu_milli = 1000,
    .pids = 32,
    .workspace = 8 * MIB,
    .tmp = 4 * MIB,
    .workspace_inodes = 256,
    .tmp_inodes = 64,
    .file_size = 4 * MIB,
    .open_files = 64,
};

/* The shell lines succeed if the control holds. The last two use up memory and
 * processes, so nothing can run after them. */
struct control {
    const char *name, *promise, *test;
};

static const struct control controls[] = {
    {"user", "runs as a user of its own, not root", "[ \"$(id -u)\" != 0 ]"},
    {"capabilities", "has no capability, and can get none",
     "[ \"$(grep -c '^Cap[IPEBA].*:.*0000000000000000$' /proc/self/status)\" "
     "= 5 ]"},
    {"privileges", "cannot gain any by running another program",
     "grep -q '^NoNewPrivs:.*1$' /proc/self/status"},
    {"system calls", "are filtered",
     "grep -q '^Seccomp:.*2$' /proc/self/status"},
    {"root", "of its file system is read-only",
     "! touch /mo-probe && ! touch /bin/mo-probe && ! touch /etc/mo-probe"},
    {"workspace", "can be written to, and /tmp",
     "echo x >/workspace/a && echo x >/tmp/a && [ -s /workspace/a ]"},
    {"file size", "is limited",
     "! dd if=/dev/zero of=/workspace/a bs=1048576 count=5"},
    {"workspace size", "is limited",
     "dd if=/dev/zero of=/workspace/a bs=1048576 count=3 && "
     "dd if=/dev/zero of=/workspace/b bs=1048576 count=3 && "
     "! dd if=/dev/zero of=/workspace/c bs=1048576 count=3"},
    {"network", "there is none",
     "[ -z \"$(grep : /proc/net/dev | grep -v '^ *lo:')\" ]"},
    {"host", "nothing of homes, sockets and other sessions is seen",
     "[ -z \"$(ls -A /root)\" ] && [ -z \"$(ls -A /home)\" ] && "
     "[ ! -e /var/run/docker.sock ] && [ ! -e /run/docker.sock ]"},
    {"kernel settings", "cannot be written",
     "! sh -c ': >/proc/sys/kernel/core_pattern' && "
     "! sh -c 'echo b >/proc/sysrq-trigger'"},
    {"devices", "of the machine are not there, and cannot be made",
     "[ ! -e /dev/mem ] && [ ! -e /dev/kmsg ] && [ ! -e /dev/sda ] && "
     "! mknod /workspace/n c 1 1"},
    {"processes", "of others are not seen",
     "[ \"$(ls /proc | grep -c '^[0-9]')\" -lt 12 ]"},
    {"mounts", "cannot be made", "! mount -t tmpfs none /tmp"},
    {"namespaces", "cannot be made", "! unshare -U true"},
    {"open files", "are limited", "[ \"$(ulimit -n)\" -le 64 ]"},
    {"core files", "are not written", "[ \"$(ulimit -c)\" = 0 ]"},
    {"memory", "is limited",
     "! sh -c 'x=0123456789abcdef; while :; do x=$x$x; done'"},
    {"process count", "is limited",
     "! (i=0; while [ $i -lt 40 ]; do sleep 9 & i=$((i+1)); done)"},
};

/* Tried by the toolbox (toolbox/network_check.c) in a second box, which has a
 * network. */
static const struct control net_controls[] = {
    {"allowed host", "is resolved and reached", NULL},
    {"other names", "do not exist", NULL},
    {"addresses", "that were not named are refused", NULL},
    {"private ranges", "and metadata addresses are refused", NULL},
    {"other ports", "are refused", NULL},
    {"UDP", "goes nowhere, but to the box's name server", NULL},
    {"TLS names", "other than the host's are refused", NULL},
};

struct probe {
    struct mo_loop *loop;
    const struct mo_config *cfg;
    mo_box_probe_fn *row;
    void *ctx;
    struct mo_box_drivers *sandbox;
    struct mo_probe_hosts *hosts;
    struct mo_box *box;
    struct mo_stream *io, *err;
    struct mo_buf out;
    bool done, gone;
    char files[MO_BOX_ID_MAX]; /* the workspace of the last box; "": not kept */
    struct mo_err why;
};

/* --- one box ------------------------------------------------------------- */

static void check_done(struct probe *p)
{
    p->done = p->gone && !p->io && !p->err;
}

static void on_out(void *ctx, char *p, size_t n)
{
    (void)mo_buf_put(&((struct probe *)ctx)->out, p, n);
}

static void on_err(void *ctx, char *p, size_t n)
{
    (void)ctx;
    (void)p;
    (void)n;
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct probe *p = ctx;

    (void)why;
    p->io = NULL;
    check_done(p);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct probe *p = ctx;

    (void)why;
    p->err = NULL;
    check_done(p);
}

static void on_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    static const struct mo_stream_cb out = {.on_read = on_out,
                                            .on_close = on_out_close};
    static const struct mo_stream_cb err = {.on_read = on_err,
                                            .on_close = on_err_close};
    struct probe *p = ctx;

    p->box = b;
    (void)snprintf(p->files, sizeof(p->files), "%s", mo_box_files(b));
    p->io = io->io;
    p->err = io->err;
    mo_stream_attach(p->io, &out, p);
    if (p->err)
        mo_stream_attach(p->err, &err, p);
}

static void on_gone(void *ctx, const struct mo_box_end *end)
{
    struct probe *p = ctx;

    p->gone = true;
    p->box = NULL;
    if (end->cause == MO_BOX_REFUSED || end->cause == MO_BOX_ENGINE_GONE)
        (void)mo_fail(&p->why, end->why ? end->why->code : MO_EUNAVAIL,
                      "%s: %s", mo_box_cause_name(end->cause),
                      end->why ? end->why->msg : "");
    check_done(p);
}

static bool is_done(void *ctx)
{
    return ((struct probe *)ctx)->done;
}

static void put_script(struct mo_buf *b)
{
    mo_buf_puts(b, "export PATH=/bin:/usr/bin:/sbin:/usr/sbin\n");
    for (size_t i = 0; i < MO_COUNT(controls); i++)
        mo_buf_printf(b,
                      "if { %s; } >/dev/null 2>&1 </dev/null; "
                      "then echo '+%s'; else echo '-%s'; fi\n",
                      controls[i].test, controls[i].name, controls[i].name);
}

static void on_forgotten(void *ctx, const struct mo_err *why)
{
    (void)why; /* the claim has labels that say whose it is */
    ((struct probe *)ctx)->done = true;
}

static int run_box(struct probe *p, struct mo_boxes *bs,
                   const struct mo_box_spec *spec, struct mo_err *e)
{
    static const struct mo_box_cb cb = {on_ready, on_gone};
    int rc;

    p->done = p->gone = false;
    mo_err_clear(&p->why);
    mo_buf_reset(&p->out);
    rc = mo_box_start(bs, spec, &cb, p, &p->box, e);
    if (rc == 0 && !mo_loop_until(p->loop, is_done, p, PROBE_MS) && p->box) {
        mo_box_stop(p->box);
        (void)mo_loop_until(p->loop, is_done, p, CLOSE_MS);
    }
    if (rc == 0 && p->why.code)
        rc = mo_fail(e, p->why.code, "%s", p->why.msg);
    return rc;
}

static int run_script(struct probe *p, struct mo_boxes *bs, struct mo_err *e)
{
    const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
    struct mo_box_spec spec = {.limits = limits, .session = "", .argv = argv};
    mo_autobuf struct mo_buf script = {.max = SCRIPT_MAX};

    put_script(&script);
    argv[2] = mo_buf_cstr(&script);
    return run_box(p, bs, &spec, e);
}

/* A file of one box, read in the next. */
static int run_kept(struct probe *p, struct mo_boxes *bs, struct mo_err *e)
{
    const char *argv[] = {"/bin/sh", "-c",
                          "cat /workspace/kept || echo '+kept' "
                          ">/workspace/kept",
                          NULL};
    struct mo_box_spec spec = {
        .limits = limits, .session = "probe", .argv = argv, .keep = true};
    int rc;

    p->files[0] = '\0';
    rc = run_box(p, bs, &spec, e);
    spec.files = p->files;
    if (rc == 0 && !p->files[0])
        return mo_fail(e, MO_ETIMEOUT, "no box came up in %d s",
                       PROBE_MS / 1000);
    if (rc == 0)
        rc = run_box(p, bs, &spec, e);
    if (p->files[0]) {
        p->done = false;
        if (mo_boxes_forget(bs, p->files, on_forgotten, p, NULL) == 0)
            (void)mo_loop_until(p->loop, is_done, p, CLOSE_MS);
    }
    return rc;
}

static int run_network(struct probe *p, struct mo_boxes *bs, struct mo_err *e)
{
    char port[8], closed[8], network[96];
    const char *argv[] = {MO_BOX_TOOLBOX, "--check-network", port, closed,
                          NULL};
    struct mo_box_spec spec = {
        .limits = limits, .session = "", .argv = argv, .network = network};

    mo_probe_hosts_reset(p->hosts);
    (void)snprintf(port, sizeof(port), "%u", mo_probe_hosts_port(p->hosts));
    (void)snprintf(closed, sizeof(closed), "%u",
                   mo_probe_hosts_closed(p->hosts));
    (void)snprintf(network, sizeof(network),
                   "{\"allow\":[\"" MO_PROBE_ALLOWED "=127.0.0.1:%s\"]}", port);
    return run_box(p, bs, &spec, e);
}

/* --- all drivers ---------------------------------------------------------- */

/* '+', '-', or 0: the script ended before this control. */
static char verdict(struct mo_span out, const char *name)
{
    while (out.p) {
        struct mo_span line = mo_span_cut(&out, '\n');

        if (line.n > 1 && mo_span_is(mo_span_skip(line, 1), name))
            return line.p[0];
    }
    return 0;
}

static void report(struct probe *p, const char *driver,
                   const struct control *of, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        char v = verdict(mo_buf_view(&p->out), of[i].name);
        struct mo_box_probe_row r = {.driver = driver,
                                     .control = of[i].name,
                                     .promise = of[i].promise,
                                     .pass = v == '+'};

        if (!v)
            (void)snprintf(r.detail, sizeof(r.detail),
                           "the box ended before it could be tried");
        p->row(p->ctx, &r);
    }
}

/* True if the driver is configured by name, or is the only one. */
static bool is_asked_for(const struct probe *p, const char *driver)
{
    bool native = strcmp(driver, "native") == 0;
    bool any = false;
    size_t n;

    (void)mo_box_drivers_drivers(p->sandbox, &n);
    for (size_t i = 0; i < n; i++)
        any |= mo_box_drivers_ready(p->sandbox, i)->ok;
    return !any || strcmp(driver, "kubernetes") == 0 ||
           p->cfg->sandbox.driver ==
               (native ? MO_DRIVER_NATIVE : MO_DRIVER_DOCKER);
}

/* A driver that gives boxes no network breaks no promise. */
static void probe_network(struct probe *p, struct mo_boxes *bs)
{
    struct mo_box_probe_row r = {.driver = mo_boxes_driver(bs),
                                 .control = "hosts",
                                 .promise = "can be allowed to a box"};
    struct mo_err e = {0};

    r.pass = run_network(p, bs, &e) == 0;
    r.absent = e.code == MO_EINVAL;
    (void)snprintf(r.detail, sizeof(r.detail), "%s",
                   r.pass ? mo_boxes_network_way(bs) : e.msg);
    p->row(p->ctx, &r);
    r.detail[0] = '\0';
    if (!r.pass)
        return;
    report(p, r.driver, net_controls, MO_COUNT(net_controls));
    r.control = "other traffic";
    r.promise = "has not left the box";
    r.pass = mo_probe_hosts_alone(p->hosts);
    p->row(p->ctx, &r);
}

/* Claims depend on storage that only a real one shows. */
static void probe_claims(struct probe *p, struct mo_boxes *bs)
{
    const struct mo_config_sandbox *c = &p->cfg->sandbox;
    struct mo_box_probe_row r = {.driver = mo_boxes_driver(bs),
                                 .control = "kept files",
                                 .promise = "outlive their box"};
    struct mo_err e = {0};

    if (!c->keep_files || !c->kubernetes.claims ||
        strcmp(r.driver, "kubernetes") != 0)
        return;
    r.pass = run_kept(p, bs, &e) == 0 &&
             verdict(mo_buf_view(&p->out), "kept") == '+';
    (void)snprintf(r.detail, sizeof(r.detail), "%s", e.code ? e.msg : "");
    p->row(p->ctx, &r);
}

static void probe_driver(struct probe *p, size_t i)
{
    const struct mo_boxes_ready *ready = mo_box_drivers_ready(p->sandbox, i);
    struct mo_boxes *const *v;
    struct mo_box_probe_row r = {
        .control = "driver", .promise = "can be used here", .pass = ready->ok};
    struct mo_err e = {0};
    size_t n;

    v = mo_box_drivers_drivers(p->sandbox, &n);
    r.driver = mo_boxes_driver(v[i]);
    if (ready->ok && run_script(p, v[i], &e) < 0)
        r.pass = false;
    r.absent = !ready->ok && !is_asked_for(p, r.driver);
    (void)snprintf(r.detail, sizeof(r.detail), "%s",
                   e.code      ? e.msg
                   : ready->ok ? ready->what
                               : ready->why);
    p->row(p->ctx, &r);
    if (!r.pass)
        return;
    report(p, r.driver, controls, MO_COUNT(controls));
    probe_claims(p, v[i]);
    probe_network(p, v[i]);
}

static void on_sandbox(void *ctx, struct mo_box_drivers *sb,
                       const struct mo_err *why)
{
    struct probe *p = ctx;

    p->sandbox = sb;
    p->done = true;
    if (why)
        p->why = *why;
}

static void on_closed(void *ctx)
{
    ((struct probe *)ctx)->done = true;
}

int mo_box_probe(struct mo_loop *l, const struct mo_config *cfg,
                 mo_box_probe_fn *row, void *ctx, struct mo_err *e)
{
    struct mo_box_drivers_opts o = {
        .cfg = cfg, .store = "probe", .instance = "probe", .all = true};
    struct probe p = {.loop = l, .cfg = cfg, .row = row, .ctx = ctx};
    size_t n = 0;
    int rc = mo_box_drivers_open(l, &o, on_sandbox, &p, e);

    if (rc < 0)
        return rc;
    while (!mo_loop_until(l, is_done, &p, PROBE_MS))
        continue;
    if (!p.sandbox)
        return mo_fail(e, p.why.code, "%s", p.why.msg);
    mo_buf_init(&p.out, OUTPUT_MAX);
    rc = mo_probe_hosts_open(l, &p.hosts, e);
    (void)mo_box_drivers_drivers(p.sandbox, &n);
    for (size_t i = 0; rc == 0 && i < n; i++)
        probe_driver(&p, i);
    mo_probe_hosts_close(p.hosts);
    mo_buf_fini(&p.out);
    p.done = false;
    mo_box_drivers_close(p.sandbox, on_closed, &p);
    while (!mo_loop_until(l, is_done, &p, PROBE_MS))
        continue;
    return rc;
}
