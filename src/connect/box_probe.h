/* box_probe.h - does a box keep its promises here? Tried from inside.
 *
 * One small box of each driver runs a script that tries, one after the other,
 * what a box must not be able to do, and says how it went. The controls are a
 * table: a name, the promise in words, and the lines of shell that are true
 * when it is kept. This is for a person who wants to know; the tests have an
 * enemy of their own, and look from outside. */
#ifndef MO_CONNECT_BOX_PROBE_H
#define MO_CONNECT_BOX_PROBE_H

#include "config/config.h"
#include "loop/loop.h"

struct mo_box_probe_row {
    const char *driver;
    const char *control; /* "driver": it cannot be used at all, see detail */
    const char *promise;
    bool pass;
    bool absent; /* not there, and nobody asked for it: no failure */
    char detail[240];
};

/* Blocks while the loop runs; row() for each control of each driver. An error
 * only if nothing could be tried. */
int mo_box_probe(struct mo_loop *l, const struct mo_config *cfg,
                 void (*row)(void *ctx, const struct mo_box_probe_row *r),
                 void *ctx, struct mo_err *e);

#endif
