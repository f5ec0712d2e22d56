/* zip.h - reads zip archives of others from memory.
 *
 * An archive that two readers could read differently is refused with MO_EPROTO:
 * bytes behind its end, a directory that is not right before the end, local
 * headers that contradict the directory, entries that share bytes, several
 * disks, zip64, encryption, methods other than stored and deflated. So are
 * names that are empty, absolute or too long, that have "." or ".." as a part,
 * a backslash, a colon or control characters. Pure; the caller's bytes stay
 * where they are.
 *
 * Limits: MO_ZIP_ENTRIES_MAX entries; an entry gives exactly as many bytes as
 * it says. The caller limits the sum. */
#ifndef MO_CODEC_ZIP_H
#define MO_CODEC_ZIP_H

#include "codec/inflate.h"

#define MO_ZIP_ENTRIES_MAX 50000
#define MO_ZIP_NAME_MAX    1024

struct mo_zip {
    struct mo_span file;
    size_t count; /* of entries */
    /* private */
    size_t dir;    /* offset of the directory */
    size_t next;   /* of the next entry in it */
    size_t nread;  /* entries */
    uint64_t used; /* bytes of the file that they take */
};

struct mo_zip_entry {
    struct mo_span name; /* without the '/' of a directory */
    uint64_t size;       /* unpacked */
    bool is_dir, is_link, is_executable;
    /* private */
    struct mo_span data;
    uint32_t crc;
    unsigned method;
};

int mo_zip_open(struct mo_zip *z, struct mo_span file, struct mo_err *e);

/* 1: *x is the next entry; 0: there are no more. */
int mo_zip_next(struct mo_zip *z, struct mo_zip_entry *x, struct mo_err *e);

/* Unpacks an entry in pieces; checks its length and its CRC. */
int mo_zip_read(const struct mo_zip_entry *x, mo_inflate_put *put, void *ctx,
                struct mo_err *e);

#endif
