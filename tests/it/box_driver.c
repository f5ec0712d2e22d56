/* box_driver.c - boxes, driven by lines of JSON.
 *
 *   box_driver --driver docker|native|kubernetes [--engine HOST] [--dir DIR]
 *              [--store S] [--instance I] [--toolbox FILE] [--launcher FILE]
 *              [--kubeconfig FILE] [--namespace NS] [--image IMAGE]
 *              [--claims CLASS] ...
 *
 * One operation a line on stdin, one event a line on stdout. A box has a name
 * that the test chooses ("box").
 *
 *   {"op":"start","box":"a","session":"s","image":"...","argv":[..],
 *    "env":[..],"limits":{"memory":..},"expires":..,"linger_ms":..,
 *    "keep":true,"files":".."}
 *   {"op":"adopt","box":"a","id":"..."}  {"op":"revive", as start, "id":".."}
 *   {"op":"write","box":"a","text":".."} {"op":"read","box":"a","on":false}
 *   {"op":"stop"|"letgo"|"stats","box":"a"}
 *   {"op":"list"}  {"op":"remove","id":".."}  {"op":"check"}
 *   {"op":"files"}  {"op":"forget","id":".."}
 *   {"op":"warm","n":2, as start}  {"op":"warm?"}  {"op":"close"}
 *
 * Events: ready {id, files, old, ms}, out {text}, err {text}, eof, gone {cause,
 * code, signal, kept, why, errno}, refused {why, errno}, stats, rows, removed,
 * check, warm, closed. ms counts from the operation. At the end of stdin all
 * boxes are let go and the program ends when they are. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/map.h"
#include "box/box.h"
#include "codec/frame.h"
#include "codec/json/json.h"

#define LINE_MAX_ ((size_t)8 * 1024 * 1024)
#define FILE_MAX_ ((size_t)64 * 1024 * 1024)

struct app {
    struct mo_loop *loop;
    struct mo_boxes *bs;
    struct mo_map boxes;
    struct mo_stream *in;
    struct mo_frame lines;
    struct mo_buf toolbox, launcher; /* the programs' bytes */
    bool closing;
};

struct one {
    struct app *app;
    struct mo_box *b;
    struct mo_stream *io, *err;
    uint64_t began;
    bool seen;
    char name[64];
};

/* --- events -------------------------------------------------------------- */

struct event {
    struct mo_buf b;
    struct mo_jw w;
};

static void ev_begin(struct event *ev, const char *what, const char *box)
{
    mo_buf_init(&ev->b, LINE_MAX_);
    mo_jw_init(&ev->w, &ev->b);
    mo_jw_obj(&ev->w);
    mo_jw_key(&ev->w, "ev");
    mo_jw_cstr(&ev->w, what);
    if (box) {
        mo_jw_key(&ev->w, "box");
        mo_jw_cstr(&ev->w, box);
    }
}

static void ev_str(struct event *ev, const char *key, const char *v)
{
    mo_jw_key(&ev->w, key);
    mo_jw_cstr(&ev->w, v);
}

static void ev_int(struct event *ev, const char *key, int64_t v)
{
    mo_jw_key(&ev->w, key);
    mo_jw_i64(&ev->w, v);
}

static void ev_bool(struct event *ev, const char *key, bool v)
{
    mo_jw_key(&ev->w, key);
    mo_jw_bool(&ev->w, v);
}

static void ev_why(struct event *ev, const struct mo_err *why)
{
    if (!why)
        return;
    ev_str(ev, "why", why->msg);
    ev_str(ev, "errno", mo_err_name(why->code));
}

static void ev_ms(struct event *ev, const struct one *o)
{
    mo_jw_key(&ev->w, "ms");
    mo_jw_f64(&ev->w, (double)((mo_now_ns() - o->began) / 1000) / 1000.0);
}

static void ev_end(struct event *ev)
{
    size_t at = 0;

    mo_jw_end(&ev->w);
    (void)mo_buf_putc(&ev->b, '\n');
    while (at < ev->b.len) {
        ssize_t n = write(STDOUT_FILENO, ev->b.p + at, ev->b.len - at);

        if (n <= 0)
            exit(1);
        at += (size_t)n;
    }
    mo_buf_fini(&ev->b);
}

/* --- a box --------------------------------------------------------------- */

static void say_bytes(struct one *o, const char *what, const char *p, size_t n)
{
    struct event ev;

    ev_begin(&ev, what, o->name);
    mo_jw_key(&ev.w, "text");
    mo_jw_str(&ev.w, mo_span(p, n));
    if (!o->seen)
        ev_ms(&ev, o);
    o->seen = true;
    ev_end(&ev);
}

static void on_out(void *ctx, char *p, size_t n)
{
    say_bytes(ctx, "out", p, n);
}

static void on_err(void *ctx, char *p, size_t n)
{
    say_bytes(ctx, "err", p, n);
}

static void on_out_eof(void *ctx)
{
    struct one *o = ctx;
    struct event ev;

    ev_begin(&ev, "eof", o->name);
    ev_end(&ev);
    mo_stream_close(o->io, NULL);
}

static void one_free(struct one *o)
{
    if (!o->b && !o->io && !o->err)
        mo_free(o);
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct one *o = ctx;

    (void)why;
    o->io = NULL;
    one_free(o);
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct one *o = ctx;

    (void)why;
    o->err = NULL;
    one_free(o);
}

static const struct mo_stream_cb out_cb = {
    .on_read = on_out, .on_eof = on_out_eof, .on_close = on_out_close};
static const struct mo_stream_cb err_cb = {.on_read = on_err,
                                           .on_close = on_err_close};

static void on_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    struct one *o = ctx;
    struct event ev;

    o->io = io->io;
    o->err = io->err;
    ev_begin(&ev, "ready", o->name);
    ev_str(&ev, "id", mo_box_id(b));
    ev_str(&ev, "files", mo_box_files(b));
    ev_bool(&ev, "old", mo_box_has_old_files(b));
    ev_ms(&ev, o);
    ev_end(&ev);
    mo_stream_attach(o->io, &out_cb, o);
    if (o->err)
        mo_stream_attach(o->err, &err_cb, o);
}

static void on_gone(void *ctx, const struct mo_box_end *end)
{
    struct one *o = ctx;
    struct event ev;

    ev_begin(&ev, "gone", o->name);
    ev_str(&ev, "cause", mo_box_cause_name(end->cause));
    ev_int(&ev, "code", end->code);
    ev_int(&ev, "signal", end->signal);
    ev_bool(&ev, "kept", end->workspace_kept);
    ev_why(&ev, end->why);
    ev_ms(&ev, o);
    ev_end(&ev);
    (void)mo_map_del(&o->app->boxes, mo_span_cstr(o->name));
    o->b = NULL;
    if (o->io)
        mo_stream_close(o->io, NULL);
    if (o->err)
        mo_stream_close(o->err, NULL);
    one_free(o);
}

static const struct mo_box_cb box_cb = {on_ready, on_gone};

/* --- operations ---------------------------------------------------------- */

static const char *str(struct mo_arena *a, struct mo_json v, const char *key)
{
    struct mo_span s;

    if (mo_json_str(mo_json_get(v, key), a, &s) < 0)
        return NULL;
    return mo_arena_strndup(a, s.n ? s.p : "", s.n);
}

static const char *const *strs(struct mo_arena *a, struct mo_json v)
{
    const char **out = NULL;
    struct mo_json_iter it;
    struct mo_json key, val;
    struct mo_span s;
    size_t n = 0;

    if (!mo_json_is(v, MO_JSON_ARRAY))
        return NULL;
    out = mo_arena_zalloc(a, (mo_json_len(v) + 1) * sizeof(*out));
    mo_json_iter(&it, v);
    while (mo_json_next(&it, &key, &val))
        if (mo_json_str(val, a, &s) == 0)
            out[n++] = mo_arena_strndup(a, s.n ? s.p : "", s.n);
    return out;
}

static void u64(struct mo_json v, const char *key, uint64_t *out)
{
    (void)mo_json_u64(mo_json_get(v, key), out);
}

static void u32(struct mo_json v, const char *key, unsigned *out)
{
    uint64_t n;

    if (mo_json_u64(mo_json_get(v, key), &n) == 0)
        *out = (unsigned)n;
}

static void read_spec(struct mo_arena *a, struct mo_json v,
                      struct mo_box_spec *s)
{
    struct mo_json lim = mo_json_get(v, "limits");

    *s = (struct mo_box_spec){.limits = mo_box_limits_default};
    u64(lim, "memory", &s->limits.memory);
    u64(lim, "workspace", &s->limits.workspace);
    u64(lim, "tmp", &s->limits.tmp);
    u64(lim, "file_size", &s->limits.file_size);
    u32(lim, "cpu_milli", &s->limits.cpu_milli);
    u32(lim, "pids", &s->limits.pids);
    u32(lim, "open_files", &s->limits.open_files);
    u32(lim, "workspace_inodes", &s->limits.workspace_inodes);
    u32(lim, "tmp_inodes", &s->limits.tmp_inodes);
    s->image = str(a, v, "image");
    s->files = str(a, v, "files");
    (void)mo_json_bool(mo_json_get(v, "keep"), &s->keep);
    s->session = str(a, v, "session");
    if (!s->session)
        s->session = "";
    s->argv = strs(a, mo_json_get(v, "argv"));
    s->env = strs(a, mo_json_get(v, "env"));
    u64(v, "expires", &s->expires);
    u64(v, "linger_ms", &s->linger_ms);
}

static void refused(const char *box, const struct mo_err *e)
{
    struct event ev;

    ev_begin(&ev, "refused", box);
    ev_why(&ev, e);
    ev_end(&ev);
}

static void op_start(struct app *app, struct mo_arena *a, struct mo_json v,
                     const char *op, const char *box)
{
    struct one *o = mo_new(struct one);
    struct mo_box_spec spec;
    const char *id = str(a, v, "id");
    struct mo_err e;
    int rc;

    o->app = app;
    o->began = mo_now_ns();
    (void)snprintf(o->name, sizeof(o->name), "%s", box);
    read_spec(a, v, &spec);
    if (strcmp(op, "adopt") == 0)
        rc = mo_box_adopt(app->bs, id, spec.session, &box_cb, o, &o->b, &e);
    else if (strcmp(op, "revive") == 0)
        rc = mo_box_revive(app->bs, id, &spec, &box_cb, o, &o->b, &e);
    else
        rc = mo_box_start(app->bs, &spec, &box_cb, o, &o->b, &e);
    if (rc < 0) {
        refused(box, &e);
        mo_free(o);
        return;
    }
    (void)mo_map_put(&app->boxes, mo_span_cstr(box), o, NULL);
}

static void on_rows(void *ctx, const struct mo_box_rows *rows,
                    const struct mo_err *why)
{
    const struct mo_box_row *v = rows->v;
    struct event ev;

    (void)ctx;
    ev_begin(&ev, "rows", NULL);
    ev_why(&ev, why);
    mo_jw_key(&ev.w, "rows");
    mo_jw_arr(&ev.w);
    for (size_t i = 0; i < rows->n; i++) {
        mo_jw_obj(&ev.w);
        ev_str(&ev, "id", v[i].id);
        ev_str(&ev, "session", v[i].session);
        ev_str(&ev, "instance", v[i].instance);
        ev_str(&ev, "policy", v[i].policy);
        ev_int(&ev, "expires", (int64_t)v[i].expires);
        ev_int(&ev, "started", (int64_t)v[i].started);
        ev_bool(&ev, "running", v[i].running);
        ev_bool(&ev, "paused", v[i].paused);
        ev_bool(&ev, "warm", v[i].warm);
        mo_jw_end(&ev.w);
    }
    mo_jw_end(&ev.w);
    if (rows->next)
        ev_str(&ev, "next", rows->next);
    ev_end(&ev);
}

static void on_removed(void *ctx, const struct mo_err *why)
{
    struct event ev;

    (void)ctx;
    ev_begin(&ev, "removed", NULL);
    ev_why(&ev, why);
    ev_end(&ev);
}

static void on_check(void *ctx, const struct mo_boxes_ready *r)
{
    struct event ev;

    (void)ctx;
    ev_begin(&ev, "check", NULL);
    ev_bool(&ev, "ok", r->ok);
    ev_str(&ev, "what", r->what);
    ev_str(&ev, "why", r->why);
    ev_end(&ev);
}

static void on_stats(void *ctx, const struct mo_box_stats *s,
                     const struct mo_err *why)
{
    struct event ev;

    (void)ctx;
    ev_begin(&ev, "stats", NULL);
    ev_why(&ev, why);
    if (s) {
        ev_int(&ev, "memory", (int64_t)s->memory);
        ev_int(&ev, "memory_peak", (int64_t)s->memory_peak);
        ev_int(&ev, "cpu_us", (int64_t)s->cpu_us);
        ev_int(&ev, "pids", s->pids);
    }
    ev_end(&ev);
}

static void on_closed(void *ctx)
{
    struct app *app = ctx;
    struct event ev;

    ev_begin(&ev, "closed", NULL);
    ev_end(&ev);
    app->bs = NULL;
    if (app->in)
        mo_stream_close(app->in, NULL);
}

static void op_close(struct app *app)
{
    if (app->closing)
        return;
    app->closing = true;
    mo_boxes_close(app->bs, on_closed, app);
}

static void op_box(struct one *o, struct mo_arena *a, struct mo_json v,
                   const char *op)
{
    const char *text = str(a, v, "text");
    bool on = true;
    struct mo_err e;

    if (strcmp(op, "stop") == 0)
        mo_box_stop(o->b);
    else if (strcmp(op, "letgo") == 0)
        mo_box_let_go(o->b);
    else if (strcmp(op, "stats") == 0 &&
             mo_box_stats(o->b, on_stats, o, &e) < 0)
        refused(o->name, &e);
    else if (strcmp(op, "write") == 0 && o->io && text)
        (void)mo_stream_write(o->io, mo_span_cstr(text));
    else if (strcmp(op, "read") == 0 && o->io) {
        (void)mo_json_bool(mo_json_get(v, "on"), &on);
        if (on)
            mo_stream_resume(o->io);
        else
            mo_stream_pause(o->io);
    }
}

static void op_warm(struct app *app, struct mo_arena *a, struct mo_json v)
{
    struct mo_box_spec spec;
    unsigned n = 0;
    struct mo_err e;

    u32(v, "n", &n);
    read_spec(a, v, &spec);
    if (mo_boxes_warm(app->bs, &spec, n, &e) < 0)
        refused(NULL, &e);
}

static void op_all(struct app *app, struct mo_arena *a, struct mo_json v,
                   const char *op)
{
    struct event ev;
    struct mo_err e;
    int rc = 0;

    if (strcmp(op, "list") == 0) {
        rc = mo_boxes_list(app->bs, str(a, v, "from"), on_rows, app, &e);
    } else if (strcmp(op, "remove") == 0) {
        rc = mo_boxes_remove(app->bs, str(a, v, "id"), on_removed, app, &e);
    } else if (strcmp(op, "files") == 0) {
        rc = mo_boxes_files(app->bs, str(a, v, "from"), on_rows, app, &e);
    } else if (strcmp(op, "forget") == 0) {
        rc = mo_boxes_forget(app->bs, str(a, v, "id"), on_removed, app, &e);
    } else if (strcmp(op, "check") == 0) {
        rc = mo_boxes_check(app->bs, on_check, app, &e);
    } else if (strcmp(op, "warm") == 0) {
        op_warm(app, a, v);
    } else if (strcmp(op, "warm?") == 0) {
        ev_begin(&ev, "warm", NULL);
        ev_int(&ev, "n", mo_boxes_warm_now(app->bs));
        ev_end(&ev);
    } else if (strcmp(op, "close") == 0) {
        op_close(app);
    }
    if (rc < 0)
        refused(NULL, &e);
}

static void line(struct app *app, struct mo_span text)
{
    struct mo_arena a;
    struct mo_json_doc doc;
    const char *op, *box;
    struct one *o;

    if (app->closing || mo_json_parse(text, 0, &doc, NULL) < 0)
        return;
    mo_arena_init(&a, LINE_MAX_);
    op = str(&a, doc.root, "op");
    box = str(&a, doc.root, "box");
    o = box ? mo_map_get(&app->boxes, mo_span_cstr(box)) : NULL;
    if (strcmp(op, "start") == 0 || strcmp(op, "adopt") == 0 ||
        strcmp(op, "revive") == 0)
        op_start(app, &a, doc.root, op, box);
    else if (o)
        op_box(o, &a, doc.root, op);
    else if (!box)
        op_all(app, &a, doc.root, op);
    mo_arena_fini(&a);
}

static void on_in(void *ctx, char *p, size_t n)
{
    struct app *app = ctx;
    struct mo_span in = mo_span(p, n), text;

    while (mo_frame_next(&app->lines, &in, &text) == 1)
        line(app, text);
}

static void on_in_eof(void *ctx)
{
    op_close(ctx);
}

static void on_in_close(void *ctx, const struct mo_err *why)
{
    struct app *app = ctx;

    (void)why;
    app->in = NULL;
    if (app->bs)
        op_close(app);
}

static const struct mo_stream_cb in_cb = {
    .on_read = on_in, .on_eof = on_in_eof, .on_close = on_in_close};

/* --- the program --------------------------------------------------------- */

static struct mo_span slurp(struct mo_buf *b, const char *path)
{
    FILE *f = fopen(path, "re");
    size_t n = 1;

    while (f && n) {
        char *p = mo_buf_room(b, 65536);

        n = p ? fread(p, 1, 65536, f) : 0;
        mo_buf_add(b, n);
    }
    if (f)
        (void)fclose(f);
    return mo_buf_view(b);
}

static void read_cluster(struct mo_box_cluster *c, const char *key,
                         const char *v)
{
    const struct {
        const char *key, **to;
    } rows[] = {
        {"--kubeconfig", &c->kubeconfig},
        {"--context", &c->context},
        {"--namespace", &c->ns},
        {"--image", &c->image},
        {"--runtime-class", &c->runtime_class},
        {"--node-selector", &c->node_selector},
        {"--pull-policy", &c->pull_policy},
        {"--claims", &c->storage_class},
    };

    c->claims |= strcmp(key, "--claims") == 0;
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (strcmp(key, rows[i].key) == 0)
            *rows[i].to = v;
}

static int open_boxes(struct app *app, int argc, char **argv, struct mo_err *e)
{
    struct mo_box_cluster cluster = {.ns = NULL};
    struct mo_boxes_opts o = {
        .store = "test", .instance = "one", .cluster = &cluster};
    const char *driver = "docker";

    for (int i = 1; i + 1 < argc; i += 2) {
        const char *key = argv[i], *v = argv[i + 1];

        if (strcmp(key, "--driver") == 0)
            driver = v;
        else if (strcmp(key, "--engine") == 0)
            o.engine = v;
        else if (strcmp(key, "--dir") == 0)
            o.dir = v;
        else if (strcmp(key, "--store") == 0)
            o.store = v;
        else if (strcmp(key, "--instance") == 0)
            o.instance = v;
        else if (strcmp(key, "--toolbox") == 0)
            o.toolbox = slurp(&app->toolbox, v);
        else if (strcmp(key, "--launcher") == 0)
            o.launcher = slurp(&app->launcher, v);
        else
            read_cluster(&cluster, key, v);
    }
    if (strcmp(driver, "kubernetes") == 0)
        return mo_boxes_kubernetes(app->loop, &o, &app->bs, e);
    if (strcmp(driver, "native") == 0)
        return mo_boxes_native(app->loop, &o, &app->bs, e);
    if (strcmp(driver, "docker") != 0)
        return mo_fail(e, MO_EINVAL, "no driver %s here", driver);
    return mo_boxes_docker(app->loop, &o, &app->bs, e);
}

int main(int argc, char **argv)
{
    struct app app = {.closing = false};
    struct mo_log log;
    struct mo_err e;

    mo_log_init(&log, STDERR_FILENO);
    mo_map_init(&app.boxes, 4096);
    mo_buf_init(&app.toolbox, FILE_MAX_);
    mo_buf_init(&app.launcher, FILE_MAX_);
    mo_frame_init(&app.lines, LINE_MAX_);
    app.loop = mo_loop_new(&log, &e);
    if (!app.loop || open_boxes(&app, argc, argv, &e) < 0 ||
        mo_stream_from_fds(app.loop, STDIN_FILENO, -1, &app.in, &e) < 0) {
        (void)fprintf(stderr, "box_driver: %s\n", e.msg);
        return 1;
    }
    mo_stream_attach(app.in, &in_cb, &app);
    mo_loop_run(app.loop);
    mo_loop_free(app.loop);
    mo_map_fini(&app.boxes);
    mo_frame_fini(&app.lines);
    mo_buf_fini(&app.toolbox);
    mo_buf_fini(&app.launcher);
    mo_log_fini(&log);
    return 0;
}
