/* hello.c - reads an engine's API version and abilities. */
#include <stdio.h>

#include "engine/priv.h"

struct hello {
    struct mo_engine *en;
    struct mo_engine_facts f;
    void (*done)(void *ctx, const struct mo_engine_facts *f,
                 const struct mo_err *why);
    void *ctx;
};

static void finish_hello(struct hello *h, struct mo_err *why)
{
    if (why)
        (void)mo_wrap(why, "engine at %s", h->en->host);
    else
        h->en->facts = h->f;
    h->done(h->ctx, why ? NULL : &h->en->facts, why);
    mo_free(h);
}

static void copy_string(struct mo_json v, char *out, size_t max)
{
    struct mo_buf b;

    mo_buf_init(&b, max - 1);
    if (mo_json_is(v, MO_JSON_STRING) && mo_json_str_buf(v, &b) == 0)
        (void)snprintf(out, max, "%s", mo_buf_cstr(&b));
    mo_buf_fini(&b);
}

static bool member_flag(struct mo_json obj, const char *key)
{
    bool v = false;

    (void)mo_json_bool(mo_json_get(obj, key), &v);
    return v;
}

/* "1.41" -> 41; 0 if it is malformed. */
static unsigned minor_of(struct mo_json v)
{
    char s[16] = "";
    uint64_t n;

    copy_string(v, s, sizeof(s));
    if (strncmp(s, "1.", 2) != 0 || mo_span_u64(mo_span_cstr(s + 2), &n) < 0 ||
        n > 999)
        return 0;
    return (unsigned)n;
}

/* SecurityOptions: ["name=seccomp,profile=default", "name=userns"]. */
static bool has_security(struct mo_json info, const char *name)
{
    char s[64];

    for (struct mo_json_walk at =
             mo_json_walk(mo_json_get(info, "SecurityOptions"));
         mo_json_step(&at);) {
        struct mo_span rest, word;

        s[0] = 0;
        copy_string(at.val, s, sizeof(s));
        rest = mo_span_cstr(s);
        word = mo_span_cut(&rest, ',');
        if (mo_span_starts(word, MO_SPAN("name=")) &&
            mo_span_is(mo_span_skip(word, 5), name))
            return true;
    }
    return false;
}

static void on_info(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct hello *h = ctx;
    struct mo_err e;
    uint64_t cpus = 0;

    if (why || !mo_json_is(r->json, MO_JSON_OBJECT)) {
        if (why)
            e = *why;
        else
            (void)mo_fail(&e, MO_EPROTO, "its /info is not an object");
        finish_hello(h, &e);
        return;
    }
    (void)mo_json_u64(mo_json_get(r->json, "NCPU"), &cpus);
    h->f.cpus = (unsigned)cpus;
    h->f.seccomp = has_security(r->json, "seccomp");
    h->f.userns = has_security(r->json, "userns");
    h->f.live_restore = member_flag(r->json, "LiveRestoreEnabled");
    h->f.memory_limit = member_flag(r->json, "MemoryLimit");
    h->f.swap_limit = member_flag(r->json, "SwapLimit");
    h->f.pids_limit = member_flag(r->json, "PidsLimit");
    h->f.cpu_quota = member_flag(r->json, "CpuCfsQuota");
    finish_hello(h, NULL);
}

static bool is_podman(struct mo_json version)
{
    for (struct mo_json_walk at =
             mo_json_walk(mo_json_get(version, "Components"));
         mo_json_step(&at);)
        if (mo_json_str_eq(mo_json_get(at.val, "Name"),
                           MO_SPAN("Podman Engine")))
            return true;
    return false;
}

static int agree_version(struct hello *h, struct mo_json version,
                         struct mo_err *e)
{
    unsigned newest = minor_of(mo_json_get(version, "ApiVersion"));
    unsigned oldest = minor_of(mo_json_get(version, "MinAPIVersion"));

    if (newest < MO_ENGINE_API_MIN || oldest > MO_ENGINE_API_MAX)
        return mo_fail(
            e, MO_EUNAVAIL,
            "it supports API 1.%u to 1.%u; this program 1.%u to 1.%u", oldest,
            newest, MO_ENGINE_API_MIN, MO_ENGINE_API_MAX);
    h->f.api = newest < MO_ENGINE_API_MAX ? newest : MO_ENGINE_API_MAX;
    h->f.podman = is_podman(version);
    copy_string(mo_json_get(version, "Version"), h->f.version,
                sizeof(h->f.version));
    copy_string(mo_json_get(version, "Arch"), h->f.arch, sizeof(h->f.arch));
    return 0;
}

static void on_version(void *ctx, const struct mo_engine_reply *r,
                       const struct mo_err *why)
{
    static const struct mo_engine_req info = {.path = "/info"};
    struct hello *h = ctx;
    struct mo_err e;
    int rc;

    if (why) {
        e = *why;
        finish_hello(h, &e);
        return;
    }
    rc = agree_version(h, r->json, &e);
    if (rc == 0) {
        h->en->api = h->f.api;
        rc = mo_engine_ask(h->en, &info, on_info, h, NULL, &e);
    }
    if (rc < 0)
        finish_hello(h, &e);
}

/* /version needs no version in its path, so it is asked first. */
int mo_engine_hello(struct mo_engine *en,
                    void (*done)(void *ctx, const struct mo_engine_facts *f,
                                 const struct mo_err *why),
                    void *ctx, struct mo_err *e)
{
    static const struct mo_engine_req version = {.path = "/version"};
    struct hello *h = mo_new(struct hello);
    int rc;

    if (!h)
        return mo_fail(e, MO_ENOMEM, "engine");
    *h = (struct hello){.en = en, .done = done, .ctx = ctx};
    en->api = 0;
    rc = mo_engine_ask(en, &version, on_version, h, NULL, e);
    if (rc < 0)
        mo_free(h);
    return rc;
}
