#include "toolbox/serve.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/frame.h"
#include "codec/rpc_scan.h"
#include "toolbox/box.h"
#include "toolbox/files.h"
#include "toolbox/server.h"

#define READ_MAX ((size_t)64 * 1024)
#define HIGH     ((size_t)1024 * 1024)
#define OUT_MAX  ((size_t)96 * 1024 * 1024) /* HIGH plus all results */
#define END_NS   (4 * MO_S)                 /* limit of an orderly stop */
#define AGAIN_NS (200 * MO_MS) /* until stdin is read again, with `stay` */

static const char instructions[] =
    "Files and commands of one workspace. Paths are relative to it and cannot "
    "leave it. Read before you change: edit_file replaces an exact text, "
    "write_file a whole file. execute_command runs in the workspace without a "
    "terminal; commands must end within their timeout or put what stays into "
    "the background with its output redirected. Long results are cut, and say "
    "so and how to get the rest.";

struct serve {
    struct tb_box box;
    struct tb_server server;
    bool stay, ending, over;

    struct tb_watch in, out, signals;
    struct tb_timer again, end;
    struct mo_frame frame;
    bool skipping;           /* the rest of a line that was too long */
    struct mo_rpc_scan scan; /* that line */
    struct mo_span unread;
    char bytes[READ_MAX]; /* after unread */

    struct mo_buf queue; /* for stdout */
    size_t sent;         /* of queue */
};

/* --- out ----------------------------------------------------------------- */

static size_t bytes_waiting(const struct serve *s)
{
    return s->queue.len - s->sent;
}

static bool is_full(const struct serve *s)
{
    return bytes_waiting(s) > HIGH;
}

static void begin_stop(struct serve *s);

static void on_message(void *to, struct mo_span message)
{
    struct serve *s = to;

    if (message.n + 1 > OUT_MAX - s->queue.len)
        return; /* impossible: OUT_MAX has room for every result */
    mo_buf_span(&s->queue, message);
    mo_buf_putc(&s->queue, '\n');
    s->out.events = POLLOUT;
}

static void drop_queue(struct serve *s)
{
    mo_buf_fini(&s->queue);
    s->sent = 0;
}

static void write_queue(struct serve *s)
{
    ssize_t n = 0;

    if (bytes_waiting(s))
        n = write(1, s->queue.p + s->sent, bytes_waiting(s));
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n < 0) {
        drop_queue(s); /* nobody reads */
        if (!s->stay)
            begin_stop(s);
    } else {
        s->sent += (size_t)n;
    }
    if (bytes_waiting(s) == 0) {
        drop_queue(s);
    } else if (s->sent > HIGH) { /* drop sent bytes before it fills */
        mo_buf_drop(&s->queue, s->sent);
        s->sent = 0;
    }
}

static void on_writable(struct tb_watch *w)
{
    write_queue(mo_container_of(w, struct serve, out));
}

/* --- in ------------------------------------------------------------------ */

static void skip_line(struct serve *s)
{
    struct mo_span piece;
    int ended = mo_frame_skip(&s->frame, &s->unread, &piece);
    struct mo_json id;

    (void)mo_rpc_scan_feed(&s->scan, piece);
    s->skipping = !ended;
    if (!ended)
        return;
    if (mo_rpc_scan_end(&s->scan, &id) != MO_RPC_REQUEST)
        id = (struct mo_json){NULL, 0};
    tb_server_overlong(&s->server, mo_json_text(id));
}

static void take_line(struct serve *s)
{
    struct mo_span line;
    int rc = mo_frame_next(&s->frame, &s->unread, &line);

    if (rc > 0)
        tb_server_line(&s->server, line);
    if (rc >= 0)
        return;
    s->skipping = true;
    mo_rpc_scan_init(&s->scan);
    if (rc != MO_ETOOBIG) /* the line's beginning is lost, and so is its id */
        (void)mo_rpc_scan_feed(&s->scan, MO_SPAN("!"));
}

static void take_lines(struct serve *s)
{
    while (s->unread.n && !is_full(s) && !s->ending) {
        if (s->skipping)
            skip_line(s);
        else
            take_line(s);
    }
}

static void on_again(struct tb_timer *t)
{
    mo_container_of(t, struct serve, again)->in.events = POLLIN;
}

static void on_readable(struct tb_watch *w)
{
    struct serve *s = mo_container_of(w, struct serve, in);
    ssize_t n = read(0, s->bytes, sizeof(s->bytes));

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n > 0) {
        s->unread = mo_span(s->bytes, (size_t)n);
    } else if (s->stay) { /* another writer may open it again */
        w->events = 0;
        tb_timer_start(&s->box.loop, &s->again, AGAIN_NS);
    } else {
        begin_stop(s);
    }
}

/* After every round: send, as the peer can mostly take it, and decide who may
 * continue. Lines that wait because the queue was full are taken in the next
 * round, which POLLOUT begins. */
static void update_watches(struct serve *s)
{
    bool full;

    take_lines(s);
    write_queue(s);
    full = is_full(s);
    if (full != s->box.exec.paused)
        tb_exec_pause(&s->box.exec, full);
    s->out.events =
        bytes_waiting(s) || (s->unread.n && !s->ending) ? POLLOUT : 0;
    if (mo_list_empty(&s->again.node))
        s->in.events = s->unread.n || full || s->ending ? 0 : POLLIN;
}

/* --- signals and stop ---------------------------------------------------- */

static void on_end(struct tb_timer *t)
{
    mo_container_of(t, struct serve, end)->over = true;
}

static void begin_stop(struct serve *s)
{
    if (s->ending)
        return;
    s->ending = true;
    tb_server_cancel_all(&s->server);
    tb_exec_stop(&s->box.exec);
    tb_timer_start(&s->box.loop, &s->end, END_NS);
}

static void reap_children(struct serve *s)
{
    for (;;) {
        int status;
        pid_t pid = waitpid(-1, &status, WNOHANG);

        if (pid <= 0)
            return;
        tb_exec_reaped(&s->box.exec, pid, status);
    }
}

static void on_signal(struct tb_watch *w)
{
    struct serve *s = mo_container_of(w, struct serve, signals);
    struct signalfd_siginfo info;

    while (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo != SIGCHLD)
            begin_stop(s);
    }
    reap_children(s);
}

static int open_signals(struct mo_err *e)
{
    struct sigaction ign = {.sa_handler = SIG_IGN};
    sigset_t set;
    int fd;

    (void)sigaction(SIGPIPE, &ign, NULL);
    (void)sigaction(SIGXFSZ, &ign, NULL); /* EFBIG instead of a signal */
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGINT);
    (void)sigprocmask(SIG_BLOCK, &set, NULL);
    fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (fd < 0)
        (void)mo_fail_sys(e, "signalfd");
    return fd;
}

static bool is_over(const struct serve *s)
{
    return s->over || (s->ending && tb_exec_is_idle(&s->box.exec) &&
                       bytes_waiting(s) == 0);
}

/* --- start --------------------------------------------------------------- */

static int serve_until_end(struct serve *s, struct mo_err *e)
{
    while (!is_over(s)) {
        if (tb_loop_round(&s->box.loop, e) < 0)
            return e->code;
        update_watches(s);
    }
    return 0;
}

static void serve_init(struct serve *s, const struct tb_serve_opts *o,
                       int signals)
{
    s->stay = o->stay;
    tb_loop_init(&s->box.loop);
    tb_exec_init(&s->box.exec, &s->box.loop);
    tb_tools_choose(&s->box);
    s->server.tools = s->box.tools;
    if (!s->box.languages)
        s->server.unlisted = &tb_run_script;
    s->server.methods = tb_methods;
    s->server.word = tb_files_word;
    s->server.instructions = instructions;
    s->server.ctx = &s->box;
    s->server.send = on_message;
    s->server.to = s;
    tb_server_init(&s->server);
    mo_frame_init(&s->frame, TB_LINE_MAX);
    mo_buf_init(&s->queue, OUT_MAX);
    tb_timer_init(&s->again, on_again);
    tb_timer_init(&s->end, on_end);
    (void)fcntl(0, F_SETFL, fcntl(0, F_GETFL) | O_NONBLOCK);
    (void)fcntl(1, F_SETFL, fcntl(1, F_GETFL) | O_NONBLOCK);
    (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* see the header */
    tb_watch_start(&s->box.loop, &s->signals, signals, POLLIN, on_signal);
    tb_watch_start(&s->box.loop, &s->in, 0, POLLIN, on_readable);
    tb_watch_start(&s->box.loop, &s->out, 1, 0, on_writable);
}

static void serve_fini(struct serve *s)
{
    tb_server_fini(&s->server);
    tb_exec_fini(&s->box.exec);
    mo_frame_fini(&s->frame);
    mo_buf_fini(&s->queue);
    mo_close_fd(&s->signals.fd);
    tb_root_close(&s->box.root);
}

int tb_serve(const struct tb_serve_opts *o, struct mo_err *e)
{
    mo_autofree struct serve *s = mo_new(struct serve);
    int signals, rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (tb_root_open(&s->box.root, o->root, e) < 0)
        return e->code;
    signals = open_signals(e);
    if (signals < 0) {
        tb_root_close(&s->box.root);
        return e->code;
    }
    serve_init(s, o, signals);
    rc = serve_until_end(s, e);
    serve_fini(s);
    return rc;
}
