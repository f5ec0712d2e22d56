#include "gateway/script/script.h"

#include <stdio.h>

#include "codec/json/jschema.h"
#include "codec/sha256.h"
#include "codec/text/utf8.h"
#include "config/config.h"
#include "gateway/router/meta_tools.h"
#include "mcp/edit.h"
#include "mcp/script/answer.h"

#define TOOL "run_script"
#define LONG_TOOL                                                              \
    MO_CONFIG_SCRIPTS "_" TOOL /* if a server has a tool run_script */
#define ANSWER_MS  30000
#define ID_TOP     ((uint64_t)1 << 53)
#define TEXT_MAX   ((size_t)8192) /* of an error that a script gets */
#define USUAL_S    60             /* the toolbox's own timeout */
#define MARGIN_MS  30000          /* for the box to report the end */
#define MEMORY_MIN 16             /* MiB */

struct script_call {
    struct mo_list node;
    struct mo_ep_within pub;
    struct gw_script *script;
    uint64_t id; /* as the script counts */
};

struct gw_script {
    struct forwarded_call *f;
    char digest[MO_SHA256_HEX + 1];
    unsigned made, open;
    bool is_over; /* nothing is answered any more */
    struct mo_list calls;
};

/* --- the tool ------------------------------------------------------------- */

#define DEFINITION(name)                                                       \
    "{\"name\":\"" name                                                        \
    "\",\"title\":\"Run a script that calls tools\",\"description\":"          \
    "\"Run one Python or JavaScript script instead of many calls, or to use "  \
    "only a part of long results. It runs in an empty box without a network, " \
    "calls tools, and you get what it prints. Python: `import tools`, then "   \
    "`tools.NAME(argument=...)`, `tools.SERVER.NAME(...)` or `await "          \
    "tools.aio.NAME(...)`. JavaScript: `import tools from './tools.mjs'`, "    \
    "then `await tools.NAME({argument: ...})`. `tools.find('plain words')` "   \
    "lists tools by name. Calls need the same approval as yours; one that is " \
    "refused raises tools.Rejected or tools.Denied.\",\"inputSchema\":{"       \
    "\"type\":\"object\",\"properties\":{\"language\":{\"type\":\"string\","   \
    "\"enum\":[\"python\",\"javascript\"]},\"code\":{\"type\":\"string\"},"    \
    "\"timeout\":{\"type\":\"number\",\"description\":\"Seconds, without "     \
    "those in which calls are open. Default 60.\"},\"memory_mb\":{\"type\":"   \
    "\"integer\",\"minimum\":16},\"max_output\":{\"type\":\"integer\","        \
    "\"minimum\":256,\"description\":\"Bytes kept of each stream. Default "    \
    "65536.\"}},\"required\":[\"language\",\"code\"]},\"outputSchema\":{"      \
    "\"type\":\"object\",\"properties\":{\"stdout\":{\"type\":\"string\"},"    \
    "\"stderr\":{\"type\":\"string\"},\"exit_code\":{\"type\":\"integer\"},"   \
    "\"signal\":{\"type\":\"string\"},\"timed_out\":{\"type\":\"boolean\"},"   \
    "\"calls\":{\"type\":\"integer\"}},\"required\":[\"stdout\",\"stderr\","   \
    "\"timed_out\"]},\"annotations\":{\"readOnlyHint\":false}}"

static const char short_text[] = DEFINITION(TOOL);
static const char long_text[] = DEFINITION(LONG_TOOL);

bool mo_gw_script_is_on(const struct mo_gw_view *v)
{
    return v->g->script.slot != NULL;
}

/* A server's tool of this name keeps it where all tools are shown. */
static bool is_taken(const struct mo_gw_view *v)
{
    return !mo_meta_tools_is_on(v) &&
           mo_catalog_find(mo_gw_cat(v), MO_CAT_TOOLS, MO_SPAN(TOOL));
}

bool mo_gw_script_is_call(struct mo_gateway *g, const struct mo_ep_call *c)
{
    const struct mo_gw_view *v = mo_gw_view_of(g, c);

    return mo_gw_script_is_on(v) && !c->inside.n && !c->within &&
           mo_span_is(c->method, "tools/call") &&
           mo_span_is(c->name, is_taken(v) ? LONG_TOOL : TOOL);
}

int mo_gw_script_list(const struct mo_gw_view *v, struct mo_span page,
                      struct mo_buf *out)
{
    static const char head[] = "{\"tools\":[";
    struct mo_span rest = mo_span_skip(page, sizeof(head) - 1);

    (void)mo_buf_puts(out, head);
    (void)mo_buf_puts(out, is_taken(v) ? long_text : short_text);
    if (rest.n && rest.p[0] != ']')
        (void)mo_buf_putc(out, ',');
    return mo_buf_span(out, rest);
}

static bool find_target(struct mo_gateway *g, const struct mo_ep_call *c,
                        struct call_target *t)
{
    if (!mo_gw_script_is_call(g, c))
        return false;
    *t = (struct call_target){
        .slot = g->script.slot,
        .own = MO_SPAN(TOOL),
        .given = MO_SPAN(TOOL),
        .item = {short_text, sizeof(short_text) - 1},
        .has_output_schema = true,
    };
    return true;
}

/* --- arguments ------------------------------------------------------------ */

/* The timeout in seconds; 0: it is not valid. */
static double timeout_of(const struct mo_gateway *g, struct mo_json args)
{
    struct mo_json v = mo_json_get(args, "timeout");
    double most = (double)g->script.max_seconds;
    double s = most < USUAL_S ? most : USUAL_S;

    if (v.p && mo_json_f64(v, &s) < 0)
        return 0;
    return s > 0 && s <= most ? s : 0;
}

/* "... NUMBER ..." */
static void refuse(struct mo_ep_call *c, const char *before, uint64_t n,
                   const char *after)
{
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    (void)mo_buf_printf(&b, "%s%llu%s; nothing was run", before,
                        (unsigned long long)n, after);
    mo_ep_call_fail(c, mo_buf_cstr(&b));
}

/* Also those that wait for a person. */
static unsigned count_scripts(const struct mo_gateway *g)
{
    unsigned n = 0;

    mo_list_each (it, &g->script.slot->calls)
        n++;
    return n;
}

bool mo_gw_script_check(struct mo_gateway *g, struct mo_ep_call *c)
{
    struct mo_json language = mo_json_get(c->arguments, "language");
    struct mo_json code = mo_json_get(c->arguments, "code");

    if (!mo_json_str_eq(language, MO_SPAN("python")) &&
        !mo_json_str_eq(language, MO_SPAN("javascript")))
        mo_ep_call_fail(c, "language must be python or javascript; nothing "
                           "was run");
    else if (!mo_json_is(code, MO_JSON_STRING))
        mo_ep_call_fail(c, "code must be the text of the script; nothing was "
                           "run");
    else if (code.n > MO_GW_SCRIPT_CODE)
        refuse(c, "code is longer than ", MO_GW_SCRIPT_CODE, " bytes as JSON");
    else if (timeout_of(g, c->arguments) <= 0)
        refuse(c, "timeout must be more than 0 and at most ",
               g->script.max_seconds, " seconds");
    else if (count_scripts(g) >= g->script.max)
        refuse(c, "try again later: ", count_scripts(g),
               " scripts are running, which is the most");
    else
        return true;
    return false;
}

/* --- answers to the script ------------------------------------------------ */

static void on_answered(void *ctx, const struct mo_reply *r)
{
    (void)ctx;
    (void)r; /* the script may have ended meanwhile */
}

static int send_answer(const struct gw_script *s, const struct mo_buf *params)
{
    const struct mo_call_opts o = {.idle_ms = ANSWER_MS, .done = on_answered};
    struct mo_conn *conn = s->f->child ? mo_child_conn(s->f->child) : NULL;
    struct mo_err e;

    if (mo_buf_err(params))
        return mo_buf_err(params);
    if (!conn || !s->f->call || s->is_over)
        return MO_ECLOSED;
    return mo_conn_request(conn, MO_SCRIPT_ANSWER, mo_buf_view(params), &o, &e)
               ? 0
               : e.code;
}

static void answer_error(const struct gw_script *s, uint64_t id,
                         const char *kind, struct mo_span text)
{
    mo_autobuf struct mo_buf params = {.max = TEXT_MAX * 8};

    mo_script_put_error(&params, s->f->number, id, kind,
                        mo_span_head(text, mo_utf8_cut(text, TEXT_MAX)));
    (void)send_answer(s, &params);
}

static void answer_result(const struct gw_script *s, uint64_t id,
                          struct mo_span result)
{
    mo_autobuf struct mo_buf params = {.max = MO_GW_SCRIPT_RESULT};
    int rc;

    mo_script_put_result(&params, s->f->number, id, result);
    rc = send_answer(s, &params);
    if (rc < 0 && rc != MO_ECLOSED)
        answer_error(s, id, "failed", MO_SPAN(MO_SCRIPT_TOO_LARGE));
}

/* The text of the first block of a result, else the whole. */
static void put_text_of(struct mo_json result, struct mo_buf *out)
{
    struct mo_json block = mo_json_at(mo_json_get(result, "content"), 0);
    struct mo_json text = mo_json_get(block, "text");

    if (!mo_json_is(text, MO_JSON_STRING) || mo_json_str_buf(text, out) < 0)
        mo_buf_span(out, mo_json_text(result));
}

static void answer_refused(const struct gw_script *s, uint64_t id,
                           const struct mo_ep_origin *about,
                           struct mo_json result)
{
    mo_autobuf struct mo_buf text = {.max = GW_TEXT_MAX};

    if (strcmp(about->refused, "rejected") == 0 && about->reason.n)
        mo_buf_span(&text, about->reason);
    else
        put_text_of(result, &text);
    answer_error(s, id, about->refused, mo_buf_view(&text));
}

static void answer_failed(const struct gw_script *s,
                          const struct script_call *k, struct mo_json error)
{
    struct mo_json outcome = mo_json_get(mo_json_get(error, "data"), "outcome");
    mo_autobuf struct mo_buf text = {.max = GW_TEXT_MAX};

    if (mo_json_str_buf(mo_json_get(error, "message"), &text) < 0)
        mo_buf_reset(&text);
    answer_error(s, k->id,
                 mo_json_str_eq(outcome, MO_SPAN("unknown")) ? "unknown"
                                                             : "failed",
                 mo_buf_view(&text));
}

/* --- calls of the script -------------------------------------------------- */

static void free_call(struct script_call *k)
{
    struct gw_script *s = k->script;

    mo_list_del(&k->node);
    mo_free(k);
    s->open--;
    if (s->open == 0)
        mo_forward_hold(s->f, false);
}

static void on_call_done(struct mo_ep_within *w, struct mo_json result,
                         struct mo_json error, const struct mo_ep_origin *about)
{
    struct script_call *k = mo_container_of(w, struct script_call, pub);
    const struct gw_script *s = k->script;

    if (s->is_over)
        ;
    else if (result.p && about && about->refused)
        answer_refused(s, k->id, about, result);
    else if (result.p)
        answer_result(s, k->id, mo_json_text(result));
    else if (error.p)
        answer_failed(s, k, error);
    else
        answer_error(s, k->id, "gone", MO_SPAN("The client is gone."));
    free_call(k);
}

/* As execute does: a server need not check. False: the script has an answer. */
static bool check_arguments(const struct gw_script *s, uint64_t id,
                            struct mo_span name, struct mo_json args)
{
    static const struct mo_jschema_opts o = {.name = "arguments"};
    const struct mo_cat_item *it =
        mo_catalog_find(mo_gw_cat_of(s->f->g, s->f->down), MO_CAT_TOOLS, name);
    struct mo_json schema = {NULL, 0};
    mo_autobuf struct mo_buf why = {.max = TEXT_MAX};
    struct mo_jschema_result r;

    if (it)
        schema = mo_json_get(it->item, "inputSchema");
    /* a schema that we cannot evaluate is left to the server */
    if (!schema.p || mo_jschema_check(schema, args, &o, &r, NULL) < 0 ||
        r.valid)
        return true;
    mo_buf_puts(&why, "The arguments do not fit the tool's schema; it was not "
                      "run: ");
    (void)mo_jschema_put(&why, &r);
    answer_error(s, id, "failed", mo_buf_view(&why));
    return false;
}

static int make_call(struct gw_script *s, uint64_t id, struct mo_span name,
                     struct mo_json params)
{
    struct script_call *k = mo_new(struct script_call);
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    struct mo_jw w = mo_jw_object(&b);

    if (!k)
        return MO_ENOMEM;
    mo_jw_member(&w, "name", name);
    mo_jw_copy(&w, params, "arguments");
    mo_jw_end(&w);
    *k =
        (struct script_call){.pub = {.script = s->digest, .done = on_call_done},
                             .script = s,
                             .id = id};
    (void)mo_json_u64(mo_json_get(params, "line"), &k->pub.line);
    mo_list_push(&s->calls, &k->node);
    s->made++;
    s->open++;
    if (s->open == 1)
        mo_forward_hold(s->f, true);
    if (mo_buf_err(&b) == 0 &&
        mo_ep_call_within(s->f->down, mo_buf_view(&b), &k->pub) == 0)
        return 0;
    free_call(k);
    return MO_ENOMEM;
}

static void take_call(struct gw_script *s, uint64_t id, struct mo_json params)
{
    mo_autobuf struct mo_buf name = {.max = 1024};
    struct mo_json args = mo_json_get(params, "arguments");

    if (s->made >= MO_GW_SCRIPT_CALLS)
        answer_error(s, id, "limit",
                     MO_SPAN("A script can make at most 10000 calls; this one "
                             "was not run."));
    else if (s->open >= MO_GW_SCRIPT_OPEN)
        answer_error(s, id, "limit",
                     MO_SPAN("At most 64 calls of a script can be open; this "
                             "one was not run."));
    else if (mo_json_str_buf(mo_json_get(params, "tool"), &name) < 0)
        answer_error(s, id, "failed", MO_SPAN("The tool's name is too long."));
    else if (check_arguments(s, id, mo_buf_view(&name),
                             args.p ? args : (struct mo_json){"{}", 2}) &&
             make_call(s, id, mo_buf_view(&name), params) < 0)
        answer_error(s, id, "failed", MO_SPAN("out of memory"));
}

static void take_find(const struct gw_script *s, uint64_t id,
                      struct mo_json params)
{
    struct mo_gw_view *v = mo_gw_view_of(s->f->g, s->f->down);
    mo_autobuf struct mo_buf found = {.max = MO_GW_SCRIPT_RESULT};

    if (mo_gw_script_find(v, params, &found) < 0)
        answer_error(s, id, "failed", MO_SPAN("out of memory"));
    else
        answer_result(s, id, mo_buf_view(&found));
}

static bool is_open(const struct gw_script *s, uint64_t id)
{
    mo_list_each_entry (k, &s->calls, const struct script_call, node)
        if (k->id == id)
            return true;
    return false;
}

static void end_calls(struct gw_script *s)
{
    s->is_over = true;
    mo_list_each_entry_safe (k, &s->calls, struct script_call, node)
        mo_ep_within_cancel(&k->pub);
}

/* The box is not trusted: a frame that is not valid is ignored. */
static void on_frame(void *ctx, struct mo_json params)
{
    struct forwarded_call *f = ctx;
    struct gw_script *s = f->script;
    uint64_t id = 0;

    if (!s || s->is_over || !f->call || !f->down || f->client != CLIENT_WAITING)
        return;
    if (mo_json_flag(params, "closed"))
        end_calls(s);
    else if (mo_json_u64(mo_json_get(params, "id"), &id) < 0 || id > ID_TOP ||
             is_open(s, id))
        return;
    else if (mo_json_is(mo_json_get(params, "tool"), MO_JSON_STRING))
        take_call(s, id, params);
    else if (mo_json_is(mo_json_get(params, "find"), MO_JSON_STRING))
        take_find(s, id, params);
}

/* --- the call of run_script ----------------------------------------------- */

static int put_params(struct mo_gateway *g, const struct mo_ep_call *c,
                      struct mo_json args, struct mo_buf *out)
{
    mo_autobuf struct mo_buf own = {.max = GW_TEXT_MAX};
    char seconds[32];
    struct mo_edit ed = {"timeout", {NULL, 0}};
    struct mo_jw w = mo_jw_object(out);

    (void)snprintf(seconds, sizeof(seconds), "%g", timeout_of(g, args));
    ed.to = mo_span_cstr(seconds);
    mo_jw_member_cstr(&w, "name", TOOL);
    if (mo_edit(&own, args, &ed, mo_json_get(args, "timeout").p ? 0 : 1) < 0)
        return MO_ENOMEM;
    mo_jw_member_raw(&w, "arguments", mo_buf_view(&own));
    mo_jw_member_obj(&w, "_meta");
    mo_jw_member_obj(&w, "mcp-orchestrator/script");
    mo_gw_script_put_files(&w, mo_gw_view_of(g, c), args);
    mo_jw_end_all(&w);
    return mo_buf_err(out);
}

static int begin_script(struct forwarded_call *f, const struct call_target *t,
                        struct mo_buf *params)
{
    struct mo_json args = mo_rewrite_args(f->down, t);
    mo_autobuf struct mo_buf code = {.max = MO_GW_SCRIPT_CODE};
    struct gw_script *s = f->script;

    if (!s) {
        s = mo_new(struct gw_script);
        if (!s)
            return MO_ENOMEM;
        s->f = f;
        mo_list_init(&s->calls);
        f->script = s;
    }
    if (mo_json_str_buf(mo_json_get(args, "code"), &code) < 0)
        return MO_EINVAL;
    mo_sha256_hex(mo_buf_view(&code), s->digest);
    return put_params(f->g, f->down, args, params);
}

static uint64_t time_of(const struct forwarded_call *f,
                        const struct call_target *t)
{
    return (uint64_t)(timeout_of(f->g, mo_rewrite_args(f->down, t)) * 1000) +
           MARGIN_MS;
}

static void end_script(struct forwarded_call *f)
{
    struct gw_script *s = mo_take_ptr(&f->script);

    if (!s)
        return;
    end_calls(s);
    MO_BUG_ON(!mo_list_empty(&s->calls));
    mo_free(s);
}

void mo_gw_script_init(struct mo_gateway *g)
{
    g->script.target = find_target;
    g->script.begin = begin_script;
    g->script.time = time_of;
    g->script.frame = on_frame;
    g->script.end = end_script;
    g->script.declare = mo_gw_script_put_declaration;
}
