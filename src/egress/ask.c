/* ask.c - hosts of a box that a person decides about. See relay.h.
 *
 * Connections to the same host and port share one question. It ends when it is
 * answered, or when the last connection that waits has gone; what follows
 * happens from the loop, never inside the call that ended it. */
#include <stdio.h>

#include "egress/relay_priv.h"

struct mo_egress_ask {
    struct mo_list node; /* in x->asks */
    struct mo_egress *x;
    struct mo_list conns; /* that wait */
    char host[MO_EGRESS_HOST_MAX + 1];
    unsigned port;
    enum { OPEN, ANSWERED, WITHDRAWN } state;
    bool allowed;
    char reason[120];
    void *data;
    struct mo_later later;
};

void mo_egress_ask_set(struct mo_egress_ask *a, void *data)
{
    a->data = data;
}

void *mo_egress_ask_data(const struct mo_egress_ask *a)
{
    return a->data;
}

/* --- the end of a question ------------------------------------------------ */

static void on_over(struct mo_later *d)
{
    struct mo_egress_ask *a = mo_container_of(d, struct mo_egress_ask, later);
    struct mo_egress *x = a->x;

    mo_list_del(&a->node);
    x->nasks--;
    if (a->state == WITHDRAWN)
        x->asker->gone(x->ctx, a);
    else
        mo_egress_conn_decided(&a->conns, a->allowed, a->reason);
    mo_free(a);
    mo_egress_maybe_free(x);
}

void mo_egress_answer_ask(struct mo_egress_ask *a, bool allowed,
                          const char *reason)
{
    MO_BUG_ON(a->state == ANSWERED);
    a->state = ANSWERED;
    a->allowed = allowed;
    (void)snprintf(a->reason, sizeof(a->reason), "%s", reason);
    mo_loop_defer(a->x->loop, &a->later);
}

void mo_egress_ask_left(struct mo_egress *x)
{
    mo_list_each_entry (a, &x->asks, struct mo_egress_ask, node) {
        if (a->state != OPEN || !mo_list_empty(&a->conns))
            continue;
        a->state = WITHDRAWN;
        mo_loop_defer(x->loop, &a->later);
    }
}

/* --- its beginning -------------------------------------------------------- */

static void put_host(const struct mo_egress_wish *w, char *out, size_t n)
{
    char text[MO_IP_TEXT];

    mo_ip_text(&w->ip, text);
    (void)snprintf(out, n, "%s", w->name ? w->name->text : text);
}

enum mo_egress_say mo_egress_ask_judge(const struct mo_egress *x,
                                       const struct mo_egress_wish *w)
{
    char host[MO_EGRESS_HOST_MAX + 1];
    const struct mo_egress_question q = {
        .host = host, .port = w->port, .request = "", .program = ""};

    /* a person's yes is for public addresses only */
    if (!x->zone.ask || (!w->name && mo_ip_is_private(&w->ip)))
        return MO_EGRESS_NO;
    put_host(w, host, sizeof(host));
    return x->asker->judge(x->ctx, &q);
}

static struct mo_egress_ask *find_open(const struct mo_egress *x,
                                       const char *host, unsigned port)
{
    mo_list_each_entry (a, &x->asks, struct mo_egress_ask, node)
        if (a->state == OPEN && a->port == port && strcmp(a->host, host) == 0)
            return a;
    return NULL;
}

bool mo_egress_is_asked(const struct mo_egress *x, const char *host,
                        unsigned port)
{
    return find_open(x, host, port) != NULL;
}

bool mo_egress_ask_join(struct mo_egress *x, const struct mo_egress_question *q,
                        struct mo_list *asking)
{
    struct mo_egress_ask *a = find_open(x, q->host, q->port);
    bool is_new = !a;

    if (is_new && x->nasks < MO_EGRESS_ASKS_MAX)
        a = mo_new(struct mo_egress_ask);
    if (!a)
        return false;
    if (is_new) {
        a->x = x;
        a->port = q->port;
        (void)snprintf(a->host, sizeof(a->host), "%s", q->host);
        mo_list_init(&a->conns);
        mo_later_init(&a->later, on_over);
        mo_list_push(&x->asks, &a->node);
        x->nasks++;
    }
    mo_list_push(&a->conns, asking);
    if (is_new)
        x->asker->ask(x->ctx, a, q);
    return true;
}

/* --- the first bytes ------------------------------------------------------ */

#define METHOD_MAX 16
#define CUT        "..."

static bool is_method(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] < 'A' || s.p[i] > 'Z') && s.p[i] != '-')
            return false;
    return s.n > 0 && s.n <= METHOD_MAX;
}

static bool is_printable(struct mo_span s)
{
    for (size_t i = 0; i < s.n; i++)
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    return s.n > 0;
}

/* "GET /path HTTP/1.1"; the end of the path may be cut off. */
static void take_line(struct mo_span line, char *out)
{
    struct mo_span method = mo_span_cut(&line, ' ');
    struct mo_span path = mo_span_cut(&line, ' ');

    if (is_method(method) && is_printable(path) &&
        (!line.p || mo_span_starts(line, MO_SPAN("HTTP/"))))
        (void)snprintf(out, MO_EGRESS_REQUEST_MAX, "%.*s %.*s", (int)method.n,
                       method.p, (int)path.n, path.p);
}

/* Other bytes become %XX, so that no name looks like another or like text of
 * ours; one that is too long ends in CUT. */
void mo_egress_put_program(struct mo_span in, char out[MO_EGRESS_PROGRAM_MAX])
{
    size_t at = 0;

    out[0] = '\0';
    for (size_t i = 0; i < in.n; i++) {
        bool plain = in.p[i] >= ' ' && in.p[i] <= '~' &&
                     strchr("%\"\\", in.p[i]) == NULL;
        char one[sizeof("%XX")];
        int n = snprintf(one, sizeof(one), plain ? "%c" : "%%%02X",
                         (unsigned char)in.p[i]);

        if (at + (size_t)n + sizeof(CUT) > MO_EGRESS_PROGRAM_MAX) {
            memcpy(out + at, CUT, sizeof(CUT));
            return;
        }
        memcpy(out + at, one, (size_t)n + 1);
        at += (size_t)n;
    }
}

bool mo_egress_read_request(struct mo_span in, char out[MO_EGRESS_REQUEST_MAX])
{
    ptrdiff_t end = mo_span_find(in, '\n'), space = mo_span_find(in, ' ');
    struct mo_span word = mo_span_head(in, space < 0 ? in.n : (size_t)space);

    *out = '\0';
    if (in.n == 0)
        return false;
    if (!is_method(word))
        return true; /* something else */
    if (end < 0 && in.n < MO_EGRESS_REQUEST_MAX)
        return false;
    take_line(mo_span_head(in, end < 0 ? in.n : (size_t)end), out);
    return true;
}
