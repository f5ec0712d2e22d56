/* ep_talk.h - an endpoint on a stream of lines and a client that says what it
 * is told to and hears what comes. */
#ifndef MO_EP_TALK_H
#define MO_EP_TALK_H

#include "ep_kit.h"
#include "mcp/server/ep_stdio.h"

#define SENTINEL "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"result\":{}}\n"

struct talk {
    struct kit k;
    struct end me; /* the client */
    struct mo_ep_stdio *x;
    bool closed;
};

static inline void talk_closed(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct talk *)ctx)->closed = true;
}

static inline bool flag_up(void *ctx)
{
    return *(bool *)ctx;
}

static inline int talk_open(struct talk *t, struct mo_loop *l,
                            const struct mo_endpoint_limits *limits)
{
    struct mo_stream *s[2];

    *t = (struct talk){.closed = false};
    end_init(&t->me);
    if (kit_open(&t->k, l, limits) < 0)
        return MO_ENOMEM;
    stream_pair(l, s);
    end_attach(&t->me, s[0]);
    return mo_ep_stdio_open(t->k.ep, s[1], talk_closed, t, &t->x, NULL);
}

static inline void talk_close(struct talk *t)
{
    if (t->me.s)
        mo_stream_close(t->me.s, NULL);
    if (t->me.s)
        wait_for(t->k.l, end_closed, &t->me);
    if (t->x)
        wait_for(t->k.l, flag_up, &t->closed);
    mo_endpoint_free(t->k.ep);
    mo_buf_fini(&t->me.got);
}

static inline void say(struct talk *t, const char *lines)
{
    assert_int_equal(mo_stream_write(t->me.s, mo_span_cstr(lines)), 0);
}

static inline bool talk_saw_end(void *ctx)
{
    struct talk *t = ctx;

    return mo_span_ends(mo_buf_view(&t->me.got), MO_SPAN(SENTINEL));
}

/* Everything that came until a ping was answered. */
static inline const char *hear(struct talk *t)
{
    say(t, "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"method\":\"ping\"}\n");
    wait_for(t->k.l, talk_saw_end, t);
    t->me.got.len -= sizeof(SENTINEL) - 1;
    return mo_buf_cstr(&t->me.got);
}

#define INIT(v)                                                                \
    "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"      \
    "{\"protocolVersion\":\"" v "\",\"capabilities\":{\"elicitation\":{}},"    \
    "\"clientInfo\":{\"name\":\"t\",\"version\":\"1\"}}}\n"                    \
    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n"
#define CALL(id, name)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","            \
    "\"params\":{\"name\":\"" name "\"}}\n"
#define MCALL(id, name, more)                                                  \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","            \
    "\"params\":{\"name\":\"" name "\"," more "}}\n"
#define RES(id, r)    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"result\":" r "}\n"
#define ERR(id, c, m) ERRD(id, c, m "\"")
#define ERRD(id, c, m)                                                         \
    "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"error\":{\"code\":" c                \
    ",\"message\":\"" m "}}\n"

#endif
