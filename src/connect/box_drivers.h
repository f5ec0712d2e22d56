/* box_drivers.h - opens the box drivers that the configuration selects.
 *
 * `auto` selects native if this machine supports it, else Docker if an engine
 * answers. If neither works, opening fails and the error says what to do. If
 * native is selected and an engine answers within SECOND_MS, Docker is opened
 * as well, so that boxes of an earlier configuration can be swept.
 *
 * With `auto` the image decides: a directory (starts with '/') needs native,
 * any other name needs an engine. */
#ifndef MO_CONNECT_BOX_DRIVERS_H
#define MO_CONNECT_BOX_DRIVERS_H

#include "box/box.h"
#include "config/config.h"

#define MO_BOX_DRIVERS_DRIVERS 3
#define MO_BOX_DRIVERS_LABEL   17 /* bytes, NUL included */

struct mo_box_drivers;

struct mo_box_drivers_opts {
    const struct mo_config *cfg; /* referenced until the drivers are closed */
    const char *store;           /* from mo_box_drivers_label() */
    const char *instance;
    int driver;        /* enum mo_driver; MO_DRIVER_AUTO: from cfg */
    const char *image; /* NULL: from cfg */
    bool all; /* for doctor: open every driver, also those that do not work */
    mo_box_connection_fn *on_connection; /* of a box's network; may be NULL */
    mo_box_mounts_fn *on_mounts;         /* may be NULL */
    const struct mo_box_asker *asker;    /* likewise */
    void *connection_ctx;                /* of all */
};

/* Calls done() once, later, with the drivers, or with NULL and the reason. */
typedef void mo_box_drivers_fn(void *ctx, struct mo_box_drivers *sb,
                               const struct mo_err *why);
int mo_box_drivers_open(struct mo_loop *l, const struct mo_box_drivers_opts *o,
                        mo_box_drivers_fn *done, void *ctx, struct mo_err *e);
void mo_box_drivers_close(struct mo_box_drivers *sb, void (*gone)(void *ctx),
                          void *ctx);

/* In order of preference; new boxes use the first. */
struct mo_boxes *const *mo_box_drivers_drivers(const struct mo_box_drivers *sb,
                                               size_t *n);
/* Result of the readiness check of driver i. With `all`, drivers that do not
 * work are included. */
const struct mo_boxes_ready *
mo_box_drivers_ready(const struct mo_box_drivers *sb, size_t i);

/* The bytes of mo-box. */
struct mo_span mo_box_drivers_launcher(void);

/* Writes the image with our toolbox to a file, as `docker save` would. tag:
 * its name. */
#define MO_BOX_DRIVERS_TAG 128
int mo_box_drivers_save_image(const char *path, char tag[MO_BOX_DRIVERS_TAG],
                              struct mo_err *e);

/* Limits and isolation of every box, from the configuration. image: as in the
 * options. */
struct mo_box_spec mo_box_drivers_spec(const struct mo_config *cfg,
                                       const char *image);

/* Label of the boxes that belong to a store. All processes that share the store
 * get the same label, on every machine, also after the store was emptied. The
 * label does not depend on passwords in the URL. */
void mo_box_drivers_label(const struct mo_config *cfg, const char *url,
                          char out[MO_BOX_DRIVERS_LABEL]);

#endif
