#include "toolbox/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define ID_MAX      ((uint64_t)1 << 53)
#define DEPTH_MAX   64 /* of an ask; the peer's message is a little deeper */
#define WAITING_MAX ((size_t)64 * 1024 * 1024)
#define KEEP        ((size_t)64 * 1024) /* memory kept between two answers */

/* --- one line ------------------------------------------------------------ */

static bool is_absent_or(struct mo_json v, enum mo_json_type t)
{
    return !v.p || mo_json_is(v, t);
}

static bool is_absent_or_u64(struct mo_json v)
{
    uint64_t n;

    return !v.p || mo_json_u64(v, &n) == 0;
}

int tb_ask_read(struct mo_span line, struct tb_ask *a, struct mo_err *e)
{
    struct mo_json_doc doc;

    *a = (struct tb_ask){0};
    if (mo_json_parse(line, DEPTH_MAX, &doc, e) < 0)
        return e->code;
    if (doc.has_nl || !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EPROTO, "it is no JSON object on one line");
    if (mo_json_u64(mo_json_get(doc.root, "id"), &a->id) < 0 || a->id > ID_MAX)
        return mo_fail(e, MO_EPROTO, "its id is no integer of 0 to 2^53");
    a->tool = mo_json_get(doc.root, "tool");
    a->arguments = mo_json_get(doc.root, "arguments");
    a->line = mo_json_get(doc.root, "line");
    a->find = mo_json_get(doc.root, "find");
    a->limit = mo_json_get(doc.root, "limit");
    if (!a->tool.p == !a->find.p || !is_absent_or(a->tool, MO_JSON_STRING) ||
        !is_absent_or(a->find, MO_JSON_STRING))
        return mo_fail(e, MO_EPROTO, "it must name either a tool or a find");
    if (!is_absent_or(a->arguments, MO_JSON_OBJECT) ||
        !is_absent_or_u64(a->line) || !is_absent_or_u64(a->limit))
        return mo_fail(e, MO_EPROTO, "a member has a wrong type");
    return 0;
}

/* --- to the peer --------------------------------------------------------- */

static void tell_ask(struct tb_call *c, const struct tb_ask *a)
{
    struct mo_span none = a->tool.p ? MO_SPAN("{}") : mo_span(NULL, 0);
    struct mo_jw w;

    tb_note_begin(c, &w, TB_NOTE);
    mo_jw_member_u64(&w, "id", a->id);
    mo_jw_member_raw(&w, "tool", mo_json_text(a->tool));
    mo_jw_member_raw(&w, "arguments",
                     a->arguments.p ? mo_json_text(a->arguments) : none);
    mo_jw_member_raw(&w, "line", mo_json_text(a->line));
    mo_jw_member_raw(&w, "find", mo_json_text(a->find));
    mo_jw_member_raw(&w, "limit", mo_json_text(a->limit));
    tb_note_end(c, &w);
}

uint64_t tb_channel_held(const struct tb_channel *ch)
{
    return ch->held + (ch->nopen ? mo_now_ns() - ch->since : 0);
}

static void end_channel(struct tb_channel *ch)
{
    struct mo_jw w;

    if (ch->fd < 0)
        return;
    tb_watch_stop(&ch->watch);
    tb_idle_stop(&ch->more);
    mo_close_fd(&ch->fd);
    mo_frame_fini(&ch->frame);
    mo_buf_fini(&ch->answers);
    ch->unread = mo_span(NULL, 0);
    ch->held = tb_channel_held(ch);
    ch->nopen = 0;
    if (!ch->call)
        return;
    tb_note_begin(ch->call, &w, TB_NOTE);
    mo_jw_member_bool(&w, "closed", true);
    tb_note_end(ch->call, &w);
}

/* --- from the script ----------------------------------------------------- */

static unsigned find_open(const struct tb_channel *ch, uint64_t id)
{
    unsigned i = 0;

    while (i < ch->nopen && ch->open[i] != id)
        i++;
    return i;
}

static int take_line(struct tb_channel *ch, struct mo_span line)
{
    struct tb_ask a;

    if (tb_ask_read(line, &a, &ch->why) < 0)
        return ch->why.code;
    if (find_open(ch, a.id) < ch->nopen)
        return mo_fail(&ch->why, MO_EPROTO, "its id is open already");
    if (ch->nopen == 0)
        ch->since = mo_now_ns();
    ch->open[ch->nopen++] = a.id;
    ch->asked++;
    tell_ask(ch->call, &a);
    return 0;
}

static bool may_read(const struct tb_channel *ch)
{
    return !ch->paused && ch->nopen < TB_OPEN_MAX;
}

static void update_events(struct tb_channel *ch)
{
    bool reads = may_read(ch) && ch->unread.n == 0;

    if (ch->fd < 0)
        return;
    ch->watch.events = (short)((reads ? POLLIN : 0) |
                               (ch->answers.len > ch->sent ? POLLOUT : 0));
    if (ch->why.code || (ch->unread.n && may_read(ch)))
        tb_idle_start(ch->loop, &ch->more);
    else
        tb_idle_stop(&ch->more);
}

static void take_lines(struct tb_channel *ch)
{
    while (ch->unread.n && may_read(ch) && !ch->why.code) {
        struct mo_span line;
        int rc = mo_frame_next(&ch->frame, &ch->unread, &line);

        if (rc > 0)
            rc = take_line(ch, line);
        else if (rc == MO_ETOOBIG)
            (void)mo_fail(&ch->why, rc, "it is longer than 1 MiB");
        else if (rc < 0)
            (void)mo_fail(&ch->why, rc, "out of memory");
    }
    if (ch->why.code)
        end_channel(ch);
    update_events(ch);
}

/* --- to the script ------------------------------------------------------- */

/* A failure is kept for the next step: see tb_channel_answer(). */
static void write_answers(struct tb_channel *ch)
{
    ssize_t n =
        write(ch->fd, ch->answers.p + ch->sent, ch->answers.len - ch->sent);

    if (n < 0 && errno != EAGAIN && errno != EINTR)
        (void)mo_fail(&ch->why, MO_EIO, "it does not read answers any more");
    ch->sent += n > 0 ? (size_t)n : 0;
    if (ch->sent == ch->answers.len) {
        mo_buf_shrink(&ch->answers, KEEP);
        ch->sent = 0;
    }
}

bool tb_channel_answer(struct tb_channel *ch, uint64_t id, const char *what,
                       struct mo_json value)
{
    unsigned i = find_open(ch, id);
    struct mo_jw w;

    if (ch->fd < 0 || ch->why.code || i == ch->nopen)
        return false;
    if (ch->sent && ch->answers.len + value.n > WAITING_MAX / 2) {
        mo_buf_drop(&ch->answers, ch->sent);
        ch->sent = 0;
    }
    mo_jw_init(&w, &ch->answers);
    mo_jw_obj(&w);
    mo_jw_member_u64(&w, "id", id);
    mo_jw_key(&w, what);
    mo_jw_raw(&w, mo_json_text(value));
    mo_jw_end(&w);
    mo_buf_putc(&ch->answers, '\n');
    ch->held = ch->nopen == 1 ? tb_channel_held(ch) : ch->held;
    ch->open[i] = ch->open[--ch->nopen];
    if (mo_buf_err(&ch->answers))
        (void)mo_fail(&ch->why, mo_buf_err(&ch->answers),
                      "it does not read its answers");
    else
        write_answers(ch);
    update_events(ch);
    return !ch->why.code;
}

/* --- events -------------------------------------------------------------- */

static void on_more(struct tb_idle *i)
{
    take_lines(mo_container_of(i, struct tb_channel, more));
}

static void on_ready(struct tb_watch *w)
{
    struct tb_channel *ch = mo_container_of(w, struct tb_channel, watch);
    ssize_t n = 1;

    if (ch->answers.len > ch->sent)
        write_answers(ch);
    if (!ch->why.code && may_read(ch) && ch->unread.n == 0) {
        n = read(ch->fd, ch->bytes, sizeof(ch->bytes));
        ch->unread = mo_span(ch->bytes, n > 0 ? (size_t)n : 0);
    }
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        end_channel(ch);
    else
        take_lines(ch);
}

void tb_channel_pause(struct tb_channel *ch, bool paused)
{
    ch->paused = paused;
    update_events(ch);
}

struct tb_channel *tb_channel_open(struct tb_loop *l, struct tb_call *c, int fd)
{
    struct tb_channel *ch = mo_new(struct tb_channel);

    if (!ch) {
        mo_close_fd(&fd);
        return NULL;
    }
    ch->loop = l;
    ch->call = c;
    ch->fd = fd;
    mo_frame_init(&ch->frame, TB_ASK_MAX);
    mo_buf_init(&ch->answers, WAITING_MAX);
    tb_idle_init(&ch->more, on_more);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    tb_watch_start(l, &ch->watch, fd, POLLIN, on_ready);
    return ch;
}

void tb_channel_close(struct tb_channel *ch)
{
    ch->call = NULL;
    end_channel(ch);
}

void tb_channel_free(struct tb_channel *ch)
{
    tb_channel_close(ch);
    mo_free(ch);
}
