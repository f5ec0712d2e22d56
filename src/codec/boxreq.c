/* boxreq.c - encode and decode frames by table. See boxreq.h.
 *
 * One table per type lists the fields with their offset in the struct and their
 * bounds. Writing and reading use the same rows, so they cannot disagree. */
#include "codec/boxreq.h"

#include "base/mem.h"

enum kind { NUM, TEXT, LIST };

struct field {
    enum kind kind;
    size_t at;
    uint64_t min, max; /* of a number, or of the length of a text or list */
    const char *name;
};

#define KB ((uint64_t)1024)
#define TB (KB * KB * KB * KB)

#define FIELD(kind, s, member, min, max)                                       \
    {                                                                          \
        kind, offsetof(struct s, member), min, max, #member                    \
    }

static const struct field req_fields[] = {
    FIELD(TEXT, mo_boxreq, id, 1, MO_BOXREQ_ID_MAX),
    FIELD(TEXT, mo_boxreq, dir, 1, MO_BOXREQ_PATH_MAX),
    FIELD(TEXT, mo_boxreq, session, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxreq, instance, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxreq, store, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxreq, policy, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(NUM, mo_boxreq, expires, 0, INT64_MAX),
    FIELD(NUM, mo_boxreq, linger_ms, 0, 1000ull * 3600 * 24 * 30),
    FIELD(NUM, mo_boxreq, memory, 4 * KB * KB, TB),
    FIELD(NUM, mo_boxreq, cpu_milli, 10, 1024 * 1000),
    FIELD(NUM, mo_boxreq, pids, 2, 32768),
    FIELD(NUM, mo_boxreq, workspace, 64 * KB, TB),
    FIELD(NUM, mo_boxreq, workspace_inodes, 16, 1u << 30),
    FIELD(NUM, mo_boxreq, tmp, 64 * KB, TB),
    FIELD(NUM, mo_boxreq, tmp_inodes, 16, 1u << 30),
    FIELD(NUM, mo_boxreq, file_size, 4 * KB, TB),
    FIELD(NUM, mo_boxreq, open_files, 16, 1u << 20),
    FIELD(TEXT, mo_boxreq, root, 0, MO_BOXREQ_PATH_MAX),
    FIELD(NUM, mo_boxreq, by_fd, 0, 1),
    FIELD(LIST, mo_boxreq, views, 0, MO_BOXREQ_VIEWS),
    FIELD(LIST, mo_boxreq, argv, 1, MO_BOXREQ_WORDS),
    FIELD(LIST, mo_boxreq, env, 0, MO_BOXREQ_WORDS),
    /* last, because RESTART does not have them */
    FIELD(TEXT, mo_boxreq, ports, 0, MO_BOXREQ_PORTS * sizeof("65535")),
    FIELD(LIST, mo_boxreq, mounts, 0, MO_MOUNTS_MAX),
    FIELD(TEXT, mo_boxreq, ca, 0, MO_BOXREQ_PATH_MAX),
    FIELD(TEXT, mo_boxreq, files, 0, MO_BOXREQ_ID_MAX),
};

static const struct field desc_fields[] = {
    FIELD(TEXT, mo_boxdesc, id, 1, MO_BOXREQ_ID_MAX),
    FIELD(TEXT, mo_boxdesc, session, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxdesc, instance, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxdesc, store, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxdesc, policy, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(NUM, mo_boxdesc, expires, 0, INT64_MAX),
    FIELD(NUM, mo_boxdesc, started, 0, INT64_MAX),
    FIELD(NUM, mo_boxdesc, state, 0, MO_BOX_HAS_ENDED),
    FIELD(NUM, mo_boxdesc, pid, 0, INT32_MAX),
    FIELD(NUM, mo_boxdesc, uid, 0, UINT32_MAX),
    FIELD(NUM, mo_boxdesc, starts, 0, UINT32_MAX),
    FIELD(NUM, mo_boxdesc, landlock, 0, 1000),
    FIELD(NUM, mo_boxdesc, attached, 0, 1),
};

static const struct field refused_fields[] = {
    FIELD(NUM, mo_boxrefused, code, 1, 1000),
    FIELD(NUM, mo_boxrefused, sys, 0, 4095),
    FIELD(TEXT, mo_boxrefused, msg, 0, sizeof(((struct mo_err *)0)->msg)),
};

static const struct field end_fields[] = {
    FIELD(NUM, mo_boxend, cause, 0, MO_BOXEND_KILLED),
    FIELD(NUM, mo_boxend, code, 0, 255),
    FIELD(NUM, mo_boxend, signal, 0, 127),
    FIELD(NUM, mo_boxend, kept, 0, 1),
};

static const struct field label_fields[] = {
    FIELD(TEXT, mo_boxlabel, session, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxlabel, instance, 0, MO_BOXREQ_TEXT_MAX),
    FIELD(NUM, mo_boxlabel, expires, 0, INT64_MAX),
    FIELD(NUM, mo_boxlabel, linger_ms, 0, 1000ull * 3600 * 24 * 30),
};

static const struct field stats_fields[] = {
    FIELD(NUM, mo_boxstats, memory, 0, UINT64_MAX),
    FIELD(NUM, mo_boxstats, memory_peak, 0, UINT64_MAX),
    FIELD(NUM, mo_boxstats, cpu_us, 0, UINT64_MAX),
    FIELD(NUM, mo_boxstats, pids, 0, UINT64_MAX),
    FIELD(NUM, mo_boxstats, oom_kills, 0, UINT64_MAX),
};

static const struct field who_fields[] = {
    FIELD(TEXT, mo_boxwho, from, 1, MO_BOXREQ_TEXT_MAX),
    FIELD(TEXT, mo_boxwho, to, 1, MO_BOXREQ_TEXT_MAX),
    FIELD(NUM, mo_boxwho, from_port, 1, UINT16_MAX),
    FIELD(NUM, mo_boxwho, to_port, 1, UINT16_MAX),
};

static const struct field program_fields[] = {
    FIELD(TEXT, mo_boxprogram, path, 0, MO_BOXREQ_TEXT_MAX),
};

struct shape {
    bool known;
    unsigned fds_max;
    const struct field *fields;
    size_t n;
};

#define SHAPE(fds, v)                                                          \
    {                                                                          \
        true, fds, v, MO_COUNT(v)                                              \
    }
/* without the last n fields */
#define SHAPE_BUT(fds, v, n)                                                   \
    {                                                                          \
        true, fds, v, MO_COUNT(v) - (n)                                        \
    }
#define BARE                                                                   \
    {                                                                          \
        true, 0, NULL, 0                                                       \
    }

static const struct shape shapes[] = {
    [MO_BOXMSG_START] = SHAPE(1, req_fields),
    [MO_BOXMSG_RESTART] = SHAPE_BUT(1, req_fields, 4),
    [MO_BOXMSG_ATTACH] = BARE,
    [MO_BOXMSG_DESCRIBE] = BARE,
    [MO_BOXMSG_KILL] = BARE,
    [MO_BOXMSG_FREEZE] = BARE,
    [MO_BOXMSG_THAW] = BARE,
    [MO_BOXMSG_LABEL] = SHAPE(0, label_fields),
    [MO_BOXMSG_CLOSE_IN] = BARE,
    [MO_BOXMSG_STATS] = BARE,
    [MO_BOXMSG_WHO] = SHAPE(0, who_fields),
    [MO_BOXMSG_DESC] = SHAPE(MO_BOXMSG_FDS_MAX, desc_fields),
    [MO_BOXMSG_REFUSED] = SHAPE(0, refused_fields),
    [MO_BOXMSG_ENDED] = SHAPE(0, end_fields),
    [MO_BOXMSG_STATS_ARE] = SHAPE(0, stats_fields),
    [MO_BOXMSG_TAKEN] = BARE,
    [MO_BOXMSG_PROGRAM] = SHAPE(0, program_fields),
};

static const struct shape *shape_of(unsigned type)
{
    if (type >= MO_COUNT(shapes) || !shapes[type].known)
        return NULL;
    return &shapes[type];
}

bool mo_boxreq_id_ok(const char *id)
{
    size_t n = strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789-");

    return n > 0 && n <= MO_BOXREQ_ID_MAX && id[n] == '\0' && id[0] != '-';
}

/* --- writing ------------------------------------------------------------- */

static void put_le(struct mo_buf *b, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        mo_buf_putc(b, (char)(v >> (8 * i)));
}

static int put_text(struct mo_buf *b, const char *s, uint64_t min, uint64_t max)
{
    size_t n = s ? strlen(s) : 0;

    if (n < min || n > max)
        return MO_EINVAL;
    put_le(b, n, 2);
    return mo_buf_put(b, s ? s : "", n + 1);
}

static int put_list(struct mo_buf *b, const char *const *v,
                    const struct field *f)
{
    size_t n = 0;
    int rc = 0;

    while (n <= f->max && v[n])
        n++;
    if (n < f->min || n > f->max)
        return MO_EINVAL;
    put_le(b, n, 2);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = put_text(b, v[i], 0, MO_BOXREQ_WORD_MAX);
    return rc;
}

static int put_field(struct mo_buf *b, const void *s, const struct field *f)
{
    const char *at = (const char *)s + f->at;

    const char *const *texts = (const void *)at;
    uint64_t v;

    if (f->kind == TEXT)
        return put_text(b, *texts, f->min, f->max);
    if (f->kind == LIST)
        return put_list(b, texts, f);
    memcpy(&v, at, sizeof(v));
    if (v < f->min || v > f->max)
        return MO_EINVAL;
    put_le(b, v, 8);
    return mo_buf_err(b);
}

int mo_boxmsg_put(struct mo_buf *b, const struct mo_boxmsg *m, struct mo_err *e)
{
    const struct shape *s = shape_of(m->type);
    size_t head = b->len, len;
    int rc;

    MO_BUG_ON(!s || m->fds > s->fds_max);
    put_le(b, 0, 4);
    mo_buf_putc(b, (char)m->type);
    mo_buf_putc(b, MO_BOXMSG_VERSION);
    put_le(b, m->fds, 2);
    for (size_t i = 0; i < s->n; i++) {
        rc = put_field(b, &m->u, &s->fields[i]);
        if (rc < 0)
            return mo_fail(e, rc, "%s: out of its bounds", s->fields[i].name);
    }
    if (mo_buf_err(b))
        return mo_fail(e, mo_buf_err(b), "request to the keeper");
    len = b->len - head - MO_BOXMSG_HEAD;
    if (len > MO_BOXMSG_MAX)
        return mo_fail(e, MO_EINVAL, "request to the keeper: too long");
    for (unsigned i = 0; i < 4; i++)
        b->p[head + i] = (char)(len >> (8 * i));
    return 0;
}

/* --- reading ------------------------------------------------------------- */

static bool take_bytes(struct mo_span *in, size_t n, struct mo_span *out)
{
    if (in->n < n)
        return false;
    *out = mo_span(in->p, n);
    *in = mo_span_skip(*in, n);
    return true;
}

static bool take_le(struct mo_span *in, unsigned bytes, uint64_t *out)
{
    struct mo_span s;

    *out = 0;
    if (!take_bytes(in, bytes, &s))
        return false;
    for (unsigned i = 0; i < bytes; i++)
        *out |= (uint64_t)(unsigned char)s.p[i] << (8 * i);
    return true;
}

static bool take_text(struct mo_span *in, uint64_t min, uint64_t max,
                      const char **out)
{
    struct mo_span s;
    uint64_t n;

    if (!take_le(in, 2, &n) || n < min || n > max || !take_bytes(in, n + 1, &s))
        return false;
    *out = s.p;
    return mo_span_find(s, '\0') == (ptrdiff_t)n;
}

static bool take_list(struct mo_span *in, const char **v, const struct field *f)
{
    uint64_t n;

    if (!take_le(in, 2, &n) || n < f->min || n > f->max)
        return false;
    for (uint64_t i = 0; i < n; i++)
        if (!take_text(in, 0, MO_BOXREQ_WORD_MAX, &v[i]))
            return false;
    v[n] = NULL;
    return true;
}

static bool take_field(struct mo_span *in, void *s, const struct field *f)
{
    void *at = (char *)s + f->at;
    uint64_t *num = at;

    if (f->kind == TEXT)
        return take_text(in, f->min, f->max, at);
    if (f->kind == LIST)
        return take_list(in, at, f);
    return take_le(in, 8, num) && *num >= f->min && *num <= f->max;
}

static bool whole_head(struct mo_span in, const struct shape **s, uint64_t *len,
                       uint64_t *type, uint64_t *fds)
{
    uint64_t version;

    take_le(&in, 4, len);
    take_le(&in, 1, type);
    take_le(&in, 1, &version);
    take_le(&in, 2, fds);
    *s = shape_of((unsigned)*type);
    return *s && version == MO_BOXMSG_VERSION && *len <= MO_BOXMSG_MAX &&
           *fds <= (*s)->fds_max;
}

int mo_boxmsg_len(struct mo_span in, size_t *len, struct mo_err *e)
{
    const struct shape *s;
    uint64_t body, type, fds;

    *len = 0;
    if (in.n < MO_BOXMSG_HEAD)
        return 0;
    if (!whole_head(in, &s, &body, &type, &fds))
        return mo_fail(e, MO_EPROTO, "keeper: not a frame of version %d",
                       MO_BOXMSG_VERSION);
    *len = MO_BOXMSG_HEAD + body;
    return 0;
}

static int take_body(struct mo_span body, const struct shape *s,
                     struct mo_boxmsg *out, struct mo_err *e)
{
    for (size_t i = 0; i < s->n; i++)
        if (!take_field(&body, &out->u, &s->fields[i]))
            return mo_fail(e, MO_EPROTO, "keeper: field %s of frame %u",
                           s->fields[i].name, (unsigned)out->type);
    if (body.n)
        return mo_fail(e, MO_EPROTO, "keeper: %zu bytes too many", body.n);
    return 1;
}

int mo_boxmsg_next(struct mo_span *in, struct mo_boxmsg *out, struct mo_err *e)
{
    const struct shape *s;
    uint64_t body, type, fds;
    size_t len;
    int rc = mo_boxmsg_len(*in, &len, e);

    if (rc < 0)
        return rc;
    if (len == 0 || in->n < len)
        return 0;
    *out = (struct mo_boxmsg){0};
    whole_head(*in, &s, &body, &type, &fds);
    out->type = (enum mo_boxmsg_type)type;
    out->fds = (unsigned)fds;
    rc = take_body(mo_span(in->p + MO_BOXMSG_HEAD, body), s, out, e);
    if (rc == 1)
        *in = mo_span_skip(*in, len);
    return rc;
}
