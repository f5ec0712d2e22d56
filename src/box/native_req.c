/* native_req.c - a spec as a request to mo-box. See native.c. */
#include <stdio.h>

#include "base/rand.h"
#include "box/native_priv.h"

#define ID_BYTES 10

static void make_id(char out[MO_BOXREQ_ID_MAX + 1])
{
    unsigned char r[ID_BYTES];

    mo_random(r, sizeof(r));
    out[0] = 'b';
    mo_hex(r, sizeof(r), out + 1);
}

static void put_words(const char **to, size_t *n, const char *const *from)
{
    for (size_t i = 0; from && from[i] && *n < MO_BOXREQ_WORDS; i++)
        to[(*n)++] = from[i];
}

static int put_command(struct native *d, const struct mo_box_spec *spec,
                       struct mo_boxmsg *m, struct mo_err *e)
{
    static const char *const toolbox[] = {"mo-toolbox", NULL};
    static const char *const env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/workspace",
        "LANG=C.UTF-8", NULL};
    struct mo_boxreq *r = &m->u.req;
    size_t na = 0, ne = 0;

    if (!spec->argv && d->toolbox < 0)
        return mo_fail(e, MO_EUNAVAIL, "box: this build carries no toolbox");
    r->by_fd = spec->argv == NULL;
    m->fds = (unsigned)r->by_fd;
    put_words(r->argv, &na, spec->argv ? spec->argv : toolbox);
    put_words(r->env, &ne, env);
    put_words(r->env, &ne, spec->env);
    return 0;
}

/* "80,443" */
static int put_ports(const struct mo_egress_policy *p,
                     struct mo_native_req *out, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = sizeof(out->ports) - 1};
    int rc;

    for (size_t i = 0; i < p->nports; i++)
        mo_buf_printf(&b, "%s%u", i ? "," : "", p->ports[i]);
    rc = mo_buf_err(&b);
    if (rc < 0)
        return mo_fail(e, rc, "network");
    (void)snprintf(out->ports, sizeof(out->ports), "%s", mo_buf_cstr(&b));
    return 0;
}

static int put_network(struct native *d, const struct mo_box_spec *spec,
                       struct mo_native_req *out, struct mo_err *e)
{
    struct mo_egress_policy *p = NULL;
    int rc;

    out->ports[0] = out->ca[0] = '\0';
    if (!spec->network || !*spec->network)
        return 0;
    rc = mo_egress_policy_read(mo_span_cstr(spec->network), &p, e);
    if (rc == 0)
        rc = put_ports(p, out, e);
    if (rc == 0)
        rc = mo_native_trust(d, p, out->ca, e);
    mo_egress_policy_free(p);
    return rc;
}

uint64_t mo_native_linger(const struct mo_box_spec *spec)
{
    return spec->linger_ms < MO_NATIVE_LINGER_MAX ? spec->linger_ms
                                                  : MO_NATIVE_LINGER_MAX;
}

int mo_native_request(struct native *d, const struct mo_box_spec *spec,
                      enum mo_boxmsg_type type, struct mo_native_req *out,
                      struct mo_err *e)
{
    const struct mo_box_limits *l = &spec->limits;
    int rc;

    make_id(out->id);
    mo_box_spec_digest(spec, out->digest);
    out->m = (struct mo_boxmsg){.type = type};
    out->m.u.req = (struct mo_boxreq){
        .id = out->id,
        .dir = d->dir,
        .session = spec->session ? spec->session : "",
        .instance = d->instance,
        .store = d->store,
        .policy = out->digest,
        .expires = spec->expires < INT64_MAX ? spec->expires : INT64_MAX,
        .linger_ms = mo_native_linger(spec),
        .memory = l->memory,
        .cpu_milli = l->cpu_milli,
        .pids = l->pids,
        .workspace = l->workspace,
        .workspace_inodes = l->workspace_inodes,
        .tmp = l->tmp,
        .tmp_inodes = l->tmp_inodes,
        .file_size = l->file_size,
        .open_files = l->open_files,
        .root = spec->image ? spec->image : "",
        .ports = out->ports,
        .ca = out->ca,
    };
    rc = put_network(d, spec, out, e);
    return rc ? rc : put_command(d, spec, &out->m, e);
}
