/* by_name.h - servers by name over HTTP: search, plan, install.
 *
 * A request runs the command of that name (`mcp search`, `mcp install`) as a
 * child, so there is one way to install, with the same checks, and a broken
 * download cannot harm this process.
 *
 * Invariants
 *   1. An installed server is started, so all of this needs server.manage, as
 *      adding a server does (manage.h).
 *   2. Nothing is downloaded before the audit log has who agreed to what: on
 *      disk, in the store and in the file.
 *   3. What is installed is the plan that was shown: the request names it by
 *      its digest.
 *
 * Limits: JOBS at once; a search or plan takes up to ASK_MS, an installation
 * up to INSTALL_MS. */
#ifndef MO_SERVERS_BY_NAME_H
#define MO_SERVERS_BY_NAME_H

#include "audit/audit.h"
#include "servers/gateway_setup.h"

#define MO_BY_NAME_BODY_MAX ((size_t)64 * 1024)

struct mo_by_name;

struct mo_by_name_opts {
    struct mo_loop *loop;
    struct mo_config_holder *config;
    const char *listen; /* listen address of the server */
    struct mo_audit *audit;
    void (*written)(void *ctx); /* the file changed: reload it */
    void *ctx;
};

enum mo_by_name_verb {
    MO_BY_NAME_SEARCH,  /* text: words */
    MO_BY_NAME_PLAN,    /* text: {"server", "name", "kind", "bin", "env",
                         * "args", "hosts", "unboxed", "allowScripts"} */
    MO_BY_NAME_INSTALL, /* the same, with "agreed" and "acceptWarnings" */
};

struct mo_by_name *mo_by_name_new(const struct mo_by_name_opts *o);
/* Ends running commands and calls gone(ctx) later. */
void mo_by_name_close(struct mo_by_name *b, void (*gone)(void *ctx), void *ctx);

/* Calls done() once, later, with what the command printed, as JSON. who: the
 * caller, for the audit log. MO_EPOLICY: not allowed. MO_EINVAL: the request.
 * MO_EBUSY: too many. Then also from done(): MO_EUNAVAIL: registry, npm or
 * engine; MO_EIO: refused by the command. */
int mo_by_name_ask(struct mo_by_name *b, enum mo_by_name_verb verb,
                   struct mo_span text, struct mo_span who,
                   mo_job_done_fn *done, void *arg, struct mo_err *e);

#endif
