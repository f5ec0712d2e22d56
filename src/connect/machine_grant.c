#include "connect/machine_grant.h"

#include "secrets/resolve.h"

#define TEXT_MAX ((size_t)32 * 1024)

static int resolve(const struct mo_config *cfg, const char *text,
                   struct mo_arena *a, const char **out, struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = TEXT_MAX};

    if (!text)
        return 0;
    if (mo_reference_resolve(cfg, text, &b, e) < 0)
        return e->code;
    *out = mo_arena_strndup(a, b.len ? b.p : "", b.len);
    return *out ? 0 : mo_fail(e, MO_ENOMEM, "out of memory");
}

int mo_machine_grant(const struct mo_config *cfg,
                     const struct mo_config_oauth *c, struct mo_arena *a,
                     struct mo_oauth_machine *out, struct mo_err *e)
{
    static const enum mo_machine_grant grants[] = {
        [MO_GRANT_SIGN_IN] = MO_MACHINE_NONE,
        [MO_GRANT_CLIENT] = MO_MACHINE_CLIENT,
        [MO_GRANT_WORKLOAD] = MO_MACHINE_WORKLOAD,
        [MO_GRANT_ENTERPRISE] = MO_MACHINE_ENTERPRISE,
    };
    int rc;

    *out = (struct mo_oauth_machine){.grant = grants[c->grant]};
    if (out->grant == MO_MACHINE_NONE)
        return 0;
    out->assertion_file = c->assertion_file;
    out->idp_token = c->idp.token_endpoint;
    rc = resolve(cfg, c->private_key, a, &out->private_key, e);
    if (rc == 0)
        rc = resolve(cfg, c->idp.client_id, a, &out->idp_client, e);
    if (rc == 0)
        rc = resolve(cfg, c->idp.client_secret, a, &out->idp_secret, e);
    return rc;
}
