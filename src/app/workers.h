/* workers.h - several processes that serve one port (`serve --workers N`).
 *
 * The parent binds the port, starts the workers, and starts those again that
 * end. It serves nothing itself, and has neither a loop nor threads, so that it
 * can fork at any time. Each worker is a whole server (serve.h). Together they
 * are like several servers on one store: peer/peer.h lets a client of one of
 * them take part in a conversation that another one runs.
 *
 *   parent -+- worker 1   listening socket 1 \
 *           +- worker 2   listening socket 2  } the same address
 *
 * Connections. Each worker number has a listening socket of its own, bound with
 * SO_REUSEPORT: the kernel chooses one by a hash of both addresses, so the
 * workers get equal shares however busy they are. One socket for all would give
 * most connections to the worker that wakes up first, which is nearly always
 * the same one under little load. The parent keeps a copy of each socket: a
 * connection that waits for a worker that has died is accepted by its
 * successor. Nobody else can join: the first socket is bound without
 * SO_REUSEPORT, so the start fails if the port is in use.
 *
 * Life of a worker
 *   1. The first worker is started alone. If it cannot serve, it says why, and
 *      the parent ends with its exit code. The others follow when it listens.
 *   2. A worker that ends is started again, at once if it has lived for
 *      MO_WORKERS_EARLY_MS, else after a delay that doubles. After
 *      MO_WORKERS_EARLY_MAX such ends in a row the parent ends all and fails.
 *   3. A worker takes orders from the parent only. It ignores SIGTERM, SIGINT
 *      and SIGHUP, because a terminal and a service manager send them to every
 *      process, and a second SIGTERM means "at once".
 *   4. It does not survive the parent: the kernel kills it (PR_SET_PDEATHSIG),
 *      and it ends by itself when the socket to the parent is closed.
 *
 * Shared memory holds whether each worker was ready, its metrics: /metrics
 * of any worker shows those of all (serve_metrics.c), and what they count
 * together. Only workers have it: it is not a file, and programs that they
 * start do not get it. */
#ifndef MO_APP_WORKERS_H
#define MO_APP_WORKERS_H

#include <sys/types.h>

#include "app/watch_page.h"
#include "budget/shared.h"
#include "config/config.h"
#include "gateway/state/opts.h"
#include "loop/crowd.h"
#include "loop/watch.h"
#include "people/logins_ended.h"
#include "people/proofs_shared.h"
#include "session/instance.h"
#include "web/strikes.h"

#define MO_WORKERS_MAX       MO_CONFIG_WORKERS_MAX
#define MO_WORKERS_EARLY_MS  10000
#define MO_WORKERS_EARLY_MAX 5
#define MO_WORKERS_HOMES     65536
#define MO_WORKERS_TEXT      ((size_t)1024)

/* Memory of all workers, by which they act as one server: limits hold for all
 * of them together, and a change that one makes is known to the others. */
struct mo_workers_common {
    struct mo_crowd crowd;            /* connections */
    struct mo_strikes_shared strikes; /* wrong tokens */
    struct mo_budget_shared budget;   /* calls, boxes, turns */
    struct mo_proofs_shared proofs;   /* seen of tokens bound to keys */
    struct mo_logins_ended ended;     /* sign-outs */
    atomic_uint grants;               /* changes of personal tokens */
    atomic_uint rules;                /* changes of remembered rules */
    atomic_uint written;              /* of the configuration */
    atomic_uint found;  /* changes of its files that a worker has noticed */
    atomic_uint pins;   /* of pinned definitions of tools */
    atomic_uint learnt; /* of what the router has learnt */
    struct mo_lists_shared lists; /* of what servers offer */
    atomic_uint watches;          /* of subscriptions to resources */
    struct mo_watch_page watched[MO_WORKERS_MAX]; /* untouched memory */
    /* Which worker opened a conversation last, by a hash of its id; 0: none.
     * A hint: one that does not have it open says so. */
    atomic_uchar homes[MO_WORKERS_HOMES];
};

struct mo_workers_shared; /* workers.c */

/* The worker that this process is; number == 0: there are no workers. */
struct mo_worker {
    unsigned number, count; /* from 1 */
    bool again;             /* it replaces one that has ended */
    int listener;           /* whoever listens takes it */
    int control;
    struct mo_workers_shared *shared;
    struct mo_workers_common *common; /* NULL: there are no workers */
    struct mo_watch *watch;
    unsigned written; /* of common, as far as the file was read */
    unsigned found;   /* the same */
    void (*order)(void *ctx, int signo);
    void (*publish)(void *ctx);
    void (*told)(void *ctx, struct mo_span text);
    void *ctx;
    char why[64];
};

struct mo_workers_opts {
    struct mo_log *log;
    unsigned count;
    const int *listeners; /* `count` bound sockets, taken */
    bool drains;          /* server.drainSeconds: a second signal ends it */
    void (*ready)(void *ctx);
    /* The parent got SIGHUP, SIGTERM or SIGINT and has passed it on. */
    void (*ordered)(void *ctx, int signo); /* all of them listen; once */
    void *ctx;
};

/* Returns true in every worker, with *w. Returns false in the parent when all
 * have ended, with the exit code. Call it before the first thread. */
bool mo_workers_start(const struct mo_workers_opts *o, struct mo_worker *w,
                      int *code);

/* --- in a worker; they do nothing if there are no workers ----------------- */

/* order(ctx, SIGTERM or SIGHUP) fires when the parent says so; publish(ctx)
 * when another worker needs this one's metrics. */
int mo_worker_open(struct mo_worker *w, struct mo_loop *l,
                   void (*order)(void *ctx, int signo),
                   void (*publish)(void *ctx), void *ctx, struct mo_err *e);
/* told(ctx, text): another worker has said so. After mo_worker_open(). */
void mo_worker_listen(struct mo_worker *w,
                      void (*told)(void *ctx, struct mo_span text));
/* Tells all others, soon. At most MO_WORKERS_TEXT bytes; longer ones, and those
 * for a worker that does not read, are lost. */
void mo_worker_tell(struct mo_worker *w, struct mo_span text);
void mo_worker_close(struct mo_worker *w);
void mo_worker_listens(struct mo_worker *w);
/* It has written the configuration: the others read it again. */
void mo_worker_wrote(struct mo_worker *w);
/* True, once, if another one has written it since. */
bool mo_worker_is_behind(struct mo_worker *w);
/* It has noticed that somebody changed a file of the configuration, and read
 * it. The others read it before their next request. */
void mo_worker_found(struct mo_worker *w);
/* True, once, if another one has noticed it since. */
bool mo_worker_is_told(struct mo_worker *w);
/* The name by which the others find its sockets (session/instance.h). */
void mo_worker_name(struct mo_worker *w, const char *instance);
/* False: there is no such worker, or it has no name yet. number: from 1. */
bool mo_worker_named(const struct mo_worker *w, unsigned number,
                     char out[MO_INSTANCE_MAX]);
/* Its sessions are open, or never will be. */
void mo_worker_settled(struct mo_worker *w);
/* Which worker has not been ready yet, or NULL. ctx: struct mo_worker. */
const char *mo_worker_why(void *ctx);
/* Asks the others to publish their metrics. `versions` are those of the pages
 * before; answered: every living one has written a new page. */
void mo_worker_ask(struct mo_worker *w, unsigned versions[MO_WORKERS_MAX]);
bool mo_worker_answered(const struct mo_worker *w,
                        const unsigned versions[MO_WORKERS_MAX]);
/* Writes this worker's page of metrics, and reads that of any. number: from
 * 1. */
void mo_worker_publish(struct mo_worker *w, struct mo_span page);
int mo_worker_page(const struct mo_worker *w, unsigned number,
                   struct mo_buf *out);

#endif
