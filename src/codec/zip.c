#include "codec/zip.h"

#define LOCAL_SIGN  0x04034b50U
#define ENTRY_SIGN  0x02014b50U
#define END_SIGN    0x06054b50U
#define LOCAL_SIZE  ((size_t)30)
#define ENTRY_SIZE  ((size_t)46)
#define END_SIZE    ((size_t)22)
#define COMMENT_MAX ((size_t)65535)
#define STORED      0
#define DEFLATED    8
#define FLAG_SECRET 0x0001U /* encrypted */
#define FLAG_LATER  0x0008U /* sizes behind the data */
#define FLAG_STRONG 0x0040U
#define FLAG_MASKED 0x2000U
#define UNIX        3 /* made by: the mode is one of Unix */
#define TYPE_MASK   0170000U
#define TYPE_LINK   0120000U
#define TYPE_FILE   0100000U
#define TYPE_DIR    0040000U

static unsigned u16(const char *p)
{
    const unsigned char *u = (const unsigned char *)p;

    return u[0] | (unsigned)u[1] << 8;
}

static uint32_t u32(const char *p)
{
    return u16(p) | (uint32_t)u16(p + 2) << 16;
}

/* --- the directory -------------------------------------------------------- */

/* The end record is the last thing; only a comment of its length follows. */
static const char *find_end(struct mo_span f)
{
    size_t most = END_SIZE + COMMENT_MAX;

    for (size_t n = END_SIZE; n <= f.n && n <= most; n++) {
        const char *p = f.p + f.n - n;

        if (u32(p) == END_SIGN && u16(p + 20) == n - END_SIZE)
            return p;
    }
    return NULL;
}

int mo_zip_open(struct mo_zip *z, struct mo_span file, struct mo_err *e)
{
    const char *end = find_end(file);
    uint64_t size, at;

    *z = (struct mo_zip){.file = file};
    if (!end)
        return mo_fail(e, MO_EPROTO, "it is no zip file");
    z->count = u16(end + 10);
    size = u32(end + 12);
    at = u32(end + 16);
    if (u16(end + 4) || u16(end + 6) || u16(end + 8) != z->count ||
        z->count == 0xffff || size == 0xffffffff || at == 0xffffffff)
        return mo_fail(e, MO_EPROTO,
                       "zip files of several parts and zip64 are not "
                       "supported");
    if (at + size != (uint64_t)(end - file.p))
        return mo_fail(e, MO_EPROTO,
                       "the directory of the zip file is "
                       "damaged");
    if (z->count > MO_ZIP_ENTRIES_MAX)
        return mo_fail(e, MO_ETOOBIG, "it has more than %d files",
                       MO_ZIP_ENTRIES_MAX);
    z->dir = z->next = (size_t)at;
    return 0;
}

static bool is_good_name(struct mo_span s)
{
    if (s.n == 0 || s.n > MO_ZIP_NAME_MAX || s.p[0] == '/')
        return false;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];

        if (c < ' ' || c == 0x7f || c == '\\' || c == ':')
            return false;
    }
    while (s.p) {
        struct mo_span part = mo_span_cut(&s, '/');

        if (part.n == 0 || part.n > 255 || mo_span_is(part, ".") ||
            mo_span_is(part, ".."))
            return false;
    }
    return true;
}

/* --- entries -------------------------------------------------------------- */

static int damaged(const struct mo_zip *z, struct mo_err *e)
{
    return mo_fail(e, MO_EPROTO, "entry %zu of the zip file is damaged",
                   z->nread);
}

/* Finds the data behind the local header, which must say the same. */
static int find_data(struct mo_zip *z, const char *entry, struct mo_span name,
                     struct mo_zip_entry *x, struct mo_err *e)
{
    unsigned flags = u16(entry + 8);
    size_t packed = u32(entry + 20), at = u32(entry + 42), head;
    const char *p = z->file.p + at;

    if (at > z->dir || z->dir - at < LOCAL_SIZE || u32(p) != LOCAL_SIGN)
        return damaged(z, e);
    head = LOCAL_SIZE + u16(p + 26) + u16(p + 28);
    if (z->dir - at < head || z->dir - at - head < packed ||
        !mo_span_eq(mo_span(p + LOCAL_SIZE, u16(p + 26)), name) ||
        u16(p + 6) != flags || u16(p + 8) != x->method)
        return damaged(z, e);
    if (!(flags & FLAG_LATER) &&
        (u32(p + 14) != x->crc || u32(p + 18) != packed ||
         u32(p + 22) != x->size))
        return damaged(z, e);
    z->used += head + packed;
    if (z->used > z->dir)
        return mo_fail(e, MO_EPROTO, "entries of the zip file overlap");
    x->data = mo_span(p + head, packed);
    return 0;
}

static int check_entry(const struct mo_zip *z, const char *entry,
                       const struct mo_zip_entry *x, struct mo_err *e)
{
    if (u16(entry + 8) & (FLAG_SECRET | FLAG_STRONG | FLAG_MASKED))
        return mo_fail(e, MO_EPROTO, "the zip file is encrypted");
    if ((x->method != STORED && x->method != DEFLATED) ||
        (x->method == STORED && x->size != u32(entry + 20)))
        return mo_fail(e, MO_EPROTO,
                       "entry %zu of the zip file is packed in another way",
                       z->nread);
    if (x->size == 0xffffffff || u16(entry + 34))
        return damaged(z, e);
    return 0;
}

static void take_mode(const char *entry, struct mo_zip_entry *x)
{
    unsigned mode = u16(entry + 40);
    bool is_unix = u16(entry + 4) >> 8 == UNIX;
    unsigned type = is_unix ? mode & TYPE_MASK : 0;

    x->is_executable = is_unix && mode & 0100;
    x->is_link = type && type != TYPE_FILE && type != TYPE_DIR;
}

int mo_zip_next(struct mo_zip *z, struct mo_zip_entry *x, struct mo_err *e)
{
    const char *p = z->file.p + z->next;
    size_t left = z->file.n - z->next, size;
    struct mo_span name;
    int rc;

    if (z->nread == z->count)
        return left > END_SIZE + COMMENT_MAX || u32(p) != END_SIGN
                   ? damaged(z, e)
                   : 0;
    z->nread++;
    if (left < ENTRY_SIZE + END_SIZE || u32(p) != ENTRY_SIGN)
        return damaged(z, e);
    size = ENTRY_SIZE + u16(p + 28) + u16(p + 30) + u16(p + 32);
    if (left - END_SIZE < size)
        return damaged(z, e);
    name = mo_span(p + ENTRY_SIZE, u16(p + 28));
    *x = (struct mo_zip_entry){.name = name,
                               .size = u32(p + 24),
                               .crc = u32(p + 16),
                               .method = u16(p + 10)};
    take_mode(p, x);
    if (name.n && name.p[name.n - 1] == '/') {
        x->is_dir = true;
        x->name.n--;
    }
    if (!is_good_name(x->name))
        return mo_fail(e, MO_EPOLICY,
                       "entry %zu of the zip file has a name that leads out of "
                       "its folder or is none",
                       z->nread);
    rc = check_entry(z, p, x, e);
    if (rc == 0)
        rc = find_data(z, p, name, x, e);
    if (rc == 0 && x->is_dir && x->size)
        rc = damaged(z, e);
    z->next += size;
    return rc < 0 ? rc : 1;
}

/* --- data ----------------------------------------------------------------- */

struct sum {
    mo_inflate_put *put;
    void *ctx;
    uint32_t crc;
    uint64_t total;
};

/* The polynomial of zip, four bits at a time. */
static uint32_t add_crc(uint32_t crc, struct mo_span s)
{
    static const uint32_t table[16] = {
        0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4,
        0x4db26158, 0x5005713c, 0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c,
        0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};

    for (size_t i = 0; i < s.n; i++) {
        crc ^= (unsigned char)s.p[i];
        crc = crc >> 4 ^ table[crc & 15];
        crc = crc >> 4 ^ table[crc & 15];
    }
    return crc;
}

static int put_piece(void *ctx, struct mo_span piece, struct mo_err *e)
{
    struct sum *s = ctx;

    s->crc = add_crc(s->crc, piece);
    s->total += piece.n;
    return s->put(s->ctx, piece, e);
}

int mo_zip_read(const struct mo_zip_entry *x, mo_inflate_put *put, void *ctx,
                struct mo_err *e)
{
    struct sum s = {.put = put, .ctx = ctx, .crc = 0xffffffff};
    int rc = x->method == DEFLATED
                 ? mo_inflate(x->data, x->size, put_piece, &s, e)
             : x->data.n ? put_piece(&s, x->data, e)
                         : 0;

    if (rc == 0 && (s.total != x->size || (s.crc ^ 0xffffffff) != x->crc))
        rc = mo_fail(e, MO_EPROTO, "a file in the zip file is damaged");
    return rc;
}
