#include "connect/record.h"

#include <fcntl.h>

#include "base/clock.h"
#include "base/file.h"
#include "codec/json/json.h"

#define TEXT_MAX   ((size_t)64 * 1024 * 1024)
#define SECRET_MAX ((size_t)1024 * 1024)

struct mo_record {
    struct mo_loop *loop;
    int fd; /* -1: the recording has ended */
    uint64_t start_ns;
    struct mo_buf text; /* the message without secrets */
    struct mo_buf line;
};

/* --- secrets ------------------------------------------------------------- */

static void blank_text(struct mo_buf *b, struct mo_span what)
{
    struct mo_span rest = mo_buf_view(b);
    ptrdiff_t at = mo_span_search(rest, what);

    while (at >= 0) {
        memset(b->p + (rest.p - b->p) + at, '*', what.n);
        rest = mo_span_skip(rest, (size_t)at + what.n);
        at = mo_span_search(rest, what);
    }
}

/* Blanks the raw value, its JSON escape, and the JSON escape of that. */
static void blank_secret(struct mo_buf *text, const char *secret)
{
    mo_autobuf struct mo_buf once = {.max = SECRET_MAX};
    mo_autobuf struct mo_buf twice = {.max = SECRET_MAX};

    blank_text(text, mo_span_cstr(secret));
    if (mo_json_quote(&once, mo_span_cstr(secret)) < 0)
        return;
    blank_text(text, mo_span(once.p + 1, once.len - 2));
    if (mo_json_quote(&twice, mo_span(once.p + 1, once.len - 2)) == 0)
        blank_text(text, mo_span(twice.p + 1, twice.len - 2));
}

static void blank_secrets(struct mo_record *r)
{
    const struct mo_log *log = mo_loop_log(r->loop);

    for (size_t i = 0; log && i < log->nsecrets; i++)
        blank_secret(&r->text, log->secrets[i]);
}

/* --- lines --------------------------------------------------------------- */

static void put_message(struct mo_record *r, struct mo_jw *w)
{
    struct mo_json_doc doc;
    mo_autobuf struct mo_buf flat = {.max = TEXT_MAX};

    mo_jw_key(w, "message");
    if (mo_json_parse(mo_buf_view(&r->text), 0, &doc, NULL) < 0) {
        mo_jw_null(w);
        mo_jw_member_cstr(w, "withheld",
                          "not JSON after its secrets were blanked out");
        return;
    }
    if (doc.has_nl && mo_json_compact(doc.root, &flat) == 0)
        mo_jw_raw(w, mo_buf_view(&flat));
    else
        mo_jw_raw(w, mo_json_text(doc.root));
}

static void write_line(struct mo_record *r)
{
    struct mo_err e;

    (void)mo_buf_putc(&r->line, '\n');
    if (mo_buf_err(&r->line) == 0 &&
        mo_file_write_all(r->fd, mo_buf_view(&r->line), &e) == 0)
        return;
    if (mo_buf_err(&r->line))
        (void)mo_fail(&e, mo_buf_err(&r->line), "a message is too large");
    mo_log_err(mo_loop_log(r->loop), MO_ERROR, "gateway", &e,
               "the recording ends here");
    mo_close_fd(&r->fd);
}

static void put_head(struct mo_record *r)
{
    struct mo_jw w = mo_jw_object(&r->line);

    mo_jw_member_u64(&w, "recording", 1);
    mo_jw_member_cstr(&w, "program", "mcp-orchestrator " MO_VERSION);
    mo_jw_member_u64(&w, "at", mo_wall_ms());
    mo_jw_end(&w);
    write_line(r);
}

void mo_record_message(void *ctx, const char *server, uint64_t child,
                       bool to_server, struct mo_span text)
{
    struct mo_record *r = ctx;
    struct mo_jw w;

    if (r->fd < 0)
        return;
    mo_buf_reset(&r->text);
    mo_buf_reset(&r->line);
    if (mo_buf_span(&r->text, text) == 0)
        blank_secrets(r);
    w = mo_jw_object(&r->line);
    mo_jw_member_u64(&w, "ms", (mo_now_ns() - r->start_ns) / MO_MS);
    mo_jw_member_cstr(&w, "server", server);
    mo_jw_member_u64(&w, "child", child);
    mo_jw_member_cstr(&w, "to", to_server ? "server" : "client");
    put_message(r, &w);
    mo_jw_end(&w);
    write_line(r);
}

/* --- open and close ------------------------------------------------------- */

struct mo_record *mo_record_open(struct mo_loop *l, const char *path,
                                 struct mo_err *e)
{
    mo_autofd int fd =
        open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
             S_IRUSR | S_IWUSR);
    struct mo_record *r = NULL;

    if (fd < 0)
        return mo_null(mo_fail_sys(e, "recording '%s'", path));
    r = mo_new(struct mo_record);
    if (!r)
        return mo_null(mo_fail(e, MO_ENOMEM, "recording"));
    r->loop = l;
    r->fd = mo_take_fd(&fd);
    r->start_ns = mo_now_ns();
    mo_buf_init(&r->text, TEXT_MAX);
    mo_buf_init(&r->line, TEXT_MAX);
    put_head(r);
    return r;
}

void mo_record_close(struct mo_record *r)
{
    if (!r)
        return;
    mo_close_fd(&r->fd);
    mo_buf_fini(&r->text);
    mo_buf_fini(&r->line);
    mo_free(r);
}
