/* box_drivers.h - the box drivers that the configuration asks for.
 *
 * `auto` is native where the machine can keep its promises, else Docker where
 * an engine answers, else a refusal that says what to do about either. Docker
 * is opened beside native where it answers soon: boxes of an earlier
 * configuration are found and swept then.
 *
 * An image decides in `auto`: a directory (it begins with '/') is native's,
 * any other name is an engine's. */
#ifndef MO_CONNECT_BOX_DRIVERS_H
#define MO_CONNECT_BOX_DRIVERS_H

#include "box/box.h"
#include "config/config.h"

#define MO_BOX_DRIVERS_DRIVERS 2
#define MO_BOX_DRIVERS_LABEL   17 /* of a store, NUL included */

struct mo_box_drivers; /* the opened drivers */

struct mo_box_drivers_opts {
    const struct mo_config *cfg; /* referenced while the sandbox is open */
    const char *store;           /* label, see mo_box_drivers_label() */
    const char *instance;
    int driver;        /* enum mo_driver; MO_DRIVER_AUTO: the config's */
    const char *image; /* NULL: the config's */
    bool all;          /* doctor: every driver, working or not */
};

/* done() once: the sandbox, or NULL and why. */
int mo_box_drivers_open(struct mo_loop *l, const struct mo_box_drivers_opts *o,
                        void (*done)(void *ctx, struct mo_box_drivers *sb,
                                     const struct mo_err *why),
                        void *ctx, struct mo_err *e);
void mo_box_drivers_close(struct mo_box_drivers *sb, void (*gone)(void *ctx),
                          void *ctx);

/* In order of preference; the first starts boxes. */
struct mo_boxes *const *mo_box_drivers_drivers(const struct mo_box_drivers *sb,
                                               size_t *n);
/* What each said when it was asked (all: also those that do not work). */
const struct mo_boxes_ready *
mo_box_drivers_ready(const struct mo_box_drivers *sb, size_t i);

/* What the configuration promises to every box. image: as in the options. */
struct mo_box_spec mo_box_drivers_spec(const struct mo_config *cfg,
                                       const char *image);

/* Which store's boxes these are: the same for all who share the store, on
 * whichever machine, also when it was emptied. Passwords are not in it. */
void mo_box_drivers_label(const struct mo_config *cfg, const char *url,
                          char out[MO_BOX_DRIVERS_LABEL]);

#endif
