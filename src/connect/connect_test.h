/* connect_test.h - connects to one server once and reports whether it works.
 *
 * Opens the connection, lists the tools, closes it. Running servers are not
 * affected. Used before a server is saved, and by `mcp health`. The server's
 * standard error is kept by the mo_server_link that was used (server_link.h).
 *
 * Contract: done(ctx, result) is called exactly once, from the loop, after the
 * connection is gone; the result is borrowed for that call.
 * mo_connect_test_stop() makes it come soon. Ownership: link and server are
 * borrowed until then. */
#ifndef MO_CONNECT_CONNECT_TEST_H
#define MO_CONNECT_CONNECT_TEST_H

#include "codec/json/json.h"
#include "connect/server_link.h"
#include "mcp/definition.h"

struct mo_connect_test;

struct mo_connect_test_result {
    struct mo_err why; /* code 0: the server works */
    bool sign_in;      /* it failed because a person must sign in */
    uint64_t ms;       /* from the start to the list or the failure */
    size_t tools;      /* number of tools */
    struct mo_definition_notes notes; /* tools that strict clients refuse */
    const char *version;              /* protocol version; NULL: never opened */
    struct mo_span info;              /* serverInfo as JSON; empty: none */
};

/* Writes "mended" and "leftOut": the notes, if there are any. */
void mo_connect_test_put_notes(struct mo_jw *w,
                               const struct mo_definition_notes *n);

struct mo_connect_test_opts {
    struct mo_loop *loop;
    struct mo_server_link *link; /* its configuration contains the server */
    const struct mo_config_mcp *server;
    uint64_t timeout_ms; /* for the whole test; 0: the limits of the server */
    void (*done)(void *ctx, const struct mo_connect_test_result *r);
    void *ctx;
};

int mo_connect_test_start(const struct mo_connect_test_opts *o,
                          struct mo_connect_test **out, struct mo_err *e);
void mo_connect_test_stop(struct mo_connect_test *a);

/* Writes
 * {"ok","ms","tools","protocolVersion","serverInfo","error","signIn","stderr"};
 * members without a value are left out. */
void mo_connect_test_json(struct mo_jw *w,
                          const struct mo_connect_test_result *r,
                          const struct mo_stderr_tail *tail,
                          const char *server);

#endif
