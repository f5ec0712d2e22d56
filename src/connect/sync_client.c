#include "connect/sync_client.h"

#include "connect/server_link.h"
#include "mcp/client/pages.h"
#include "secrets/redact.h"

#define ARENA_MAX       ((size_t)4 * 1024 * 1024)
#define PARAMS_MAX      MO_CONN_TEXT_MAX
#define WORD_BYTES_MAX  ((size_t)128 * 1024) /* of a command line */
#define FOREVER_MS      ((uint64_t)24 * 3600 * 1000)
#define SIGN_INS_MAX    4   /* per request */
#define SIGN_IN_SECONDS 300 /* for a server that is not configured */

struct mo_sync_client {
    struct mo_arena a; /* texts of `given` */
    struct mo_log log; /* writes nothing; knows the secrets of the server */
    struct mo_loop *loop;
    struct mo_server_link *link;
    const struct mo_config_mcp *server;
    struct mo_config_mcp given; /* server, if it is not configured */
    struct mo_conn *conn;       /* NULL: closed */
    uint64_t timeout_ms;
    bool *sign_in_needed;         /* owned by the caller, or NULL */
    bool opened, closed, settled; /* settled: opened or closed */
    bool not_dialed, link_gone;
    struct mo_err why; /* how the connection ended */
    /* the current call */
    bool done;
    int rc;
    int64_t code; /* code of the server's error, or 0 */
    int status;   /* HTTP status, when the call failed */
    struct mo_err err;
    struct mo_buf answer;
};

/* --- callbacks of the connection ------------------------------------------ */

static int on_dial(void *ctx, struct mo_conn *c, struct mo_err *e)
{
    struct mo_sync_client *p = ctx;
    int rc =
        mo_server_link_server(p->link, p->server->name, mo_span(NULL, 0), c, e);

    p->not_dialed = rc < 0;
    return rc;
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct mo_sync_client *p = ctx;

    (void)c;
    p->opened = p->settled = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_sync_client *p = ctx;

    p->conn = NULL;
    p->closed = p->settled = true;
    p->why = why ? *why : *mo_error(MO_ECLOSED, "closed");
    mo_loop_blank(p->loop, &p->why);
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_open,
    .on_close = on_close,
};

/* --- blocking calls ------------------------------------------------------- */

/* For mo_loop_until(): waits for one of the flags. */
static bool is_set(void *flag)
{
    return *(const bool *)flag;
}

static void server_said_no(struct mo_sync_client *p, const struct mo_reply *r)
{
    mo_autobuf struct mo_buf b = {.max = 200};

    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    p->rc = mo_fail(&p->err, MO_EINVAL, "the server returned error %lld: %s",
                    (long long)r->code, mo_buf_cstr(&b));
}

/* Copies the answer: v, which is a part of the reply. */
static void keep_answer(struct mo_sync_client *p, struct mo_json v,
                        const struct mo_reply *r)
{
    p->done = true;
    p->rc = 0;
    p->code = r->code;
    p->status = r->status;
    mo_buf_reset(&p->answer);
    if (r->err) {
        p->err = *r->err;
        p->rc = p->err.code;
    } else if (!v.p && !r->result.p) {
        server_said_no(p, r);
    } else if (!v.p || mo_buf_span(&p->answer, mo_json_text(v)) < 0) {
        p->rc = mo_fail(&p->err, v.p ? mo_buf_err(&p->answer) : MO_ENOMEM,
                        "answer too big");
    }
    mo_loop_blank(p->loop, &p->err);
}

/* The answer of a failed tool may contain secrets of its server. */
static void on_reply(void *ctx, const struct mo_reply *r)
{
    struct mo_sync_client *p = ctx;
    mo_autobuf struct mo_buf clean = {.max = 2 * MO_SYNC_CLIENT_TEXT_MAX};
    bool any = r->result.p != NULL;

    keep_answer(p, any ? mo_redact_reply(p->loop, r, &clean) : r->result, r);
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    keep_answer(ctx, items, r);
}

static int wait_for(struct mo_sync_client *p, struct mo_json *out,
                    struct mo_err *e)
{
    (void)mo_loop_until(p->loop, is_set, &p->done, FOREVER_MS);
    if (p->rc < 0)
        *e = p->err;
    else
        *out = (struct mo_json){p->answer.p, p->answer.len};
    return p->rc;
}

/* True if the server refused the request. After any other failure the call may
 * have run. */
static bool is_refused(const struct mo_sync_client *p, int rc)
{
    return rc == MO_EPOLICY ||
           (rc < 0 && (p->status == 401 || p->status == 403));
}

const struct mo_sign_in *mo_sync_client_sign_in(const struct mo_sync_client *p)
{
    return mo_server_link_sign_in(p->link, p->server);
}

/* True if a failed request should be repeated because a person signed in. */
static bool is_signed_in(struct mo_sync_client *p, unsigned *tries,
                         struct mo_err *e)
{
    struct mo_sign_in *s = mo_server_link_sign_in(p->link, p->server);
    int rc;

    if (!s || ++*tries > SIGN_INS_MAX)
        return false;
    rc = mo_sign_in_wait(s, e);
    if (p->sign_in_needed)
        *p->sign_in_needed = mo_sign_in_state(s) == MO_SIGN_IN_NEEDED;
    return rc == 0;
}

/* Sends a request, or reads a list if o is NULL, and waits for the answer. */
static int run_request(struct mo_sync_client *p, const char *method,
                       struct mo_span params, const struct mo_call_opts *o,
                       const struct mo_pages_opts *list, struct mo_json *out,
                       struct mo_err *e)
{
    struct mo_pages *pages;
    unsigned tries = 0;
    int rc;

    do {
        p->done = false;
        p->code = 0;
        p->status = 0;
        if (!p->conn)
            return mo_fail(e, MO_ECLOSED, "%s", p->why.msg);
        if (list)
            rc = mo_pages_start(p->conn, list, &pages, e);
        else
            rc = mo_conn_request(p->conn, method, params, o, e) ? 0 : e->code;
        if (rc == 0)
            rc = wait_for(p, out, e);
    } while (is_refused(p, rc) && is_signed_in(p, &tries, e));
    return rc;
}

/* m: Mcp-Param-* headers, or NULL. name: of the tool, or empty. */
static int call_with(struct mo_sync_client *p, const char *method,
                     struct mo_span name, struct mo_span params,
                     const struct mo_mirror *m, struct mo_json *out,
                     struct mo_err *e)
{
    const struct mo_call_opts o = {
        .name = name,
        .params = m ? m->v : NULL,
        .nparams = m ? m->n : 0,
        .idle_ms = p->timeout_ms,
        .hard_ms = p->timeout_ms,
        .done = on_reply,
        .ctx = p,
    };

    return run_request(p, method, params, &o, NULL, out, e);
}

int mo_sync_client_call(struct mo_sync_client *p, const char *method,
                        struct mo_span params, struct mo_json *out,
                        struct mo_err *e)
{
    return call_with(p, method, mo_span(NULL, 0), params, NULL, out, e);
}

int mo_sync_client_list(struct mo_sync_client *p, const char *method,
                        const char *key, struct mo_json *out, struct mo_err *e)
{
    const struct mo_pages_opts o = {
        .method = method,
        .key = key,
        .page_ms = p->timeout_ms,
        .done = on_list,
        .ctx = p,
    };

    return run_request(p, method, mo_span(NULL, 0), NULL, &o, out, e);
}

/* --- tools ---------------------------------------------------------------- */

static struct mo_json find_tool(struct mo_json tools, const char *name)
{
    mo_json_each (at, tools) {
        if (mo_json_str_eq(mo_json_get(at.val, "name"), mo_span_cstr(name)))
            return at.val;
    }
    return (struct mo_json){NULL, 0};
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
    mo_autobuf struct mo_buf b = {.max = PARAMS_MAX};
    int rc = build_mirror(p, tool, args, &m, e);

    if (rc == 0 && put_params(&b, tool, args) < 0)
        rc = mo_fail(e, mo_buf_err(&b), "the arguments are too long");
    if (rc == 0)
        rc = call_with(p, "tools/call", mo_span_cstr(tool), mo_buf_view(&b), &m,
                       out, e);
    mo_mirror_fini(&m);
    return rc;
}

int mo_sync_client_tool(struct mo_sync_client *p, const char *tool,
                        struct mo_span args, struct mo_json *out,
                        struct mo_err *e)
{
    int rc = call_once(p, tool, args, out, e);

    if (rc < 0 && p->code == MO_MCP_HEADER_MISMATCH)
        rc = call_once(p, tool, args, out, e);
    return rc;
}

/* --- command lines -------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* Appends one word from *s to b. Quotes group words. Outside of single quotes a
 * backslash makes the next byte literal. False: a quote is not closed. */
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

int mo_sync_client_words(struct mo_arena *a, const char *line,
                         const char ***out, size_t *n, struct mo_err *e)
{
    const char **v =
        mo_arena_zalloc(a, (MO_SYNC_CLIENT_WORDS_MAX + 1) * sizeof(*v));
    mo_autobuf struct mo_buf b = {.max = WORD_BYTES_MAX};
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "command line");
    for (*n = 0; rc == 0; (*n)++) {
        while (is_blank(*line))
            line++;
        if (!*line)
            break;
        mo_buf_reset(&b);
        if (!take_word(&line, &b))
            rc = mo_fail(e, MO_EINVAL, "a quote is not closed");
        else if (mo_buf_err(&b) || *n >= MO_SYNC_CLIENT_WORDS_MAX)
            rc = mo_fail(e, MO_ETOOBIG, "the command line is too long");
        if (rc < 0)
            break;
        v[*n] = mo_arena_strndup(a, b.p ? b.p : "", b.len);
        if (!v[*n])
            rc = mo_fail(e, MO_ENOMEM, "command line");
    }
    if (rc == 0 && *n == 0)
        rc = mo_fail(e, MO_EINVAL, "the command line is empty");
    *out = v;
    return rc;
}

/* --- opening and closing ------------------------------------------------- */

static void on_link_gone(void *ctx)
{
    ((struct mo_sync_client *)ctx)->link_gone = true;
}

void mo_sync_client_close(struct mo_sync_client *p)
{
    if (!p)
        return;
    if (p->conn) {
        mo_conn_close(p->conn, NULL);
        (void)mo_loop_until(p->loop, is_set, &p->closed, FOREVER_MS);
    }
    if (p->link) {
        mo_server_link_close(p->link, on_link_gone, p);
        (void)mo_loop_until(p->loop, is_set, &p->link_gone, FOREVER_MS);
    }
    if (p->loop)
        mo_loop_free(p->loop);
    mo_buf_fini(&p->answer);
    mo_log_fini(&p->log);
    mo_arena_fini(&p->a);
    mo_free(p);
}

/* Describes a server that is given by a command line or an address. */
static int describe_given(struct mo_sync_client *p,
                          const struct mo_sync_client_opts *o, struct mo_err *e)
{
    const char **words = NULL;
    size_t n = 0;

    p->given = (struct mo_config_mcp){
        .name = o->url ? o->url : o->command,
        .url = o->url,
        .oauth = {.enabled = true, .sign_in_seconds = SIGN_IN_SECONDS},
    };
    if (o->url)
        return 0;
    if (mo_sync_client_words(&p->a, o->command, &words, &n, e) < 0)
        return e->code;
    MO_BUG_ON(!words || n == 0);
    p->given.command = words[0];
    p->given.args = (struct mo_config_list){words + 1, n - 1};
    return 0;
}

static int open_link(struct mo_sync_client *p,
                     const struct mo_sync_client_opts *o, struct mo_err *e)
{
    int rc = o->server ? 0 : describe_given(p, o, e);

    if (rc < 0)
        return rc;
    p->loop = mo_loop_new(&p->log, e);
    if (!p->loop)
        return e->code;
    rc = mo_server_link_new(p->loop, o->cfg, &p->link, e);
    if (rc == 0)
        mo_server_link_command(p->link, o->server ? NULL : &p->given,
                               o->may_ask, o->err);
    return rc;
}

static int open_once(struct mo_sync_client *p, struct mo_conn_opts *co,
                     struct mo_err *e)
{
    unsigned tries = 0;
    int rc;

    do {
        p->closed = p->settled = false;
        rc = mo_conn_open(p->loop, co, &p->conn, e);
        if (rc < 0)
            return rc;
        (void)mo_loop_until(p->loop, is_set, &p->settled, FOREVER_MS);
        if (p->opened)
            return 0;
        *e = p->why;
    } while (is_signed_in(p, &tries, e));
    return e->code;
}

/* Opens with the remembered era; if that fails, without it. */
static int open_with_known_era(struct mo_sync_client *p,
                               struct mo_conn_opts *co, struct mo_err *e)
{
    static const struct mo_conn_verdict unknown = {.era = MO_ERA_UNKNOWN};
    const char *name = p->server->name;
    struct mo_conn_verdict now;
    int rc;

    co->known = mo_server_link_verdict(p->link, name);
    rc = open_once(p, co, e);
    if (rc < 0 && co->known.era == MO_ERA_LEGACY && rc != MO_EPOLICY &&
        !p->not_dialed) {
        mo_server_link_learnt(p->link, name, unknown);
        if (rc == MO_ETIMEOUT) /* a timeout would only repeat itself */
            return rc;
        co->known = unknown;
        rc = open_once(p, co, e);
    }
    if (rc < 0)
        return rc;
    now = mo_conn_info(p->conn)->verdict;
    if (now.era != co->known.era || now.at_ms != co->known.at_ms)
        mo_server_link_learnt(p->link, name, now);
    return 0;
}

static int connect_server(struct mo_sync_client *p,
                          const struct mo_sync_client_opts *o, struct mo_err *e)
{
    struct mo_conn_opts co = {
        .mode =
            o->mode == MO_CONN_AUTO ? mo_server_link_mode(p->server) : o->mode,
        .open_ms = (uint64_t)p->server->start_ms,
        .install_ms = (uint64_t)p->server->install_ms,
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = p,
    };
    int rc = open_link(p, o, e);

    if (rc < 0)
        return rc;
    return co.mode == MO_CONN_AUTO ? open_with_known_era(p, &co, e)
                                   : open_once(p, &co, e);
}

int mo_sync_client_open(const struct mo_sync_client_opts *o,
                        struct mo_sync_client **out, struct mo_err *e)
{
    struct mo_sync_client *p = mo_new(struct mo_sync_client);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "server");
    mo_arena_init(&p->a, ARENA_MAX);
    mo_log_init(&p->log, -1);
    mo_buf_init(&p->answer, MO_SYNC_CLIENT_TEXT_MAX);
    p->server = o->server ? o->server : &p->given;
    p->timeout_ms = o->timeout_ms;
    p->sign_in_needed = o->sign_in_needed;
    if (!p->timeout_ms)
        p->timeout_ms = (uint64_t)p->server->timeout_ms;
    rc = connect_server(p, o, e);
    if (rc < 0) {
        if (p->loop)
            mo_loop_blank(p->loop, e);
        mo_sync_client_close(p);
        return rc;
    }
    *out = p;
    return 0;
}

const struct mo_conn_info *mo_sync_client_info(const struct mo_sync_client *p)
{
    return mo_conn_info(p->conn);
}

const struct mo_conn_stats *mo_sync_client_stats(const struct mo_sync_client *p)
{
    return mo_conn_stats(p->conn);
}

bool mo_sync_client_can(const struct mo_sync_client *p, const char *capability)
{
    return p->conn && mo_conn_can(p->conn, capability);
}

bool mo_sync_client_is_http(const struct mo_sync_client *p)
{
    return p->server->url != NULL;
}
