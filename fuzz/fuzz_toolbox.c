/* The toolbox's protocol and the pure parts of its tools, a line a message:
 * no line may crash it or leak, everything it says is one JSON-RPC message,
 * and every request is answered once or, when cancelled, not at all. */
#include <stdlib.h>

#include "toolbox/edit.h"
#include "toolbox/glob.h"
#include "toolbox/server.h"

#define LINES_MAX 32

struct harness {
    struct tb_server server;
    struct tb_call *parked;
    unsigned asked, answered, canceled;
};

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void on_send(void *to, struct mo_span message)
{
    struct harness *h = to;
    struct mo_rpc m;

    expect(mo_rpc_parse(message, &m, NULL) == 0 && !m.has_nl);
    expect(m.kind == MO_RPC_RESULT || m.kind == MO_RPC_ERROR ||
           m.kind == MO_RPC_NOTIFICATION);
    if (m.kind != MO_RPC_NOTIFICATION && mo_json_type(m.id) != MO_JSON_NULL)
        h->answered++;
}

static void on_cancel(struct tb_call *c)
{
    struct harness *h = c->job;

    h->parked = NULL;
    h->canceled++;
}

struct args {
    struct mo_span text, pattern;
    int64_t n;
    uint64_t wait;
    bool park;
};

static const struct tb_field in[] = {
    {"text", NULL, TB_TEXT, true, offsetof(struct args, text)},
    {"pattern", NULL, TB_TEXT, false, offsetof(struct args, pattern)},
    {"n", NULL, TB_INT, false, offsetof(struct args, n), 0, 9},
    {"wait", NULL, TB_SECONDS, false, offsetof(struct args, wait), 0, 60},
    {"park", NULL, TB_BOOL, false, offsetof(struct args, park)},
    {0},
};

static int use(struct harness *h, struct tb_call *c, const struct args *a,
               struct mo_err *e)
{
    struct tb_result r;
    int rc;

    if (a->park && !h->parked) {
        c->job = h;
        c->cancel = on_cancel;
        h->parked = c;
        tb_call_live(c, "stdout", a->text, a->text.n);
        return 0;
    }
    tb_result_init(&r);
    (void)tb_glob(a->pattern, a->text);
    rc = tb_edit(a->text, a->pattern, MO_SPAN("x"), a->n > 0, &r.text, e);
    (void)mo_buf_puts(&r.data, "{}");
    if (rc >= 0)
        tb_call_done(c, &r);
    tb_result_fini(&r);
    return rc < 0 ? rc : 0;
}

static int run(void *ctx, struct tb_call *c, struct mo_json json,
               struct mo_err *e)
{
    struct args a = {0};
    struct mo_arena arena;
    int rc;

    mo_arena_init(&arena, TB_ARGS_MAX);
    rc = tb_fields_read(json, in, &arena, &a, e);
    if (rc == 0)
        rc = use(ctx, c, &a, e);
    mo_arena_fini(&arena);
    return rc;
}

static const struct tb_tool tool = {"t", "T", "A tool.", TB_READ_ONLY,
                                    in,  in,  run};
static const struct tb_tool *const tools[] = {&tool, NULL};

/* Requests whose answer will carry an id. */
static void count(struct harness *h, struct mo_span line)
{
    struct mo_rpc m;

    if (mo_rpc_parse(line, &m, NULL) == 0 && m.id.p && m.id.n <= TB_ID_MAX &&
        (m.kind == MO_RPC_REQUEST || m.kind == MO_RPC_INVALID))
        h->asked++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct harness h = {.server = {.tools = tools,
                                   .instructions = "how",
                                   .ctx = &h,
                                   .send = on_send,
                                   .to = &h}};
    struct mo_span all = mo_span((const char *)data, size);

    tb_server_init(&h.server);
    for (int i = 0; i < LINES_MAX && all.p; i++) {
        struct mo_span line = mo_span_cut(&all, '\n');

        count(&h, line);
        tb_server_line(&h.server, line);
        if (h.server.version == TB_2025_03_26)
            h.asked = h.answered + h.canceled + (h.parked != NULL);
    }
    tb_server_fini(&h.server);
    expect(h.parked == NULL);
    expect(h.answered + h.canceled == h.asked);
    return 0;
}
