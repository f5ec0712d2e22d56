#include "session/control.h"

#include <stdio.h>
#include <sys/un.h>
#include <unistd.h>

#include "codec/frame.h"
#include "codec/json/json.h"
#include "loop/net.h"

struct mo_control {
    struct mo_loop *loop;
    struct mo_sessions *ss;
    struct mo_listener *listener;
    struct mo_list conns;
    unsigned n;
    bool closing;
    struct mo_later later; /* the end */
    struct mo_gone gone;
    char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
};

/* One client. It lives until its stream is closed and its request is done. */
struct asker {
    struct mo_list node;
    struct mo_control *c;
    struct mo_stream *s; /* NULL: closed */
    struct mo_frame f;
    struct mo_timer late;
    bool asked, done;
};

/* --- the listening side -------------------------------------------------- */

static void free_if_over(struct mo_control *c)
{
    if (c->closing && c->n == 0)
        mo_loop_defer(c->loop, &c->later);
}

static void asker_settle(struct asker *a)
{
    struct mo_control *c = a->c;

    if (a->s || (a->asked && !a->done))
        return;
    mo_timer_stop(c->loop, &a->late);
    mo_frame_fini(&a->f);
    mo_list_del(&a->node);
    mo_free(a);
    c->n--;
    free_if_over(c);
}

static void answer_client(struct asker *a, const struct mo_err *why)
{
    mo_autobuf struct mo_buf b = {.max = MO_CONTROL_LINE};
    struct mo_jw w = mo_jw_object(&b);

    if (!a->s)
        return;
    mo_jw_member_bool(&w, "ok", !why);
    if (why) {
        mo_jw_member_i64(&w, "code", why->code);
        mo_jw_member_cstr(&w, "message", why->msg);
    }
    mo_jw_end(&w);
    mo_buf_putc(&b, '\n');
    (void)mo_stream_write(a->s, mo_buf_view(&b));
    mo_stream_finish(a->s, MO_CONTROL_MS);
}

static void on_ended(void *ctx, const struct mo_err *why)
{
    struct asker *a = ctx;

    a->done = true;
    answer_client(a, why);
    asker_settle(a);
}

static int run_request(struct asker *a, struct mo_span line, struct mo_err *e)
{
    char id[MO_SESSION_ID_MAX + 1];
    struct mo_json_doc d;
    bool forget;
    int rc = mo_json_parse(line, 0, &d, e);

    if (rc < 0)
        return rc;
    if (!mo_json_str_eq(mo_json_get(d.root, "op"), MO_SPAN("end")))
        return mo_fail(e, MO_EINVAL, "unknown operation");
    forget = mo_json_flag(d.root, "forget");
    rc = mo_json_str_copy(mo_json_get(d.root, "session"), id, sizeof(id));
    if (rc < 0)
        return mo_fail(e, rc, "the session's id is not valid");
    return mo_session_end(a->c->ss, mo_span_cstr(id), forget, on_ended, a, e);
}

static void on_read(void *ctx, char *p, size_t n)
{
    struct asker *a = ctx;
    struct mo_span in = mo_span(p, n), line;
    int rc = a->asked ? 0 : mo_frame_next(&a->f, &in, &line);
    struct mo_err e;

    if (rc == 0)
        return;
    a->asked = true;
    if (rc < 0)
        rc = mo_fail(&e, rc, "the request is too long");
    else
        rc = run_request(a, line, &e);
    if (rc == 0)
        return;
    a->done = true;
    answer_client(a, &e);
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct asker *a = ctx;

    (void)why;
    a->s = NULL;
    asker_settle(a);
}

static void on_late(struct mo_timer *t)
{
    struct asker *a = mo_container_of(t, struct asker, late);

    if (a->s)
        mo_stream_close(a->s, NULL);
}

/* Also where the directory was opened to others by mistake. */
static bool may_ask(const struct mo_control *c, const struct mo_stream *s)
{
    if (mo_stream_is_own_user(s))
        return !c->closing && c->n < MO_CONTROL_CONNS;
    mo_log_about(mo_loop_log(c->loop), MO_WARN, "session",
                 &(struct mo_log_facts){.from = mo_stream_peer(s)},
                 "refused at the control socket: another user");
    return false;
}

static void on_accept(void *ctx, struct mo_stream *s)
{
    static const struct mo_stream_cb cb = {.on_read = on_read,
                                           .on_close = on_close};
    struct mo_control *c = ctx;
    struct asker *a = may_ask(c, s) ? mo_new(struct asker) : NULL;

    if (!a) {
        mo_stream_close(s, NULL);
        return;
    }
    a->c = c;
    a->s = s;
    mo_frame_init(&a->f, MO_CONTROL_LINE);
    mo_timer_init(&a->late, on_late);
    mo_timer_start(c->loop, &a->late, MO_CONTROL_MS);
    mo_list_push(&c->conns, &a->node);
    c->n++;
    mo_stream_attach(s, &cb, a);
}

static void on_over(struct mo_later *d)
{
    struct mo_control *c = mo_container_of(d, struct mo_control, later);
    struct mo_gone gone = c->gone;

    mo_free(c);
    mo_gone_fire(gone);
}

int mo_control_path(char *out, size_t size, const char *dir,
                    const char *instance, struct mo_err *e)
{
    int n = snprintf(out, size, "%s/%s.sock", dir, instance);

    if (n < 0 || (size_t)n >= size ||
        (size_t)n >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
        return mo_fail(e, MO_ETOOBIG, "%s is too long for a socket in it", dir);
    return 0;
}

int mo_control_open(struct mo_loop *l, struct mo_sessions *ss, const char *path,
                    struct mo_control **out, struct mo_err *e)
{
    struct mo_control *c = mo_new(struct mo_control);
    struct mo_listen_opts o = {.backlog = MO_CONTROL_CONNS};
    char addr[sizeof(c->path) + 8];
    int rc;

    if (!c)
        return mo_fail(e, MO_ENOMEM, "control");
    c->loop = l;
    c->ss = ss;
    mo_list_init(&c->conns);
    mo_later_init(&c->later, on_over);
    (void)snprintf(c->path, sizeof(c->path), "%s", path);
    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    o.addr = addr;
    rc = mo_listen(l, &o, on_accept, c, &c->listener, e);
    if (rc < 0)
        mo_free(c);
    else
        *out = c;
    return rc;
}

void mo_control_close(struct mo_control *c, void (*gone)(void *ctx), void *ctx)
{
    c->closing = true;
    c->gone = (struct mo_gone){gone, ctx};
    mo_listener_close(c->listener);
    (void)unlink(c->path);
    mo_list_each_entry (a, &c->conns, struct asker, node) {
        if (a->s && !a->asked)
            mo_stream_close(a->s, NULL);
    }
    free_if_over(c);
}

/* --- the asking side ----------------------------------------------------- */

struct question {
    struct mo_loop *loop;
    struct mo_stream *s;
    struct mo_frame f;
    struct mo_timer late;
    struct mo_buf out;
    bool answered;
    struct mo_err why;
    mo_done_fn *done;
    void *ctx;
};

static void question_free(struct question *q)
{
    mo_timer_stop(q->loop, &q->late);
    mo_frame_fini(&q->f);
    mo_buf_fini(&q->out);
    mo_free(q);
}

static void question_over(struct question *q)
{
    struct question was = *q;

    question_free(q);
    was.done(was.ctx, was.why.code ? &was.why : NULL);
}

static void on_answer(void *ctx, char *p, size_t n)
{
    struct question *q = ctx;
    struct mo_span in = mo_span(p, n), line;
    struct mo_json_doc d;
    int64_t code = MO_EPROTO;
    char text[sizeof(q->why.msg)];

    if (q->answered || mo_frame_next(&q->f, &in, &line) != 1 ||
        mo_json_parse(line, 0, &d, NULL) < 0)
        return;
    q->answered = true;
    (void)mo_json_i64(mo_json_get(d.root, "code"), &code);
    mo_err_clear(&q->why);
    (void)mo_json_str_copy(mo_json_get(d.root, "message"), text, sizeof(text));
    if (!mo_json_flag(d.root, "ok"))
        (void)mo_fail(&q->why, (int)code, "%s", text);
    mo_stream_close(q->s, NULL);
}

static void on_question_close(void *ctx, const struct mo_err *why)
{
    struct question *q = ctx;

    if (!q->answered && !q->why.code)
        q->why =
            why ? *why
                : *mo_error(MO_ECLOSED, "the instance closed the connection");
    question_over(q);
}

static void on_question_late(struct mo_timer *t)
{
    struct question *q = mo_container_of(t, struct question, late);

    (void)mo_fail(&q->why, MO_ETIMEOUT, "the instance does not answer");
    if (q->s)
        mo_stream_close(q->s, &q->why);
}

static void on_dialed(void *ctx, struct mo_stream *s, const struct mo_err *why)
{
    static const struct mo_stream_cb cb = {.on_read = on_answer,
                                           .on_close = on_question_close};
    struct question *q = ctx;

    if (!s) {
        q->why = *why;
        question_over(q);
        return;
    }
    q->s = s;
    mo_stream_attach(s, &cb, q);
    (void)mo_stream_write(s, mo_buf_view(&q->out));
}

static void put_question(struct mo_buf *b, struct mo_span session, bool forget)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "op", "end");
    mo_jw_member(&w, "session", session);
    mo_jw_member_bool(&w, "forget", forget);
    mo_jw_end(&w);
    mo_buf_putc(b, '\n');
}

int mo_control_end(struct mo_loop *l, const char *path, struct mo_span session,
                   bool forget, mo_done_fn *done, void *ctx, struct mo_err *e)
{
    struct question *q = mo_new(struct question);
    char addr[sizeof(((struct sockaddr_un *)NULL)->sun_path) + 8];
    struct mo_dial *dial = NULL;
    int rc;

    if (!q)
        return mo_fail(e, MO_ENOMEM, "control");
    *q = (struct question){.loop = l, .done = done, .ctx = ctx};
    mo_frame_init(&q->f, MO_CONTROL_LINE);
    mo_buf_init(&q->out, MO_CONTROL_LINE);
    mo_timer_init(&q->late, on_question_late);
    put_question(&q->out, session, forget);
    rc = mo_buf_err(&q->out);
    if (rc < 0)
        (void)mo_fail(e, rc, "control");
    (void)snprintf(addr, sizeof(addr), "unix:%s", path);
    if (rc == 0)
        rc = mo_dial(l, addr, MO_CONTROL_MS, on_dialed, q, &dial, e);
    if (rc < 0) {
        question_free(q);
        return rc;
    }
    mo_timer_start(l, &q->late, MO_CONTROL_MS);
    return 0;
}
