/* target.c - what a command is to talk to, out of words or configuration. */
#include "app/target.h"

#include "app/resolve.h"

#define VALUE_MAX ((size_t)128 * 1024) /* of one environment variable */

/* --- words --------------------------------------------------------------- */

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

/* --- what to start, where to connect ------------------------------------- */

static int configured_words(struct mo_target *t, const struct mo_config_mcp *s,
                            struct mo_err *e)
{
    const char **v = mo_arena_zalloc(t->a, (s->args.n + 2) * sizeof(*v));

    if (!v)
        return mo_fail(e, MO_ENOMEM, "arguments");
    v[0] = s->command;
    for (size_t i = 0; i < s->args.n; i++)
        v[i + 1] = s->args.v[i];
    t->child.argv = v;
    return 0;
}

int mo_target_env(struct mo_arena *a, const struct mo_config *cfg,
                  const struct mo_config_mcp *s, const char *const **out,
                  struct mo_err *e)
{
    const char **v = mo_arena_zalloc(a, (s->env.n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "environment");
    for (size_t i = 0; i < s->env.n && rc == 0; i++) {
        struct mo_buf b;

        mo_buf_init(&b, VALUE_MAX);
        mo_buf_printf(&b, "%s=", s->env.v[i].name);
        rc = mo_ref_resolve(cfg, s->env.v[i].value, &b, e);
        if (rc == 0)
            v[i] = mo_arena_strndup(a, b.len ? b.p : "", b.len);
        if (rc == 0 && (mo_buf_err(&b) || !v[i]))
            rc = mo_fail(e, MO_ENOMEM, "environment");
        mo_buf_fini(&b);
    }
    *out = v;
    return rc;
}

static int configured_env(struct mo_target *t, const struct mo_config *cfg,
                          const struct mo_config_mcp *s, struct mo_err *e)
{
    const char *const *v = NULL;
    int rc = s ? mo_target_env(t->a, cfg, s, &v, e) : 0;

    if (rc == 0)
        rc = mo_child_env(t->a, cfg->environ, v, s ? s->env.n : 0,
                          &t->child.env, e);
    return rc;
}

static int configured_headers(struct mo_target *t, const struct mo_config *cfg,
                              const struct mo_config_mcp *s, struct mo_err *e)
{
    struct mo_http_header *v =
        mo_arena_zalloc(t->a, (s->headers.n + 1) * sizeof(*v));
    int rc = 0;

    if (!v)
        return mo_fail(e, MO_ENOMEM, "headers");
    for (size_t i = 0; i < s->headers.n && rc == 0; i++) {
        struct mo_buf b;

        mo_buf_init(&b, VALUE_MAX);
        rc = mo_ref_resolve(cfg, s->headers.v[i].value, &b, e);
        v[i].name = mo_span_cstr(s->headers.v[i].name);
        v[i].value =
            mo_span(mo_arena_strndup(t->a, b.len ? b.p : "", b.len), b.len);
        if (rc == 0 && (mo_buf_err(&b) || !v[i].value.p))
            rc = mo_fail(e, MO_ENOMEM, "headers");
        mo_buf_fini(&b);
    }
    t->remote.headers = v;
    t->remote.nheaders = s->headers.n;
    return rc;
}

static int resolved_url(struct mo_target *t, const struct mo_config *cfg,
                        const char *url, struct mo_err *e)
{
    struct mo_buf b;
    int rc;

    mo_buf_init(&b, VALUE_MAX);
    rc = mo_ref_resolve(cfg, url, &b, e);
    if (rc == 0) {
        t->remote.url = mo_arena_strndup(t->a, b.len ? b.p : "", b.len);
        if (mo_buf_err(&b) || !t->remote.url)
            rc = mo_fail(e, MO_ENOMEM, "address");
    }
    mo_buf_fini(&b);
    return rc;
}

static int where_to_connect(struct mo_target *t, const struct mo_peer_opts *o,
                            struct mo_err *e)
{
    const struct mo_config_mcp *s = o->server;
    const char *words[] = {NULL, NULL};
    int rc = 0;

    t->remote.url = o->url;
    t->old_sse = s && s->transport == MO_TRANSPORT_SSE;
    if (s)
        rc = resolved_url(t, o->cfg, s->url, e);
    if (rc == 0 && s)
        rc = configured_headers(t, o->cfg, s, e);
    words[0] = t->remote.url;
    if (rc == 0)
        mo_eras_key(t->old_sse ? "sse" : "http", words, NULL, &t->key);
    return rc;
}

static int what_to_start(struct mo_target *t, const struct mo_peer_opts *o,
                         struct mo_err *e)
{
    const struct mo_config_mcp *s = o->server;
    size_t n;
    int rc;

    if (!s)
        rc = mo_peer_words(t->a, o->command, &t->child.argv, &n, e);
    else if (!s->command)
        rc = mo_fail(e, MO_EUNAVAIL,
                     "servers in a box cannot be reached from here yet");
    else
        rc = configured_words(t, s, e);
    if (rc == 0)
        rc = configured_env(t, o->cfg, s, e);
    t->child.cwd = s ? s->cwd : NULL;
    if (rc == 0)
        mo_eras_key("stdio", t->child.argv, t->child.cwd, &t->key);
    return rc;
}

int mo_target_init(struct mo_target *t, struct mo_arena *a,
                   const struct mo_peer_opts *o, struct mo_err *e)
{
    *t = (struct mo_target){.a = a};
    t->is_remote = o->server ? o->server->url != NULL : o->url != NULL;
    return t->is_remote ? where_to_connect(t, o, e) : what_to_start(t, o, e);
}
