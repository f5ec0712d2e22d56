/* redis_url.c - parses a Redis address: host, socket, user, password,
 * database. No message shows any of it, because it may hold a password. */
#include <stdio.h>

#include "codec/http/url.h"
#include "store/redis_priv.h"

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
                          "store: user or password in the address");
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
static int read_unix(struct mo_rconf *f, struct mo_span rest,
                     struct mo_rtarget *t, struct mo_err *e)
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
    (void)snprintf(t->addr, sizeof(t->addr), "unix:%.*s", (int)path.n, path.p);
    return 0;
}

static int read_tcp(struct mo_rconf *f, struct mo_span url,
                    struct mo_rtarget *t, struct mo_err *e)
{
    struct mo_url u;
    struct mo_span db;
    int rc = mo_url_parse(url, &u, e);

    if (rc < 0) /* the message must not show the password */
        return mo_fail(e, rc, "store: the address is not a valid URL");
    if (u.query.p || u.fragment.p || u.host.n >= sizeof(t->host))
        return mo_fail(e, MO_EINVAL,
                       "store: redis://[user:password@]host"
                       "[:port][/db] and nothing else");
    db = mo_span_skip(u.path, 1);
    if (db.n && mo_span_u64(db, &f->db) < 0)
        return mo_fail(e, MO_EINVAL,
                       "store: the database of Redis is a "
                       "number");
    (void)snprintf(t->host, sizeof(t->host), "%.*s", (int)u.host.n, u.host.p);
    (void)snprintf(t->addr, sizeof(t->addr), u.ipv6 ? "[%s]:%u" : "%s:%u",
                   t->host, u.port ? u.port : 6379u);
    return u.userinfo.p ? read_user(f, u.userinfo, e) : 0;
}

static int make_tls(struct mo_rconf *f, const struct mo_store_opts *o,
                    struct mo_err *e)
{
    mo_autofree char *ca = NULL;
    struct mo_tls_client_opts opts = {0};

    if (!mo_span_starts(mo_span_cstr(o->url), MO_SPAN("rediss:")))
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
                 struct mo_rtarget *t, struct mo_err *e)
{
    static const struct mo_span local = {"redis+unix:", 11};
    struct mo_span url = mo_span_cstr(o->url);
    int rc = mo_span_starts(url, local)
                 ? read_unix(f, mo_span_skip(url, local.n), t, e)
                 : read_tcp(f, url, t, e);

    return rc < 0 ? rc : make_tls(f, o, e);
}
