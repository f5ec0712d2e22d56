/* kept_files.h - the files of a workspace as one stream of bytes.
 *
 *   "MOFILES1" | text store | text session | text instance
 *              | u64 bytes | u64 inodes
 *   records, the last one is MO_KEPT_END
 *
 * A record is u8 kind and the fields of its kind: u64 little-endian, text as
 * u16 length and bytes. Folders open with FOLDER and close with LEAVE; names
 * are those in the present folder. The content of a file follows its FILE as
 * DATA records, each with the place of its bytes; what no DATA covers is a
 * hole. A hard link names the path of the file from the workspace's top.
 *
 * This room does no I/O. The writer and the reader are in mo-box
 * (launcher/kept_save.c, launcher/kept_load.c); the orchestrator reads heads
 * only.
 *
 * Ownership: texts of a parsed record are borrowed from its bytes.
 * Limits: a name has 1 to 255 bytes, no '/', and is neither "." nor "..". A
 * stream that breaks a limit fails as a whole (MO_EPROTO). */
#ifndef MO_CODEC_KEPT_FILES_H
#define MO_CODEC_KEPT_FILES_H

#include "base/err.h"
#include "base/str.h"

#define MO_KEPT_NAME_MAX 255
#define MO_KEPT_PATH_MAX 4095
#define MO_KEPT_TEXT_MAX 128
#define MO_KEPT_DATA_MAX ((uint64_t)64 * 1024) /* bytes of one DATA */
/* The longest record, DATA without its bytes. */
#define MO_KEPT_RECORD   (1 + 2 * 2 + MO_KEPT_NAME_MAX + MO_KEPT_PATH_MAX + 24)
#define MO_KEPT_HEAD     (8 + 3 * (2 + MO_KEPT_TEXT_MAX) + 16)

struct mo_kept_head {
    struct mo_span store, session, instance; /* as of the box that wrote it */
    uint64_t bytes, inodes;                  /* that the files take */
};

enum mo_kept_kind {
    MO_KEPT_FOLDER = 1, /* name, mode, time */
    MO_KEPT_LEAVE,      /* nothing */
    MO_KEPT_FILE,       /* name, mode, time, size */
    MO_KEPT_DATA,       /* at, size; `size` bytes follow */
    MO_KEPT_SYMLINK,    /* name, to, time */
    MO_KEPT_LINK,       /* name, to */
    MO_KEPT_PIPE,       /* name, mode, time */
    MO_KEPT_END,        /* nothing */
};

struct mo_kept {
    enum mo_kept_kind kind;
    struct mo_span name, to;
    uint64_t mode; /* 0 to 0777 */
    uint64_t time; /* of the last change, ns since 1970 */
    uint64_t at, size;
};

void mo_kept_put_head(struct mo_buf *b, const struct mo_kept_head *h);
void mo_kept_put(struct mo_buf *b, const struct mo_kept *k);

/* 1: a head or record was taken off *in. 0: it is not complete. Or MO_EPROTO.
 */
int mo_kept_take_head(struct mo_span *in, struct mo_kept_head *h,
                      struct mo_err *e);
int mo_kept_take(struct mo_span *in, struct mo_kept *k, struct mo_err *e);

#endif
