/*
 * try.c - see try.h.
 *
 * A job goes server -> tools -> (judged -> audited -> called) and is answered
 * once; what it was asked with is copied, because the asker may be gone.
 */
#include "app/try_priv.h"

/* --- a job --------------------------------------------------------------- */

static void job_free(struct job *j)
{
    mo_tools_free(j->tools);
    mo_buf_fini(&j->server);
    mo_buf_fini(&j->name);
    mo_buf_fini(&j->args);
    mo_buf_fini(&j->digest);
    mo_buf_fini(&j->who);
    mo_free(j);
}

static void maybe_gone(struct mo_try *t)
{
    void (*gone)(void *) = t->gone;
    void *ctx = t->gone_ctx;

    if (gone == NULL || t->under_way > 0)
        return;
    mo_free(t);
    gone(ctx);
}

void try_finish(struct job *j, struct mo_span json, const struct mo_err *why)
{
    struct mo_try *t = j->t;

    j->done(j->arg, json, why);
    job_free(j);
    t->under_way--;
    maybe_gone(t);
}

void try_finish_buf(struct job *j, struct mo_buf *b)
{
    struct mo_err e;

    if (mo_buf_err(b)) {
        mo_fail(&e, b->err, "the answer is too big");
        try_finish(j, mo_span(NULL, 0), &e);
    } else {
        try_finish(j, mo_buf_view(b), NULL);
    }
    mo_buf_fini(b);
}

void try_finish_fail(struct job *j, int code, const char *text)
{
    struct mo_err e;

    mo_fail(&e, code, "%s", text);
    try_finish(j, mo_span(NULL, 0), &e);
}

void try_put(struct mo_jw *w, const char *key, struct mo_span text)
{
    mo_jw_key(w, key);
    mo_jw_str(w, text);
}

void try_put_json(struct mo_jw *w, const char *key, struct mo_span json)
{
    mo_jw_key(w, key);
    mo_jw_raw(w, json.n > 0 ? json : MO_SPAN("null"));
}

/* --- the list of servers ------------------------------------------------- */

static const char *kind_of(const struct mo_config_mcp *c)
{
    if (c->image)
        return "image";
    if (c->url)
        return c->transport == MO_TRANSPORT_SSE ? "sse" : "http";
    return "stdio";
}

/* What a person knows it by; never its environment or headers. */
static void put_target(struct mo_jw *w, const struct mo_config_mcp *c)
{
    struct mo_buf b;

    mo_buf_init(&b, (size_t)64 * 1024);
    if (c->image || c->url) {
        mo_buf_puts(&b, c->image ? c->image : c->url);
    } else {
        mo_buf_puts(&b, c->command ? c->command : "");
        for (size_t i = 0; i < c->args.n; i++)
            mo_buf_printf(&b, " %s", c->args.v[i]);
    }
    try_put(w, "target", mo_buf_err(&b) ? MO_SPAN("") : mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void put_config(struct mo_jw *w, const struct mo_config_mcp *c)
{
    try_put(w, "name", mo_span_cstr(c->name));
    mo_jw_key(w, "kind");
    mo_jw_cstr(w, kind_of(c));
    put_target(w, c);
    if (c->description && c->description[0])
        try_put(w, "description", mo_span_cstr(c->description));
}

static void put_open(struct mo_jw *w, struct mo_conn *c)
{
    const struct mo_conn_info *info = mo_conn_info(c);

    try_put(w, "version", mo_span_cstr(mo_mcp_version_text(info->version)));
    if (mo_json_is(info->server, MO_JSON_OBJECT))
        try_put_json(w, "info", mo_json_text(info->server));
    mo_jw_key(w, "calls");
    mo_jw_u64(w, mo_conn_stats(c)->calls);
}

static void put_stderr(const struct mo_try *t, struct mo_jw *w,
                       const char *server)
{
    struct mo_buf b;

    mo_buf_init(&b, MO_TAIL_MAX);
    if (mo_tails_get(mo_servers_said(t->o.servers), server, &b) == 0 &&
        b.len > 0)
        try_put(w, "stderr", mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void put_server(const struct mo_try *t, struct mo_jw *w,
                       const struct mo_server_look *look)
{
    mo_jw_obj(w);
    put_config(w, look->cfg);
    mo_jw_key(w, "state");
    mo_jw_cstr(w, look->state);
    if (look->why.code)
        try_put(w, "error", mo_span_cstr(look->why.msg));
    if (look->retry_ms > 0) {
        mo_jw_key(w, "retryMs");
        mo_jw_u64(w, look->retry_ms);
    }
    put_stderr(t, w, look->cfg->name);
    if (look->conn)
        put_open(w, look->conn);
    mo_jw_end(w);
}

static int list(void *ctx, struct mo_buf *out)
{
    struct mo_try *t = ctx;
    size_t n = t->servers.count(t->servers.ctx);
    struct mo_server_look look;
    struct mo_jw w;

    mo_jw_init(&w, out);
    mo_jw_obj(&w);
    mo_jw_key(&w, "servers");
    mo_jw_arr(&w);
    for (size_t i = 0; i < n; i++) {
        mo_servers_look(t->o.servers, i, &look);
        put_server(t, &w, &look);
    }
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- the tools of one ---------------------------------------------------- */

static void put_tool(struct job *j, struct mo_jw *w, const struct mo_tool *t)
{
    const struct mo_agent_pins *p = &j->t->pins;
    struct mo_buf before;

    mo_buf_init(&before, ANSWER_MAX);
    mo_jw_obj(w);
    try_put(w, "name", t->def.name);
    try_put(w, "title", t->title);
    try_put(w, "description", t->def.description);
    try_put_json(w, "inputSchema", t->def.schema);
    try_put_json(w, "annotations", t->def.annotations);
    try_put(w, "digest", mo_span_cstr(t->digest));
    if (!p->look(p->ctx, t, &before))
        try_put_json(w, "changedFrom",
                     mo_buf_err(&before) ? MO_SPAN("null")
                                         : mo_buf_view(&before));
    mo_jw_end(w);
    mo_buf_fini(&before);
}

static void finish_list(struct job *j)
{
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, ANSWER_MAX);
    mo_jw_init(&w, &b);
    mo_jw_obj(&w);
    mo_jw_key(&w, "tools");
    mo_jw_arr(&w);
    for (size_t i = 0; i < mo_tools_count(j->tools); i++)
        put_tool(j, &w, mo_tools_at(j->tools, i));
    mo_jw_end(&w);
    mo_jw_end(&w);
    j->t->pins.flush(j->t->pins.ctx);
    try_finish_buf(j, &b);
}

static const struct mo_tool *find_tool(const struct job *j)
{
    for (size_t i = 0; i < mo_tools_count(j->tools); i++) {
        const struct mo_tool *t = mo_tools_at(j->tools, i);

        if (mo_span_eq(t->def.name, mo_buf_view(&j->name)))
            return t;
    }
    return NULL;
}

/* --- accepting a change -------------------------------------------------- */

static void accept_tool(struct job *j)
{
    const struct mo_agent_pins *p = &j->t->pins;
    struct mo_buf b;

    if (!mo_span_eq_ct(mo_buf_view(&j->digest),
                       mo_span_cstr(j->tool->digest))) {
        try_finish_fail(j, MO_EPOLICY, "the tool is not what was shown");
        return;
    }
    if (p->accept(p->ctx, j->tool) < 0) {
        try_finish_fail(j, MO_ENOMEM, "out of memory");
        return;
    }
    p->flush(p->ctx);
    mo_buf_init(&b, 4096);
    mo_buf_puts(&b, "{\"accepted\":");
    mo_json_quote(&b, j->tool->def.name);
    mo_buf_puts(&b, ",\"server\":");
    mo_json_quote(&b, j->tool->def.server);
    mo_buf_printf(&b, ",\"digest\":\"%s\",\"who\":", j->tool->digest);
    mo_json_quote(&b, mo_buf_view(&j->who));
    mo_buf_putc(&b, '}');
    if (mo_buf_err(&b) == 0)
        try_audit(j, mo_buf_view(&b));
    mo_buf_fini(&b);
    mo_servers_stale(j->t->o.servers);
    try_finish(j, MO_SPAN("{\"ok\":true}"), NULL);
}

/* --- the way there ------------------------------------------------------- */

static void on_tools(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;
    const char *failed = why ? why->msg : mo_tools_failed(j->tools, 0);

    if (failed) {
        try_finish_fail(j, MO_EUNAVAIL, failed);
        return;
    }
    if (j->kind == LIST) {
        finish_list(j);
        return;
    }
    j->tool = find_tool(j);
    if (j->tool == NULL)
        try_finish_fail(j, MO_ENOTFOUND, "the server has no such tool");
    else if (j->kind == ACCEPT)
        accept_tool(j);
    else
        try_call(j);
}

static void on_there(void *arg, const struct mo_err *why)
{
    struct job *j = arg;
    const struct mo_agent_servers *s = &j->t->servers;
    struct mo_tool_source src = {.bare = true};
    struct mo_err e = {0};
    size_t i = 0;

    if (why == NULL && !try_server(j, &i))
        mo_fail(&e, MO_EUNAVAIL, "it is not configured any more");
    else if (why == NULL) {
        src.conn = s->conn(s->ctx, i, &e);
        src.name = mo_span_cstr(s->name(s->ctx, i));
    }
    if (why)
        try_finish_fail(j, MO_EUNAVAIL, why->msg);
    else if (src.conn == NULL ||
             mo_tools_load(j->tools, &src, 1, on_tools, j, &e) < 0)
        try_finish_fail(j, MO_EUNAVAIL, e.msg);
}

bool try_server(const struct job *j, size_t *out)
{
    return mo_servers_find(j->t->o.servers, mo_buf_view(&j->server), out);
}

static struct job *job_new(struct mo_try *t, enum kind kind)
{
    struct job *j = mo_new(struct job);

    if (j == NULL)
        return NULL;
    j->t = t;
    j->kind = kind;
    mo_buf_init(&j->server, WORD_MAX);
    mo_buf_init(&j->name, WORD_MAX);
    mo_buf_init(&j->args, MO_EXACT_MAX);
    mo_buf_init(&j->digest, WORD_MAX);
    mo_buf_init(&j->who, WORD_MAX);
    j->tools = mo_tools_new(t->o.loop);
    return j;
}

/* The arguments in the one form in which they are asked about and sent. */
static int take(struct job *j, const struct mo_api_try *a, struct mo_err *e)
{
    struct mo_json_doc doc;

    if (j->tools == NULL || mo_buf_span(&j->server, a->server) ||
        mo_buf_span(&j->name, a->tool) || mo_buf_span(&j->digest, a->digest) ||
        mo_buf_span(&j->who, a->who))
        return mo_fail(e, MO_EINVAL, "that is too long");
    if (mo_json_parse(a->args.n > 0 ? a->args : MO_SPAN("{}"), 0, &doc, e) <
            0 ||
        mo_exact_args(doc.root, &j->args, e) < 0) {
        e->code = MO_EINVAL;
        return e->code;
    }
    return 0;
}

static int start(struct mo_try *t, enum kind kind, const struct mo_api_try *a,
                 mo_api_json_fn *done, void *arg, struct mo_err *e)
{
    struct job *j = NULL;
    size_t server = 0;
    int rc = 0;

    if (t->stopped)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (!mo_servers_find(t->o.servers, a->server, &server))
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    if (t->under_way >= TRIES)
        return mo_fail(e, MO_EBUSY, "too many are being tried");
    j = job_new(t, kind);
    if (j == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    j->done = done;
    j->arg = arg;
    rc = take(j, a, e);
    if (rc == 0)
        rc = t->servers.use(t->servers.ctx, server, on_there, j, e);
    if (rc < 0)
        job_free(j);
    else
        t->under_way++;
    return rc;
}

static int tools(void *ctx, struct mo_span server, bool now,
                 mo_api_json_fn *done, void *arg, struct mo_err *e)
{
    const struct mo_api_try a = {.server = server};
    struct mo_try *t = ctx;
    size_t i = 0;

    if (now && !t->stopped && mo_servers_find(t->o.servers, server, &i))
        mo_servers_retry(t->o.servers, i);
    return start(t, LIST, &a, done, arg, e);
}

static int call(void *ctx, const struct mo_api_try *a, mo_api_json_fn *done,
                void *arg, struct mo_err *e)
{
    return start(ctx, CALL, a, done, arg, e);
}

static int accept_change(void *ctx, const struct mo_api_try *a,
                         mo_api_json_fn *done, void *arg, struct mo_err *e)
{
    return start(ctx, ACCEPT, a, done, arg, e);
}

/* --- all of it ----------------------------------------------------------- */

struct mo_try *mo_try_new(const struct mo_try_opts *o)
{
    struct mo_try *t = mo_new(struct mo_try);

    if (t == NULL)
        return NULL;
    t->o = *o;
    t->servers = mo_servers_for(o->servers);
    t->pins = mo_pins_for(o->pins);
    return t;
}

void mo_try_stop(struct mo_try *t)
{
    t->stopped = true;
}

void mo_try_close(struct mo_try *t, void (*gone)(void *ctx), void *ctx)
{
    t->stopped = true;
    t->gone = gone;
    t->gone_ctx = ctx;
    maybe_gone(t);
}

struct mo_api_servers mo_try_for(struct mo_try *t)
{
    return (struct mo_api_servers){list, tools, call, accept_change, t};
}
