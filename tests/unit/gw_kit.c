/* gw_kit.c - dials the scripted servers and opens the clients of gw_kit.h. */
#include "gw_kit.h"

#include <sys/socket.h>
#include <unistd.h>

static void peer_up(struct world *w, struct peer *p, struct mo_stream *s)
{
    p->s = s;
    p->rules = w->rules[w->npeers - 1] ? w->rules[w->npeers - 1] : w->rules[0];
    mo_frame_init(&p->f, 8 << 20);
    mo_buf_init(&p->log, 64 << 20);
    mo_stream_attach(s, &peer_cb, p);
}

static int gw_dial(void *ctx, const char *server, struct mo_span who,
                   struct mo_conn *c, struct mo_err *e)
{
    struct world *w = ctx;
    struct mo_stream *ours = NULL, *theirs = NULL;
    struct mo_link *k = NULL;
    int v[2], rc;

    (void)who;
    if (w->no_dial || w->npeers == PEERS ||
        (w->refused && strcmp(server, w->refused) == 0))
        return mo_fail(e, MO_EUNAVAIL, "no such server");
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v), 0);
    rc = mo_stream_from_fds(w->l, v[0], v[0], &ours, e);
    if (rc < 0) {
        (void)close(v[1]);
        return rc;
    }
    rc = mo_stream_from_fds(w->l, v[1], v[1], &theirs, e);
    if (rc < 0) {
        mo_stream_close(ours, NULL);
        return rc;
    }
    (void)snprintf(w->names[w->npeers], sizeof(w->names[0]), "%s", server);
    w->npeers++;
    peer_up(w, &w->peers[w->npeers - 1], theirs);
    rc = mo_link_lines(w->l, ours, 0, &k, e);
    if (rc == 0)
        mo_conn_dialed(c, k, NULL);
    return rc;
}

static void client_closed(void *ctx, const struct mo_err *why)
{
    (void)why;
    ((struct client *)ctx)->closed = true;
    ((struct client *)ctx)->x = NULL;
}

bool flag_is_up(void *ctx)
{
    return *(bool *)ctx;
}

static int client_open(struct world *w)
{
    struct client *c = &w->clients[w->nclients];
    struct mo_stream *s[2] = {NULL, NULL};
    int v[2];

    c->w = w;
    end_init(&c->me);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, v), 0);
    if (mo_stream_from_fds(w->l, v[0], v[0], &s[0], NULL) < 0) {
        (void)close(v[1]);
        return MO_ENOMEM;
    }
    if (mo_stream_from_fds(w->l, v[1], v[1], &s[1], NULL) < 0) {
        mo_stream_close(s[0], NULL);
        return MO_ENOMEM;
    }
    w->nclients++;
    end_attach(&c->me, s[0]);
    return mo_ep_stdio_open(w->ep, s[1], client_closed, c, &c->x, NULL);
}

void client_close(struct client *c)
{
    if (c->me.s)
        mo_stream_close(c->me.s, NULL);
    if (c->me.s)
        wait_for(c->w->l, end_closed, &c->me);
    if (c->x)
        wait_for(c->w->l, flag_is_up, &c->closed);
}

int world_open(struct world *w, struct mo_loop *l, const struct mo_gw_server *v,
               size_t n)
{
    struct mo_gateway_opts o = {.up = {.loop = l, .dial = gw_dial, .ctx = w},
                                .away_ms = w->away_ms,
                                .gather_ms = w->gather_ms,
                                .list_ms = 2000,
                                .judge = w->judge};
    struct mo_endpoint_opts eo = {.name = "gw", .version = "1"};
    int rc;

    w->l = l;
    rc = mo_gateway_new(&o, &w->g, NULL);
    if (rc < 0)
        return rc;
    rc = mo_gateway_servers(w->g, v, n, NULL);
    if (rc < 0)
        return rc;
    mo_gateway_endpoint(w->g, &eo);
    w->ep = mo_endpoint_new(l, &eo, NULL);
    if (!w->ep)
        return MO_ENOMEM;
    rc = mo_gateway_serve(w->g, w->ep);
    for (size_t i = 0; rc == 0 && i < CLIENTS; i++)
        rc = client_open(w);
    return rc;
}

static void world_gone(void *ctx)
{
    ((struct world *)ctx)->gone = true;
}

void world_close(struct world *w)
{
    for (size_t i = 0; i < w->nclients; i++)
        client_close(&w->clients[i]);
    if (w->ep) {
        mo_gateway_unserve(w->g, w->ep);
        mo_endpoint_free(w->ep);
    }
    if (w->g) {
        mo_gateway_close(w->g, world_gone, w);
        assert_false(w->gone);
        wait_for(w->l, flag_is_up, &w->gone);
    }
    for (size_t i = 0; i < w->npeers; i++) {
        if (w->peers[i].s)
            mo_stream_close(w->peers[i].s, NULL);
    }
    mo_loop_run(w->l);
    for (size_t i = 0; i < w->npeers; i++) {
        mo_frame_fini(&w->peers[i].f);
        mo_buf_fini(&w->peers[i].log);
    }
    for (size_t i = 0; i < w->nclients; i++)
        mo_buf_fini(&w->clients[i].me.got);
}

/* --- messages ------------------------------------------------------------ */

void tell(struct client *c, const char *line)
{
    struct mo_span v[2] = {mo_span_cstr(line), MO_SPAN("\n")};

    assert_int_equal(mo_stream_writev(c->me.s, v, 2), 0);
}

bool has_seen(void *ctx)
{
    struct seen *s = ctx;

    return mo_span_search(mo_buf_view(s->in), mo_span_cstr(s->text)) >= 0;
}

bool heard(const struct client *c, const char *text)
{
    return mo_span_search(mo_buf_view(&c->me.got), mo_span_cstr(text)) >= 0;
}

void settle(struct client *c)
{
    tell(c, "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"method\":\"ping\"}");
    hears(c, "{\"jsonrpc\":\"2.0\",\"id\":\"ping\",\"result\":{}}");
    mo_buf_reset(&c->me.got);
}

void hello(struct client *c, const char *init)
{
    tell(c, init);
    hears(c, "\"serverInfo\"");
    mo_buf_reset(&c->me.got);
}
