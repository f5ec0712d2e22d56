/* bundle.h - downloads an MCPB bundle: a zip file with a server and its
 * manifest.json.
 *
 * The registry names the address and the SHA-256; a file that has another one
 * is refused before anything in it is read. https only; http is for this
 * machine. Up to MO_BUNDLE_HOPS redirects are followed, because hosts of
 * releases send them. The file has no name on disk. The calls block, with a
 * loop of their own; a signal that waits in `run` ends them with MO_ECANCELED.
 */
#ifndef MO_INSTALL_BUNDLE_H
#define MO_INSTALL_BUNDLE_H

#include "codec/zip.h"
#include "config/config.h"
#include "install/run.h"

#define MO_BUNDLE_MAX      ((size_t)512 * 1024 * 1024) /* of the file */
#define MO_BUNDLE_FILES_MS 600000
#define MO_BUNDLE_HOPS     5
#define MO_BUNDLE_MANIFEST ((size_t)256 * 1024)

struct mo_bundle {
    int fd;              /* -1: none */
    struct mo_span file; /* its bytes, mapped */
};

/* b->fd is -1. sha256: 64 small digits. MO_EPOLICY: the file has another one.
 */
int mo_bundle_fetch(struct mo_bundle *b, struct mo_runner *run, const char *url,
                    const char *sha256, struct mo_err *e);
void mo_bundle_close(struct mo_bundle *b);

/* Appends manifest.json. */
int mo_bundle_manifest(const struct mo_bundle *b, struct mo_buf *out,
                       struct mo_err *e);

/* True for an address that may be asked: https, or http of this machine. */
bool mo_bundle_is_url(struct mo_span url);

#endif
