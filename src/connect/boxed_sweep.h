/* boxed_sweep.h - boxes that a gateway has left behind by dying.
 *
 * A native box ends by itself when nobody is at its socket any more; in one of
 * an engine the program has lost its input and ends, as servers do, but the
 * container stays, and so does a program that goes on all the same. Whoever
 * opens a sandbox therefore looks for boxes of gateways that live no more. The
 * name of an instance says which process it is: of which boot and pid
 * namespace, its number, and when it was started, so that a number that was
 * given out again is not taken for it. Others' names are left alone: whether
 * they live cannot be seen from here.
 *
 * Limit: SUSPECTS_MAX at a time; the next look finds the rest. */
#ifndef MO_CONNECT_BOXED_SWEEP_H
#define MO_CONNECT_BOXED_SWEEP_H

#include "box/box.h"

#define MO_BOXED_STORE    "gateway" /* label of all boxes of gateways */
#define MO_BOXED_NAME_MAX 64

/* What this process is called. */
void mo_boxed_link_name(char out[MO_BOXED_NAME_MAX]);
/* Could be seen from here, and is not there. */
bool mo_boxed_link_dead(struct mo_span instance);

/* done(ctx) once, later; bs must stay open until then. What cannot be removed
 * is left to the next. */
int mo_boxed_sweep(struct mo_boxes *bs, void (*done)(void *ctx), void *ctx,
                   struct mo_err *e);

#endif
