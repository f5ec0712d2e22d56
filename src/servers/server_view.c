#include "servers/server_view.h"

#include "config/doc.h"
#include "gateway/upstream/upstream.h"

#define TARGET_MAX ((size_t)64 * 1024)

const char *mo_server_view_transport(const struct mo_config_mcp *c)
{
    static const char *const words[] = {
        [MO_TRANSPORT_STDIO] = "stdio",
        [MO_TRANSPORT_HTTP] = "http",
        [MO_TRANSPORT_SSE] = "sse",
        [MO_TRANSPORT_BOX] = "box",
    };

    if (c->transport != MO_TRANSPORT_AUTO)
        return words[c->transport];
    return c->command ? "stdio" : c->url ? "http" : "box";
}

void mo_server_view_config(struct mo_jw *w, const struct mo_config_mcp *c)
{
    mo_autobuf struct mo_buf b = {.max = TARGET_MAX};

    mo_jw_member_cstr(w, "kind",
                      c->image ? "image"
                      : c->url ? mo_server_view_transport(c)
                               : "stdio");
    mo_config_put_target(&b, c);
    mo_jw_member(w, "target", mo_buf_view(&b));
    mo_jw_member_opt(w, "description", mo_span_cstr(c->description));
}

const char *mo_server_view_state(int state)
{
    static const char *const words[] = {
        [MO_UPSTREAM_COLD] = "cold",
        [MO_UPSTREAM_STARTING] = "starting",
        [MO_UPSTREAM_OK] = "ok",
        [MO_UPSTREAM_FAILED] = "failed",
        [MO_UPSTREAM_BROKEN] = "broken",
        [MO_UPSTREAM_SIGN_IN] = "sign_in",
        [MO_UPSTREAM_INSTALLING] = "installing",
    };

    return words[state];
}

void mo_server_view_status(struct mo_jw *w, const char *state,
                           const struct mo_upstream_status *s,
                           const struct mo_gateway_setup *gateway,
                           const char *server)
{
    mo_autobuf struct mo_buf b = {.max = MO_TAIL_MAX * 2};

    mo_jw_member_cstr(w, "state", state);
    if (s->why.code)
        mo_jw_member_cstr(w, "error", s->why.msg);
    if (s->heard_at > 0)
        mo_jw_member_u64(w, "lastCheck", s->heard_at);
    if (s->retry_ms > 0)
        mo_jw_member_u64(w, "retryMs", s->retry_ms);
    if (gateway)
        (void)mo_stderr_tail_get(
            mo_server_link_said(mo_gateway_setup_link(gateway)), server, &b);
    mo_jw_member_opt(w, "stderr", mo_buf_view(&b));
}

void mo_server_view_open(struct mo_jw *w, struct mo_conn *conn,
                         struct mo_json info)
{
    if (conn) {
        const struct mo_conn_info *i = mo_conn_info(conn);

        mo_jw_member_cstr(w, "version", mo_mcp_version_text(i->version));
        mo_jw_member_u64(w, "calls", mo_conn_stats(conn)->calls);
        info = i->server;
    }
    if (mo_json_is(info, MO_JSON_OBJECT))
        mo_jw_member_raw(w, "info", mo_json_text(info));
}
