/* manage.c - jobs that change the configured servers; see manage.h. */
#include "servers/manage_priv.h"

#include "base/mem.h"
#include "config/listen.h"
#include "connect/workspace.h"

bool mo_manage_allowed(const struct mo_config *c, const char *listen)
{
    return mo_config_origin(c, &c->server.manage) ? c->server.manage
                                                  : mo_listen_is_local(listen);
}

/* --- end of a job --------------------------------------------------------- */

static void job_free(struct job *j)
{
    mo_timer_stop(j->m->o.loop, &j->again);
    mo_entry_wipe(&j->entry.secrets);
    mo_entry_wipe(&j->undo);
    mo_manage_provider_wipe(j);
    mo_buf_wipe(&j->body);
    mo_buf_fini(&j->who);
    mo_buf_fini(&j->report);
    mo_buf_fini(&j->plan);
    if (j->tried.now)
        mo_config_close(&j->tried);
    mo_arena_fini(&j->a);
    mo_free(j);
}

static void on_ending(struct mo_later *d)
{
    struct mo_manage *m = mo_container_of(d, struct mo_manage, ending);
    struct mo_gone gone = m->gone;

    mo_free(m);
    mo_gone_fire(gone);
}

static void maybe_gone(struct mo_manage *m)
{
    if (m->gone.fire && m->under_way == 0)
        mo_loop_defer(m->o.loop, &m->ending);
}

static void finish_job(struct job *j, struct mo_span json,
                       const struct mo_err *why)
{
    struct mo_manage *m = j->m;

    mo_list_del(&j->node);
    j->done(j->arg, json, why);
    job_free(j);
    m->under_way--;
    maybe_gone(m);
}

static void finish_failed(struct job *j, const struct mo_err *why)
{
    mo_manage_edit_unstore(j);
    finish_job(j, mo_span(NULL, 0), why);
}

/* --- answers -------------------------------------------------------------- */

static void put_secrets(struct mo_jw *w, const struct job *j)
{
    mo_jw_member_arr(w, "secrets");
    for (const struct mo_entry_secret *s = j->entry.secrets; s; s = s->next)
        mo_jw_str(w, s->name);
    mo_jw_end(w);
}

static bool is_about_view(const struct job *j)
{
    return j->verb == MO_MANAGE_SET_VIEW || j->verb == MO_MANAGE_REMOVE_VIEW;
}

static void put_answer(const struct job *j, bool saved, struct mo_buf *b)
{
    static const char *const says[] = {
        [MO_MANAGE_ADD] = "MCP server added successfully",
        [MO_MANAGE_PATCH] = "MCP server changed successfully",
        [MO_MANAGE_REMOVE] = "MCP server removed successfully",
        [MO_MANAGE_SET_VIEW] = "view saved",
        [MO_MANAGE_REMOVE_VIEW] = "view removed",
        [MO_MANAGE_SET_PROVIDER] = "provider saved",
        [MO_MANAGE_REMOVE_PROVIDER] = "provider removed",
        [MO_MANAGE_SET_MODEL] = "default model saved",
    };
    struct mo_jw w = mo_jw_object(b);

    if (j->server)
        mo_jw_member_cstr(&w, "name", j->server);
    mo_jw_member_bool(&w, "saved", saved);
    if (saved)
        mo_jw_member_cstr(&w, "message", says[j->verb]);
    if (!is_about_view(j) && !mo_manage_is_model(j->verb))
        put_secrets(&w, j);
    if (j->verb == MO_MANAGE_SET_VIEW)
        mo_manage_put_view(&w, j->m, j->tried.now, j->server);
    mo_jw_member_raw(&w, "test", mo_buf_view(&j->report));
    mo_jw_end(&w);
}

static void finish_ok(struct job *j, bool saved)
{
    mo_autobuf struct mo_buf b = {.max = ANSWER_MAX};

    if (j->verb == MO_MANAGE_IMPORT)
        mo_buf_span(&b, mo_buf_view(&j->plan));
    else if (j->verb == MO_MANAGE_TEST)
        mo_buf_span(&b, mo_buf_view(&j->report));
    else
        put_answer(j, saved, &b);
    if (!saved)
        mo_manage_edit_unstore(j);
    if (mo_buf_err(&b))
        finish_job(j, mo_span(NULL, 0),
                   mo_error(MO_ENOMEM, "the answer is too big"));
    else
        finish_job(j, mo_buf_view(&b), NULL);
}

/* --- save ----------------------------------------------------------------- */

/* Removes file, line and column from the first message: the request is not the
 * file. */
static void explain_failure(const struct mo_file_edit *r,
                            const struct mo_config_report *rep,
                            struct mo_err *e)
{
    for (unsigned i = 0; e->code == MO_EINVAL && i < rep->kept; i++) {
        struct mo_span text = mo_span_cstr(rep->v[i].text);

        if (rep->v[i].warning)
            continue;
        if (mo_span_starts(text, mo_span_cstr(r->path))) {
            text = mo_span_skip(text, strlen(r->path));
            for (unsigned n = 0; n < 3 && mo_span_find(text, ':') >= 0; n++)
                (void)mo_span_cut(&text, ':');
            text = mo_span_trim(text);
        }
        (void)mo_fail(e, MO_EINVAL, "%.*s", (int)text.n, text.p);
        return;
    }
}

static int save_file(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    struct mo_config_report rep = {.kept = 0};
    int rc = mo_manage_edit_apply(j, r, e);

    if (rc == 0)
        rc = mo_manage_edit_store(j, e);
    if (rc == 0) {
        rc = mo_file_edit_save(r, &rep, e);
        if (rc < 0)
            explain_failure(r, &rep, e);
    }
    return rc;
}

static void step_save(struct job *j, struct mo_file_edit *r)
{
    struct mo_manage *m = j->m;
    struct mo_err e = {0};
    int rc = save_file(j, r, &e);
    bool changed = r->changed;

    mo_file_edit_close(r);
    if (rc < 0) {
        mo_log_err(mo_loop_log(m->o.loop), MO_WARN, "manage", &e, "%s",
                   j->server ? j->server : "import");
        finish_failed(j, &e);
        return;
    }
    if (mo_manage_is_model(j->verb))
        mo_manage_provider_saved(j);
    if (changed) {
        mo_log(mo_loop_log(m->o.loop), MO_INFO, "manage", "%s: written",
               j->server ? j->server : "import");
        m->o.written(m->o.ctx);
    }
    if (j->verb == MO_MANAGE_REMOVE)
        (void)mo_workspace_remove(m->o.config->now, j->server,
                                  MO_WORKSPACE_SWEEP, NULL);
    finish_ok(j, true);
}

static void start_test(struct job *j);

/* The row is on disk: starts the test, or saves. */
static void on_audited(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;

    if (why) {
        finish_failed(j,
                      mo_error(MO_EIO,
                               "not %s, because the audit log cannot be "
                               "written: %s",
                               j->step == TEST ? "tested" : "saved", why->msg));
    } else if (j->m->closing) {
        finish_failed(j, mo_error(MO_ECLOSED, "the program is ending"));
    } else if (j->step == TEST) {
        start_test(j);
    } else {
        j->until = mo_now_ns() + LOCK_MS * MO_MS;
        mo_timer_start(j->m->o.loop, &j->again, 0);
    }
}

/* next: TEST or SAVE. */
static void write_audit(struct job *j, enum step next)
{
    static const char *const verbs[] = {
        [MO_MANAGE_ADD] = "add",
        [MO_MANAGE_PATCH] = "change",
        [MO_MANAGE_REMOVE] = "remove",
        [MO_MANAGE_IMPORT] = "import",
        [MO_MANAGE_TEST] = "test",
        [MO_MANAGE_SET_VIEW] = "set view",
        [MO_MANAGE_REMOVE_VIEW] = "remove view",
        [MO_MANAGE_SET_PROVIDER] = "set provider",
        [MO_MANAGE_REMOVE_PROVIDER] = "remove provider",
        [MO_MANAGE_SET_MODEL] = "set default model",
    };
    mo_autobuf struct mo_buf entry = {.max = MO_STORE_DOC_MAX};
    bool import = j->verb == MO_MANAGE_IMPORT;
    bool is_model = mo_manage_is_model(j->verb);
    bool is_server = !is_about_view(j) && !is_model;
    const char *verb = next == SAVE ? verbs[j->verb]
                       : is_model   ? "test provider"
                                    : verbs[MO_MANAGE_TEST];
    struct mo_audit_row row = {
        .event = "managed",
        .subject = mo_span_cstr(verb),
        .server = mo_span_cstr(is_server ? j->server : NULL),
        .name = mo_span_cstr(is_server ? NULL : j->server),
        .who = mo_buf_view(&j->who),
        .plan = import ? mo_buf_view(&j->plan) : mo_span(NULL, 0),
    };
    struct mo_jw w;
    struct mo_err e;
    int rc;

    j->step = next;
    mo_jw_init(&w, &entry);
    if (is_model)
        mo_manage_provider_describe(j, &w);
    else if (!import && j->described.p)
        mo_entry_show(&w, j->described);
    row.entry = mo_buf_view(&entry);
    if (mo_buf_err(&entry))
        rc = mo_fail(&e, MO_EINVAL, "the request is too big");
    else
        rc = mo_audit_first(j->m->o.audit, &row, on_audited, j, &e);
    if (rc < 0)
        finish_failed(j, &e);
}

/* --- test ----------------------------------------------------------------- */

void mo_manage_tested(struct job *j)
{
    if (j->m->closing) {
        finish_failed(j, mo_error(MO_ECLOSED, "the program is ending"));
        return;
    }
    if (j->verb == MO_MANAGE_TEST && j->failed.code == 0)
        mo_manage_view_works(j->m, j->server);
    if (j->verb == MO_MANAGE_TEST || j->dry) {
        finish_ok(j, false);
    } else if (j->failed.code) {
        finish_failed(
            j,
            mo_error(MO_EUNAVAIL, "not saved, because the %s does not work: %s",
                     mo_manage_is_model(j->verb) ? "provider" : "server",
                     j->failed.msg));
    } else {
        write_audit(j, SAVE);
    }
}

static void on_link_gone(void *ctx)
{
    struct job *j = ctx;

    j->link = NULL;
    mo_manage_tested(j);
}

static void on_test_done(void *ctx, const struct mo_connect_test_result *r)
{
    struct job *j = ctx;
    struct mo_jw w;

    j->connect_test = NULL;
    j->failed = r->why;
    w = mo_jw_object(&j->report);
    mo_connect_test_json(&w, r, mo_server_link_said(j->link), j->server);
    mo_jw_end(&w);
    mo_server_link_close(j->link, on_link_gone, j);
}

static int begin_test(struct job *j, const struct mo_config *cfg,
                      struct mo_err *e)
{
    struct mo_connect_test_opts o = {
        .loop = j->m->o.loop,
        .server = mo_server_link_find(cfg, mo_span_cstr(j->server)),
        .timeout_ms = TEST_MS,
        .done = on_test_done,
        .ctx = j,
    };
    int rc = 0;

    if (o.server == NULL)
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    rc = mo_server_link_new(j->m->o.loop, cfg, &j->link, e);
    if (rc < 0)
        return rc;
    o.link = j->link;
    rc = mo_connect_test_start(&o, &j->connect_test, e);
    if (rc < 0) { /* reported when the link is gone */
        const struct mo_connect_test_result r = {.why = *e};

        on_test_done(j, &r);
    }
    return 0;
}

static void start_test(struct job *j)
{
    struct mo_err e = {0};
    int rc = mo_manage_edit_store(j, &e);

    if (rc == 0)
        rc = mo_manage_is_model(j->verb)
                 ? mo_manage_provider_test(j, j->tried.now, &e)
                 : begin_test(j, j->tried.now, &e);
    if (rc < 0)
        finish_failed(j, &e);
}

/* --- check ---------------------------------------------------------------- */

static int check_change(struct job *j, struct mo_file_edit *r, struct mo_err *e)
{
    struct mo_config_report rep = {.kept = 0};
    int rc = mo_manage_edit_apply(j, r, e);

    if (rc < 0)
        return rc;
    rc = mo_file_edit_try(r, &j->tried, &rep, e);
    if (rc < 0) {
        j->tried.now = NULL;
        explain_failure(r, &rep, e);
    }
    return rc;
}

static void step_check(struct job *j, struct mo_file_edit *r)
{
    struct mo_err e = {0};
    int rc = check_change(j, r, &e);

    mo_file_edit_close(r);
    if (rc < 0)
        finish_failed(j, &e);
    else if (!j->test && j->dry)
        finish_ok(j, false);
    else
        write_audit(j, j->test ? TEST : SAVE);
}

/* Runs the next step once the file lock is free; retries every AGAIN_MS. */
static void on_again(struct mo_timer *t)
{
    struct job *j = mo_container_of(t, struct job, again);
    struct mo_err e = {0};
    struct mo_file_edit r;
    int rc = 0;

    if (j->verb == MO_MANAGE_TEST) {
        j->tried.now = mo_config_ref(j->m->o.config->now);
        write_audit(j, TEST);
        return;
    }
    rc = mo_file_edit_open_now(&r, j->m->o.config, &e);
    if (rc == MO_EBUSY && mo_now_ns() < j->until && !j->m->closing)
        mo_timer_start(j->m->o.loop, &j->again, AGAIN_MS);
    else if (rc < 0)
        finish_failed(j, &e);
    else if (j->step == CHECK)
        step_check(j, &r);
    else
        step_save(j, &r);
}

/* --- requests ------------------------------------------------------------- */

static int copy_request(struct job *j, const struct mo_manage_ask *c,
                        struct mo_err *e)
{
    mo_arena_init(&j->a, BODY_ARENA);
    mo_buf_init(&j->body, MO_MANAGE_BODY_MAX + 1);
    mo_buf_init(&j->who, WORD_MAX);
    mo_buf_init(&j->report, ANSWER_MAX);
    mo_buf_init(&j->plan, ANSWER_MAX);
    mo_timer_init(&j->again, on_again);
    j->verb = c->verb;
    j->test = c->test;
    j->dry = c->dry;
    j->replace = c->replace;
    j->clear = c->clear;
    if (c->server.n > 0)
        j->server = mo_arena_strndup(&j->a, c->server.p, c->server.n);
    if (mo_buf_span(&j->body, c->body) || mo_buf_span(&j->who, c->who) ||
        (c->server.n > 0 && j->server == NULL))
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return mo_manage_edit_read(j, e);
}

static int check_allowed(const struct mo_manage *m,
                         const struct mo_manage_ask *c, struct mo_err *e)
{
    bool is_model = mo_manage_is_model(c->verb);

    if (m->closing)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (is_model && !mo_manage_models_allowed(m->o.config->now))
        return mo_fail(e, MO_EPOLICY,
                       "providers of models cannot be changed over HTTP here: "
                       "\"llm\": {\"editable\": true} in the configuration "
                       "allows it");
    if (c->verb != MO_MANAGE_TEST && !is_model &&
        !mo_manage_allowed(m->o.config->now, m->o.listen))
        return mo_fail(e, MO_EPOLICY,
                       "%s cannot be changed over HTTP here; \"server\": "
                       "{\"manage\": true} in the configuration allows it; %s "
                       "without it",
                       c->verb >= MO_MANAGE_SET_VIEW ? "views" : "servers",
                       c->verb >= MO_MANAGE_SET_VIEW
                           ? "an edit of the file works"
                           : "the `mcp` commands work");
    if (m->under_way >= JOBS)
        return mo_fail(e, MO_EBUSY, "too many changes at once");
    return 0;
}

int mo_manage_change(struct mo_manage *m, const struct mo_manage_ask *c,
                     mo_job_done_fn *done, void *arg, struct mo_err *e)
{
    struct job *j = NULL;
    int rc = check_allowed(m, c, e);

    if (rc < 0)
        return rc;
    j = mo_new(struct job);
    if (j == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    j->m = m;
    j->done = done;
    j->arg = arg;
    rc = copy_request(j, c, e);
    if (rc < 0) {
        job_free(j);
        return rc;
    }
    m->under_way++;
    mo_list_push(&m->jobs, &j->node);
    j->until = mo_now_ns() + LOCK_MS * MO_MS;
    mo_timer_start(m->o.loop, &j->again, 0);
    return 0;
}

/* --- new and close -------------------------------------------------------- */

struct mo_manage *mo_manage_new(const struct mo_manage_opts *o)
{
    struct mo_manage *m = mo_new(struct mo_manage);

    if (m == NULL)
        return NULL;
    m->o = *o;
    mo_list_init(&m->jobs);
    mo_later_init(&m->ending, on_ending);
    return m;
}

/* A job that waits for the file lock ends at its next retry. */
void mo_manage_close(struct mo_manage *m, void (*gone)(void *ctx), void *ctx)
{
    m->closing = true;
    m->gone = (struct mo_gone){gone, ctx};
    mo_list_each_entry (j, &m->jobs, struct job, node) {
        if (j->connect_test)
            mo_connect_test_stop(j->connect_test);
    }
    mo_list_each_entry_safe (j, &m->jobs, struct job, node) {
        if (j->asking) {
            m->o.models.drop(mo_take_ptr(&j->asking));
            finish_failed(j, mo_error(MO_ECLOSED, "the program is ending"));
        }
    }
    maybe_gone(m);
}
