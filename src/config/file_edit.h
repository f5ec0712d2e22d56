/* file_edit.h - the configuration file changed by a command.
 *
 * A person's file: what was not asked for keeps its bytes (json_edit.h), the
 * link it may be stays one, its mode stays, and the old one is kept beside it
 * (.bak). The new text is read by the normal loader first, beside the file, so
 * that no command can leave one behind that `serve` would refuse.
 *
 * Where there is no file yet, it is made (0600) where the loader looked last.
 * Writers are kept apart by a lock on the directory; who edits by hand at that
 * moment is noticed and wins. */
#ifndef MO_CONFIG_FILE_EDIT_H
#define MO_CONFIG_FILE_EDIT_H

#include "config/config.h"

#define MO_FILE_EDIT_LOCK_MS 5000

struct mo_file_edit {
    const struct mo_config_holder *h; /* borrowed */
    char path[PATH_MAX];              /* the file itself, not a link to it */
    struct mo_file_stamp stamp;
    struct mo_buf text; /* as it is; to be exchanged by mo_file_edit_swap() */
    bool changed;
    int lock;
};

/* h is loaded and good. Another writer is waited for MO_FILE_EDIT_LOCK_MS. On
 * failure nothing is to be closed. */
int mo_file_edit_open(struct mo_file_edit *r, const struct mo_config_holder *h,
                      struct mo_err *e);
/* The same for who must not wait: MO_EBUSY at once. */
int mo_file_edit_open_now(struct mo_file_edit *r,
                          const struct mo_config_holder *h, struct mo_err *e);
void mo_file_edit_close(struct mo_file_edit *r);

/* Set or delete (value empty) by path; only in memory. */
int mo_file_edit_set(struct mo_file_edit *r, const char *const *path,
                     struct mo_span value, struct mo_err *e);

/* What the loader makes of it as it is now: *h is to be closed, or MO_EINVAL
 * and rep says why, by the file's own name. */
int mo_file_edit_try(struct mo_file_edit *r, struct mo_config_holder *h,
                     struct mo_config_report *rep, struct mo_err *e);

/* To the disk. MO_EINVAL: the loader refuses it; rep says why, by the file's
 * own name. */
int mo_file_edit_save(struct mo_file_edit *r, struct mo_config_report *rep,
                      struct mo_err *e);

#endif
