/* file_transfer.h - one request about files of a conversation, private to
 * api_files.c, file_download.c and file_upload.c.
 *
 * A transfer lives as long as its request; an upload until its temporary file
 * is gone. */
#ifndef MO_WEB_FILE_TRANSFER_H
#define MO_WEB_FILE_TRANSFER_H

#include "web/api_job.h"
#include "web/box_files.h"

#define TRANSFER_PART       ((size_t)192 * 1024) /* base64 needs no padding */
#define TRANSFER_PART_MAX   (TRANSFER_PART + (size_t)128 * 1024)
#define TRANSFER_ARGS_MAX   ((size_t)512 * 1024)
#define TRANSFER_PATH_MAX   ((size_t)4096)
#define TRANSFER_UPLOAD_MAX ((uint64_t)4 * 1024 * 1024 * 1024)

enum transfer_kind {
    TRANSFER_LIST,
    TRANSFER_DOWNLOAD,
    TRANSFER_ARCHIVE,
    TRANSFER_UPLOAD,
    TRANSFER_REMOVE,
};

struct transfer {
    struct mo_api *api;
    struct mo_req *rq; /* NULL: the client has gone */
    struct mo_box_files *files;
    enum transfer_kind what;
    char id[MO_SESSION_ID_MAX + 1];
    char owner[MO_SESSION_OWNER_MAX];
    struct mo_buf path, args, part;
    bool view, auditing, asking, draining;

    uint64_t at, left; /* download: the next byte, and how many */
    uint64_t size, mtime;

    char temp[64]; /* upload: the temporary file's name; "": none */
    bool last;     /* the whole body is here */

    struct mo_buf page, name; /* archive; name: JSON text of the last entry */
    struct mo_json_doc doc;
    struct mo_json_iter entries;
    bool more, executable; /* another page follows; mode of the last entry */
};

void mo_transfer_free(struct transfer *t);

/* --- requests to the box: begin, write members, end, ask ------------------ */

struct mo_jw mo_transfer_args(struct transfer *t);
void mo_transfer_put_path(struct transfer *t, struct mo_jw *w);
void mo_transfer_ask(struct transfer *t, const char *method,
                     mo_box_files_fn *done);
/* Tells the client why the box refused; nothing if it has gone. */
void mo_transfer_refuse(struct transfer *t, const struct mo_box_files_no *no);

/* --- file_download.c ------------------------------------------------------ */

void mo_transfer_download(struct transfer *t);
void mo_transfer_archive(struct transfer *t);

/* --- file_upload.c -------------------------------------------------------- */

void mo_transfer_upload(struct transfer *t);
/* The client has gone: removes the temporary file, and frees t. */
void mo_transfer_abandon(struct transfer *t);

#endif
