#include "codec/rpc.h"

#include "codec/json/jscan.h"

/* --- reading ------------------------------------------------------------- */

enum member { M_JSONRPC, M_ID, M_METHOD, M_PARAMS, M_RESULT, M_ERROR, M_COUNT };

static const struct mo_span names[M_COUNT] = {
    [M_JSONRPC] = MO_SPAN("jsonrpc"), [M_ID] = MO_SPAN("id"),
    [M_METHOD] = MO_SPAN("method"),   [M_PARAMS] = MO_SPAN("params"),
    [M_RESULT] = MO_SPAN("result"),   [M_ERROR] = MO_SPAN("error"),
};

/* The envelope being read: its values, and the members given twice. */
struct envelope {
    struct mo_json v[M_COUNT];
    bool twice[M_COUNT];
};

/* Keys are nearly always unescaped; only a key with a backslash has to be read
 * character by character. */
static enum member which(struct mo_json key)
{
    struct mo_span raw = mo_span(key.p + 1, key.n - 2);

    for (unsigned i = 0; i < M_COUNT; i++) {
        if (mo_span_eq(raw, names[i]))
            return (enum member)i;
    }
    if (mo_span_find(raw, '\\') < 0)
        return M_COUNT;
    for (unsigned i = 0; i < M_COUNT; i++) {
        if (mo_json_str_eq(key, names[i]))
            return (enum member)i;
    }
    return M_COUNT;
}

static bool read_members(struct mo_jscan *s, struct envelope *env)
{
    mo_jscan_enter(s);
    for (;;) {
        struct mo_json key, val;
        int more = mo_jscan_member(s, &key, &val);
        enum member m;

        if (more <= 0)
            return more == 0;
        m = which(key);
        if (m == M_COUNT)
            continue;
        env->twice[m] |= env->v[m].p != NULL;
        env->v[m] = val;
    }
}

static bool has(const struct envelope *env, enum member m)
{
    return env->v[m].p != NULL;
}

static bool is(const struct envelope *env, enum member m, enum mo_json_type t)
{
    return mo_json_is(env->v[m], t);
}

static bool usable_id(const struct envelope *env)
{
    return !env->twice[M_ID] &&
           (is(env, M_ID, MO_JSON_STRING) || is(env, M_ID, MO_JSON_NUMBER));
}

/* Each rule returns the error it finds, or NULL. */

static const char *bad_duplicate(const struct envelope *env)
{
    static const char *const why[M_COUNT] = {
        "jsonrpc given twice", "id given twice",     "method given twice",
        "params given twice",  "result given twice", "error given twice",
    };

    for (unsigned i = 0; i < M_COUNT; i++) {
        if (env->twice[i])
            return why[i];
    }
    return NULL;
}

static const char *bad_common(const struct envelope *env)
{
    if (!has(env, M_JSONRPC))
        return "jsonrpc is missing";
    if (!mo_json_str_eq(env->v[M_JSONRPC], MO_SPAN("2.0")))
        return "jsonrpc is not \"2.0\"";
    if (has(env, M_ID) && !usable_id(env) && !is(env, M_ID, MO_JSON_NULL))
        return "id is neither string nor number";
    if (has(env, M_METHOD) + has(env, M_RESULT) + has(env, M_ERROR) != 1)
        return "not exactly one of method, result and error";
    return NULL;
}

static const char *bad_call(const struct envelope *env)
{
    if (!is(env, M_METHOD, MO_JSON_STRING))
        return "method is no string";
    if (is(env, M_ID, MO_JSON_NULL))
        return "the id of a request is null";
    if (has(env, M_PARAMS) && !is(env, M_PARAMS, MO_JSON_OBJECT) &&
        !is(env, M_PARAMS, MO_JSON_ARRAY))
        return "params is neither object nor array";
    return NULL;
}

static const char *bad_result(const struct envelope *env)
{
    if (has(env, M_PARAMS))
        return "params in a response";
    if (!usable_id(env))
        return "a result without an id";
    return NULL;
}

/* An error may answer a message whose id could not be read. */
static const char *bad_error(const struct envelope *env)
{
    struct mo_json err = env->v[M_ERROR];
    int64_t code;

    if (has(env, M_PARAMS))
        return "params in a response";
    if (!mo_json_is(err, MO_JSON_OBJECT))
        return "error is no object";
    if (mo_json_i64(mo_json_get(err, "code"), &code) < 0)
        return "the code of an error is no integer";
    if (!mo_json_is(mo_json_get(err, "message"), MO_JSON_STRING))
        return "the message of an error is no string";
    return NULL;
}

/* Returns the kind of a valid message, else sets the reason. */
static enum mo_rpc_kind judge(const struct envelope *env, const char **why)
{
    *why = bad_duplicate(env);
    if (!*why)
        *why = bad_common(env);
    if (*why)
        return MO_RPC_INVALID;
    if (has(env, M_METHOD)) {
        *why = bad_call(env);
        return has(env, M_ID) ? MO_RPC_REQUEST : MO_RPC_NOTIFICATION;
    }
    if (has(env, M_RESULT)) {
        *why = bad_result(env);
        return MO_RPC_RESULT;
    }
    *why = bad_error(env);
    return MO_RPC_ERROR;
}

static int invalid(struct mo_rpc *out, const char *why, struct mo_err *e)
{
    out->kind = MO_RPC_INVALID;
    (void)mo_fail(e, MO_EPROTO, "no JSON-RPC message: %s", why);
    return 0;
}

static int parse_object(struct mo_jscan *s, struct mo_rpc *out,
                        struct mo_err *e)
{
    struct envelope env = {0};
    const char *from = s->p, *why;
    enum mo_rpc_kind kind;

    if (!read_members(s, &env))
        return mo_jscan_fail(s, e);
    out->root = (struct mo_json){from, (size_t)(s->p - from)};
    if (!mo_jscan_end(s))
        return mo_jscan_fail(s, e);
    out->has_nl = s->has_nl;
    kind = judge(&env, &why);
    if (why) {
        if (usable_id(&env))
            out->id = env.v[M_ID];
        return invalid(out, why, e);
    }
    out->kind = kind;
    out->id = env.v[M_ID];
    out->method = env.v[M_METHOD];
    out->params = env.v[M_PARAMS];
    out->result = env.v[M_RESULT];
    out->error = env.v[M_ERROR];
    return 0;
}

int mo_rpc_parse(struct mo_span text, struct mo_rpc *out, struct mo_err *e)
{
    struct mo_jscan s;
    int rc;

    *out = (struct mo_rpc){0};
    mo_jscan_init(&s, text, 0);
    if (s.p < s.end && *s.p == '{') {
        rc = parse_object(&s, out, e);
        if (rc < 0)
            *out = (struct mo_rpc){0};
        return rc;
    }
    if (!mo_jscan_value(&s, &out->root) || !mo_jscan_end(&s)) {
        out->root = (struct mo_json){NULL, 0};
        return mo_jscan_fail(&s, e);
    }
    out->has_nl = s.has_nl;
    if (!mo_json_is(out->root, MO_JSON_ARRAY))
        return invalid(out, "neither object nor array", e);
    if (mo_json_len(out->root) == 0)
        return invalid(out, "an empty batch", e);
    out->kind = MO_RPC_BATCH;
    return 0;
}

/* --- writing ------------------------------------------------------------- */

static void put_member(struct mo_buf *b, const char *lead, struct mo_span text)
{
    mo_buf_puts(b, lead);
    mo_buf_span(b, text);
}

static void put_call(struct mo_buf *b, const char *method,
                     struct mo_span params)
{
    mo_buf_puts(b, ",\"method\":");
    mo_json_quote(b, mo_span_cstr(method));
    if (params.n)
        put_member(b, ",\"params\":", params);
    mo_buf_putc(b, '}');
}

int mo_rpc_put_notification(struct mo_buf *b, const char *method,
                            struct mo_span params)
{
    mo_buf_puts(b, "{\"jsonrpc\":\"2.0\"");
    put_call(b, method, params);
    return mo_buf_err(b);
}

int mo_rpc_put_result(struct mo_buf *b, struct mo_span id,
                      struct mo_span result)
{
    MO_BUG_ON(id.n == 0);
    put_member(b, "{\"jsonrpc\":\"2.0\",\"id\":", id);
    put_member(b, ",\"result\":", result.n ? result : MO_SPAN("{}"));
    return mo_buf_putc(b, '}');
}

int mo_rpc_put_error(struct mo_buf *b, struct mo_span id, int code,
                     struct mo_span message, struct mo_span data)
{
    put_member(b, "{\"jsonrpc\":\"2.0\",\"id\":", id.n ? id : MO_SPAN("null"));
    mo_buf_puts(b, ",\"error\":{\"code\":");
    mo_buf_i64(b, code);
    mo_buf_puts(b, ",\"message\":");
    mo_json_quote(b, message);
    if (data.n)
        put_member(b, ",\"data\":", data);
    return mo_buf_puts(b, "}}");
}
