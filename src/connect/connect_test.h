/* connect_test.h - one server, connected to once to see whether it works.
 *
 * Opened, its tools listed, closed again; nothing else that runs is touched.
 * For who is about to write a server down, and for `mcp health`. What it said
 * on standard error is with the dial it was reached by (server_link.h).
 *
 * Contract: done(ctx, result) exactly once, from the loop, when the connection
 * is gone; the result is borrowed for that call. mo_connect_test_stop() makes
 * it come soon. Ownership: dial and server's configuration are borrowed until
 * then. */
#ifndef MO_CONNECT_CONNECT_TEST_H
#define MO_CONNECT_CONNECT_TEST_H

#include "codec/json/json.h"
#include "connect/server_link.h"

struct mo_connect_test;

struct mo_connect_test_result {
    struct mo_err why;   /* code 0: it works */
    bool sign_in;        /* that is why not */
    uint64_t ms;         /* from the start to the list, or to the failure */
    size_t tools;        /* how many it has */
    const char *version; /* of the protocol; NULL: it never opened */
    struct mo_span info; /* its serverInfo as JSON; empty: none */
};

struct mo_connect_test_opts {
    struct mo_loop *loop;
    struct mo_server_link *dial; /* knows a configuration with that server */
    const struct mo_config_mcp *server;
    uint64_t timeout_ms; /* for all of it; 0: the server's own limits */
    void (*done)(void *ctx, const struct mo_connect_test_result *r);
    void *ctx;
};

int mo_connect_test_start(const struct mo_connect_test_opts *o,
                          struct mo_connect_test **out, struct mo_err *e);
void mo_connect_test_stop(struct mo_connect_test *a);

/* {"ok","ms","tools","protocolVersion","serverInfo","error","signIn",
 * "stderr"}, what there is of it. */
void mo_connect_test_json(struct mo_jw *w,
                          const struct mo_connect_test_result *r,
                          const struct mo_stderr_tail *said,
                          const char *server);

#endif
