#include "connect/sync_client.h"
#include "connect/boxed_link.h"

#include <signal.h>

#include "connect/resolved_server.h"
#include "mcp/client/pages.h"
#include "mcp/link/link_sse.h"

#define ARENA_MAX    ((size_t)4 * 1024 * 1024)
#define FOREVER_MS   ((uint64_t)24 * 3600 * 1000)
#define SIGN_INS_MAX 4 /* per request */

struct mo_sync_client {
    struct mo_arena a;
    struct mo_loop *loop;
    struct mo_guard *guard;
    struct mo_boxed_link *boxed; /* makes the box; NULL: not in a box */
    const struct mo_config *cfg;
    const struct mo_config_mcp *server;
    struct mo_httpc *http;      /* used instead for a server with an address */
    struct mo_sign_in *sign_in; /* NULL: no sign-in possible */
    struct mo_conn *conn;       /* NULL: closed */
    struct mo_resolved_server to;
    uint64_t timeout_ms;
    bool *sign_in_needed; /* owned by the caller, or NULL */
    bool opened, guard_gone, http_gone, boxed_gone;
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
    struct mo_link *k;
    int rc;

    if (p->boxed)
        return mo_boxed_link_dial(p->boxed, p->cfg, p->server, c, e);
    if (!p->http)
        rc = mo_link_child(p->guard, &p->to.child, &k, e);
    else if (p->to.old_sse)
        rc = mo_link_sse(p->loop, &p->to.remote, &k, e);
    else
        rc = mo_link_http(p->loop, &p->to.remote, &k, e);
    if (rc < 0)
        return mo_wrap(e, "%s",
                       p->http ? p->to.remote.url : p->to.child.argv[0]);
    mo_conn_dialed(c, k, NULL);
    return 0;
}

static void on_open(void *ctx, struct mo_conn *c)
{
    struct mo_sync_client *p = ctx;

    (void)c;
    p->opened = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct mo_sync_client *p = ctx;

    p->conn = NULL;
    if (why)
        p->why = *why;
    else
        (void)mo_fail(&p->why, MO_ECLOSED, "closed");
    mo_resolved_server_scrub(&p->to, &p->why);
}

static const struct mo_conn_cb conn_cb = {
    .on_open = on_open,
    .on_close = on_close,
};

/* --- blocking calls ------------------------------------------------------- */

static bool is_done(void *ctx)
{
    struct mo_sync_client *p = ctx;

    return p->done;
}

static void server_said_no(struct mo_sync_client *p, const struct mo_reply *r)
{
    mo_autobuf struct mo_buf b = {.max = 200};

    (void)mo_json_str_buf(mo_json_get(r->error, "message"), &b);
    p->rc = mo_fail(&p->err, MO_EINVAL, "the server returned error %lld: %s",
                    (long long)r->code, mo_buf_cstr(&b));
}

/* Copies the answer. The answer of a failed tool is redacted: it may contain
 * secrets of its server. */
static int copy_answer(struct mo_sync_client *p, struct mo_json v)
{
    struct mo_span text = mo_json_text(v);
    mo_autobuf struct mo_buf clean = {.max = 2 * MO_SYNC_CLIENT_TEXT_MAX};
    bool failed = false;
    int rc = 0;

    (void)mo_json_bool(mo_json_get(v, "isError"), &failed);
    if (failed)
        rc = mo_resolved_server_redact(&p->to, &text, &clean);
    if (rc == 0)
        rc = mo_buf_span(&p->answer, text);
    return rc;
}

static void keep_answer(struct mo_sync_client *p, struct mo_json v,
                        const struct mo_reply *r)
{
    int rc;

    p->done = true;
    p->rc = 0;
    p->code = r->code;
    p->status = r->status;
    mo_buf_reset(&p->answer);
    if (r->err) {
        p->err = *r->err;
        p->rc = p->err.code;
    } else if (!v.p) {
        server_said_no(p, r);
    } else {
        rc = copy_answer(p, v);
        p->rc = rc < 0 ? mo_fail(&p->err, rc, "answer too big") : 0;
    }
    mo_resolved_server_scrub(&p->to, &p->err);
}

static void on_reply(void *ctx, const struct mo_reply *r)
{
    keep_answer(ctx, r->result, r);
}

static void on_list(void *ctx, struct mo_json items, const struct mo_reply *r)
{
    keep_answer(ctx, items, r);
}

static int wait_for(struct mo_sync_client *p, struct mo_json *out,
                    struct mo_err *e)
{
    (void)mo_loop_until(p->loop, is_done, p, FOREVER_MS);
    if (p->rc < 0)
        *e = p->err;
    else
        *out = (struct mo_json){p->answer.p, p->answer.len};
    return p->rc;
}

/* The name or uri that a modern server expects in the HTTP header. */
static struct mo_span name_of(struct mo_sync_client *p, const char *method,
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

/* True if the server refused the request. After any other failure the call may
 * have run. */
static bool is_refused(const struct mo_sync_client *p, int rc)
{
    return rc == MO_EPOLICY ||
           (rc < 0 && (p->status == 401 || p->status == 403));
}

/* True if a failed request should be repeated because a person signed in. */
static bool is_signed_in(struct mo_sync_client *p, unsigned *tries,
                         struct mo_err *e)
{
    int rc;

    if (!p->sign_in || ++*tries > SIGN_INS_MAX)
        return false;
    rc = mo_sign_in_wait(p->sign_in, e);
    if (p->sign_in_needed)
        *p->sign_in_needed = mo_sign_in_state(p->sign_in) == MO_SIGN_IN_NEEDED;
    return rc == 0;
}

static int send_request(struct mo_sync_client *p, const char *method,
                        struct mo_span params, const struct mo_call_opts *o,
                        struct mo_err *e)
{
    p->done = false;
    p->code = 0;
    p->status = 0;
    if (!p->conn)
        return mo_fail(e, MO_ECLOSED, "%s", p->why.msg);
    return mo_conn_request(p->conn, method, params, o, e) ? 0 : e->code;
}

int mo_sync_client_call_with(struct mo_sync_client *p, const char *method,
                             struct mo_span params, const struct mo_mirror *m,
                             struct mo_json *out, struct mo_err *e)
{
    struct mo_call_opts o = {
        .name = name_of(p, method, params),
        .params = m ? m->v : NULL,
        .nparams = m ? m->n : 0,
        .idle_ms = p->timeout_ms,
        .hard_ms = p->timeout_ms,
        .done = on_reply,
        .ctx = p,
    };
    unsigned tries = 0;
    int rc;

    do {
        rc = send_request(p, method, params, &o, e);
        if (rc == 0)
            rc = wait_for(p, out, e);
    } while (is_refused(p, rc) && is_signed_in(p, &tries, e));
    return rc;
}

int mo_sync_client_call(struct mo_sync_client *p, const char *method,
                        struct mo_span params, struct mo_json *out,
                        struct mo_err *e)
{
    return mo_sync_client_call_with(p, method, params, NULL, out, e);
}

int mo_sync_client_list(struct mo_sync_client *p, const char *method,
                        const char *key, struct mo_json *out, struct mo_err *e)
{
    struct mo_pages_opts o = {
        .method = method,
        .key = key,
        .page_ms = p->timeout_ms,
        .done = on_list,
        .ctx = p,
    };
    struct mo_pages *list;
    unsigned tries = 0;
    int rc;

    do {
        p->done = false;
        p->code = 0;
        p->status = 0;
        if (!p->conn)
            return mo_fail(e, MO_ECLOSED, "%s", p->why.msg);
        rc = mo_pages_start(p->conn, &o, &list, e);
        if (rc == 0)
            rc = wait_for(p, out, e);
    } while (is_refused(p, rc) && is_signed_in(p, &tries, e));
    return rc;
}

int64_t mo_sync_client_code(const struct mo_sync_client *p)
{
    return p->code;
}

/* --- opening and closing ------------------------------------------------- */

static bool is_settled(void *ctx)
{
    struct mo_sync_client *p = ctx;

    return p->opened || !p->conn;
}

static bool is_closed(void *ctx)
{
    struct mo_sync_client *p = ctx;

    return !p->conn;
}

static bool is_gone(void *ctx)
{
    struct mo_sync_client *p = ctx;

    return p->guard_gone && p->http_gone && p->boxed_gone;
}

static void on_guard_gone(void *ctx)
{
    struct mo_sync_client *p = ctx;

    p->guard_gone = true;
}

static void on_http_gone(void *ctx)
{
    struct mo_sync_client *p = ctx;

    p->http_gone = true;
}

static void on_boxed_gone(void *ctx)
{
    struct mo_sync_client *p = ctx;

    p->boxed_gone = true;
}

void mo_sync_client_close(struct mo_sync_client *p)
{
    if (!p)
        return;
    if (p->conn) {
        mo_conn_close(p->conn, NULL);
        (void)mo_loop_until(p->loop, is_closed, p, FOREVER_MS);
    }
    mo_sign_in_close(p->sign_in);
    p->guard_gone = !p->guard;
    p->http_gone = !p->http;
    p->boxed_gone = !p->boxed;
    if (p->boxed)
        mo_boxed_link_close(p->boxed, on_boxed_gone, p);
    if (p->guard)
        mo_guard_stop(p->guard, on_guard_gone, p);
    if (p->http)
        mo_httpc_close(p->http, on_http_gone, p);
    if (p->loop) {
        (void)mo_loop_until(p->loop, is_gone, p, FOREVER_MS);
        mo_loop_free(p->loop);
    }
    mo_buf_fini(&p->answer);
    mo_resolved_server_wipe(&p->to);
    mo_arena_fini(&p->a);
    mo_free(p);
}

static int open_sign_in(struct mo_sync_client *p,
                        const struct mo_sync_client_opts *o, struct mo_err *e)
{
    struct mo_sign_in_opts so = {
        .loop = p->loop,
        .http = p->http,
        .cfg = o->cfg,
        .server = o->server,
        .url = p->to.remote.url,
        .ask = o->may_ask,
        .err = o->err,
    };
    int rc;

    if (p->to.old_sse || !mo_sign_in_wanted(o->server))
        return 0;
    rc = mo_sign_in_new(&so, &p->sign_in, e);
    if (rc == 0)
        p->to.remote.auth = mo_sign_in_auth(p->sign_in);
    return rc;
}

/* Opens the transport: the guardian of a child, an HTTP client, or a box. */
static int open_transport(struct mo_sync_client *p,
                          const struct mo_sync_client_opts *o, struct mo_err *e)
{
    const struct mo_httpc_opts ho = {.active = 0};
    bool boxed = o->server && mo_boxed_link_is(o->server);
    int rc = boxed ? 0 : mo_resolved_server_init(&p->to, &p->a, o, e);

    if (rc < 0)
        return rc;
    p->loop = mo_loop_new(NULL, e);
    if (!p->loop)
        return e->code;
    p->cfg = o->cfg;
    p->server = o->server;
    if (boxed)
        return mo_boxed_link_new(p->loop, NULL, &p->boxed, e);
    if (p->to.is_remote)
        p->http = mo_httpc_new(p->loop, &ho, e);
    else
        p->guard = mo_guard_new(p->loop, e);
    if (!p->http && !p->guard)
        return e->code;
    p->to.remote.http = p->http;
    return p->http ? open_sign_in(p, o, e) : 0;
}

static int open_once(struct mo_sync_client *p, struct mo_conn_opts *co,
                     struct mo_err *e)
{
    unsigned tries = 0;
    int rc;

    do {
        rc = mo_conn_open(p->loop, co, &p->conn, e);
        if (rc < 0)
            return rc;
        (void)mo_loop_until(p->loop, is_settled, p, FOREVER_MS);
        if (p->opened)
            return 0;
        *e = p->why;
    } while (is_signed_in(p, &tries, e));
    return e->code;
}

/* Opens with the remembered era; if that fails, without it. */
static int open_with_known_era(struct mo_sync_client *p,
                               struct mo_conn_opts *co, const char *dir,
                               struct mo_err *e)
{
    static const struct mo_conn_verdict unknown = {.era = MO_ERA_UNKNOWN};
    int rc;

    co->known = mo_era_cache_get(dir, &p->to.key);
    rc = open_once(p, co, e);
    if (rc < 0 && co->known.era == MO_ERA_LEGACY && rc != MO_EPOLICY) {
        mo_era_cache_put(dir, &p->to.key, unknown);
        if (rc == MO_ETIMEOUT) /* a timeout would only repeat itself */
            return rc;
        co->known = unknown;
        rc = open_once(p, co, e);
    }
    return rc;
}

static void remember_era(const struct mo_sync_client *p,
                         const struct mo_conn_opts *co, const char *dir)
{
    struct mo_conn_verdict now = mo_conn_info(p->conn)->verdict;

    if (now.era != co->known.era || now.at_ms != co->known.at_ms)
        mo_era_cache_put(dir, &p->to.key, now);
}

static int connect_server(struct mo_sync_client *p,
                          const struct mo_sync_client_opts *o, struct mo_err *e)
{
    struct mo_conn_opts co = {
        .mode = o->mode,
        .open_ms = o->server ? (uint64_t)o->server->start_ms : 0,
        .dial = on_dial,
        .cb = &conn_cb,
        .ctx = p,
    };
    bool any = o->mode == MO_CONN_AUTO;
    int rc = open_transport(p, o, e);

    if (rc < 0)
        return rc;
    any = any && !p->boxed; /* a box is new each time: no era to remember */
    rc = any ? open_with_known_era(p, &co, o->cfg->store.dir, e)
             : open_once(p, &co, e);
    if (rc == 0 && any)
        remember_era(p, &co, o->cfg->store.dir);
    return rc;
}

int mo_sync_client_open(const struct mo_sync_client_opts *o,
                        struct mo_sync_client **out, struct mo_err *e)
{
    struct mo_sync_client *p = mo_new(struct mo_sync_client);
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOMEM, "server");
    (void)signal(SIGPIPE, SIG_IGN);
    mo_arena_init(&p->a, ARENA_MAX);
    mo_buf_init(&p->answer, MO_SYNC_CLIENT_TEXT_MAX);
    p->timeout_ms = o->timeout_ms;
    p->sign_in_needed = o->sign_in_needed;
    if (!p->timeout_ms && o->server)
        p->timeout_ms = (uint64_t)o->server->timeout_ms;
    rc = connect_server(p, o, e);
    if (rc < 0) {
        mo_resolved_server_scrub(&p->to, e);
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

const struct mo_sign_in *mo_sync_client_sign_in(const struct mo_sync_client *p)
{
    return p->sign_in;
}

bool mo_sync_client_is_http(const struct mo_sync_client *p)
{
    return p->http != NULL;
}
