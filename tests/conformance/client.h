/* client.h - the client that the MCP conformance suite drives.
 *
 * The suite starts a mock server, runs this program with the server's URL as
 * the last argument and the scenario's name in the environment, and judges
 * what the mock has seen and how the program ends. client.c has main() and
 * calls that wait; client_core.c the scenarios of the protocol itself,
 * client_auth.c those of authorization, client_skills.c those of skills. */
#ifndef MO_CONFORMANCE_CLIENT_H
#define MO_CONFORMANCE_CLIENT_H

#include "loop/httpc.h"
#include "mcp/client/conn.h"
#include "mcp/link/link_http.h"

#define NO_SUCH_SCENARIO 1 /* what core_scenario() and its like say to that */

struct driver {
    struct mo_loop *loop;
    struct mo_httpc *http;
    const char *url;
    const char *scenario;
    const char *version;    /* "" = the suite does not say */
    bool modern;            /* version is of the modern era */
    struct mo_json context; /* the suite's object, or none */
    /* The connection; options may be set before driver_open(). */
    struct mo_conn_opts opts;
    struct mo_link_http_opts link;
    struct mo_conn *conn; /* NULL: none */
    bool opened;
    struct mo_err why; /* how it ended */
    /* the call that is waited for */
    bool done;
    int rc;
    struct mo_err err;
    struct mo_buf answer;
};

/* Open the connection as d->opts and d->link say (main() has filled in the
 * usual); 0 or why not. */
int driver_open(struct driver *d, struct mo_err *e);
/* End it; nothing when there is none. */
void driver_close(struct driver *d);

/* One call; the result (borrowed until the next one) or why not. `more` (may
 * be NULL) gives name, params and on_progress. */
int driver_call(struct driver *d, const char *method, struct mo_span params,
                const struct mo_call_opts *more, struct mo_json *out,
                struct mo_err *e);
/* tools/call with arguments (object text). */
int driver_tool(struct driver *d, const char *tool, struct mo_span arguments,
                struct mo_json *out, struct mo_err *e);
/* All pages of a list. */
int driver_list(struct driver *d, const char *method, const char *key,
                struct mo_json *out, struct mo_err *e);

/* 0: done as it should be; NO_SUCH_SCENARIO; or negative: it failed. */
int core_scenario(struct driver *d, const char *name);
int auth_scenario(struct driver *d, const char *name);
int skills_scenario(struct driver *d, const char *name);

#endif
