#include "app/listen_auth.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

#include "app/service_manager.h"
#include "base/file.h"
#include "base/rand.h"
#include "codec/http/url.h"
#include "secrets/resolve.h"

#define TOKEN_BYTES    24
#define NAME_MAX_BYTES 32 /* of a person in server.tokens */
#define ADDR_MAX       ((size_t)512)

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

static int check_token(struct mo_buf *b, struct mo_err *e)
{
    if (b->len < MO_LISTEN_AUTH_TOKEN_MIN)
        return mo_fail(e, MO_EINVAL, "use at least %zu characters",
                       MO_LISTEN_AUTH_TOKEN_MIN);
    if (!fits_headers(mo_buf_cstr(b)) || strlen(mo_buf_cstr(b)) != b->len)
        return mo_fail(e, MO_EINVAL,
                       "use letters, digits and - . _ ~ + / = only");
    return 0;
}

static int read_token(const struct mo_config *c, const char *text,
                      struct mo_buf *b, struct mo_err *e)
{
    if (mo_reference_resolve(c, text, b, e) < 0) {
        e->code = MO_EINVAL; /* a missing file is an invalid value */
        return e->code;
    }
    return check_token(b, e);
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

/* --- the token file ------------------------------------------------------- */

static int read_token_file(const char *path, struct mo_buf *b, struct mo_err *e)
{
    struct mo_file_stamp stamp;
    int rc;

    (void)mo_buf_room(b, b->max); /* no growth, which would leave a copy */
    rc = mo_file_read(path, b->max, b, &stamp, e);
    if (rc == 0)
        rc = mo_file_trust(path, &stamp, true, e);
    while (rc == 0 && b->len > 0 && b->p[b->len - 1] == '\n')
        b->len--;
    return rc == 0 ? check_token(b, e) : rc;
}

static int create_token_file(const char *path, struct mo_err *e)
{
    char text[MO_LISTEN_AUTH_TOKEN_MAX];
    size_t n;
    int rc;

    mo_random_token(text, TOKEN_BYTES);
    n = strlen(text);
    text[n] = '\n'; /* in place of the NUL */
    rc = mo_file_create(path, mo_span(text, n + 1), e);
    explicit_bzero(text, sizeof(text));
    return rc;
}

/* The operator's token in the state directory, created at the first start. */
static int keep_token(const struct mo_config *c,
                      char out[MO_LISTEN_AUTH_TOKEN_MAX], struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = MO_LISTEN_AUTH_TOKEN_MAX - 1};
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/" MO_LISTEN_AUTH_TOKEN_FILE,
                     c->store.dir);
    int rc;

    if (n < 0 || (size_t)n >= sizeof(path))
        return mo_fail(e, MO_ETOOBIG, "store.dir is too long");
    rc = read_token_file(path, &b, e);
    if (rc == MO_ENOTFOUND) {
        rc = mo_file_mkdir(c->store.dir, e);
        if (rc == 0)
            rc = create_token_file(path, e);
        if (rc == 0)
            rc = read_token_file(path, &b, e);
    }
    if (rc == 0)
        (void)snprintf(out, MO_LISTEN_AUTH_TOKEN_MAX, "%s", mo_buf_cstr(&b));
    return rc;
}

/* --- tokens of persons ---------------------------------------------------- */

static bool is_name(const char *name)
{
    struct mo_span s = mo_span_cstr(name);

    return s.n > 0 && s.n <= NAME_MAX_BYTES && mo_span_only(s, MO_ALNUM "_.@-");
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
                           NAME_MAX_BYTES);
        (void)snprintf(v[i].name, sizeof(v[i].name), "%s", name);
        v[i].role = mo_role_of_token(c, name);
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

static int read_tokens(const struct mo_listen_auth *d,
                       const struct mo_config *c, const char *listen,
                       char token[MO_LISTEN_AUTH_TOKEN_MAX],
                       struct mo_gate_person *people, struct mo_err *e)
{
    if (c->server.token && take_token(c, c->server.token, token, e) < 0)
        return mo_wrap(e, "server.token");
    if (!c->server.token && !d->no_auth && keep_token(c, token, e) < 0)
        return e->code;
    if (!token[0] && !c->server.tokens.n && !mo_listen_is_local(listen))
        return mo_fail(e, MO_EINVAL,
                       "--no-auth would let the whole network run programs "
                       "here; listen on 127.0.0.1, or leave it out");
    return read_people(c, token, people, e);
}

int mo_listen_auth_token(struct mo_listen_auth *d, const struct mo_config *c,
                         const char *listen, struct mo_log *log,
                         struct mo_err *e)
{
    struct mo_gate_person people[MO_LISTEN_AUTH_PEOPLE_MAX] = {{.name = ""}};
    char token[MO_LISTEN_AUTH_TOKEN_MAX] = "";
    int rc = read_tokens(d, c, listen, token, people, e);

    if (rc == 0) {
        set_people(d, people, c->server.tokens.n, log);
        memcpy(d->token, token, sizeof(d->token));
        (void)mo_log_secret(log, mo_span_cstr(d->token));
    }
    explicit_bzero(people, sizeof(people));
    explicit_bzero(token, sizeof(token));
    return rc;
}

bool mo_listen_auth_is_open(const struct mo_listen_auth *d)
{
    return !d->token[0] && d->npeople == 0;
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

static int address_of(const struct mo_config_server *c, struct mo_buf *addr,
                      struct mo_err *e)
{
    if (mo_listen_is_unix(c->listen))
        (void)mo_buf_puts(addr, c->listen);
    else
        put_host_port(addr, c->listen, (unsigned)c->port);
    return mo_buf_err(addr) ? mo_fail(e, MO_EINVAL, "server.listen: too long")
                            : 0;
}

/* *fds 0: no socket was passed. */
static int take_passed(const struct mo_config_server *c,
                       int fds[MO_CONFIG_WORKERS_MAX], struct mo_err *e)
{
    int rc = mo_service_manager_socket(c, &fds[0], e);

    for (int64_t i = 1; rc == 0 && fds[0] && i < c->workers; i++) {
        fds[i] = fcntl(fds[0], F_DUPFD_CLOEXEC, 3);
        if (fds[i] < 0)
            rc = mo_fail_sys(e, "the socket of the service manager");
    }
    return rc;
}

int mo_listen_auth_bind(const struct mo_config_server *c,
                        int fds[MO_CONFIG_WORKERS_MAX], struct mo_err *e)
{
    mo_autobuf struct mo_buf addr = {.max = ADDR_MAX};
    struct mo_listen_opts o = {0};
    int rc = take_passed(c, fds, e);

    if (rc < 0 || fds[0])
        return rc;
    rc = address_of(c, &addr, e);

    o.addr = mo_buf_cstr(&addr);
    if (rc == 0)
        rc = mo_listen_bind(&o, fds, (size_t)c->workers, e);
    return rc < 0 ? explain_listen_error(o.addr, e) : 0;
}

int mo_listen_auth_open(struct mo_site *s, const struct mo_config_server *c,
                        int bound, struct mo_err *e)
{
    mo_autobuf struct mo_buf addr = {.max = ADDR_MAX};
    struct mo_listen_opts o = {.bound = bound, .keeps_path = c->workers > 1};
    int rc = address_of(c, &addr, e);

    o.addr = mo_buf_cstr(&addr);
    if (rc == 0)
        rc = mo_httpd_listen(mo_site_httpd(s), &o, e);
    return rc < 0 ? explain_listen_error(o.addr, e) : 0;
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

static void put_url(struct mo_buf *b, const struct mo_config_server *c,
                    bool tls, unsigned port)
{
    (void)mo_buf_printf(b, "http%s://", tls ? "s" : "");
    put_host_port(b, is_localhost(c->listen) ? "localhost" : c->listen, port);
    (void)mo_buf_puts(b, "/");
}

void mo_listen_auth_url(const struct mo_config_server *c, bool tls,
                        unsigned port, struct mo_buf *out)
{
    if (!mo_listen_is_unix(c->listen))
        put_url(out, c, tls, port);
}

void mo_listen_auth_link(const struct mo_listen_auth *d,
                         const struct mo_config_server *c, bool tls,
                         unsigned port, struct mo_buf *out)
{
    mo_buf_reset(out);
    if (mo_listen_is_unix(c->listen))
        return;
    put_url(out, c, tls, port);
    if (!d->token[0])
        return;
    (void)mo_buf_puts(out, "?token=");
    (void)mo_pct_encode(out, mo_span_cstr(d->token));
}

void mo_listen_auth_tell_ready(const struct mo_listen_auth *d,
                               const struct mo_config_server *c, bool tls,
                               unsigned port, bool with_link)
{
    struct mo_span host = mo_listen_host(c->listen);
    bool all = mo_span_is(host, "0.0.0.0") || mo_span_is(host, "::");
    mo_autowipe struct mo_buf b = {.max = ADDR_MAX + 4 * sizeof(d->token)};
    bool is_unix = mo_listen_is_unix(c->listen);

    if (is_unix)
        (void)mo_buf_printf(&b, " on %s", c->listen);
    else if (with_link)
        mo_listen_auth_link(d, c, tls, port, &b);
    else
        put_url(&b, c, tls, port);
    (void)printf("MCP Orchestrator " MO_VERSION " is ready%s%s%s\n",
                 is_unix ? "" : ": ", mo_buf_cstr(&b),
                 all ? " (and every address of this machine)" : "");
    if (d->token[0] && !is_unix)
        (void)printf(with_link
                         ? "The link signs a browser in; `mcp-orchestrator "
                           "open` prints it again.\n"
                         : "`mcp-orchestrator open` prints a link that signs a "
                           "browser in.\n");
    (void)fflush(stdout);
}
