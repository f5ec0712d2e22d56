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
    static const char *const toolbox[] = {MO_BOX_TOOLBOX, NULL};
    static const char *const env[] = {
        "PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME=/workspace",
        "LANG=C.UTF-8", NULL};
    struct mo_boxreq *r = &m->u.req;
    size_t na = 0, ne = 0;

    r->by_fd = spec->argv == NULL || mo_box_spec_names_toolbox(spec);
    if (r->by_fd && d->toolbox < 0)
        return mo_fail(e, MO_EUNAVAIL, "box: this build carries no toolbox");
    m->fds = (unsigned)r->by_fd;
    put_words(r->argv, &na, spec->argv ? spec->argv : toolbox);
    put_words(r->env, &ne, env);
    put_words(r->env, &ne, spec->env);
    return 0;
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
    };
    rc = mo_box_net_ports(spec->network, out->ports, e);
    return rc ? rc : put_command(d, spec, &out->m, e);
}
