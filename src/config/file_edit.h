/* file_edit.h - changes the configuration file for a command.
 *
 * People write this file, so all other bytes stay as they are (json_edit.h), a
 * symbolic link stays a link, the mode stays, and the old text is saved as
 * .bak. The loader reads the new text from a temporary file first, so that no
 * command can write a file that `serve` would refuse.
 *
 * A missing file is created (0600) at the path that the loader tried last. A
 * lock on the directory serialises writers. If a person edits the file
 * meanwhile, that edit wins and saving fails with MO_EBUSY. */
#ifndef MO_CONFIG_FILE_EDIT_H
#define MO_CONFIG_FILE_EDIT_H

#include "config/config.h"

#define MO_FILE_EDIT_LOCK_MS 5000

struct mo_file_edit {
    const struct mo_config_holder *h; /* borrowed */
    char path[PATH_MAX];              /* the file itself, not a link to it */
    struct mo_file_stamp stamp;
    struct mo_buf text; /* the current text */
    bool changed;
    int lock;
};

/* h: loaded successfully. Waits MO_FILE_EDIT_LOCK_MS for another writer. On
 * failure nothing needs closing. */
int mo_file_edit_open(struct mo_file_edit *r, const struct mo_config_holder *h,
                      struct mo_err *e);
/* The same without waiting: MO_EBUSY at once. */
int mo_file_edit_open_now(struct mo_file_edit *r,
                          const struct mo_config_holder *h, struct mo_err *e);
void mo_file_edit_close(struct mo_file_edit *r);

/* Sets a value, or deletes it (empty value), in memory. */
int mo_file_edit_set(struct mo_file_edit *r, const char *const *path,
                     struct mo_span value, struct mo_err *e);

/* Loads the new text. On success the caller closes *h. MO_EINVAL: the loader
 * refuses it; rep has the errors, with the name of the real file. */
int mo_file_edit_try(struct mo_file_edit *r, struct mo_config_holder *h,
                     struct mo_config_report *rep, struct mo_err *e);

/* Writes the file. MO_EINVAL: the loader refuses the text, see
 * mo_file_edit_try(); MO_EBUSY: the file changed meanwhile. */
int mo_file_edit_save(struct mo_file_edit *r, struct mo_config_report *rep,
                      struct mo_err *e);

#endif
