#include "agent/chat/apps.h"

#include "agent/chat/calls.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/tools_off.h"
#include "gateway/catalog/name.h"
#include "gateway/inside.h"
#include "mcp/app.h"

#define APP_CALLS  8
#define ARENA_MAX  ((size_t)8 * 1024 * 1024)
/* The gateway takes no longer message of a server (connect/server_link.c);
 * more here for the members around it. */
#define ANSWER_MAX ((size_t)(16 * 1024 + 64) * 1024)
#define URI_MAX    ((size_t)16 * 1024)

struct mo_span mo_apps_capabilities(const struct mo_agent *a)
{
    return a->o.servers.apps ? MO_SPAN(MO_AGENT_CAPABILITIES_APPS)
                             : MO_SPAN(MO_AGENT_CAPABILITIES);
}

/* --- results of tools with an app ---------------------------------------- */

static void put_compact(struct mo_jw *w, const char *key, struct mo_json v)
{
    mo_autobuf struct mo_buf b = {.max = MO_APPS_RESULT_MAX};

    if (v.p && mo_json_compact(v, &b) == 0)
        mo_jw_member_raw(w, key, mo_buf_view(&b));
    else if (v.p)
        w->b->err = MO_ETOOBIG;
}

/* result: none if it is too large. */
static void put_app(struct call *k, struct mo_json uri, struct mo_json result)
{
    struct mo_jw w;

    mo_buf_reset(&k->app);
    w = mo_jw_object(&k->app);
    mo_jw_member(&w, "server", k->tool->def.server);
    mo_jw_member(&w, "tool", k->tool->def.name);
    put_compact(&w, "uri", uri);
    put_compact(&w, "structuredContent",
                mo_json_get(result, "structuredContent"));
    put_compact(&w, "_meta", mo_json_get(result, "_meta"));
    if (!result.p)
        mo_jw_member_bool(&w, "cut", true);
    mo_jw_end(&w);
}

void mo_apps_note(struct call *k, struct mo_json result)
{
    const struct mo_agent_servers *s = &k->chat->agent->o.servers;
    const struct mo_cat_item *it = NULL;
    struct mo_json uri;

    if (!s->apps || k->tool->source != SOURCE_SERVERS || k->is_error ||
        k->route.len > 0)
        return;
    it = mo_gateway_tool(s->gateway, k->tool->def.server, k->tool->def.name);
    uri = it ? mo_app_uri(it->item) : (struct mo_json){NULL, 0};
    if (!uri.p)
        return;
    put_app(k, uri, result);
    if (mo_buf_err(&k->app))
        put_app(k, uri, (struct mo_json){NULL, 0});
    if (mo_buf_err(&k->app))
        mo_buf_reset(&k->app);
}

/* --- the app and its server ---------------------------------------------- */

static struct chat *find_open(const struct mo_agent *a, struct mo_span session,
                              struct mo_err *e)
{
    struct chat *c = mo_map_get(&a->chats, session);

    if (c && c->ready && c->state != CHAT_OPENING && c->state != CHAT_ENDING &&
        mo_gateway_client_conn(c))
        return c;
    mo_fail(e, MO_EPOLICY, "the conversation is not open");
    return NULL;
}

/* The number of the server, if one of its tools names this app. */
static int find_app(const struct mo_agent *a, const struct mo_app_ask *q,
                    unsigned *server, struct mo_err *e)
{
    const struct mo_gateway *g = a->o.servers.gateway;
    const struct mo_catalog *cat = g ? mo_gateway_catalog(g) : NULL;
    size_t no = g ? mo_gateway_server(g, q->server) : 0;

    if (!a->o.servers.apps || g == NULL)
        return mo_fail(e, MO_EPOLICY, "apps are switched off");
    for (size_t i = 0; i < mo_catalog_count(cat, MO_CAT_TOOLS); i++) {
        const struct mo_cat_item *it = mo_catalog_at(cat, MO_CAT_TOOLS, i);

        if (it->server != no || !mo_json_str_eq(mo_app_uri(it->item), q->app))
            continue;
        *server = (unsigned)no;
        return 0;
    }
    return mo_fail(e, MO_ENOTFOUND, "no tool of this server has such an app");
}

/* --- a call of an app ---------------------------------------------------- */

struct app_call {
    struct mo_list node;
    struct mo_agent *agent;
    struct call call; /* judged like one of the model; in no list */
    struct mo_tool tool;
    char name[MO_TOOLS_NAME_MAX];
    char session[MO_SESSION_ID_MAX + 1];
    char person[WHO_MAX]; /* whose page shows the app */
    const char *door;
    bool is_operator;
    struct mo_arena arena;
    struct mo_span app, digest;
    struct mo_buf out; /* the answer */
    struct mo_err err; /* or: why there is none; code 0: there is one */
    struct mo_later later;
    mo_offer_fn *done;
    void *ctx;
};

static void on_later(struct mo_later *d)
{
    struct app_call *x = mo_container_of(d, struct app_call, later);
    struct mo_agent *a = x->agent;

    if (x->err.code == 0 && mo_buf_err(&x->out))
        mo_fail(&x->err, x->out.err, "the answer is too big");
    x->done(x->ctx, mo_buf_view(&x->out), x->err.code ? &x->err : NULL);
    mo_list_del(&x->node);
    mo_buf_fini(&x->call.args);
    mo_buf_fini(&x->out);
    mo_arena_fini(&x->arena);
    mo_free(x);
    mo_agent_check(a);
}

static void finish(struct app_call *x)
{
    mo_loop_defer(x->agent->loop, &x->later);
}

static void finish_failed(struct app_call *x, const struct mo_err *why)
{
    x->err = *why;
    finish(x);
}

static struct mo_jw begin_answer(struct app_call *x, const char *state)
{
    struct mo_jw w;

    mo_buf_reset(&x->out);
    w = mo_jw_object(&x->out);
    mo_jw_member_cstr(&w, "state", state);
    return w;
}

static void finish_state(struct app_call *x, const char *state,
                         struct mo_span reason)
{
    struct mo_jw w = begin_answer(x, state);

    mo_jw_member_opt(&w, "reason", reason);
    mo_jw_end(&w);
    finish(x);
}

static struct mo_span reason_of(const struct mo_verdict *v)
{
    return v->rule ? v->rule->reason : MO_SPAN("");
}

static struct mo_audit_row row_of(const struct app_call *x)
{
    return (struct mo_audit_row){
        .name = x->tool.name,
        .server = x->tool.def.server,
        .session = mo_span_cstr(x->session),
        .tool = x->tool.def.name,
        .call = mo_span_cstr(x->call.card),
        .app = x->app,
        .args = mo_buf_view(&x->call.args),
        .digest = x->call.digest,
        .by = x->call.by,
        .who = mo_span_cstr(x->call.who[0] ? x->call.who : x->person),
        .door = &x->call.door,
    };
}

/* --- running it ---------------------------------------------------------- */

static void note_outcome(struct app_call *x, bool is_error)
{
    uint64_t ms = (mo_now_ns() - x->call.began) / MO_MS;
    const struct mo_audit_result result = {is_error, ms, {NULL, 0}};
    struct mo_audit_row row = row_of(x);

    row.result = &result;
    mo_tally_call(&x->agent->tally, ms, is_error, mo_wall_ms());
    if (x->agent->o.audit)
        mo_audit_note(x->agent->o.audit, &row);
}

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct app_call *x = ctx;
    mo_autobuf struct mo_buf why = {.max = REASON_MAX};
    bool is_error = r->result.p == NULL;
    struct mo_jw w;

    if (r->result.p) {
        (void)mo_json_bool(mo_json_get(r->result, "isError"), &is_error);
        w = begin_answer(x, "done");
        mo_jw_member_raw(&w, "result", mo_json_text(r->result));
        mo_jw_end(&w);
        note_outcome(x, is_error);
        finish(x);
        return;
    }
    if (!r->error.p ||
        mo_json_str_buf(mo_json_get(r->error, "message"), &why) < 0) {
        mo_buf_reset(&why);
        mo_buf_puts(&why, r->err ? r->err->msg : "no answer");
    }
    note_outcome(x, true);
    finish_state(x, "failed", mo_buf_view(&why));
}

/* The tool as its server lists it now, if it is still the one that was judged.
 */
static const struct mo_cat_item *find_unchanged(const struct app_call *x)
{
    const struct mo_tool_def *d = &x->tool.def;
    const struct mo_cat_item *it =
        mo_gateway_tool(x->agent->o.servers.gateway, d->server, d->name);
    struct mo_tool now = {.source = SOURCE_SERVERS};
    mo_autoarena struct mo_arena a = {.cap = ARENA_MAX};

    if (it && mo_tool_read(&a, d->server, d->name, it->item, &now) == 0 &&
        strcmp(now.digest, x->tool.digest) == 0 && !now.no_app)
        return it;
    return NULL;
}

static int send_request(struct app_call *x, const struct chat *c,
                        struct mo_span name, struct mo_err *e)
{
    const struct mo_call_opts o = {
        .name = name,
        .idle_ms = MO_CALL_FOREVER, /* the gateway enforces the timeout */
        .done = on_answer,
        .ctx = x};
    mo_autobuf struct mo_buf b = {.max = MO_EXACT_MAX * 2};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member(&w, "name", name);
    mo_jw_member_raw(&w, "arguments", mo_buf_view(&x->call.args));
    mo_jw_end(&w);
    if (mo_buf_err(&b))
        return mo_fail(e, b.err, "out of memory");
    x->call.began = mo_now_ns();
    return mo_conn_request(mo_gateway_client_conn(c), "tools/call",
                           mo_buf_view(&b), &o, e)
               ? 0
               : e->code;
}

/* The rules, the tool and the conversation may be other ones by now. */
static void on_audited(void *ctx, const struct mo_err *why)
{
    struct app_call *x = ctx;
    struct mo_err e = {0};
    struct chat *c = find_open(x->agent, mo_span_cstr(x->session), &e);
    const struct mo_cat_item *it = c ? find_unchanged(x) : NULL;
    struct mo_verdict v;

    if (why || c == NULL) {
        finish_failed(x, why ? why : &e);
        return;
    }
    x->call.chat = c;
    v = mo_chat_call_verdict(&x->call);
    if (it == NULL ||
        !mo_policy_tool_is_pinned(x->agent->o.policy, &x->tool, NULL))
        finish_state(x, "changed", mo_span(NULL, 0));
    else if (!mo_verdict_may_run(&v, x->call.answered, 0))
        finish_state(x, "denied", reason_of(&v));
    else if (send_request(x, c, it->name, &e) < 0)
        finish_failed(x, &e);
}

static void record_call(struct app_call *x)
{
    struct mo_audit_row row = row_of(x);
    struct mo_err e;

    if (x->agent->o.audit == NULL)
        on_audited(x, NULL);
    else if (mo_audit_first(x->agent->o.audit, &row, on_audited, x, &e) < 0)
        finish_failed(x, &e);
}

static void on_counted(struct mo_budget_ask *ask, const struct mo_budget_no *no)
{
    struct app_call *x = mo_container_of(ask, struct app_call, call.budget);

    if (no)
        finish_state(x, "denied", mo_span_cstr(no->text));
    else
        record_call(x);
}

static void run_call(struct app_call *x)
{
    struct mo_budget_no no;

    x->call.budget.done = on_counted;
    switch (mo_turn_budget_call(x->call.chat, &x->call.budget, &no)) {
    case MO_BUDGET_YES:
        record_call(x);
        break;
    case MO_BUDGET_NO:
        finish_state(x, "denied", mo_span_cstr(no.text));
        break;
    default:
        break; /* on_counted() follows */
    }
}

/* --- the decision -------------------------------------------------------- */

/* True if these exact bytes were asked about; consumes the question. */
static bool use_question(struct app_call *x)
{
    struct app_questions *all = &x->call.chat->apps;

    for (size_t i = 0; i < MO_APP_QUESTIONS; i++) {
        struct app_question *q = &all->v[i];

        if (q->digest[0] == '\0' ||
            !mo_span_eq_ct(x->digest, mo_span_cstr(q->digest)))
            continue;
        memcpy(x->call.card, q->card, sizeof(q->card));
        mo_chat_calls_digest(&x->call);
        q->digest[0] = '\0';
        return q->expires > mo_now_ns() &&
               mo_span_eq_ct(x->digest, mo_span_cstr(x->call.digest));
    }
    return false;
}

static void ask_person(struct app_call *x, const struct mo_verdict *v)
{
    struct app_questions *all = &x->call.chat->apps;
    struct app_question *q = &all->v[all->next];
    struct mo_jw w;

    all->next = (all->next + 1) % MO_APP_QUESTIONS;
    memcpy(q->card, x->call.card, sizeof(q->card)); /* both end with a NUL */
    memcpy(q->digest, x->call.digest, sizeof(q->digest));
    q->expires = mo_now_ns() + x->agent->o.approval_ms * MO_MS;
    w = begin_answer(x, "ask");
    mo_jw_member_cstr(&w, "digest", q->digest);
    mo_jw_member(&w, "name", x->tool.name);
    mo_jw_member(&w, "title", x->tool.title);
    mo_jw_member(&w, "description", x->tool.def.description);
    mo_jw_member_raw(&w, "args", mo_buf_view(&x->call.args));
    mo_jw_member_opt(&w, "reason", reason_of(v));
    mo_jw_end(&w);
    finish(x);
}

static void take_approval(struct app_call *x, const struct mo_verdict *v)
{
    x->call.answered =
        x->is_operator ? MO_ANSWERED_OPERATOR : MO_ANSWERED_OWNER;
    x->call.by = "person";
    x->call.door = (struct mo_door){x->door, false};
    if (mo_verdict_may_run(v, x->call.answered, 0))
        run_call(x);
    else
        finish_state(x, "denied",
                     MO_SPAN("only the operator may approve this call"));
}

static void ask_or_run(struct app_call *x, const struct mo_verdict *v)
{
    const struct mo_span schema = x->tool.def.schema;
    const struct mo_json args = {x->call.args.p, x->call.args.len};
    struct mo_err e;

    if (v->panel.need)
        finish_state(x, "denied",
                     MO_SPAN("a rule says that other persons approve this "
                             "call; an app cannot ask them"));
    else if (mo_exact_fits((struct mo_json){schema.p, schema.n}, args, &e) < 0)
        finish_state(x, "denied", mo_span_cstr(e.msg));
    else if (x->digest.n > 0 && use_question(x))
        take_approval(x, v);
    else
        ask_person(x, v);
}

static void judge_call(struct app_call *x)
{
    struct chat *c = x->call.chat;
    bool same = mo_policy_tool_is_pinned(x->agent->o.policy, &x->tool, NULL);
    struct mo_verdict v = mo_chat_call_verdict(&x->call);

    mo_policy_flush_pins(x->agent->o.policy);
    if (x->tool.no_app)
        finish_state(x, "denied", MO_SPAN("this tool is not for apps"));
    else if (mo_tools_off_has(c, &x->tool))
        finish_state(x, "denied",
                     MO_SPAN("the person has switched this tool off in this "
                             "conversation"));
    else if (!same)
        finish_state(x, "changed", mo_span(NULL, 0));
    else if (v.action == MO_ACTION_DENY)
        finish_state(x, "denied", reason_of(&v));
    else if (v.action != MO_ACTION_ALLOW)
        ask_or_run(x, &v);
    else {
        mo_chat_call_allowed(&x->call, &v);
        run_call(x);
    }
}

/* --- the requests -------------------------------------------------------- */

static size_t count_calls(const struct mo_agent *a, struct mo_span session)
{
    size_t n = 0;

    mo_list_each_entry (x, &a->app_calls, struct app_call, node)
        n += mo_span_is(session, x->session);
    return n;
}

static int copy_tool(struct app_call *x, const struct mo_cat_item *it,
                     const struct mo_app_ask *q)
{
    struct mo_span own = mo_span_dup(&x->arena, it->own);
    struct mo_span server = mo_span_dup(&x->arena, q->server);
    struct mo_span text = mo_span_dup(&x->arena, mo_json_text(it->item));

    if (!own.p || !server.p || !text.p ||
        mo_tool_read(&x->arena, server, own, (struct mo_json){text.p, text.n},
                     &x->tool) < 0)
        return MO_ENOMEM;
    mo_tools_name(server, it->given, false, false, x->name);
    x->tool.name = mo_span_cstr(x->name);
    x->tool.source = SOURCE_SERVERS;
    x->call.tool = &x->tool;
    return 0;
}

static int copy_ask(struct app_call *x, const struct mo_cat_item *it,
                    const struct mo_app_ask *q, struct mo_err *e)
{
    x->app = mo_span_dup(&x->arena, q->app);
    x->digest = mo_span_dup(&x->arena, q->digest);
    x->door = q->door;
    x->is_operator = q->is_operator;
    (void)snprintf(x->person, sizeof(x->person), "%s", q->who);
    (void)snprintf(x->session, sizeof(x->session), "%.*s", (int)q->session.n,
                   q->session.p);
    mo_random_token(x->call.card, MO_APP_NONCE);
    if (copy_tool(x, it, q) < 0 || !x->app.p || !x->digest.p)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    if (mo_exact_args(q->args, &x->call.args, e) < 0) {
        e->code = MO_EINVAL;
        return e->code;
    }
    mo_chat_calls_digest(&x->call);
    return 0;
}

static struct app_call *call_new(struct mo_agent *a, struct chat *c)
{
    struct app_call *x = mo_new(struct app_call);

    if (x == NULL)
        return NULL;
    x->agent = a;
    x->call.chat = c;
    mo_arena_init(&x->arena, ARENA_MAX);
    mo_buf_init(&x->call.args, MO_EXACT_MAX);
    mo_buf_init(&x->out, ANSWER_MAX);
    mo_later_init(&x->later, on_later);
    mo_list_push(&a->app_calls, &x->node);
    return x;
}

static void call_drop(struct app_call *x)
{
    mo_list_del(&x->node);
    mo_buf_fini(&x->call.args);
    mo_arena_fini(&x->arena);
    mo_free(x);
}

/* An app knows the tools of its server by their own names. If that server is
 * behind a gateway that had to rename what it offers, the app's URI says so. */
static const struct mo_cat_item *find_tool(const struct mo_agent *a,
                                           const struct mo_app_ask *q)
{
    struct mo_gateway *g = a->o.servers.gateway;
    const struct mo_cat_item *it = mo_gateway_tool(g, q->server, q->tool);
    struct mo_span label, own;
    char name[MO_GW_NAME_MAX];

    if (it || !mo_gw_uri_split(q->app, &label, &own))
        return it;
    mo_gw_name(label, q->tool, true, false, name);
    return mo_gateway_tool(g, q->server, mo_span_cstr(name));
}

int mo_agent_app_call(struct mo_agent *a, const struct mo_app_ask *q,
                      mo_offer_fn *done, void *ctx, struct mo_err *e)
{
    struct chat *c = find_open(a, q->session, e);
    const struct mo_cat_item *it = NULL;
    struct app_call *x = NULL;
    unsigned server = 0;

    if (c == NULL || find_app(a, q, &server, e) < 0)
        return e->code;
    it = find_tool(a, q);
    if (it == NULL)
        return mo_fail(e, MO_ENOTFOUND, "the server has no such tool");
    if (count_calls(a, q->session) >= APP_CALLS)
        return mo_fail(e, MO_EBUSY, "too many calls of apps at once");
    x = call_new(a, c);
    if (x == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    x->done = done;
    x->ctx = ctx;
    if (copy_ask(x, it, q, e) < 0) {
        call_drop(x);
        return e->code;
    }
    judge_call(x);
    return 0;
}

/* --- resources ----------------------------------------------------------- */

struct app_read {
    struct mo_agent *agent;
    mo_offer_fn *done;
    void *ctx;
    size_t n;
    char uri[]; /* as the gateway knows it */
};

/* The metadata of the resource itself, else that of its list. */
static struct mo_json meta_of(const struct app_read *r, struct mo_json result)
{
    const struct mo_catalog *cat =
        mo_gateway_catalog(r->agent->o.servers.gateway);
    struct mo_json first = mo_json_at(mo_json_get(result, "contents"), 0);
    struct mo_json ui = mo_json_get(mo_json_get(first, "_meta"), "ui");
    const struct mo_cat_item *it =
        mo_catalog_find(cat, MO_CAT_RESOURCES, mo_span(r->uri, r->n));

    if (!mo_json_is(ui, MO_JSON_OBJECT) && it)
        ui = mo_json_get(mo_json_get(it->item, "_meta"), "ui");
    return mo_json_is(ui, MO_JSON_OBJECT) ? ui : (struct mo_json){NULL, 0};
}

static void put_read(struct app_read *r, struct mo_json result,
                     struct mo_buf *out)
{
    const struct mo_config_apps *config =
        &mo_policy_config(r->agent->o.policy)->apps;
    struct mo_json ui = meta_of(r, result);
    mo_autobuf struct mo_buf policy = {.max = MO_APP_POLICY_MAX};
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_raw(&w, "result", mo_json_text(result));
    if (ui.p)
        mo_jw_member_raw(&w, "ui", mo_json_text(ui));
    if (config->origin)
        mo_jw_member_cstr(&w, "origin", config->origin);
    mo_jw_member_arr(&w, "refused");
    mo_app_policy(mo_json_get(ui, "csp"), config->domains.v, config->domains.n,
                  &policy, &w);
    mo_jw_end(&w);
    mo_jw_end(&w);
}

static void on_read(void *ctx, struct mo_span json, const struct mo_err *why)
{
    struct app_read *r = ctx;
    mo_autobuf struct mo_buf out = {.max = ANSWER_MAX};
    struct mo_json_doc doc;
    struct mo_err e;

    if (why) {
        r->done(r->ctx, json, why);
    } else if (mo_json_parse(json, 0, &doc, &e) < 0) {
        r->done(r->ctx, mo_span(NULL, 0), &e);
    } else {
        put_read(r, doc.root, &out);
        if (mo_buf_err(&out))
            mo_fail(&e, out.err, "the resource is larger than 16 MiB");
        r->done(r->ctx, mo_buf_view(&out), mo_buf_err(&out) ? &e : NULL);
    }
    mo_free(r);
}

static bool is_of(const struct mo_catalog *cat, unsigned server,
                  struct mo_span uri)
{
    unsigned whose = 0;
    struct mo_span own;

    return mo_catalog_resource(cat, uri, &whose, &own) == 0 && whose == server;
}

/* As a gateway between knows it, see find_tool(); nothing: there is none, or it
 * is its form already. */
static void put_renamed(struct mo_span app, struct mo_span uri,
                        struct mo_buf *out)
{
    struct mo_span label, whose, own;
    char name[MO_GW_LABEL_MAX];

    if (!mo_gw_uri_split(app, &label, &own) ||
        (mo_gw_uri_split(uri, &whose, &own) && mo_span_eq(whose, label)))
        return;
    mo_gw_label(label, name);
    (void)mo_gw_uri(name, uri, out);
}

/* The URI by which the gateway reads it from this server. An app knows its
 * server's own URIs, and the gateway's from results. */
static int expose(const struct mo_agent *a, unsigned server,
                  const struct mo_app_ask *q, struct mo_buf *out)
{
    const struct mo_catalog *cat = mo_gateway_catalog(a->o.servers.gateway);
    mo_autobuf struct mo_buf other = {.max = URI_MAX};

    put_renamed(q->app, q->uri, &other);
    if (mo_buf_err(&other))
        return mo_buf_err(&other);
    if (other.len > 0)
        return mo_catalog_expose(cat, server, mo_buf_view(&other), out);
    if (is_of(cat, server, q->uri))
        return mo_buf_span(out, q->uri);
    return mo_catalog_expose(cat, server, q->uri, out);
}

int mo_agent_app_read(struct mo_agent *a, const struct mo_app_ask *q,
                      mo_offer_fn *done, void *ctx, struct mo_err *e)
{
    mo_autobuf struct mo_buf uri = {.max = URI_MAX};
    mo_autobuf struct mo_buf params = {.max = URI_MAX * 2};
    struct app_read *r = NULL;
    unsigned server = 0;
    struct mo_jw w;
    int rc = find_open(a, q->session, e) ? find_app(a, q, &server, e) : e->code;

    if (rc < 0)
        return rc;
    if (expose(a, server, q, &uri) < 0)
        return mo_fail(e, MO_ENOTFOUND, "the server has no such resource");
    w = mo_jw_object(&params);
    mo_jw_member(&w, "uri", mo_buf_view(&uri));
    mo_jw_end(&w);
    r = mo_zalloc(sizeof(*r) + uri.len + 1);
    if (r == NULL || mo_buf_err(&params)) {
        mo_free(r);
        return mo_fail(e, MO_ENOMEM, "out of memory");
    }
    *r = (struct app_read){.agent = a, .done = done, .ctx = ctx, .n = uri.len};
    memcpy(r->uri, uri.p, uri.len);
    rc = mo_agent_ask_server(a, q->session, "resources/read",
                             mo_buf_view(&params), on_read, r, e);
    if (rc < 0)
        mo_free(r);
    return rc;
}
