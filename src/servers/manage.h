/* manage.h - changes the configured servers, views and providers of models
 * while the program runs.
 *
 * Implements the requests of web/api.h. A change takes the same path as a
 * command (config/file_edit.h): it edits only the affected part of the file,
 * under the lock that commands also take, after the loader has checked the
 * result. Then the program reloads its configuration. This file keeps no copy
 * of it.
 *
 * Invariants
 *   1. Adding a server means running its command, so changes need
 *      server.manage. If that is not set, they are allowed only if the server
 *      listens on this machine alone.
 *      Providers need llm.editable (mo_manage_models_allowed()).
 *   2. Nothing is written before the audit log has the change, and nothing is
 *      started for a test before the log has the test, also of a dry run: on
 *      disk, in the store and in the file.
 *   3. A test runs before the change is audited and does not affect running
 *      servers. A server that fails the test is not written.
 *   4. Keys are stored in the secret store before the file refers to them, and
 *      removed again if the file was not written. Keys are never returned.
 *
 * Ownership: everything passed in is borrowed until gone(). Limits: JOBS at
 * once; a job waits up to LOCK_MS for another writer. */
#ifndef MO_SERVERS_MANAGE_H
#define MO_SERVERS_MANAGE_H

#include "audit/audit.h"
#include "servers/gateway_setup.h"

#define MO_MANAGE_BODY_MAX ((size_t)1024 * 1024) /* bytes of a request */

struct mo_manage;

/* Asks a provider for its models; see mo_models_test() in agent/llm/models.h.
 */
struct mo_manage_models {
    int (*ask)(void *ctx, const struct mo_config *cfg, const char *provider,
               mo_job_done_fn *done, void *arg, void **test, struct mo_err *e);
    void (*drop)(void *test);
    void *ctx;
};

struct mo_manage_opts {
    struct mo_loop *loop;
    struct mo_config_holder *config;
    const char *listen; /* listen address of the server */
    bool needs_token;   /* clients need a token */
    struct mo_audit *audit;
    struct mo_gateway_setup *gateway; /* NULL: no gateway */
    struct mo_manage_models models;   /* ask NULL: no models */
    void (*written)(void *ctx);       /* the file changed: reload it */
    void *ctx;
};

struct mo_manage *mo_manage_new(const struct mo_manage_opts *o);
/* Stops running jobs and calls gone(ctx) later. Close it before the gateway and
 * the store. */
void mo_manage_close(struct mo_manage *m, void (*gone)(void *ctx), void *ctx);

enum mo_manage_verb {
    MO_MANAGE_ADD,
    MO_MANAGE_PATCH,
    MO_MANAGE_REMOVE,
    MO_MANAGE_IMPORT,
    MO_MANAGE_TEST,
    MO_MANAGE_SET_VIEW, /* the body is its entry of the file */
    MO_MANAGE_REMOVE_VIEW,
    MO_MANAGE_SET_PROVIDER, /* {key?, baseUrl?}; null or "" removes one */
    MO_MANAGE_REMOVE_PROVIDER,
    MO_MANAGE_SET_MODEL, /* {provider?, model}: of new conversations */
};

struct mo_manage_ask {
    enum mo_manage_verb verb;
    struct mo_span server; /* or view, or provider; empty: in the body */
    struct mo_span body;
    struct mo_span who; /* caller, for the audit log */
    bool test, dry, replace;
    bool clear; /* import: leave keys in the file */
};

struct mo_manage_where { /* our address as the client used it */
    struct mo_span host;
    bool tls;
    struct mo_span token; /* the operator's */
    struct mo_span view;  /* that the client is to use, or empty */
};

/* These append JSON to out. */
int mo_manage_list(struct mo_manage *m, struct mo_buf *out);
int mo_manage_one(struct mo_manage *m, struct mo_span server,
                  struct mo_buf *out, struct mo_err *e); /* MO_ENOTFOUND */
int mo_manage_health(struct mo_manage *m, struct mo_buf *out);
/* MO_ENOTFOUND: there is no such view. */
int mo_manage_snippets(struct mo_manage *m, const struct mo_manage_where *w,
                       struct mo_buf *out);
int mo_manage_views(struct mo_manage *m, struct mo_buf *out);
/* What a client of the view sees, and its entry of the file. MO_ENOTFOUND */
int mo_manage_one_view(struct mo_manage *m, struct mo_span view,
                       struct mo_buf *out, struct mo_err *e);
/* Starts a change. Calls done() once, later; everything is copied. MO_EPOLICY:
 * changes are not allowed. MO_EEXISTS: the name is taken. MO_EUNAVAIL: the
 * server failed its test. */
int mo_manage_change(struct mo_manage *m, const struct mo_manage_ask *c,
                     mo_job_done_fn *done, void *arg, struct mo_err *e);

/* True if servers may be changed over HTTP. */
bool mo_manage_allowed(const struct mo_config *c, const char *listen);
/* True if providers of models may be changed over HTTP. */
bool mo_manage_models_allowed(const struct mo_config *c);

#endif
