/* route-eval - measures how well the router finds tools, on labelled requests.
 *
 * Reads three files of JSON lines: servers {server, description}, catalogue
 * {server, tool, description, params}, requests {query, gold: [[server, tool],
 * ...]}. A request without gold needs no tool: a confident answer to it is a
 * false accept.
 *
 * Everything is read into one arena and measured in one thread. */
#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/list.h"
#include "base/map.h"
#include "cli/cmd.h"
#include "codec/json/json.h"
#include "route/route.h"
#include "route/route_table.h"

#define FILE_MAX   ((size_t)256 * 1024 * 1024)
#define ARENA_MAX  ((size_t)1024 * 1024 * 1024)
#define LINE_DEPTH 16
#define BINS       10 /* bins of confidence, for the calibration */
#define RANKS      10

struct entry { /* a server, while it is read */
    struct mo_list node;
    struct mo_route_server s;
    struct mo_list tools;
};

struct entry_tool {
    struct mo_list node;
    struct mo_route_tool t;
};

struct ranked { /* requests whose answer was within that rank */
    unsigned n, top1, top3, top5;
    double reciprocal;
};

struct sure { /* requests answered with at least that confidence */
    float from;
    unsigned answered, right, wrong_none;
    unsigned tools, tools_right; /* the same of requests with a known tool */
};

struct bin {
    unsigned n, right;
    double confidence;
};

struct eval {
    struct mo_arena arena;
    struct mo_map by_name; /* struct entry */
    struct mo_list entries;
    struct mo_vectors *vectors;
    struct mo_route *route;
    struct mo_route_answer answer;
    struct ranked server, tool;
    struct sure sure[2];
    struct bin bins[BINS];
    unsigned requests, none; /* none: requests that need no tool */
    double *us;
    size_t cap_us;
    double index_ms;
    struct mo_buf text[3]; /* of the files */
};

/* --- files ---------------------------------------------------------------- */

static struct mo_span text_of(struct eval *v, struct mo_json j)
{
    struct mo_span s = {"", 0};

    if (mo_json_is(j, MO_JSON_STRING))
        (void)mo_json_str(j, &v->arena, &s);
    return s;
}

static struct entry *entry_of(struct eval *v, struct mo_json line)
{
    struct mo_span name = text_of(v, mo_json_get(line, "server"));
    struct entry *en = mo_map_get(&v->by_name, name);

    if (en || name.n == 0)
        return en;
    en = mo_arena_new(&v->arena, struct entry);
    if (!en || mo_map_put(&v->by_name, name, en, NULL) < 0)
        return NULL;
    en->s.name = name;
    mo_list_init(&en->tools);
    mo_list_push(&v->entries, &en->node);
    return en;
}

static int on_server(struct eval *v, struct mo_json line)
{
    struct entry *en = entry_of(v, line);

    if (!en)
        return MO_EINVAL;
    en->s.description = text_of(v, mo_json_get(line, "description"));
    return 0;
}

static int on_tool(struct eval *v, struct mo_json line)
{
    struct mo_json params = mo_json_get(line, "params");
    struct entry *en = entry_of(v, line);
    struct entry_tool *t = mo_arena_new(&v->arena, struct entry_tool);
    size_t max = mo_json_is(params, MO_JSON_ARRAY) ? mo_json_len(params) : 0;
    struct mo_span *names =
        mo_arena_zalloc(&v->arena, (max + 1) * sizeof(*names));

    if (!en || !t || !names)
        return en ? MO_ENOMEM : MO_EINVAL;
    t->t.name = text_of(v, mo_json_get(line, "tool"));
    t->t.description = text_of(v, mo_json_get(line, "description"));
    t->t.params = names;
    mo_json_each_while (it, params, t->t.nparams < max)
        names[t->t.nparams++] = text_of(v, it.val);
    mo_list_push(&en->tools, &t->node);
    en->s.ntools++;
    return 0;
}

static int each_line(struct eval *v, const char *path, struct mo_buf *text,
                     int (*on)(struct eval *v, struct mo_json line),
                     struct mo_err *e)
{
    int rc = mo_file_read(path, FILE_MAX, text, NULL, e);
    struct mo_span rest = mo_buf_view(text);
    unsigned number = 0;

    while (rc == 0 && rest.n) {
        struct mo_span line = mo_span_trim(mo_span_cut(&rest, '\n'));
        struct mo_json_doc doc;

        number++;
        if (line.n == 0)
            continue;
        rc = mo_json_parse(line, LINE_DEPTH, &doc, e);
        if (rc == 0 && !mo_json_is(doc.root, MO_JSON_OBJECT))
            rc = mo_fail(e, MO_EINVAL, "no object");
        if (rc == 0) {
            rc = on(v, doc.root);
            if (rc < 0)
                (void)mo_fail(e, rc, "no \"server\", or out of memory");
        }
        if (rc < 0)
            return mo_wrap(e, "%s:%u", path, number);
    }
    return rc;
}

/* --- index ---------------------------------------------------------------- */

static int put_entry(struct eval *v, struct entry *en)
{
    struct mo_route_tool *tools =
        mo_arena_zalloc(&v->arena, (en->s.ntools + 1) * sizeof(*tools));
    size_t n = 0;

    if (!tools)
        return MO_ENOMEM;
    mo_list_each_entry (t, &en->tools, struct entry_tool, node)
        tools[n++] = t->t;
    en->s.tools = tools;
    return mo_route_put(v->route, &en->s);
}

static int build_index(struct eval *v, struct mo_err *e)
{
    uint64_t began = mo_now_ns();
    int rc = 0;

    v->route = mo_route_new(v->vectors);
    if (!v->route)
        return mo_fail(e, MO_ENOMEM, "index");
    mo_list_each_entry (en, &v->entries, struct entry, node) {
        rc = put_entry(v, en);
        if (rc < 0)
            return mo_fail(e, rc, "too many servers or tools, or no memory");
    }
    rc = mo_route_find(v->route, mo_span(NULL, 0), 1, &v->answer); /* settle */
    v->index_ms = (double)(mo_now_ns() - began) / (double)MO_MS;
    return rc < 0 ? mo_fail(e, rc, "index") : 0;
}

/* --- requests ------------------------------------------------------------- */

static bool is_gold(struct mo_json gold, const struct mo_route_hit *h,
                    bool with_tool)
{
    mo_json_each (it, gold)
        if (mo_json_str_eq(mo_json_at(it.val, 0), h->server) &&
            (!with_tool || mo_json_str_eq(mo_json_at(it.val, 1), h->tool)))
            return true;
    return false;
}

static size_t rank_of(struct mo_json gold, const struct mo_route_hit *v,
                      size_t n, bool with_tool)
{
    size_t i = 0;

    while (i < n && !is_gold(gold, &v[i], with_tool))
        i++;
    return i < n ? i : RANKS;
}

static void count_rank(struct ranked *r, size_t rank)
{
    r->n++;
    r->top1 += rank < 1;
    r->top3 += rank < 3;
    r->top5 += rank < 5;
    if (rank < RANKS)
        r->reciprocal += 1.0 / (double)(rank + 1);
}

static void count_sure(struct eval *v, float confidence, bool right, bool none)
{
    struct bin *b =
        &v->bins[confidence < 1 ? (size_t)(confidence * BINS) : BINS - 1];

    if (!none) {
        b->n++;
        b->right += right;
        b->confidence += confidence;
    }
    for (size_t i = 0; i < MO_COUNT(v->sure); i++) {
        if (confidence < v->sure[i].from)
            continue;
        v->sure[i].answered += !none;
        v->sure[i].right += right;
        v->sure[i].wrong_none += none;
    }
}

static void count_sure_tool(struct eval *v, const struct mo_route_answer *a,
                            bool right)
{
    for (size_t i = 0; i < MO_COUNT(v->sure); i++) {
        if (a->n == 0 || a->hits[0].confidence < v->sure[i].from)
            continue;
        v->sure[i].tools++;
        v->sure[i].tools_right += right;
    }
}

static int note_time(struct eval *v, uint64_t ns)
{
    if (v->requests == v->cap_us) {
        size_t cap = v->cap_us ? v->cap_us * 2 : 1024;
        double *us = mo_realloc(v->us, cap * sizeof(*us));

        if (!us)
            return MO_ENOMEM;
        v->us = us;
        v->cap_us = cap;
    }
    v->us[v->requests++] = (double)ns / 1000;
    return 0;
}

static int on_request(struct eval *v, struct mo_json line)
{
    struct mo_json gold = mo_json_get(line, "gold");
    struct mo_span text = text_of(v, mo_json_get(line, "query"));
    bool none = mo_json_is(gold, MO_JSON_ARRAY) && mo_json_len(gold) == 0;
    const struct mo_route_answer *a = &v->answer;
    uint64_t began = mo_now_ns();
    int rc = mo_route_find(v->route, text, RANKS, &v->answer);
    size_t server, tool;

    if (rc == 0)
        rc = note_time(v, mo_now_ns() - began);
    if (rc < 0)
        return rc;
    server = rank_of(gold, a->servers, a->nservers, false);
    count_sure(v, a->nservers ? a->servers[0].confidence : 0, server == 0,
               none);
    v->none += none;
    if (none)
        return 0;
    count_rank(&v->server, server);
    if (!mo_json_is(mo_json_at(mo_json_at(gold, 0), 1), MO_JSON_STRING))
        return 0;
    tool = rank_of(gold, a->hits, a->n, true);
    count_rank(&v->tool, tool);
    count_sure_tool(v, a, tool == 0);
    return 0;
}

/* --- results -------------------------------------------------------------- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double share(double part, double all)
{
    return all > 0 ? part / all : 0;
}

static double calibration(const struct eval *v)
{
    double sum = 0;

    for (size_t i = 0; i < BINS; i++)
        sum += fabs(v->bins[i].right - v->bins[i].confidence);
    return share(sum, v->server.n);
}

static double percentile(const struct eval *v, unsigned p)
{
    return v->requests ? v->us[(size_t)v->requests * p / 100] : 0;
}

static void put_ranked(struct mo_jw *w, const char *key, const struct ranked *r)
{
    mo_jw_member_obj(w, key);
    mo_jw_member_f64(w, "requests", r->n);
    mo_jw_member_f64(w, "top1", share(r->top1, r->n));
    mo_jw_member_f64(w, "top3", share(r->top3, r->n));
    mo_jw_member_f64(w, "top5", share(r->top5, r->n));
    mo_jw_member_f64(w, "mrr", share(r->reciprocal, r->n));
    mo_jw_end(w);
}

static void put_sure(struct mo_jw *w, const struct eval *v)
{
    mo_jw_member_arr(w, "at");
    for (size_t i = 0; i < MO_COUNT(v->sure); i++) {
        const struct sure *s = &v->sure[i];

        mo_jw_obj(w);
        mo_jw_member_f64(w, "confidence", (double)lrintf(s->from * 100) / 100);
        mo_jw_member_f64(w, "precision", share(s->right, s->answered));
        mo_jw_member_f64(w, "coverage", share(s->answered, v->server.n));
        mo_jw_member_f64(w, "false_accept", share(s->wrong_none, v->none));
        mo_jw_member_f64(w, "tool_precision", share(s->tools_right, s->tools));
        mo_jw_member_f64(w, "tool_coverage", share(s->tools, v->tool.n));
        mo_jw_end(w);
    }
    mo_jw_end(w);
}

static void report_json(const struct eval *v, struct mo_buf *b)
{
    struct mo_route_stats s = mo_route_stats(v->route);
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_f64(&w, "requests", v->requests);
    mo_jw_member_f64(&w, "servers", (double)s.servers);
    mo_jw_member_f64(&w, "tools", (double)s.tools);
    put_ranked(&w, "server", &v->server);
    put_ranked(&w, "tool", &v->tool);
    mo_jw_member_f64(&w, "ece", calibration(v));
    put_sure(&w, v);
    mo_jw_member_obj(&w, "latency_us");
    mo_jw_member_f64(&w, "p50", percentile(v, 50));
    mo_jw_member_f64(&w, "p99", percentile(v, 99));
    mo_jw_end(&w);
    mo_jw_member_f64(&w, "index_ms", v->index_ms);
    mo_jw_member_f64(&w, "index_bytes", (double)s.bytes);
    mo_jw_end(&w);
}

static void say_ranked(struct mo_buf *b, const char *what,
                       const struct ranked *r)
{
    if (r->n)
        mo_buf_printf(b,
                      "%-8s top-1 %5.1f %%  top-3 %5.1f %%  top-5 %5.1f %%  "
                      "MRR %.3f\n",
                      what, 100 * share(r->top1, r->n),
                      100 * share(r->top3, r->n), 100 * share(r->top5, r->n),
                      share(r->reciprocal, r->n));
}

static void report_text(const struct eval *v, struct mo_buf *b)
{
    struct mo_route_stats s = mo_route_stats(v->route);

    mo_buf_printf(b, "%u requests, %zu servers, %zu tools\n", v->requests,
                  s.servers, s.tools);
    say_ranked(b, "server", &v->server);
    say_ranked(b, "tool", &v->tool);
    for (size_t i = 0; i < MO_COUNT(v->sure); i++) {
        const struct sure *at = &v->sure[i];

        mo_buf_printf(b, "at %.1f  ", (double)at->from);
        if (v->server.n)
            mo_buf_printf(b, "precision %.3f  coverage %.3f  ",
                          share(at->right, at->answered),
                          share(at->answered, v->server.n));
        if (v->tool.n)
            mo_buf_printf(b, "tool precision %.3f  coverage %.3f  ",
                          share(at->tools_right, at->tools),
                          share(at->tools, v->tool.n));
        if (v->none)
            mo_buf_printf(b, "false accepts %.3f",
                          share(at->wrong_none, v->none));
        mo_buf_putc(b, '\n');
    }
    if (v->server.n)
        mo_buf_printf(b, "ECE %.3f\n", calibration(v));
    mo_buf_printf(
        b, "a request p50 %.0f us, p99 %.0f us; index %.0f ms, %zu KB\n",
        percentile(v, 50), percentile(v, 99), v->index_ms, s.bytes / 1024);
}

/* --- command -------------------------------------------------------------- */

static int measure(struct mo_cli *c, struct eval *v, struct mo_err *e)
{
    int rc = 0;

    if (!mo_cli_has(c, "words-only")) {
        v->vectors = mo_vectors_new(mo_route_table(), mo_route_pieces(), e);
        rc = v->vectors ? 0 : e->code;
    }
    if (rc == 0 && mo_cli_has(c, "servers"))
        rc = each_line(v, mo_cli_get(c, "servers"), &v->text[0], on_server, e);
    if (rc == 0)
        rc = each_line(v, mo_cli_get(c, "catalog"), &v->text[1], on_tool, e);
    if (rc == 0)
        rc = build_index(v, e);
    if (rc == 0)
        rc = each_line(v, mo_cli_get(c, "queries"), &v->text[2], on_request, e);
    if (rc == 0 && v->requests)
        qsort(v->us, v->requests, sizeof(*v->us), by_size);
    return rc;
}

static int report(struct mo_cli *c, const struct eval *v)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};

    if (mo_cli_has(c, "json"))
        report_json(v, &b);
    else
        report_text(v, &b);
    return mo_cmd_print(c, &b);
}

static void eval_fini(struct eval *v)
{
    for (size_t i = 0; i < MO_COUNT(v->text); i++)
        mo_buf_fini(&v->text[i]);
    mo_route_free(v->route);
    mo_vectors_free(v->vectors);
    mo_map_fini(&v->by_name);
    mo_arena_fini(&v->arena);
    mo_free(v->us);
}

int mo_run_route_eval(struct mo_cli *c)
{
    MO_CLEANUP(eval_fini)
    struct eval v = {.arena.cap = ARENA_MAX,
                     .sure = {{.from = 0.5f}, {.from = MO_ROUTE_SURE}}};
    struct mo_err e = {0};

    if (!mo_cli_has(c, "catalog") || !mo_cli_has(c, "queries"))
        return mo_cli_error(c, MO_EXIT_USAGE, "needs --catalog and --queries");
    mo_map_init(&v.by_name, MO_ROUTE_SERVERS_MAX);
    mo_list_init(&v.entries);
    for (size_t i = 0; i < MO_COUNT(v.text); i++)
        mo_buf_init(&v.text[i], FILE_MAX);
    return measure(c, &v, &e) < 0 ? mo_cli_error(c, MO_EXIT_FAIL, "%s", e.msg)
                                  : report(c, &v);
}
