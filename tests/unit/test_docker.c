/* The docker driver against an engine in the same loop: the whole life of a
 * box, with every allocation failing once. tests/it has the real engine. */
#include <unistd.h>

#include "box/box.h"

#include "codec/json/json.h"
#include "codec/tar.h"
#include "mo_net.h"

#define ID  "0123456789012345678901234567890123456789012345678901234567890123"
#define CTR "abcdef"

static char sock[PATH_LEN], host[PATH_LEN + 16];

/* --- an engine ----------------------------------------------------------- */

struct fake {
    struct mo_listener *ls;
    struct mo_list conns;
    struct mo_buf body; /* of create; "" = there is no container */
    bool running;
};

struct fconn {
    struct mo_list node;
    struct fake *f;
    struct mo_stream *s;
    struct mo_buf in;
    bool attached;
};

static struct mo_buf layers; /* what "save" gives */

static void put(struct mo_buf *b, const char *path, enum mo_tar_kind kind,
                struct mo_span data)
{
    struct mo_tar_entry t = {.kind = kind, .path = mo_span_cstr(path)};

    assert_int_equal(mo_tar_put(b, &t, data), 0);
}

static void make_layers(void)
{
    struct mo_buf inner;

    mo_buf_init(&inner, 65536);
    mo_buf_init(&layers, 65536);
    put(&inner, "bin/", MO_TAR_DIR, MO_SPAN(""));
    put(&inner, "bin/x", MO_TAR_FILE, MO_SPAN("x"));
    (void)mo_tar_put_end(&inner);
    put(&layers, "0/layer.tar", MO_TAR_FILE, mo_buf_view(&inner));
    put(&layers, "c.json", MO_TAR_FILE,
        MO_SPAN("{\"rootfs\":{\"diff_ids\":[\"sha256:0\"]}}"));
    put(&layers, "manifest.json", MO_TAR_FILE,
        MO_SPAN("[{\"Config\":\"c.json\",\"Layers\":[\"0/layer.tar\"]}]"));
    (void)mo_tar_put_end(&layers);
    mo_buf_fini(&inner);
}

static void say(struct fconn *c, int status, struct mo_span body)
{
    char head[96];
    int n = snprintf(head, sizeof(head),
                     "HTTP/1.1 %d X\r\nContent-Length: %zu\r\n\r\n", status,
                     body.n);
    struct mo_span v[] = {mo_span(head, (size_t)n), body};

    (void)mo_stream_writev(c->s, v, 2);
}

/* The account of the container: what create was asked, as inspect says it. */
static void say_inspect(struct fconn *c)
{
    struct mo_span body = mo_buf_view(&c->f->body);
    ptrdiff_t at = mo_span_search(body, MO_SPAN(",\"HostConfig\":"));
    struct mo_buf b;

    if (at < 0) {
        say(c, 404, MO_SPAN("{\"message\":\"none\"}"));
        return;
    }
    mo_buf_init(&b, 1 << 20);
    (void)mo_buf_printf(&b,
                        "{\"Id\":\"" CTR "\",\"Image\":\"sha256:" ID
                        "\",\"Mounts\":[],\"State\":{\"Running\":%s},"
                        "\"Config\":",
                        c->f->running ? "true" : "false");
    (void)mo_buf_span(&b, mo_span_head(body, (size_t)at));
    (void)mo_buf_puts(&b, "}");
    (void)mo_buf_span(&b, mo_span_skip(body, (size_t)at));
    say(c, 200, mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void drop_attached(struct fake *f)
{
    mo_list_each_safe (n, &f->conns) {
        struct fconn *c = mo_container_of(n, struct fconn, node);

        if (c->attached)
            mo_stream_close(c->s, NULL);
    }
}

static void answer(struct fconn *c, struct mo_span line, struct mo_span body)
{
#define HAS(text) (mo_span_search(line, MO_SPAN(text)) >= 0)
    if (HAS("/version")) {
        say(c, 200, MO_SPAN("{\"ApiVersion\":\"1.41\",\"Arch\":\"arm64\"}"));
    } else if (HAS("/info")) {
        say(c, 200,
            MO_SPAN("{\"MemoryLimit\":true,\"SwapLimit\":true,\"PidsLimit\":"
                    "true,\"CpuCfsQuota\":true,\"SecurityOptions\":"
                    "[\"name=seccomp\"]}"));
    } else if (HAS("/events")) {
        (void)mo_stream_write(c->s,
                              MO_SPAN("HTTP/1.1 200 X\r\n"
                                      "Transfer-Encoding: chunked\r\n\r\n"));
    } else if (HAS("/images/x/json")) {
        say(c, 200,
            MO_SPAN("{\"Id\":\"sha256:" ID "\",\"Os\":\"linux\",\"Config\":"
                    "{\"Entrypoint\":[\"/bin/x\"],\"Env\":[\"A=1\"]}}"));
    } else if (HAS("/get")) {
        say(c, 200, mo_buf_view(&layers));
    } else if (HAS("/create")) {
        mo_buf_reset(&c->f->body);
        if (mo_buf_span(&c->f->body, body) < 0)
            say(c, 500, MO_SPAN("{}"));
        else
            say(c, 201, MO_SPAN("{\"Id\":\"" CTR "\"}"));
    } else if (HAS("/attach")) {
        c->attached = true;
        (void)mo_stream_write(c->s, MO_SPAN("HTTP/1.1 101 X\r\nConnection: "
                                            "Upgrade\r\nUpgrade: tcp\r\n\r\n"));
    } else if (HAS("DELETE")) {
        mo_buf_reset(&c->f->body);
        c->f->running = false;
        say(c, 204, MO_SPAN(""));
        drop_attached(c->f);
    } else if (HAS("/start")) {
        c->f->running = true;
        say(c, 204, MO_SPAN(""));
    } else if (HAS("/containers/json")) {
        say(c, 200, MO_SPAN("[{\"Id\":\"a\",\"State\":\"exited\"}]"));
    } else if (HAS("/stats")) {
        say(c, 200, MO_SPAN("{\"memory_stats\":{\"usage\":5}}"));
    } else {
        say_inspect(c);
    }
#undef HAS
}

static void f_read(void *ctx, char *p, size_t n)
{
    struct fconn *c = ctx;
    struct mo_span all, head, cl;
    ptrdiff_t end, at;
    uint64_t len = 0;

    if (c->attached)
        return;
    if (mo_buf_put(&c->in, p, n) < 0) {
        mo_stream_close(c->s, NULL);
        return;
    }
    all = mo_buf_view(&c->in);
    end = mo_span_search(all, MO_SPAN("\r\n\r\n"));
    if (end < 0)
        return;
    head = mo_span_head(all, (size_t)end + 2);
    at = mo_span_search(head, MO_SPAN("Content-Length: "));
    if (at >= 0) {
        cl = mo_span_skip(head, (size_t)at + 16);
        (void)mo_span_u64(mo_span_cut(&cl, '\r'), &len);
    }
    if (all.n < (size_t)end + 4 + len)
        return;
    answer(c, mo_span_cut(&head, '\r'), mo_span(all.p + end + 4, (size_t)len));
    mo_buf_reset(&c->in);
}

static void f_close(void *ctx, const struct mo_err *why)
{
    struct fconn *c = ctx;

    (void)why;
    mo_list_del(&c->node);
    mo_buf_fini(&c->in);
    mo_free(c);
}

static const struct mo_stream_cb f_cb = {.on_read = f_read,
                                         .on_close = f_close};

static void f_accept(void *ctx, struct mo_stream *s)
{
    struct fake *f = ctx;
    struct fconn *c = mo_new(struct fconn);

    if (!c) {
        mo_stream_close(s, NULL);
        return;
    }
    c->f = f;
    c->s = s;
    mo_buf_init(&c->in, 1 << 20);
    mo_list_push(&f->conns, &c->node);
    mo_stream_attach(s, &f_cb, c);
}

/* --- a box --------------------------------------------------------------- */

struct life {
    struct mo_box *b;
    struct mo_box_io io;
    int ready, gone, lists, stats;
    enum mo_box_cause cause;
    bool closed;
};

static void on_ready(void *ctx, struct mo_box *b, const struct mo_box_io *io)
{
    struct life *l = ctx;

    (void)b;
    l->ready++;
    l->io = *io;
}

static void on_gone(void *ctx, const struct mo_box_end *end)
{
    struct life *l = ctx;

    l->gone++;
    l->cause = end->cause;
    l->b = NULL;
    if (l->io.io)
        mo_stream_close(l->io.io, NULL);
    if (l->io.err)
        mo_stream_close(l->io.err, NULL);
}

static const struct mo_box_cb box_cb = {on_ready, on_gone};

static void on_list(void *ctx, const struct mo_box_row *v, size_t n,
                    const struct mo_err *why)
{
    struct life *l = ctx;

    l->lists++;
    if (!why) {
        assert_int_equal(n, 1);
        assert_string_equal(v[0].id, "a");
        assert_false(v[0].running);
    }
}

static void on_stats(void *ctx, const struct mo_box_stats *s,
                     const struct mo_err *why)
{
    struct life *l = ctx;

    l->stats++;
    if (!why)
        assert_int_equal(s->memory, 5);
}

static void on_closed(void *ctx)
{
    ((struct life *)ctx)->closed = true;
}

static bool up_or_gone(void *ctx)
{
    struct life *l = ctx;

    return l->ready || l->gone;
}

static bool is_gone(void *ctx)
{
    return ((struct life *)ctx)->gone > 0;
}

static bool answered(void *ctx)
{
    struct life *l = ctx;

    return l->lists && l->stats;
}

static bool is_closed(void *ctx)
{
    return ((struct life *)ctx)->closed;
}

static void ask(struct mo_boxes *bs, struct life *l, struct mo_loop *loop)
{
    if (mo_boxes_list(bs, on_list, l, NULL) < 0)
        l->lists++;
    if (mo_box_stats(l->b, on_stats, l, NULL) < 0)
        l->stats++;
    wait_for(loop, answered, l);
}

static void live(struct mo_loop *loop, struct life *l)
{
    struct mo_boxes_opts o = {
        .store = "s", .instance = "i", .engine = host, .dir = "/tmp"};
    struct mo_box_spec spec = {.limits = mo_box_limits_default, .image = "x"};
    struct mo_box_spec with = spec;
    struct mo_boxes *bs;
    struct mo_err e;

    if (mo_boxes_docker(loop, &o, &bs, NULL) < 0)
        return;
    with.network = "{\"allow\":[\"a.org\"]}";
    e.code = 0;
    assert_true(mo_box_start(bs, &with, &box_cb, l, &l->b, &e) < 0);
    assert_true(e.code == MO_ENOMEM || strstr(e.msg, "not yet for docker"));
    if (mo_box_start(bs, &spec, &box_cb, l, &l->b, NULL) == 0) {
        wait_for(loop, up_or_gone, l);
        if (l->b)
            ask(bs, l, loop);
        if (l->b)
            mo_box_stop(l->b);
        wait_for(loop, is_gone, l);
        assert_int_equal(l->gone, 1);
    }
    mo_boxes_close(bs, on_closed, l);
    wait_for(loop, is_closed, l);
}

static void whole_life(void *ctx)
{
    struct life *out = ctx;
    struct life l = {.ready = 0};
    struct fake f = {.running = false};
    struct mo_listen_opts o = {.addr = sock};
    struct mo_loop *loop = mo_loop_new(NULL, NULL);

    if (!loop)
        return;
    mo_list_init(&f.conns);
    mo_buf_init(&f.body, 1 << 20);
    if (mo_listen(loop, &o, f_accept, &f, &f.ls, NULL) == 0) {
        live(loop, &l);
        mo_listener_close(f.ls);
    }
    mo_list_each_safe (n, &f.conns)
        mo_stream_close(mo_container_of(n, struct fconn, node)->s, NULL);
    mo_loop_run(loop);
    mo_loop_free(loop);
    mo_buf_fini(&f.body);
    *out = l;
}

static void all_goes_well(void **state)
{
    struct life l = {.ready = 0};

    (void)state;
    whole_life(&l);
    assert_int_equal(l.ready, 1);
    assert_int_equal(l.gone, 1);
    assert_int_equal(l.cause, MO_BOX_STOPPED);
    assert_true(l.closed);
}

static void memory_may_fail(void **state)
{
    struct life l = {.ready = 0};

    (void)state;
    torture(whole_life, &l);
}

static int setup(void **state)
{
    (void)state;
    (void)snprintf(sock, sizeof(sock), "unix:/tmp/mo-docker-%d.sock",
                   (int)getpid());
    (void)snprintf(host, sizeof(host), "unix://%s", sock + 5);
    make_layers();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(sock + 5);
    mo_buf_fini(&layers);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_goes_well),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
