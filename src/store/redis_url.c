/* redis_url.c - parses a Redis address: hosts, socket, user, password,
 * database. */
#include <stdio.h>

#include "codec/http/url.h"
#include "loop/tls.h"
#include "store/redis_url.h"

#define NAME_CHARS                                                             \
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_"

/* An empty part leaves *out as it is. */
static int decode_part(struct mo_span s, char **out, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_URL_MAX};

    if (!s.n)
        return 0;
    if (mo_pct_decode(&b, s, false) == 0)
        *out = mo_strndup(b.p, b.len);
    return *out ? 0
                : mo_fail(e, mo_buf_err(&b) ? MO_ENOMEM : MO_EINVAL,
                          "store: the address is not a valid URL: its user or "
                          "password");
}

/* user:password, or as many write it, :password. */
static int read_user(struct mo_rconf *f, struct mo_span info, struct mo_err *e)
{
    struct mo_span user = mo_span_cut(&info, ':');
    int rc;

    if (!info.p && user.n)
        return mo_fail(e, MO_EINVAL,
                       "store: the address has a user and no "
                       "password");
    rc = decode_part(user, &f->user, e);
    return rc < 0 ? rc : decode_part(info, &f->password, e);
}

/* redis+unix:/run/redis.sock?db=2 */
static int read_unix(struct mo_rconf *f, struct mo_span rest, struct mo_err *e)
{
    struct mo_span path = mo_span_cut(&rest, '?');
    struct mo_span key = mo_span_cut(&rest, '=');

    if (mo_span_starts(path, MO_SPAN("//")))
        path = mo_span_skip(path, 2);
    if (!path.n || path.p[0] != '/' || path.n > 200)
        return mo_fail(e, MO_EINVAL,
                       "store: redis+unix: needs the path of a "
                       "socket");
    if (key.n && (!mo_span_is(key, "db") || mo_span_u64(rest, &f->db) < 0))
        return mo_fail(e, MO_EINVAL, "store: after the socket only ?db=N");
    (void)snprintf(f->seeds[0].addr, sizeof(f->seeds[0].addr), "unix:%.*s",
                   (int)path.n, path.p);
    f->nseeds = 1;
    return 0;
}

static int add_seed(struct mo_rconf *f, struct mo_span text, struct mo_err *e)
{
    struct mo_rtarget *t = &f->seeds[f->nseeds];
    struct mo_host h;

    if (f->nseeds == MO_REDIS_SEEDS_MAX)
        return mo_fail(e, MO_EINVAL, "store: at most %d hosts",
                       MO_REDIS_SEEDS_MAX);
    if (mo_host_parse(text, f->master[0] ? 26379 : 6379, &h) < 0 || !h.port ||
        h.name.n >= sizeof(t->host))
        return mo_fail(e, MO_EINVAL, "store: the address is not a valid URL");
    (void)snprintf(t->host, sizeof(t->host), "%.*s", (int)h.name.n, h.name.p);
    (void)snprintf(t->addr, sizeof(t->addr), h.ipv6 ? "[%s]:%u" : "%s:%u",
                   t->host, h.port);
    f->nseeds++;
    return 0;
}

/* /3, or behind sentinels /MASTER[/3] */
static int read_path(struct mo_rconf *f, struct mo_span path, bool is_sentinel,
                     struct mo_err *e)
{
    struct mo_span master = is_sentinel ? mo_span_cut(&path, '/') : path;

    if (is_sentinel) {
        if (!master.n || master.n >= sizeof(f->master) ||
            !mo_span_only(master, NAME_CHARS))
            return mo_fail(e, MO_EINVAL,
                           "store: redis+sentinel://host[,host]/MASTER[/db], "
                           "with the name of the master");
        (void)snprintf(f->master, sizeof(f->master), "%.*s", (int)master.n,
                       master.p);
    }
    if (path.n && mo_span_u64(path, &f->db) < 0)
        return mo_fail(e, MO_EINVAL,
                       "store: the database of Redis is a "
                       "number");
    return 0;
}

/* [user:password@]host[:port][,host[:port]]...[/path] */
static int read_tcp(struct mo_rconf *f, struct mo_span rest, bool is_sentinel,
                    struct mo_err *e)
{
    struct mo_span hosts, info = {0};
    int rc;

    if (mo_span_find(rest, '?') >= 0 || mo_span_find(rest, '#') >= 0)
        return mo_fail(e, MO_EINVAL,
                       "store: redis://[user:password@]host"
                       "[:port][,host[:port]]...[/db] and nothing else");
    hosts = mo_span_cut(&rest, '/');
    if (mo_span_find(hosts, '@') >= 0)
        info = mo_span_cut(&hosts, '@');
    rc = read_path(f, rest, is_sentinel, e);
    while (rc == 0 && hosts.p)
        rc = add_seed(f, mo_span_cut(&hosts, ','), e);
    return rc == 0 && info.p ? read_user(f, info, e) : rc;
}

static int make_tls(struct mo_rconf *f, const struct mo_store_opts *o,
                    struct mo_err *e)
{
    mo_autofree char *ca = NULL;
    struct mo_tls_client_opts opts = {0};

    if (!mo_span_starts(mo_span_cstr(o->url), MO_SPAN("rediss")))
        return 0;
    if (o->ca_file.n) {
        ca = mo_strndup(o->ca_file.p, o->ca_file.n);
        if (!ca)
            return mo_fail(e, MO_ENOMEM, "store");
    }
    opts.ca = ca;
    f->tls = mo_tls_client_new(&opts, e);
    return f->tls ? 0 : (e ? e->code : MO_ETLS);
}

int mo_redis_url(struct mo_rconf *f, const struct mo_store_opts *o,
                 struct mo_err *e)
{
    struct mo_span url = mo_span_cstr(o->url);
    int rc;

    if (mo_span_strip(&url, MO_SPAN("redis+unix:")))
        rc = read_unix(f, url, e);
    else if (mo_span_strip(&url, MO_SPAN("redis+sentinel://")) ||
             mo_span_strip(&url, MO_SPAN("rediss+sentinel://")))
        rc = read_tcp(f, url, true, e);
    else if (mo_span_strip(&url, MO_SPAN("redis://")) ||
             mo_span_strip(&url, MO_SPAN("rediss://")))
        rc = read_tcp(f, url, false, e);
    else
        rc = mo_fail(e, MO_EINVAL, "store: the address is not a valid URL");
    return rc < 0 ? rc : make_tls(f, o, e);
}

void mo_redis_url_fini(struct mo_rconf *f)
{
    mo_tls_free(f->tls);
    mo_free(f->user);
    if (f->password)
        explicit_bzero(f->password, strlen(f->password));
    mo_free(f->password);
}
