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
    for (size_t i = 0; i < l->nsecrets; i++)
        mo_free(l->secrets[i]);
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

static int set_room(struct mo_log *l, struct mo_span room, enum mo_level lv,
                    struct mo_err *e)
{
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
    l->secrets[l->nsecrets++] = copy;
    return 0;
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

/* A line under construction: fixed room, cut with a mark when full. */
struct line {
    char p[MO_LOG_LINE_MAX];
    size_t n;
};

#define TAIL_ROOM ((size_t)16) /* for the cut mark, quotes and newline */

static void line_put(struct line *l, const char *p, size_t n)
{
    size_t room = sizeof(l->p) - TAIL_ROOM - l->n;

    if (n > room)
        n = room;
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

static void line_puts(struct line *l, const char *s)
{
    line_put(l, s, strlen(s));
}

/* Control characters, and in JSON also quote and backslash, never reach the
 * output raw: \u00XX is what both a person and a JSON parser understand. */
static void line_escaped(struct line *l, const char *s, bool json)
{
    char esc[8];

    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;

        if (c < 0x20 || c == 0x7f) {
            (void)snprintf(esc, sizeof(esc), "\\u%04x", c);
            line_puts(l, esc);
        } else if (json && (c == '"' || c == '\\')) {
            esc[0] = '\\';
            esc[1] = (char)c;
            line_put(l, esc, 2);
        } else {
            line_put(l, s, 1);
        }
    }
}

static void hide_secrets(const struct mo_log *l, char *msg)
{
    static const char mask[] = "[secret]";

    for (size_t i = 0; i < l->nsecrets; i++) {
        size_t n = strlen(l->secrets[i]);
        char *at;

        for (at = strstr(msg, l->secrets[i]); at;
             at = strstr(at, l->secrets[i])) {
            size_t put = n < sizeof(mask) - 1 ? n : sizeof(mask) - 1;

            memcpy(at, mask, put);
            memmove(at + put, at + n, strlen(at + n) + 1);
            at += put;
        }
    }
}

static void format_json(struct line *out, enum mo_level lv, const char *room,
                        const struct mo_err *e, const char *msg)
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
    line_escaped(out, msg, true);
    memcpy(out->p + out->n, "\"}\n", 3); /* TAIL_ROOM keeps place */
    out->n += 3;
}

static void format_human(struct line *out, const struct mo_log *l,
                         enum mo_level lv, const char *room, const char *msg)
{
    static const char *const paint[] = {"\x1b[31m", "\x1b[33m", "", "\x1b[2m"};
    char when[MO_ISO8601_MAX];
    char head[64];

    mo_wall_format(mo_wall_ms(), when);
    (void)snprintf(head, sizeof(head), "%.8s %-5s %-8s ", when + 11,
                   level_names[lv], room);
    line_puts(out, l->colour ? paint[lv] : "");
    line_puts(out, head);
    line_escaped(out, msg, false);
    if (l->colour) {
        memcpy(out->p + out->n, "\x1b[0m", 4);
        out->n += 4;
    }
    out->p[out->n++] = '\n';
}

static void emit(const struct mo_log *l, enum mo_level lv, const char *room,
                 const struct mo_err *e, char *msg)
{
    struct line out = {.n = 0};

    hide_secrets(l, msg);
    if (l->json)
        format_json(&out, lv, room, e, msg);
    else
        format_human(&out, l, lv, room, msg);
    while (write(l->fd, out.p, out.n) < 0 && errno == EINTR)
        ;
}

void mo_log(const struct mo_log *l, enum mo_level lv, const char *room,
            const char *fmt, ...)
{
    char msg[MO_LOG_LINE_MAX / 2];
    va_list ap;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    emit(l, lv, room, NULL, msg);
}

void mo_log_err(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_err *e, const char *fmt, ...)
{
    char msg[MO_LOG_LINE_MAX / 2];
    va_list ap;
    size_t n;

    if (!mo_log_on(l, lv, room))
        return;
    va_start(ap, fmt);
    (void)vsnprintf(msg, sizeof(msg), fmt, ap);
    va_end(ap);
    n = strlen(msg);
    (void)snprintf(msg + n, sizeof(msg) - n, ": %s", e->msg);
    emit(l, lv, room, e, msg);
}
