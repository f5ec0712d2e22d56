#include "web/echo.h"

#define TEXT_MAX ((size_t)1024)

static bool on_connect(void *ctx, struct mo_sock *k, struct mo_json auth,
                       struct mo_err *e)
{
    struct mo_json refuse = mo_json_get(auth, "refuse");
    mo_autobuf struct mo_buf b = {.max = sizeof(e->msg)};

    (void)ctx;
    (void)k;
    if (!mo_json_is(refuse, MO_JSON_STRING))
        return true;
    (void)mo_json_str_buf(refuse, &b);
    (void)mo_fail(e, MO_EPOLICY, "%s", mo_buf_cstr(&b));
    return false;
}

static void on_ready(void *ctx, struct mo_sock *k)
{
    (void)ctx;
    (void)mo_sock_emit(k, "hello", MO_SPAN("\"echo\""));
}

/* The array's text from element i on, without brackets. */
static struct mo_span from(struct mo_json args, size_t i)
{
    struct mo_json first = mo_json_at(args, i);
    const char *end = args.p + args.n - 1;

    if (!first.p)
        return mo_span(NULL, 0);
    return mo_span(first.p, (size_t)(end - first.p));
}

static void echo_back(struct mo_sock *k, struct mo_json name,
                      struct mo_json args)
{
    mo_autobuf struct mo_buf b = {.max = TEXT_MAX};

    if (mo_json_str_buf(name, &b) == 0)
        (void)mo_sock_emit(k, mo_buf_cstr(&b), from(args, 1));
}

static void say_to(struct mo_sock *listener, struct mo_span args)
{
    if (listener)
        (void)mo_sock_emit(listener, "said", args);
}

static void on_event(void *ctx, struct mo_sock *k, struct mo_json name,
                     struct mo_json args, int64_t ack)
{
    struct mo_sock **listener = ctx;

    (void)mo_sock_ack(k, ack, from(args, 1));
    if (mo_json_str_eq(name, MO_SPAN("listen")))
        *listener = k;
    else if (mo_json_str_eq(name, MO_SPAN("say")))
        say_to(*listener, from(args, 1));
    else if (mo_json_str_eq(name, MO_SPAN("kick")))
        mo_sock_disconnect(k, false);
    else if (mo_json_str_eq(name, MO_SPAN("drop")))
        mo_sock_disconnect(k, true);
    else
        echo_back(k, name, args);
}

static void on_disconnect(void *ctx, struct mo_sock *k, const char *reason)
{
    struct mo_sock **listener = ctx;

    (void)reason;
    if (*listener == k)
        *listener = NULL;
}

void mo_echo_opts(struct mo_siod_opts *o, struct mo_sock **listener)
{
    o->on_connect = on_connect;
    o->on_ready = on_ready;
    o->on_event = on_event;
    o->on_disconnect = on_disconnect;
    o->ctx = listener;
}
