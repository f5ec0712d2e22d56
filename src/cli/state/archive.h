/* archive.h - the file of a backup: a plain tar of files without directories.
 *
 *   store.db       the database, if it is in the backup
 *   ...            files of the state directory, by their names
 *   manifest.json  the last one: {"backup":1,"program":"0.1.0","secrets":false,
 *                  "files":[{"name":"rules.json","size":146,"sha256":"..."}]}
 *
 * A file whose manifest is missing or does not agree is not restored. */
#ifndef MO_CLI_STATE_ARCHIVE_H
#define MO_CLI_STATE_ARCHIVE_H

#include "cli/cmd.h"

#define MO_BACKUP_FORMAT       1
#define MO_BACKUP_DB           "store.db"
#define MO_BACKUP_MANIFEST     "manifest.json"
#define MO_BACKUP_FILES_MAX    256
#define MO_BACKUP_NAME_MAX     100 /* a name in a tar; with the NUL */
#define MO_BACKUP_MANIFEST_MAX ((size_t)128 * 1024)

/* A name of a file in a backup: letters, digits, "_", "-" and ".", and no dot
 * at its beginning. */
bool mo_backup_name_ok(struct mo_span name);
/* The path of the database; MO_EPOLICY: the store is a Redis. */
int mo_backup_db_path(const struct mo_config *cfg, char *out, size_t size,
                      struct mo_err *e);
/* A row of the audit log about a backup: it was made, or put in place. */
int mo_backup_record(const struct mo_config *cfg, const char *outcome,
                     const char *file, struct mo_err *e);

#endif
