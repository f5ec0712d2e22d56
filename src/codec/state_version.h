/* state_version.h - the record of a state's version, and who may use the state.
 *
 *   {"format":5,"reads":5,"program":"0.1.0"}
 *
 * `format` is the version of the state's layout, `reads` the oldest format
 * whose programs can still use it, `program` the version that wrote the record.
 * The database, Redis and the state directory have one each, with formats of
 * their own (docs/upgrade.md).
 *
 * A program of format N uses a state of format N, migrates an older one, and
 * uses one of format N + 1 as it is, if `reads` is at most N: so an older
 * server can run beside a newer one. Anything else is refused, also a newer
 * format that claims to be readable: nobody has tested that. */
#ifndef MO_CODEC_STATE_VERSION_H
#define MO_CODEC_STATE_VERSION_H

#include "base/str.h"

#define MO_STATE_MARK        "format" /* id of the mark in a store */
#define MO_STATE_PROGRAM_MAX 32       /* with the NUL */
#define MO_STATE_RECORD_MAX  128      /* bytes of a record */

struct mo_state_version {
    unsigned format, reads;
    char program[MO_STATE_PROGRAM_MAX];
};

/* Appends the record of this program. */
void mo_state_version_put(struct mo_buf *b, unsigned format, unsigned reads);
/* MO_EINVAL: it is no record. Unknown members are ignored. */
int mo_state_version_read(struct mo_span record, struct mo_state_version *out,
                          struct mo_err *e);
/* 0, or MO_EINVAL: a program of format `ours` must not use it. `what` names the
 * state in the message, which says what to do. */
int mo_state_version_judge(const struct mo_state_version *v, unsigned ours,
                           const char *what, struct mo_err *e);

#endif
