/* ws_peer.c - codec/ws with plain blocking sockets around it, so that another
 * implementation can be held against it. Used by ws_diff.test.mjs.
 *
 *   ws_peer decode        lines "server|client MAX STEP HEX" in, a line of
 *                         events out; STEP 0: whole, else pieces of STEP bytes
 *   ws_peer serve MAX     listen on loopback ("port N"), one connection after
 *                         the other until stdin ends
 *   ws_peer dial MAX      for each line "PORT": connect there, talk
 *
 * On a connection both roles echo messages, answer pings and closes, and
 * print each event as "text HEX", "binary HEX", "ping HEX", "pong HEX",
 * "close CODE HEX", "error CODE"; "end" when it is over. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "codec/http/ws.h"
#include "codec/text/base64.h"

#define HEAD_MAX ((size_t)8192)
#define READ_MAX ((size_t)65536)
#define OUT_MAX  ((size_t)256 << 20)

/* --- events as text ------------------------------------------------------ */

static void put_hex(struct mo_buf *b, struct mo_span s)
{
    static const char hex[] = "0123456789abcdef";

    for (size_t i = 0; i < s.n; i++) {
        mo_buf_putc(b, hex[(unsigned char)s.p[i] >> 4]);
        mo_buf_putc(b, hex[s.p[i] & 15]);
    }
}

static void put_event(struct mo_buf *b, const struct mo_ws *w,
                      enum mo_ws_event ev, struct mo_span data)
{
    static const char *const names[] = {
        [MO_WS_TEXT] = "text",
        [MO_WS_BINARY] = "binary",
        [MO_WS_PING] = "ping",
        [MO_WS_PONG] = "pong",
    };

    if (ev == MO_WS_ERROR) {
        mo_buf_printf(b, "error %u", w->close_code);
        return;
    }
    if (ev == MO_WS_CLOSE)
        mo_buf_printf(b, "close %u ", w->peer_code);
    else
        mo_buf_printf(b, "%s ", names[ev]);
    put_hex(b, data);
}

/* --- decode -------------------------------------------------------------- */

static int nibble(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool put_unhex(struct mo_buf *b, struct mo_span hex)
{
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        int hi = nibble(hex.p[i]), lo = nibble(hex.p[i + 1]);

        if (hi < 0 || lo < 0)
            return false;
        mo_buf_putc(b, (char)(hi << 4 | lo));
    }
    return hex.n % 2 == 0;
}

static void decode_piece(struct mo_ws *w, struct mo_ws_in in,
                         struct mo_buf *out)
{
    enum mo_ws_event ev;
    struct mo_span data;

    do {
        ev = mo_ws_next(w, &in, &data, NULL);
        if (ev == MO_WS_MORE)
            continue;
        if (out->len)
            mo_buf_puts(out, " | ");
        put_event(out, w, ev, data);
    } while (ev != MO_WS_MORE);
}

static bool decode_line(size_t unused, struct mo_span line)
{
    struct mo_span role = mo_span_cut(&line, ' ');
    struct mo_span max = mo_span_cut(&line, ' ');
    struct mo_span steps = mo_span_cut(&line, ' ');
    uint64_t cap, step;
    struct mo_buf raw, out;
    struct mo_ws w;

    (void)unused; /* each line has its own */
    mo_buf_init(&raw, OUT_MAX);
    mo_buf_init(&out, OUT_MAX);
    if (mo_span_u64(max, &cap) < 0 || mo_span_u64(steps, &step) < 0 ||
        !put_unhex(&raw, line))
        return false;
    mo_ws_init(&w, mo_span_is(role, "server") ? MO_WS_SERVER : MO_WS_CLIENT,
               (size_t)cap);
    if (step == 0)
        step = raw.len + 1;
    for (size_t i = 0; i < raw.len; i += step) {
        size_t n = raw.len - i < step ? raw.len - i : (size_t)step;

        decode_piece(&w, (struct mo_ws_in){raw.p + i, n}, &out);
    }
    puts(mo_buf_cstr(&out));
    mo_ws_fini(&w);
    mo_buf_fini(&out);
    mo_buf_fini(&raw);
    return true;
}

/* --- a connection -------------------------------------------------------- */

static bool send_all(int fd, struct mo_span s)
{
    while (s.n) {
        ssize_t n = send(fd, s.p, s.n, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return false;
        s = mo_span_skip(s, (size_t)n);
    }
    return true;
}

/* What to send for an event; true when the conversation is over with it. */
static bool answer(const struct mo_ws *w, enum mo_ws_event ev,
                   struct mo_span data, struct mo_buf *out)
{
    switch (ev) {
    case MO_WS_TEXT:
        mo_ws_put(out, w->role, MO_WS_OP_TEXT, true, data);
        return false;
    case MO_WS_BINARY:
        mo_ws_put(out, w->role, MO_WS_OP_BINARY, true, data);
        return false;
    case MO_WS_PING:
        mo_ws_put(out, w->role, MO_WS_OP_PONG, true, data);
        return false;
    case MO_WS_CLOSE:
    case MO_WS_ERROR:
        mo_ws_put_close(out, w->role, w->close_code, data);
        return true;
    case MO_WS_PONG:
    case MO_WS_MORE:
        break;
    }
    return false;
}

/* Print and answer all events in one read; true when it is over. */
static bool on_bytes(struct mo_ws *w, int fd, struct mo_ws_in in)
{
    enum mo_ws_event ev;
    struct mo_span data;
    bool over = false;

    do {
        struct mo_buf out, line;

        mo_buf_init(&out, OUT_MAX);
        mo_buf_init(&line, OUT_MAX);
        ev = mo_ws_next(w, &in, &data, NULL);
        if (ev != MO_WS_MORE) {
            put_event(&line, w, ev, data);
            puts(mo_buf_cstr(&line));
        }
        over = over || answer(w, ev, data, &out);
        if (!send_all(fd, mo_buf_view(&out)))
            over = true;
        mo_buf_fini(&line);
        mo_buf_fini(&out);
    } while (ev != MO_WS_MORE);
    return over;
}

/* rest: what was read behind the handshake. */
static void converse(int fd, enum mo_ws_role role, size_t max,
                     struct mo_buf *rest)
{
    char *bytes = mo_alloc(READ_MAX);
    struct mo_ws w;
    ssize_t n = 0;
    bool over;

    mo_ws_init(&w, role, max);
    over = on_bytes(&w, fd, (struct mo_ws_in){rest->p, rest->len});
    while (!over) {
        n = recv(fd, bytes, READ_MAX, 0);
        if (n <= 0)
            break;
        over = on_bytes(&w, fd, (struct mo_ws_in){bytes, (size_t)n});
    }
    (void)shutdown(fd, SHUT_WR);
    while (recv(fd, bytes, READ_MAX, 0) > 0)
        continue; /* so that unread input does not reset the connection */
    puts("end");
    (void)fflush(stdout);
    mo_ws_fini(&w);
    mo_free(bytes);
}

/* --- handshake ----------------------------------------------------------- */

/* A head up to its empty line; what follows stays in *in. */
static bool read_head(int fd, struct mo_buf *in, struct mo_buf *head)
{
    for (;;) {
        ptrdiff_t at = mo_span_search(mo_buf_view(in), MO_SPAN("\r\n\r\n"));
        char *room;
        ssize_t n;

        if (at >= 0) {
            mo_buf_put(head, in->p, (size_t)at + 2);
            mo_buf_drop(in, (size_t)at + 4);
            return true;
        }
        room = mo_buf_room(in, 1024);
        n = room ? recv(fd, room, 1024, 0) : -1;
        if (n <= 0)
            return false;
        mo_buf_add(in, (size_t)n);
    }
}

static struct mo_span header(struct mo_span head, const char *name)
{
    while (head.p) {
        struct mo_span value = mo_span_cut(&head, '\n');
        struct mo_span key = mo_span_cut(&value, ':');

        if (value.p && mo_span_ieq(key, mo_span_cstr(name)))
            return mo_span_trim(mo_span_head(value, value.n - 1));
    }
    return mo_span(NULL, 0);
}

static bool accept_client(int fd, struct mo_buf *in)
{
    char accepted[MO_WS_ACCEPT_LEN + 1];
    struct mo_buf head, reply;
    struct mo_span key;
    bool ok = false;

    mo_buf_init(&head, HEAD_MAX);
    mo_buf_init(&reply, HEAD_MAX);
    if (read_head(fd, in, &head)) {
        key = header(mo_buf_view(&head), "sec-websocket-key");
        ok = mo_ws_key_ok(key);
    }
    if (ok) {
        mo_ws_accept(key, accepted);
        mo_buf_printf(&reply,
                      "HTTP/1.1 101 Switching Protocols\r\n"
                      "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                      "Sec-WebSocket-Accept: %s\r\n\r\n",
                      accepted);
        ok = send_all(fd, mo_buf_view(&reply));
    }
    mo_buf_fini(&reply);
    mo_buf_fini(&head);
    return ok;
}

static bool ask_server(int fd, struct mo_buf *in)
{
    char nonce[16], want[MO_WS_ACCEPT_LEN + 1];
    struct mo_buf head, key, ask;
    bool ok;

    mo_buf_init(&head, HEAD_MAX);
    mo_buf_init(&key, HEAD_MAX);
    mo_buf_init(&ask, HEAD_MAX);
    mo_random(nonce, sizeof(nonce));
    mo_base64_put(&key, mo_span(nonce, sizeof(nonce)));
    mo_ws_accept(mo_buf_view(&key), want);
    mo_buf_printf(&ask,
                  "GET / HTTP/1.1\r\nHost: localhost\r\n"
                  "Upgrade: websocket\r\nConnection: Upgrade\r\n"
                  "Sec-WebSocket-Version: 13\r\n"
                  "Sec-WebSocket-Key: %s\r\n\r\n",
                  mo_buf_cstr(&key));
    ok = send_all(fd, mo_buf_view(&ask)) && read_head(fd, in, &head) &&
         mo_span_starts(mo_buf_view(&head), MO_SPAN("HTTP/1.1 101 ")) &&
         mo_span_is(header(mo_buf_view(&head), "sec-websocket-accept"), want);
    mo_buf_fini(&ask);
    mo_buf_fini(&key);
    mo_buf_fini(&head);
    return ok;
}

/* --- sockets ------------------------------------------------------------- */

static bool talk(int fd, enum mo_ws_role role, size_t max)
{
    struct mo_buf in;
    bool ok;

    mo_buf_init(&in, HEAD_MAX + 1024);
    ok = role == MO_WS_SERVER ? accept_client(fd, &in) : ask_server(fd, &in);
    if (ok)
        converse(fd, role, max, &in);
    mo_buf_fini(&in);
    return ok;
}

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET,
        .sin_port = htons(port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
    };
}

static int serve(size_t max)
{
    mo_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = loopback(0);
    socklen_t len = sizeof(sa);
    struct pollfd ready[2] = {{.fd = fd, .events = POLLIN},
                              {.fd = STDIN_FILENO, .events = POLLIN}};

    if (fd < 0 || bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
        listen(fd, 16) < 0 || getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
        return 1;
    printf("port %u\n", ntohs(sa.sin_port));
    (void)fflush(stdout);
    while (poll(ready, 2, -1) > 0 && !ready[1].revents) {
        mo_autofd int peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

        if (peer >= 0)
            (void)talk(peer, MO_WS_SERVER, max);
    }
    return 0;
}

static bool dial(size_t max, uint16_t port)
{
    mo_autofd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in sa = loopback(port);

    return fd >= 0 && connect(fd, (struct sockaddr *)&sa, sizeof(sa)) == 0 &&
           talk(fd, MO_WS_CLIENT, max);
}

/* --- lines from stdin ---------------------------------------------------- */

static bool dial_line(size_t max, struct mo_span line)
{
    uint64_t port;

    return mo_span_u64(line, &port) == 0 && port <= UINT16_MAX &&
           dial(max, (uint16_t)port);
}

static int each_line(bool (*fn)(size_t max, struct mo_span line), size_t max)
{
    char *line = NULL;
    size_t cap = 0;
    ssize_t n = getline(&line, &cap, stdin);
    bool ok = true;

    while (n > 0 && ok) {
        ok = fn(max, mo_span(line, (size_t)n - (line[n - 1] == '\n')));
        (void)fflush(stdout);
        n = getline(&line, &cap, stdin);
    }
    (free)(line); /* getline's, not ours */
    return ok ? 0 : 1;
}

int main(int argc, char **argv)
{
    struct mo_span mode = mo_span_cstr(argc > 1 ? argv[1] : "");
    uint64_t max = 0;
    bool sized = argc == 3 && mo_span_u64(mo_span_cstr(argv[2]), &max) == 0;

    if (mo_span_is(mode, "decode"))
        return each_line(decode_line, 0);
    if (sized && mo_span_is(mode, "serve"))
        return serve((size_t)max);
    if (sized && mo_span_is(mode, "dial"))
        return each_line(dial_line, (size_t)max);
    (void)fputs("usage: ws_peer decode | serve MAX | dial MAX\n", stderr);
    return 2;
}
