/* try_tool.c - jobs, the list of servers and their tools; see try_tool.h.
 *
 * A job goes server -> tools -> (judged -> audited -> called) and is answered
 * once. The request is copied, because its client may disconnect. */
#include "servers/try_tool_priv.h"

#include "gateway/upstream/upstream.h"
#include "mcp/server/link_inside.h"
#include "servers/server_view.h"

/* --- jobs ----------------------------------------------------------------- */

struct mo_gateway *mo_try_tool_gateway(const struct mo_try_tool *t)
{
    return mo_gateway_setup_gateway(t->o.gateway);
}

static void job_free(struct job *j)
{
    mo_list_del(&j->node);
    mo_try_tool_live_end(j);
    mo_tools_free(j->tools);
    mo_buf_fini(&j->server);
    mo_buf_fini(&j->name);
    mo_buf_fini(&j->args);
    mo_buf_fini(&j->digest);
    mo_buf_fini(&j->who);
    mo_free(j);
}

static void on_ending(struct mo_later *d)
{
    struct mo_try_tool *t = mo_container_of(d, struct mo_try_tool, ending);
    struct mo_gone gone = t->gone;

    mo_free(t);
    mo_gone_fire(gone);
}

static void maybe_gone(struct mo_try_tool *t)
{
    if (t->gone.fire && t->under_way == 0 && !t->conn)
        mo_loop_defer(t->o.loop, &t->ending);
}

void mo_try_tool_finish(struct job *j, struct mo_span json,
                        const struct mo_err *why)
{
    struct mo_try_tool *t = j->t;

    j->done(j->arg, json, why);
    job_free(j);
    t->under_way--;
    maybe_gone(t);
}

void mo_try_tool_finish_buf(struct job *j, struct mo_buf *b)
{
    if (mo_buf_err(b))
        mo_try_tool_finish_fail(j, b->err, "the answer is too big");
    else
        mo_try_tool_finish(j, mo_buf_view(b), NULL);
    mo_buf_fini(b);
}

void mo_try_tool_finish_fail(struct job *j, int code, const char *text)
{
    mo_try_tool_finish(j, mo_span(NULL, 0), mo_error(code, "%s", text));
}

void mo_try_tool_put_json(struct mo_jw *w, const char *key, struct mo_span json)
{
    mo_jw_member_raw(w, key, json.n > 0 ? json : MO_SPAN("null"));
}

/* --- list of servers ------------------------------------------------------ */

static void put_server(const struct mo_try_tool *t, struct mo_jw *w,
                       const struct mo_config_mcp *c, size_t no)
{
    struct mo_gateway *g = mo_try_tool_gateway(t);
    struct mo_upstream_status s;

    mo_upstream_status(mo_gateway_up(g, no), &s);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", c->name);
    mo_server_view_config(w, c);
    mo_server_view_status(w, mo_server_view_state((int)s.state), &s,
                          t->o.gateway, c->name);
    mo_server_view_open(w, mo_gateway_conn(g, no), (struct mo_json){NULL, 0});
    mo_jw_end(w);
}

int mo_try_tool_list(struct mo_try_tool *t, struct mo_buf *out)
{
    const struct mo_config_mcps *all =
        &mo_server_link_now(mo_gateway_setup_link(t->o.gateway))->mcp;
    struct mo_gateway *g = mo_try_tool_gateway(t);
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_arr(&w, "servers");
    for (size_t i = 0; i < all->n; i++) {
        size_t no = mo_gateway_server(g, mo_span_cstr(all->v[i].name));

        if (no < mo_gateway_count(g))
            put_server(t, &w, &all->v[i], no);
    }
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

/* --- tools of one server -------------------------------------------------- */

static void put_tool(struct job *j, struct mo_jw *w, const struct mo_tool *t)
{
    mo_autobuf struct mo_buf before = {.max = ANSWER_MAX};

    mo_jw_obj(w);
    mo_jw_member(w, "name", t->def.name);
    mo_jw_member(w, "title", t->title);
    mo_jw_member(w, "description", t->def.description);
    mo_try_tool_put_json(w, "inputSchema", t->def.schema);
    mo_try_tool_put_json(w, "annotations", t->def.annotations);
    mo_jw_member_cstr(w, "digest", t->digest);
    if (!mo_policy_tool_is_pinned(j->t->o.policy, t, &before))
        mo_try_tool_put_json(w, "changedFrom",
                             mo_buf_err(&before) ? MO_SPAN("null")
                                                 : mo_buf_view(&before));
    mo_jw_end(w);
}

static void finish_list(struct job *j)
{
    struct mo_buf b;
    struct mo_jw w;

    mo_buf_init(&b, ANSWER_MAX);
    w = mo_jw_object(&b);
    mo_jw_member_arr(&w, "tools");
    for (size_t i = 0; i < mo_tools_count(j->tools); i++)
        put_tool(j, &w, mo_tools_at(j->tools, i));
    mo_jw_end_all(&w);
    mo_policy_flush_pins(j->t->o.policy);
    mo_try_tool_finish_buf(j, &b);
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
    const struct mo_audit_row row = {
        .event = "accepted",
        .subject = j->tool->def.name,
        .server = j->tool->def.server,
        .digest = j->tool->digest,
        .who = mo_buf_view(&j->who),
    };

    if (!mo_span_eq_ct(mo_buf_view(&j->digest),
                       mo_span_cstr(j->tool->digest))) {
        mo_try_tool_finish_fail(j, MO_EPOLICY,
                                "the tool is not what was shown");
        return;
    }
    if (mo_policy_accept_tool(j->t->o.policy, j->tool) < 0) {
        mo_try_tool_finish_fail(j, MO_ENOMEM, "out of memory");
        return;
    }
    mo_audit_note(j->t->o.audit, &row);
    j->t->o.accepted(j->t->o.ctx);
    mo_try_tool_finish(j, MO_SPAN("{\"ok\":true}"), NULL);
}

/* --- reading the tools ---------------------------------------------------- */

static void on_tools(void *ctx, const struct mo_err *why)
{
    struct job *j = ctx;
    const char *failed = why ? why->msg : mo_tools_failed(j->tools, 0);

    if (failed) {
        mo_try_tool_finish_fail(j, MO_EUNAVAIL, failed);
        return;
    }
    if (j->kind == LIST || j->kind == KNOWN) {
        finish_list(j);
        return;
    }
    j->tool = find_tool(j);
    if (j->tool == NULL)
        mo_try_tool_finish_fail(j, MO_ENOTFOUND, "the server has no such tool");
    else if (j->kind == ACCEPT)
        accept_tool(j);
    else
        mo_try_tool_run(j);
}

/* Why the list of the server cannot be read. */
static const char *explain_no_list(const struct mo_gw_read *r)
{
    size_t no = mo_gateway_server(r->g, mo_span_cstr(r->server));

    if (no >= mo_gateway_count(r->g))
        return "the server is no longer configured";
    return r->late ? "the server did not answer in time"
                   : mo_catalog_failed(mo_gateway_catalog(r->g), (unsigned)no);
}

static int load_tools(struct job *j, struct mo_err *e)
{
    struct mo_tool_source src = {.name = mo_buf_view(&j->server),
                                 .gateway = mo_try_tool_gateway(j->t),
                                 .bare = true};

    return mo_tools_load(j->tools, &src, 1, on_tools, j, e);
}

static void on_read(struct mo_gw_read *r)
{
    struct job *j = mo_container_of(r, struct job, read);
    const char *why = explain_no_list(r);
    struct mo_err e = {0};

    j->reading = false;
    if (why)
        mo_try_tool_finish_fail(j, MO_EUNAVAIL, why);
    else if (load_tools(j, &e) < 0)
        mo_try_tool_finish_fail(j, MO_EUNAVAIL, e.msg);
}

static void read_server(struct job *j)
{
    j->read = (struct mo_gw_read){.server = mo_buf_cstr(&j->server),
                                  .peer = j->t->client,
                                  .caps = MO_SPAN(TRY_CAPABILITIES),
                                  .ms = READ_MS,
                                  .done = on_read};
    j->reading = true;
    mo_gateway_read(mo_try_tool_gateway(j->t), &j->read);
}

static struct job *job_new(struct mo_try_tool *t, enum kind kind)
{
    struct job *j = mo_new(struct job);

    if (j == NULL)
        return NULL;
    j->t = t;
    j->kind = kind;
    mo_list_push(&t->jobs, &j->node);
    j->server.max = j->name.max = j->digest.max = j->who.max = WORD_MAX;
    j->args.max = MO_EXACT_MAX;
    mo_try_tool_live_init(j);
    j->tools = mo_tools_new(t->o.loop);
    return j;
}

/* Copies the request. The arguments are canonicalised once: the same bytes are
 * asked about and sent. */
static int copy_request(struct job *j, const struct mo_try_tool_ask *a,
                        struct mo_err *e)
{
    struct mo_json_doc doc;

    if (j->tools == NULL || mo_buf_span(&j->server, a->server) ||
        mo_buf_span(&j->name, a->tool) || mo_buf_span(&j->digest, a->digest) ||
        mo_buf_span(&j->who, a->who) || mo_buf_span(&j->run, a->run))
        return mo_fail(e, MO_EINVAL, "that is too long");
    if (mo_json_parse(a->args.n > 0 ? a->args : MO_SPAN("{}"), 0, &doc, e) <
            0 ||
        mo_exact_args(doc.root, &j->args, e) < 0) {
        e->code = MO_EINVAL;
        return e->code;
    }
    return 0;
}

/* --- connection to the gateway -------------------------------------------- */

static int on_dial(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct mo_try_tool *t = ctx;

    if (t->link == NULL)
        return mo_fail(e, MO_ECLOSED, "the gateway was left");
    mo_conn_dialed(conn, mo_take_ptr(&t->link), NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *conn)
{
    (void)conn;
    ((struct mo_try_tool *)ctx)->open = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_try_tool *t = ctx;

    (void)why; /* callers are notified */
    t->conn = NULL;
    t->open = false;
    if (t->link)
        mo_link_close(mo_take_ptr(&t->link), NULL);
    maybe_gone(t);
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_open,
    .on_ask = mo_try_tool_question,
    .on_ask_gone = mo_try_tool_question_gone,
    .on_close = on_close,
};

static int connect_gateway(struct mo_try_tool *t, struct mo_err *e)
{
    const struct mo_conn_opts o = {.mode = MO_CONN_LEGACY,
                                   .capabilities = MO_SPAN(TRY_CAPABILITIES),
                                   .dial = on_dial,
                                   .cb = &conn_cb,
                                   .ctx = t};
    int rc = 0;

    if (t->conn)
        return 0;
    rc = mo_link_inside(t->o.loop, mo_gateway_setup_endpoint(t->o.gateway),
                        MO_SPAN("try"), mo_span(NULL, 0), &t->link, e);
    if (rc < 0)
        return rc;
    t->client = mo_link_inside_peer(t->link);
    rc = mo_conn_open(t->o.loop, &o, &t->conn, e);
    if (rc < 0)
        mo_link_close(mo_take_ptr(&t->link), NULL);
    return rc;
}

/* --- requests ------------------------------------------------------------- */

static int start_job(struct mo_try_tool *t, enum kind kind,
                     const struct mo_try_tool_ask *a, mo_job_done_fn *done,
                     void *arg, struct mo_err *e)
{
    struct mo_gateway *g = mo_try_tool_gateway(t);
    struct job *j = NULL;
    int rc = 0;

    if (t->stopped)
        return mo_fail(e, MO_ECLOSED, "the program is ending");
    if (mo_gateway_server(g, a->server) >= mo_gateway_count(g))
        return mo_fail(e, MO_ENOTFOUND, "there is no such server");
    if (t->under_way >= TRIES)
        return mo_fail(e, MO_EBUSY, "too many tools are being tried");
    j = job_new(t, kind);
    if (j == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    j->done = done;
    j->arg = arg;
    j->from = a->door;
    rc = copy_request(j, a, e);
    if (rc == 0)
        rc = connect_gateway(t, e);
    if (rc == 0 && kind == KNOWN)
        rc = load_tools(j, e);
    if (rc < 0) {
        job_free(j);
        return rc;
    }
    t->under_way++;
    if (kind != KNOWN)
        read_server(j);
    return 0;
}

int mo_try_tool_tools(struct mo_try_tool *t, struct mo_span server,
                      enum mo_try_tool_read how, mo_job_done_fn *done,
                      void *arg, struct mo_err *e)
{
    const struct mo_try_tool_ask a = {.server = server};
    struct mo_gateway *g = mo_try_tool_gateway(t);
    size_t no = mo_gateway_server(g, server);
    struct mo_upstream *u = mo_gateway_up(g, no);

    if (how == MO_TRY_TOOL_NOW && !t->stopped && u)
        mo_upstream_retry_now(u);
    if (how != MO_TRY_TOOL_KNOWN)
        return start_job(t, LIST, &a, done, arg, e);
    if (!u || !mo_catalog_known(mo_gateway_catalog(g), (unsigned)no))
        return mo_fail(e, MO_ENOTFOUND, "its tools are not known yet");
    return start_job(t, KNOWN, &a, done, arg, e);
}

int mo_try_tool_call(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                     mo_job_done_fn *done, void *arg, struct mo_err *e)
{
    return start_job(t, CALL, a, done, arg, e);
}

int mo_try_tool_accept(struct mo_try_tool *t, const struct mo_try_tool_ask *a,
                       mo_job_done_fn *done, void *arg, struct mo_err *e)
{
    return start_job(t, ACCEPT, a, done, arg, e);
}

/* --- new and close -------------------------------------------------------- */

int mo_try_tool_new(const struct mo_try_tool_opts *o, struct mo_try_tool **out,
                    struct mo_err *e)
{
    struct mo_try_tool *t = mo_new(struct mo_try_tool);

    if (t == NULL)
        return mo_fail(e, MO_ENOMEM, "try tool: out of memory");
    t->o = *o;
    mo_list_init(&t->jobs);
    mo_later_init(&t->ending, on_ending);
    *out = t;
    return 0;
}

void mo_try_tool_close(struct mo_try_tool *t, void (*gone)(void *ctx),
                       void *ctx)
{
    t->stopped = true;
    mo_list_each_entry_safe (j, &t->jobs, struct job, node) {
        if (!j->reading)
            continue;
        mo_gateway_unread(&j->read);
        mo_try_tool_finish_fail(j, MO_ECLOSED, "the program is ending");
    }
    t->gone = (struct mo_gone){gone, ctx};
    if (t->conn)
        mo_conn_close(t->conn, NULL);
    else
        maybe_gone(t);
}
