/* crowd_driver.c - many clients of one gateway at once, none of which may see
 * what is another's.
 *
 *   crowd_driver URL CLIENTS CALLS DEPTH strict|quiet|loose
 *
 * CLIENTS connections, legacy and modern in turn, make CALLS calls of the
 * fixture's tool `whose`, each with DEPTH of them in flight. Every call has a
 * mark that no other has. The server says it back in all it says: progress,
 * a log message, a question for every third call, and the result, at once or
 * a little later. Whatever a client gets must be about the very call it comes
 * with, or, where the wire does not say with which it comes, about a call of
 * that client that is under way.
 *
 * strict: and every call must have had all of it. quiet: for a server that
 * does not say to which call a log message belongs: those may be missing.
 * loose: nor to which its questions belong: a call may have been refused them,
 * and one may come with another call of the same client.
 *
 * One line of JSON sums up; the first thing that is wrong ends the run with
 * status 1. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/rand.h"
#include "loop/httpc.h"
#include "mcp/client/conn.h"
#include "mcp/link/link_http.h"

#define CLIENTS_MAX 64
#define DEPTH_MAX   64
#define MARK_MAX    48
#define PROGRESSES  2

struct client;

struct job { /* one call under way; mark empty: none is */
    struct client *of;
    char mark[MARK_MAX];
    struct mo_call *call;
    unsigned progressed, logged, asked;
    bool asks;
};

struct crowd;

struct client {
    struct crowd *crowd;
    unsigned no;
    struct mo_conn *conn;
    struct job jobs[DEPTH_MAX];
};

struct crowd {
    struct mo_loop *l;
    struct mo_httpc *http;
    const char *url;
    unsigned nclients, depth, open;
    uint64_t calls, sent, done;
    uint64_t progress, logs, asks, refused;
    enum { STRICT, QUIET, LOOSE } how;
    bool http_gone;
    struct client clients[CLIENTS_MAX];
};

/* --- what is wrong ------------------------------------------------------- */

static void wrong(const struct job *j, const char *what, struct mo_span got)
{
    (void)fprintf(stderr, "client %u, %s: %s: %.*s\n", j->of->no, j->mark, what,
                  (int)(got.n < 500 ? got.n : 500), got.n ? got.p : "");
    exit(1);
}

static void stop(const char *what, const struct mo_err *e)
{
    (void)fprintf(stderr, "%s: %s\n", what, e ? e->msg : "");
    exit(2);
}

/* The call with that number; NULL: nobody says which, or it is none. */
static struct job *job_of(struct client *c, uint64_t number)
{
    for (unsigned i = 0; number && i < c->crowd->depth; i++) {
        struct job *j = &c->jobs[i];

        if (j->mark[0] && j->call && mo_call_number(j->call) == number)
            return j;
    }
    return NULL;
}

static struct job *job_marked(struct client *c, struct mo_json mark)
{
    for (unsigned i = 0; i < c->crowd->depth; i++) {
        struct job *j = &c->jobs[i];

        if (j->mark[0] && mo_json_str_eq(mark, mo_span_cstr(j->mark)))
            return j;
    }
    return NULL;
}

/* Whose it is by its mark, which must be whose it is by its number. */
static struct job *owner(struct client *c, uint64_t number, struct mo_json mark,
                         const char *what)
{
    struct job *by_number = job_of(c, number);
    struct job *by_mark = job_marked(c, mark);
    struct job nobody = {.of = c, .mark = "?"};

    if (!by_mark)
        wrong(by_number ? by_number : &nobody, what, mo_json_text(mark));
    if (by_number && by_number != by_mark && c->crowd->how != LOOSE)
        wrong(by_number, what, mo_json_text(mark));
    return by_mark;
}

/* --- what comes ---------------------------------------------------------- */

static void on_progress(void *ctx, struct mo_json params)
{
    struct job *j = ctx;

    if (!mo_json_str_eq(mo_json_get(params, "message"), mo_span_cstr(j->mark)))
        wrong(j, "another's progress", mo_json_text(params));
    j->progressed++;
    j->of->crowd->progress++;
}

/* By the number of the client in it: where news come by another stream than
 * the answer they may be late. On a pipe they do when several calls of one
 * client are all that is under way. */
static bool is_mine(const struct client *c, struct mo_json mark)
{
    char head[16];
    int n = snprintf(head, sizeof(head), "\"c%u-", c->no);

    return mo_span_starts(mo_json_text(mark), mo_span(head, (size_t)n));
}

static void on_notify(void *ctx, struct mo_conn *conn, const struct mo_rpc *m,
                      uint64_t stream_of)
{
    struct client *c = ctx;
    struct mo_json mark = mo_json_get(m->params, "data");

    (void)conn;
    if (!mo_json_str_eq(m->method, MO_SPAN("notifications/message")))
        return;
    c->crowd->logs++;
    if (c->crowd->how == STRICT || stream_of || !is_mine(c, mark))
        owner(c, stream_of, mark, "another's log")->logged++;
}

static void on_ask(void *ctx, struct mo_conn *conn, struct mo_ask *a)
{
    struct client *c = ctx;
    struct mo_json mark = mo_json_get(a->params, "message");
    struct job *j = NULL;
    char text[128];
    int n = 0;

    (void)conn;
    if (c->crowd->how == LOOSE && is_mine(c, mark) && !job_marked(c, mark)) {
        mo_ask_refuse(a, MO_RPC_INTERNAL, "its call has ended");
        return;
    }
    j = owner(c, a->call, mark, "another's question");
    n = snprintf(text, sizeof(text),
                 "{\"action\":\"accept\",\"content\":{\"name\":\"%s\"}}",
                 j->mark);
    j->asked++;
    c->crowd->asks++;
    mo_ask_answer(a, mo_span(text, (size_t)n));
}

static void next_call(struct job *j);

static void check_counts(const struct job *j, bool failed)
{
    const struct crowd *w = j->of->crowd;

    if (j->progressed != PROGRESSES)
        wrong(j, "progress is missing", mo_span(NULL, 0));
    if (w->how == STRICT && j->logged != 1)
        wrong(j, "its log message is missing", mo_span(NULL, 0));
    if (w->how != LOOSE && (failed || j->asked != j->asks))
        wrong(j, "its question is missing", mo_span(NULL, 0));
}

static void on_done(void *ctx, const struct mo_reply *r)
{
    struct job *j = ctx;
    struct crowd *w = j->of->crowd;
    struct mo_json text =
        mo_json_get(mo_json_at(mo_json_get(r->result, "content"), 0), "text");
    char want[2 * MARK_MAX];
    bool failed = false;

    j->call = NULL;
    if (r->err)
        stop(j->mark, r->err);
    if (!r->result.p)
        wrong(j, "an error", mo_json_text(r->error));
    (void)mo_json_bool(mo_json_get(r->result, "isError"), &failed);
    (void)snprintf(want, sizeof(want), "%s%s%s", j->mark, j->asks ? " " : "",
                   j->asks ? j->mark : "");
    if (!failed && !mo_json_str_eq(text, mo_span_cstr(want)))
        wrong(j, "another's result", mo_json_text(r->result));
    check_counts(j, failed);
    w->refused += failed;
    w->done++;
    j->mark[0] = '\0';
    if (w->done == w->calls) {
        for (unsigned i = 0; i < w->nclients; i++)
            mo_conn_close(w->clients[i].conn, NULL);
        return;
    }
    next_call(j);
}

/* --- what is sent -------------------------------------------------------- */

static void next_call(struct job *j)
{
    struct crowd *w = j->of->crowd;
    struct mo_call_opts o = {.name = MO_SPAN("whose"),
                             .on_progress = on_progress,
                             .done = on_done,
                             .ctx = j};
    uint64_t dice = mo_random_u64();
    struct mo_err e;
    char text[256];
    int n = 0;

    if (w->sent == w->calls)
        return;
    j->progressed = j->logged = j->asked = 0;
    j->asks = w->sent % 3 == 0;
    (void)snprintf(j->mark, sizeof(j->mark), "c%u-%llu-%08x", j->of->no,
                   (unsigned long long)w->sent, (unsigned)dice);
    w->sent++;
    n = snprintf(text, sizeof(text),
                 "{\"name\":\"whose\",\"arguments\":{\"mark\":\"%s\","
                 "\"ask\":%s,\"late\":%s}}",
                 j->mark, j->asks ? "true" : "false",
                 dice >> 63 ? "true" : "false");
    j->call = mo_conn_request(j->of->conn, "tools/call",
                              mo_span(text, (size_t)n), &o, &e);
    if (!j->call)
        stop("a call", &e);
}

static void begin(struct crowd *w)
{
    for (unsigned d = 0; d < w->depth; d++) {
        for (unsigned i = 0; i < w->nclients; i++) {
            struct job *j = &w->clients[i].jobs[d];

            j->of = &w->clients[i];
            next_call(j);
        }
    }
}

static void on_open(void *ctx, struct mo_conn *conn)
{
    struct client *c = ctx;

    if (mo_conn_info(conn)->modern != (c->no % 2 == 1))
        stop("a connection of the wrong era", NULL);
    if (++c->crowd->open == c->crowd->nclients)
        begin(c->crowd);
}

/* --- life ---------------------------------------------------------------- */

static void on_gone(void *ctx)
{
    ((struct crowd *)ctx)->http_gone = true;
}

static void on_close(void *ctx, const struct mo_err *why)
{
    struct client *c = ctx;

    if (why)
        stop("a connection was lost", why);
    if (--c->crowd->open == 0)
        mo_httpc_close(c->crowd->http, on_gone, c->crowd);
}

static int dial(void *ctx, struct mo_conn *conn, struct mo_err *e)
{
    struct client *c = ctx;
    struct mo_link_http_opts o = {.http = c->crowd->http, .url = c->crowd->url};
    struct mo_link *k = NULL;
    int rc = mo_link_http(c->crowd->l, &o, &k, e);

    if (rc == 0)
        mo_conn_dialed(conn, k, NULL);
    return rc;
}

static void connect_all(struct crowd *w)
{
    static const struct mo_conn_cb cb = {.on_open = on_open,
                                         .on_ask = on_ask,
                                         .on_notify = on_notify,
                                         .on_close = on_close};
    struct mo_err e;

    for (unsigned i = 0; i < w->nclients; i++) {
        struct client *c = &w->clients[i];
        struct mo_conn_opts o = {
            .mode = i % 2 ? MO_CONN_MODERN : MO_CONN_LEGACY,
            .capabilities = MO_SPAN("{\"elicitation\":{}}"),
            .log_level = "info",
            .dial = dial,
            .cb = &cb,
            .ctx = c,
        };

        c->crowd = w;
        c->no = i;
        if (mo_conn_open(w->l, &o, &c->conn, &e) < 0)
            stop("open", &e);
    }
}

static uint64_t number(const char *s, uint64_t max)
{
    uint64_t n = 0;

    if (mo_span_u64(mo_span_cstr(s), &n) < 0 || n == 0 || n > max) {
        (void)fprintf(stderr, "no number up to %llu: %s\n",
                      (unsigned long long)max, s);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    struct crowd *w = mo_new(struct crowd);
    uint64_t since = mo_now_ns();
    struct mo_err e;

    if (argc != 6 || !w)
        return 2;
    w->url = argv[1];
    w->nclients = (unsigned)number(argv[2], CLIENTS_MAX);
    w->calls = number(argv[3], 10000000);
    w->depth = (unsigned)number(argv[4], DEPTH_MAX);
    w->how = strcmp(argv[5], "strict") == 0  ? STRICT
             : strcmp(argv[5], "quiet") == 0 ? QUIET
                                             : LOOSE;
    w->l = mo_loop_new(NULL, &e);
    if (!w->l)
        stop("loop", &e);
    w->http = mo_httpc_new(
        w->l, &(struct mo_httpc_opts){.active = 2 * CLIENTS_MAX * DEPTH_MAX},
        &e);
    if (!w->http)
        stop("http", &e);
    connect_all(w);
    mo_loop_run(w->l);
    printf("{\"calls\":%llu,\"progress\":%llu,\"logs\":%llu,\"asks\":%llu,"
           "\"refused\":%llu,\"ms\":%llu}\n",
           (unsigned long long)w->done, (unsigned long long)w->progress,
           (unsigned long long)w->logs, (unsigned long long)w->asks,
           (unsigned long long)w->refused,
           (unsigned long long)((mo_now_ns() - since) / MO_MS));
    mo_loop_free(w->l);
    mo_free(w);
    return 0;
}
