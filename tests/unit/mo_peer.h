/* mo_peer.h - both sides of an HTTP exchange on a real socket.
 *
 * struct peer is a scripted server. It sends its reply at once or in pieces,
 * then stays open, ends or breaks the connection. struct seen records the
 * callbacks of an HTTP client. own_handler() runs under the project's own
 * HTTP server and echoes, streams or upgrades. */
#ifndef MO_TEST_PEER_H
#define MO_TEST_PEER_H

#include "loop/httpcall.h"
#include "loop/httpd.h"
#include "loop/tls.h"
#include "mo_net.h"

enum peer_then { STAY, END, BREAK };

struct peer {
    struct mo_loop *l;
    struct mo_listener *ls;
    struct mo_tls_ctx *tls; /* or NULL */
    struct mo_list conns;
    char addr[PATH_LEN];
    /* the script */
    struct mo_span greeting; /* said at once, unasked */
    struct mo_span reply;
    size_t piece; /* bytes a turn; 0: all at once */
    enum peer_then then;
    unsigned good; /* replies per connection, then END unsaid; 0: all */
    bool raw;      /* after the first reply: echo; EOF: "bye" and END */
    /* what happened */
    unsigned accepted, requests;
    struct mo_buf last; /* the last request, whole */
};

/* addr: "unix:/path" or "127.0.0.1:0"; p->addr gets the real one. */
void peer_open(struct peer *p, struct mo_loop *l, const char *addr);
void peer_close(struct peer *p);

/* --- the callbacks of a client ------------------------------------------- */

struct seen {
    int heads, datas, dones, status;
    struct mo_buf body;
    struct mo_err err; /* code 0: well */
    char type[64];     /* Content-Type */
    bool starting;     /* inside start(): nothing may be called */
    void (*at_head)(struct seen *me);
    void (*at_data)(struct seen *me);
    void *x, *data;
};

void seen_init(struct seen *me);
extern const struct mo_http_cb seen_cb;
bool seen_all(void *ctx);

/* --- our own server, answering in each of its ways ----------------------- */

void own_handler(void *ctx, struct mo_req *rq);
bool flag_set(void *ctx);
void set_flag(void *ctx);

#endif
