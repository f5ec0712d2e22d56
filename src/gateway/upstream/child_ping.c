/* child_ping.c - see child_ping.h. */
#include "gateway/upstream/child_ping.h"

static void on_ping_reply(void *ctx, const struct mo_reply *r)
{
    struct mo_child *c = ctx;
    struct mo_conn *conn = mo_child_conn(c);
    struct mo_err why;

    if (conn && r->err && r->err->code == MO_ETIMEOUT) {
        (void)mo_fail(&why, MO_ETIMEOUT, "it does not answer a ping");
        mo_conn_close(conn, &why);
    }
    mo_child_release(c);
}

void mo_child_ping(struct mo_child *c)
{
    struct mo_conn *conn = mo_child_conn(c);
    struct mo_call_opts o = {
        .idle_ms = MO_CHILD_PING_MS,
        .hard_ms = MO_CHILD_PING_MS,
        .done = on_ping_reply,
        .ctx = c,
    };
    const char *method = NULL;

    if (!conn)
        return;
    method = mo_conn_info(conn)->modern ? "server/discover" : "ping";
    mo_child_hold(c);
    if (!mo_conn_request(conn, method, MO_SPAN("{}"), &o, NULL))
        mo_child_release(c);
}
