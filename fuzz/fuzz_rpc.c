/* fuzz_rpc.c - the one-pass envelope against one read the slow way: parse,
 * walk the members, unescape every key, then apply the rules. And what was
 * accepted must survive being written with another envelope. */
#include <stdlib.h>

#include "codec/rpc.h"

#define MAX ((size_t)8 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void must(bool ok)
{
    if (!ok)
        abort();
}

enum { VERSION, ID, METHOD, PARAMS, RESULT, ERROR, NAMES };

struct slow {
    struct mo_json v[NAMES];
    int seen[NAMES];
};

static void slow_member(struct slow *s, struct mo_json key, struct mo_json val)
{
    static const char *const names[NAMES] = {"jsonrpc", "id",     "method",
                                             "params",  "result", "error"};
    struct mo_buf b;

    mo_buf_init(&b, MAX);
    must(mo_json_str_buf(key, &b) == 0);
    for (int i = 0; i < NAMES; i++) {
        if (!mo_span_is(mo_buf_view(&b), names[i]))
            continue;
        s->v[i] = val;
        s->seen[i]++;
    }
    mo_buf_fini(&b);
}

static bool slow_error(struct mo_json v)
{
    int64_t code;

    return mo_json_is(v, MO_JSON_OBJECT) &&
           mo_json_i64(mo_json_get(v, "code"), &code) == 0 &&
           mo_json_is(mo_json_get(v, "message"), MO_JSON_STRING);
}

static enum mo_rpc_kind slow_kind(const struct slow *s)
{
    enum mo_json_type id = mo_json_type(s->v[ID]);
    enum mo_json_type params = mo_json_type(s->v[PARAMS]);
    bool real_id = id == MO_JSON_STRING || id == MO_JSON_NUMBER;

    for (int i = 0; i < NAMES; i++) {
        if (s->seen[i] > 1)
            return MO_RPC_INVALID;
    }
    if (!mo_json_str_eq(s->v[VERSION], MO_SPAN("2.0")))
        return MO_RPC_INVALID;
    if (s->seen[METHOD] + s->seen[RESULT] + s->seen[ERROR] != 1)
        return MO_RPC_INVALID;
    if (s->seen[METHOD]) {
        if (!mo_json_is(s->v[METHOD], MO_JSON_STRING))
            return MO_RPC_INVALID;
        if (params != MO_JSON_NONE && params != MO_JSON_OBJECT &&
            params != MO_JSON_ARRAY)
            return MO_RPC_INVALID;
        if (id == MO_JSON_NONE)
            return MO_RPC_NOTIFICATION;
        return real_id ? MO_RPC_REQUEST : MO_RPC_INVALID;
    }
    if (params != MO_JSON_NONE)
        return MO_RPC_INVALID;
    if (s->seen[RESULT])
        return real_id ? MO_RPC_RESULT : MO_RPC_INVALID;
    if (!real_id && id != MO_JSON_NONE && id != MO_JSON_NULL)
        return MO_RPC_INVALID;
    return slow_error(s->v[ERROR]) ? MO_RPC_ERROR : MO_RPC_INVALID;
}

static bool same(struct mo_json a, struct mo_json b)
{
    return a.p == b.p && a.n == b.n;
}

static void check_object(const struct mo_rpc *m)
{
    struct slow s = {0};
    struct mo_json k, v;
    struct mo_json_iter it;

    mo_json_iter(&it, m->root);
    while (mo_json_next(&it, &k, &v))
        slow_member(&s, k, v);
    must(m->kind == slow_kind(&s));
    if (m->kind == MO_RPC_INVALID) {
        must(!m->id.p || same(m->id, s.v[ID]));
        must(!m->method.p && !m->params.p && !m->result.p && !m->error.p);
        return;
    }
    must(same(m->id, s.v[ID]) && same(m->method, s.v[METHOD]));
    must(same(m->params, s.v[PARAMS]) && same(m->result, s.v[RESULT]));
    must(same(m->error, s.v[ERROR]));
}

static void put_request(struct mo_buf *b, struct mo_span id,
                        struct mo_span params)
{
    mo_buf_puts(b, "{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"id\":");
    mo_buf_span(b, id);
    mo_buf_puts(b, params.n ? ",\"params\":" : "");
    mo_buf_span(b, params);
    mo_buf_putc(b, '}');
}

/* The id and the payload go byte for byte through a new envelope. */
static void check_forward(const struct mo_rpc *m)
{
    struct mo_json payload = m->result.p ? m->result : m->params;
    struct mo_span id = mo_json_text(m->id);
    struct mo_rpc back;
    struct mo_buf b;

    mo_buf_init(&b, MAX);
    if (m->kind == MO_RPC_REQUEST)
        put_request(&b, id, mo_json_text(payload));
    else
        mo_rpc_put_result(&b, id, mo_json_text(payload));
    must(mo_rpc_parse(mo_buf_view(&b), &back, NULL) == 0);
    must(back.kind == m->kind);
    must(mo_span_eq(mo_json_text(back.id), id));
    if (payload.p)
        must(mo_span_eq(mo_json_text(back.result.p ? back.result : back.params),
                        mo_json_text(payload)));
    mo_buf_fini(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mo_span text = mo_span((const char *)data, n);
    struct mo_err e1 = {0}, e2 = {0};
    struct mo_json_doc doc;
    struct mo_rpc m;
    int rc = mo_rpc_parse(text, &m, &e1);

    must(rc == mo_json_parse(text, 0, &doc, &e2));
    if (rc < 0) {
        must(rc == MO_EPROTO && !m.root.p && strcmp(e1.msg, e2.msg) == 0);
        return 0;
    }
    must(same(m.root, doc.root) && m.has_nl == doc.has_nl);
    must((e1.msg[0] != '\0') == (m.kind == MO_RPC_INVALID));
    if (mo_json_is(m.root, MO_JSON_OBJECT))
        check_object(&m);
    else if (mo_json_is(m.root, MO_JSON_ARRAY))
        must((m.kind == MO_RPC_BATCH) == (mo_json_len(m.root) > 0));
    else
        must(m.kind == MO_RPC_INVALID);
    if (m.kind == MO_RPC_REQUEST || m.kind == MO_RPC_RESULT)
        check_forward(&m);
    return 0;
}
