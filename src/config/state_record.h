/* state_record.h - the version of the files in the state directory, in
 * store.dir/state.json (codec/state_version.h).
 *
 * It covers every file there but the database, which has its own: secrets, pins
 * of tools, remembered rules, the audit log, tokens. Directories of versions
 * that wrote no record have format 1. */
#ifndef MO_CONFIG_STATE_RECORD_H
#define MO_CONFIG_STATE_RECORD_H

#include "codec/state_version.h"

#define MO_STATE_FILE "state.json"
/* Tests build a next version (tests/it/meson.build). */
#ifndef MO_STATE_FORMAT
#    define MO_STATE_FORMAT 2
/* Format 1 has no record, and nothing else differs. */
#    define MO_STATE_READS  1
#endif

/* The record; format 1 if there is none. MO_EINVAL: it is not valid. */
int mo_state_record_read(const char *dir, struct mo_state_version *out,
                         struct mo_err *e);
/* May this program use the directory? MO_EINVAL: no, with what to do. */
int mo_state_record_check(const char *dir, struct mo_err *e);
/* The same; and writes our record if it is older or there is none. A directory
 * that cannot be written is no error: it is checked only. */
int mo_state_record_write(const char *dir, struct mo_err *e);

/* Every program that uses the directory holds a shared lock on the file
 * run/state.use in it, from before its first look until it ends; `restore`
 * holds the only one. Where such a file cannot be made there is no lock. */
#define MO_STATE_USE "state.use"
/* is_server: makes the file; a command uses it if a server or a restore has
 * made it. *fd: to keep open, or -1. MO_EBUSY: a backup is being restored. */
int mo_state_use(const char *dir, bool is_server, int *fd, struct mo_err *e);
/* MO_EBUSY: another program uses it. */
int mo_state_replace(const char *dir, int *fd, struct mo_err *e);

#endif
