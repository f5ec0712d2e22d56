/* saved_image.h - checks the layers of an image in the form of `docker save`.
 *
 * The archive is read once, in pieces. It has a tar for each layer, and the
 * documents that name the layers and their order: manifest.json (Docker,
 * podman), or index.json and a manifest blob (OCI layout). Documents usually
 * follow the layers, so every file is read as a tar and findings are kept;
 * mo_saved_image_end() then judges the files that the manifest names. A layer
 * that is missing, compressed, of another media type or no plain tar is
 * refused.
 *
 * A link in a layer at a place where an engine mounts, or a program starts, is
 * a finding, even if a later layer removes it. So is a file that is reached
 * through a link of its own or a lower layer: then names do not tell where
 * files are.
 *
 * Limits: files in the archive, bytes of documents, links and directories;
 * reaching one is a refusal (MO_EPOLICY). No I/O. */
#ifndef MO_ENGINE_SAVED_IMAGE_H
#define MO_ENGINE_SAVED_IMAGE_H

#include "engine/image.h"

struct mo_saved_image;

/* im must live as long; its workdir, volumes and network are used. NULL: no
 * memory. */
struct mo_saved_image *mo_saved_image_new(const struct mo_image *im);
void mo_saved_image_free(struct mo_saved_image *s); /* NULL is fine */

/* The next piece of the archive. An error is final. */
int mo_saved_image_feed(struct mo_saved_image *s, struct mo_span data,
                        struct mo_err *e);
/* The archive has ended: 0, or why the image is refused. */
int mo_saved_image_end(struct mo_saved_image *s, struct mo_err *e);
/* As struct mo_image.ca_files. Any layer's link counts. */
unsigned mo_saved_image_ca_files(const struct mo_saved_image *s);

#endif
