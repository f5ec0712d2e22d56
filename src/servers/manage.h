/* manage.h - the configured servers changed while the program runs.
 *
 * What web/api_mcp.h asks for. A change goes the same way as a command's
 * (config/file_edit.h): only the place that is meant is written, under the lock
 * that commands take too, after the loader has read the result; then the
 * program reads its configuration again. Nothing is kept here of what stands
 * there.
 *
 * Rules of the house
 *  1. Who adds a command runs it: it needs server.manage (where that is not
 *     set: only a server that listens to this machine alone).
 *  2. Nothing is written before the audit log has it.
 *  3. A test happens before that, beside everything that runs, and what does
 *     not work is not written.
 *  4. Keys go to the secret store before the file refers to them, and out of
 *     it again if the file was not written after all. They are never told.
 *
 * Ownership: everything given is borrowed until gone(). Limit: JOBS at once;
 * another writer is waited for LOCK_MS. */
#ifndef MO_SERVERS_MANAGE_H
#define MO_SERVERS_MANAGE_H

#include "config/config.h"
#include "servers/job_done.h"
#include "store/store.h"

#define MO_MANAGE_BODY_MAX ((size_t)1024 * 1024) /* of a request */

struct mo_gateway_setup;
struct mo_manage;

struct mo_manage_opts {
    struct mo_loop *loop;
    struct mo_config_holder *config;
    const char *listen; /* what the server listens on */
    bool has_token;     /* clients must show one */
    struct mo_store *store;
    struct mo_gateway_setup *hub; /* NULL: there is no gateway */
    void (*written)(void *ctx);   /* the file is another: read it */
    void *ctx;
};

struct mo_manage *mo_manage_new(const struct mo_manage_opts *o);
/* What is under way is stopped; gone(ctx) later. Before servers and store. */
void mo_manage_close(struct mo_manage *m, void (*gone)(void *ctx), void *ctx);

enum mo_manage_verb {
    MO_MANAGE_ADD,
    MO_MANAGE_PATCH,
    MO_MANAGE_REMOVE,
    MO_MANAGE_IMPORT,
    MO_MANAGE_TEST,
};

struct mo_manage_ask {
    enum mo_manage_verb verb;
    struct mo_span server; /* empty: the body names it */
    struct mo_span body;
    struct mo_span who; /* for the audit */
    bool test, dry, replace;
    bool clear; /* import: keys stay in the file */
};

struct mo_manage_where { /* as the client sees us */
    struct mo_span host;
    bool tls;
};

/* These append JSON. */
int mo_manage_list(struct mo_manage *m, struct mo_buf *out);
int mo_manage_one(struct mo_manage *m, struct mo_span server,
                  struct mo_buf *out, struct mo_err *e); /* MO_ENOTFOUND */
int mo_manage_health(struct mo_manage *m, struct mo_buf *out);
int mo_manage_snippets(struct mo_manage *m, const struct mo_manage_where *w,
                       struct mo_buf *out);
/* done() once, later; everything given is copied. MO_EPOLICY: the operator
 * does not want it; MO_EEXISTS: the name is taken; MO_EUNAVAIL: it was tested
 * and does not work. */
int mo_manage_change(struct mo_manage *m, const struct mo_manage_ask *c,
                     mo_job_done_fn *done, void *arg, struct mo_err *e);

/* May servers be changed over HTTP? */
bool mo_manage_allowed(const struct mo_config *c, const char *listen);

#endif
