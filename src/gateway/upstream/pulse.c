#include "gateway/upstream/pulse.h"

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct mo_child *c = ctx;
    struct mo_conn *conn = mo_child_conn(c);
    struct mo_err why;

    if (conn && r->err && r->err->code == MO_ETIMEOUT) {
        (void)mo_fail(&why, MO_ETIMEOUT, "it does not answer any more");
        mo_conn_close(conn, &why);
    }
    mo_child_let_go(c);
}

void mo_pulse(struct mo_child *c)
{
    struct mo_conn *conn = mo_child_conn(c);
    struct mo_call_opts o = {
        .idle_ms = MO_PULSE_MS,
        .hard_ms = MO_PULSE_MS,
        .done = on_answer,
        .ctx = c,
    };
    const char *method = NULL;

    if (!conn)
        return;
    method = mo_conn_info(conn)->modern ? "server/discover" : "ping";
    mo_child_hold(c);
    if (!mo_conn_request(conn, method, MO_SPAN("{}"), &o, NULL))
        mo_child_let_go(c);
}
