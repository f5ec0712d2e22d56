#include "connect/resolved_server.h"

#include "config/reference.h"
#include "secrets/resolve.h"

#define VALUE_MAX ((size_t)128 * 1024) /* bytes of one environment variable */
#define KEY_ARENA ((size_t)1024 * 1024)

/* --- commands, environment, headers, addresses ---------------------------- */

int mo_resolved_server_words(struct mo_resolved_server *t,
                             const struct mo_config_mcp *s, struct mo_err *e)
{
    const char **v = mo_arena_zalloc(t->a, (s->args.n + 2) * sizeof(*v));
    size_t n = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "arguments");
    if (s->command)
        v[n++] = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        v[n++] = s->args.v[i];
    t->child.argv = v;
    return 0;
}

/* A text that contains a secret. */
struct mo_resolved_server_text {
    struct mo_resolved_server_text *next;
    char *p;
    size_t n;
    bool value; /* the value of a reference, nothing else */
};

static int note_secret(struct mo_resolved_server *t, char *p, size_t n,
                       bool value)
{
    struct mo_resolved_server_text *text =
        mo_arena_new(t->a, struct mo_resolved_server_text);

    if (!text)
        return MO_ENOMEM;
    *text = (struct mo_resolved_server_text){t->secrets, p, n, value};
    t->secrets = text;
    return 0;
}

static void on_value(void *ctx, struct mo_span value)
{
    struct mo_resolved_server *t = ctx;
    char *copy = mo_arena_strndup(t->a, value.p, value.n);

    t->no_memory |= !copy || note_secret(t, copy, value.n, true) < 0;
}

/* Returns "name=" and the text with references resolved, in the arena. */
static int resolve_text(struct mo_resolved_server *t,
                        const struct mo_config *cfg, const char *name,
                        const char *text, char **out, struct mo_err *e)
{
    bool secret = mo_reference_any(mo_span_cstr(text));
    mo_autowipe struct mo_buf b = {.max = VALUE_MAX};
    int rc;

    if (secret)
        (void)mo_buf_room(&b, VALUE_MAX); /* growing would leave copies */
    if (name)
        mo_buf_printf(&b, "%s=", name);
    rc = mo_reference_resolve_told(cfg, text, &b, on_value, t, e);
    *out = rc == 0 ? mo_arena_strndup(t->a, b.len ? b.p : "", b.len) : NULL;
    if (rc == 0 && (mo_buf_err(&b) || !*out || t->no_memory ||
                    (secret && note_secret(t, *out, b.len, false) < 0)))
        rc = mo_fail(e, MO_ENOMEM, "a server's texts");
    return rc;
}

int mo_resolved_server_env(struct mo_resolved_server *t,
                           const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           const char *const **out, struct mo_err *e)
{
    const char **v = mo_arena_zalloc(t->a, (s->env.n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "environment");
    for (size_t i = 0; i < s->env.n && rc == 0; i++) {
        char *text = NULL;

        rc =
            resolve_text(t, cfg, s->env.v[i].name, s->env.v[i].value, &text, e);
        v[i] = text;
    }
    *out = v;
    return rc;
}

static int configured_headers(struct mo_resolved_server *t,
                              const struct mo_config *cfg,
                              const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_http_header *v =
        mo_arena_zalloc(t->a, (s->headers.n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "headers");
    for (size_t i = 0; i < s->headers.n && rc == 0; i++) {
        char *text = NULL;

        rc = resolve_text(t, cfg, NULL, s->headers.v[i].value, &text, e);
        v[i].name = mo_span_cstr(s->headers.v[i].name);
        v[i].value = mo_span_cstr(text);
    }
    t->remote.headers = v;
    t->remote.nheaders = s->headers.n;
    return rc;
}

static int resolve_url(struct mo_resolved_server *t,
                       const struct mo_config *cfg, const char *url,
                       struct mo_err *e)
{
    char *text = NULL;
    int rc = resolve_text(t, cfg, NULL, url, &text, e);

    t->remote.url = text;
    return rc;
}

static int init_child(struct mo_resolved_server *t, const struct mo_config *cfg,
                      const struct mo_config_mcp *s, struct mo_err *e)
{
    const char *const *v = NULL;
    int rc = mo_resolved_server_words(t, s, e);

    if (rc == 0)
        rc = mo_resolved_server_env(t, cfg, s, &v, e);
    if (rc == 0)
        rc = mo_child_env(t->a, cfg->environ, v, s->env.n, &t->child.env, e);
    t->child.cwd = s->cwd;
    return rc;
}

/* --- secrets -------------------------------------------------------------- */

void mo_resolved_server_hide(const struct mo_resolved_server *t,
                             struct mo_loop *l, const char *server)
{
    bool all = true;

    for (const struct mo_resolved_server_text *x = t->secrets; x; x = x->next)
        all &= !x->value || mo_loop_secret(l, mo_span(x->p, x->n)) == 0;
    if (!all)
        mo_log(mo_loop_log(l), MO_WARN, "gateway",
               "%s: not every secret can be kept out of the log by its value",
               server);
}

void mo_resolved_server_scrub(const struct mo_resolved_server *t,
                              struct mo_err *e)
{
    for (const struct mo_resolved_server_text *x = t->secrets; e && x;
         x = x->next) {
        if (x->value)
            mo_log_blank(e->msg, mo_span(x->p, x->n));
    }
}

void mo_resolved_server_wipe(struct mo_resolved_server *t)
{
    for (struct mo_resolved_server_text *x = t->secrets; x; x = x->next)
        explicit_bzero(x->p, x->n);
    t->secrets = NULL;
}

int mo_resolved_server_init(struct mo_resolved_server *t, struct mo_arena *a,
                            const struct mo_config *cfg,
                            const struct mo_config_mcp *s, struct mo_err *e)
{
    int rc;

    *t = (struct mo_resolved_server){
        .a = a, .old_sse = s->url && s->transport == MO_TRANSPORT_SSE};
    if (!s->url)
        return init_child(t, cfg, s, e);
    rc = resolve_url(t, cfg, s->url, e);
    return rc < 0 ? rc : configured_headers(t, cfg, s, e);
}

int mo_resolved_server_key(const struct mo_config *cfg,
                           const struct mo_config_mcp *s,
                           struct mo_era_cache_key *out)
{
    mo_autoarena struct mo_arena a = {.cap = KEY_ARENA};
    struct mo_resolved_server t = {.a = &a};
    const char *address[] = {NULL, NULL};
    int rc = s->url ? resolve_url(&t, cfg, s->url, NULL)
                    : mo_resolved_server_words(&t, s, NULL);

    address[0] = t.remote.url;
    if (rc == 0 && s->url)
        mo_era_cache_key(s->transport == MO_TRANSPORT_SSE ? "sse" : "http",
                         address, NULL, out);
    else if (rc == 0)
        mo_era_cache_key("stdio", t.child.argv, s->cwd, out);
    mo_resolved_server_wipe(&t);
    return rc;
}
