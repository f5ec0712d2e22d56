/* Both eras of the endpoint, a line a message, without a transport: no line
 * may crash it, leak, or be answered twice; every answer is JSON-RPC. */
#include <stdlib.h>

#include "mcp/server/ep_priv.h"

#define LINES_MAX 32

struct harness {
    struct mo_ep_way way;
    struct mo_ep_call *parked;
    unsigned answers, asked;
};

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_message(struct mo_span msg)
{
    struct mo_rpc m;

    expect(mo_rpc_parse(msg, &m, NULL) == 0);
    expect(m.kind != MO_RPC_INVALID && m.kind != MO_RPC_BATCH);
}

static void on_note(struct mo_ep_way *w, struct mo_span msg)
{
    (void)w;
    check_message(msg);
}

static void on_answer(struct mo_ep_way *w, int status, struct mo_span msg)
{
    struct harness *h = mo_container_of(w, struct harness, way);

    expect(status >= 200 && status < 500);
    check_message(msg);
    h->answers++;
    expect(h->answers <= h->asked);
}

static void on_drop(struct mo_ep_way *w)
{
    struct harness *h = mo_container_of(w, struct harness, way);

    h->answers++;
    expect(h->answers <= h->asked);
}

static void on_canceled(struct mo_ep_call *c)
{
    struct harness *h = c->data;

    h->parked = NULL;
    mo_ep_call_result(c, MO_SPAN("{}"));
}

static void handler(void *ctx, struct mo_ep_call *c)
{
    struct harness *h = ctx;

    if (mo_span_is(c->name, "ask") && !mo_ep_call_input(c, "k").p) {
        mo_ep_call_set_state(c, c->name);
        mo_ep_call_need(c, "k", "elicitation/create", mo_span(NULL, 0));
        mo_ep_call_wait(c);
    } else if (mo_span_is(c->name, "park") && !h->parked) {
        c->data = h;
        c->canceled = on_canceled;
        h->parked = c;
    } else if (mo_json_is(c->params, MO_JSON_OBJECT)) {
        mo_ep_call_progress(c, 1, -1, NULL);
        mo_ep_call_result(c, mo_json_text(c->params)); /* any object */
    } else {
        mo_ep_call_error(c, 1, "no", mo_span(NULL, 0));
    }
}

static void one_line(struct harness *h, struct mo_ep_sess *s,
                     struct mo_span line)
{
    struct mo_ep_from from = {.way = &h->way, .sess = s};
    struct mo_rpc m;

    if (mo_rpc_parse(line, &m, NULL) < 0 || m.kind == MO_RPC_INVALID ||
        m.kind == MO_RPC_BATCH)
        return;
    h->asked += m.kind == MO_RPC_REQUEST;
    if (mo_ep_is_modern(&m))
        mo_ep_modern(s->ep, &from, &m);
    else
        mo_ep_legacy(s, &from, &m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct harness h = {.way = {on_note, on_answer, on_drop, NULL, NULL}};
    struct mo_endpoint_opts o = {.name = "f",
                                 .version = "1",
                                 .caps = 0x1ff,
                                 .limits = {.tasks = 4, .task_bytes = 256},
                                 .handler = handler,
                                 .ctx = &h};
    struct mo_span in = mo_span((const char *)data, size);
    struct mo_loop *l = mo_loop_new(NULL, NULL);
    struct mo_endpoint *ep = mo_endpoint_new(l, &o, NULL);
    struct mo_ep_sess s;

    expect(ep != NULL);
    mo_ep_sess_init(&s, ep);
    s.push = &h.way;
    for (unsigned i = 0; in.p && i < LINES_MAX; i++) {
        one_line(&h, &s, mo_span_cut(&in, '\n'));
        mo_endpoint_changed(ep, MO_EP_CH_TOOLS);
        mo_endpoint_task(ep, mo_span(NULL, 0), MO_SPAN("t"), MO_SPAN("{}"));
    }
    mo_ep_sess_fini(&s);
    mo_loop_run(l); /* tells the canceled */
    mo_endpoint_free(ep);
    expect(h.answers == h.asked);
    mo_loop_free(l);
    return 0;
}
