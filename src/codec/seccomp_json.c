/* seccomp_json.c - write the table as the profile that container engines read.
 *
 * The format is that of Docker's --security-opt seccomp=; podman takes it from
 * a file. "archMap" lets the engine, which may run on another machine, choose
 * its architecture; there are no sub-architectures, so 32-bit and x32 programs
 * are killed. The runtime skips names that a machine does not have. */
#include <errno.h>

#include "codec/json/json.h"
#include "codec/seccomp.h"

static void put_arch(struct mo_jw *w, const char *name)
{
    mo_jw_obj(w);
    mo_jw_member_cstr(w, "architecture", name);
    mo_jw_member_arr(w, "subArchitectures");
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_calls(struct mo_jw *w)
{
    size_t n;
    const struct mo_seccomp_call *v = mo_seccomp_calls(&n);

    mo_jw_obj(w);
    mo_jw_member_arr(w, "names");
    for (size_t i = 0; i < n; i++)
        mo_jw_cstr(w, v[i].name);
    mo_jw_end(w);
    mo_jw_member_cstr(w, "action", "SCMP_ACT_ALLOW");
    mo_jw_end(w);
}

static void put_name(struct mo_jw *w, const char *name, const char *action)
{
    mo_jw_obj(w);
    mo_jw_member_arr(w, "names");
    mo_jw_cstr(w, name);
    mo_jw_end(w);
    mo_jw_member_cstr(w, "action", action);
}

static void put_arg(struct mo_jw *w, unsigned arg, uint32_t mask,
                    uint32_t value)
{
    mo_jw_obj(w);
    mo_jw_member_u64(w, "index", arg);
    mo_jw_key(w, "value"); /* the mask; valueTwo is what must be left */
    mo_jw_u64(w, mask);
    mo_jw_member_u64(w, "valueTwo", value);
    mo_jw_member_cstr(w, "op", "SCMP_CMP_MASKED_EQ");
    mo_jw_end(w);
}

static void put_rule(struct mo_jw *w, const struct mo_seccomp_rule *r)
{
    put_name(w, r->call.name, "SCMP_ACT_ALLOW");
    mo_jw_member_arr(w, "args");
    put_arg(w, r->arg, r->mask, r->value);
    mo_jw_end(w);
    mo_jw_end(w);
}

/* All arguments of an entry must fit; one of the entries. */
static void put_socket(struct mo_jw *w, uint32_t family, uint32_t type,
                       uint32_t protocol)
{
    put_name(w, "socket", "SCMP_ACT_ALLOW");
    mo_jw_member_arr(w, "args");
    put_arg(w, 0, UINT32_MAX, family);
    put_arg(w, 1, MO_SECCOMP_TYPE_MASK, type);
    put_arg(w, 2, UINT32_MAX, protocol);
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_inet(struct mo_jw *w)
{
    for (int f = 0; f < 2; f++)
        for (int t = 0; t < 2; t++)
            for (int p = 0; p < 3; p++)
                put_socket(w, mo_seccomp_inet_families[f],
                           mo_seccomp_inet_types[t],
                           mo_seccomp_inet_protocols[p]);
}

int mo_seccomp_json(bool network, struct mo_buf *out)
{
    size_t n;
    const struct mo_seccomp_rule *rules = mo_seccomp_rules(&n);
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_cstr(&w, "defaultAction",
                      "SCMP_ACT_ERRNO"); /* EPERM, the default */
    mo_jw_member_arr(&w, "archMap");
    put_arch(&w, "SCMP_ARCH_AARCH64");
    put_arch(&w, "SCMP_ARCH_X86_64");
    mo_jw_end(&w);
    mo_jw_member_arr(&w, "syscalls");
    put_calls(&w);
    for (size_t i = 0; i < n; i++)
        put_rule(&w, &rules[i]);
    if (network)
        put_inet(&w);
    put_name(&w, mo_seccomp_clone3.name, "SCMP_ACT_ERRNO");
    mo_jw_member_u64(&w, "errnoRet", ENOSYS);
    mo_jw_end(&w);
    mo_jw_end(&w);
    mo_jw_end(&w);
    return mo_buf_err(out);
}
