#include "install/registry.h"

#include "codec/http/url.h"
#include "loop/httpc.h"

#define URL_MAX  ((size_t)4096)
#define WAIT_MS  ((uint64_t)24 * 3600 * 1000)
#define OFFICIAL "io.modelcontextprotocol.registry/official"

/* --- one request ---------------------------------------------------------- */

struct ask {
    struct mo_buf *body;
    int status;
    bool done, gone;
    struct mo_err why; /* code 0: it was answered */
};

static void on_head(void *ctx, const struct mo_http_head *h)
{
    ((struct ask *)ctx)->status = h->status;
}

static void on_data(void *ctx, struct mo_span data)
{
    struct ask *k = ctx;

    (void)mo_buf_span(k->body, data);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct ask *k = ctx;

    k->done = true;
    if (why)
        k->why = *why;
}

static void on_gone(void *ctx)
{
    ((struct ask *)ctx)->gone = true;
}

static bool is_set(void *flag)
{
    return *(const bool *)flag;
}

static int send_request(struct mo_loop *l, const char *url, struct ask *k,
                        struct mo_err *e)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_done};
    static const struct mo_http_header accept[] = {
        {MO_SPAN("Accept"), MO_SPAN("application/json")}};
    const struct mo_httpc_opts o = {.active = 1, .waiting = 1, .gzip = true};
    const struct mo_http_call call = {
        .url = url,
        .headers = accept,
        .nheaders = MO_COUNT(accept),
        .total_ms = MO_REGISTRY_MS,
        .max_bytes = MO_REGISTRY_ANSWER_MAX,
    };
    struct mo_httpc *c = mo_httpc_new(l, &o, e);
    struct mo_httpc_x *x;
    int rc;

    if (!c)
        return e->code;
    rc = mo_httpc_start(c, &call, &cb, k, &x, e);
    if (rc == 0)
        (void)mo_loop_until(l, is_set, &k->done, WAIT_MS);
    mo_httpc_close(c, on_gone, k);
    (void)mo_loop_until(l, is_set, &k->gone, WAIT_MS);
    if (rc == 0 && k->why.code) {
        *e = k->why;
        rc = e->code;
    }
    return rc;
}

static int check_status(const struct ask *k, struct mo_err *e)
{
    if (k->status == 404)
        return mo_fail(e, MO_ENOTFOUND, "the registry does not have it");
    if (k->status >= 300 && k->status < 400)
        return mo_fail(e, MO_EPROTO,
                       "it redirects (%d); set registry.url to the address it "
                       "has now",
                       k->status);
    if (k->status >= 500)
        return mo_fail(e, MO_EUNAVAIL, "it answers with status %d", k->status);
    if (k->status != 200)
        return mo_fail(e, MO_EPROTO, "it answers with status %d", k->status);
    return mo_buf_err(k->body)
               ? mo_fail(e, mo_buf_err(k->body), "its answer is too long")
               : 0;
}

/* A failed connection of any kind is MO_EUNAVAIL. */
static int get_json(const char *url, struct mo_buf *body, struct mo_json *root,
                    struct mo_err *e)
{
    struct mo_log log = {.fd = -1};
    struct mo_loop *l = mo_loop_new(&log, e);
    struct ask k = {.body = body};
    struct mo_json_doc doc = {.root = {NULL, 0}};
    int rc;

    if (!l)
        return e->code;
    mo_buf_reset(body);
    rc = send_request(l, url, &k, e);
    mo_loop_free(l);
    mo_log_fini(&log);
    if (rc < 0 && rc != MO_ETOOBIG && rc != MO_ENOMEM)
        rc = e->code = MO_EUNAVAIL;
    if (rc == MO_ETOOBIG)
        rc = mo_fail(e, MO_ETOOBIG, "its answer has more than %zu MiB",
                     MO_REGISTRY_ANSWER_MAX >> 20);
    if (rc == 0)
        rc = check_status(&k, e);
    if (rc == 0 && mo_json_parse(mo_buf_view(body), 64, &doc, e) < 0)
        rc = mo_fail(e, MO_EPROTO, "its answer is not valid JSON");
    if (rc == 0)
        *root = doc.root;
    return rc;
}

/* --- rows ----------------------------------------------------------------- */

static bool has_text(struct mo_json obj, const char *key)
{
    struct mo_json v = mo_json_get(obj, key);

    return mo_json_is(v, MO_JSON_STRING) && v.n > 2;
}

bool mo_registry_is_row(struct mo_json row)
{
    struct mo_json server = mo_json_get(row, "server");

    return has_text(server, "name") && has_text(server, "version");
}

struct mo_json mo_registry_status(struct mo_json row)
{
    struct mo_json meta = mo_json_get(mo_json_get(row, "_meta"), OFFICIAL);

    return mo_json_get(meta, "status");
}

static bool is_known(struct mo_json list, struct mo_json package)
{
    struct mo_json kind = mo_json_get(package, "registryType");

    mo_json_each (it, list) {
        if (it.val.p == package.p)
            return false;
        if (mo_span_eq(mo_json_text(mo_json_get(it.val, "registryType")),
                       mo_json_text(kind)))
            return true;
    }
    return false;
}

void mo_registry_kinds(struct mo_json server,
                       void (*fn)(void *ctx, struct mo_json kind), void *ctx)
{
    static const struct mo_json remote = {"\"remote\"", 8};
    struct mo_json packages = mo_json_get(server, "packages");

    mo_json_each (it, packages) {
        if (has_text(it.val, "registryType") && !is_known(packages, it.val))
            fn(ctx, mo_json_get(it.val, "registryType"));
    }
    if (mo_json_len(mo_json_get(server, "remotes")) > 0)
        fn(ctx, remote);
}

/* --- search --------------------------------------------------------------- */

static bool has_word(struct mo_span text, struct mo_span word)
{
    for (size_t i = 0; i + word.n <= text.n; i++) {
        if (mo_span_ieq(mo_span(text.p + i, word.n), word))
            return true;
    }
    return false;
}

static bool matches(const struct mo_registry_search *s, struct mo_json server)
{
    mo_autobuf struct mo_buf b = {.max = MO_REGISTRY_ANSWER_MAX};
    static const char *const keys[] = {"name", "title", "description"};

    for (size_t i = 0; i < MO_COUNT(keys); i++) {
        struct mo_json v = mo_json_get(server, keys[i]);

        if (mo_json_is(v, MO_JSON_STRING))
            (void)mo_json_str_buf(v, &b);
        (void)mo_buf_putc(&b, '\n');
    }
    for (size_t i = 0; i < s->nwords; i++) {
        if (!has_word(mo_buf_view(&b), s->words[i]))
            return false;
    }
    return true;
}

static struct mo_span longest(const struct mo_registry_search *s)
{
    struct mo_span best = {NULL, 0};

    for (size_t i = 0; i < s->nwords; i++) {
        if (s->words[i].n > best.n)
            best = s->words[i];
    }
    return best;
}

static void put_base(const struct mo_config *cfg, struct mo_buf *url)
{
    struct mo_span base = mo_span_cstr(cfg->registry.url);

    while (base.n && base.p[base.n - 1] == '/')
        base.n--;
    (void)mo_buf_span(url, base);
    (void)mo_buf_puts(url, "/v0.1/servers");
}

/* Takes over the rows of a page; returns true if there is room for more. */
static bool take_rows(struct mo_registry_search *s, struct mo_json root,
                      struct mo_jw *w)
{
    mo_json_each (it, mo_json_get(root, "servers")) {
        struct mo_json server = mo_json_get(it.val, "server");

        if (!mo_registry_is_row(it.val) || !matches(s, server) ||
            mo_json_str_eq(mo_registry_status(it.val), MO_SPAN("deleted")))
            continue;
        if (s->found == s->limit) {
            s->more = true;
            return false;
        }
        s->found++;
        mo_jw_raw(w, mo_json_text(it.val));
    }
    return true;
}

static int read_pages(const struct mo_config *cfg, struct mo_registry_search *s,
                      struct mo_jw *w, struct mo_err *e)
{
    mo_autobuf struct mo_buf url = {.max = URL_MAX};
    mo_autobuf struct mo_buf cursor = {.max = URL_MAX / 4};
    mo_autobuf struct mo_buf body = {.max = MO_REGISTRY_ANSWER_MAX};
    bool room = true;

    for (unsigned page = 0; room; page++) {
        struct mo_json root = {NULL, 0}, next;
        int rc;

        mo_buf_reset(&url);
        put_base(cfg, &url);
        mo_buf_printf(&url,
                      "?version=latest&limit=%d&search=", MO_REGISTRY_PAGE);
        mo_pct_encode(&url, longest(s));
        if (cursor.len) {
            mo_buf_puts(&url, "&cursor=");
            mo_pct_encode(&url, mo_buf_view(&cursor));
        }
        if (mo_buf_err(&url))
            return mo_fail(e, MO_EPROTO, "its cursor is too long");
        rc = get_json(mo_buf_cstr(&url), &body, &root, e);
        if (rc < 0)
            return rc == MO_ENOTFOUND
                       ? mo_fail(e, MO_EPROTO, "no registry is at that address")
                       : rc;
        if (!mo_json_is(mo_json_get(root, "servers"), MO_JSON_ARRAY))
            return mo_fail(e, MO_EPROTO, "its answer has no list of servers");
        room = take_rows(s, root, w);
        next = mo_json_get(mo_json_get(root, "metadata"), "nextCursor");
        mo_buf_reset(&cursor);
        if (!mo_json_is(next, MO_JSON_STRING) || next.n <= 2)
            return 0;
        if (page + 1 == MO_REGISTRY_PAGES_MAX) {
            s->more = true;
            return 0;
        }
        (void)mo_json_str_buf(next, &cursor);
        if (mo_buf_err(&cursor))
            return mo_fail(e, MO_EPROTO, "its cursor is too long");
    }
    return 0;
}

int mo_registry_find(const struct mo_config *cfg, struct mo_registry_search *s,
                     struct mo_buf *out, struct mo_err *e)
{
    struct mo_jw w = mo_jw_array(out);
    int rc;

    s->found = 0;
    s->more = false;
    if (s->limit > MO_REGISTRY_ROWS_MAX)
        s->limit = MO_REGISTRY_ROWS_MAX;
    rc = read_pages(cfg, s, &w, e);
    mo_jw_end_all(&w);
    if (rc == 0 && mo_buf_err(out))
        rc = mo_fail(e, mo_buf_err(out), "its answer is too long");
    return rc < 0 ? mo_wrap(e, "the registry %s", cfg->registry.url) : 0;
}

int mo_registry_get(const struct mo_config *cfg, struct mo_span name,
                    struct mo_span version, struct mo_buf *out,
                    struct mo_err *e)
{
    mo_autobuf struct mo_buf url = {.max = URL_MAX};
    mo_autobuf struct mo_buf body = {.max = MO_REGISTRY_ANSWER_MAX};
    struct mo_json root = {NULL, 0};
    int rc;

    put_base(cfg, &url);
    mo_buf_putc(&url, '/');
    mo_pct_encode(&url, name);
    mo_buf_puts(&url, "/versions/");
    mo_pct_encode(&url, version.n ? version : MO_SPAN("latest"));
    if (mo_buf_err(&url))
        return mo_fail(e, MO_EINVAL, "the name is too long");
    rc = get_json(mo_buf_cstr(&url), &body, &root, e);
    if (rc == 0 && !mo_registry_is_row(root))
        rc = mo_fail(e, MO_EPROTO, "its answer is no server");
    if (rc == 0 &&
        !mo_json_str_eq(mo_json_get(mo_json_get(root, "server"), "name"), name))
        rc = mo_fail(e, MO_EPROTO, "it answers with another server");
    if (rc == 0)
        rc = mo_buf_span(out, mo_json_text(root));
    return rc < 0 ? mo_wrap(e, "the registry %s", cfg->registry.url) : 0;
}
