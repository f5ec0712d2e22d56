/* by_name.c - runs `mcp search` and `mcp install`; see by_name.h. */
#include "servers/by_name.h"

#include <stdio.h>

#include "base/mem.h"
#include "loop/proc.h"
#include "servers/manage.h"

#define JOBS         2
#define ASK_MS       60000
#define INSTALL_MS   (15 * 60000)
#define TERM_MS      5000 /* until SIGKILL: it removes what it has begun */
#define OUTPUT_MAX   ((size_t)4 * 1024 * 1024)
#define TEXTS_MAX    ((size_t)256 * 1024)
#define WORDS_MAX    160 /* of the command line */
#define SAID_MAX     1024
#define EXIT_USAGE   2 /* as in cli/cli.h, which this layer does not know */
#define EXIT_UNAVAIL 4

struct mo_by_name {
    struct mo_by_name_opts o;
    struct mo_guard *guard; /* NULL: no command is running */
    unsigned guards;        /* including those that are ending */
    struct mo_list jobs;
    unsigned count;
    bool closing;
    struct mo_later ending;
    struct mo_gone gone;
};

/* The process, its output and its stderr end independently. */
struct job {
    struct mo_list node;
    struct mo_by_name *b;
    enum mo_by_name_verb verb;
    struct mo_arena a;
    const char *argv[WORDS_MAX];
    size_t argc;
    const char *who, *server, *agreed; /* of an installation */
    struct mo_proc *proc;
    struct mo_stream *out, *err; /* NULL: over */
    struct mo_timer limit;
    struct mo_buf json;
    char said[SAID_MAX]; /* the end of stderr */
    size_t nsaid;
    struct mo_exit exit;
    bool exited, late;
    mo_job_done_fn *done;
    void *arg;
};

/* --- end of a job --------------------------------------------------------- */

static void on_ending(struct mo_later *d)
{
    struct mo_by_name *b = mo_container_of(d, struct mo_by_name, ending);
    struct mo_gone gone = b->gone;

    mo_free(b);
    mo_gone_fire(gone);
}

static void maybe_gone(struct mo_by_name *b)
{
    if (b->closing && b->count == 0 && b->guards == 0)
        mo_loop_defer(b->o.loop, &b->ending);
}

static void on_guard_gone(void *ctx)
{
    struct mo_by_name *b = ctx;

    b->guards--;
    maybe_gone(b);
}

/* The guardian is a process; it is not kept for the next search. */
static void maybe_rest(struct mo_by_name *b)
{
    if (b->count == 0 && b->guard)
        mo_guard_stop(mo_take_ptr(&b->guard), on_guard_gone, b);
    maybe_gone(b);
}

static void job_free(struct job *j)
{
    struct mo_by_name *b = j->b;

    mo_timer_stop(b->o.loop, &j->limit);
    if (j->proc)
        mo_proc_free(j->proc);
    mo_buf_fini(&j->json);
    mo_arena_fini(&j->a);
    mo_list_del(&j->node);
    mo_free(j);
    b->count--;
    maybe_rest(b);
}

static void finish(struct job *j, const struct mo_err *why)
{
    j->done(j->arg, why ? mo_span(NULL, 0) : mo_buf_view(&j->json), why);
    job_free(j);
}

/* The last line of stderr, without the program's name. */
static struct mo_span last_line(const struct job *j)
{
    struct mo_span all = mo_span_trim(mo_span(j->said, j->nsaid)), line = all;
    struct mo_span name = MO_SPAN("mcp-orchestrator: ");

    while (all.n)
        line = mo_span_cut(&all, '\n');
    return mo_span_starts(line, name) ? mo_span_skip(line, name.n) : line;
}

static int code_of(const struct job *j)
{
    if (j->exit.signal)
        return MO_EUNAVAIL;
    return j->exit.code == EXIT_USAGE     ? MO_EINVAL
           : j->exit.code == EXIT_UNAVAIL ? MO_EUNAVAIL
                                          : MO_EIO;
}

static void on_ended(struct job *j)
{
    struct mo_span said = last_line(j);
    struct mo_json_doc doc;
    struct mo_err e = {0};

    if (j->late)
        (void)mo_fail(&e, MO_EUNAVAIL, "it took too long and was ended");
    else if (j->exit.signal || j->exit.code)
        (void)mo_fail(&e, code_of(j), "%.*s", (int)said.n, said.p);
    else if (mo_buf_err(&j->json) ||
             mo_json_parse(mo_buf_view(&j->json), 0, &doc, NULL) < 0)
        (void)mo_fail(&e, MO_EPROTO, "the command printed no JSON");
    if (e.code == 0 && j->verb == MO_BY_NAME_INSTALL)
        j->b->o.written(j->b->o.ctx);
    finish(j, e.code ? &e : NULL);
}

static void maybe_ended(struct job *j)
{
    if (j->exited && !j->out && !j->err)
        on_ended(j);
}

/* --- the command ---------------------------------------------------------- */

/* Our environment, with the state directory that we use. NULL: no memory. */
static const char *const *make_env(struct job *j)
{
    static const char *const own[] = {"MCP_ORCHESTRATOR_STATE_DIR=",
                                      "STATE_DIRECTORY="};
    const struct mo_config *cfg = j->b->o.config->now;
    mo_autobuf struct mo_buf dir = {.max = TEXTS_MAX};
    size_t n = 0, len = 0;
    const char **v;

    while (cfg->environ[n])
        n++;
    v = mo_arena_alloc(&j->a, (n + 2) * sizeof(*v));
    for (size_t i = 0; v && i < n; i++) {
        struct mo_span one = mo_span_cstr(cfg->environ[i]);

        if (!mo_span_starts(one, mo_span_cstr(own[0])) &&
            !mo_span_starts(one, mo_span_cstr(own[1])))
            v[len++] = cfg->environ[i];
    }
    if (!v)
        return NULL;
    mo_buf_printf(&dir, "%s%s", own[0], cfg->store.dir);
    v[len++] = mo_arena_strndup(&j->a, dir.p, dir.len);
    v[len] = NULL;
    return v[len - 1] ? v : NULL;
}

static void on_out(void *ctx, char *p, size_t n)
{
    (void)mo_buf_put(&((struct job *)ctx)->json, p, n);
}

static void on_out_close(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;

    (void)why;
    j->out = NULL;
    maybe_ended(j);
}

static void on_err(void *ctx, char *p, size_t n)
{
    struct job *j = ctx;

    j->nsaid = mo_tail_add(j->said, j->nsaid, sizeof(j->said), mo_span(p, n));
}

static void on_err_close(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;

    (void)why;
    j->err = NULL;
    maybe_ended(j);
}

static void on_exit(void *ctx, struct mo_proc *p, struct mo_exit x)
{
    struct job *j = ctx;

    (void)p;
    j->exit = x;
    j->exited = true;
    maybe_ended(j);
}

static void on_limit(struct mo_timer *t)
{
    struct job *j = mo_container_of(t, struct job, limit);

    j->late = true;
    mo_proc_term(j->proc, TERM_MS);
}

static int run(struct job *j, struct mo_err *e)
{
    static const struct mo_stream_cb out = {.on_read = on_out,
                                            .on_close = on_out_close};
    static const struct mo_stream_cb err = {.on_read = on_err,
                                            .on_close = on_err_close};
    static const struct mo_proc_cb cb = {on_exit};
    struct mo_by_name *b = j->b;
    const struct mo_proc_opts o = {
        .file = "/proc/self/exe",
        .argv = j->argv,
        .env = make_env(j),
        .err = MO_PROC_ERR_STREAM,
        .marked = true,
    };
    struct mo_proc_io io;
    int rc;

    if (!b->guard) {
        b->guard = mo_guard_new(b->o.loop, e);
        b->guards += b->guard != NULL;
    }
    if (!b->guard || !o.env)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    rc = mo_proc_start(b->guard, &o, &cb, j, &j->proc, &io, e);
    if (rc < 0)
        return rc;
    j->out = io.io;
    j->err = io.err;
    mo_stream_attach(j->out, &out, j);
    mo_stream_attach(j->err, &err, j);
    mo_timer_start(b->o.loop, &j->limit,
                   j->verb == MO_BY_NAME_INSTALL ? INSTALL_MS : ASK_MS);
    return 0;
}

/* --- the audit ------------------------------------------------------------ */

static void on_audited(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;
    struct mo_err e = {0};

    if (why)
        (void)mo_fail(&e, MO_EIO,
                      "not installed, because the audit log cannot be "
                      "written: %s",
                      why->msg);
    else if (j->b->closing)
        (void)mo_fail(&e, MO_ECLOSED, "the program is ending");
    else
        (void)run(j, &e);
    if (e.code)
        finish(j, &e);
}

static int record(struct job *j, struct mo_err *e)
{
    mo_autobuf struct mo_buf plan = {.max = MO_BY_NAME_BODY_MAX};
    struct mo_jw w = mo_jw_object(&plan);
    struct mo_audit_row row = {
        .event = "managed",
        .subject = MO_SPAN("install"),
        .server = mo_span_cstr(j->server),
        .who = mo_span_cstr(j->who),
    };

    mo_jw_member_cstr(&w, "agreed", j->agreed);
    mo_jw_end(&w);
    row.plan = mo_buf_view(&plan);
    return mo_audit_first(j->b->o.audit, &row, on_audited, j, e);
}

/* --- the request ---------------------------------------------------------- */

static void add(struct job *j, const char *word)
{
    if (j->argc < WORDS_MAX - 1)
        j->argv[j->argc] = word;
    j->argc++; /* counted, so that too many are seen */
}

static const char *text_of(struct job *j, struct mo_json v)
{
    struct mo_span s;

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str(v, &j->a, &s) < 0 ||
        mo_span_find(s, '\0') >= 0)
        return NULL;
    return mo_arena_strndup(&j->a, s.p, s.n);
}

/* An option whose value is a member of the request, if it is there. */
static int add_option(struct job *j, struct mo_json body, const char *key,
                      const char *option, const char **out, struct mo_err *e)
{
    struct mo_json v = mo_json_get(body, key);
    const char *text = v.p ? text_of(j, v) : NULL;

    if (!v.p)
        return 0;
    if (!text)
        return mo_fail(e, MO_EINVAL, "'%s' must be a text", key);
    add(j, option);
    add(j, text);
    if (out)
        *out = text;
    return 0;
}

static void add_flag(struct job *j, struct mo_json body, const char *key,
                     const char *option)
{
    if (mo_span_is(mo_json_text(mo_json_get(body, key)), "true"))
        add(j, option);
}

static int add_env(struct job *j, struct mo_json env, struct mo_err *e)
{
    if (env.p && !mo_json_is(env, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "'env' must be an object");
    mo_json_each (it, env) {
        mo_autobuf struct mo_buf pair = {.max = TEXTS_MAX};
        const char *name = text_of(j, it.key), *value = text_of(j, it.val);

        if (!name || !value || strchr(name, '='))
            return mo_fail(e, MO_EINVAL, "'env' must have texts");
        mo_buf_printf(&pair, "%s=%s", name, value);
        add(j, "--env");
        add(j, mo_arena_strndup(&j->a, pair.p, pair.len));
    }
    return 0;
}

/* The texts of an array, each after the option, if there is one. */
static int add_texts(struct job *j, struct mo_json list, const char *key,
                     const char *option, struct mo_err *e)
{
    struct mo_json_iter it;
    struct mo_json none, v;

    if (!mo_json_is(list, MO_JSON_ARRAY))
        return mo_fail(e, MO_EINVAL, "'%s' must be an array", key);
    mo_json_iter(&it, list);
    while (mo_json_next(&it, &none, &v)) {
        const char *text = text_of(j, v);

        if (!text)
            return mo_fail(e, MO_EINVAL, "'%s' must have texts", key);
        if (option)
            add(j, option);
        add(j, text);
    }
    return 0;
}

static int add_args(struct job *j, struct mo_json args, struct mo_err *e)
{
    if (!args.p)
        return 0;
    if (mo_json_len(args))
        add(j, "--");
    return add_texts(j, args, "args", NULL, e);
}

/* Those that its box may reach; an empty list: none. */
static int add_hosts(struct job *j, struct mo_json hosts, struct mo_err *e)
{
    if (!hosts.p)
        return 0;
    if (mo_json_is(hosts, MO_JSON_ARRAY) && mo_json_len(hosts) == 0) {
        add(j, "--allow-host");
        add(j, "none");
        return 0;
    }
    return add_texts(j, hosts, "hosts", "--allow-host", e);
}

/* A word that is no option. */
static int add_word(struct job *j, const char *word, struct mo_err *e)
{
    if (!word || !word[0] || word[0] == '-')
        return mo_fail(e, MO_EINVAL, "'server' must be the name of a server");
    add(j, word);
    return 0;
}

/* Options that every command gets. */
static void add_usual(struct job *j)
{
    const char *file = j->b->o.config->now->file;

    add(j, "--json");
    if (file) {
        add(j, "--config");
        add(j, mo_arena_strndup(&j->a, file, strlen(file)));
    }
}

static int read_install(struct job *j, struct mo_span text, struct mo_err *e)
{
    bool installs = j->verb == MO_BY_NAME_INSTALL;
    struct mo_json_doc doc;
    struct mo_json body;
    int rc;

    if (mo_json_parse(text, 0, &doc, e) < 0 ||
        !mo_json_is(doc.root, MO_JSON_OBJECT))
        return mo_fail(e, MO_EINVAL, "the body must be an object");
    body = doc.root;
    j->server = text_of(j, mo_json_get(body, "server"));
    add(j, "install");
    rc = add_word(j, j->server, e);
    if (rc == 0)
        rc = add_option(j, body, "name", "--name", &j->server, e);
    if (rc == 0)
        rc = add_option(j, body, "kind", "--kind", NULL, e);
    if (rc == 0)
        rc = add_option(j, body, "bin", "--bin", NULL, e);
    if (rc == 0)
        rc = add_option(j, body, "agreed", "--agreed", &j->agreed, e);
    if (rc == 0)
        rc = add_env(j, mo_json_get(body, "env"), e);
    if (rc == 0)
        rc = add_hosts(j, mo_json_get(body, "hosts"), e);
    if (rc < 0)
        return rc;
    if (installs && !j->agreed)
        return mo_fail(e, MO_EINVAL, "'agreed' must name the plan");
    add_flag(j, body, "unboxed", "--unboxed");
    add_flag(j, body, "allowScripts", "--allow-scripts");
    if (installs)
        add_flag(j, body, "acceptWarnings", "--accept-warnings");
    add(j, installs ? "--yes" : "--dry-run");
    add_usual(j);
    return add_args(j, mo_json_get(body, "args"), e);
}

static int read_search(struct job *j, struct mo_span words, struct mo_err *e)
{
    int rc = 0;

    add(j, "search");
    while (rc == 0 && words.n) {
        struct mo_span word = mo_span_cut(&words, ' ');

        if (word.n)
            rc = add_word(j, mo_arena_strndup(&j->a, word.p, word.n), e);
    }
    add_usual(j);
    return rc;
}

static int read_request(struct job *j, struct mo_span text, struct mo_err *e)
{
    int rc;

    add(j, "mcp-orchestrator");
    add(j, "mcp");
    rc = j->verb == MO_BY_NAME_SEARCH ? read_search(j, text, e)
                                      : read_install(j, text, e);
    if (rc < 0)
        return rc;
    if (j->argc >= WORDS_MAX - 1)
        return mo_fail(e, MO_EINVAL, "too many words");
    for (size_t i = 0; i < j->argc; i++)
        if (!j->argv[i])
            return mo_fail(e, MO_ENOMEM, "out of memory");
    return 0;
}

static struct job *job_new(struct mo_by_name *b)
{
    struct job *j = mo_new(struct job);

    if (!j)
        return NULL;
    j->b = b;
    mo_arena_init(&j->a, TEXTS_MAX);
    mo_buf_init(&j->json, OUTPUT_MAX);
    mo_timer_init(&j->limit, on_limit);
    mo_list_push(&b->jobs, &j->node);
    b->count++;
    return j;
}

int mo_by_name_ask(struct mo_by_name *b, enum mo_by_name_verb verb,
                   struct mo_span text, struct mo_span who,
                   mo_job_done_fn *done, void *arg, struct mo_err *e)
{
    struct job *j;
    int rc;

    if (b->closing)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (!mo_manage_allowed(b->o.config->now, b->o.listen))
        return mo_fail(e, MO_EPOLICY,
                       "servers cannot be changed here: server.manage is off");
    if (b->count >= JOBS)
        return mo_fail(e, MO_EBUSY,
                       "others are searching or installing; try "
                       "again in a moment");
    j = job_new(b);
    if (!j)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    j->verb = verb;
    j->done = done;
    j->arg = arg;
    j->who = mo_arena_strndup(&j->a, who.p, who.n);
    rc = read_request(j, text, e);
    if (rc == 0)
        rc = verb == MO_BY_NAME_INSTALL ? record(j, e) : run(j, e);
    if (rc < 0)
        job_free(j);
    return rc;
}

struct mo_by_name *mo_by_name_new(const struct mo_by_name_opts *o)
{
    struct mo_by_name *b = mo_new(struct mo_by_name);

    if (!b)
        return NULL;
    b->o = *o;
    mo_list_init(&b->jobs);
    mo_later_init(&b->ending, on_ending);
    return b;
}

void mo_by_name_close(struct mo_by_name *b, void (*gone)(void *ctx), void *ctx)
{
    b->closing = true;
    b->gone = (struct mo_gone){gone, ctx};
    mo_list_each_entry (j, &b->jobs, struct job, node) {
        if (j->proc)
            mo_proc_term(j->proc, TERM_MS);
    }
    maybe_gone(b);
}
