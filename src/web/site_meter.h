/* site_meter.h - the web server's own metrics, for /metrics.
 *
 * Requests are counted by route and status as they end; connections, sockets
 * and memory are read on request. Other files add their metrics to `prom`.
 *
 * Ownership: the meter owns prom. httpd and sio are borrowed; the site sets
 * them when they exist, and sio to NULL when it is gone. */
#ifndef MO_WEB_SITE_METER_H
#define MO_WEB_SITE_METER_H

#include "codec/prom.h"
#include "loop/httpd.h"
#include "web/siod.h"

#define MO_SITE_GAUGES 7

struct mo_site_meter {
    struct mo_loop *loop;
    struct mo_httpd *httpd;
    struct mo_siod *sio;
    struct mo_prom *prom;
    struct mo_prom_metric *requests, *seconds;
    struct {
        const char *tag; /* the route's pointer, not its text */
        int status;
        struct mo_prom_series *n, *seconds;
    } last; /* last request counted: most are like it */
    struct mo_prom_series *gauges[MO_SITE_GAUGES], *crowded;
    uint64_t started;
};

/* Call fini() also after a failure. */
int mo_site_meter_init(struct mo_site_meter *m, struct mo_loop *l,
                       struct mo_err *e);
void mo_site_meter_fini(struct mo_site_meter *m);

/* Count an answered request; tag is a string that outlives the meter. */
void mo_site_meter_count(struct mo_site_meter *m, const char *tag, int status,
                         uint64_t ns);
void mo_site_meter_show(struct mo_site_meter *m, struct mo_req *rq);

#endif
