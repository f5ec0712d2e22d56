/* boxed_sweep.h - removes boxes of gateways that were killed.
 *
 * A native box ends when its socket closes. In a container, the server loses
 * its input and usually ends, but the container stays, and a server that
 * ignores the end of its input keeps running. Whoever opens drivers therefore
 * removes boxes of dead gateways. The instance name identifies a process by
 * boot id, pid namespace, pid and start time, so a reused pid is not mistaken
 * for it. Boxes whose instance name comes from another boot, namespace or
 * machine are left alone, because this process cannot tell whether their owner
 * is alive.
 *
 * Limit: SUSPECTS_MAX boxes per sweep; the next sweep finds the rest. */
#ifndef MO_CONNECT_BOXED_SWEEP_H
#define MO_CONNECT_BOXED_SWEEP_H

#include "box/box.h"

#define MO_BOXED_STORE    "gateway" /* label of all boxes of gateways */
#define MO_BOXED_NAME_MAX 64

/* The instance name of this process. */
void mo_boxed_link_name(char out[MO_BOXED_NAME_MAX]);
/* True if the instance belongs to this boot and namespace and its process is
 * gone. */
bool mo_boxed_link_dead(struct mo_span instance);

/* Calls done(ctx) once, later; bs must stay open until then. Boxes that cannot
 * be removed are left to the next sweep. */
int mo_boxed_sweep(struct mo_boxes *bs, void (*done)(void *ctx), void *ctx,
                   struct mo_err *e);

#endif
