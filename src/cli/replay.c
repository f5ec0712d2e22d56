/* replay - plays a recorded MCP server on standard input and output. */
#include <errno.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/cmd.h"
#include "codec/frame.h"
#include "connect/replay.h"

#define LINE_MAX_BYTES ((size_t)64 * 1024 * 1024)

struct player {
    int out;
    bool gone; /* the output was closed */
};

static void write_line(void *ctx, struct mo_span line)
{
    struct player *p = ctx;
    struct mo_err e;

    if (!p->gone && (mo_file_write_all(p->out, line, &e) < 0 ||
                     mo_file_write_all(p->out, MO_SPAN("\n"), &e) < 0))
        p->gone = true;
}

/* Reading may block: there is nothing else to do. */
static int serve_client(struct mo_replay *r, const struct player *p)
{
    static char piece[64 * 1024];
    struct mo_span in, line;
    struct mo_frame f;
    ssize_t n = 1;
    int rc = 0;

    mo_frame_init(&f, LINE_MAX_BYTES);
    while (rc >= 0 && n != 0 && !p->gone) {
        n = read(STDIN_FILENO, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            break;
        in = mo_span(piece, (size_t)n);
        for (rc = mo_frame_next(&f, &in, &line); rc > 0;
             rc = mo_frame_next(&f, &in, &line)) {
            if (line.n)
                mo_replay_take(r, line);
        }
    }
    mo_frame_fini(&f);
    return rc < 0 ? MO_EXIT_FAIL : MO_EXIT_OK;
}

static int play_recording(struct mo_cli *c, struct mo_span text)
{
    struct player p = {.out = c->out};
    struct mo_replay_opts o = {.text = text,
                               .server = mo_cli_get(c, "server"),
                               .say = write_line,
                               .ctx = &p};
    struct mo_replay *r = NULL;
    struct mo_err e;
    int rc;

    if (mo_replay_new(&o, &r, &e) < 0)
        return mo_cli_error(c, MO_EXIT_FAIL, "%s: %s", c->args[0], e.msg);
    rc = serve_client(r, &p);
    mo_replay_free(r);
    return rc ? mo_cli_error(c, rc, "a message is too long") : rc;
}

int mo_run_replay(struct mo_cli *c)
{
    mo_autobuf struct mo_buf text = {.max = MO_REPLAY_FILE_MAX};
    struct mo_err e;
    int rc;

    if (mo_file_read(c->args[0], MO_REPLAY_FILE_MAX, &text, NULL, &e) < 0)
        rc = mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg);
    else
        rc = play_recording(c, mo_buf_view(&text));
    return rc;
}
