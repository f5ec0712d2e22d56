/* log_line.h - one line of the log while it is written. Private to log.c,
 * log_line.c and log_queue.c.
 *
 * A part that does not fit is left out whole, and so is everything after it: no
 * escape sequence or character is split. */
#ifndef MO_BASE_LOG_LINE_H
#define MO_BASE_LOG_LINE_H

#include "base/log.h"
#include "base/mem.h"

#define MO_LOG_TEXT_MAX ((size_t)MO_LOG_LINE_MAX / 2)
#define MO_LOG_GRAM     ((size_t)4)
#define MO_LOG_TAIL     ((size_t)24) /* for "[cut]" and the end of the line */

struct mo_log_line {
    char p[MO_LOG_LINE_MAX];
    size_t n;
    bool full;
    bool json; /* quotes are escaped */
};

struct mo_log_message {
    struct mo_span text; /* at most MO_LOG_TEXT_MAX bytes */
    bool cut;            /* the text was longer */
    bool may_split;      /* a secret may be cut at its end */
};

/* Everything a line says. */
struct mo_log_entry {
    enum mo_level level;
    const char *room;
    uint64_t wall_ms;
    const struct mo_log_facts *facts;
    const struct mo_log_message *message;
};

static inline void mo_log_line_init(struct mo_log_line *l, bool json)
{
    l->n = 0;
    l->full = false;
    l->json = json;
}

/* The bit of the filter that stands for the four bytes at p. */
static inline unsigned mo_log_gram_bit(const char *p)
{
    uint32_t v;

    memcpy(&v, p, MO_LOG_GRAM);
    return v * 2654435761U >> 20;
}

static inline void mo_log_line_put(struct mo_log_line *l, const char *p,
                                   size_t n)
{
    l->full = l->full || n > sizeof(l->p) - MO_LOG_TAIL - l->n;
    if (l->full)
        return;
    memcpy(l->p + l->n, p, n);
    l->n += n;
}

/* Inline, so that the compiler knows the length of a literal. */
static inline void mo_log_line_puts(struct mo_log_line *l, const char *s)
{
    mo_log_line_put(l, s, strlen(s));
}

/* Always fits: MO_LOG_TAIL is reserved for it. */
void mo_log_line_tail(struct mo_log_line *l, const char *s);
void mo_log_line_u64(struct mo_log_line *l, uint64_t v);
/* t.n <= MO_LOG_TEXT_MAX. Secrets are hidden; cut: also the beginning of one at
 * the end. */
void mo_log_line_text(struct mo_log_line *out, const struct mo_log *l,
                      struct mo_span t, bool cut);
void mo_log_line_message(struct mo_log_line *out, const struct mo_log *l,
                         const struct mo_log_message *m);
/* The text before a fact's value, in JSON and on a terminal. */
#define MO_LOG_KEY(l, name)                                                    \
    ((l)->json ? MO_SPAN(",\"" name "\":") : MO_SPAN(" " name "="))
void mo_log_line_fact(struct mo_log_line *out, const struct mo_log *l,
                      struct mo_span key, struct mo_span v);
void mo_log_line_facts(struct mo_log_line *out, const struct mo_log *l,
                       const struct mo_log_facts *f);

/* log_queue.c */
void mo_log_queue_put(struct mo_log_queue *q, const struct mo_log *l,
                      const struct mo_log_entry *x);
void mo_log_queue_free(struct mo_log_queue *q);

#endif
