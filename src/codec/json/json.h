/* json.h - JSON without a tree.
 *
 * Text from a peer is validated once, in full (RFC 8259, UTF-8, depth, size),
 * by mo_json_parse(). The result is a value handle: the span of the value's
 * own bytes. Everything after that is a lazy walk over text known to be
 * valid, so numbers and unknown members keep their exact bytes and a
 * payload can be forwarded unchanged.
 *
 * Ownership: a handle borrows the text it was parsed from.
 * Trust: the cursor functions below must only be given handles that came from
 * mo_json_parse() (or text we wrote ourselves); they do not validate again.
 * Limits: depth and size; a duplicate key is legal JSON, so it is refused
 * only where two readers could disagree because of it (rpc.h, config).
 *
 * Newlines between tokens are legal JSON but break newline framing and SSE:
 * root.has_nl tells, mo_json_compact() re-emits without them. */
#ifndef MO_CODEC_JSON_JSON_H
#define MO_CODEC_JSON_JSON_H

#include "base/mem.h"
#include "base/str.h"

#define MO_JSON_DEPTH_MAX 512

enum mo_json_type {
    MO_JSON_NONE, /* "no value": the result of a failed look-up */
    MO_JSON_NULL,
    MO_JSON_BOOL,
    MO_JSON_NUMBER,
    MO_JSON_STRING,
    MO_JSON_ARRAY,
    MO_JSON_OBJECT,
};

/* A validated value: its text without surrounding blanks. {NULL,0} = none. */
struct mo_json {
    const char *p;
    size_t n;
};

struct mo_json_doc {
    struct mo_json root;
    bool has_nl;   /* a raw LF or CR stands between tokens */
    size_t bad_at; /* on failure: offset of the first wrong byte */
};

/* The whole text is one JSON value. depth <= 0: MO_JSON_DEPTH_MAX.
 * MO_EPROTO: *e names the error and its place. */
int mo_json_parse(struct mo_span text, int depth, struct mo_json_doc *out,
                  struct mo_err *e);

/* The whole text is one object: out[i] is its member names[i], the last of
 * duplicates, or none. Cheaper than parsing first and searching then. */
int mo_json_parse_members(struct mo_span text, const char *const *names,
                          size_t n, struct mo_json *out, struct mo_err *e);

enum mo_json_type mo_json_type(struct mo_json v);

static inline struct mo_span mo_json_text(struct mo_json v)
{
    return mo_span(v.p, v.n);
}

static inline bool mo_json_is(struct mo_json v, enum mo_json_type t)
{
    return mo_json_type(v) == t;
}

/* Walk an array or object. key is the quoted string (none for arrays);
 * false at the end, and for any value that is neither. */
struct mo_json_iter {
    const char *p, *end;
    bool object;
};

void mo_json_iter(struct mo_json_iter *it, struct mo_json v);
bool mo_json_next(struct mo_json_iter *it, struct mo_json *key,
                  struct mo_json *val);

/* Every member or element of v: mo_json_each (it, v) { it.key, it.val }. */
struct mo_json_each {
    struct mo_json_iter at;
    struct mo_json key, val;
};

static inline struct mo_json_each *mo_json_begin(struct mo_json_each *it,
                                                 struct mo_json v)
{
    it->key = it->val = (struct mo_json){NULL, 0};
    mo_json_iter(&it->at, v);
    return it;
}

static inline bool mo_json_step(struct mo_json_each *it)
{
    return mo_json_next(&it->at, &it->key, &it->val);
}

#define mo_json_each(it, v) mo_json_each_while (it, v, true)
/* The same, as long as cond holds; it is checked before each item. */
#define mo_json_each_while(it, v, cond)                                        \
    for (struct mo_json_each it, *it##_first = mo_json_begin(&it, v);          \
         (cond) && mo_json_step(it##_first);)

/* The same in steps, so that a long value need not be walked over twice. more()
 * says whether there is another item; key() reads its key, in objects; then
 * value() reads its value, or enter() walks into it and leave() goes behind it.
 * enter() is false for a value that is no container; leave() skips the rest. */
bool mo_json_more(struct mo_json_iter *it);
struct mo_json mo_json_key(struct mo_json_iter *it);
struct mo_json mo_json_value(struct mo_json_iter *it);
bool mo_json_enter(const struct mo_json_iter *it, struct mo_json_iter *inner);
struct mo_json mo_json_leave(struct mo_json_iter *it,
                             struct mo_json_iter *inner);

/* Look-up. Keys are compared after unescaping. The *last* of duplicates wins
 * (as JSON.parse does). None when v is no object or has no such key. */
struct mo_json mo_json_find(struct mo_json v, struct mo_span key);
static inline struct mo_json mo_json_get(struct mo_json v, const char *key)
{
    return mo_json_find(v, mo_span_cstr(key));
}
/* The same for an object without duplicate keys, such as one that we wrote: the
 * search ends at the first match. */
struct mo_json mo_json_first(struct mo_json v, const char *key);
struct mo_json mo_json_at(struct mo_json v, size_t index);
size_t mo_json_len(struct mo_json v); /* members or elements */

/* String value. str_eq compares after unescaping, without allocating;
 * str() gives the unescaped bytes: borrowed when nothing was escaped, else in
 * the arena (MO_ENOMEM). A lone surrogate becomes U+FFFD. */
bool mo_json_str_same(struct mo_json v, struct mo_span s);
int mo_json_str(struct mo_json v, struct mo_arena *a, struct mo_span *out);
/* Inline, because a search compares with many keys and most differ at the first
 * byte. An escape is never shorter than the character it stands for. */
static inline bool mo_json_str_eq(struct mo_json v, struct mo_span s)
{
    if (v.n < 2 || v.n - 2 < s.n || v.p[0] != '"')
        return false;
    if (s.n && v.p[1] != s.p[0] && v.p[1] != '\\')
        return false;
    return mo_json_str_same(v, s);
}
/* True if it equals one of the names, a list that ends in NULL. */
bool mo_json_str_in(struct mo_json v, const char *const *names);
/* Unescape into a buffer. */
int mo_json_str_buf(struct mo_json v, struct mo_buf *b);
/* Unescape into out, with a NUL. MO_EINVAL: no string; MO_ETOOBIG: it does not
 * fit. Then out is "". */
int mo_json_str_copy(struct mo_json v, char *out, size_t size);

/* Does a raw LF or CR stand between its tokens? */
bool mo_json_has_nl(struct mo_json v);

/* Numbers: exact or MO_EINVAL. i64/u64 take integers only ("1", not "1.0",
 * not "1e3"); f64 takes any JSON number. */
int mo_json_i64(struct mo_json v, int64_t *out);
int mo_json_u64(struct mo_json v, uint64_t *out);
int mo_json_f64(struct mo_json v, double *out);
int mo_json_bool(struct mo_json v, bool *out);
/* True if the member is there and is true. */
static inline bool mo_json_flag(struct mo_json obj, const char *key)
{
    bool on = false;

    return mo_json_bool(mo_json_get(obj, key), &on) == 0 && on;
}

/* v without blanks between tokens; strings and numbers keep their bytes. */
int mo_json_compact(struct mo_json v, struct mo_buf *b);
/* Indented, for people. */
int mo_json_pretty(struct mo_json v, struct mo_buf *b);

/* Line (1-based) and column (1-based, in bytes) of an offset, for messages. */
void mo_json_where(struct mo_span text, size_t at, unsigned *line,
                   unsigned *col);

/* --- writer --------------------------------------------------------------
 *
 * Writes into a capped buffer and puts commas and colons by itself. Errors
 * are the buffer's (sticky). Unbalanced or misplaced calls are a MO_BUG_ON. A
 * member is mo_jw_key() followed by one value. */

#define MO_JW_DEPTH_MAX 64

struct mo_jw {
    struct mo_buf *b;
    uint64_t is_obj, has_item; /* one bit per level */
    unsigned depth;
    bool after_key;
};

void mo_jw_init(struct mo_jw *w, struct mo_buf *b);
/* A writer that has opened its outermost object or array. */
struct mo_jw mo_jw_object(struct mo_buf *b);
struct mo_jw mo_jw_array(struct mo_buf *b);
void mo_jw_obj(struct mo_jw *w);
void mo_jw_arr(struct mo_jw *w);
void mo_jw_end(struct mo_jw *w); /* closes the innermost */
void mo_jw_end_all(struct mo_jw *w);
/* key: plain text, which is escaped here. A key that comes from JSON text is
 * escaped already and goes through mo_jw_key_raw(). */
void mo_jw_key_span(struct mo_jw *w, struct mo_span key);
static inline void mo_jw_key(struct mo_jw *w, const char *key)
{
    mo_jw_key_span(w, mo_span_cstr(key));
}
/* key: a validated JSON string, quotes included, copied unchanged. */
void mo_jw_key_raw(struct mo_jw *w, struct mo_json key);
void mo_jw_str(struct mo_jw *w, struct mo_span s); /* bad UTF-8 -> U+FFFD */
void mo_jw_cstr(struct mo_jw *w, const char *s);   /* NULL -> null */
void mo_jw_i64(struct mo_jw *w, int64_t v);
void mo_jw_u64(struct mo_jw *w, uint64_t v);
void mo_jw_f64(struct mo_jw *w, double v); /* shortest that reads back */
void mo_jw_bool(struct mo_jw *w, bool v);
void mo_jw_null(struct mo_jw *w);
void mo_jw_raw(struct mo_jw *w, struct mo_span json); /* validated text */
static inline void mo_jw_member(struct mo_jw *w, const char *key,
                                struct mo_span s)
{
    mo_jw_key(w, key);
    mo_jw_str(w, s);
}
/* Writes nothing if the text is empty. */
static inline void mo_jw_member_opt(struct mo_jw *w, const char *key,
                                    struct mo_span s)
{
    if (s.n)
        mo_jw_member(w, key, s);
}
/* The text of b as a string; the writer's buffer takes over an error of b. */
static inline void mo_jw_buf(struct mo_jw *w, const struct mo_buf *b)
{
    mo_buf_pass_err(w->b, b);
    mo_jw_str(w, mo_buf_view(b));
}
/* json: validated text; writes nothing if it is empty. */
static inline void mo_jw_member_raw(struct mo_jw *w, const char *key,
                                    struct mo_span json)
{
    if (!json.n)
        return;
    mo_jw_key(w, key);
    mo_jw_raw(w, json);
}
static inline void mo_jw_member_cstr(struct mo_jw *w, const char *key,
                                     const char *s) /* NULL -> null */
{
    mo_jw_key(w, key);
    mo_jw_cstr(w, s);
}
static inline void mo_jw_member_u64(struct mo_jw *w, const char *key,
                                    uint64_t v)
{
    mo_jw_key(w, key);
    mo_jw_u64(w, v);
}
static inline void mo_jw_member_i64(struct mo_jw *w, const char *key, int64_t v)
{
    mo_jw_key(w, key);
    mo_jw_i64(w, v);
}
static inline void mo_jw_member_f64(struct mo_jw *w, const char *key, double v)
{
    mo_jw_key(w, key);
    mo_jw_f64(w, v);
}
static inline void mo_jw_member_bool(struct mo_jw *w, const char *key, bool v)
{
    mo_jw_key(w, key);
    mo_jw_bool(w, v);
}
/* Copies a member of that object, if there is one. */
static inline void mo_jw_copy(struct mo_jw *w, struct mo_json from,
                              const char *key)
{
    mo_jw_member_raw(w, key, mo_json_text(mo_json_get(from, key)));
}
/* Open an object or array as a member; mo_jw_end() closes it. */
static inline void mo_jw_member_obj(struct mo_jw *w, const char *key)
{
    mo_jw_key(w, key);
    mo_jw_obj(w);
}
static inline void mo_jw_member_arr(struct mo_jw *w, const char *key)
{
    mo_jw_key(w, key);
    mo_jw_arr(w);
}

/* The string literal alone, quotes included. */
int mo_json_quote(struct mo_buf *b, struct mo_span s);

#endif
