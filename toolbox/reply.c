#include "toolbox/reply.h"

#define LIST_TTL_MS                                                            \
    300000 /* the list of tools never changes in one process                   \
            */

static void begin_message(struct tb_server *s, struct mo_jw *w)
{
    mo_buf_reset(&s->message);
    mo_jw_init(w, &s->message);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "jsonrpc", "2.0");
}

/* A message that cannot be written is not sent; the peer's timeout ends the
 * call. */
static void end_message(struct tb_server *s, struct mo_jw *w)
{
    mo_jw_end(w);
    if (!mo_buf_err(&s->message))
        s->send(s->to, mo_buf_view(&s->message));
}

static void begin_reply(struct tb_server *s, struct mo_jw *w, struct mo_span id,
                        const char *what)
{
    begin_message(s, w);
    mo_jw_key(w, "id");
    mo_jw_raw(w, id.n ? id : MO_SPAN("null"));
    mo_jw_key(w, what);
    mo_jw_obj(w);
}

static void put_info(struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", TB_NAME);
    mo_jw_member_cstr(w, "title", "Toolbox");
    mo_jw_member_cstr(w, "version", MO_VERSION);
    mo_jw_end(w);
}

static void put_caps(struct mo_jw *w)
{
    mo_jw_key(w, "capabilities");
    mo_jw_raw(w, MO_SPAN("{\"tools\":{},\"logging\":{}}"));
}

/* A modern result says that it is complete and names the server. */
static void end_result(struct tb_server *s, struct mo_jw *w, enum tb_version v,
                       const char *error)
{
    if (tb_is_modern(v))
        mo_jw_member_cstr(w, "resultType", "complete");
    if (tb_is_modern(v) || error) {
        mo_jw_key(w, "_meta");
        mo_jw_obj(w);
        if (error)
            mo_jw_member_cstr(w, "mo.error", error);
        if (tb_is_modern(v)) {
            mo_jw_key(w, TB_P_SERVER);
            put_info(w);
        }
        mo_jw_end(w);
    }
    mo_jw_end(w);
    end_message(s, w);
}

static void put_cache(struct mo_jw *w)
{
    mo_jw_member_u64(w, "ttlMs", LIST_TTL_MS);
    mo_jw_member_cstr(w, "cacheScope", "public");
}

/* --- errors -------------------------------------------------------------- */

void tb_reply_error(struct tb_server *s, struct mo_span id, int code,
                    const char *why)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "error");
    mo_jw_member_i64(&w, "code", code);
    mo_jw_member_cstr(&w, "message", why);
    mo_jw_end(&w);
    end_message(s, &w);
}

void tb_reply_unsupported(struct tb_server *s, struct mo_span id,
                          struct mo_json requested)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "error");
    mo_jw_member_i64(&w, "code", TB_UNSUPPORTED_VERSION);
    mo_jw_member_cstr(&w, "message",
                      "this protocol version is not spoken here");
    mo_jw_key(&w, "data");
    mo_jw_obj(&w);
    mo_jw_key(&w, "supported");
    mo_jw_arr(&w);
    mo_jw_cstr(&w, tb_version_text(TB_2026_07_28));
    mo_jw_end(&w);
    mo_jw_key(&w, "requested");
    mo_jw_raw(&w, mo_json_text(requested));
    mo_jw_end(&w);
    mo_jw_end(&w);
    end_message(s, &w);
}

/* --- initialize and discover --------------------------------------------- */

void tb_reply_empty(struct tb_server *s, struct mo_span id)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "result");
    mo_jw_end(&w);
    end_message(s, &w);
}

void tb_reply_welcome(struct tb_server *s, struct mo_span id)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "result");
    mo_jw_member_cstr(&w, "protocolVersion", tb_version_text(s->version));
    put_caps(&w);
    mo_jw_key(&w, "serverInfo");
    put_info(&w);
    mo_jw_member_cstr(&w, "instructions", s->instructions);
    mo_jw_end(&w);
    end_message(s, &w);
}

void tb_reply_discover(struct tb_server *s, struct mo_span id)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "result");
    mo_jw_key(&w, "supportedVersions");
    mo_jw_arr(&w);
    for (int v = TB_2026_07_28; v >= TB_2024_11_05; v--)
        mo_jw_cstr(&w, tb_version_text((enum tb_version)v));
    mo_jw_end(&w);
    put_caps(&w);
    mo_jw_member_cstr(&w, "instructions", s->instructions);
    put_cache(&w);
    end_result(s, &w, TB_2026_07_28, NULL);
}

/* --- tools --------------------------------------------------------------- */

static void put_hints(struct mo_jw *w, const struct tb_tool *t)
{
    static const struct {
        const char *name;
        unsigned bit;
    } hints[] = {
        {"readOnlyHint", TB_READ_ONLY},
        {"destructiveHint", TB_DESTRUCTIVE},
        {"idempotentHint", TB_IDEMPOTENT},
        {"openWorldHint", TB_OPEN_WORLD},
    };

    mo_jw_key(w, "annotations");
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "title", t->title);
    for (size_t i = 0; i < MO_COUNT(hints); i++) {
        mo_jw_key(w, hints[i].name);
        mo_jw_bool(w, (t->hints & hints[i].bit) != 0);
    }
    mo_jw_end(w);
}

static void put_tool(struct mo_jw *w, const struct tb_tool *t,
                     enum tb_version v)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "name", t->name);
    if (tb_has_structured(v))
        mo_jw_member_cstr(w, "title", t->title);
    mo_jw_member_cstr(w, "description", t->what);
    mo_jw_key(w, "inputSchema");
    tb_fields_schema(w, t->in, true);
    if (tb_has_structured(v)) {
        mo_jw_key(w, "outputSchema");
        tb_fields_schema(w, t->out, true);
    }
    if (tb_has_annotations(v))
        put_hints(w, t);
    mo_jw_end(w);
}

void tb_reply_tools(struct tb_server *s, struct mo_span id, enum tb_version v)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "result");
    mo_jw_key(&w, "tools");
    mo_jw_arr(&w);
    for (size_t i = 0; s->tools[i]; i++)
        put_tool(&w, s->tools[i], v);
    mo_jw_end(&w);
    if (tb_is_modern(v))
        put_cache(&w);
    end_result(s, &w, v, NULL);
}

static void put_text(struct mo_jw *w, struct mo_span text)
{
    mo_jw_key(w, "content");
    mo_jw_arr(w);
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "type", "text");
    mo_jw_key(w, "text");
    mo_jw_str(w, text);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_failed(struct mo_jw *w, bool failed)
{
    mo_jw_member_bool(w, "isError", failed);
}

void tb_reply_result(struct tb_call *c, const struct tb_result *r)
{
    struct mo_span text = mo_buf_view(&r->text), data = mo_buf_view(&r->data);
    struct mo_jw w;

    begin_reply(c->server, &w, c->id, "result");
    put_text(&w, text.n ? text : MO_SPAN(""));
    if (tb_has_structured(c->version) && data.n) {
        mo_jw_key(&w, "structuredContent");
        mo_jw_raw(&w, data);
    }
    put_failed(&w, r->failed);
    end_result(c->server, &w, c->version, NULL);
}

void tb_reply_failure(struct tb_call *c, const struct mo_err *e)
{
    struct mo_jw w;

    begin_reply(c->server, &w, c->id, "result");
    put_text(&w, mo_span_cstr(e->msg));
    put_failed(&w, true);
    end_result(c->server, &w, c->version, mo_err_name(e->code));
}

static void reply_fault(struct tb_server *s, struct mo_span id,
                        const struct mo_err *e)
{
    struct mo_jw w;

    begin_reply(s, &w, id, "error");
    mo_jw_member_i64(&w, "code",
                     e->code == MO_EINVAL ? MO_RPC_INVALID_PARAMS
                                          : MO_RPC_INTERNAL);
    mo_jw_member_cstr(&w, "message", e->msg);
    mo_jw_key(&w, "data");
    mo_jw_obj(&w);
    mo_jw_member_cstr(&w, "mo.error", s->word(e));
    mo_jw_end(&w);
    mo_jw_end(&w);
    end_message(s, &w);
}

void tb_reply_method(struct tb_server *s, struct mo_span id, enum tb_version v,
                     const struct tb_method *m, struct mo_json args)
{
    struct mo_err e = {.code = 0};
    struct mo_jw w;
    int rc;

    begin_reply(s, &w, id, "result");
    rc = m->run(s->ctx, args, &w, &e);
    if (rc == 0 && mo_buf_err(&s->message))
        rc = mo_fail(&e, MO_ETOOBIG, "the result is too big to be sent");
    if (rc < 0)
        reply_fault(s, id, &e);
    else
        end_result(s, &w, v, NULL);
}

/* --- notifications of a call --------------------------------------------- */

static void begin_note(struct tb_server *s, struct mo_jw *w, const char *method)
{
    begin_message(s, w);
    mo_jw_member_cstr(w, "method", method);
    mo_jw_key(w, "params");
    mo_jw_obj(w);
}

void tb_note_begin(struct tb_call *c, struct mo_jw *w, const char *method)
{
    begin_note(c->server, w, method);
    mo_jw_key(w, "progressToken");
    mo_jw_raw(w, c->token);
}

void tb_note_end(struct tb_call *c, struct mo_jw *w)
{
    mo_jw_end(w);
    end_message(c->server, w);
}

void tb_reply_progress(struct tb_call *c, struct mo_span text)
{
    struct mo_jw w;

    tb_note_begin(c, &w, "notifications/progress");
    mo_jw_member_u64(&w, "progress", c->progress);
    if (tb_has_annotations(c->version)) {
        mo_jw_key(&w, "message");
        mo_jw_str(&w, text);
    }
    tb_note_end(c, &w);
}

void tb_reply_log(struct tb_call *c, const char *stream, struct mo_span text)
{
    struct mo_jw w;

    begin_note(c->server, &w, "notifications/message");
    mo_jw_member_cstr(&w, "level", "info");
    mo_jw_member_cstr(&w, "logger", c->tool->name);
    mo_jw_key(&w, "data");
    mo_jw_obj(&w);
    mo_jw_key(&w, "requestId");
    mo_jw_raw(&w, c->id);
    mo_jw_member_cstr(&w, "stream", stream);
    mo_jw_key(&w, "text");
    mo_jw_str(&w, text);
    mo_jw_end(&w);
    mo_jw_end(&w);
    end_message(c->server, &w);
}
