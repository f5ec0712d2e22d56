/* tar.c - read tar archives. */
#include "codec/tar.h"

#include <stdio.h>

/* Offsets of a header's fields. */
enum {
    F_NAME = 0,
    F_MODE = 100,
    F_UID = 108,
    F_GID = 116,
    F_SIZE = 124,
    F_MTIME = 136,
    F_SUM = 148,
    F_TYPE = 156,
    F_LINK = 157,
    F_MAGIC = 257,
    F_PREFIX = 345, /* in GNU's format: two times */
    F_TRAILER = 508,
};
#define NAME_LEN   100
#define PREFIX_LEN 155
#define TIME_LEN   12
#define LENGTH_MAX ((uint64_t)1 << 60) /* far below a signed 64-bit number */

/* --- writer -------------------------------------------------------------- */

static unsigned sum_of(const unsigned char *h)
{
    unsigned sum = 0;

    for (size_t i = 0; i < MO_TAR_BLOCK; i++)
        sum += i >= F_SUM && i < F_SUM + 8 ? ' ' : h[i];
    return sum;
}

static void octal(unsigned char *h, size_t at, size_t width, uint64_t v)
{
    char text[24];

    (void)snprintf(text, sizeof(text), "%0*llo", (int)width - 1,
                   (unsigned long long)v);
    memcpy(h + at, text, width - 1);
}

/* Bytes that fill the last block. */
static size_t pad_of(uint64_t size)
{
    return (MO_TAR_BLOCK - size % MO_TAR_BLOCK) % MO_TAR_BLOCK;
}

size_t mo_tar_padding(uint64_t size)
{
    return (size_t)pad_of(size);
}

int mo_tar_put_head(struct mo_buf *b, const struct mo_tar_entry *t,
                    uint64_t size)
{
    static const char types[] = {'0', '5', '2', '1'};
    unsigned char h[MO_TAR_BLOCK] = {0};

    if (t->path.n > NAME_LEN || t->link.n > NAME_LEN || !t->path.n ||
        t->kind >= MO_TAR_OTHER || size >> 33)
        return mo_buf_fail(b, MO_EINVAL);
    memcpy(h + F_NAME, t->path.p, t->path.n);
    if (t->link.n)
        memcpy(h + F_LINK, t->link.p, t->link.n);
    octal(h, F_MODE, 8, t->mode);
    octal(h, F_UID, 8, 0);
    octal(h, F_GID, 8, 0);
    octal(h, F_SIZE, 12, t->kind == MO_TAR_FILE ? size : 0);
    octal(h, F_MTIME, 12, 0);
    h[F_TYPE] = (unsigned char)types[t->kind];
    memcpy(h + F_MAGIC,
           "ustar\0"
           "00",
           8);
    octal(h, F_SUM, 7, sum_of(h));
    h[F_SUM + 7] = ' ';
    return mo_buf_put(b, h, sizeof(h));
}

/* "LENGTH KEY=VALUE\n"; the length counts its own digits. */
static void put_record(struct mo_buf *b, const char *key, struct mo_span value)
{
    size_t rest = strlen(key) + value.n + 3, n = rest + 1;
    char digits[24];

    while (rest + (size_t)snprintf(digits, sizeof(digits), "%zu", n) != n)
        n++;
    (void)mo_buf_printf(b, "%s %s=", digits, key);
    (void)mo_buf_span(b, value);
    (void)mo_buf_putc(b, '\n');
}

/* A header of type x is one of a file with another type. */
static void put_records(struct mo_buf *b, struct mo_span records)
{
    const struct mo_tar_entry t = {.path = MO_SPAN("PaxHeader"), .mode = 0644};
    size_t at = b->len;
    unsigned char *h;

    (void)mo_tar_put(b, &t, records);
    if (mo_buf_err(b))
        return;
    h = (unsigned char *)b->p + at;
    h[F_TYPE] = 'x';
    octal(h, F_SUM, 7, sum_of(h));
}

int mo_tar_put_pax_head(struct mo_buf *b, const struct mo_tar_entry *t,
                        uint64_t size, uint64_t mtime)
{
    mo_autobuf struct mo_buf records = {.max = MO_TAR_META_MAX};
    struct mo_tar_entry shown = *t;
    char text[24];

    if (t->path.n > NAME_LEN) {
        put_record(&records, "path", t->path);
        shown.path = mo_span_head(t->path, NAME_LEN);
    }
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)mtime);
    put_record(&records, "mtime", mo_span_cstr(text));
    if (mo_buf_err(&records))
        return mo_buf_fail(b, MO_EINVAL);
    put_records(b, mo_buf_view(&records));
    return mo_tar_put_head(b, &shown, size);
}

int mo_tar_put(struct mo_buf *b, const struct mo_tar_entry *t,
               struct mo_span data)
{
    static const char zeros[MO_TAR_BLOCK];

    (void)mo_tar_put_head(b, t, data.n);
    mo_buf_span(b, data);
    return mo_buf_put(b, zeros, pad_of(data.n));
}

int mo_tar_put_end(struct mo_buf *b)
{
    static const char zeros[2 * MO_TAR_BLOCK];

    return mo_buf_put(b, zeros, sizeof(zeros));
}

/* --- reader -------------------------------------------------------------- */

void mo_tar_init(struct mo_tar *t)
{
    *t = (struct mo_tar){.entry = {.kind = MO_TAR_FILE}};
    mo_buf_init(&t->path, MO_TAR_META_MAX);
    mo_buf_init(&t->link, MO_TAR_META_MAX);
    mo_buf_init(&t->meta, MO_TAR_META_MAX);
}

void mo_tar_fini(struct mo_tar *t)
{
    mo_buf_fini(&t->path);
    mo_buf_fini(&t->link);
    mo_buf_fini(&t->meta);
}

static enum mo_tar_event broken(struct mo_tar *t, struct mo_err *e, int code,
                                const char *what)
{
    t->broken = true;
    (void)mo_fail(e, code, "tar: %s", what);
    return MO_TAR_ERROR;
}

/* Read octal text with blanks or NULs around it, or GNU's base-256. */
static int number(const unsigned char *p, size_t n, uint64_t *out)
{
    uint64_t v = 0;
    size_t i = 0;

    if (p[0] & 0x80) {
        for (i = 0; i < n; i++) {
            uint64_t digit = i ? p[i] : p[i] & 0x7fu;

            if (v >> 54)
                return MO_EPROTO;
            v = v << 8 | digit;
        }
        *out = v;
        return 0;
    }
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++)
        v = v << 3 | (uint64_t)(p[i] - '0');
    for (; i < n; i++)
        if (p[i] != ' ' && p[i] != 0)
            return MO_EPROTO;
    *out = v;
    return 0;
}

static struct mo_span field(const unsigned char *p, size_t max)
{
    return mo_span((const char *)p, strnlen((const char *)p, max));
}

static enum mo_tar_kind kind_of(char type)
{
    switch (type) {
    case '0':
    case '\0':
        return MO_TAR_FILE;
    case '1':
        return MO_TAR_HARDLINK;
    case '2':
        return MO_TAR_SYMLINK;
    case '5':
        return MO_TAR_DIR;
    default:
        return MO_TAR_OTHER;
    }
}

/* Keep the path or link of the next entry. Two of them are refused: readers
 * disagree on which one counts, and on what an empty one or a NUL means. */
static int keep_text(struct mo_tar *t, bool link, struct mo_span text)
{
    bool *has = link ? &t->has_link : &t->has_path;

    if (*has || !text.n || memchr(text.p, 0, text.n))
        return MO_EPROTO;
    *has = true;
    return mo_buf_set(link ? &t->link : &t->path, text);
}

static int keep_size(struct mo_tar *t, struct mo_span text)
{
    if (t->has_size || mo_span_u64(text, &t->pax_size) < 0 ||
        t->pax_size > LENGTH_MAX)
        return MO_EPROTO;
    t->has_size = true;
    return 0;
}

/* Keys that make a file's bytes, type or name different for readers that know
 * them: GNU's sparse files and directories, star's sparse files and types,
 * another character set. */
static bool is_ambiguous(struct mo_span key, struct mo_span value)
{
    if (mo_span_is(key, "hdrcharset"))
        return !mo_span_is(value, "BINARY") &&
               !mo_span_is(value, "ISO-IR 10646 2000 UTF-8");
    return mo_span_starts(key, MO_SPAN("GNU.")) ||
           mo_span_is(key, "SCHILY.realsize") ||
           mo_span_is(key, "SCHILY.filetype") ||
           mo_span_is(key, "SCHILY.tarfiletype");
}

/* Read one "LENGTH KEY=VALUE\n" record of a pax header. A global header may set
 * nothing that we read: some readers apply it, others do not. */
static int pax_record(struct mo_tar *t, struct mo_span rec)
{
    struct mo_span key = mo_span_cut(&rec, '=');
    bool name, size = mo_span_is(key, "size");

    if (!rec.p || !rec.n || !key.n || memchr(key.p, 0, key.n))
        return MO_EPROTO;
    rec.n--; /* its newline */
    if (is_ambiguous(key, rec))
        return MO_EPROTO;
    name = mo_span_is(key, "path") || mo_span_is(key, "linkpath");
    if (t->special == 'g')
        return name || size ? MO_EPROTO : 0;
    if (size)
        return keep_size(t, rec);
    return name ? keep_text(t, key.n > 4, rec) : 0;
}

static int pax(struct mo_tar *t)
{
    struct mo_span s = mo_buf_view(&t->meta);

    while (s.n) {
        ptrdiff_t blank = mo_span_find(s, ' ');
        uint64_t len;
        int rc;

        if (blank < 1 || mo_span_u64(mo_span_head(s, (size_t)blank), &len) < 0)
            return MO_EPROTO;
        if (len > s.n || len <= (uint64_t)blank + 1 || s.p[len - 1] != '\n')
            return MO_EPROTO;
        rc = pax_record(
            t, mo_span(s.p + blank + 1, (size_t)len - (size_t)blank - 1));
        if (rc < 0)
            return rc;
        s = mo_span_skip(s, (size_t)len);
    }
    return 0;
}

/* The data of a special entry is complete: keep it for the next entry. */
static int special_done(struct mo_tar *t)
{
    struct mo_span text = mo_buf_view(&t->meta);

    if (t->special == 'x' || t->special == 'g') {
        t->has_pax = t->special == 'x';
        return pax(t);
    }
    while (text.n && text.p[text.n - 1] == 0)
        text.n--;
    return keep_text(t, t->special == 'K', text);
}

/* Set the texts of a plain entry from its own header, unless a special entry
 * before it set them. */
static int texts(struct mo_tar *t)
{
    struct mo_span prefix = field(t->block + F_PREFIX, PREFIX_LEN);

    if (!t->has_path) {
        mo_buf_reset(&t->path);
        if (memcmp(t->block + F_MAGIC, "ustar", 6) == 0 && prefix.n) {
            mo_buf_span(&t->path, prefix);
            mo_buf_putc(&t->path, '/');
        }
        mo_buf_span(&t->path, field(t->block + F_NAME, NAME_LEN));
    }
    if (!t->has_link)
        mo_buf_set(&t->link, field(t->block + F_LINK, NAME_LEN));
    t->entry.path = mo_buf_view(&t->path);
    t->entry.link = mo_buf_view(&t->link);
    return mo_buf_err(&t->path) ? mo_buf_err(&t->path) : mo_buf_err(&t->link);
}

static void expect_data(struct mo_tar *t, uint64_t size)
{
    t->left = size;
    t->pad = pad_of(size);
}

/* True if special entries describe the next one. */
static bool is_described(const struct mo_tar *t)
{
    return t->has_pax || t->has_path || t->has_link || t->has_size;
}

/* Start a special entry, which only describes the next entry. Of two pax
 * headers in a row some readers take both, others the last. */
static enum mo_tar_event begin_special(struct mo_tar *t, char type,
                                       uint64_t size, struct mo_err *e)
{
    if (size > MO_TAR_META_MAX)
        return broken(t, e, MO_ETOOBIG, "a name is too long");
    if ((type == 'x' && t->has_pax) || (type == 'g' && is_described(t)))
        return broken(t, e, MO_EPROTO, "two extended headers in a row");
    t->special = type;
    expect_data(t, size);
    mo_buf_reset(&t->meta);
    return MO_TAR_MORE;
}

static enum mo_tar_event begin_entry(struct mo_tar *t, char type, uint64_t size,
                                     uint64_t mode, struct mo_err *e)
{
    int rc = texts(t);

    if (rc < 0)
        return broken(t, e, rc, "a name");
    if (t->has_size)
        size = t->pax_size;
    t->entry.kind = kind_of(type);
    t->entry.mode = (unsigned)(mode & 07777);
    if (t->entry.kind != MO_TAR_FILE && size)
        return broken(t, e, MO_EPROTO, "data of an entry that is no file");
    if (t->entry.kind == MO_TAR_FILE &&
        mo_span_ends(t->entry.path, MO_SPAN("/")))
        return broken(t, e, MO_EPROTO, "a file with the name of a directory");
    t->entry.size = size;
    expect_data(t, size);
    t->has_size = t->has_path = t->has_link = t->has_pax = false;
    return MO_TAR_ENTRY;
}

static bool all_zero(const unsigned char *p)
{
    for (size_t i = 0; i < MO_TAR_BLOCK; i++)
        if (p[i])
            return false;
    return true;
}

/* Formats that every reader reads alike: ustar, GNU, and the one before both.
 * star's has a shorter prefix. GNU's has two times where ustar has the prefix;
 * if they are no numbers, Go's reader takes them for a prefix. */
static bool is_known_format(const unsigned char *h)
{
    uint64_t time;

    if (memcmp(h + F_MAGIC, "ustar", 6) == 0)
        return memcmp(h + F_TRAILER, "tar", 4) != 0;
    if (memcmp(h + F_MAGIC, "ustar  ", 8) == 0)
        return number(h + F_PREFIX, TIME_LEN, &time) == 0 &&
               number(h + F_PREFIX + TIME_LEN, TIME_LEN, &time) == 0;
    return memcmp(h + F_MAGIC, "\0\0\0\0\0\0\0", 8) == 0;
}

/* Handle the complete header in t->block. */
static enum mo_tar_event header(struct mo_tar *t, struct mo_err *e)
{
    uint64_t size, mode, sum;
    char type = (char)t->block[F_TYPE];

    t->have = 0;
    if (all_zero(t->block))
        return ++t->zeros >= 2 ? MO_TAR_END : MO_TAR_MORE;
    if (t->zeros)
        return broken(t, e, MO_EPROTO, "an empty block in the middle");
    if (number(t->block + F_SIZE, 12, &size) < 0 || size > LENGTH_MAX ||
        number(t->block + F_MODE, 8, &mode) < 0 ||
        number(t->block + F_SUM, 8, &sum) < 0 || sum != sum_of(t->block))
        return broken(t, e, MO_EPROTO, "bad header");
    if (!is_known_format(t->block))
        return broken(t, e, MO_EPROTO, "an unknown format");
    if (type == 'L' || type == 'K' || type == 'x' || type == 'g')
        return begin_special(t, type, size, e);
    if (type == 'S')
        return broken(t, e, MO_EPROTO, "a sparse file");
    if (type && (type < '0' || type > '6'))
        return broken(t, e, MO_EPROTO, "an unknown type of entry");
    return begin_entry(t, type, size, mode, e);
}

/* Read input of the current entry: DATA, MORE (continue) or ERROR. */
static enum mo_tar_event body(struct mo_tar *t, struct mo_span *in,
                              struct mo_span *piece, struct mo_err *e)
{
    struct mo_span got;
    int rc;

    if (t->left) {
        got = mo_span_take(in, t->left);
        t->left -= got.n;
        if (t->special && mo_buf_span(&t->meta, got) < 0)
            return broken(t, e, mo_buf_err(&t->meta), "a name");
        if (!t->special && got.n) {
            *piece = got;
            return MO_TAR_DATA;
        }
    }
    if (!t->left && t->pad)
        t->pad -= mo_span_take(in, t->pad).n;
    if (t->left || t->pad)
        return MO_TAR_MORE;
    rc = t->special ? special_done(t) : 0;
    t->special = 0;
    return rc < 0 ? broken(t, e, rc, "bad extended header") : MO_TAR_MORE;
}

enum mo_tar_event mo_tar_next(struct mo_tar *t, struct mo_span *in,
                              struct mo_span *piece, struct mo_err *e)
{
    enum mo_tar_event ev;

    if (t->broken)
        return broken(t, e, MO_EPROTO, "broken before");
    if (t->zeros >= 2)
        return MO_TAR_END;
    for (;;) {
        if (t->left || t->pad || t->special) {
            ev = body(t, in, piece, e);
        } else {
            struct mo_span got = mo_span_take(in, MO_TAR_BLOCK - t->have);

            if (got.n)
                memcpy(t->block + t->have, got.p, got.n);
            t->have += got.n;
            ev = t->have == MO_TAR_BLOCK ? header(t, e) : MO_TAR_MORE;
        }
        if (ev != MO_TAR_MORE)
            return ev;
        if (!in->n && (t->left || t->pad || !t->special))
            return MO_TAR_MORE;
    }
}

bool mo_tar_complete(const struct mo_tar *t)
{
    return !t->broken && !t->have && !t->left && !t->pad && !t->special &&
           !is_described(t);
}

int mo_tar_clean(struct mo_buf *b, struct mo_span path)
{
    bool first = true;

    while (path.p) {
        struct mo_span part = mo_span_cut(&path, '/');

        if (!part.n || mo_span_is(part, "."))
            continue;
        if (!first)
            mo_buf_putc(b, '/');
        mo_buf_span(b, part);
        first = false;
    }
    return mo_buf_err(b);
}
