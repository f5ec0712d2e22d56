#include "install/bundle.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "codec/http/url.h"
#include "codec/sha256.h"
#include "loop/httpc.h"

#define URL_MAX  ((size_t)8192)
#define CHECK_MS 500 /* for signals */

/* --- one request ---------------------------------------------------------- */

struct ask {
    int fd;
    int status;
    struct mo_buf next; /* Location */
    struct mo_sha256 sum;
    size_t bytes;
    bool done, gone;
    struct mo_err why;
};

static void on_head(void *ctx, const struct mo_http_head *h)
{
    struct ask *k = ctx;

    k->status = h->status;
    mo_buf_reset(&k->next);
    (void)mo_buf_span(&k->next, mo_http_get(h, "location"));
}

static void on_data(void *ctx, struct mo_span data)
{
    struct ask *k = ctx;

    if (k->status != 200 || k->why.code)
        return;
    k->bytes += data.n;
    mo_sha256_put(&k->sum, data.p, data.n);
    (void)mo_file_write_all(k->fd, data, &k->why);
}

static void on_done(void *ctx, const struct mo_err *why)
{
    struct ask *k = ctx;

    k->done = true;
    if (why && !k->why.code)
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

static int send_request(struct mo_loop *l, struct mo_runner *run,
                        const char *url, struct ask *k, struct mo_err *e)
{
    static const struct mo_http_cb cb = {on_head, on_data, on_done};
    const struct mo_httpc_opts o = {.active = 1, .waiting = 1};
    const struct mo_http_call call = {
        .url = url,
        .total_ms = MO_BUNDLE_FILES_MS,
        .max_bytes = MO_BUNDLE_MAX,
    };
    struct mo_httpc *c = mo_httpc_new(l, &o, e);
    struct mo_httpc_x *x;
    int rc;

    if (!c)
        return e->code;
    rc = mo_httpc_start(c, &call, &cb, k, &x, e);
    while (rc == 0 && !k->done) {
        (void)mo_loop_until(l, is_set, &k->done, CHECK_MS);
        if (!k->done && mo_runner_is_stopped(run))
            rc = mo_fail(e, MO_ECANCELED, "interrupted; nothing was installed");
    }
    mo_httpc_close(c, on_gone, k);
    while (!k->gone)
        (void)mo_loop_until(l, is_set, &k->gone, CHECK_MS);
    if (rc == 0 && k->why.code) {
        *e = k->why;
        rc = e->code;
    }
    return rc;
}

/* --- redirects ------------------------------------------------------------ */

static bool is_here(const struct mo_url *u)
{
    const struct mo_host h = {.name = u->host, .ipv6 = u->ipv6};

    return mo_host_is_loopback(&h);
}

bool mo_bundle_is_url(struct mo_span url)
{
    struct mo_url u;

    return mo_url_parse(url, &u, NULL) == 0 && !u.userinfo.p && u.host.n &&
           (mo_span_ieq(u.scheme, MO_SPAN("https")) ||
            (mo_span_ieq(u.scheme, MO_SPAN("http")) && is_here(&u)));
}

/* The address of a redirect: absolute, or a path of the same host. url gets it.
 * A redirect from https to this machine is refused. */
static int follow(struct mo_buf *url, struct mo_span to, struct mo_err *e)
{
    mo_autobuf struct mo_buf next = {.max = URL_MAX};
    struct mo_url was, u;

    if (mo_url_parse(mo_buf_view(url), &was, e) < 0)
        return e->code;
    if (mo_span_starts(to, MO_SPAN("/")) && !mo_span_starts(to, MO_SPAN("//")))
        mo_buf_span(
            &next, mo_span(url->p, (size_t)(was.host.p + was.host.n - url->p)));
    if (next.len && was.ipv6)
        mo_buf_putc(&next, ']');
    if (next.len && was.has_port)
        mo_buf_printf(&next, ":%u", (unsigned)was.port);
    mo_buf_span(&next, to);
    if (mo_buf_err(&next) || !mo_bundle_is_url(mo_buf_view(&next)) ||
        mo_url_parse(mo_buf_view(&next), &u, NULL) < 0 ||
        (is_here(&u) && !is_here(&was)))
        return mo_fail(e, MO_EPOLICY,
                       "it redirects to an address that is not https");
    mo_buf_reset(url);
    return mo_buf_span(url, mo_buf_view(&next));
}

static int get_file(struct mo_loop *l, struct mo_runner *run, const char *from,
                    struct ask *k, struct mo_err *e)
{
    mo_autobuf struct mo_buf url = {.max = URL_MAX};

    mo_buf_puts(&url, from);
    for (int hop = 0; hop <= MO_BUNDLE_HOPS; hop++) {
        int rc;

        k->done = k->gone = false;
        rc = send_request(l, run, mo_buf_cstr(&url), k, e);
        if (rc < 0)
            return rc == MO_ETOOBIG
                       ? mo_fail(e, rc, "the bundle has more than %zu MiB",
                                 MO_BUNDLE_MAX >> 20)
                       : rc;
        if (k->status == 200)
            return 0;
        if (k->status < 300 || k->status >= 400 || !k->next.len)
            return mo_fail(e, k->status == 404 ? MO_ENOTFOUND : MO_EUNAVAIL,
                           "the host of the bundle answers with status %d",
                           k->status);
        rc = follow(&url, mo_buf_view(&k->next), e);
        if (rc < 0)
            return rc;
    }
    return mo_fail(e, MO_EUNAVAIL, "it redirects more than %d times",
                   MO_BUNDLE_HOPS);
}

/* --- the file ------------------------------------------------------------- */

static int map_file(struct mo_bundle *b, size_t n, struct mo_err *e)
{
    void *p = n ? mmap(NULL, n, PROT_READ, MAP_PRIVATE, b->fd, 0) : MAP_FAILED;

    if (p == MAP_FAILED)
        return n ? mo_fail_sys(e, "bundle")
                 : mo_fail(e, MO_EPROTO, "the bundle is empty");
    b->file = mo_span(p, n);
    return 0;
}

static int check_sum(struct ask *k, const char *sha256, struct mo_err *e)
{
    unsigned char digest[MO_SHA256_LEN];
    char got[MO_SHA256_HEX + 1];

    mo_sha256_end(&k->sum, digest);
    mo_hex(digest, sizeof(digest), got);
    return strcmp(got, sha256) == 0
               ? 0
               : mo_fail(e, MO_EPOLICY,
                         "the bundle should have the SHA-256 %.64s, and it has "
                         "%s",
                         sha256, got);
}

int mo_bundle_fetch(struct mo_bundle *b, struct mo_runner *run, const char *url,
                    const char *sha256, struct mo_err *e)
{
    struct mo_log log = {.fd = -1};
    struct mo_loop *l;
    const char *temp = getenv("TMPDIR");
    struct ask k = {.next.max = URL_MAX};
    int rc;

    b->fd = open(temp && temp[0] == '/' ? temp : "/tmp",
                 O_TMPFILE | O_RDWR | O_EXCL | O_CLOEXEC, 0600);
    if (b->fd < 0)
        return mo_fail_sys(e, "a temporary file");
    l = mo_loop_new(&log, e);
    if (!l)
        return e->code;
    k.fd = b->fd;
    mo_sha256_init(&k.sum);
    rc = get_file(l, run, url, &k, e);
    mo_loop_free(l);
    mo_log_fini(&log);
    mo_buf_fini(&k.next);
    if (rc == 0)
        rc = check_sum(&k, sha256, e);
    return rc < 0 ? rc : map_file(b, k.bytes, e);
}

void mo_bundle_close(struct mo_bundle *b)
{
    if (b->file.p)
        (void)munmap((void *)(uintptr_t)b->file.p, b->file.n);
    b->file = mo_span(NULL, 0);
    mo_close_fd(&b->fd);
}

static int keep_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    return mo_buf_span(ctx, piece) < 0
               ? mo_fail(e, MO_ETOOBIG, "its manifest is too long")
               : 0;
}

int mo_bundle_manifest(const struct mo_bundle *b, struct mo_buf *out,
                       struct mo_err *e)
{
    struct mo_zip z;
    struct mo_zip_entry x;
    int rc = mo_zip_open(&z, b->file, e);

    while (rc >= 0) {
        rc = mo_zip_next(&z, &x, e);
        if (rc == 0)
            rc = mo_fail(e, MO_EPROTO, "the bundle has no manifest.json");
        if (rc < 0)
            return rc;
        if (mo_span_is(x.name, "manifest.json"))
            return x.size > MO_BUNDLE_MANIFEST
                       ? mo_fail(e, MO_ETOOBIG, "its manifest is too long")
                       : mo_zip_read(&x, keep_piece, out, e);
    }
    return rc;
}
