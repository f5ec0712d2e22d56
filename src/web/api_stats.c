/*
 * api_stats.c - see api_stats.h.
 */
#include "web/api_stats.h"

#include <stdio.h>

#include "agent/chat/chat.h"
#include "base/clock.h"
#include "session/gauge.h"
#include "web/api_workers.h"
#include "web/call_stats.h"
#include "web/gateway_metrics.h"

/* --- boxes --------------------------------------------------------------- */

struct mo_stats_sample mo_stats_compare(const struct mo_stats_sample *last,
                                        const char *box, uint64_t cpu_us,
                                        uint64_t at)
{
    struct mo_stats_sample s = {.cpu_us = cpu_us, .at = at, .permille = -1};
    uint64_t us = 0;

    (void)snprintf(s.box, sizeof(s.box), "%s", box);
    if (last == NULL || cpu_us < last->cpu_us || at <= last->at)
        return s;
    us = (at - last->at) / 1000;
    if (us < (uint64_t)MO_STATS_FRESH_MS * 1000 && last->permille >= 0)
        return *last; /* two people look at the same time */
    if (us > 0)
        s.permille = (int)((cpu_us - last->cpu_us) * 1000 / us);
    return s;
}

static const struct mo_stats_sample *last_of(const struct mo_api_stats *st,
                                             const char *box)
{
    for (size_t i = 0; i < st->nlast; i++)
        if (strcmp(st->last[i].box, box) == 0)
            return &st->last[i];
    return NULL;
}

static void put_box(struct mo_jw *w, const struct mo_gauge *g,
                    const struct mo_gateway_metrics *all, int permille)
{
    mo_jw_obj(w);
    mo_jw_member(w, "session", mo_span_cstr(g->session));
    mo_jw_member(w, "box", mo_span_cstr(g->box));
    mo_jw_member(w, "driver", mo_span_cstr(g->driver));
    mo_jw_member_u64(w, "memoryBytes", g->stats.memory);
    mo_jw_member_u64(w, "memoryPeak", g->stats.memory_peak);
    mo_jw_member_u64(w, "memoryLimit", all->memory_limit);
    mo_jw_key(w, "cpuPercent");
    if (permille < 0)
        mo_jw_null(w);
    else
        mo_jw_f64(w, permille / 10.0);
    mo_jw_member_f64(w, "cpuLimit", all->cpu_milli / 10.0);
    mo_jw_member_u64(w, "processes", g->stats.pids);
    mo_jw_end(w);
}

/* Without memory for what was seen now, the next look does not know. */
static void put_boxes(struct mo_jw *w, struct mo_api_stats *st,
                      const struct mo_gateway_metrics *g)
{
    struct mo_stats_sample *now = mo_alloc((g->n + 1) * sizeof(*now));

    mo_jw_member_arr(w, "boxes");
    for (size_t i = 0; i < g->n; i++) {
        const struct mo_gauge *v = &g->v[i];
        struct mo_stats_sample s = mo_stats_compare(last_of(st, v->box), v->box,
                                                    v->stats.cpu_us, v->at);

        put_box(w, v, g, s.permille);
        if (now)
            now[i] = s;
    }
    mo_jw_end(w);
    mo_free(st->last);
    st->last = now;
    st->nlast = now ? g->n : 0;
}

/* --- conversations ------------------------------------------------------- */

static void put_usage(struct mo_jw *w, const struct mo_llm_usage *u)
{
    mo_jw_member_u64(w, "input", u->input);
    mo_jw_member_u64(w, "output", u->output);
    mo_jw_member_u64(w, "cacheRead", u->cache_read);
}

static void put_chat(void *ctx, const struct mo_chat_look *c)
{
    struct mo_jw *w = ctx;

    mo_jw_obj(w);
    mo_jw_member(w, "session", mo_span_cstr(c->session));
    mo_jw_member(w, "model", c->model);
    put_usage(w, &c->spent);
    mo_jw_member_u64(w, "members", c->members);
    mo_jw_member_bool(w, "busy", c->busy);
    mo_jw_end(w);
}

static void put_waiting(void *ctx, const struct mo_waiting *k)
{
    struct mo_jw *w = ctx;

    mo_jw_obj(w);
    mo_jw_member(w, "session", mo_span_cstr(k->session));
    mo_jw_member(w, "callId", mo_span_cstr(k->call));
    mo_jw_member(w, "server", k->server);
    mo_jw_member(w, "tool", k->tool);
    mo_jw_member_opt(w, "title", k->title);
    mo_jw_member_u64(w, "since", k->since);
    mo_jw_member_u64(w, "expiresAt", k->expires);
    mo_jw_end(w);
}

static void put_agent(struct mo_jw *w, const struct mo_agent *a)
{
    mo_jw_member_arr(w, "conversations");
    if (a)
        mo_agent_chats(a, put_chat, w);
    mo_jw_end(w);
    mo_jw_member_arr(w, "approvals");
    if (a)
        mo_agent_waiting(a, put_waiting, w);
    mo_jw_end(w);
}

/* --- sums ---------------------------------------------------------------- */

static void put_tokens(struct mo_jw *w, const struct mo_tally *t)
{
    mo_jw_member_arr(w, "tokens");
    for (size_t i = 0; t && i < t->nmodels; i++) {
        const struct mo_tally_model *m = &t->models[i];

        mo_jw_obj(w);
        mo_jw_member(w, "provider", mo_span_cstr(m->provider));
        mo_jw_member(w, "model", mo_span_cstr(m->model));
        put_usage(w, &m->usage);
        mo_jw_member_u64(w, "replies", m->replies);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

enum column { CALLS, FAILED, MEAN_MS, LONGEST_MS, TOKENS, COLUMNS };

static uint64_t cell(const struct mo_tally_minute *m, enum column c)
{
    const uint64_t v[COLUMNS] = {
        [CALLS] = m->calls,
        [FAILED] = m->failed,
        [MEAN_MS] = m->calls > 0 ? m->ms / m->calls : 0,
        [LONGEST_MS] = m->longest_ms,
        [TOKENS] = m->tokens,
    };

    return v[c];
}

/* The present minute last. */
static void put_calls(struct mo_jw *w, const struct mo_tally *t, uint64_t now)
{
    static const char *const names[COLUMNS] = {"perMinute", "failedPerMinute",
                                               "meanMs", "longestMs",
                                               "tokensPerMinute"};

    mo_jw_member_obj(w, "calls");
    mo_jw_member_u64(w, "total", t ? t->calls : 0);
    mo_jw_member_u64(w, "failed", t ? t->failed : 0);
    for (int c = 0; c < COLUMNS; c++) {
        mo_jw_member_arr(w, names[c]);
        for (unsigned ago = MO_TALLY_MINUTES; t && ago > 0; ago--) {
            struct mo_tally_minute m = mo_tally_at(t, now, ago - 1);

            mo_jw_u64(w, cell(&m, (enum column)c));
        }
        mo_jw_end(w);
    }
    mo_jw_member_arr(w, "tokensPerQuarter");
    for (unsigned ago = MO_TALLY_QUARTERS; t && ago > 0; ago--)
        mo_jw_u64(w, mo_tally_tokens(t, now, ago - 1));
    mo_jw_end(w);
    mo_jw_end(w);
}

static void put_sessions(struct mo_jw *w, const struct mo_sessions *ss)
{
    const struct mo_sessions_stats st = mo_sessions_stats(ss);

    mo_jw_member_obj(w, "sessions");
    mo_jw_member_u64(w, "open", st.open);
    mo_jw_member_u64(w, "ready", st.ready);
    mo_jw_member_u64(w, "warmBoxes", st.warm);
    mo_jw_member_u64(w, "started", st.started);
    mo_jw_member_u64(w, "adopted", st.adopted);
    mo_jw_member_u64(w, "revived", st.revived);
    mo_jw_member_u64(w, "reaped", st.reaped);
    mo_jw_member_u64(w, "lost", st.lost);
    mo_jw_end(w);
}

/* --- of all workers ------------------------------------------------------ */

#define PERCENTILES                                                            \
    {"p50Ms", MO_MERGE_PUT, .put = mo_call_stats_put_p50},                     \
        {"p95Ms", MO_MERGE_PUT, .put = mo_call_stats_put_p95},                 \
        {"took", MO_MERGE_HIDE},                                               \
    {                                                                          \
        "longest", MO_MERGE_HIDE                                               \
    }
#define SUM(name)                                                              \
    {                                                                          \
        name, MO_MERGE_SUM                                                     \
    }

static const struct mo_merge_rule session_rules[] = {
    SUM("open"),    SUM("ready"),   SUM("warmBoxes"),
    SUM("started"), SUM("adopted"), SUM("revived"),
    SUM("reaped"),  SUM("lost"),    {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule token_rules[] = {SUM("input"),
                                                   SUM("output"),
                                                   SUM("cacheRead"),
                                                   SUM("replies"),
                                                   {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule call_rules[] = {
    SUM("total"),
    SUM("failed"),
    {"perMinute", MO_MERGE_EACH_SUM},
    {"failedPerMinute", MO_MERGE_EACH_SUM},
    {"meanMs", MO_MERGE_EACH_MEAN, .by = "perMinute"},
    {"longestMs", MO_MERGE_EACH_MOST},
    {"tokensPerMinute", MO_MERGE_EACH_SUM},
    {"tokensPerQuarter", MO_MERGE_EACH_SUM},
    {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule tool_rules[] = {
    SUM("calls"), SUM("errors"), PERCENTILES, {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule server_rules[] = {
    SUM("children"),
    SUM("queue"),
    SUM("calls"),
    SUM("errors"),
    PERCENTILES,
    {"lastCheck", MO_MERGE_HIDE},
    {"tools", MO_MERGE_BY, .by = "name", .in = tool_rules, .order = "calls",
     .most = MO_GATEWAY_METRICS_TOOLS},
    {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule gateway_rules[] = {
    SUM("calls"),
    SUM("errors"),
    PERCENTILES,
    {"perMinute", MO_MERGE_EACH_SUM},
    {"errorsPerMinute", MO_MERGE_EACH_SUM},
    {"longestMs", MO_MERGE_EACH_MOST},
    {"servers", MO_MERGE_BY, .by = "name", .in = server_rules},
    SUM("children"),
    SUM("queue"),
    SUM("waiting"),
    {NULL, MO_MERGE_SUM}};
static const struct mo_merge_rule stats_rules[] = {
    {"at", MO_MERGE_LATEST},
    {"since", MO_MERGE_FIRST},
    {"sessions", MO_MERGE_IN, .in = session_rules},
    {"boxes", MO_MERGE_JOIN},
    {"conversations", MO_MERGE_JOIN},
    {"approvals", MO_MERGE_JOIN},
    {"tokens", MO_MERGE_BY, .by = "provider", .and = "model",
     .in = token_rules},
    {"calls", MO_MERGE_IN, .in = call_rules},
    {"gateway", MO_MERGE_IN, .in = gateway_rules},
    {NULL, MO_MERGE_SUM}};

/* --- the answer ---------------------------------------------------------- */

struct look {
    struct mo_api_stats *st;
    struct mo_api_job *job;
};

static void on_gauges(void *ctx, const struct mo_gateway_metrics *g)
{
    struct look *l = ctx;
    struct mo_api_job *j = l->job;
    const struct mo_agent *agent = j->api->agent;
    const struct mo_tally *t = agent ? mo_agent_tally(agent) : NULL;
    uint64_t now = mo_wall_ms();
    struct mo_jw w;

    if (j->rq) { /* else the server may be closing: nothing is there */
        mo_jw_init(&w, &j->out);
        mo_jw_obj(&w);
        mo_jw_member_u64(&w, "at", now);
        mo_jw_member_u64(&w, "since", l->st->began);
        put_sessions(&w, j->api->sessions);
        put_boxes(&w, l->st, g);
        put_agent(&w, agent);
        put_tokens(&w, t);
        put_calls(&w, t, now);
        if (l->st->gateway) {
            mo_jw_key(&w, "gateway");
            l->st->gateway(l->st->gateway_ctx, mo_api_is_merged(j), &w);
        }
        mo_jw_end(&w);
    }
    mo_free(l);
    mo_api_of_all_workers(j, stats_rules);
}

static void get_stats(void *ctx, struct mo_req *rq)
{
    struct mo_api_stats *st = ctx;
    struct mo_api_job *j = mo_api_job(st->api, rq);
    struct look *l = NULL;
    struct mo_err e;

    if (j == NULL)
        return;
    l = mo_new(struct look);
    if (l == NULL) {
        mo_api_problem(j, 503, "no_memory", "out of memory");
        return;
    }
    *l = (struct look){st, j};
    if (mo_sessions_gauge(st->api->sessions, on_gauges, l, &e) == 0)
        return;
    mo_free(l);
    mo_api_error(j, &e);
}

int mo_api_stats_routes(struct mo_site *s, struct mo_api_stats *st)
{
    const struct mo_route r = {MO_HTTP_GET, "/api/stats", MO_ROUTE_WORKERS,
                               get_stats, st};

    st->began = mo_wall_ms();
    return mo_site_route(s, &r);
}

void mo_api_stats_fini(struct mo_api_stats *st)
{
    mo_free(st->last);
    st->last = NULL;
    st->nlast = 0;
}
