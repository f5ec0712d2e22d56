/* pip.h - runs the host's pip and reads its answers.
 *
 * pip decides by its own settings which index it asks, through which proxy and
 * with which password; this room knows none of that. Only wheels are taken:
 * building a source package would run its setup.py. Blocking, see run.h. */
#ifndef MO_INSTALL_PIP_H
#define MO_INSTALL_PIP_H

#include "install/run.h"

#define MO_PIP_RESOLVE_MS 300000
#define MO_PIP_INSTALL_MS 600000
#define MO_PIP_TEXT_MAX   ((size_t)32 * 1024 * 1024) /* of an answer */
#define MO_PIP_NAME_MAX   214

#define MO_PIP_SITE "site" /* the packages, in the directory of a server */

struct mo_pip {
    struct mo_runner *run;
    char own[MO_SPAWN_PATH_MAX];    /* the Python that has pip */
    char python[MO_SPAWN_PATH_MAX]; /* the same for servers, without links */
};

/* Finds a Python 3 with pip: that of PATH or, if it cannot be used,
 * /usr/bin/python3. boxed: only one
 * below /usr, because a box shows no other. MO_ENOTFOUND: the error says what
 * to install. */
int mo_pip_open(struct mo_pip *p, struct mo_runner *run, bool boxed,
                bool needs_pip, struct mo_err *e);

/* True for a name of a package; for an exact version. */
bool mo_pip_is_name(struct mo_span s);
bool mo_pip_is_version(struct mo_span s);
/* The name as an index has it: small letters, "-" for runs of "-", "_", ".". */
void mo_pip_normal(struct mo_span name, char out[MO_PIP_NAME_MAX + 1]);

/* Appends pip's report about what it would install: JSON with name, version,
 * address and hash of every wheel. version: empty means the newest.
 * MO_ENOTFOUND: there is none; MO_EPOLICY: only source code, or withdrawn by
 * its publisher. */
int mo_pip_resolve(struct mo_pip *p, struct mo_span name,
                   struct mo_span version, struct mo_buf *out,
                   struct mo_err *e);

/* Installs the wheels that dir/requirements.txt names, with these hashes only,
 * into dir/site, and compiles them. */
int mo_pip_install(struct mo_pip *p, const char *dir, struct mo_err *e);

#endif
