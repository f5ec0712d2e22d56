#include "base/log.h"

#include <errno.h>
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
    /* a worker that logs right now sees all of it or nothing */
    __atomic_store_n(&l->nsecrets, l->nsecrets + 1, __ATOMIC_RELEASE);
    return 0;
}

/* Number of bytes at `at` that match the secret's beginning; 0 if too few. */
static size_t match_secret(struct mo_span secret, const char *at)
{
    size_t left = strlen(at);
    size_t n = left < secret.n ? left : secret.n;

    return n >= MO_LOG_SECRET_MIN && memcmp(at, secret.p, n) == 0 ? n : 0;
}

void mo_log_blank(char *text, struct mo_span secret)
{
    static const char mark[] = "[secret]";

    for (char *p = text; *p; p++) {
        size_t n = match_secret(secret, p);
        size_t keep = n < sizeof(mark) - 1 ? n : sizeof(mark) - 1;

        if (n == 0)
            continue;
        memcpy(p, mark, keep);
        memmove(p + keep, p + n, strlen(p + n) + 1);
        p += keep - 1;
    }
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

/* --- the message and its hidden bytes ------------------------------------ */

#define TEXT_MAX ((size_t)MO_LOG_LINE_MAX / 2)

/* 1. text[0..n) holds no NUL; text[n] is one.
 * 2. hidden[i] is true for every byte of text that belongs to a secret, also
 *    to the beginning of a secret that was cut at the end of the text.
 * Secrets may overlap. Marking their bytes hides all of them, which replacing
 * one secret after the other would not. */
struct message {
    char text[TEXT_MAX];
    bool hidden[TEXT_MAX];
    size_t n;
    bool cut;
};

static void hide_bytes(struct message *m, size_t at, size_t n)
{
    memset(m->hidden + at, true, n);
}

static void hide_secret(struct message *m, const char *secret, size_t n)
{
    const char *at = strstr(m->text, secret);

    while (at) {
        hide_bytes(m, (size_t)(at - m->text), n);
        at = strstr(at + 1, secret);
    }
}

/* Hide the beginning of a secret at the end of a text that was cut there. */
static void hide_cut_secret(struct message *m, size_t end, const char *secret,
                            size_t n)
{
    for (size_t k = n < end ? n : end; k; k--) {
        if (memcmp(m->text + end - k, secret, k) == 0) {
            hide_bytes(m, end - k, k);
            return;
        }
    }
}

/* err_cut: the text ends with an error message that filled its buffer, so it
 * may have been cut there. */
static void hide_secrets(const struct mo_log *l, struct message *m,
                         bool err_cut)
{
    size_t count = __atomic_load_n(&l->nsecrets, __ATOMIC_ACQUIRE);

    for (size_t i = 0; i < count; i++) {
        size_t n = strlen(l->secrets[i]);

        hide_secret(m, l->secrets[i], n);
        if (m->cut || err_cut)
            hide_cut_secret(m, m->n, l->secrets[i], n);
    }
}

__attribute__((format(printf, 2, 0))) static void
format_message(struct message *m, const char *fmt, va_list ap)
{
    int n = vsnprintf(m->text, TEXT_MAX, fmt, ap);

    m->cut = n >= (int)TEXT_MAX;
    m->n = strlen(m->text);
}

static void append_err(struct message *m, const struct mo_err *e)
{
    int n = snprintf(m->text + m->n, TEXT_MAX - m->n, ": %s", e->msg);

    m->cut = m->cut || n >= (int)(TEXT_MAX - m->n);
    m->n += strlen(m->text + m->n);
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

static void line_put(struct line *l, const char *p, size_t n)
{
    l->full = l->full || n > sizeof(l->p) - TAIL_ROOM - l->n;
    if (l->full)
        return;
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

static void line_puts(struct line *l, const char *s)
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

static void line_message(struct line *l, const struct message *m, bool json)
{
    size_t i = 0;

    while (i < m->n) {
        if (!m->hidden[i]) {
            i += line_char(l, m->text + i, m->n - i, json);
            continue;
        }
        line_puts(l, "[secret]");
        while (i < m->n && m->hidden[i])
            i++;
    }
    if (m->cut || l->full)
        line_tail(l, "[cut]");
}

static void format_json(struct line *out, enum mo_level lv, const char *room,
                        const struct mo_err *e, const struct message *m)
{
    char when[MO_ISO8601_MAX];
    char head[128];

    mo_wall_format(mo_wall_ms(), when);
    (void)snprintf(head, sizeof(head),
                   "{\"ts\":\"%s\",\"level\":\"%s\",\"room\":\"%s\",", when,
                   level_names[lv], room);
    line_puts(out, head);
    if (e) {
        (void)snprintf(head, sizeof(head), "\"code\":\"%s\",\"errno\":%d,",
                       mo_err_name(e->code), e->sys);
        line_puts(out, head);
    }
    line_puts(out, "\"msg\":\"");
    line_message(out, m, true);
    line_tail(out, "\"}\n");
}

static void format_human(struct line *out, const struct mo_log *l,
                         enum mo_level lv, const char *room,
                         const struct message *m)
{
    static const char *const paint[] = {"\x1b[31m", "\x1b[33m", "", "\x1b[2m"};
    char when[MO_ISO8601_MAX];
    char head[64];

    mo_wall_format(mo_wall_ms(), when);
    (void)snprintf(head, sizeof(head), "%.8s %-5s %-8s ", when + 11,
                   level_names[lv], room);
    line_puts(out, l->colour ? paint[lv] : "");
    line_puts(out, head);
    line_message(out, m, false);
    line_tail(out, l->colour ? "\x1b[0m\n" : "\n");
}

__attribute__((format(printf, 5, 0))) static void
write_line(const struct mo_log *l, enum mo_level lv, const char *room,
           const struct mo_err *e, const char *fmt, va_list ap)
{
    struct message m = {.n = 0};
    struct line out;

    format_message(&m, fmt, ap);
    if (e)
        append_err(&m, e);
    hide_secrets(l, &m, e && strlen(e->msg) == sizeof(e->msg) - 1);
    out.n = 0;
    out.full = false;
    if (l->json)
        format_json(&out, lv, room, e, &m);
    else
        format_human(&out, l, lv, room, &m);
    while (write(l->fd, out.p, out.n) < 0 && errno == EINTR)
        ;
}

void mo_log(const struct mo_log *l, enum mo_level lv, const char *room,
            const char *fmt, ...)
{
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    write_line(l, lv, room, NULL, fmt, ap);
    va_end(ap);
}

void mo_log_err(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_err *e, const char *fmt, ...)
{
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    write_line(l, lv, room, e, fmt, ap);
    va_end(ap);
}
