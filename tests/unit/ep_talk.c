/* ep_talk.c - the client of ep_talk.h. */
#include "ep_talk.h"

#define SENTINEL "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"result\":{}}\n"

void talk_closed(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct talk *)ctx)->closed = true;
}

bool flag_up(void *ctx)
{
    return *(bool *)ctx;
}

int talk_open(struct talk *t, struct mo_loop *l,
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

void talk_close(struct talk *t)
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

void say(struct talk *t, const char *lines)
{
    assert_int_equal(mo_stream_write(t->me.s, mo_span_cstr(lines)), 0);
}

static bool talk_saw_end(void *ctx)
{
    struct talk *t = ctx;

    return mo_span_ends(mo_buf_view(&t->me.got), MO_SPAN(SENTINEL));
}

const char *hear(struct talk *t)
{
    say(t, "{\"jsonrpc\":\"2.0\",\"id\":\"end\",\"method\":\"ping\"}\n");
    wait_for(t->k.l, talk_saw_end, t);
    t->me.got.len -= sizeof(SENTINEL) - 1;
    return mo_buf_cstr(&t->me.got);
}
