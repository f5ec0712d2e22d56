#include "web/gateway_metrics.h"

#include "base/clock.h"
#include "base/mem.h"
#include "gateway/catalog/catalog.h"
#include "gateway/router/embeddings.h"
#include "gateway/router/router.h"
#include "gateway/upstream/upstream.h"
#include "servers/server_view.h"
#include "web/call_stats.h"

enum {
    CALLS,
    ERRORS,
    SECONDS,
    OUTCOMES,
    VIEWS,
    BREAKER,
    CHILDREN,
    QUEUE,
    WAITING,
    APPROVAL,
    SAVED,
    EMBEDDED,
    UNEMBEDDED,
    VECTORS,
    ROWS,
    LOST,
    CONNECTIONS,
    BYTES,
    REFUSED,
    TOKENS,
    UNPRICED,
    TOOL_TOKENS,
    COST,
    METRICS,
};

/* 100 us to 10 min: a call, and a person. */
static const double call_seconds[] = {
    0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
    0.25,   0.5,    1,     2.5,    5,     10,   30,    60};
static const double people_seconds[] = {0.5, 1,  2,   5,   10, 20,
                                        30,  60, 120, 300, 600};

static const struct mo_prom_desc descs[METRICS] = {
    [CALLS] = {"mo_gateway_calls_total",
               "Calls of tools that crossed or were refused",
               MO_PROM_COUNTER,
               {"server", "tool"}},
    [ERRORS] = {"mo_gateway_errors_total",
                "Of those, all that did not end well",
                MO_PROM_COUNTER,
                {"server", "tool"}},
    [SECONDS] = {"mo_gateway_call_seconds",
                 "How long calls took, without waiting for a person",
                 MO_PROM_HISTOGRAM,
                 {"server", "tool"},
                 .buckets = call_seconds,
                 .nbuckets = MO_COUNT(call_seconds)},
    [OUTCOMES] = {"mo_gateway_outcomes_total",
                  "Calls by how they ended",
                  MO_PROM_COUNTER,
                  {"outcome"}},
    [VIEWS] = {"mo_gateway_view_calls_total",
               "Calls through a view, by how they ended",
               MO_PROM_COUNTER,
               {"view", "outcome"}},
    [BREAKER] = {"mo_gateway_breaker",
                 "0 closed, 1 open, 2 trying again",
                 MO_PROM_GAUGE,
                 {"server"}},
    [CHILDREN] = {"mo_gateway_children",
                  "Connections to a server that are open",
                  MO_PROM_GAUGE,
                  {"server"}},
    [QUEUE] = {"mo_gateway_queue",
               "Calls that wait for a server to be ready",
               MO_PROM_GAUGE,
               {"server"}},
    [WAITING] = {"mo_gateway_approvals_waiting", "Calls that wait for a person",
                 MO_PROM_GAUGE},
    [APPROVAL] = {"mo_gateway_approval_seconds",
                  "How long calls waited for a person", MO_PROM_HISTOGRAM,
                  .buckets = people_seconds,
                  .nbuckets = MO_COUNT(people_seconds)},
    [SAVED] = {"mo_gateway_schema_tokens_saved",
               "Tokens of definitions that clients are not shown, "
               "about, since four tools stand for all",
               MO_PROM_GAUGE},
    [EMBEDDED] = {"mo_router_embeddings_requests_total",
                  "Requests to the embeddings server", MO_PROM_GAUGE},
    [UNEMBEDDED] = {"mo_router_embeddings_failures_total",
                    "Of those, without a usable answer in time", MO_PROM_GAUGE},
    [VECTORS] = {"mo_router_embeddings_vectors",
                 "Vectors of texts that are known", MO_PROM_GAUGE},
    [ROWS] = {"mo_audit_rows_total", "Rows written to the audit log",
              MO_PROM_GAUGE},
    [LOST] = {"mo_audit_lost_total", "Rows that could not be written",
              MO_PROM_GAUGE},
    [CONNECTIONS] = {"mo_box_connections_total",
                     "Connections of boxes, by the entry that allowed them",
                     MO_PROM_COUNTER,
                     {"server", "rule", "outcome"}},
    [BYTES] = {"mo_box_bytes_total",
               "Bytes of these connections, seen from the box",
               MO_PROM_COUNTER,
               {"server", "rule", "direction"}},
    [REFUSED] = {"mo_budget_refused_total",
                 "What was refused because a limit was reached",
                 MO_PROM_GAUGE,
                 {"limit"}},
    [TOKENS] = {"mo_model_tokens_total", "Tokens of models, input and output",
                MO_PROM_GAUGE},
    [UNPRICED] = {"mo_model_unpriced_tokens_total",
                  "Of those, of models without a price", MO_PROM_GAUGE},
    [TOOL_TOKENS] = {"mo_model_tool_tokens_total",
                     "Tokens of definitions, calls and results of tools in "
                     "requests, about: sent, and what plain calls would have "
                     "sent",
                     MO_PROM_GAUGE,
                     {"kind"}},
    [COST] = {"mo_model_cost_millionths_total",
              "Cost of models, in millionths of the unit of `prices`",
              MO_PROM_GAUGE},
};

/* Where calls of a tool are counted; NULL: not yet. Finding a series by its
 * labels writes them out, which is too much for every call. */
struct row {
    struct mo_prom_series *calls, *errors, *seconds;
};

struct mo_gateway_metrics {
    struct mo_gateway_setup *gateway; /* NULL: stopped */
    struct mo_approvals *approvals;
    const struct mo_agent *agent; /* or NULL */
    struct mo_prom_metric *m[METRICS];
    struct mo_prom_series *outcomes[MO_GW_OUTCOMES];
    struct mo_call_stats *sums; /* with a struct row for each tool */
};

static struct mo_prom_series *plain(const struct mo_gateway_metrics *g,
                                    int which)
{
    return mo_prom_with(g->m[which], NULL);
}

static struct mo_prom_series *series(struct mo_prom_series **at,
                                     struct mo_prom_metric *m,
                                     const struct mo_span *labels)
{
    if (!*at)
        *at = mo_prom_with(m, labels);
    return *at;
}

static void on_done(void *ctx, const struct mo_gw_case *k)
{
    static const char *const words[MO_GW_OUTCOMES] = {
        "ok", "tool_error", "error", "unknown", "cancelled", "denied"};
    struct mo_gateway_metrics *g = ctx;
    const struct mo_span labels[] = {k->server, k->tool};
    const struct mo_span outcome = mo_span_cstr(words[k->outcome]);
    const struct mo_call_stats_call call = {.server = k->server,
                                            .tool = k->tool,
                                            .ms = k->ms - k->waited_ms,
                                            .failed = k->outcome != MO_GW_OK};
    struct row none = {.calls = NULL};
    struct row *r = mo_call_stats_add(g->sums, &call, mo_wall_coarse_ms());

    r = r ? r : &none; /* no room: found each time */
    mo_prom_count(series(&r->calls, g->m[CALLS], labels), 1);
    if (k->outcome != MO_GW_OK)
        mo_prom_count(series(&r->errors, g->m[ERRORS], labels), 1);
    mo_prom_count(series(&g->outcomes[k->outcome], g->m[OUTCOMES], &outcome),
                  1);
    if (k->view.n)
        mo_prom_count(mo_prom_with(g->m[VIEWS],
                                   (const struct mo_span[]){k->view, outcome}),
                      1);
    if (k->outcome != MO_GW_DENIED)
        mo_prom_observe(series(&r->seconds, g->m[SECONDS], labels),
                        (double)(k->ms - k->waited_ms) / 1000);
    if (k->id[0])
        mo_prom_observe(plain(g, APPROVAL), (double)k->waited_ms / 1000);
}

/* Hosts that no rule names are one series: a box cannot invent labels. */
static void on_connection(void *ctx, const char *server,
                          const struct mo_egress_row *r)
{
    struct mo_gateway_metrics *g = ctx;
    struct mo_span labels[] = {
        mo_span_cstr(server), mo_span_cstr(*r->rule ? r->rule : "other"),
        mo_span_cstr(r->allowed ? "allowed" : "refused")};

    if (*r->address)
        mo_prom_count(mo_prom_with(g->m[CONNECTIONS], labels), 1);
    if (r->sent || r->received) {
        labels[2] = MO_SPAN("sent");
        mo_prom_count(mo_prom_with(g->m[BYTES], labels), r->sent);
        labels[2] = MO_SPAN("received");
        mo_prom_count(mo_prom_with(g->m[BYTES], labels), r->received);
    }
    if (r->uncounted) {
        labels[1] = MO_SPAN("other");
        labels[2] = MO_SPAN("refused");
        mo_prom_count(mo_prom_with(g->m[CONNECTIONS], labels), r->uncounted);
    }
}

static void measure_server(const struct mo_gateway_metrics *g,
                           const struct mo_upstream *u)
{
    const struct mo_span name = mo_span_cstr(mo_upstream_server(u)->name);
    struct mo_upstream_status s;

    mo_upstream_status(u, &s);
    mo_prom_set(mo_prom_with(g->m[BREAKER], &name), s.breaker);
    mo_prom_set(mo_prom_with(g->m[CHILDREN], &name), s.children);
    mo_prom_set(mo_prom_with(g->m[QUEUE], &name), s.waiting);
}

static void measure_budget(const struct mo_gateway_metrics *g)
{
    const struct mo_budget_stats s =
        mo_budget_stats(mo_gateway_setup_budget(g->gateway));

    for (int k = 0; k < MO_BUDGET_KINDS; k++) {
        struct mo_span label =
            mo_span_cstr(mo_budget_kind_name((enum mo_budget_kind)k));

        mo_prom_set(mo_prom_with(g->m[REFUSED], &label), (double)s.refused[k]);
    }
    mo_prom_set(plain(g, TOKENS), (double)s.tokens);
    mo_prom_set(plain(g, UNPRICED), (double)s.unpriced);
    mo_prom_set(plain(g, COST), (double)s.money);
}

/* None of them without an embeddings server. */
static void measure_embeddings(const struct mo_gateway_metrics *g,
                               const struct mo_gateway *gw)
{
    struct embeddings_stats s;

    if (!mo_gateway_embeddings(gw, &s))
        return;
    mo_prom_set(plain(g, EMBEDDED), (double)s.requests);
    mo_prom_set(plain(g, UNEMBEDDED), (double)s.failures);
    mo_prom_set(plain(g, VECTORS), (double)s.vectors);
}

static void measure_tools(const struct mo_gateway_metrics *g)
{
    const struct mo_tally *t = mo_agent_tally(g->agent);
    const struct mo_span sent = MO_SPAN("sent"), as_plain = MO_SPAN("plain");

    mo_prom_set(mo_prom_with(g->m[TOOL_TOKENS], &sent), (double)t->tools_sent);
    mo_prom_set(mo_prom_with(g->m[TOOL_TOKENS], &as_plain),
                (double)t->tools_plain);
}

static void measure(void *ctx)
{
    const struct mo_gateway_metrics *g = ctx;
    const struct mo_gateway *gw;
    struct mo_audit_file_stats s;

    if (!g->gateway)
        return;
    gw = mo_gateway_setup_gateway(g->gateway);
    for (size_t i = 0; i < mo_gateway_count(gw); i++)
        measure_server(g, mo_gateway_up(gw, i));
    s = mo_audit_stats(mo_approvals_audit(g->approvals));
    mo_prom_set(plain(g, WAITING), mo_approvals_waiting(g->approvals));
    mo_prom_set(plain(g, SAVED), (double)mo_gateway_saved(gw));
    measure_embeddings(g, gw);
    mo_prom_set(plain(g, ROWS), (double)s.rows);
    mo_prom_set(plain(g, LOST), (double)s.lost);
    measure_budget(g);
    if (g->agent)
        measure_tools(g);
}

void mo_gateway_metrics_agent(struct mo_gateway_metrics *g,
                              const struct mo_agent *agent)
{
    if (g)
        g->agent = agent;
}

/* --- for the page -------------------------------------------------------- */

static void put_server(const struct mo_gateway_metrics *g,
                       const struct mo_upstream *u, bool raw, struct mo_jw *w)
{
    const struct mo_span name = mo_span_cstr(mo_upstream_server(u)->name);
    struct mo_upstream_status s;

    mo_upstream_status(u, &s);
    mo_jw_obj(w);
    mo_jw_member(w, "name", name);
    mo_jw_member_cstr(w, "state", mo_server_view_state((int)s.state));
    mo_jw_member_cstr(w, "breaker", mo_breaker_name(s.breaker));
    mo_jw_member_u64(w, "children", s.children);
    mo_jw_member_u64(w, "queue", s.waiting);
    if (raw)
        mo_jw_member_u64(w, "lastCheck", s.heard_at);
    mo_call_stats_put_server(g->sums, name, MO_GATEWAY_METRICS_TOOLS, raw, w);
    mo_jw_end(w);
}

void mo_gateway_metrics_put(void *ctx, bool raw, struct mo_jw *w)
{
    const struct mo_gateway_metrics *g = ctx;
    const struct mo_gateway *gw =
        g->gateway ? mo_gateway_setup_gateway(g->gateway) : NULL;
    uint64_t children = 0, queue = 0;
    struct mo_upstream_status s;

    mo_jw_obj(w);
    mo_call_stats_put(g->sums, mo_wall_ms(), raw, w);
    mo_jw_member_arr(w, "servers");
    for (size_t i = 0; gw && i < mo_gateway_count(gw); i++) {
        mo_upstream_status(mo_gateway_up(gw, i), &s);
        children += s.children;
        queue += s.waiting;
        put_server(g, mo_gateway_up(gw, i), raw, w);
    }
    mo_jw_end(w);
    mo_jw_member_u64(w, "children", children);
    mo_jw_member_u64(w, "queue", queue);
    mo_jw_member_u64(w, "waiting", gw ? mo_approvals_waiting(g->approvals) : 0);
    mo_jw_member_u64(w, "savedTokens", gw ? mo_gateway_saved(gw) : 0);
    mo_jw_end(w);
}

/* --- from start to end --------------------------------------------------- */

int mo_gateway_metrics_new(struct mo_prom *p, struct mo_gateway_setup *gateway,
                           struct mo_approvals *approvals,
                           struct mo_gateway_metrics **out, struct mo_err *e)
{
    struct mo_gateway_metrics *g = mo_new(struct mo_gateway_metrics);
    int rc = 0;

    if (!g)
        return mo_fail(e, MO_ENOMEM, "metrics");
    g->gateway = gateway;
    g->approvals = approvals;
    g->sums = mo_call_stats_new(sizeof(struct row));
    rc = g->sums ? 0 : mo_fail(e, MO_ENOMEM, "metrics");
    for (size_t i = 0; rc == 0 && i < METRICS; i++) {
        g->m[i] = mo_prom_add(p, &descs[i], e);
        rc = g->m[i] ? 0 : e->code;
    }
    if (rc == 0)
        rc = mo_prom_hook(p, measure, g);
    if (rc < 0) {
        mo_gateway_metrics_free(g);
        return mo_fail(e, rc, "metrics");
    }
    mo_approvals_watch(approvals,
                       &(struct mo_approvals_watch){on_done, on_connection, g});
    *out = g;
    return 0;
}

void mo_gateway_metrics_stop(struct mo_gateway_metrics *g)
{
    if (!g || !g->gateway)
        return;
    mo_approvals_watch(g->approvals, &(struct mo_approvals_watch){.ctx = NULL});
    g->gateway = NULL;
}

void mo_gateway_metrics_free(struct mo_gateway_metrics *g)
{
    if (!g)
        return;
    mo_call_stats_free(g->sums);
    mo_free(g);
}
