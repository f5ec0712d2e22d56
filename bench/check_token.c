/* check_token.c - what it costs to find out who sent a signed access token.
 *
 *   check_token new|known ISSUER AUDIENCE TOKEN CHECKS
 *
 * new: nothing is remembered, so each check reads the claims and verifies the
 * signature. known: the token was checked before. The keys are read from the
 * provider first, which is not measured. Prints one line of JSON: checks, CPU
 * time of all threads. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "meter.h"
#include "people/access_token.h"

#define CHECKS_MAX 10000000
#define WAIT_MS    10000

struct bench {
    struct mo_loop *loop;
    struct mo_httpc *http;
    struct mo_provider *provider;
    struct mo_access_tokens *tokens;
    struct mo_access_opts opts;
    struct mo_provider_wait wait;
    bool is_read, is_gone;
};

static void on_read(struct mo_provider_wait *w, const struct mo_err *why)
{
    if (why)
        meter_die("%s", why->msg);
    mo_container_of(w, struct bench, wait)->is_read = true;
}

static bool is_read(void *ctx)
{
    return ((struct bench *)ctx)->is_read;
}

static void on_gone(void *ctx)
{
    ((struct bench *)ctx)->is_gone = true;
}

static bool is_gone(void *ctx)
{
    return ((struct bench *)ctx)->is_gone;
}

static void open_all(struct bench *b, const char *issuer)
{
    const struct mo_httpc_opts o = {.active = 2};
    struct mo_err e;

    b->loop = mo_loop_new(NULL, &e);
    if (!b->loop)
        meter_die("%s", e.msg);
    b->http = mo_httpc_new(b->loop, &o, &e);
    if (!b->http || mo_access_tokens_new(&b->tokens, &e) < 0 ||
        mo_provider_new(b->loop, b->http, issuer, &b->provider, &e) < 0)
        meter_die("%s", e.msg);
    b->wait.done = on_read;
    mo_provider_read(b->provider, &b->wait);
    if (!mo_loop_until(b->loop, is_read, b, WAIT_MS))
        meter_die("the provider does not answer");
}

static void close_all(struct bench *b)
{
    mo_access_tokens_free(b->tokens);
    mo_provider_close(b->provider);
    mo_httpc_close(b->http, on_gone, b);
    (void)mo_loop_until(b->loop, is_gone, b, WAIT_MS);
    mo_loop_free(b->loop);
}

static void check(struct bench *b, struct mo_span token)
{
    struct mo_provider *from = NULL;
    struct mo_person who;
    struct mo_err e;

    if (mo_access_token_check(b->tokens, &b->opts, token, &who, &from, &e) < 0)
        meter_die("%s", e.msg);
}

int main(int argc, char **argv)
{
    char everyone[] = "p:*", *roles[] = {everyone};
    struct mo_config_provider provider = {
        .name = "p", .name_claim = "sub", .groups_claim = "groups"};
    struct mo_config config = {
        .people.providers = {&provider, 1},
        .people.roles.user = {.v = (void *)roles, .n = 1},
    };
    struct bench b = {.opts = {.config = &config, .providers = &b.provider}};
    struct mo_span token;
    unsigned n;
    uint64_t cpu;
    bool is_new;

    if (argc != 6)
        meter_die("usage: check_token new|known ISSUER AUDIENCE TOKEN CHECKS");
    is_new = strcmp(argv[1], "new") == 0;
    provider.issuer = argv[2];
    b.opts.audience = argv[3];
    token = mo_span_cstr(argv[4]);
    n = meter_arg(argv[5], "CHECKS", CHECKS_MAX);
    open_all(&b, argv[2]);
    check(&b, token);
    cpu = meter_cpu_ns(getpid());
    for (unsigned i = 0; i < n; i++) {
        if (is_new)
            mo_access_tokens_clear(b.tokens);
        check(&b, token);
    }
    cpu = meter_cpu_ns(getpid()) - cpu;
    (void)printf("{\"ops\":%u,\"cpu_ns\":%llu}\n", n, (unsigned long long)cpu);
    close_all(&b);
    return 0;
}
