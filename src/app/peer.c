#include "app/peer.h"

#include <signal.h>

#include "app/resolve.h"
#include "mcp/link_child.h"
#include "mcp/link_sse.h"
#include "mcp/pages.h"

#define ARENA_MAX  ((size_t)4 * 1024 * 1024)
#define VALUE_MAX  ((size_t)128 * 1024) /* of one environment variable */
#define FOREVER_MS ((uint64_t)24 * 3600 * 1000)

struct mo_peer {
    struct mo_arena a;
    struct mo_loop *loop;
    struct mo_guard *guard;
    struct mo_conn *conn; /* NULL: closed */
    struct mo_child_opts child;
    struct mo_httpc *http; /* or, for a server with an address */
    struct mo_link_http_opts remote;
    bool old_sse;
    uint64_t timeout_ms;
    bool opened, guard_gone, http_gone;
    struct mo_err why; /* how the connection ended */
    /* the call that is waited for */
    bool done;
    int rc;
    struct mo_err err;
    struct mo_buf answer;
};

/* --- words ---------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* One word from *s into b. Quotes group; a backslash takes the next byte as
 * it is, outside of single quotes. False: a quote is not closed. */
static bool take_word(const char **s, struct mo_buf *b)
{
    char quote = 0;
    const char *p = *s;

    for (; *p && (quote || !is_blank(*p)); p++) {
        if (*p == '\\' && quote != '\'' && p[1])
            mo_buf_putc(b, *++p);
        else if (!quote && (*p == '\'' || *p == '"'))
            quote = *p;
        else if (quote && *p == quote)
            quote = 0;
        else
            mo_buf_putc(b, *p);
    }
    *s = p;
    return !quote;
}

int mo_peer_words(struct mo_arena *a, const char *line, const char *const **out,
                  size_t *n, struct mo_err *e)
{
    const char **v = mo_arena_zalloc(a, (MO_PEER_WORDS_MAX + 1) * sizeof(*v));
    struct mo_buf b;
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "command line");
    mo_buf_init(&b, VALUE_MAX);
    for (*n = 0; rc == 0; (*n)++) {
        while (is_blank(*line))
            line++;
        if (!*line)
            break;
        mo_buf_reset(&b);
        if (!take_word(&line, &b))
            rc = mo_fail(e, MO_EINVAL, "a quote is not closed");
        else if (mo_buf_err(&b) || *n >= MO_PEER_WORDS_MAX)
            rc = mo_fail(e, MO_ETOOBIG, "the command line is too long");
        if (rc < 0)
            break;
        v[*n] = mo_arena_strndup(a, b.p ? b.p : "", b.len);
        if (!v[*n])
            rc = mo_fail(e, MO_ENOMEM, "command line");
    }
    mo_buf_fini(&b);
    if (rc == 0 && *n == 0)
        rc = mo_fail(e, MO_EINVAL, "the command line is empty");
    *out = v;
    return rc;
}

/* --- what to start -------------------------------------------------------- */

static int configured_words(struct mo_peer *p, const struct mo_config_mcp *s,
                            struct mo_err *e)
{
    const char **v = mo_arena_zalloc(&p->a, (s->args.n + 2) * sizeof(*v));

    if (!v)
        return mo_fail(e, MO_ENOMEM, "arguments");
    v[0] = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        v[i + 1] = s->args.v[i];
    p->child.argv = v;
    return 0;
}

static int configured_env(struct mo_peer *p, const struct mo_config *cfg,
                          const struct mo_config_mcp *s, struct mo_err *e)
{
    size_t n = s ? s->env.n : 0;
    const char **v = mo_arena_zalloc(&p->a, (n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "environment");
    for (size_t i = 0; i < n && rc == 0; i++) {
        struct mo_buf b;

        mo_buf_init(&b, VALUE_MAX);
        mo_buf_printf(&b, "%s=", s->env.v[i].name);
        rc = mo_ref_resolve(cfg, s->env.v[i].value, &b, e);
        if (rc == 0)
            v[i] = mo_arena_strndup(&p->a, b.p, b.len);
        if (rc == 0 && (mo_buf_err(&b) || !v[i]))
            rc = mo_fail(e, MO_ENOMEM, "environment");
        mo_buf_fini(&b);
    }
    if (rc == 0)
        rc = mo_child_env(&p->a, cfg->environ, v, n, &p->child.env, e);
    return rc;
}

static int configured_headers(struct mo_peer *p, const struct mo_config *cfg,
                              const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_http_header *v =
        mo_arena_zalloc(&p->a, (s->headers.n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "headers");
    for (size_t i = 0; i < s->headers.n && rc == 0; i++) {
        struct mo_buf b;

        mo_buf_init(&b, VALUE_MAX);
        rc = mo_ref_resolve(cfg, s->headers.v[i].value, &b, e);
        v[i].name = mo_span_cstr(s->headers.v[i].name);
        v[i].value = mo_span(mo_arena_strndup(&p->a, b.p, b.len), b.len);
        if (rc == 0 && (mo_buf_err(&b) || !v[i].value.p))
            rc = mo_fail(e, MO_ENOMEM, "headers");
        mo_buf_fini(&b);
    }
    p->remote.headers = v;
    p->remote.nheaders = s->headers.n;
    return rc;
}

static int where_to_connect(struct mo_peer *p, const struct mo_peer_opts *o,
                            struct mo_err *e)
{
    const struct mo_config_mcp *s = o->server;

    p->remote.url = s ? s->url : o->url;
    p->old_sse = s && s->transport == MO_TRANSPORT_SSE;
    return s ? configured_headers(p, o->cfg, s, e) : 0;
}

static bool is_remote(const struct mo_peer_opts *o)
{
    return o->server ? o->server->url != NULL : o->url != NULL;
}

static int what_to_start(struct mo_peer *p, const struct mo_peer_opts *o,
                         struct mo_err *e)
{
    const struct mo_config_mcp *s = o->server;
    size_t n;
    int rc;

    if (!s)
        rc = mo_peer_words(&p->a, o->command, &p->child.argv, &n, e);
    else if (!s->command)
        rc = mo_fail(e, MO_EUNAVAIL,
                     "servers in a box cannot be reached from here yet");
    else
        rc = configured_words(p, s, e);
    if (rc == 0)
        rc = configured_env(p, o->cfg, s, e);
    p->child.cwd = s ? s->cwd : NULL;
    return rc;
}

/* --- the connection's news ------------------------------------------------ */

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct mo_peer *p = ctx;
    struct mo_link *k;
    int rc;

    if (!p->http)
        rc = mo_link_child(p->guard, &p->child, &k, e);
    else if (p->old_sse)
        rc = mo_link_sse(p->loop, &p->remote, &k, e);
    else
        rc = mo_link_http(p->loop, &p->remote, &k, e);
    if (rc < 0)
        return mo_wrap(e, "%s", p->http ? p->remote.url : p->child.argv[0]);
    mo_conn_dialed(c, k, NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct mo_peer *p = ctx;

    (void)c;
    p->opened = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_peer *p = ctx;

    p->conn = NULL;
    if (why)
        p->why = *why;
    else
        (void)mo_fail(&p->why, MO_ECLOSED, "closed");
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_open,
    .on_close = on_close,
};

/* --- calls that wait ------------------------------------------------------ */

static bool is_done(void *ctx)
{
    struct mo_peer *p = ctx;

    return p->done;
}

static void server_said_no(struct mo_peer *p, const struct mo_reply *r)
{
    struct mo_buf b;

    mo_buf_init(&b, 200);
    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    p->rc = mo_fail(&p->err, MO_EINVAL, "the server answers error %lld: %s",
                    (long long)r->code, mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

static void keep_answer(struct mo_peer *p, struct mo_json v,
                        const struct mo_reply *r)
{
    p->done = true;
    p->rc = 0;
    mo_buf_reset(&p->answer);
    if (r->err) {
        p->err = *r->err;
        p->rc = p->err.code;
    } else if (!v.p) {
        server_said_no(p, r);
    } else if (mo_buf_span(&p->answer, mo_json_text(v)) < 0) {
        p->rc = mo_fail(&p->err, mo_buf_err(&p->answer), "answer too big");
    }
}

static void on_reply(void *ctx, const struct mo_reply *r)
{
    keep_answer(ctx, r->result, r);
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    keep_answer(ctx, items, r);
}

static int wait_for(struct mo_peer *p, struct mo_json *out, struct mo_err *e)
{
    (void)mo_loop_until(p->loop, is_done, p, FOREVER_MS);
    if (p->rc < 0)
        *e = p->err;
    else
        *out = (struct mo_json){p->answer.p, p->answer.len};
    return p->rc;
}

/* What a modern server reached by HTTP wants to see in the head. */
static struct mo_span name_of(struct mo_peer *p, const char *method,
                              struct mo_span params)
{
    static const struct {
        const char *method, *member;
    } rows[] = {
        {"tools/call", "name"},
        {"prompts/get", "name"},
        {"resources/read", "uri"},
    };
    struct mo_json_doc doc;
    struct mo_span name = {NULL, 0};

    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        if (strcmp(method, rows[i].method) == 0 &&
            mo_json_parse(params, 0, &doc, NULL) == 0)
            (void)mo_json_str(mo_json_get(doc.root, rows[i].member), &p->a,
                              &name);
    }
    return name;
}

int mo_peer_call(struct mo_peer *p, const char *method, struct mo_span params,
                 struct mo_json *out, struct mo_err *e)
{
    struct mo_call_opts o = {
        .name = name_of(p, method, params),
        .idle_ms = p->timeout_ms,
        .hard_ms = p->timeout_ms,
        .done = on_reply,
        .ctx = p,
    };

    p->done = false;
    if (!p->conn)
        return mo_fail(e, MO_ECLOSED, "%s", p->why.msg);
    if (!mo_conn_request(p->conn, method, params, &o, e))
        return e->code;
    return wait_for(p, out, e);
}

int mo_peer_list(struct mo_peer *p, const char *method, const char *key,
                 struct mo_json *out, struct mo_err *e)
{
    struct mo_pages_opts o = {
        .method = method,
        .key = key,
        .page_ms = p->timeout_ms,
        .done = on_list,
        .ctx = p,
    };
    struct mo_pages *list;
    int rc;

    p->done = false;
    if (!p->conn)
        return mo_fail(e, MO_ECLOSED, "%s", p->why.msg);
    rc = mo_pages_start(p->conn, &o, &list, e);
    return rc < 0 ? rc : wait_for(p, out, e);
}

/* --- opening and closing -------------------------------------------------- */

static bool is_settled(void *ctx)
{
    struct mo_peer *p = ctx;

    return p->opened || !p->conn;
}

static bool is_closed(void *ctx)
{
    struct mo_peer *p = ctx;

    return !p->conn;
}

static bool is_gone(void *ctx)
{
    struct mo_peer *p = ctx;

    return p->guard_gone && p->http_gone;
}

static void on_guard_gone(void *ctx)
{
    struct mo_peer *p = ctx;

    p->guard_gone = true;
}

static void on_http_gone(void *ctx)
{
    struct mo_peer *p = ctx;

    p->http_gone = true;
}

void mo_peer_close(struct mo_peer *p)
{
    if (!p)
        return;
    if (p->conn) {
        mo_conn_close(p->conn, NULL);
        (void)mo_loop_until(p->loop, is_closed, p, FOREVER_MS);
    }
    p->guard_gone = !p->guard;
    p->http_gone = !p->http;
    if (p->guard)
        mo_guard_stop(p->guard, on_guard_gone, p);
    if (p->http)
        mo_httpc_close(p->http, on_http_gone, p);
    if (p->loop) {
        (void)mo_loop_until(p->loop, is_gone, p, FOREVER_MS);
        mo_loop_free(p->loop);
    }
    mo_buf_fini(&p->answer);
    mo_arena_fini(&p->a);
    mo_free(p);
}

/* What carries the messages: a child's guardian, or an HTTP client. */
static int carrier(struct mo_peer *p, const struct mo_peer_opts *o,
                   struct mo_err *e)
{
    const struct mo_httpc_opts ho = {.active = 0};
    bool remote = is_remote(o);
    int rc = remote ? where_to_connect(p, o, e) : what_to_start(p, o, e);

    if (rc < 0)
        return rc;
    p->loop = mo_loop_new(NULL, e);
    if (!p->loop)
        return e->code;
    if (remote)
        p->http = mo_httpc_new(p->loop, &ho, e);
    else
        p->guard = mo_guard_new(p->loop, e);
    p->remote.http = p->http;
    return p->http || p->guard ? 0 : e->code;
}

static int connect_to(struct mo_peer *p, const struct mo_peer_opts *o,
                      struct mo_err *e)
{
    struct mo_conn_opts co = {
        .mode = o->mode,
        .open_ms = o->server ? (uint64_t)o->server->start_ms : 0,
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = p,
    };
    int rc = carrier(p, o, e);

    if (rc < 0)
        return rc;
    rc = mo_conn_open(p->loop, &co, &p->conn, e);
    if (rc < 0)
        return rc;
    (void)mo_loop_until(p->loop, is_settled, p, FOREVER_MS);
    if (p->opened)
        return 0;
    *e = p->why;
    return e->code;
}

int mo_peer_open(const struct mo_peer_opts *o, struct mo_peer **out,
                 struct mo_err *e)
{
    struct mo_peer *p = mo_new(struct mo_peer);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "server");
    (void)signal(SIGPIPE, SIG_IGN);
    mo_arena_init(&p->a, ARENA_MAX);
    mo_buf_init(&p->answer, MO_PEER_TEXT_MAX);
    p->timeout_ms = o->timeout_ms;
    if (!p->timeout_ms && o->server)
        p->timeout_ms = (uint64_t)o->server->timeout_ms;
    rc = connect_to(p, o, e);
    if (rc < 0) {
        mo_peer_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

const struct mo_conn_info *mo_peer_info(const struct mo_peer *p)
{
    return mo_conn_info(p->conn);
}

const struct mo_conn_stats *mo_peer_stats(const struct mo_peer *p)
{
    return mo_conn_stats(p->conn);
}

bool mo_peer_can(const struct mo_peer *p, const char *capability)
{
    return p->conn && mo_conn_can(p->conn, capability);
}
