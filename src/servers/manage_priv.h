/* manage_priv.h - shared by the files of manage.h.
 *
 *   manage.c       jobs: check, test, audit, save, in this order
 *   manage_edit.c  edits of the file, and the secrets that belong to them
 *   manage_provider.c  the same for providers of models
 *   manage_view.c  views of the servers, without a job
 *
 * States of a job: CHECK -> [AUDIT -> TEST] -> [AUDIT -> SAVE] -> finished.
 * Between two states a job waits for one thing: the file lock (timer), a test,
 * the end of its link, or the audit log. */
#ifndef MO_SERVERS_MANAGE_PRIV_H
#define MO_SERVERS_MANAGE_PRIV_H

#include "connect/connect_test.h"
#include "loop/loop.h"
#include "servers/import_plan.h"
#include "servers/manage.h"

#define JOBS       8
#define LOCK_MS    5000
#define AGAIN_MS   20
#define TEST_MS    60000
#define ANSWER_MAX ((size_t)8 * 1024 * 1024)
#define BODY_ARENA ((size_t)8 * 1024 * 1024)
#define WORD_MAX   1024

#define MO_ENTRY_JSON_MAX ((size_t)256 * 1024) /* bytes of one server */

struct mo_entry_secret {
    struct mo_entry_secret *next;
    struct mo_span name; /* in the secret store: "server.VARIABLE" */
    char *value;
    size_t n;
};

struct mo_entry {
    struct mo_arena *a;
    const char *server;
    /* Values to move to the store. true or absent: those that look like keys;
     * false: none; a list: these names. */
    struct mo_json keep;
    struct mo_entry_secret *secrets;
};

struct mo_manage {
    struct mo_manage_opts o;
    struct mo_list jobs;
    unsigned under_way;
    bool closing;
    struct mo_later ending; /* calls gone() */
    struct mo_gone gone;
};

/* A change of a provider of models. */
struct provider_edit {
    bool has_key, has_url, has_name, has_model; /* given in the request */
    struct mo_span key, url, name, model;       /* empty: remove it */
    bool named;
    const char *secret, *old; /* names: of the key, of the one before */
};

enum step { CHECK, TEST, SAVE }; /* TEST, SAVE: the row is being written */

struct job {
    struct mo_list node;
    struct mo_manage *m;
    enum mo_manage_verb verb;
    enum step step;
    struct mo_arena a;
    struct mo_buf body, who;
    const char *server;       /* in the arena */
    struct mo_json described; /* its description in the body */
    bool test, dry, replace, clear;
    struct mo_entry entry;
    struct provider_edit provider;
    struct mo_entry_secret *undo; /* before the change; value NULL: none */
    struct mo_timer again;        /* retries the file lock */
    uint64_t until;               /* ns */
    /* state of the test */
    struct mo_config_holder tried; /* configuration to test; now NULL: none */
    struct mo_server_link *link;
    struct mo_connect_test *connect_test;
    void *asking;         /* test of a provider, or NULL */
    struct mo_err failed; /* result of the test; code 0: works */
    struct mo_buf report; /* JSON of the test; empty: not tested */
    struct mo_buf plan;   /* JSON of the import plan */
    mo_job_done_fn *done;
    void *arg;
};

static inline bool mo_manage_is_model(enum mo_manage_verb v)
{
    return v >= MO_MANAGE_SET_PROVIDER;
}

/* The test of the job has ended; j->failed and j->report have the result. */
void mo_manage_tested(struct job *j);

/* --- manage_provider.c --------------------------------------------------- */

int mo_manage_provider_read(struct job *j, struct mo_json body,
                            struct mo_err *e);
int mo_manage_provider_apply(struct job *j, struct mo_file_edit *r,
                             struct mo_err *e);
/* Writes the change for the audit log, without the key. */
void mo_manage_provider_describe(const struct job *j, struct mo_jw *w);
/* Calls mo_manage_tested() later. */
int mo_manage_provider_test(struct job *j, const struct mo_config *cfg,
                            struct mo_err *e);
/* The file was written: the old key is not needed any more. */
void mo_manage_provider_saved(struct job *j);
void mo_manage_provider_wipe(struct job *j);

/* --- manage_edit.c ------------------------------------------------------- */

/* Writes the server description of a request as an entry of the file. The
 * members are those of the file (docs/configuration.md); the loader checks them
 * before anything is written. MO_EINVAL: the error says what is wrong. Pure:
 * text in, text out. */
int mo_entry_put(struct mo_entry *x, struct mo_json from, struct mo_buf *out,
                 struct mo_err *e);
void mo_entry_wipe(struct mo_entry_secret **list); /* and empties it */
/* Writes the entry with every literal masked that could be a key. */
void mo_entry_show(struct mo_jw *w, struct mo_json entry);

/* Parses the request: name, description, flags. */
int mo_manage_edit_read(struct job *j, struct mo_err *e);
/* Applies the change to r, in memory. */
int mo_manage_edit_apply(struct job *j, struct mo_file_edit *r,
                         struct mo_err *e);
/* Stores the keys of the request and remembers the previous values. Later calls
 * do nothing. */
int mo_manage_edit_store(struct job *j, struct mo_err *e);
void mo_manage_edit_unstore(struct job *j);

/* --- manage_view.c ------------------------------------------------------- */

/* Writes "view": what a client of the view of that configuration would see. */
void mo_manage_put_view(struct mo_jw *w, const struct mo_manage *m,
                        const struct mo_config *cfg, const char *view);

/* Ends the pause of a server after a failure, because a test showed that it
 * works. */
void mo_manage_view_works(struct mo_manage *m, const char *server);

#endif
