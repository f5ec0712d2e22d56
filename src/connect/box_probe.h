/* box_probe.h - tests the isolation of a box from inside it.
 *
 * Starts two small boxes per driver. A shell script in the first tries
 * everything that a box must prevent and prints one result per control. The
 * controls are a table: name, description, and the shell lines that succeed if
 * the control holds. The second box has a network with one allowed host; the
 * toolbox in it tries to reach others (toolbox/network_check.h). The command
 * `doctor --sandbox` uses this. The tests use an independent checker that also
 * observes the box from outside. */
#ifndef MO_CONNECT_BOX_PROBE_H
#define MO_CONNECT_BOX_PROBE_H

#include "config/config.h"
#include "loop/loop.h"

struct mo_box_probe_row {
    const char *driver;
    const char *control; /* "driver": the driver does not work, see detail */
    const char *promise;
    bool pass;
    bool absent; /* driver not available and not configured: not a failure */
    char detail[240];
};

/* Runs the loop until all boxes are gone. Calls row() for each control of each
 * driver. Fails only if no driver could be tested. */
typedef void mo_box_probe_fn(void *ctx, const struct mo_box_probe_row *r);
int mo_box_probe(struct mo_loop *l, const struct mo_config *cfg,
                 mo_box_probe_fn *row, void *ctx, struct mo_err *e);

#endif
