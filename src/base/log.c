#include "base/log_line.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static const char *const level_names[] = {"error", "warn", "info", "debug"};

void mo_log_init(struct mo_log *l, int fd)
{
    bool tty = isatty(fd) == 1;

    *l = (struct mo_log){.fd = fd, .json = !tty, .level = MO_INFO};
    l->colour = tty && !getenv("NO_COLOR");
}

static void wipe_text(char *secret)
{
    explicit_bzero(secret, strlen(secret));
    mo_free(secret);
}

void mo_log_fini(struct mo_log *l)
{
    mo_log_flush(l);
    mo_free(l->pending);
    l->pending = NULL;
    mo_log_queue_free(l->queue);
    l->queue = NULL;
    for (size_t i = 0; i < l->nsecrets; i++)
        wipe_text(l->secrets[i]);
    l->nsecrets = 0;
    for (size_t i = 0; i < l->nretired; i++)
        wipe_text(l->retired[i]);
    l->nretired = 0;
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
    l->level = next.level;
    memcpy(l->rooms, next.rooms, sizeof(l->rooms));
    l->nrooms = next.nrooms;
    return 0;
}

/* --- secrets ------------------------------------------------------------- */

static struct mo_span secret_text(struct mo_span s)
{
    return mo_span(s.p, strnlen(s.p ? s.p : "", s.n));
}

static void add_grams(uint8_t *grams, const char *secret)
{
    for (size_t i = 0; i + MO_LOG_GRAM <= MO_LOG_SECRET_MIN; i++) {
        unsigned bit = mo_log_gram_bit(secret + i);

        __atomic_fetch_or(&grams[bit / 8], (uint8_t)(1U << bit % 8),
                          __ATOMIC_RELAXED);
    }
}

static int add_secret(struct mo_log *l, struct mo_span secret, bool renewed)
{
    char *copy;

    if (l->nsecrets == MO_LOG_SECRETS_MAX)
        return MO_EBUSY;
    copy = mo_strndup(secret.p, secret.n);
    if (!copy)
        return MO_ENOMEM;
    l->secrets[l->nsecrets] = copy;
    l->renewed[l->nsecrets] = renewed;
    add_grams(l->secret_grams, copy);
    /* a worker that logs right now sees all of it or nothing */
    __atomic_store_n(&l->nsecrets, l->nsecrets + 1, __ATOMIC_RELEASE);
    return 0;
}

int mo_log_secret(struct mo_log *l, struct mo_span secret)
{
    secret = secret_text(secret);
    if (secret.n < MO_LOG_SECRET_MIN)
        return 0;
    for (size_t i = 0; i < l->nsecrets; i++) {
        if (!l->renewed[i] && mo_span_is(secret, l->secrets[i]))
            return 0;
    }
    return add_secret(l, secret, false);
}

/* A reader that begins after a text was replaced does not find it any more. */
static void free_retired(struct mo_log *l)
{
    if (__atomic_load_n(&l->readers, __ATOMIC_SEQ_CST) > 0)
        return;
    while (l->nretired > 0)
        wipe_text(l->retired[--l->nretired]);
}

/* Without the bits of secrets that were replaced. Those of the others are set
 * all the time. */
static void renew_grams(struct mo_log *l)
{
    uint8_t grams[sizeof(l->secret_grams)] = {0};

    for (size_t i = 0; i < l->nsecrets; i++)
        add_grams(grams, l->secrets[i]);
    for (size_t i = 0; i < sizeof(grams); i++)
        __atomic_store_n(&l->secret_grams[i], grams[i], __ATOMIC_RELAXED);
}

static int replace_secret(struct mo_log *l, size_t at, struct mo_span secret)
{
    char *copy;

    free_retired(l);
    if (l->nretired == MO_LOG_RETIRED_MAX)
        return MO_EBUSY;
    copy = mo_strndup(secret.p, secret.n);
    if (!copy)
        return MO_ENOMEM;
    l->retired[l->nretired++] = l->secrets[at];
    add_grams(l->secret_grams, copy);
    __atomic_store_n(&l->secrets[at], copy, __ATOMIC_SEQ_CST);
    free_retired(l);
    renew_grams(l);
    return 0;
}

/* Makes the i-th place the newest. */
static void move_last(struct mo_log_renewed *r, size_t i)
{
    uint16_t at = r->at[i];

    memmove(&r->at[i], &r->at[i + 1], (r->n - i - 1) * sizeof(r->at[0]));
    r->at[r->n - 1] = at;
}

int mo_log_secret_renew(struct mo_log *l, struct mo_log_renewed *r,
                        struct mo_span secret)
{
    size_t i = 0;
    int rc = 0;

    secret = secret_text(secret);
    if (secret.n < MO_LOG_SECRET_MIN)
        return 0;
    while (i < r->n && !mo_span_is(secret, l->secrets[r->at[i]]))
        i++;
    if (i == r->n && r->n < MO_LOG_RENEWED_MAX) {
        rc = add_secret(l, secret, true);
        if (rc == 0)
            r->at[r->n++] = (uint16_t)(l->nsecrets - 1);
        if (rc != MO_EBUSY || r->n == 0)
            return rc;
    }
    if (i == r->n) {
        rc = replace_secret(l, r->at[0], secret);
        i = 0;
    }
    if (rc == 0)
        move_last(r, i);
    return rc;
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

/* --- the message --------------------------------------------------------- */

/* Format the message and, after it, the error's into buf. */
__attribute__((format(printf, 2, 0))) static struct mo_log_message
format_message(char buf[MO_LOG_TEXT_MAX], const char *fmt, va_list ap,
               const struct mo_err *e)
{
    int n = vsnprintf(buf, MO_LOG_TEXT_MAX, fmt, ap);
    struct mo_log_message m = {mo_span(buf, strlen(buf)),
                               n >= (int)MO_LOG_TEXT_MAX, false};

    if (e) {
        size_t left = MO_LOG_TEXT_MAX - m.text.n;

        n = snprintf(buf + m.text.n, left, ": %s", e->msg);
        m.cut = m.cut || n >= (int)left;
        m.text.n += strlen(buf + m.text.n);
    }
    m.may_split = m.cut || (e && strlen(e->msg) == sizeof(e->msg) - 1);
    return m;
}

static void format_json(struct mo_log_line *out, const struct mo_log *l,
                        const struct mo_log_entry *x)
{
    const struct mo_err *e = x->facts->err;
    char when[MO_ISO8601_MAX];

    mo_wall_format(x->wall_ms, when);
    mo_log_line_puts(out, "{\"ts\":\"");
    mo_log_line_put(out, when, sizeof(when) - 1);
    mo_log_line_puts(out, "\",\"level\":\"");
    mo_log_line_puts(out, level_names[x->level]);
    mo_log_line_puts(out, "\",\"room\":\"");
    mo_log_line_puts(out, x->room);
    mo_log_line_puts(out, "\"");
    if (e) {
        mo_log_line_fact(out, l, MO_LOG_KEY(l, "code"),
                         mo_span_cstr(mo_err_name(e->code)));
        mo_log_line_puts(out, ",\"errno\":");
        mo_log_line_u64(out, (uint64_t)e->sys);
    }
    mo_log_line_facts(out, l, x->facts);
    mo_log_line_puts(out, ",\"msg\":\"");
    mo_log_line_message(out, l, x->message);
    mo_log_line_tail(out, "\"}\n");
}

static void format_human(struct mo_log_line *out, const struct mo_log *l,
                         const struct mo_log_entry *x)
{
    static const char *const paint[] = {"\x1b[31m", "\x1b[33m", "", "\x1b[2m"};
    char when[MO_ISO8601_MAX];
    char head[64];

    mo_wall_format(x->wall_ms, when);
    (void)snprintf(head, sizeof(head), "%.8s %-5s %-8s ", when + 11,
                   level_names[x->level], x->room);
    mo_log_line_puts(out, l->colour ? paint[x->level] : "");
    mo_log_line_puts(out, head);
    mo_log_line_message(out, l, x->message);
    mo_log_line_facts(out, l, x->facts);
    mo_log_line_tail(out, l->colour ? "\x1b[0m\n" : "\n");
}

static void format_line(struct mo_log_line *out, const struct mo_log *l,
                        const struct mo_log_entry *x)
{
    struct mo_log_queue *q = __atomic_load_n(&l->queue, __ATOMIC_ACQUIRE);

    mo_log_line_init(out, l->json);
    if (l->json)
        format_json(out, l, x);
    else
        format_human(out, l, x);
    if (q)
        mo_log_queue_put(q, l, x);
}

static void write_all(int fd, const char *p, size_t n)
{
    while (write(fd, p, n) < 0 && errno == EINTR)
        ;
}

/* --- collecting ---------------------------------------------------------- */

/* A frequent line that is formatted later, together with others: doing it 200
 * times in a row takes a third of the time it takes between other work. */
struct unformatted {
    enum mo_level level;
    const char *room;
    uint64_t wall_ms;
    struct mo_log_facts facts; /* of texts only who and from, kept below */
    char who[40], from[48], text[104];
    size_t text_n;
    struct mo_log_trace trace;
};

/* Lines that wait. Only the thread that began to collect sees them. */
struct mo_log_pending {
    pthread_t thread;
    size_t n;
    char p[(size_t)16 * 1024];
    size_t later; /* number of those that follow p */
    struct unformatted v[64];
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

    return p && (p->n > 0 || p->later > 0);
}

static void write_pending(const struct mo_log *l, struct mo_log_pending *p)
{
    if (p->n > 0)
        write_all(l->fd, p->p, p->n);
    p->n = 0;
}

static void collect_line(const struct mo_log *l, struct mo_log_pending *p,
                         const struct mo_log_line *line)
{
    if (line->n > sizeof(p->p) - p->n)
        write_pending(l, p);
    memcpy(p->p + p->n, line->p, line->n);
    p->n += line->n;
}

static void format_pending(const struct mo_log *l, struct mo_log_pending *p)
{
    struct mo_log_line out MO_UNINITIALIZED;

    for (size_t i = 0; i < p->later; i++) {
        const struct unformatted *u = &p->v[i];
        const struct mo_log_message m = {mo_span(u->text, u->text_n), false,
                                         false};
        const struct mo_log_entry x = {u->level, u->room, u->wall_ms, &u->facts,
                                       &m};

        format_line(&out, l, &x);
        collect_line(l, p, &out);
    }
    p->later = 0;
}

void mo_log_flush(const struct mo_log *l)
{
    struct mo_log_pending *p = pending_of(l);

    if (!p)
        return;
    format_pending(l, p);
    write_pending(l, p);
}

/* A copy of s, if it fits. */
static bool keep_text(char *out, size_t max, const char **s)
{
    size_t n = *s ? strlen(*s) : 0;

    if (n >= max)
        return false;
    memcpy(out, *s ? *s : "", n + 1);
    *s = out;
    return true;
}

/* Format it later. False: it has too much for that. */
static bool put_off(const struct mo_log *l, enum mo_level lv, const char *room,
                    const struct mo_log_facts *f, struct mo_span text)
{
    struct mo_log_pending *p = lv >= MO_INFO ? pending_of(l) : NULL;
    struct unformatted *u = NULL;

    if (!p || f->session || f->turn || f->call.n || f->server.n || f->tool.n ||
        f->err)
        return false;
    if (p->later == MO_COUNT(p->v))
        format_pending(l, p);
    u = &p->v[p->later];
    u->facts = *f;
    if (text.n > sizeof(u->text) ||
        !keep_text(u->who, sizeof(u->who), &u->facts.who) ||
        !keep_text(u->from, sizeof(u->from), &u->facts.from))
        return false;
    if (f->trace) {
        u->trace = *f->trace;
        u->facts.trace = &u->trace;
    }
    u->level = lv;
    u->room = room;
    u->wall_ms = mo_wall_coarse_ms();
    memcpy(u->text, text.p, text.n);
    u->text_n = text.n;
    p->later++;
    return true;
}

/* --- writing ------------------------------------------------------------- */

static void write_line(const struct mo_log *l, enum mo_level lv,
                       const char *room, const struct mo_log_facts *f,
                       const struct mo_log_message *m)
{
    const struct mo_log_entry x = {lv, room, mo_wall_coarse_ms(), f, m};
    struct mo_log_pending *p = pending_of(l);
    struct mo_log_line out MO_UNINITIALIZED;

    if (p)
        format_pending(l, p); /* the lines before it */
    format_line(&out, l, &x);
    if (p && lv >= MO_INFO) {
        collect_line(l, p, &out);
        return;
    }
    if (p)
        write_pending(l, p);
    write_all(l->fd, out.p, out.n);
}

__attribute__((format(printf, 5, 0))) static void
write_formatted(const struct mo_log *l, enum mo_level lv, const char *room,
                const struct mo_log_facts *f, const char *fmt, va_list ap)
{
    char buf[MO_LOG_TEXT_MAX] MO_UNINITIALIZED;
    struct mo_log_message m = format_message(buf, fmt, ap, f->err);

    write_line(l, lv, room, f, &m);
}

void mo_log_text(const struct mo_log *l, enum mo_level lv, const char *room,
                 const struct mo_log_facts *about, struct mo_span text)
{
    bool cut = text.n > MO_LOG_TEXT_MAX;
    struct mo_log_message m = {mo_span_head(text, MO_LOG_TEXT_MAX), cut, cut};

    if (mo_log_on(l, lv, room) && !put_off(l, lv, room, about, text))
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
