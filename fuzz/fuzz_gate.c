/* Header lines at the gate: Host, Origin, Authorization, Cookie.
 *
 * Beyond not crashing: nobody gets in without a token or a cookie; the cookie
 * for a token gets its owner in at the same Host, and nobody where the token
 * is another one. */
#include <stdlib.h>

#include "loop/httpd_priv.h"
#include "web/gate.h"

#define OPERATOR "operator-token-0123456789"
#define PERSON   "person-token-0123456789ab"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct asked {
    struct mo_http1 *parser;
    struct mo_stream stream;
    struct conn conn;
};

/* A request with these lines; false if it is none. */
static bool ask(struct asked *a, struct mo_span lines)
{
    static const struct mo_stream_ops ops = {.tls = false};
    struct mo_span in, body;
    struct mo_buf text;
    bool ok;

    *a = (struct asked){.stream = {.ops = &ops}};
    mo_buf_init(&text, 1 << 20);
    mo_buf_puts(&text, "GET / HTTP/1.1\r\n");
    mo_buf_span(&text, lines);
    mo_buf_puts(&text, "\r\n\r\n");
    in = mo_buf_view(&text);
    a->parser = mo_http1_new(MO_HTTP1_REQUEST);
    ok = a->parser &&
         mo_http1_next(a->parser, &in, &body, NULL) == MO_HTTP1_HEAD;
    a->conn.s = &a->stream;
    if (ok)
        a->conn.rq.head = mo_http1_head(a->parser);
    mo_buf_fini(&text);
    return ok;
}

static bool is_let_in(const struct mo_gate *g, struct mo_req *rq,
                      const char *who)
{
    return !mo_gate_check(g, rq, NULL).status && strcmp(rq->caller, who) == 0;
}

/* Signs in at the Host of the request and comes back with the cookie. */
static void come_back(const struct mo_gate *g, const struct mo_gate *other,
                      struct mo_req *rq, const char *token, const char *who)
{
    struct mo_buf cookie, lines;
    struct mo_span value;
    struct asked a;

    mo_buf_init(&cookie, 4096);
    mo_buf_init(&lines, 8192);
    if (mo_gate_cookie(g, rq, mo_span_cstr(token), &cookie) == 0) {
        value = mo_buf_view(&cookie);
        mo_buf_puts(&lines, "Host: ");
        mo_buf_span(&lines, mo_http_get(rq->head, "Host"));
        mo_buf_puts(&lines, "\r\nCookie: a=b; ");
        mo_buf_span(&lines, mo_span_cut(&value, ';'));
        if (!ask(&a, mo_buf_view(&lines)) || !is_let_in(g, &a.conn.rq, who) ||
            !mo_gate_check(other, &a.conn.rq, NULL).status)
            abort();
        mo_http1_free(a.parser);
    }
    mo_buf_fini(&cookie);
    mo_buf_fini(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct mo_gate_person ann = {.name = "ann", .token = PERSON};
    static const char *const origins[] = {"https://chat.example"};
    static const struct mo_gate g = {.token = OPERATOR,
                                     .tokens = &ann,
                                     .ntokens = 1,
                                     .origins = origins,
                                     .norigins = 1};
    static const struct mo_gate other = {.token = "another-token-0123456"};
    static const struct mo_gate open = {.token = NULL};
    struct mo_span lines = mo_span((const char *)data, size);
    struct asked a;

    if (ask(&a, lines)) {
        struct mo_req *rq = &a.conn.rq;
        bool knows = mo_span_search(lines, MO_SPAN(OPERATOR)) >= 0 ||
                     mo_span_search(lines, MO_SPAN(PERSON)) >= 0;

        if (!mo_gate_check(&g, rq, NULL).status && !knows &&
            mo_span_search(lines, MO_SPAN(MO_GATE_COOKIE)) < 0)
            abort();
        if (!mo_gate_check(&other, rq, NULL).status)
            abort();
        (void)mo_gate_check(&open, rq, NULL);
        (void)mo_gate_listed(&g, rq);
        come_back(&g, &other, rq, OPERATOR, "");
        come_back(&g, &other, rq, PERSON, "ann");
    }
    mo_http1_free(a.parser);
    return 0;
}
