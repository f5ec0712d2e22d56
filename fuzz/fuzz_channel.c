/* fuzz_channel.c - anything that a script may write to its channel. Promised:
 * every notification is one line of JSON-RPC, no id is open twice, the end is
 * told at most once and is the last message, and no answer is lost. */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "toolbox/channel.h"
#include "toolbox/server.h"

struct harness {
    struct tb_server server;
    struct tb_loop loop;
    struct tb_channel *ch;
    struct tb_call *call;
    uint64_t ids[TB_OPEN_MAX];
    unsigned open;
    bool closed;
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
    uint64_t id;

    expect(mo_rpc_parse(message, &m, NULL) == 0 && !m.has_nl);
    if (m.kind != MO_RPC_NOTIFICATION)
        return;
    expect(!h->closed);
    expect(
        mo_json_str_eq(mo_json_get(m.params, "progressToken"), MO_SPAN("T")));
    if (mo_json_flag(m.params, "closed")) {
        h->closed = true;
        return;
    }
    expect(mo_json_u64(mo_json_get(m.params, "id"), &id) == 0);
    for (unsigned i = 0; i < h->open; i++)
        expect(h->ids[i] != id);
    expect(h->open < TB_OPEN_MAX);
    h->ids[h->open++] = id;
}

static void on_cancel(struct tb_call *c)
{
    struct harness *h = c->job;

    tb_channel_close(h->ch);
}

static int park(void *ctx, struct tb_call *c, struct mo_json args,
                struct mo_err *e)
{
    struct harness *h = ctx;

    (void)args;
    (void)e;
    c->job = h;
    c->cancel = on_cancel;
    h->call = c;
    return 0;
}

static const struct tb_field none[] = {{0}};
static const struct tb_tool tool = {"park", "Park", "Waits.", 0,
                                    none,   none,   park};
static const struct tb_tool *const tools[] = {&tool, NULL};

static void on_nothing(struct tb_timer *t)
{
    (void)t;
}

static void turn(struct harness *h)
{
    struct tb_timer t;

    tb_timer_init(&t, on_nothing);
    tb_timer_start(&h->loop, &t, 0);
    expect(tb_loop_round(&h->loop, NULL) == 0);
    tb_timer_stop(&t);
}

/* Answers every second ask, so that others wait. */
static void answer_some(struct harness *h)
{
    static const struct mo_json empty = {"{}", 2};

    for (unsigned i = 0; i < h->open;) {
        if (i++ % 2 ||
            !tb_channel_answer(h->ch, h->ids[i - 1], "result", empty))
            continue;
        h->ids[i - 1] = h->ids[--h->open];
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct harness h = {.server = {.tools = tools,
                                   .instructions = "",
                                   .ctx = &h,
                                   .send = on_send,
                                   .to = &h}};
    size_t at = 0;
    int pair[2];

    tb_server_init(&h.server);
    tb_loop_init(&h.loop);
    tb_server_line(&h.server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":"
                           "\"initialize\",\"params\":{\"protocolVersion\":"
                           "\"2025-11-25\"}}"));
    tb_server_line(&h.server,
                   MO_SPAN("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":"
                           "\"tools/call\",\"params\":{\"name\":\"park\","
                           "\"_meta\":{\"progressToken\":\"T\"}}}"));
    expect(h.call && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    (void)fcntl(pair[1], F_SETFL, O_NONBLOCK);
    h.ch = tb_channel_open(&h.loop, h.call, pair[0]);
    expect(h.ch != NULL);
    while (at < size && !h.closed) {
        size_t part = 1 + data[at] % 64u;
        ssize_t n = send(pair[1], data + at,
                         part < size - at ? part : size - at, MSG_NOSIGNAL);

        at += n > 0 ? (size_t)n : size;
        turn(&h);
        answer_some(&h);
        turn(&h);
    }
    (void)close(pair[1]);
    turn(&h);
    tb_server_fini(&h.server);
    tb_channel_free(h.ch);
    return 0;
}
