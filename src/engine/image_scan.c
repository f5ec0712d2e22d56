/* image_scan.c - has the engine save an image, and checks its layers. */
#include <stdio.h>

#include "engine/saved_image.h"

#define SCAN_MAX ((uint64_t)16 * 1024 * 1024 * 1024)
#define SCAN_MS  600000u

struct scan {
    struct mo_engine_call *call;
    struct mo_saved_image *image;
    struct mo_image *im;
    struct mo_err why; /* code 0: nothing found yet */
    mo_done_fn *done;
    void *ctx;
};

static void on_data(void *ctx, struct mo_span data)
{
    struct scan *s = ctx;

    if (!s->why.code && mo_saved_image_feed(s->image, data, &s->why) == 0)
        return;
    if (s->call)
        mo_engine_cancel(s->call);
    s->call = NULL;
}

static void scan_free(struct scan *s)
{
    mo_saved_image_free(s->image);
    mo_free(s);
}

static void on_done(void *ctx, const struct mo_engine_reply *r,
                    const struct mo_err *why)
{
    struct scan *s = ctx;

    (void)r;
    if (!s->why.code && why)
        s->why = *why;
    if (!s->why.code)
        (void)mo_saved_image_end(s->image, &s->why);
    s->im->ca_files = mo_saved_image_ca_files(s->image);
    s->done(s->ctx, s->why.code ? &s->why : NULL);
    scan_free(s);
}

int mo_image_scan(struct mo_engine *en, struct mo_image *im, mo_done_fn *done,
                  void *ctx, struct mo_engine_call **out, struct mo_err *e)
{
    char path[128];
    struct mo_engine_req req = {.path = path,
                                .stream = true,
                                .total_ms = SCAN_MS,
                                .max_bytes = SCAN_MAX,
                                .on_data = on_data};
    struct scan *s = mo_new(struct scan);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "image");
    *s = (struct scan){
        .image = mo_saved_image_new(im), .im = im, .done = done, .ctx = ctx};
    if (!s->image) {
        mo_free(s);
        return mo_fail(e, MO_ENOMEM, "image");
    }
    (void)snprintf(path, sizeof(path), "/images/%s/get", im->id);
    rc = mo_engine_ask(en, &req, on_done, s, &s->call, e);
    if (rc < 0)
        scan_free(s);
    else if (out)
        *out = s->call;
    return rc;
}
