/* site_meter.h - what the web server counts of itself, for /metrics.
 *
 * Requests by route and status as they end; connections, sockets and memory
 * when somebody asks. Other rooms add theirs to `prom`.
 *
 * Ownership: prom is the meter's; httpd and sio are borrowed and set by the
 * site when they exist, sio NULL when it has gone. */
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
        const char *tag; /* as the route has it, not its text */
        int status;
        struct mo_prom_series *n, *seconds;
    } last; /* request that was counted: most are like it */
    struct mo_prom_series *gauges[MO_SITE_GAUGES];
    uint64_t started;
};

/* fini() also after a failure. */
int mo_site_meter_init(struct mo_site_meter *m, struct mo_loop *l,
                       struct mo_err *e);
void mo_site_meter_fini(struct mo_site_meter *m);

/* A request has been answered; tag is a text that stays. */
void mo_site_meter_count(struct mo_site_meter *m, const char *tag, int status,
                         uint64_t ns);
void mo_site_meter_show(struct mo_site_meter *m, struct mo_req *rq);

#endif
