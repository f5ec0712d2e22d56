/* Whatever servers say about their authorization: no crash, and what is
 * accepted keeps the rules. The first byte chooses the reader. */
#include <stdlib.h>

#include "mcp/oauth/oauth_device.h"
#include "mcp/oauth/oauth_machine.h"

#define SERVER "https://mcp.example/a/mcp"
#define ISSUER "https://as.example"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
    if (!ok)
        abort();
}

static void read_documents(struct mo_arena *a, struct mo_span in)
{
    struct mo_oauth_resource r;
    struct mo_oauth_server s;

    if (mo_oauth_resource_parse(a, in, SERVER, &r, NULL) == 0)
        must(r.nservers > 0 && r.resource);
    if (mo_oauth_server_parse(a, in, ISSUER, SERVER, &s, NULL) == 0)
        must(strcmp(s.issuer, ISSUER) == 0 && s.auth &&
             mo_oauth_url_ok(s.token, SERVER, NULL) == 0);
}

static void read_answers(struct mo_arena *a, struct mo_span in)
{
    struct mo_token k = {.scope = NULL};
    struct mo_oauth_client c;
    struct mo_oauth_device d;
    const char *grant = NULL;

    if (mo_oauth_token_parse(a, in, 1, &k, NULL) == 0)
        must(k.access && !strpbrk(k.access, " \r\n"));
    if (mo_oauth_register_parse(a, in, MO_OAUTH_BASIC, &c, NULL) == 0)
        must(c.id && c.method);
    (void)mo_oauth_error(a, in);
    if (mo_oauth_device_parse(a, in, SERVER, &d, NULL) == 0)
        must(mo_oauth_url_ok(d.url, SERVER, NULL) == 0 &&
             mo_span_between(mo_span_cstr(d.user_code), ' ', '~') &&
             d.interval_ms >= MO_DEVICE_MIN_MS &&
             d.interval_ms <= MO_DEVICE_MAX_MS &&
             d.life_ms <= MO_DEVICE_LIFE_MS);
    if (mo_machine_exchange_parse(a, in, &grant, NULL) == 0)
        must(grant[0] && !strpbrk(grant, " \r\n"));
}

static void read_texts(struct mo_arena *a, struct mo_span in)
{
    struct mo_oauth_server s = {.issuer = ISSUER, .iss = true};
    struct mo_oauth_challenge c;
    struct mo_oauth_urls u;
    const char *text = mo_arena_strndup(a, in.p, in.n), *both = NULL;

    (void)mo_oauth_challenge(a, in, &c);
    if (mo_oauth_redirect(a, in, "s", &s, &both, NULL) == 0)
        must(both != NULL);
    if (!text)
        return;
    (void)mo_oauth_issuer_urls(a, text, &u);
    (void)mo_oauth_resource_urls(a, text, NULL, &u);
    if (mo_oauth_scope_union(a, text, "x", &both) == 0)
        must(mo_oauth_scope_covers(both, text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct mo_arena *, struct mo_span) = {
        read_documents, read_answers, read_texts};
    struct mo_arena a;

    if (size == 0)
        return 0;
    mo_arena_init(&a, (size_t)4 * 1024 * 1024);
    readers[data[0] % MO_COUNT(readers)](
        &a, mo_span((const char *)data + 1, size - 1));
    mo_arena_fini(&a);
    return 0;
}
