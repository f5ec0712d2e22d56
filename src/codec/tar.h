/* tar.h - tar archives: written from memory, read in any pieces.
 *
 * Images travel as tar. We write our own (ustar, nothing that changes from
 * one run to the next: no times, no owners), so that the same files always
 * give the same bytes and the same digest; and we inspect other
 * people's archives before anything from them is started.
 *
 * The reader knows ustar, the long names of GNU tar and the paths and sizes
 * of pax. An archive that two readers could read differently is refused:
 * sparse files, unknown types and formats, two names or sizes for one entry,
 * names with NUL, data behind a link or directory, a global pax header that
 * sets a name or a size. Pull style as codec/http/http1.h: the caller offers
 * bytes, the reader takes what it needs and returns an event. Paths are
 * returned as written; clean them with mo_tar_clean() before comparing.
 *
 * Ownership: an entry's texts live until the next call; data points into the
 * caller's input. Limits: a path or a pax record of more than MO_TAR_META_MAX
 * bytes is MO_ETOOBIG. No I/O. */
#ifndef MO_CODEC_TAR_H
#define MO_CODEC_TAR_H

#include "base/str.h"

#define MO_TAR_BLOCK    512
#define MO_TAR_META_MAX ((size_t)16 * 1024)

enum mo_tar_kind {
    MO_TAR_FILE,
    MO_TAR_DIR,
    MO_TAR_SYMLINK,
    MO_TAR_HARDLINK,
    MO_TAR_OTHER, /* devices, fifos */
};

struct mo_tar_entry {
    enum mo_tar_kind kind;
    struct mo_span path, link; /* link: of the two kinds of links */
    unsigned mode;
    uint64_t size; /* of the data that follows (reader) */
};

/* --- writer: errors are the buffer's, or MO_EINVAL for a path or link over
 * 100 bytes. data only for files. */
int mo_tar_put(struct mo_buf *b, const struct mo_tar_entry *t,
               struct mo_span data);
int mo_tar_put_end(struct mo_buf *b);
/* The head of a file of that size; the caller writes its data, and zeros up to
 * a whole block (mo_tar_padding()). */
int mo_tar_put_head(struct mo_buf *b, const struct mo_tar_entry *t,
                    uint64_t size);
size_t mo_tar_padding(uint64_t size);
/* The same of a file or directory with a path of any length and a time (seconds
 * since 1970), by a pax header. */
int mo_tar_put_pax_head(struct mo_buf *b, const struct mo_tar_entry *t,
                        uint64_t size, uint64_t mtime);

/* --- reader -------------------------------------------------------------- */

enum mo_tar_event {
    MO_TAR_ERROR = -1,
    MO_TAR_MORE,  /* all input taken */
    MO_TAR_ENTRY, /* t->entry */
    MO_TAR_DATA,  /* *piece: of the last entry, never empty */
    MO_TAR_END,   /* two empty blocks: the archive has ended */
};

struct mo_tar {
    struct mo_tar_entry entry;
    /* private */
    struct mo_buf path, link, meta;
    unsigned char block[MO_TAR_BLOCK];
    size_t have;       /* bytes of block */
    uint64_t left;     /* bytes of data still to come */
    uint64_t pad;      /* and of filler behind them */
    uint64_t pax_size; /* of the next entry; valid if has_size */
    unsigned zeros;    /* empty blocks in a row */
    char special;      /* data goes to meta: 'L', 'K', 'x', 'g', or 0 */
    bool has_size, has_path, has_link, has_pax, broken;
};

void mo_tar_init(struct mo_tar *t);
void mo_tar_fini(struct mo_tar *t);
enum mo_tar_event mo_tar_next(struct mo_tar *t, struct mo_span *in,
                              struct mo_span *piece, struct mo_err *e);

/* True if the archive may end here: nothing of an entry is missing. Readers
 * accept an archive without the two empty blocks at its end. */
bool mo_tar_complete(const struct mo_tar *t);

/* "./a//b/" -> "a/b", "/" -> ""; ".." is kept. Appended to b. */
int mo_tar_clean(struct mo_buf *b, struct mo_span path);

#endif
