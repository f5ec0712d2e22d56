/* image.h - images: making our own, checking foreign ones.
 *
 * Our image is FROM scratch: the toolbox, mo-box, a static busybox and a few
 * directories. It does not depend on when or where it was made, so its id is
 * known before it exists; it is looked up by that id and loaded if the engine
 * does not have it. (A larger one, with Debian's programs, is made by
 * scripts/image-debian; here it is an image like any other.)
 *
 * A foreign image is checked before it is started: its command, environment
 * and volumes (mo_image_look()), and, layer by layer, whether it has links
 * where an engine will mount something (mo_image_scan()). Such links have
 * misled engines before (saved_image.h). MO_EPOLICY says what was found.
 *
 * Ownership: struct mo_image is one arena; mo_image_free(). Limits: words and
 * sizes below; reaching one is a refusal. */
#ifndef MO_ENGINE_IMAGE_H
#define MO_ENGINE_IMAGE_H

#include "engine/engine.h"

#define MO_IMAGE_ID_MAX      80 /* "sha256:" and 64 digits */
#define MO_IMAGE_WORDS_MAX   64
#define MO_IMAGE_VOLUMES_MAX 8
#define MO_IMAGE_TAR_MAX     ((size_t)64 * 1024 * 1024)
#define MO_IMAGE_TOOLBOX     "/toolbox"
#define MO_IMAGE_LAUNCHER    "/mo-box" /* for the network container */

/* --- making ours --------------------------------------------------------- */

struct mo_image_parts {
    struct mo_span toolbox, busybox; /* static programs; busybox may be empty
                                        on top of a root file system */
    struct mo_span launcher;         /* mo-box; may be empty */
    const char *arch;                /* as the engine calls it: "arm64" */
};

struct mo_image_tar {
    struct mo_buf tar; /* as `docker save` would write it */
    char id[MO_IMAGE_ID_MAX];
    char tag[128]; /* "mo-toolbox:0123456789ab" */
};

/* Sets *out; call mo_buf_fini(&out->tar) afterwards. */
int mo_image_make(const struct mo_image_parts *p, struct mo_image_tar *out,
                  struct mo_err *e);
/* The same with the busybox of this machine; without an arch: for this one. */
int mo_image_make_here(const struct mo_image_parts *p, struct mo_image_tar *out,
                       struct mo_err *e);
/* True for a static program of this machine's architecture. */
bool mo_image_is_static(struct mo_span elf);

/* Loads it unless the engine has it. done() once; tar must live until then. */
int mo_engine_image_ensure(struct mo_engine *en, const struct mo_image_tar *t,
                           mo_done_fn *done, void *ctx, struct mo_err *e);

/* --- looking at others' -------------------------------------------------- */

struct mo_image {
    struct mo_arena arena;
    char id[MO_IMAGE_ID_MAX];
    const char *workdir;        /* "/" if it has none */
    const char *const *argv;    /* entrypoint and command; may be empty */
    const char *const *env;     /* NULL-terminated */
    const char *const *volumes; /* clean absolute paths */
    bool network;      /* set by the caller before the scan: the box has one */
    unsigned ca_files; /* set by the scan: bit i for codec/ca_files.h. The
                          first: no link leads there; the others: it is a file
                          as well; MO_CA_FILES: none leads to MO_CA_DIR */
};

void mo_image_free(struct mo_image *im); /* NULL is fine */

/* Reads and checks the engine's description of an image (GET
 * /images/NAME/json). */
int mo_image_read(struct mo_json inspect, struct mo_image **out,
                  struct mo_err *e);

/* Checks an image by name or id. done() once: owns *im, or why. *out (may be
 * NULL): to cancel it. */
typedef void mo_image_looked(void *ctx, struct mo_image *im,
                             const struct mo_err *why);
int mo_image_look(struct mo_engine *en, const char *ref, mo_image_looked *done,
                  void *ctx, struct mo_engine_call **out, struct mo_err *e);

/* Scans every layer for links at the places where we mount and start, and sets
 * im->ca_files. im must live until done(). */
int mo_image_scan(struct mo_engine *en, struct mo_image *im, mo_done_fn *done,
                  void *ctx, struct mo_engine_call **out, struct mo_err *e);

#endif
