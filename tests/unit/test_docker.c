/* The docker driver against an engine in the same loop: the whole life of a
 * box, with every allocation failing once. tests/it has the real engine. */
#include <elf.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "box/box.h"

#include "codec/json/json.h"
#include "codec/tar.h"
#include "mo_net.h"

#define ID  "0123456789012345678901234567890123456789012345678901234567890123"
#define CTR "abcdef"
#define NET "fedcba" /* the network container */
#define OLD "mo-net-0123456789abcdef"

static char sock[PATH_LEN], host[PATH_LEN + 16];

/* --- an engine ----------------------------------------------------------- */

enum fault { NO_FAULT, REFUSES, DIFFERS, SAYS_NO, SILENT };

struct fake {
    struct mo_listener *ls;
    struct mo_list conns;
    struct mo_buf body; /* of create; "" = there is no container */
    bool running;
    struct mo_buf net; /* likewise, of the network container */
    enum fault fault;  /* of that */
    bool net_started;
    const char *list; /* answer to a list of containers; NULL: one box */
    bool to_sweep;
    unsigned swept; /* requests to remove the network container OLD */
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

/* The value of a string member, wherever it is. */
static struct mo_span text_of(struct mo_span json, const char *key)
{
    char name[32];
    int n = snprintf(name, sizeof(name), "\"%s\":\"", key);
    ptrdiff_t at = mo_span_search(json, mo_span(name, (size_t)n));
    struct mo_span rest = mo_span_skip(json, (size_t)(at + n));

    assert_true(at >= 0);
    return mo_span_cut(&rest, '"');
}

/* The account of the container: what create was asked, as inspect says it. */
static void say_inspect(struct fconn *c, const struct mo_buf *of)
{
    struct mo_span body = mo_buf_view(of), image;
    ptrdiff_t at = mo_span_search(body, MO_SPAN(",\"HostConfig\":"));
    struct mo_buf b;

    if (at < 0) {
        say(c, 404, MO_SPAN("{\"message\":\"none\"}"));
        return;
    }
    mo_buf_init(&b, 1 << 20);
    image = text_of(body, "Image");
    (void)mo_buf_printf(&b,
                        "{\"Id\":\"" CTR
                        "\",\"Image\":\"%.*s\",\"Mounts\":[%s],"
                        "\"State\":{\"Running\":%s},\"Config\":",
                        (int)image.n, image.p,
                        of == &c->f->net && c->f->fault == DIFFERS
                            ? "{\"Type\":\"bind\",\"Source\":\"/etc\"}"
                            : "",
                        of == &c->f->body && c->f->running ? "true" : "false");
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

/* --- its network container ------------------------------------------------ */

static int any_socket(int type)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int fd = socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    if (type == SOCK_STREAM)
        assert_int_equal(listen(fd, 1), 0);
    return fd;
}

/* As launcher/container_net.c. */
static void hand_out(struct fake *f)
{
    struct mo_span dir = text_of(mo_buf_view(&f->net), "Source");
    int fds[] = {any_socket(SOCK_DGRAM), any_socket(SOCK_STREAM),
                 any_socket(SOCK_STREAM)};
    union {
        struct cmsghdr align;
        char room[CMSG_SPACE(sizeof(fds))];
    } control = {.room = ""};
    char text[] = "+", no[] = "-no route";
    struct iovec v = {f->fault == SAYS_NO ? no : text,
                      f->fault == SAYS_NO ? sizeof(no) - 1 : 1};
    struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
    struct cmsghdr *m = &control.align;
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int s = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    m->cmsg_level = SOL_SOCKET;
    m->cmsg_type = SCM_RIGHTS;
    m->cmsg_len = CMSG_LEN(sizeof(fds));
    memcpy(CMSG_DATA(m), fds, sizeof(fds));
    h.msg_control = f->fault == SAYS_NO ? NULL : &control;
    h.msg_controllen = f->fault == SAYS_NO ? 0 : sizeof(control);
    (void)snprintf(a.sun_path, sizeof(a.sun_path), "%.*s/up", (int)dir.n,
                   dir.p);
    assert_int_equal(connect(s, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_true(sendmsg(s, &h, 0) > 0);
    (void)close(s);
    for (size_t i = 0; i < MO_COUNT(fds); i++)
        (void)close(fds[i]);
}

/* True if the request was about it. */
static bool answer_net(struct fconn *c, struct mo_span line,
                       struct mo_span body)
{
    struct fake *f = c->f;

    if (mo_span_search(line, MO_SPAN("DELETE")) >= 0 &&
        mo_span_search(line, MO_SPAN(OLD)) >= 0)
        f->swept++;
    if (mo_span_search(line, MO_SPAN("mo-net-")) < 0 &&
        mo_span_search(line, MO_SPAN(NET)) < 0)
        return false;
    if (mo_span_search(line, MO_SPAN("/create")) >= 0) {
        (void)mo_buf_set(&f->net, f->fault == REFUSES ? MO_SPAN("") : body);
        say(c, f->fault == REFUSES ? 400 : 201,
            f->fault == REFUSES ? MO_SPAN("{\"message\":\"no such path\"}")
                                : MO_SPAN("{\"Id\":\"" NET "\"}"));
    } else if (mo_span_search(line, MO_SPAN("DELETE")) >= 0) {
        mo_buf_reset(&f->net);
        say(c, 204, MO_SPAN(""));
    } else if (mo_span_search(line, MO_SPAN("/start")) >= 0) {
        f->net_started = true;
        if (f->fault != SILENT)
            hand_out(f);
        say(c, 204, MO_SPAN(""));
    } else {
        say_inspect(c, &f->net);
    }
    return true;
}

static void answer(struct fconn *c, struct mo_span line, struct mo_span body)
{
#define HAS(text) (mo_span_search(line, MO_SPAN(text)) >= 0)
    if (answer_net(c, line, body))
        return;
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
    } else if (HAS("/images/")) {
        say(c, 200, MO_SPAN("{}"));
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
        say(c, 200,
            mo_span_cstr(c->f->list ? c->f->list
                                    : "[{\"Id\":\"a\",\"State\":\"exited\"}]"));
    } else if (HAS("/stats")) {
        say(c, 200, MO_SPAN("{\"memory_stats\":{\"usage\":5}}"));
    } else {
        say_inspect(c, &c->f->body);
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
    struct fake *f;
    struct mo_box *b;
    struct mo_box_io io;
    int ready, gone, lists, stats;
    enum mo_box_cause cause;
    char why[240];
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
    (void)snprintf(l->why, sizeof(l->why), "%s", end->why ? end->why->msg : "");
    l->b = NULL;
    if (l->io.io)
        mo_stream_close(l->io.io, NULL);
    if (l->io.err)
        mo_stream_close(l->io.err, NULL);
}

static const struct mo_box_cb box_cb = {on_ready, on_gone};

static void on_list(void *ctx, const struct mo_box_rows *rows,
                    const struct mo_err *why)
{
    struct life *l = ctx;

    l->lists++;
    if (!why) {
        assert_int_equal(rows->n, 1);
        assert_string_equal(rows->v[0].id, "a");
        assert_false(rows->v[0].running);
        assert_null(rows->next);
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

static bool answered_once(void *ctx)
{
    return ((struct life *)ctx)->lists == 1;
}

static bool is_closed(void *ctx)
{
    return ((struct life *)ctx)->closed;
}

static void ask(struct mo_boxes *bs, struct life *l, struct mo_loop *loop)
{
    if (mo_boxes_list(bs, NULL, on_list, l, NULL) < 0)
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
    struct mo_boxes *bs;

    if (mo_boxes_docker(loop, &o, &bs, NULL) < 0)
        return;
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

static void live_at(struct fake *f, struct life *out,
                    void (*run)(struct mo_loop *loop, struct life *l))
{
    struct life l = {.f = f};
    struct mo_listen_opts o = {.addr = sock};
    struct mo_loop *loop = mo_loop_new(NULL, NULL);

    if (!loop)
        return;
    mo_list_init(&f->conns);
    mo_buf_init(&f->body, 1 << 20);
    mo_buf_init(&f->net, 1 << 20);
    if (mo_listen(loop, &o, f_accept, f, &f->ls, NULL) == 0) {
        run(loop, &l);
        mo_listener_close(f->ls);
    }
    mo_list_each_safe (n, &f->conns)
        mo_stream_close(mo_container_of(n, struct fconn, node)->s, NULL);
    mo_loop_run(loop);
    mo_loop_free(loop);
    mo_buf_fini(&f->body);
    mo_buf_fini(&f->net);
    *out = l;
}

static void whole_life(void *ctx)
{
    struct fake f = {.running = false};

    live_at(&f, ctx, live);
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

/* --- a box with a network --------------------------------------------------
 */

static char dir[PATH_LEN];
static Elf64_Ehdr program; /* passes for a static one of this machine */

static bool has_started(void *ctx)
{
    return ((struct life *)ctx)->f->net_started;
}

/* Nothing of the network is left, neither container nor directory. */
static void check_nothing_left(const struct life *l)
{
    char net[PATH_LEN + 8];

    assert_int_equal(l->f->net.len, 0);
    assert_int_equal(l->f->body.len, 0);
    (void)snprintf(net, sizeof(net), "%s/net", dir);
    assert_int_equal(rmdir(net), 0);
}

static void live_networked(struct mo_loop *loop, struct life *l)
{
    struct mo_span bytes = mo_span((const char *)&program, sizeof(program));
    struct mo_boxes_opts o = {.store = "s",
                              .instance = "i",
                              .engine = host,
                              .dir = dir,
                              .toolbox = bytes,
                              .launcher = bytes};
    struct mo_box_spec spec = {.limits = mo_box_limits_default,
                               .image = "x",
                               .network = "{\"allow\":[\"a.org\"]}"};
    struct mo_boxes *bs;

    assert_int_equal(mo_boxes_docker(loop, &o, &bs, NULL), 0);
    assert_int_equal(mo_box_start(bs, &spec, &box_cb, l, &l->b, NULL), 0);
    if (l->f->fault == SILENT) {
        wait_for(loop, has_started, l);
        mo_box_stop(l->b);
    }
    wait_for(loop, up_or_gone, l);
    if (l->b) {
        struct mo_span at = text_of(mo_buf_view(&l->f->body), "NetworkMode");

        assert_true(mo_span_is(at, "container:" NET));
        mo_box_stop(l->b);
    }
    wait_for(loop, is_gone, l);
    check_nothing_left(l);
    mo_boxes_close(bs, on_closed, l);
    wait_for(loop, is_closed, l);
}

static void network_container(void **state)
{
    static const struct {
        const char *name;
        enum fault fault;
        int ready;
        enum mo_box_cause cause;
        const char *why;
    } rows[] = {
        {"good", NO_FAULT, 1, MO_BOX_STOPPED, ""},
        {"the engine refuses it", REFUSES, 0, MO_BOX_REFUSED, "no such path"},
        {"with another mount", DIFFERS, 0, MO_BOX_REFUSED, "changed Mounts"},
        {"it reports a failure", SAYS_NO, 0, MO_BOX_REFUSED, "no route"},
        {"stopped while it is silent", SILENT, 0, MO_BOX_STOPPED, ""},
    };

    (void)state;
    memcpy(program.e_ident, ELFMAG, SELFMAG);
    program.e_ident[EI_CLASS] = ELFCLASS64;
#if defined(__aarch64__)
    program.e_machine = EM_AARCH64;
#else
    program.e_machine = EM_X86_64;
#endif
    (void)snprintf(dir, sizeof(dir), "/tmp/mo-docker-XXXXXX");
    assert_non_null(mkdtemp(dir));
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct fake f = {.fault = rows[i].fault};
        struct life l = {.ready = 0};

        live_at(&f, &l, live_networked);
        check_row(rows[i].name, l.ready == rows[i].ready && l.gone == 1 &&
                                    l.cause == rows[i].cause &&
                                    strstr(l.why, rows[i].why));
    }
    assert_int_equal(rmdir(dir), 0);
}

#define OF_BOX(label)                                                          \
    "{\"Id\":\"a\",\"State\":\"exited\",\"Labels\":{\"mo.role\":\"box\","      \
    "\"mo.net\":\"" label "\"}}"
#define OF_NET(created, key)                                                   \
    "{\"Id\":\"n\",\"Created\":" created                                       \
    ",\"Labels\":{\"mo.role\":\"network\","                                    \
    "\"mo.net\":\"" key "\"}}"
#define KEY "0123456789abcdef"

static bool listed(void *ctx)
{
    struct life *l = ctx;

    return l->lists == 2;
}

static bool was_swept(void *ctx)
{
    return ((struct life *)ctx)->f->swept > 0;
}

/* The second list is answered after the removals of the first were sent. */
static void list_twice(struct mo_loop *loop, struct life *l)
{
    struct mo_boxes_opts o = {
        .store = "s", .instance = "i", .engine = host, .dir = "/tmp"};
    struct mo_boxes *bs;

    assert_int_equal(mo_boxes_docker(loop, &o, &bs, NULL), 0);
    assert_int_equal(mo_boxes_list(bs, NULL, on_list, l, NULL), 0);
    wait_for(loop, answered_once, l);
    assert_int_equal(mo_boxes_list(bs, NULL, on_list, l, NULL), 0);
    wait_for(loop, listed, l);
    if (l->f->to_sweep)
        wait_for(loop, was_swept, l);
    mo_boxes_close(bs, on_closed, l);
    wait_for(loop, is_closed, l);
}

static void networks_without_a_box(void **state)
{
    static const struct {
        const char *name, *list;
        bool swept;
    } rows[] = {
        {"its box is gone", "[" OF_BOX("") "," OF_NET("1", KEY) "]", true},
        {"its box is there", "[" OF_BOX(KEY ":" NET) "," OF_NET("1", KEY) "]",
         false},
        {"another's box is there",
         "[" OF_NET("1", KEY) "," OF_BOX("1" KEY ":" NET) "]", true},
        {"new", "[" OF_BOX("") "," OF_NET("99999999999", KEY) "]", false},
        {"no key of ours",
         "[" OF_BOX("") "," OF_NET("1", "../../../../etc") "]", false},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct fake f = {.list = rows[i].list, .to_sweep = rows[i].swept};
        struct life l = {.ready = 0};

        live_at(&f, &l, list_twice);
        check_row(rows[i].name, (f.swept > 0) == rows[i].swept);
    }
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
        cmocka_unit_test(network_container),
        cmocka_unit_test(networks_without_a_box),
        cmocka_unit_test(memory_may_fail),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
