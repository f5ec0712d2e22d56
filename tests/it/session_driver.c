/* session_driver.c - a server's sessions, driven by lines of JSON.
 *
 *   session_driver CONFIG
 *
 * Opens what the configuration says (app/runtime.h) and does one operation a
 * line of stdin, one event a line of stdout. A hold has a name that the test
 * chooses ("h").
 *
 *   {"op":"hold","h":"a","session":"s"}   {"op":"release","h":"a"}
 *   {"op":"call","h":"a","id":1,"tool":"...","args":{..}}
 *   {"op":"use","h":"a"}  {"op":"busy","h":"a","on":true}
 *   {"op":"append","h":"a","id":1,"doc":{..}}   an entry of the conversation
 *   {"op":"end","session":"s","forget":false}
 *   {"op":"sweep"}  {"op":"stats"}  {"op":"close"}
 *
 * Events: open {instance}, ready {h, box, driver, workspace, resumed,
 * keepsFiles, us},
 * lost {h, cause, why}, box {h, box, workspace}, idle {h, left}, closed {h,
 * reason, why}, answer {id, result|error}, used {h, box, why}, appended {id,
 * seq, why}, ended {session, why}, swept, stats, bye. At the end of stdin
 * everything is closed; boxes of living sessions stay. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "app/runtime.h"
#include "base/map.h"
#include "codec/frame.h"
#include "codec/json/json.h"

#define LINE_MAX_ ((size_t)8 * 1024 * 1024)

struct driver {
    struct mo_loop *loop;
    struct mo_config_holder cfg;
    struct mo_runtime *house;
    struct mo_map holds;
    struct mo_stream *in;
    struct mo_frame lines;
    struct mo_log log;
    bool over;
};

struct user {
    struct driver *d;
    struct mo_hold *h;
    struct mo_conn *conn;
    uint64_t fence, began;
    char name[64], session[MO_SESSION_ID_MAX + 1];
};

struct asked { /* somebody waits for an answer to id */
    struct driver *d;
    char id[64], session[MO_SESSION_ID_MAX + 1];
};

/* --- events -------------------------------------------------------------- */

struct event {
    struct mo_buf b;
    struct mo_jw w;
};

static void ev(struct event *x, const char *what)
{
    mo_buf_init(&x->b, LINE_MAX_);
    mo_jw_init(&x->w, &x->b);
    mo_jw_obj(&x->w);
    mo_jw_key(&x->w, "ev");
    mo_jw_cstr(&x->w, what);
}

static void ev_str(struct event *x, const char *key, const char *v)
{
    mo_jw_key(&x->w, key);
    mo_jw_cstr(&x->w, v);
}

static void ev_u64(struct event *x, const char *key, uint64_t v)
{
    mo_jw_key(&x->w, key);
    mo_jw_u64(&x->w, v);
}

static void ev_raw(struct event *x, const char *key, struct mo_span v)
{
    mo_jw_key(&x->w, key);
    mo_jw_raw(&x->w, v.n ? v : MO_SPAN("null"));
}

static void ev_why(struct event *x, const struct mo_err *why)
{
    ev_str(x, "why", why ? why->msg : NULL);
    ev_str(x, "code", why ? mo_err_name(why->code) : NULL);
}

static void ev_send(struct event *x)
{
    struct mo_span s;

    mo_jw_end(&x->w);
    mo_buf_putc(&x->b, '\n');
    s = mo_buf_view(&x->b);
    while (s.n) {
        ssize_t n = write(STDOUT_FILENO, s.p, s.n);

        if (n <= 0)
            break;
        s = mo_span_skip(s, (size_t)n);
    }
    mo_buf_fini(&x->b);
}

/* --- holds --------------------------------------------------------------- */

static const char *const workspaces[] = {"fresh", "kept", "lost"};

static void put_info(struct event *x, struct user *u,
                     const struct mo_session_info *info)
{
    u->conn = info->conn;
    u->fence = info->fence;
    ev_str(x, "h", u->name);
    ev_str(x, "box", info->box);
    ev_str(x, "driver", info->driver);
    ev_str(x, "workspace", workspaces[info->workspace]);
    mo_jw_key(&x->w, "resumed");
    mo_jw_bool(&x->w, info->resumed);
    mo_jw_member_bool(&x->w, "keepsFiles", info->keeps_files);
    ev_u64(x, "us", (mo_now_ns() - u->began) / 1000);
}

static void on_ready(void *ctx, struct mo_hold *h,
                     const struct mo_session_info *info)
{
    struct event x;

    (void)h;
    ev(&x, "ready");
    put_info(&x, ctx, info);
    ev_send(&x);
}

static void on_box(void *ctx, struct mo_hold *h, const struct mo_box_end *end,
                   const struct mo_session_info *info)
{
    struct user *u = ctx;
    struct event x;

    (void)h;
    ev(&x, end ? "lost" : "box");
    if (end) {
        u->conn = NULL;
        ev_str(&x, "h", u->name);
        ev_str(&x, "cause", mo_box_cause_name(end->cause));
        ev_why(&x, end->why);
    } else {
        put_info(&x, u, info);
    }
    ev_send(&x);
}

static void on_idle(void *ctx, struct mo_hold *h, unsigned left)
{
    struct event x;

    (void)h;
    ev(&x, "idle");
    ev_str(&x, "h", ((struct user *)ctx)->name);
    ev_u64(&x, "left", left);
    ev_send(&x);
}

static void user_free(struct user *u)
{
    (void)mo_map_del(&u->d->holds, mo_span_cstr(u->name));
    mo_free(u);
}

static void on_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct user *u = ctx;
    struct event x;

    ev(&x, "closed");
    ev_str(&x, "h", u->name);
    ev_str(&x, "reason", reason);
    ev_why(&x, why);
    ev_send(&x);
    user_free(u);
}

static const struct mo_hold_cb hold_cb = {
    .on_ready = on_ready,
    .on_box = on_box,
    .on_idle = on_idle,
    .on_closed = on_closed,
};

static void text_of(struct mo_json op, const char *key, char *out, size_t size)
{
    struct mo_json v = mo_json_get(op, key);
    struct mo_buf b;

    out[0] = '\0';
    if (!v.p)
        return;
    mo_buf_init(&b, size - 1);
    if (mo_json_is(v, MO_JSON_STRING))
        (void)mo_json_str_buf(v, &b);
    else
        (void)mo_buf_span(&b, mo_json_text(v));
    (void)snprintf(out, size, "%s", mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

static void refuse(const char *what, const char *key, const char *id,
                   const struct mo_err *why)
{
    struct event x;

    ev(&x, what);
    ev_str(&x, key, id);
    ev_str(&x, "reason", "refused");
    ev_why(&x, why);
    ev_send(&x);
}

static void do_hold(struct driver *d, struct mo_json op)
{
    struct user *u = mo_new(struct user);
    struct mo_err e;

    if (!u)
        abort();
    u->d = d;
    u->began = mo_now_ns();
    text_of(op, "h", u->name, sizeof(u->name));
    text_of(op, "session", u->session, sizeof(u->session));
    if (mo_map_put(&d->holds, mo_span_cstr(u->name), u, NULL) < 0)
        abort();
    if (mo_session_hold(mo_runtime_sessions(d->house), mo_span_cstr(u->session),
                        mo_span(NULL, 0), &hold_cb, u, &u->h, &e) == 0)
        return;
    refuse("closed", "h", u->name, &e);
    user_free(u);
}

static struct user *user_of(struct driver *d, struct mo_json op)
{
    char name[64];

    text_of(op, "h", name, sizeof(name));
    return mo_map_get(&d->holds, mo_span_cstr(name));
}

static void do_release(struct driver *d, struct mo_json op)
{
    struct user *u = user_of(d, op);

    if (!u)
        return;
    mo_session_release(u->h);
    user_free(u);
}

static void do_busy(struct driver *d, struct mo_json op)
{
    struct user *u = user_of(d, op);
    bool on = false;

    (void)mo_json_bool(mo_json_get(op, "on"), &on);
    if (u)
        mo_session_busy(u->h, on);
}

/* --- calls --------------------------------------------------------------- */

static struct asked *asked_new(struct driver *d, struct mo_json op)
{
    struct asked *a = mo_new(struct asked);

    if (!a)
        abort();
    a->d = d;
    text_of(op, "id", a->id, sizeof(a->id));
    text_of(op, "session", a->session, sizeof(a->session));
    return a;
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct asked *a = ctx;
    struct event x;

    ev(&x, "answer");
    ev_str(&x, "id", a->id);
    ev_raw(&x, "result", mo_json_text(r->result));
    ev_raw(&x, "error", mo_json_text(r->error));
    ev_why(&x, r->err);
    ev_send(&x);
    mo_free(a);
}

static void do_call(struct driver *d, struct mo_json op)
{
    struct user *u = user_of(d, op);
    struct asked *a = asked_new(d, op);
    struct mo_call_opts o = {.done = on_answer, .ctx = a};
    struct mo_err e = {.code = MO_ECLOSED, .msg = "there is no connection"};
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, LINE_MAX_);
    mo_jw_init(&w, &b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "name");
    mo_jw_raw(&w, mo_json_text(mo_json_get(op, "tool")));
    mo_jw_key(&w, "arguments");
    mo_jw_raw(&w, mo_json_text(mo_json_get(op, "args")));
    mo_jw_end(&w);
    if (!u || !u->conn ||
        !mo_conn_request(u->conn, "tools/call", mo_buf_view(&b), &o, &e)) {
        refuse("answer", "id", a->id, &e);
        mo_free(a);
    }
    mo_buf_fini(&b);
}

static void on_used(void *ctx, const struct mo_session_info *info,
                    const struct mo_err *why)
{
    struct user *u = ctx;
    struct event x;

    ev(&x, "used");
    if (info)
        put_info(&x, u, info);
    else
        ev_str(&x, "h", u->name);
    ev_why(&x, why);
    ev_send(&x);
}

static void do_use(struct driver *d, struct mo_json op)
{
    struct user *u = user_of(d, op);
    struct mo_err e;

    if (!u)
        return;
    u->began = mo_now_ns();
    if (mo_session_use(u->h, on_used, u, &e) < 0)
        refuse("used", "h", u->name, &e);
}

/* --- the store ----------------------------------------------------------- */

static void on_appended(void *ctx, const struct mo_written *w,
                        const struct mo_err *why)
{
    struct asked *a = ctx;
    struct event x;

    ev(&x, "appended");
    ev_str(&x, "id", a->id);
    ev_u64(&x, "seq", why ? 0 : w->seq);
    ev_why(&x, why);
    ev_send(&x);
    mo_free(a);
}

static void do_append(struct driver *d, struct mo_json op)
{
    struct user *u = user_of(d, op);
    struct asked *a = asked_new(d, op);
    struct mo_write w = {.kind = MO_WRITE_ENTRY,
                         .doc = mo_json_text(mo_json_get(op, "doc"))};
    struct mo_store_batch b = {.writes = &w, .n = 1};
    struct mo_err e = {.code = MO_ECLOSED, .msg = "no such hold"};
    int rc = -1;

    if (u) {
        b.session = mo_span_cstr(u->session);
        b.fence = u->fence;
        rc = mo_store_write(mo_runtime_store(d->house), &b, on_appended, a, &e);
        mo_session_touch(u->h);
    }
    if (rc < 0) {
        refuse("appended", "id", a->id, &e);
        mo_free(a);
    }
}

static void on_ended(void *ctx, const struct mo_err *why)
{
    struct asked *a = ctx;
    struct event x;

    ev(&x, "ended");
    ev_str(&x, "session", a->session);
    ev_why(&x, why);
    ev_send(&x);
    mo_free(a);
}

static void do_end(struct driver *d, struct mo_json op)
{
    struct asked *a = asked_new(d, op);
    bool forget = false;
    struct mo_err e;

    (void)mo_json_bool(mo_json_get(op, "forget"), &forget);
    if (mo_runtime_end(d->house, mo_span_cstr(a->session), forget, on_ended, a,
                       &e) < 0)
        on_ended(a, &e);
}

static void on_swept(void *ctx)
{
    struct event x;

    (void)ctx;
    ev(&x, "swept");
    ev_send(&x);
}

static void do_sweep(struct driver *d, struct mo_json op)
{
    struct mo_err e;

    (void)op;
    if (mo_sessions_sweep(mo_runtime_sessions(d->house), on_swept, d, &e) < 0)
        refuse("swept", "h", NULL, &e);
}

static void do_stats(struct driver *d, struct mo_json op)
{
    struct mo_sessions_stats st =
        mo_sessions_stats(mo_runtime_sessions(d->house));
    struct event x;

    (void)op;
    ev(&x, "stats");
    ev_u64(&x, "open", st.open);
    ev_u64(&x, "ready", st.ready);
    ev_u64(&x, "holds", st.holds);
    ev_u64(&x, "warm", st.warm);
    ev_u64(&x, "started", st.started);
    ev_u64(&x, "adopted", st.adopted);
    ev_u64(&x, "revived", st.revived);
    ev_u64(&x, "reaped", st.reaped);
    ev_u64(&x, "swept", st.swept);
    ev_u64(&x, "lost", st.lost);
    ev_send(&x);
}

/* --- the program --------------------------------------------------------- */

static void on_gone(void *ctx)
{
    ((struct driver *)ctx)->over = true;
}

static void do_close(struct driver *d, struct mo_json op)
{
    (void)op;
    if (d->in)
        mo_stream_close(d->in, NULL);
}

static const struct {
    const char *name;
    void (*run)(struct driver *d, struct mo_json op);
} ops[] = {
    {"hold", do_hold},   {"release", do_release}, {"busy", do_busy},
    {"call", do_call},   {"use", do_use},         {"append", do_append},
    {"end", do_end},     {"sweep", do_sweep},     {"stats", do_stats},
    {"close", do_close},
};

static void on_line(struct driver *d, struct mo_span line)
{
    struct mo_json_doc doc;
    char name[16];

    if (mo_json_parse(line, 0, &doc, NULL) < 0)
        return;
    text_of(doc.root, "op", name, sizeof(name));
    for (size_t i = 0; i < MO_COUNT(ops); i++) {
        if (strcmp(ops[i].name, name) == 0)
            ops[i].run(d, doc.root);
    }
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct driver *d = ctx;
    struct mo_span in = mo_span(p, n), line;

    while (in.n && d->in && mo_frame_next(&d->lines, &in, &line) == 1)
        on_line(d, line);
}

static void on_in_close(void *ctx, const struct mo_err *why)
{
    struct driver *d = ctx;

    (void)why;
    d->in = NULL;
    mo_runtime_close(d->house, on_gone, d);
}

static void on_open(void *ctx, struct mo_runtime *h, const struct mo_err *why)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_in_close};
    struct driver *d = ctx;
    struct event x;
    struct mo_err e;

    ev(&x, "open");
    ev_str(&x, "instance", h ? mo_runtime_instance(h) : NULL);
    ev_why(&x, why);
    ev_send(&x);
    d->house = h;
    d->over = !h;
    if (!h)
        return;
    if (mo_stream_from_fds(d->loop, dup(STDIN_FILENO), -1, &d->in, &e) < 0)
        abort();
    mo_stream_attach(d->in, &cb, d);
}

static bool is_over(void *ctx)
{
    return ((struct driver *)ctx)->over;
}

int main(int argc, char **argv)
{
    static struct mo_config_report rep;
    struct driver d = {.over = false};
    struct mo_config_input in = {.file = argc > 1 ? argv[1] : NULL,
                                 .environ = environ};
    struct event x;
    struct mo_err e;

    mo_log_init(&d.log, STDERR_FILENO);
    mo_map_init(&d.holds, 4096);
    mo_frame_init(&d.lines, LINE_MAX_);
    if (mo_config_open(&d.cfg, &in, &rep, &e) < 0) {
        fprintf(stderr, "%s\n", rep.kept ? rep.v[0].text : e.msg);
        return 1;
    }
    (void)mo_log_levels(&d.log, mo_span_cstr(d.cfg.now->log.level), NULL);
    d.loop = mo_loop_new(&d.log, &e);
    if (!d.loop || mo_runtime_open(d.loop, d.cfg.now, MO_RUNTIME_SESSIONS,
                                   on_open, &d, &e) < 0)
        return 1;
    while (!mo_loop_until(d.loop, is_over, &d, 3600000))
        continue;
    ev(&x, "bye");
    ev_send(&x);
    mo_loop_free(d.loop);
    mo_config_close(&d.cfg);
    mo_map_fini(&d.holds);
    mo_frame_fini(&d.lines);
    mo_log_fini(&d.log);
    return 0;
}
