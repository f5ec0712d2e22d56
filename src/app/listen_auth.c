#include "app/listen_auth.h"

#include <errno.h>
#include <stdio.h>

#include "base/rand.h"
#include "codec/http/url.h"
#include "secrets/resolve.h"

#define TOKEN_BYTES 24
#define ADDR_MAX    ((size_t)512)

/* --- token ---------------------------------------------------------------- */

/* A token is sent in Set-Cookie and Authorization headers. */
static bool fits_headers(const char *token)
{
    for (const char *p = token; *p; p++) {
        if (*p <= ' ' || *p > '~' || strchr("\",;\\", *p))
            return false;
    }
    return true;
}

static int read_token(const struct mo_config *c, const char *text,
                      struct mo_buf *b, struct mo_err *e)
{
    if (mo_reference_resolve(c, text, b, e) < 0) {
        e->code = MO_EINVAL; /* a missing file is an invalid value */
        return e->code;
    }
    if (b->len < MO_LISTEN_AUTH_TOKEN_MIN)
        return mo_fail(e, MO_EINVAL, "use at least %zu characters",
                       MO_LISTEN_AUTH_TOKEN_MIN);
    if (!fits_headers(mo_buf_cstr(b)) || strlen(mo_buf_cstr(b)) != b->len)
        return mo_fail(e, MO_EINVAL,
                       "use letters, digits and - . _ ~ + / = only");
    return 0;
}

/* Reads and checks one token of the configuration. */
static int take_token(const struct mo_config *c, const char *text,
                      char out[MO_LISTEN_AUTH_TOKEN_MAX], struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = MO_LISTEN_AUTH_TOKEN_MAX - 1};
    int rc = read_token(c, text, &b, e);

    if (rc == 0)
        (void)snprintf(out, MO_LISTEN_AUTH_TOKEN_MAX, "%s", mo_buf_cstr(&b));
    return rc;
}

static void set_token(struct mo_listen_auth *d, const char *token, bool made)
{
    explicit_bzero(d->token, sizeof(d->token));
    (void)snprintf(d->token, sizeof(d->token), "%s", token);
    d->made = made;
    d->told = !made;
}

/* --- tokens of persons ---------------------------------------------------- */

static bool is_name(const char *name)
{
    struct mo_span s = mo_span_cstr(name);

    return s.n > 0 && s.n < MO_REQ_CALLER_MAX &&
           mo_span_only(s, MO_ALNUM "_.@-");
}

/* A token must identify one person. */
static bool is_taken(const struct mo_gate_person *v, size_t n,
                     const char *operators, const char *token)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(v[i].token, token) == 0)
            return true;
    return strcmp(operators, token) == 0;
}

static int read_people(const struct mo_config *c, const char *operators,
                       struct mo_gate_person *v, struct mo_err *e)
{
    const struct mo_config_map *m = &c->server.tokens;

    if (m->n > MO_LISTEN_AUTH_PEOPLE_MAX)
        return mo_fail(e, MO_EINVAL, "server.tokens: more than %d",
                       MO_LISTEN_AUTH_PEOPLE_MAX);
    for (size_t i = 0; i < m->n; i++) {
        const char *name = m->v[i].name;

        if (!is_name(name))
            return mo_fail(e, MO_EINVAL,
                           "server.tokens: a name has 1 to %d of A-Z a-z 0-9 "
                           "_ . @ -",
                           MO_REQ_CALLER_MAX - 1);
        (void)snprintf(v[i].name, sizeof(v[i].name), "%s", name);
        if (take_token(c, m->v[i].value, v[i].token, e) < 0)
            return mo_wrap(e, "server.tokens.%s", name);
        if (is_taken(v, i, operators, v[i].token))
            return mo_fail(e, MO_EINVAL,
                           "server.tokens.%s: another person has this token",
                           name);
    }
    return 0;
}

static void set_people(struct mo_listen_auth *d, const struct mo_gate_person *v,
                       size_t n, struct mo_log *log)
{
    memset(d->people, 0, sizeof(d->people));
    memcpy(d->people, v, n * sizeof(*v));
    d->npeople = n;
    for (size_t i = 0; i < n; i++)
        (void)mo_log_secret(log, mo_span_cstr(v[i].token));
}

/* --- all tokens ----------------------------------------------------------- */

static void set_operators(struct mo_listen_auth *d, const struct mo_config *c,
                          const char *listen, const char *token)
{
    char fresh[MO_LISTEN_AUTH_TOKEN_MAX] = "";

    if (c->server.token) {
        set_token(d, token, false);
    } else if (mo_listen_is_local(listen) || c->server.tokens.n) {
        set_token(d, "", false);
    } else if (!d->made) {
        mo_random_token(fresh, TOKEN_BYTES);
        set_token(d, fresh, true);
    }
}

static int read_tokens(const struct mo_config *c,
                       char token[MO_LISTEN_AUTH_TOKEN_MAX],
                       struct mo_gate_person *people, struct mo_err *e)
{
    if (c->server.token && take_token(c, c->server.token, token, e) < 0)
        return mo_wrap(e, "server.token");
    return read_people(c, token, people, e);
}

int mo_listen_auth_token(struct mo_listen_auth *d, const struct mo_config *c,
                         const char *listen, struct mo_log *log,
                         struct mo_err *e)
{
    struct mo_gate_person people[MO_LISTEN_AUTH_PEOPLE_MAX] = {{.name = ""}};
    char token[MO_LISTEN_AUTH_TOKEN_MAX] = "";
    int rc = read_tokens(c, token, people, e);

    if (rc == 0) {
        set_people(d, people, c->server.tokens.n, log);
        set_operators(d, c, listen, token);
        if (d->token[0])
            (void)mo_log_secret(log, mo_span_cstr(d->token));
    }
    explicit_bzero(people, sizeof(people));
    explicit_bzero(token, sizeof(token));
    return rc;
}

void mo_listen_auth_tell_token(struct mo_listen_auth *d)
{
    if (!d->made || d->told)
        return;
    d->told = true;
    (void)printf("Token for this run: %s\n"
                 "  In a browser, open the page once with /?token=TOKEN. "
                 "Programs send Authorization: Bearer TOKEN.\n"
                 "  To keep one token, set server.token or "
                 "MCP_ORCHESTRATOR_TOKEN.\n",
                 d->token);
    (void)fflush(stdout);
}

/* --- address -------------------------------------------------------------- */

static const struct {
    int sys;
    bool is_unix;
    const char *what, *advice;
} advice[] = {
    {EADDRINUSE, false, "is in use by another program",
     "stop that one, or choose another port with --port N (0: any free one)"},
    {EADDRINUSE, true, "is taken",
     "stop the server that uses it, or remove it if it is not a socket"},
    {EACCES, false, "is not allowed",
     "ports below 1024 need root; choose another with --port N"},
    {EACCES, true, "cannot be made", "choose a directory you may write to"},
    {ENOENT, true, "cannot be made", "make its directory first"},
    {EADDRNOTAVAIL, false, "is not an address of this machine",
     "use --listen 127.0.0.1 (this machine only) or 0.0.0.0 (all of its "
     "addresses)"},
};

static int explain_listen_error(const char *addr, struct mo_err *e)
{
    int sys = e->sys;

    for (size_t i = 0; i < MO_COUNT(advice); i++) {
        if (advice[i].sys != sys ||
            advice[i].is_unix != mo_listen_is_unix(addr))
            continue;
        (void)mo_fail(e, MO_EUNAVAIL, "%s %s: %s", addr, advice[i].what,
                      advice[i].advice);
        e->sys = sys;
        break;
    }
    return e->code;
}

static void put_host_port(struct mo_buf *b, const char *listen, unsigned port)
{
    struct mo_span host = mo_listen_host(listen);
    bool v6 = mo_listen_is_ipv6(listen);

    (void)mo_buf_printf(b, "%s%.*s%s:%u", v6 ? "[" : "", (int)host.n, host.p,
                        v6 ? "]" : "", port);
}

int mo_listen_auth_open(struct mo_site *s, const struct mo_config_server *c,
                        struct mo_err *e)
{
    struct mo_listen_opts o = {0};
    mo_autobuf struct mo_buf addr = {.max = ADDR_MAX};
    int rc;

    if (mo_listen_is_unix(c->listen))
        (void)mo_buf_puts(&addr, c->listen);
    else
        put_host_port(&addr, c->listen, (unsigned)c->port);
    o.addr = mo_buf_cstr(&addr);
    rc = mo_buf_err(&addr) ? mo_fail(e, MO_EINVAL, "server.listen: too long")
                           : mo_httpd_listen(mo_site_httpd(s), &o, e);
    if (rc < 0)
        rc = explain_listen_error(o.addr, e);
    return rc;
}

/* True if "localhost" reaches this address. */
static bool is_localhost(const char *listen)
{
    static const char *const same[] = {"127.0.0.1", "::1", "localhost",
                                       "0.0.0.0", "::"};

    for (size_t i = 0; i < MO_COUNT(same); i++) {
        if (mo_span_is(mo_listen_host(listen), same[i]))
            return true;
    }
    return false;
}

void mo_listen_auth_tell_ready(const struct mo_config_server *c, bool tls,
                               unsigned port)
{
    struct mo_span host = mo_listen_host(c->listen);
    bool all = mo_span_is(host, "0.0.0.0") || mo_span_is(host, "::");
    mo_autobuf struct mo_buf b = {.max = ADDR_MAX};

    if (mo_listen_is_unix(c->listen)) {
        (void)mo_buf_printf(&b, " on %s", c->listen);
    } else {
        (void)mo_buf_printf(&b, ": http%s://", tls ? "s" : "");
        put_host_port(&b, is_localhost(c->listen) ? "localhost" : c->listen,
                      port);
        (void)mo_buf_puts(&b, "/");
    }
    (void)printf("MCP Orchestrator " MO_VERSION " is ready%s%s\n",
                 mo_buf_cstr(&b),
                 all ? " (and every address of this machine)" : "");
    (void)fflush(stdout);
}
