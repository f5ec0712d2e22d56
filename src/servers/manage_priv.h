/* manage_priv.h - what the files of manage.h share.
 *
 *   manage.c       jobs: checked, tested, audited, saved, in this order
 *   manage_edit.c  what is written, and the secrets that go with it
 *   manage_view.c  what is shown of servers, without a job
 *
 * States of a job: CHECK -> [TEST] -> [AUDIT -> SAVE] -> over. Between two of
 * them it is waited for one thing: the lock of the file (timer), a test, the
 * end of its dial, or the store. */
#ifndef MO_SERVERS_MANAGE_PRIV_H
#define MO_SERVERS_MANAGE_PRIV_H

#include "connect/connect_test.h"
#include "loop/loop.h"
#include "servers/import_plan.h"
#include "servers/manage.h"
#include "servers/manage_entry.h"

#define JOBS       8
#define LOCK_MS    5000
#define AGAIN_MS   20
#define TEST_MS    60000
#define ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define BODY_ARENA ((size_t)8 * 1024 * 1024)
#define WORD_MAX   1024

struct mo_manage {
    struct mo_manage_opts o;
    struct mo_list jobs;
    unsigned under_way;
    bool closing;
    struct mo_later ending; /* calls gone() */
    void (*gone)(void *ctx);
    void *gone_ctx;
};

/* A secret as it was before; value NULL: it was not there. */
struct undo {
    struct undo *next;
    struct mo_span name;
    char *value;
    size_t n;
};

enum step { CHECK, SAVE };

struct job {
    struct mo_list node;
    struct mo_manage *m;
    enum mo_manage_verb verb;
    enum step step;
    struct mo_arena a;
    struct mo_buf body, who;
    const char *server;  /* in the arena */
    struct mo_json wish; /* the object that describes it, of the body */
    bool test, dry, replace, clear;
    struct mo_entry entry;
    struct undo *undo;
    struct mo_timer again; /* for the lock */
    uint64_t until;        /* ns */
    /* the test */
    struct mo_config_holder tried; /* now NULL: none */
    struct mo_server_link *dial;
    struct mo_connect_test *attempt;
    struct mo_err failed; /* code 0: it works */
    struct mo_buf report; /* of the test; empty: there was none */
    struct mo_buf plan;   /* of an import */
    mo_job_done_fn *done;
    void *arg;
};

/* --- manage_edit.c ------------------------------------------------------- */

/* Take the request apart: name, wish, flags. */
int mo_manage_edit_read(struct job *j, struct mo_err *e);
/* The change, in memory. */
int mo_manage_edit_apply(struct job *j, struct mo_file_edit *r,
                         struct mo_err *e);
/* Keys into the store; what was there before is remembered. Once is enough. */
int mo_manage_edit_store(struct job *j, struct mo_err *e);
void mo_manage_edit_unstore(struct job *j);
/* One row for the audit log. */
void mo_manage_edit_audit(const struct job *j, struct mo_buf *b);

/* --- manage_view.c ------------------------------------------------------- */

int mo_manage_list(struct mo_manage *m, struct mo_buf *out);
int mo_manage_one(struct mo_manage *m, struct mo_span server,
                  struct mo_buf *out, struct mo_err *e);
int mo_manage_health(struct mo_manage *m, struct mo_buf *out);
int mo_manage_snippets(struct mo_manage *m, const struct mo_manage_where *w,
                       struct mo_buf *out);
/* Somebody has seen that it works: no pause holds any more. */
void mo_manage_view_works(struct mo_manage *m, const char *server);

#endif
