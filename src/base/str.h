/* str.h - borrowed text (spans) and owned text with a limit (buffers).
 *
 * A span is a pointer and a length into memory it does not own. It may hold NUL
 * bytes and is not NUL-terminated.
 *
 * A buffer has a maximum length from the start. Reaching it, or running out of
 * memory, sets a sticky error that every later call returns at once, so a
 * writer can chain puts and check mo_buf_err() once at the end. After an error
 * the content is undefined until mo_buf_reset(). Do not put a buffer's own
 * bytes into it: growing may move them. */
#ifndef MO_BASE_STR_H
#define MO_BASE_STR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/mem.h"

struct mo_span {
    const char *p;
    size_t n;
};

#define MO_SPAN(lit) ((struct mo_span){"" lit, sizeof(lit) - 1})

static inline struct mo_span mo_span(const char *p, size_t n)
{
    return (struct mo_span){p, n};
}

static inline struct mo_span mo_span_cstr(const char *s)
{
    return (struct mo_span){s, s ? strlen(s) : 0};
}

static inline bool mo_span_eq(struct mo_span a, struct mo_span b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

static inline bool mo_span_is(struct mo_span a, const char *lit)
{
    return mo_span_eq(a, mo_span_cstr(lit));
}

/* ASCII only: those of ctype.h depend on the locale. */
static inline bool mo_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static inline bool mo_is_alpha(char c)
{
    return (c | 32) >= 'a' && (c | 32) <= 'z';
}

static inline char mo_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

/* The value of a hexadecimal digit, or -1. */
static inline int mo_hex_digit(char c)
{
    if (mo_is_digit(c))
        return c - '0';
    c |= 32;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without / only the first n bytes; n is clamped. */
struct mo_span mo_span_skip(struct mo_span s, size_t n);
struct mo_span mo_span_head(struct mo_span s, size_t n);
/* Cut the first n bytes off *s and return them; n is clamped. */
struct mo_span mo_span_take(struct mo_span *s, size_t n);
struct mo_span mo_span_trim(struct mo_span s); /* spaces and tabs, both ends */

/* A copy, NUL-terminated. p is NULL if the arena has no memory. */
static inline struct mo_span mo_span_dup(struct mo_arena *a, struct mo_span s)
{
    const char *p = mo_arena_strndup(a, s.p ? s.p : "", s.n);

    return mo_span(p, p ? s.n : 0);
}

bool mo_span_ieq(struct mo_span a, struct mo_span b); /* ASCII case ignored */
bool mo_span_starts(struct mo_span s, struct mo_span prefix);
bool mo_span_ends(struct mo_span s, struct mo_span suffix);
/* Cut the prefix off *s; false if *s does not begin with it. */
bool mo_span_strip(struct mo_span *s, struct mo_span prefix);
/* An IPv4 address as four numbers: 192.0.2.1, without leading zeros. */
bool mo_span_is_ip4(struct mo_span s);
/* Constant time: depends on the length only. */
bool mo_span_eq_ct(struct mo_span a, struct mo_span b);

/* Cut *s at the first c. Returns the part before it; *s keeps the rest. If c is
 * missing, returns all of *s and sets s->p to NULL, so a loop can end. */
struct mo_span mo_span_cut(struct mo_span *s, char c);
ptrdiff_t mo_span_find(struct mo_span s, char c); /* or -1 */
/* Are all bytes of s among those of set? An empty s: yes. */
bool mo_span_only(struct mo_span s, const char *set);
/* Are all bytes from lo to hi, such as ' ' to '~'? */
bool mo_span_between(struct mo_span s, char lo, char hi);
#define MO_ALNUM                                                               \
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
ptrdiff_t mo_span_search(struct mo_span s, struct mo_span what); /* or -1 */

/* Parse the whole span as a decimal number: no sign (u64) or an optional '-'
 * (i64), no blanks, no overflow. 0 or MO_EINVAL. */
int mo_span_u64(struct mo_span s, uint64_t *out);
/* The decimal digits of v, in `room`. */
#define MO_U64_DIGITS 20
struct mo_span mo_u64_text(uint64_t v, char room[MO_U64_DIGITS]);
/* Write n bytes as 2 n lower-case hexadecimal digits and a NUL. */
void mo_hex(const void *p, size_t n, char *out);
int mo_span_i64(struct mo_span s, int64_t *out);

/* Append to a text of which only the last `max` bytes are kept. Returns its new
 * length. */
size_t mo_tail_add(char *tail, size_t len, size_t max, struct mo_span more);

/* Copy the text to the arena, with a NUL behind it. 0 or MO_ENOMEM. */
int mo_arena_span(struct mo_arena *a, struct mo_span from, struct mo_span *to);

/* --- capped buffer ------------------------------------------------------- */

struct mo_buf {
    char *p;
    size_t len, cap;
    size_t max; /* len never goes above this */
    int err;    /* 0, MO_ETOOBIG, MO_ENOMEM, or MO_EINVAL (bad format) */
};

void mo_buf_init(struct mo_buf *b, size_t max);
void mo_buf_fini(struct mo_buf *b);  /* frees; may be used again */
void mo_buf_reset(struct mo_buf *b); /* len 0, no error, keeps memory */
/* The same, but frees more than `keep` bytes of memory. */
void mo_buf_shrink(struct mo_buf *b, size_t keep);

void mo_buf_wipe(struct mo_buf *b); /* overwrites, then frees */

/* Freed at the end of its scope: mo_autobuf struct mo_buf b = {.max = 64};
 * mo_autowipe is for secrets. */
#define mo_autobuf  MO_CLEANUP(mo_buf_fini)
#define mo_autowipe MO_CLEANUP(mo_buf_wipe)

int mo_buf_put(struct mo_buf *b, const void *p, size_t n);
int mo_buf_putc(struct mo_buf *b, char c);

/* Inline, so that the compiler knows the length of a literal. */
static inline int mo_buf_puts(struct mo_buf *b, const char *s)
{
    return mo_buf_put(b, s, strlen(s));
}

static inline int mo_buf_span(struct mo_buf *b, struct mo_span s)
{
    return mo_buf_put(b, s.p, s.n);
}

/* Replace the content. */
static inline int mo_buf_set(struct mo_buf *b, struct mo_span s)
{
    mo_buf_reset(b);
    return mo_buf_span(b, s);
}

int mo_buf_printf(struct mo_buf *b, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
int mo_buf_vprintf(struct mo_buf *b, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));
int mo_buf_u64(struct mo_buf *b, uint64_t v);
int mo_buf_i64(struct mo_buf *b, int64_t v);

/* Reserve n bytes at the end (NULL on error). mo_buf_add() then counts the
 * bytes written there. */
char *mo_buf_room(struct mo_buf *b, size_t n);
void mo_buf_add(struct mo_buf *b, size_t n);
void mo_buf_drop(struct mo_buf *b, size_t n); /* the first n bytes */

/* NUL-terminate without counting the NUL; "" on error. */
const char *mo_buf_cstr(struct mo_buf *b);

/* Sets the error if there is none yet; returns the buffer's error. */
int mo_buf_fail(struct mo_buf *b, int code);

static inline int mo_buf_err(const struct mo_buf *b)
{
    return b->err;
}

/* to fails with the error of from, unless it has one already. */
static inline void mo_buf_pass_err(struct mo_buf *to, const struct mo_buf *from)
{
    if (!to->err)
        to->err = from->err;
}

static inline struct mo_span mo_buf_view(const struct mo_buf *b)
{
    return mo_span(b->p, b->err ? 0 : b->len);
}

#endif
