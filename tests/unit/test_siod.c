/* The Socket.IO server from its owner's side: acks, limits, the order of
 * callbacks; and all of it while allocations fail. Clients are bare sockets, so
 * every failing allocation is the server's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "mo_test.h"
#include "web/siod.h"

#define WAIT_MS    10000
#define TURN_MS    3 /* for a step of a torture, where nothing may come */
#define SOCKS_MAX  8
#define GOT_MAX    ((size_t)512 * 1024)
#define BIG        ((size_t)60 * 1000)
#define LONG_FRAME 126

struct site {
    struct mo_loop *l;
    struct mo_httpd *httpd;
    struct mo_siod *siod;
    unsigned port;
    /* what the owner saw */
    struct mo_sock *socks[SOCKS_MAX]; /* live, in the order they came */
    unsigned nsocks;
    int connects, disconnects, events, readies;
    char reason[64];
    bool busy; /* inside a call: no callback may come */
    bool drop; /* whoever sends an event */
    bool httpd_gone, siod_gone;
    void (*at_event)(struct site *t, struct mo_sock *k);
};

/* --- the owner ----------------------------------------------------------- */

static bool on_connect(void *ctx, struct mo_sock *k, struct mo_json auth,
                       struct mo_err *e)
{
    struct site *t = ctx;

    assert_false(t->busy);
    assert_null(k->data);
    if (mo_json_get(auth, "refuse").p) {
        (void)mo_fail(e, MO_EPOLICY, "not you");
        return false;
    }
    assert_int_equal(mo_sock_emit(k, "early", mo_span(NULL, 0)), MO_ECLOSED);
    k->data = t;
    t->connects++;
    return true;
}

static void on_ready(void *ctx, struct mo_sock *k)
{
    struct site *t = ctx;

    assert_false(t->busy);
    t->readies++;
    assert_true(t->nsocks < SOCKS_MAX);
    t->socks[t->nsocks++] = k;
}

static void on_event(void *ctx, struct mo_sock *k, struct mo_json name,
                     struct mo_json args, int64_t ack)
{
    struct site *t = ctx;

    (void)name;
    assert_false(t->busy);
    assert_ptr_equal(k->data, t);
    assert_true(mo_json_is(args, MO_JSON_ARRAY));
    t->events++;
    (void)mo_sock_ack(k, ack, MO_SPAN("\"got it\""));
    if (t->at_event)
        t->at_event(t, k);
}

static void on_disconnect(void *ctx, struct mo_sock *k, const char *reason)
{
    struct site *t = ctx;
    unsigned i = 0;

    assert_false(t->busy);
    assert_ptr_equal(k->data, t);
    t->disconnects++;
    (void)snprintf(t->reason, sizeof(t->reason), "%s", reason);
    assert_int_equal(mo_sock_emit(k, "late", mo_span(NULL, 0)), MO_ECLOSED);
    while (i < t->nsocks && t->socks[i] != k)
        i++;
    assert_true(i < t->nsocks);
    t->nsocks--;
    memmove(&t->socks[i], &t->socks[i + 1],
            (t->nsocks - i) * sizeof(struct mo_sock *));
}

/* --- the site ------------------------------------------------------------ */

static void on_request(void *ctx, struct mo_req *rq)
{
    struct site *t = ctx;

    if (t->siod)
        mo_siod_handle(t->siod, rq);
    else
        mo_req_abort(rq);
}

static void on_httpd_gone(void *ctx)
{
    ((struct site *)ctx)->httpd_gone = true;
}

static void on_siod_gone(void *ctx)
{
    struct site *t = ctx;

    assert_false(t->busy);
    t->siod = NULL;
    t->siod_gone = true;
}

static bool all_gone(void *ctx)
{
    const struct site *t = ctx;

    return t->httpd_gone && t->siod_gone;
}

/* False when memory did not allow it; close it all the same. */
static bool site_open(struct site *t, struct mo_loop *l,
                      const struct mo_eiod_opts *eio)
{
    struct mo_httpd_opts ho = {.handler = on_request, .ctx = t};
    struct mo_listen_opts lo = {.addr = "127.0.0.1:0"};
    struct mo_siod_opts so = {.on_connect = on_connect,
                              .on_ready = on_ready,
                              .on_event = on_event,
                              .on_disconnect = on_disconnect,
                              .ctx = t};
    struct mo_err e;

    *t = (struct site){.l = l};
    if (eio)
        so.eio = *eio;
    t->httpd = mo_httpd_new(l, &ho, &e);
    t->siod = mo_siod_new(l, &so, &e);
    t->httpd_gone = !t->httpd;
    t->siod_gone = !t->siod;
    if (!t->httpd || !t->siod || mo_httpd_listen(t->httpd, &lo, &e) < 0)
        return false;
    t->port = mo_httpd_port(t->httpd);
    return true;
}

static void site_close(struct site *t)
{
    t->busy = true;
    if (t->siod)
        mo_siod_close(t->siod, on_siod_gone, t);
    if (t->httpd)
        mo_httpd_close(t->httpd, 0, on_httpd_gone, t);
    t->busy = false;
    assert_true(mo_loop_until(t->l, all_gone, t, WAIT_MS));
    assert_int_equal(t->nsocks, 0);
    assert_int_equal(t->connects, t->disconnects);
}

static struct mo_loop *loop_new(void)
{
    struct mo_err e;
    struct mo_loop *l = mo_loop_new(NULL, &e);

    assert_non_null(l);
    return l;
}

/* --- a client ------------------------------------------------------------ */

struct client {
    int fd;
    bool ended;
    size_t len;
    char got[GOT_MAX]; /* as it came; a server's frames are not masked */
    const char *want;
};

static struct client *dial(struct site *t)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)t->port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct client *c = calloc(1, sizeof(*c));

    assert_non_null(c);
    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(c->fd >= 0);
    assert_int_equal(connect(c->fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return c;
}

static void hang_up(struct client *c)
{
    (void)close(c->fd);
    free(c);
}

static void say(struct client *c, const void *p, size_t n)
{
    (void)send(c->fd, p, n, MSG_NOSIGNAL);
}

static void says(struct client *c, const char *text)
{
    say(c, text, strlen(text));
}

/* A masked text frame; a key of zeros leaves the text as it is. */
static void frame(struct client *c, const char *text)
{
    size_t n = strlen(text);
    unsigned char b[256] = {0x81, (unsigned char)(0x80 | n)};

    assert_true(n < LONG_FRAME);
    memcpy(b + 6, text, n);
    say(c, b, n + 6);
}

static void receive(struct client *c)
{
    ssize_t n = 1;

    while (n > 0 && c->len + 1 < GOT_MAX) {
        n = recv(c->fd, c->got + c->len, GOT_MAX - 1 - c->len, MSG_DONTWAIT);
        if (n > 0)
            c->len += (size_t)n;
    }
    c->ended = c->ended || n == 0;
}

static bool has_come(void *ctx)
{
    struct client *c = ctx;

    receive(c);
    return memmem(c->got, c->len, c->want, strlen(c->want)) != NULL;
}

static bool has_ended(void *ctx)
{
    struct client *c = ctx;

    receive(c);
    c->len = 0;
    return c->ended;
}

/* Wait for text; received bytes up to its end are dropped. */
static void expect(struct site *t, struct client *c, const char *want)
{
    const char *at;
    size_t used;

    c->want = want;
    if (!mo_loop_until(t->l, has_come, c, WAIT_MS))
        fail_msg("never came: %s; got %zu bytes: %.300s", want, c->len, c->got);
    at = memmem(c->got, c->len, want, strlen(want));
    used = (size_t)(at - c->got) + strlen(want);
    c->len -= used;
    memmove(c->got, c->got + used, c->len);
    c->got[c->len] = '\0';
}

static void ask_websocket(struct client *c, const char *more)
{
    char head[512];

    (void)snprintf(head, sizeof(head),
                   "GET /socket.io/?EIO=4&transport=websocket%s HTTP/1.1\r\n"
                   "Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                   "Sec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
                   more);
    says(c, head);
}

static struct client *join_up(struct site *t)
{
    struct client *c = dial(t);

    ask_websocket(c, "");
    expect(t, c, "\"sid\"");
    frame(c, "40");
    expect(t, c, "40{\"sid\"");
    return c;
}

static void ask_polling(struct client *c, const char *method, const char *sid,
                        const char *body)
{
    char head[512];

    (void)snprintf(head, sizeof(head),
                   "%s /socket.io/?EIO=4&transport=polling%s%s HTTP/1.1\r\n"
                   "Host: x\r\nContent-Length: %zu\r\n\r\n%s",
                   method, sid[0] ? "&sid=" : "", sid, strlen(body), body);
    says(c, head);
}

static bool no_socks(void *ctx)
{
    const struct site *t = ctx;

    return t->nsocks == 0;
}

static bool no_sessions(void *ctx)
{
    const struct site *t = ctx;

    return mo_siod_stats(t->siod).eio.sessions == 0;
}

/* --- lives --------------------------------------------------------------- */

static void kick(struct site *t, struct mo_sock *k)
{
    t->busy = true;
    mo_sock_disconnect(k, false);
    mo_sock_disconnect(k, true); /* it has left already */
    t->busy = false;
    assert_int_equal(mo_sock_emit(k, "x", mo_span(NULL, 0)), MO_ECLOSED);
    assert_int_equal(mo_sock_ack(k, 1, mo_span(NULL, 0)), MO_ECLOSED);
}

static void test_kick_and_return(void **state)
{
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c;

    (void)state;
    assert_true(site_open(&t, l, NULL));
    c = join_up(&t);
    t.at_event = kick;
    frame(c, "43999[]"); /* an answer to nothing is ignored */
    frame(c, "42[\"go\"]");
    expect(&t, c, "41");
    assert_true(mo_loop_until(l, no_socks, &t, WAIT_MS));
    assert_string_equal(t.reason, "server namespace disconnect");
    assert_int_equal(mo_siod_stats(t.siod).sockets, 0);
    assert_int_equal(mo_siod_stats(t.siod).eio.sessions, 1);
    frame(c, "42[\"was on its way\"]");
    frame(c, "40");
    expect(&t, c, "40{\"sid\"");
    assert_int_equal(t.nsocks, 1);
    frame(c, "41");
    assert_true(mo_loop_until(l, no_socks, &t, WAIT_MS));
    assert_string_equal(t.reason, "client namespace disconnect");
    frame(c, "40{\"refuse\":1}");
    expect(&t, c, "44{\"message\":\"not you\"}");
    frame(c, "40");
    expect(&t, c, "40{\"sid\"");
    assert_int_equal(t.connects, 3);
    hang_up(c);
    assert_true(mo_loop_until(l, no_socks, &t, WAIT_MS));
    assert_string_equal(t.reason, "transport close");
    site_close(&t);
    mo_loop_free(l);
}

static void test_server_ends(void **state)
{
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c[3], *poll;

    (void)state;
    assert_true(site_open(&t, l, NULL));
    for (int i = 0; i < 3; i++)
        c[i] = join_up(&t);
    poll = dial(&t);
    ask_polling(poll, "GET", "", "");
    expect(&t, poll, "\"sid\"");
    mo_sock_disconnect(t.socks[1], true); /* on its way at the same time */
    site_close(&t);
    assert_int_equal(t.disconnects, 3);
    for (int i = 0; i < 3; i++) {
        assert_true(mo_loop_until(l, has_ended, c[i], WAIT_MS));
        hang_up(c[i]);
    }
    hang_up(poll);
    mo_loop_free(l);
}

/* --- limits -------------------------------------------------------------- */

static void test_too_many_sessions(void **state)
{
    const struct mo_eiod_opts two = {.sessions = 2};
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *a, *b, *c;

    (void)state;
    assert_true(site_open(&t, l, &two));
    a = join_up(&t);
    b = join_up(&t);
    c = dial(&t);
    ask_websocket(c, "");
    expect(&t, c, "HTTP/1.1 503");
    ask_polling(c, "GET", "", "");
    expect(&t, c, "HTTP/1.1 503");
    hang_up(a);
    hang_up(b);
    assert_true(mo_loop_until(l, no_sessions, &t, WAIT_MS));
    ask_polling(c, "GET", "", "");
    expect(&t, c, "\"sid\"");
    hang_up(c);
    site_close(&t);
    mo_loop_free(l);
}

/* A client that does not read: its queue is limited, then it is closed. */
static void test_too_slow(void **state)
{
    const struct mo_eiod_opts small = {.max_queue = 4 * BIG};
    static char args[BIG];
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c;
    int rc = 0, sent = 0;

    (void)state;
    memset(args, '1', sizeof(args));
    assert_true(site_open(&t, l, &small));
    c = join_up(&t);
    while (rc == 0 && sent++ < 1000) {
        t.busy = true;
        rc = mo_sock_emit(t.socks[0], "x", mo_span(args, sizeof(args)));
        t.busy = false;
    }
    assert_int_equal(rc, MO_EBUSY);
    assert_int_equal(t.disconnects, 0); /* never from inside a call */
    assert_true(mo_loop_until(l, no_socks, &t, WAIT_MS));
    assert_string_equal(t.reason, "client too slow");
    assert_int_equal(mo_siod_stats(t.siod).eio.sessions, 0);
    hang_up(c);
    site_close(&t);
    mo_loop_free(l);
}

/* An event larger than any queue is the owner's mistake, not the client's. */
static void test_event_too_big(void **state)
{
    size_t n = MO_STREAM_QUEUE_MAX;
    char *args = malloc(n);
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c;

    (void)state;
    assert_non_null(args);
    memset(args, '1', n);
    assert_true(site_open(&t, l, NULL));
    c = join_up(&t);
    assert_int_equal(mo_sock_emit(t.socks[0], "x", mo_span(args, n)),
                     MO_ETOOBIG);
    assert_int_equal(mo_sock_emit(t.socks[0], "small", MO_SPAN("1")), 0);
    expect(&t, c, "42[\"small\",1]");
    hang_up(c);
    site_close(&t);
    free(args);
    mo_loop_free(l);
}

static void test_refused_too_often(void **state)
{
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c = NULL;

    (void)state;
    assert_true(site_open(&t, l, NULL));
    c = dial(&t);
    ask_websocket(c, "");
    for (int i = 0; i < MO_SIO_REFUSALS_MAX; i++)
        frame(c, i % 2 ? "40/other," : "40{\"refuse\":1}");
    expect(&t, c, "44/other,{\"message\":\"Invalid namespace\"}");
    expect(&t, c, "refused too often");
    assert_true(mo_loop_until(l, has_ended, c, WAIT_MS));
    hang_up(c);
    site_close(&t);
    mo_loop_free(l);
}

static void test_heartbeat(void **state)
{
    const struct mo_eiod_opts quick = {.ping_interval_ms = 20,
                                       .ping_timeout_ms = 2000};
    struct site t;
    struct mo_loop *l = loop_new();
    struct client *c;

    (void)state;
    assert_true(site_open(&t, l, &quick));
    c = join_up(&t);
    for (int i = 0; i < 5; i++) {
        expect(&t, c,
               "\x81\x01"
               "2");
        frame(c, "3");
    }
    assert_true(mo_loop_until(l, no_socks, &t, WAIT_MS));
    assert_string_equal(t.reason, "ping timeout");
    hang_up(c);
    site_close(&t);
    mo_loop_free(l);
}

/* --- memory runs out ----------------------------------------------------- */

static bool never(void *ctx)
{
    (void)ctx;
    return false;
}

static void turns(struct site *t, struct client *c)
{
    (void)mo_loop_until(t->l, never, NULL, TURN_MS);
    if (c)
        receive(c);
    if (c)
        c->got[c->len] = '\0';
}

static void busy_event(struct site *t, struct mo_sock *k)
{
    if (t->drop) {
        mo_sock_disconnect(k, true);
        return;
    }
    (void)mo_sock_emit(k, "said", MO_SPAN("1"));
    if (t->events % 3 == 0)
        mo_sock_disconnect(k, t->events % 2 == 0);
}

static void sid_of(const struct client *c, char sid[64])
{
    const char *at = strstr(c->got, "\"sid\":\"");

    sid[0] = '\0';
    if (at)
        (void)snprintf(sid, 64, "%.*s", (int)strcspn(at + 7, "\""), at + 7);
}

static void by_websocket(struct site *t)
{
    struct client *c = dial(t);

    ask_websocket(c, "&model=x");
    frame(c, "40{\"a\":1}"); /* comes with the head */
    turns(t, c);
    frame(c, "420[\"ev\",{}]");
    frame(c, "40/x,");
    turns(t, c);
    frame(c, "430[1]");
    frame(c, "42[\"ev\"]");
    turns(t, c);
    frame(c, "42[\"ev\"]");
    turns(t, c);
    hang_up(c);
    turns(t, NULL);
}

static void by_polling(struct site *t)
{
    struct client *c = dial(t), *d, *ws;
    char sid[64], more[80];

    ask_polling(c, "GET", "", "");
    turns(t, c);
    sid_of(c, sid);
    ask_polling(c, "POST", sid,
                "40\x1e"
                "42[\"ev\"]");
    turns(t, c);
    d = dial(t);
    ask_polling(d, "GET", sid, "");
    turns(t, d);
    ask_polling(d, "GET", sid, ""); /* waits */
    ws = dial(t);
    (void)snprintf(more, sizeof(more), "&sid=%s", sid);
    ask_websocket(ws, more);
    frame(ws, "2probe");
    turns(t, d);
    ask_polling(c, "POST", sid, "42[\"ev\"]");
    turns(t, c);
    frame(ws, "5");
    frame(ws, "42[\"ev\"]");
    turns(t, ws);
    hang_up(c);
    hang_up(d);
    hang_up(ws);
    turns(t, NULL);
}

/* The last packets wait for a GET, or for the end of the upgrade. */
static void by_mailbox(struct site *t, bool upgrade)
{
    struct client *c = dial(t), *ws = dial(t);
    char sid[64], more[80];

    ask_polling(c, "GET", "", "");
    turns(t, c);
    sid_of(c, sid);
    (void)snprintf(more, sizeof(more), "&sid=%s", sid);
    ask_polling(c, "POST", sid, "40");
    turns(t, c);
    ask_websocket(ws, more);
    if (upgrade)
        frame(ws, "2probe");
    turns(t, ws);
    t->drop = true;
    ask_polling(c, "POST", sid, "42[\"ev\"]");
    turns(t, c);
    t->drop = false;
    if (upgrade)
        frame(ws, "5");
    else
        ask_polling(c, "GET", sid, ""); /* the disconnect */
    turns(t, c);
    if (!upgrade)
        ask_polling(c, "GET", sid, ""); /* the close */
    turns(t, c);
    hang_up(c);
    hang_up(ws);
    turns(t, NULL);
}

static void whole_life(void *ctx)
{
    struct site t;

    if (site_open(&t, ctx, NULL)) {
        t.at_event = busy_event;
        by_websocket(&t);
        by_polling(&t);
        by_mailbox(&t, false);
        by_mailbox(&t, true);
    }
    site_close(&t);
}

static void test_no_memory(void **state)
{
    struct mo_loop *l = loop_new();

    (void)state;
    torture(whole_life, l);
    mo_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kick_and_return),
        cmocka_unit_test(test_server_ends),
        cmocka_unit_test(test_too_many_sessions),
        cmocka_unit_test(test_too_slow),
        cmocka_unit_test(test_event_too_big),
        cmocka_unit_test(test_refused_too_often),
        cmocka_unit_test(test_heartbeat),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
