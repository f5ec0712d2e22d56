/* client_core.c - the scenarios of the protocol itself.
 *
 * Most of them come to the same: list what the server has and use all of it,
 * with arguments made up from the schemas. What the server asks is answered
 * with the defaults that it names. Which headers and envelopes that takes is
 * the business of the rooms under test. */
#include "conformance/client.h"

#include <stdio.h>

#include "mcp/client/form.h"
#include "mcp/client/mirror.h"

#define TEXT_MAX ((size_t)1024 * 1024)

#define CAPABILITIES                                                           \
    "{\"elicitation\":{\"form\":{}},\"sampling\":{},\"roots\":{}}"

/* --- what we are asked --------------------------------------------------- */

static void on_ignored(void *ctx, const struct mo_reply *r)
{
    (void)ctx;
    (void)r;
}

/* Another call while this one waits: nothing of the one may be in the other. */
static void call_between(struct mo_conn *c)
{
    struct mo_call_opts o = {
        .name = MO_SPAN("test_mrtr_unrelated"),
        .done = on_ignored,
    };

    (void)mo_conn_request(
        c, "tools/call",
        MO_SPAN("{\"name\":\"test_mrtr_unrelated\",\"arguments\":{}}"), &o,
        NULL);
}

static int put_answer(struct mo_buf *b, const struct mo_ask *a)
{
    static const struct mo_json none = {NULL, 0};

    switch (a->kind) {
    case MO_ASK_ELICIT:
        return mo_form_accept(b, mo_json_get(a->params, "requestedSchema"),
                              none);
    case MO_ASK_SAMPLING:
        return mo_buf_puts(b, "{\"role\":\"assistant\",\"model\":\"none\","
                              "\"content\":{\"type\":\"text\","
                              "\"text\":\"hello\"}}");
    default:
        return mo_buf_puts(b, "{\"roots\":[]}");
    }
}

static void on_ask(void *ctx, struct mo_conn *c, struct mo_ask *a)
{
    struct driver *d = ctx;
    struct mo_buf b;

    if (strcmp(d->scenario, "sep-2322-client-request-state") == 0)
        call_between(c);
    mo_buf_init(&b, TEXT_MAX);
    if (put_answer(&b, a) < 0)
        mo_ask_refuse(a, MO_RPC_INTERNAL, "the form is too big");
    else
        mo_ask_answer(a, mo_buf_view(&b));
    mo_buf_fini(&b);
}

/* --- using one thing ----------------------------------------------------- */

/* A value of the right kind for each member of a schema. */
static void put_sample(struct mo_jw *w, struct mo_json schema)
{
    static const struct {
        const char *type;
        struct mo_span value;
    } samples[] = {
        {"string", MO_SPAN("\"test\"")}, {"integer", MO_SPAN("1")},
        {"number", MO_SPAN("1")},        {"boolean", MO_SPAN("true")},
        {"object", MO_SPAN("{}")},       {"array", MO_SPAN("[]")},
    };
    struct mo_json type = mo_json_get(schema, "type");

    for (size_t i = 0; i < MO_COUNT(samples); i++) {
        if (mo_json_str_eq(type, mo_span_cstr(samples[i].type))) {
            mo_jw_raw(w, samples[i].value);
            return;
        }
    }
    mo_jw_null(w);
}

static int make_up(struct mo_buf *b, struct mo_json schema)
{
    struct mo_json key, val;
    struct mo_json_iter it;
    struct mo_jw w;

    mo_jw_init(&w, b);
    mo_jw_obj(&w);
    mo_json_iter(&it, mo_json_get(schema, "properties"));
    while (mo_json_next(&it, &key, &val)) {
        mo_jw_key_span(&w, mo_span(key.p + 1, key.n - 2));
        put_sample(&w, val);
    }
    mo_jw_end(&w);
    return mo_buf_err(b);
}

/* Call method with {key: name, "arguments": args (may be none)}. */
static int use(struct driver *d, const char *method, const char *key,
               struct mo_json name, struct mo_json args,
               const struct mo_mirror *m)
{
    struct mo_call_opts o = {
        .params = m ? m->v : NULL,
        .nparams = m ? m->n : 0,
    };
    struct mo_arena a;
    struct mo_buf b;
    struct mo_json out;
    struct mo_err e = {0};
    int rc;

    mo_arena_init(&a, TEXT_MAX);
    mo_buf_init(&b, TEXT_MAX);
    mo_buf_printf(&b, "{\"%s\":%.*s", key, (int)name.n, name.p);
    if (args.p)
        mo_buf_printf(&b, ",\"arguments\":%.*s", (int)args.n, args.p);
    mo_buf_putc(&b, '}');
    rc = mo_json_str(name, &a, &o.name);
    if (rc == 0)
        rc = driver_call(d, method, mo_buf_view(&b), &o, &out, &e);
    if (rc < 0)
        (void)fprintf(stderr, "%s: %s\n", method, e.msg);
    mo_buf_fini(&b);
    mo_arena_fini(&a);
    return rc;
}

/* A tool that is kept; args none: made up. */
static int call_tool(struct driver *d, struct mo_json tool, struct mo_json args)
{
    struct mo_json schema = mo_json_get(tool, "inputSchema");
    struct mo_mirror m = {.n = 0};
    struct mo_buf b;
    struct mo_err e = {0};
    int rc = 0;

    mo_buf_init(&b, TEXT_MAX);
    if (!args.p) {
        rc = make_up(&b, schema);
        args = (struct mo_json){b.p, b.len};
    }
    if (rc == 0)
        rc = mo_mirror_init(&m, schema, args, &e);
    if (rc == 0)
        rc = use(d, "tools/call", "name", mo_json_get(tool, "name"), args, &m);
    mo_mirror_fini(&m);
    mo_buf_fini(&b);
    return rc;
}

/* --- using all of a list ------------------------------------------------- */

/* The list, in keep, since the next call takes its place. */
static int list(struct driver *d, const char *method, const char *key,
                struct mo_buf *keep, struct mo_json *out)
{
    struct mo_err e;
    int rc = driver_list(d, method, key, out, &e);

    if (rc < 0) {
        (void)fprintf(stderr, "%s: %s\n", method, e.msg);
        return rc;
    }
    mo_buf_reset(keep);
    rc = mo_buf_span(keep, mo_json_text(*out));
    *out = (struct mo_json){keep->p, keep->len};
    return rc;
}

static int play_list(struct driver *d)
{
    struct mo_buf keep;
    struct mo_json all;
    int rc;

    mo_buf_init(&keep, TEXT_MAX);
    rc = list(d, "tools/list", "tools", &keep, &all);
    mo_buf_fini(&keep);
    return rc;
}

static int play_tools(struct driver *d)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_json all, key, tool;
    struct mo_json_iter it;
    struct mo_buf keep;
    int rc;

    mo_buf_init(&keep, TEXT_MAX);
    rc = list(d, "tools/list", "tools", &keep, &all);
    if (rc == 0) {
        mo_json_iter(&it, all);
        while (rc == 0 && mo_json_next(&it, &key, &tool)) {
            if (mo_mirror_keep(tool))
                rc = call_tool(d, tool, none);
        }
    }
    mo_buf_fini(&keep);
    return rc;
}

static int use_all(struct driver *d, const char *lister, const char *key,
                   const char *method, const char *name)
{
    static const struct mo_json none = {NULL, 0};
    struct mo_json all, k, item;
    struct mo_json_iter it;
    struct mo_buf keep;
    int rc;

    mo_buf_init(&keep, TEXT_MAX);
    rc = list(d, lister, key, &keep, &all);
    if (rc == 0) {
        mo_json_iter(&it, all);
        while (rc == 0 && mo_json_next(&it, &k, &item))
            rc = use(d, method, name, mo_json_get(item, name), none, NULL);
    }
    mo_buf_fini(&keep);
    return rc;
}

static int play_everything(struct driver *d)
{
    int rc = play_tools(d);

    if (rc == 0)
        rc = use_all(d, "resources/list", "resources", "resources/read", "uri");
    if (rc == 0)
        rc = use_all(d, "prompts/list", "prompts", "prompts/get", "name");
    return rc;
}

/* --- the special ones ---------------------------------------------------- */

static struct mo_json find_tool(struct mo_json all, struct mo_json name)
{
    struct mo_json key, tool, found = {NULL, 0};
    struct mo_json_iter it;

    mo_json_iter(&it, all);
    while (!found.p && mo_json_next(&it, &key, &tool)) {
        if (mo_span_eq(mo_json_text(mo_json_get(tool, "name")),
                       mo_json_text(name)))
            found = tool;
    }
    return found;
}

/* The calls that the suite has prepared, and no other. */
static int play_context(struct driver *d)
{
    struct mo_json all, key, one;
    struct mo_json_iter it;
    struct mo_buf keep;
    int rc;

    mo_buf_init(&keep, TEXT_MAX);
    rc = list(d, "tools/list", "tools", &keep, &all);
    if (rc == 0) {
        mo_json_iter(&it, mo_json_get(d->context, "toolCalls"));
        while (rc == 0 && mo_json_next(&it, &key, &one))
            rc = call_tool(d, find_tool(all, mo_json_get(one, "name")),
                           mo_json_get(one, "arguments"));
    }
    mo_buf_fini(&keep);
    return rc;
}

/* Give the first tool's schema to the second tool. */
static int play_echo(struct driver *d)
{
    static const struct mo_json focal = {"\"json_schema_2020_12_tool\"", 26};
    static const struct mo_json echo = {"\"json_schema_echo\"", 18};
    struct mo_json all, schema;
    struct mo_buf keep, args;
    int rc;

    mo_buf_init(&keep, TEXT_MAX);
    mo_buf_init(&args, TEXT_MAX);
    rc = list(d, "tools/list", "tools", &keep, &all);
    if (rc == 0) {
        schema = mo_json_get(find_tool(all, focal), "inputSchema");
        mo_buf_printf(&args, "{\"schema\":%.*s}", (int)schema.n,
                      schema.p ? schema.p : "");
        rc = call_tool(d, find_tool(all, echo),
                       (struct mo_json){args.p, args.len});
    }
    mo_buf_fini(&args);
    mo_buf_fini(&keep);
    return rc;
}

static const struct {
    const char *name;
    int (*play)(struct driver *d);
} scenarios[] = {
    {"initialize", play_list},
    {"tools_call", play_tools},
    {"elicitation-sep1034-client-defaults", play_tools},
    {"sse-retry", play_tools},
    {"request-metadata", play_list},
    {"http-standard-headers", play_everything},
    {"http-custom-headers", play_context},
    {"http-invalid-tool-headers", play_tools},
    {"sep-2322-client-request-state", play_tools},
    {"json-schema-ref-no-deref", play_list},
    {"json-schema-2020-12-preservation", play_echo},
};

int core_scenario(struct driver *d, const char *name)
{
    struct mo_conn_cb cb = *d->opts.cb;
    struct mo_err e;
    size_t i = 0;
    int rc;

    while (i < MO_COUNT(scenarios) && strcmp(scenarios[i].name, name) != 0)
        i++;
    if (i == MO_COUNT(scenarios))
        return NO_SUCH_SCENARIO;
    cb.on_ask = on_ask;
    d->opts.cb = &cb;
    d->opts.capabilities = MO_SPAN(CAPABILITIES);
    rc = driver_open(d, &e);
    if (rc < 0)
        (void)fprintf(stderr, "not open: %s\n", e.msg);
    else
        rc = scenarios[i].play(d);
    driver_close(d); /* cb is ours */
    return rc;
}
