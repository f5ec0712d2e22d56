/* sync_client_tool.c - calls one tool, with the headers that its schema
 * requires. */
#include "connect/sync_client.h"

#define PARAMS_MAX MO_CONN_TEXT_MAX

static struct mo_json find_tool(struct mo_json tools, const char *name)
{
    struct mo_json key, val, none = {NULL, 0};
    struct mo_json_iter it;

    mo_json_iter(&it, tools);
    while (mo_json_next(&it, &key, &val)) {
        if (mo_json_str_eq(mo_json_get(val, "name"), mo_span_cstr(name)))
            return val;
    }
    return none;
}

/* Only modern servers reached by HTTP read these headers. A tool that is not in
 * the list is called anyway: the server reports the error. */
static int build_mirror(struct mo_sync_client *p, const char *tool,
                        struct mo_span args, struct mo_mirror *m,
                        struct mo_err *e)
{
    struct mo_json tools = {NULL, 0}, schema, v = {args.p, args.n};
    int rc = 0;

    if (mo_sync_client_is_http(p) && mo_sync_client_info(p)->modern &&
        mo_sync_client_can(p, "tools"))
        rc = mo_sync_client_list(p, "tools/list", "tools", &tools, e);
    schema = mo_json_get(find_tool(tools, tool), "inputSchema");
    if (rc < 0)
        schema = (struct mo_json){NULL, 0};
    if (mo_mirror_init(m, schema, v, e) < 0)
        return mo_wrap(e, "the tool must not be called over HTTP");
    return rc;
}

static int put_params(struct mo_buf *b, const char *tool, struct mo_span args)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "name", tool);
    mo_jw_member_raw(&w, "arguments", args);
    mo_jw_end(&w);
    return mo_buf_err(b);
}

static int call_once(struct mo_sync_client *p, const char *tool,
                     struct mo_span args, struct mo_json *out, struct mo_err *e)
{
    struct mo_mirror m;
    struct mo_buf b;
    int rc = build_mirror(p, tool, args, &m, e);

    mo_buf_init(&b, PARAMS_MAX);
    if (rc == 0 && put_params(&b, tool, args) < 0)
        rc = mo_fail(e, mo_buf_err(&b), "the arguments are too long");
    if (rc == 0)
        rc = mo_sync_client_call_with(p, "tools/call", mo_buf_view(&b), &m, out,
                                      e);
    mo_buf_fini(&b);
    mo_mirror_fini(&m);
    return rc;
}

int mo_sync_client_tool(struct mo_sync_client *p, const char *tool,
                        struct mo_span args, struct mo_json *out,
                        struct mo_err *e)
{
    int rc = call_once(p, tool, args, out, e);

    if (rc < 0 && mo_sync_client_code(p) == MO_MCP_HEADER_MISMATCH)
        rc = call_once(p, tool, args, out, e);
    return rc;
}
