/* box image - builds the image of docker boxes. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cli/runtime_wait.h"

struct image {
    struct mo_cmd_runtime m;
    struct mo_box_drivers *sandbox;
};

static void on_sandbox(void *ctx, struct mo_box_drivers *sb,
                       const struct mo_err *why)
{
    struct image *im = ctx;

    im->sandbox = sb;
    im->m.done = true;
    if (why)
        im->m.why = *why;
}

static void on_closed(void *ctx)
{
    ((struct image *)ctx)->m.done = true;
}

int mo_run_box_image(struct mo_cli *c)
{
    struct mo_box_drivers_opts o = {
        .store = "image", .instance = "image", .driver = MO_DRIVER_DOCKER};
    struct image im = {.sandbox = NULL};
    struct mo_buf b;
    int rc = mo_cmd_runtime_load(c, &im.m);

    if (rc == 0) {
        o.cfg = im.m.h.now;
        if (mo_box_drivers_open(im.m.loop, &o, on_sandbox, &im, &im.m.why) == 0)
            mo_cmd_runtime_wait(&im.m);
        if (im.m.why.code)
            rc = mo_cli_error(c, MO_EXIT_UNAVAIL, "%s", im.m.why.msg);
    }
    if (im.sandbox) {
        mo_buf_init(&b, MO_CMD_TEXT_MAX);
        mo_buf_printf(&b, "image loaded: %s\n",
                      mo_box_drivers_ready(im.sandbox, 0)->what);
        rc = mo_cli_print(c, &b);
        im.m.done = false;
        mo_box_drivers_close(im.sandbox, on_closed, &im);
        mo_cmd_runtime_wait(&im.m);
    }
    mo_cmd_runtime_close(&im.m);
    return rc;
}
