#include "base/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void mo_log_init(struct mo_log *l, int fd)
{
    bool tty = isatty(fd) == 1;

    *l = (struct mo_log){.fd = fd, .json = !tty, .level = MO_INFO};
    l->colour = tty && !getenv("NO_COLOR");
}

void mo_log_fini(struct mo_log *l)
{
    mo_log_flush(l);
    mo_free(l->pending);
    l->pending = NULL;
    for (size_t i = 0; i < l->nsecrets; i++) {
        explicit_bzero(l->secrets[i], strlen(l->secrets[i]));
        mo_free(l->secrets[i]);
    }
    l->nsecrets = 0;
}

static int level_of(struct mo_span s, enum mo_level *out)
{
    for (size_t i = 0; i < MO_COUNT(level_names); i++) {
        if (mo_span_is(s, level_names[i])) {
            *out = (enum mo_level)i;
            return 0;
        }
    }
    return MO_EINVAL;
}

/* A later entry for the same room wins. */
static int set_room(struct mo_log *l, struct mo_span room, enum mo_level lv,
                    struct mo_err *e)
{
    for (size_t i = 0; i < l->nrooms; i++) {
        if (mo_span_is(room, l->rooms[i].room)) {
            l->rooms[i].level = lv;
            return 0;
        }
    }
    if (room.n == 0 || room.n >= sizeof(l->rooms[0].room))
        return mo_fail(e, MO_EINVAL, "log: bad room name");
    if (l->nrooms == MO_LOG_ROOMS_MAX)
        return mo_fail(e, MO_EINVAL, "log: more than %d rooms named",
                       MO_LOG_ROOMS_MAX);
    memcpy(l->rooms[l->nrooms].room, room.p, room.n);
    l->rooms[l->nrooms].room[room.n] = '\0';
    l->rooms[l->nrooms].level = lv;
    l->nrooms++;
    return 0;
}

int mo_log_levels(struct mo_log *l, struct mo_span spec, struct mo_err *e)
{
    struct mo_log next = *l;

    next.nrooms = 0;
    while (spec.p) {
        struct mo_span word = mo_span_trim(mo_span_cut(&spec, ','));
        struct mo_span rest = word;
        struct mo_span room = mo_span_cut(&rest, '=');
        enum mo_level lv;

        if (level_of(rest.p ? rest : room, &lv) < 0)
            return mo_fail(e, MO_EINVAL,
                           "log level '%.*s': use error, warn, info or debug, "
                           "or room=level",
                           (int)word.n, word.p);
        if (!rest.p)
            next.level = lv;
        else if (set_room(&next, room, lv, e) < 0)
            return MO_EINVAL;
    }
    *l = next;
    return 0;
}

#define GRAM ((size_t)4)

/* The bit of the filter that stands for the four bytes at p. */
static unsigned gram_bit(const char *p)
{
    uint32_t v;

    memcpy(&v, p, GRAM);
    return v * 2654435761U >> 20;
}

int mo_log_secret(struct mo_log *l, struct mo_span secret)
{
    char *copy;

    secret.n = strnlen(secret.p ? secret.p : "", secret.n);
    if (secret.n < MO_LOG_SECRET_MIN)
        return 0;
    for (size_t i = 0; i < l->nsecrets; i++) {
        if (mo_span_is(secret, l->secrets[i]))
            return 0;
    }
    if (l->nsecrets == MO_LOG_SECRETS_MAX)
        return MO_EBUSY;
    copy = mo_strndup(secret.p, secret.n);
    if (!copy)
        return MO_ENOMEM;
    l->secrets[l->nsecrets] = copy;
    for (size_t i = 0; i + GRAM <= MO_LOG_SECRET_MIN; i++) {
        unsigned bit = gram_bit(copy + i);

        __atomic_fetch_or(&l->secret_grams[bit / 8], 1U << bit % 8,
                          __ATOMIC_RELAXED);
    }
    /* a worker that logs right now sees all of it or nothing */
    __atomic_store_n(&l->nsecrets, l->nsecrets + 1, __ATOMIC_RELEASE);
    return 0;
}

static const char secret_mark[] = "[secret]";

/* Length of the longest beginning of the secret that ends the text; 0 if it is
 * shorter than MO_LOG_SECRET_MIN. At most secret.n^2 comparisons, whatever the
 * length of the text. */
static size_t match_cut_secret(struct mo_span text, struct mo_span secret)
{
    size_t n = text.n < secret.n ? text.n : secret.n - 1;

    for (; n >= MO_LOG_SECRET_MIN; n--)
        if (memcmp(text.p + text.n - n, secret.p, n) == 0)
            return n;
    return 0;
}

/* Writes the mark, at most n bytes of it; returns the bytes written. */
static size_t put_mark(char *to, size_t n)
{
    size_t keep = n < sizeof(secret_mark) - 1 ? n : sizeof(secret_mark) - 1;

    memcpy(to, secret_mark, keep);
    return keep;
}

/* Each byte is searched and moved once, however often the secret occurs: the
 * text may be a call of several megabytes. */
void mo_log_blank(char *text, struct mo_span secret)
{
    struct mo_span rest = mo_span_cstr(text);
    size_t to = 0, cut;

    if (secret.n < MO_LOG_SECRET_MIN)
        return;
    for (ptrdiff_t at = mo_span_search(rest, secret); at >= 0;
         at = mo_span_search(rest, secret)) {
        memmove(text + to, rest.p, (size_t)at);
        to += (size_t)at;
        to += put_mark(text + to, secret.n);
        rest = mo_span_skip(rest, (size_t)at + secret.n);
    }
    cut = match_cut_secret(rest, secret);
    memmove(text + to, rest.p, rest.n - cut);
    to += rest.n - cut;
    if (cut)
        to += put_mark(text + to, cut);
    text[to] = '\0';
}

bool mo_log_on(const struct mo_log *l, enum mo_level lv, const char *room)
{
    if (!l)
        return false;
    for (size_t i = 0; i < l->nrooms; i++) {
        if (strcmp(l->rooms[i].room, room) == 0)
            return lv <= l->rooms[i].level;
    }
    return lv <= l->level;
}

/* --- the line ------------------------------------------------------------ */

/* A part that does not fit is left out whole, and so is everything after it: no
 * escape sequence or character is split. */
struct line {
    char p[MO_LOG_LINE_MAX];
    size_t n;
    bool full;
};

#define TAIL_ROOM ((size_t)24) /* for "[cut]" and the end of the line */

static inline void line_put(struct line *l, const char *p, size_t n)
{
    l->full = l->full || n > sizeof(l->p) - TAIL_ROOM - l->n;
    if (l->full)
        return;
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

/* Inline, so that the compiler knows the length of a literal. */
static inline void line_puts(struct line *l, const char *s)
{
    line_put(l, s, strlen(s));
}

/* Always fits: TAIL_ROOM is reserved for it. */
static void line_tail(struct line *l, const char *s)
{
    size_t n = strlen(s);

    MO_BUG_ON(n > sizeof(l->p) - l->n);
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

static void line_u64(struct line *l, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    line_put(l, digits + at, sizeof(digits) - at);
}

static void line_hex(struct line *l, uint32_t cp)
{
    char esc[8];

    (void)snprintf(esc, sizeof(esc), "\\u%04x", (unsigned)cp & 0xffff);
    line_puts(l, esc);
}

/* Length of the UTF-8 character at s (n > 0 bytes left), 0 if invalid. */
static size_t utf8_at(const char *s, size_t n, uint32_t *cp)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0},
                 {0xe0, 0xc0, 0x80},
                 {0xf0, 0xe0, 0x800},
                 {0xf8, 0xf0, 0x10000}};
    unsigned char c = (unsigned char)s[0];

    for (size_t k = 0; k < MO_COUNT(kinds) && k < n; k++) {
        if ((c & kinds[k].mask) != kinds[k].lead)
            continue;
        *cp = c & (unsigned char)~kinds[k].mask;
        for (size_t i = 1; i <= k; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            *cp = *cp << 6 | (s[i] & 0x3f);
        }
        if (*cp < kinds[k].least || *cp > 0x10ffff || *cp >> 11 == 0x1b)
            return 0;
        return k + 1;
    }
    return 0;
}

/* Characters that move the cursor, end a line or change the writing direction.
 * Peer text must not send them to a terminal. */
static bool commands_terminal(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Length of the beginning of s that is written as it is. */
static size_t plain_run(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
        i++;
    return i;
}

/* Write one character of text, escaped as \uXXXX if it is a control character
 * or invalid UTF-8; in JSON also escape quote and backslash. Returns the number
 * of bytes consumed. */
static size_t line_char(struct line *l, const char *s, size_t n, bool json)
{
    uint32_t cp = 0;
    size_t len = utf8_at(s, n, &cp);

    if (!len) {
        line_hex(l, 0xfffd);
        return 1;
    }
    if (commands_terminal(cp)) {
        line_hex(l, cp);
        return len;
    }
    if (json && (cp == '"' || cp == '\\')) {
        const char esc[2] = {'\\', (char)cp};

        line_put(l, esc, 2);
        return 1;
    }
    line_put(l, s, len);
    return len;
}

/* --- texts and the secrets in them --------------------------------------- */

#define TEXT_MAX ((size_t)MO_LOG_LINE_MAX / 2)

/* Mark the beginning of a secret at the end of a text that was cut there. */
static bool hide_cut_secret(struct mo_span t, struct mo_span secret,
                            bool *hidden)
{
    for (size_t k = secret.n < t.n ? secret.n : t.n; k; k--) {
        if (memcmp(t.p + t.n - k, secret.p, k) == 0) {
            memset(hidden + t.n - k, true, k);
            return true;
        }
    }
    return false;
}

/* False if t surely holds no secret. A secret anywhere in t covers a multiple
 * of the step with one of its first grams, so looking there is enough, however
 * many secrets there are. */
static bool may_hold_secret(const struct mo_log *l, struct mo_span t)
{
    const size_t step = MO_LOG_SECRET_MIN - GRAM + 1;

    for (size_t i = 0; i + GRAM <= t.n; i += step) {
        unsigned bit = gram_bit(t.p + i);

        if (__atomic_load_n(&l->secret_grams[bit / 8], __ATOMIC_RELAXED) >>
                bit % 8 &
            1)
            return true;
    }
    return false;
}

/* Set hidden[i] for every byte of t that belongs to a secret; cut: also to the
 * beginning of one at its end. Secrets may overlap: marking their bytes hides
 * all of them, which replacing one secret after the other would not. If no byte
 * is hidden, returns false. */
static bool hide_secrets(const struct mo_log *l, struct mo_span t, bool cut,
                         bool hidden[TEXT_MAX])
{
    size_t count = __atomic_load_n(&l->nsecrets, __ATOMIC_ACQUIRE);
    bool any = false;

    if (count == 0 || (!cut && !may_hold_secret(l, t)))
        return false;
    memset(hidden, false, t.n);
    for (size_t i = 0; i < count; i++) {
        struct mo_span secret = mo_span_cstr(l->secrets[i]);
        const char *at = memmem(t.p, t.n, secret.p, secret.n);

        while (at) {
            size_t from = (size_t)(at - t.p) + 1;

            any = true;
            memset(hidden + from - 1, true, secret.n);
            at = memmem(t.p + from, t.n - from, secret.p, secret.n);
        }
        if (cut && hide_cut_secret(t, secret, hidden))
            any = true;
    }
    return any;
}

/* t.n <= TEXT_MAX. */
static void line_text(struct line *out, const struct mo_log *l,
                      struct mo_span t, bool cut)
{
    bool hidden[TEXT_MAX] MO_UNINITIALIZED;
    bool any = hide_secrets(l, t, cut, hidden);
    size_t i = 0;

    while (i < t.n) {
        size_t run = any ? 0 : plain_run(t.p + i, t.n - i);

        if (run > 0) {
            line_put(out, t.p + i, run);
            i += run;
        } else if (!any || !hidden[i]) {
            i += line_char(out, t.p + i, t.n - i, l->json);
        } else {
            line_puts(out, "[secret]");
            while (i < t.n && hidden[i])
                i++;
        }
    }
}

/* --- the subject --------------------------------------------------------- */

#define FACT_MAX ((size_t)200)

/* What stands before a fact's value, in JSON and on a terminal. */
#define KEY(l, name)                                                           \
    ((l)->json ? MO_SPAN(",\"" name "\":") : MO_SPAN(" " name "="))

static void line_fact(struct line *out, const struct mo_log *l,
                      struct mo_span key, struct mo_span v)
{
    size_t before = out->n;
    bool quoted = l->json || mo_span_find(v, ' ') >= 0;

    if (v.n == 0 || out->full)
        return;
    line_put(out, key.p, key.n);
    if (quoted)
        line_puts(out, "\"");
    line_text(out, l, mo_span_head(v, FACT_MAX), v.n > FACT_MAX);
    if (quoted)
        line_puts(out, "\"");
    if (out->full) { /* not half of it */
        out->n = before;
        out->full = false;
    }
}

static void line_number(struct line *out, struct mo_span key, uint64_t v)
{
    if (v == 0)
        return;
    line_put(out, key.p, key.n);
    line_u64(out, v);
}

/* Milliseconds with three decimals. */
static void line_ms(struct line *out, struct mo_span key, uint64_t ns)
{
    uint64_t us = ns / 1000;
    const char part[] = {'.', (char)('0' + us / 100 % 10),
                         (char)('0' + us / 10 % 10), (char)('0' + us % 10)};

    if (ns == 0)
        return;
    line_put(out, key.p, key.n);
    line_u64(out, us / 1000);
    line_put(out, part, sizeof(part));
}

static void line_facts(struct line *out, const struct mo_log *l,
                       const struct mo_log_facts *f)
{
    line_number(out, KEY(l, "request"), f->request);
    line_fact(out, l, KEY(l, "session"), mo_span_cstr(f->session));
    line_fact(out, l, KEY(l, "turn"), mo_span_cstr(f->turn));
    line_fact(out, l, KEY(l, "call"), f->call);
    line_fact(out, l, KEY(l, "server"), f->server);
    line_fact(out, l, KEY(l, "tool"), f->tool);
    line_fact(out, l, KEY(l, "who"), mo_span_cstr(f->who));
    line_fact(out, l, KEY(l, "from"), mo_span_cstr(f->from));
    line_number(out, KEY(l, "status"), f->status);
    line_ms(out, KEY(l, "ms"), f->ns);
}

/* --- writing ------------------------------------------------------------- */

struct message {
    struct mo_span text; /* at most TEXT_MAX bytes */
    bool cut;            /* the text was longer */
    bool may_split;      /* a secret may be cut at its end */
};

/* Format the message and, after it, the error's into buf. */
__attribute__((format(printf, 2, 0))) static struct message
format_message(char buf[TEXT_MAX], const char *fmt, va_list ap,
               const struct mo_err *e)
{
    int n = vsnprintf(buf, TEXT_MAX, fmt, ap);
    struct message m = {mo_span(buf, strlen(buf)), n >= (int)TEXT_MAX, false};

    if (e) {
        size_t left = TEXT_MAX - m.text.n;

        n = snprintf(buf + m.text.n, left, ": %s", e->msg);
        m.cut = m.cut || n >= (int)left;
        m.text.n += strlen(buf + m.text.n);
    }
    m.may_split = m.cut || (e && strlen(e->msg) == sizeof(e->msg) - 1);
    return m;
}

static void line_message(struct line *out, const struct mo_log *l,
                         const struct message *m)
{
    line_text(out, l, m->text, m->may_split);
    if (m->cut || out->full)
        line_tail(out, "[cut]");
}

static void format_json(struct line *out, const struct mo_log *l,
                        enum mo_level lv, const char *room,
                        const struct mo_log_facts *f, const struct message *m)
{
    char when[MO_ISO8601_MAX];

    mo_wall_format(mo_wall_ms(), when);
    line_puts(out, "{\"ts\":\"");
    line_put(out, when, sizeof(when) - 1);
    line_puts(out, "\",\"level\":\"");
    line_puts(out, level_names[lv]);
    line_puts(out, "\",\"room\":\"");
    line_puts(out, room);
    line_puts(out, "\"");
    if (f->err) {
        line_fact(out, l, KEY(l, "code"),
                  mo_span_cstr(mo_err_name(f->err->code)));
        line_puts(out, ",\"errno\":");
        line_u64(out, (uint64_t)f->err->sys);
    }
    line_facts(out, l, f);
    line_puts(out, ",\"msg\":\"");
    line_message(out, l, m);
    line_tail(out, "\"}\n");
}

static void format_human(struct line *out, const struct mo_log *l,
                         enum mo_level lv, const char *room,
                         const struct mo_log_facts *f, const struct message *m)
{
    static const char *const paint[] = {"\x1b[31m", "\x1b[33m", "", "\x1b[2m"};
    char when[MO_ISO8601_MAX];
    char head[64];

    mo_wall_format(mo_wall_ms(), when);
    (void)snprintf(head, sizeof(head), "%.8s %-5s %-8s ", when + 11,
                   level_names[lv], room);
    line_puts(out, l->colour ? paint[lv] : "");
    line_puts(out, head);
    line_message(out, l, m);
    line_facts(out, l, f);
    line_tail(out, l->colour ? "\x1b[0m\n" : "\n");
}

static void write_all(int fd, const char *p, size_t n)
{
    while (write(fd, p, n) < 0 && errno == EINTR)
        ;
}

/* Lines that wait. Only the thread that began to collect sees them. */
struct mo_log_pending {
    pthread_t thread;
    size_t n;
    char p[(size_t)16 * 1024];
};

static struct mo_log_pending *pending_of(const struct mo_log *l)
{
    struct mo_log_pending *p = l ? l->pending : NULL;

    return p && pthread_equal(p->thread, pthread_self()) ? p : NULL;
}

void mo_log_collect(struct mo_log *l)
{
    if (!l->pending)
        l->pending = mo_new(struct mo_log_pending);
    if (l->pending)
        l->pending->thread = pthread_self();
}

bool mo_log_has_collected(const struct mo_log *l)
{
    struct mo_log_pending *p = pending_of(l);

    return p && p->n > 0;
}

void mo_log_flush(const struct mo_log *l)
{
    struct mo_log_pending *p = pending_of(l);

    if (!p || p->n == 0)
        return;
    write_all(l->fd, p->p, p->n);
    p->n = 0;
}

static void write_line(const struct mo_log *l, enum mo_level lv,
                       const char *room, const struct mo_log_facts *f,
                       const struct message *m)
{
    struct mo_log_pending *p = pending_of(l);
    bool collect = p && lv >= MO_INFO;
    struct line out MO_UNINITIALIZED;

    out.n = 0;
    out.full = false;
    if (l->json)
        format_json(&out, l, lv, room, f, m);
    else
        format_human(&out, l, lv, room, f, m);
    if (p && (!collect || out.n > sizeof(p->p) - p->n))
        mo_log_flush(l);
    if (collect) {
        memcpy(p->p + p->n, out.p, out.n);
        p->n += out.n;
    } else {
        write_all(l->fd, out.p, out.n);
    }
}

__attribute__((format(printf, 5, 0))) static void
write_formatted(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_log_facts *f, const char *fmt, va_list ap)
{
    char buf[TEXT_MAX] MO_UNINITIALIZED;
    struct message m = format_message(buf, fmt, ap, f->err);

    write_line(l, lv, room, f, &m);
}

void mo_log_text(const struct mo_log *l, enum mo_level lv, const char *room,
                 const struct mo_log_facts *about, struct mo_span text)
{
    bool cut = text.n > TEXT_MAX;
    struct message m = {mo_span_head(text, TEXT_MAX), cut, cut};

    if (mo_log_on(l, lv, room))
        write_line(l, lv, room, about, &m);
}

void mo_log(const struct mo_log *l, enum mo_level lv, const char *room,
            const char *fmt, ...)
{
    const struct mo_log_facts none = {0};
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    write_formatted(l, lv, room, &none, fmt, ap);
    va_end(ap);
}

void mo_log_err(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_err *e, const char *fmt, ...)
{
    const struct mo_log_facts f = {.err = e};
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    write_formatted(l, lv, room, &f, fmt, ap);
    va_end(ap);
}

void mo_log_about(const struct mo_log *l, enum mo_level lv, const char *room,
                  const struct mo_log_facts *about, const char *fmt, ...)
{
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    write_formatted(l, lv, room, about, fmt, ap);
    va_end(ap);
}
