/* ctr.h - a container's policy, as one table.
 *
 * Every field that we send to an engine is a row of one table in ctr.c: its
 * place, its value, and how the engine's version of it is compared.
 * mo_ctr_write() walks the rows and makes the body of a create request.
 * mo_ctr_compare() walks the same rows with the engine's description of the
 * container (inspect), because engines silently ignore fields that they do not
 * know or cannot honour. A second table names fields that must be absent.
 *
 * The fixed rows depend on this program only: they are checked for a container
 * of which we do not know the request (adoption).
 *
 * The network container of a box (box/docker_net.c) is a second kind: it has
 * `share`, runs as root with CAP_NET_ADMIN and CAP_NET_BIND_SERVICE in a
 * network namespace without a network, and has the engine's own system call
 * filter.
 *
 * No I/O. Limits: a body of MO_CTR_BODY_MAX bytes. */
#ifndef MO_ENGINE_CTR_H
#define MO_ENGINE_CTR_H

#include "codec/json/json.h"

#define MO_CTR_BODY_MAX  ((size_t)256 * 1024)
#define MO_CTR_UID_FIRST 20000 /* one uid a box: 20000 and up */
#define MO_CTR_WORKSPACE "/workspace"
#define MO_CTR_SHARE     "/net"
#define MO_CTR_FILES     "/files"
#define MO_CTR_VOLUME    80 /* bytes of a volume's name, NUL included */

enum mo_ctr_flavour { MO_CTR_DOCKER, MO_CTR_PODMAN };

struct mo_ctr_label {
    const char *key, *value;
};

struct mo_ctr_bind { /* of the engine's machine */
    const char *source, *target;
    bool rw;
    bool volume; /* source is the name of a volume */
};

struct mo_ctr {
    enum mo_ctr_flavour flavour;
    const char *image; /* its id: "sha256:..." */
    unsigned uid, gid;
    const char *workdir;
    const char *const *argv;    /* NULL-terminated */
    const char *const *env;     /* all of it, NULL-terminated */
    const char *const *volumes; /* paths to cover, NULL-terminated or NULL */
    const struct mo_ctr_bind *binds; /* one at the workspace replaces it */
    size_t nbinds;
    const char *seccomp; /* docker: the profile itself, podman: its path; NULL:
                            the engine's own */
    const char *network; /* id of the container whose network it has; NULL:
                            none */
    const char *share;   /* a directory of this machine, at MO_CTR_SHARE; "":
                            none; NULL unless it is a network container */
    bool ipv6;           /* of that: the machine has IPv6 */
    bool files;          /* of that: it has a new volume at MO_CTR_FILES, in
                            memory and without a name of ours */
    const struct mo_ctr_label *labels;
    size_t nlabels;
    bool once; /* stdin ends when the first client detaches */
    uint64_t memory, workspace, tmp, file_size; /* bytes */
    unsigned cpu_milli, pids, open_files, workspace_inodes, tmp_inodes;
};

/* The body of POST /containers/create. MO_ETOOBIG, MO_ENOMEM. */
int mo_ctr_write(const struct mo_ctr *c, struct mo_buf *b);

/* Compares the engine's description of a created, not yet started container
 * with the request. MO_EPOLICY names the first field that differs. */
int mo_ctr_compare(const struct mo_ctr *c, struct mo_json inspect,
                   struct mo_err *e);

/* The name that the engine gave the volume of a container with `files`. */
int mo_ctr_read_volume(struct mo_json inspect, char out[MO_CTR_VOLUME],
                       struct mo_err *e);

/* The fixed rows only; c needs its flavour, seccomp, binds and network. */
int mo_ctr_compare_fixed(const struct mo_ctr *c, struct mo_json inspect,
                         struct mo_err *e);

#endif
