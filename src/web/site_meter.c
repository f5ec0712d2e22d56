#include "web/site_meter.h"

#include <stdio.h>
#include <unistd.h>

#define METRICS_MAX ((size_t)4 * 1024 * 1024)

enum { G_UP, G_CONNS, G_STREAMS, G_TIMERS, G_ENGINES, G_SOCKETS, G_RSS };

static const struct mo_prom_desc gauge_desc[MO_SITE_GAUGES] = {
    [G_UP] = {"mo_uptime_seconds", "Seconds since the server started",
              MO_PROM_GAUGE},
    [G_CONNS] = {"mo_http_connections", "Open HTTP connections", MO_PROM_GAUGE},
    [G_STREAMS] = {"mo_loop_streams", "Open byte streams of all kinds",
                   MO_PROM_GAUGE},
    [G_TIMERS] = {"mo_loop_timers", "Running timers", MO_PROM_GAUGE},
    [G_ENGINES] = {"mo_engineio_sessions", "Open Engine.IO sessions",
                   MO_PROM_GAUGE},
    [G_SOCKETS] = {"mo_socketio_sockets", "Connected Socket.IO sockets",
                   MO_PROM_GAUGE},
    [G_RSS] = {"process_resident_memory_bytes", "Resident memory",
               MO_PROM_GAUGE},
};

static const struct mo_prom_desc requests_desc = {
    .name = "mo_http_requests_total",
    .help = "Requests answered, by route and status",
    .kind = MO_PROM_COUNTER,
    .labels = {"route", "status"},
};

static const struct mo_prom_desc crowded_desc = {
    .name = "mo_http_connections_refused_total",
    .help = "Connections refused because their address has too many",
    .kind = MO_PROM_COUNTER,
};

static const struct mo_prom_desc seconds_desc = {
    .name = "mo_http_request_seconds",
    .help = "Time from a request's head to the end of its answer",
    .kind = MO_PROM_HISTOGRAM,
    .labels = {"route"},
    .buckets = mo_prom_seconds,
    .nbuckets = MO_PROM_SECONDS_N,
};

static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "re");
    char line[128] = "";
    uint64_t pages = 0;
    struct mo_span rest;

    if (!f)
        return 0;
    if (!fgets(line, sizeof(line), f))
        line[0] = '\0';
    (void)fclose(f);
    rest = mo_span_cstr(line);
    (void)mo_span_cut(&rest, ' '); /* the first number is the virtual size */
    (void)mo_span_u64(mo_span_cut(&rest, ' '), &pages);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static void measure(void *ctx)
{
    struct mo_site_meter *m = ctx;
    struct mo_loop_stats loop = mo_loop_stats(m->loop);
    struct mo_siod_stats sio = {0};
    double v[MO_SITE_GAUGES];

    if (m->sio)
        sio = mo_siod_stats(m->sio);
    v[G_UP] = (double)(mo_now_ns() - m->started) / (double)MO_S;
    v[G_CONNS] = mo_httpd_stats(m->httpd).open;
    v[G_STREAMS] = loop.streams;
    v[G_TIMERS] = loop.timers;
    v[G_ENGINES] = sio.eio.sessions;
    v[G_SOCKETS] = sio.sockets;
    v[G_RSS] = resident_bytes();
    for (int i = 0; i < MO_SITE_GAUGES; i++)
        mo_prom_set(m->gauges[i], v[i]);
    mo_prom_count(m->crowded,
                  mo_httpd_stats(m->httpd).crowded - m->crowded->count);
}

int mo_site_meter_init(struct mo_site_meter *m, struct mo_loop *l,
                       struct mo_err *e)
{
    struct mo_prom_metric *crowded;

    *m = (struct mo_site_meter){.loop = l, .started = mo_now_ns()};
    m->prom = mo_prom_new();
    if (!m->prom)
        return mo_fail(e, MO_ENOMEM, "metrics");
    for (int i = 0; i < MO_SITE_GAUGES; i++) {
        struct mo_prom_metric *one = mo_prom_add(m->prom, &gauge_desc[i], e);

        if (!one)
            return e->code;
        m->gauges[i] = mo_prom_with(one, NULL);
    }
    m->requests = mo_prom_add(m->prom, &requests_desc, e);
    m->seconds = mo_prom_add(m->prom, &seconds_desc, e);
    crowded = mo_prom_add(m->prom, &crowded_desc, e);
    if (!m->requests || !m->seconds || !crowded)
        return e->code;
    m->crowded = mo_prom_with(crowded, NULL);
    return mo_prom_hook(m->prom, measure, m);
}

void mo_site_meter_fini(struct mo_site_meter *m)
{
    mo_prom_free(m->prom);
    m->prom = NULL;
}

void mo_site_meter_count(struct mo_site_meter *m, const char *tag, int status,
                         uint64_t ns)
{
    struct mo_span labels[2];
    char code[8];

    if (m->last.tag != tag || m->last.status != status) {
        (void)snprintf(code, sizeof(code), "%d", status);
        labels[0] = mo_span_cstr(tag);
        labels[1] = mo_span_cstr(code);
        m->last.tag = tag;
        m->last.status = status;
        m->last.n = mo_prom_with(m->requests, labels);
        m->last.seconds = mo_prom_with(m->seconds, labels);
    }
    mo_prom_count(m->last.n, 1);
    mo_prom_observe(m->last.seconds, (double)ns / (double)MO_S);
}

void mo_site_meter_show(struct mo_site_meter *m, struct mo_req *rq)
{
    mo_autobuf struct mo_buf b = {.max = METRICS_MAX};

    if (mo_prom_write(m->prom, &b) < 0)
        mo_req_problem(rq, 503, "no_memory", "out of memory");
    else
        mo_req_reply(rq, 200, MO_PROM_TYPE, mo_buf_view(&b));
}
