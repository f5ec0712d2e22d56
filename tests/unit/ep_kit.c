/* ep_kit.c - the endpoint and the tools of ep_kit.h. */
#include "ep_kit.h"

static void kit_canceled(struct mo_ep_call *c)
{
    struct kit *k = c->data;

    k->cancels++;
    if (k->parked == c)
        k->parked = NULL;
    mo_ep_call_result(c, MO_SPAN(TEXT("nobody reads this")));
}

static void kit_park(struct kit *k, struct mo_ep_call *c)
{
    c->data = k;
    c->canceled = kit_canceled;
    k->parked = c;
}

static void kit_ask(struct mo_ep_call *c, const char *key)
{
    mo_ep_call_need(c, key, "elicitation/create",
                    MO_SPAN("{\"message\":\"?\"}"));
    mo_ep_call_wait(c);
}

static void kit_answered(struct mo_ep_call *c, const char *key)
{
    struct mo_json in = mo_ep_call_input(c, key);
    struct mo_buf b;

    if (!in.p) {
        kit_ask(c, key);
        return;
    }
    mo_buf_init(&b, 65536);
    (void)mo_buf_puts(&b, "{\"content\":[],\"structuredContent\":");
    (void)mo_buf_span(&b, mo_json_text(in));
    (void)mo_buf_putc(&b, '}');
    if (mo_buf_err(&b))
        mo_ep_call_fail(c, "out of memory");
    else
        mo_ep_call_result(c, mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void kit_twice(struct mo_ep_call *c)
{
    if (!mo_ep_call_input(c, "one").p) {
        mo_ep_call_set_state(c, MO_SPAN("first"));
        kit_ask(c, "one");
        return;
    }
    if (!mo_span_is(mo_ep_call_state(c), "first")) {
        mo_ep_call_fail(c, "the state was lost");
        return;
    }
    kit_answered(c, "two");
}

static void kit_big(struct mo_ep_call *c)
{
    struct mo_buf b;

    mo_buf_init(&b, KIT_BIG + 64);
    (void)mo_buf_puts(&b, "{\"content\":[{\"type\":\"text\",\"text\":\"");
    for (size_t i = 0; i < KIT_BIG; i++)
        (void)mo_buf_putc(&b, 'x');
    (void)mo_buf_puts(&b, "\"}]}");
    mo_ep_call_result(c, mo_buf_view(&b));
    mo_buf_fini(&b);
}

static void kit_tool(struct kit *k, struct mo_ep_call *c)
{
    if (mo_span_is(c->name, "now")) {
        mo_ep_call_result(c, MO_SPAN(TEXT("ok")));
    } else if (mo_span_is(c->name, "number")) {
        mo_ep_call_result(c, MO_SPAN("{\"content\":[],"
                                     "\"structuredContent\":42}"));
    } else if (mo_span_is(c->name, "kinds")) {
        mo_ep_call_result(
            c, MO_SPAN("{\"content\":[{\"type\":\"audio\",\"data\":\"\","
                       "\"mimeType\":\"audio/wav\"},{\"type\":"
                       "\"resource_link\",\"uri\":\"a:b\",\"name\":\"n\"}]}"));
    } else if (mo_span_is(c->name, "talk")) {
        mo_ep_call_progress(c, 1, 2, "half");
        mo_ep_call_progress(c, 1, 2, "not more, so dropped");
        mo_ep_call_log(c, MO_MCP_DEBUG, NULL, MO_SPAN("\"quiet\""));
        mo_ep_call_log(c, MO_MCP_WARNING, "kit", MO_SPAN("\"loud\""));
        mo_ep_call_result(c, MO_SPAN(TEXT("ok")));
    } else if (mo_span_is(c->name, "big")) {
        kit_big(c);
    } else if (mo_span_is(c->name, "park")) {
        kit_park(k, c);
    } else if (mo_span_is(c->name, "ask")) {
        kit_answered(c, "name");
    } else if (mo_span_is(c->name, "page")) {
        mo_ep_call_need(c, "page", "elicitation/create",
                        MO_SPAN("{\"mode\":\"url\",\"url\":\"a:b\"}"));
        mo_ep_call_wait(c);
    } else if (mo_span_is(c->name, "nonsense")) {
        mo_ep_call_need(c, "x", "no/such", mo_span(NULL, 0));
        mo_ep_call_wait(c);
    } else if (mo_span_is(c->name, "twice")) {
        kit_twice(c);
    } else {
        mo_ep_call_error(c, MO_RPC_INVALID_PARAMS, "no such tool",
                         mo_span(NULL, 0));
    }
}

static void kit_handler(void *ctx, struct mo_ep_call *c)
{
    struct kit *k = ctx;

    k->calls++;
    if (mo_span_is(c->method, "tools/call"))
        kit_tool(k, c);
    else if (mo_span_is(c->method, "tools/list"))
        mo_ep_call_result(
            c, MO_SPAN("{\"tools\":[{\"name\":\"now\",\"title\":\"Now\","
                       "\"inputSchema\":{\"type\":\"object\"},"
                       "\"outputSchema\":{\"type\":\"integer\"},"
                       "\"icons\":[]}],\"ttlMs\":5}"));
    else
        mo_ep_call_error(c, MO_RPC_INVALID_PARAMS, "gone",
                         MO_SPAN("{\"uri\":\"a:b\"}"));
}

static struct mo_json kit_schema(void *ctx, struct mo_span tool)
{
    static const char schema[] =
        "{\"type\":\"object\",\"properties\":{\"where\":{\"type\":\"string\","
        "\"x-mcp-header\":\"Where\"}}}";

    (void)ctx;
    if (!mo_span_is(tool, "now"))
        return (struct mo_json){NULL, 0};
    return (struct mo_json){schema, sizeof(schema) - 1};
}

/* As a task: kinds must be, number must not. */
static enum mo_ep_task_support kit_task(void *ctx, struct mo_span tool)
{
    (void)ctx;
    if (mo_span_is(tool, "kinds"))
        return MO_EP_TASK_REQUIRED;
    return mo_span_is(tool, "number") ? MO_EP_TASK_FORBIDDEN
                                      : MO_EP_TASK_OPTIONAL;
}

static struct {
    unsigned more;
    void (*tune)(struct mo_endpoint_opts *o);
} setup;

void kit_setup(unsigned more, void (*tune)(struct mo_endpoint_opts *o))
{
    setup.more = more;
    setup.tune = tune;
}

int kit_open(struct kit *k, struct mo_loop *l,
             const struct mo_endpoint_limits *limits)
{
    struct mo_endpoint_opts o = {
        .name = "kit",
        .version = "1",
        .caps = MO_EP_TOOLS | MO_EP_RESOURCES | MO_EP_SUBSCRIBE |
                MO_EP_LOGGING | MO_EP_LISTCHANGED | setup.more,
        .handler = kit_handler,
        .schema = kit_schema,
        .task = kit_task,
        .ctx = k,
    };

    *k = (struct kit){.l = l};
    if (limits)
        o.limits = *limits;
    if (setup.tune)
        setup.tune(&o);
    k->ep = mo_endpoint_new(l, &o, NULL);
    return k->ep ? 0 : MO_ENOMEM;
}
