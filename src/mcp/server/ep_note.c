/* ep_note.c - messages about a call before its answer: progress and log
 * messages, our own or another server's. */
#include "mcp/edit.h"
#include "mcp/server/ep_priv.h"

#define SIGN_OF_LIFE 1e-6 /* below whatever the call itself reports */

struct mo_jw mo_ep_begin_note(struct mo_endpoint *ep, const char *method)
{
    struct mo_jw w = mo_jw_object(mo_ep_scratch(ep));

    mo_jw_member_cstr(&w, "jsonrpc", "2.0");
    mo_jw_member_cstr(&w, "method", method);
    mo_jw_member_obj(&w, "params");
    return w;
}

void mo_ep_put_sub(struct mo_jw *w, struct mo_json id)
{
    mo_jw_member_obj(w, "_meta");
    mo_jw_member_raw(w, MO_MCP_P_SUB, mo_json_text(id));
    mo_jw_end(w);
}

static void end_note(struct call *c, struct mo_jw *w)
{
    if (c->task) {
        mo_jw_member_obj(w, "_meta");
        mo_ep_task_meta(c->task, w);
    }
    mo_jw_end_all(w);
    mo_ep_note_scratch(c->ep, c->way);
}

/* True if the client wants this report: progress must grow. */
static bool may_report(struct call *c, double progress)
{
    if (!c->token.p || !c->way || (c->progressed && progress <= c->progress))
        return false;
    c->progressed = true;
    c->progress = progress;
    return true;
}

void mo_ep_call_progress(struct mo_ep_call *pub, double progress, double total,
                         const char *msg)
{
    struct call *c = call_of(pub);
    struct mo_jw w;

    if (pub->within) { /* a sign of life of the outer call */
        c = mo_ep_within_outer(c);
        if (!c)
            return;
        progress = c->progress + SIGN_OF_LIFE;
        total = -1;
    }
    if (!may_report(c, progress))
        return;
    w = mo_ep_begin_note(c->ep, "notifications/progress");
    mo_jw_member_raw(&w, "progressToken", mo_json_text(c->token));
    mo_jw_member_f64(&w, "progress", progress);
    if (total >= 0)
        mo_jw_member_f64(&w, "total", total);
    if (msg && pub->version >= MO_MCP_2025_03_26)
        mo_jw_member_cstr(&w, "message", msg);
    end_note(c, &w);
}

/* The least log level that its client wants. */
static enum mo_mcp_level least_level(const struct call *c)
{
    bool legacy = c->sess && !mo_mcp_is_modern(c->pub.version);

    return legacy ? c->sess->level : c->level;
}

void mo_ep_call_log(struct mo_ep_call *pub, enum mo_mcp_level lv,
                    const char *logger, struct mo_span data)
{
    struct call *c = call_of(pub);
    struct mo_jw w;

    if (!c->way || lv < least_level(c) || !(c->ep->o.caps & MO_EP_LOGGING))
        return;
    w = mo_ep_begin_note(c->ep, "notifications/message");
    mo_jw_member_cstr(&w, "level", mo_ep_level_text(lv));
    if (logger)
        mo_jw_member_cstr(&w, "logger", logger);
    mo_jw_member_raw(&w, "data", data);
    end_note(c, &w);
}

/* --- another server's ---------------------------------------------------- */

/* Write _meta of a message about a call that runs as a task. */
static void put_task_meta(const struct call *c, struct mo_json meta,
                          struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_ep_put_members(&w, meta, EP_KEYS(MO_MCP_P_TASK));
    mo_ep_task_meta(c->task, &w);
    mo_jw_end(&w);
}

static void begin_raw(struct mo_buf *b, const char *method)
{
    (void)mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"method\":\"");
    (void)mo_buf_puts(b, method);
    (void)mo_buf_puts(b, "\",\"params\":");
}

static void end_raw(struct mo_endpoint *ep, struct mo_ep_way *way)
{
    (void)mo_buf_putc(&ep->scratch, '}');
    mo_ep_note_scratch(ep, way);
}

/* token empty: no token is written. */
static void forward_note(struct call *c, const char *method,
                         struct mo_json params, struct mo_span token)
{
    struct mo_buf *b = mo_ep_scratch(c->ep);
    struct mo_edit v[2];
    mo_autobuf struct mo_buf meta = {.max = EP_CALL_EXTRA};
    size_t n = 0;

    if (token.p)
        v[n++] = (struct mo_edit){"progressToken", token};
    if (c->task) {
        put_task_meta(c, mo_json_get(params, "_meta"), &meta);
        v[n++] = (struct mo_edit){"_meta", mo_buf_view(&meta)};
    }
    begin_raw(b, method);
    (void)mo_edit(b, params, v, n);
    end_raw(c->ep, c->way);
}

bool mo_ep_call_wants_progress(const struct mo_ep_call *pub)
{
    return call_of(pub)->token.p != NULL;
}

const char *mo_ep_call_log_level(const struct mo_ep_call *pub)
{
    enum mo_mcp_level lv = least_level(call_of(pub));

    return lv == MO_MCP_LEVELS ? NULL : mo_ep_level_text(lv);
}

void mo_ep_call_progress_raw(struct mo_ep_call *pub, struct mo_json params)
{
    struct call *c = call_of(pub);
    double at;

    if (mo_json_f64(mo_json_get(params, "progress"), &at) == 0 &&
        may_report(c, at))
        forward_note(c, "notifications/progress", params,
                     mo_json_text(c->token));
}

static bool is_wanted(const struct mo_endpoint *ep, struct mo_json params,
                      enum mo_mcp_level least)
{
    enum mo_mcp_level lv = mo_ep_level(mo_json_get(params, "level"));

    return lv != MO_MCP_LEVELS && lv >= least && (ep->o.caps & MO_EP_LOGGING);
}

void mo_ep_call_log_raw(struct mo_ep_call *pub, struct mo_json params)
{
    struct call *c = call_of(pub);

    if (c->way && is_wanted(c->ep, params, least_level(c)))
        forward_note(c, "notifications/message", params, mo_span(NULL, 0));
}

/* --- messages that belong to no call ------------------------------------- */

void mo_endpoint_tell(struct mo_endpoint *ep, uint64_t peer, const char *method,
                      struct mo_span params)
{
    const struct mo_ep_sess *s = mo_ep_find_peer(ep, peer);

    if (!s || !s->push)
        return;
    begin_raw(mo_ep_scratch(ep), method);
    (void)mo_buf_span(&ep->scratch, params);
    end_raw(ep, s->push);
}

void mo_endpoint_log(struct mo_endpoint *ep, uint64_t peer,
                     struct mo_json params)
{
    const struct mo_ep_sess *s = mo_ep_find_peer(ep, peer);

    if (s && is_wanted(ep, params, s->level))
        mo_endpoint_tell(ep, peer, "notifications/message",
                         mo_json_text(params));
}
