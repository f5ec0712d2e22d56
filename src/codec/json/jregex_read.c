#include "codec/json/jregex_priv.h"

#define CP_MAX     0x10FFFFu
#define REPEAT_MAX 1000
#define NO_END     (-1)

struct range {
    uint32_t lo, hi;
};

static const struct range digits[] = {{'0', '9'}};
static const struct range words[] = {
    {'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
static const struct range blanks[] = {
    {9, 13},          {32, 32},         {0xA0, 0xA0},     {0x1680, 0x1680},
    {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
    {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};

static const struct {
    char name;
    const struct range *r;
    size_t n;
} sets[] = {
    {'d', digits, MO_COUNT(digits)},
    {'w', words, MO_COUNT(words)},
    {'s', blanks, MO_COUNT(blanks)},
};

struct reader {
    struct mo_jregex *r;
    size_t at, n;
    unsigned nest;
    bool bad;
};

/* --- reading the pattern ------------------------------------------------- */

static uint32_t peek(const struct reader *in, size_t ahead)
{
    return in->at + ahead < in->n ? in->r->text[in->at + ahead] : UINT32_MAX;
}

static bool take_char(struct reader *in, uint32_t c)
{
    if (peek(in, 0) != c)
        return false;
    in->at++;
    return true;
}

static void refuse(struct reader *in)
{
    in->bad = true;
    in->at = in->n;
}

static struct mo_jregex_op *emit_op(struct reader *in, uint8_t what)
{
    struct mo_jregex *r = in->r;

    if (r->nops == MO_JREGEX_OPS_MAX - 1) {
        refuse(in);
        r->nops--; /* the last one is written over: the pattern is lost */
    }
    r->ops[r->nops] = (struct mo_jregex_op){.what = what};
    return &r->ops[r->nops++];
}

/* Make space for one op in front of the piece that begins at `from`. */
static void push_front(struct reader *in, size_t from, struct mo_jregex_op op)
{
    struct mo_jregex *r = in->r;

    emit_op(in, JUMP);
    if (in->bad)
        return;
    memmove(r->ops + from + 1, r->ops + from,
            (r->nops - 1 - from) * sizeof(r->ops[0]));
    r->ops[from] = op;
}

static void add_range(struct reader *in, uint32_t lo, uint32_t hi)
{
    struct mo_jregex *r = in->r;

    if (r->nranges == MO_JREGEX_RANGES_MAX || lo > hi) {
        refuse(in);
        return;
    }
    r->ranges[r->nranges].lo = lo;
    r->ranges[r->nranges++].hi = hi;
}

/* \d and the other sets (which is 'd' or 'D'); false for any other letter. */
static bool add_set(struct reader *in, uint32_t which)
{
    for (size_t i = 0; i < MO_COUNT(sets); i++) {
        uint32_t next = 0;

        if ((which | 32) != (uint32_t)sets[i].name || which > 'z')
            continue;
        for (size_t k = 0; k < sets[i].n; k++) {
            const struct range *s = &sets[i].r[k];

            if (which & 32)
                add_range(in, s->lo, s->hi);
            else if (s->lo > next)
                add_range(in, next, s->lo - 1);
            next = s->hi + 1;
        }
        if (!(which & 32))
            add_range(in, next, CP_MAX);
        return true;
    }
    return false;
}

static uint32_t read_hex(struct reader *in, unsigned n)
{
    uint32_t v = 0;

    for (unsigned i = 0; i < n; i++) {
        uint32_t c = peek(in, 0);
        int h = c < 0x80 ? mo_hex_digit((char)c) : -1;

        if (h < 0) {
            refuse(in);
            return 0;
        }
        v = v << 4 | (uint32_t)h;
        in->at++;
    }
    return v;
}

/* After "\u": four digits, a pair of surrogates, or {digits}. */
static uint32_t read_unicode(struct reader *in)
{
    uint32_t v = 0, lo;

    if (take_char(in, '{')) {
        while (!in->bad && v <= CP_MAX && !take_char(in, '}'))
            v = v << 4 | read_hex(in, 1);
        if (v > CP_MAX)
            refuse(in);
        return v;
    }
    v = read_hex(in, 4);
    if (v < 0xD800 || v > 0xDFFF)
        return v;
    if (v > 0xDBFF || !take_char(in, '\\') || !take_char(in, 'u')) {
        refuse(in);
        return v;
    }
    lo = read_hex(in, 4);
    if (lo < 0xDC00 || lo > 0xDFFF)
        refuse(in);
    return 0x10000 + ((v - 0xD800) << 10) + (lo - 0xDC00);
}

/* After a backslash: one character. Letters and digits with another meaning (or
 * none) are refused, all others stand for themselves. */
static uint32_t read_escape(struct reader *in)
{
    static const char from[] = "tnrfv", to[] = "\t\n\r\f\v";
    uint32_t c = peek(in, 0);
    const char *at;

    in->at++;
    if (c == 'u')
        return read_unicode(in);
    if (c == 'x')
        return read_hex(in, 2);
    if (c == '0' && !(peek(in, 0) >= '0' && peek(in, 0) <= '9'))
        return 0;
    if (c > 0x7F) {
        if (c == UINT32_MAX)
            refuse(in);
        return c;
    }
    at = c ? strchr(from, (int)c) : NULL;
    if (at)
        return (unsigned char)to[at - from];
    if (mo_jregex_is_word(c) && c != '_')
        refuse(in);
    return c;
}

/* Read one end of a range in a class; *set when it was a whole set. */
static uint32_t class_atom(struct reader *in, bool *set)
{
    uint32_t c = peek(in, 0);

    *set = false;
    if (c == UINT32_MAX) {
        refuse(in);
        return 0;
    }
    in->at++;
    if (c != '\\')
        return c;
    if (add_set(in, peek(in, 0))) {
        in->at++;
        *set = true;
        return 0;
    }
    if (take_char(in, 'b'))
        return '\b';
    if (take_char(in, '-'))
        return '-';
    return read_escape(in);
}

/* A class of the ranges from `first` on. */
static struct mo_jregex_op *emit_class(struct reader *in, size_t first)
{
    struct mo_jregex_op *op = emit_op(in, CLASS);

    op->arg = (uint32_t)first;
    op->y = (int16_t)(in->r->nranges - first);
    return op;
}

/* Parse a class, after '['. */
static void read_class(struct reader *in)
{
    bool opposite = take_char(in, '^'), set, set2;
    size_t first = in->r->nranges;

    while (!in->bad && !take_char(in, ']')) {
        uint32_t lo = class_atom(in, &set), hi;

        if (set)
            continue;
        hi = lo;
        if (peek(in, 0) == '-' && peek(in, 1) != ']') {
            in->at++;
            hi = class_atom(in, &set2);
            if (set2)
                refuse(in);
        }
        if (!in->bad)
            add_range(in, lo, hi);
    }
    emit_class(in, first)->opposite = opposite;
}

static void read_alternatives(struct reader *in);

/* Parse a group, after '('. */
static void read_group(struct reader *in)
{
    if (take_char(in, '?') && !take_char(in, ':')) {
        if (!take_char(in, '<') || peek(in, 0) == '=' || peek(in, 0) == '!') {
            refuse(in);
            return;
        }
        while (!in->bad && !take_char(in, '>')) {
            if (in->at >= in->n)
                refuse(in);
            else
                in->at++;
        }
    }
    if (++in->nest > MO_JREGEX_NEST_MAX) {
        refuse(in);
        return;
    }
    read_alternatives(in);
    in->nest--;
    if (!take_char(in, ')'))
        refuse(in);
}

/* Parse an escape outside a class, after the backslash. */
static void read_atom_escape(struct reader *in)
{
    size_t first = in->r->nranges;
    uint32_t c = peek(in, 0);

    if (c == 'b' || c == 'B') {
        in->at++;
        emit_op(in, WORD_EDGE)->opposite = c == 'B';
        return;
    }
    if (!add_set(in, c)) {
        c = read_escape(in);
        emit_op(in, CHAR)->arg = c;
        return;
    }
    in->at++;
    emit_class(in, first);
}

static void read_atom(struct reader *in)
{
    uint32_t c = peek(in, 0);

    in->at++;
    switch (c) {
    case '^':
        emit_op(in, BEGIN);
        return;
    case '$':
        emit_op(in, END);
        return;
    case '.':
        emit_op(in, ANY);
        return;
    case '[':
        read_class(in);
        return;
    case '(':
        read_group(in);
        return;
    case '\\':
        read_atom_escape(in);
        return;
    case '*':
    case '+':
    case '?':
        refuse(in);
        return;
    default:
        emit_op(in, CHAR)->arg = c;
    }
}

static bool read_number(struct reader *in, int *out)
{
    size_t from = in->at;

    *out = 0;
    while (peek(in, 0) >= '0' && peek(in, 0) <= '9') {
        *out = *out * 10 + (int)(peek(in, 0) - '0');
        if (*out > REPEAT_MAX)
            refuse(in);
        else
            in->at++;
    }
    return in->at > from;
}

/* {n}, {n,}, {n,m}; a brace that is none of these is a plain character. */
static bool read_braces(struct reader *in, int *min, int *max)
{
    size_t from = in->at;

    in->at++;
    if (!read_number(in, min)) {
        in->at = in->bad ? in->n : from;
        return false;
    }
    *max = *min;
    if (take_char(in, ',') && !read_number(in, max))
        *max = NO_END;
    if (!take_char(in, '}')) {
        in->at = in->bad ? in->n : from;
        return false;
    }
    if (*max != NO_END && *max < *min)
        refuse(in);
    return true;
}

static bool read_count(struct reader *in, int *min, int *max)
{
    static const struct {
        char c;
        int min, max;
    } signs[] = {{'*', 0, NO_END}, {'+', 1, NO_END}, {'?', 0, 1}};

    for (size_t i = 0; i < MO_COUNT(signs); i++) {
        if (!take_char(in, (uint32_t)signs[i].c))
            continue;
        *min = signs[i].min;
        *max = signs[i].max;
        return true;
    }
    return peek(in, 0) == '{' && read_braces(in, min, max);
}

/* Append another copy of the piece. */
static void append_copy(struct reader *in, const struct mo_jregex_op *piece,
                        size_t n)
{
    for (size_t i = 0; i < n && !in->bad; i++) {
        struct mo_jregex_op op = piece[i];

        *emit_op(in, op.what) = op;
    }
}

/* Make the piece of n ops at `from` optional, or a loop. */
static void wrap(struct reader *in, size_t from, bool loop)
{
    size_t n = in->r->nops - from;
    struct mo_jregex_op split = {.what = SPLIT, .x = 1};

    split.y = (int16_t)(n + (loop ? 2 : 1));
    push_front(in, from, split);
    if (loop)
        emit_op(in, JUMP)->x = (int16_t) - (int)(n + 1);
}

/* x{2,4} is x x (x)? (x)?, x{2,} is x x (x)*. A zero minimum makes the first
 * copy itself optional, a zero maximum removes it. */
static void repeat(struct reader *in, size_t from, int min, int max)
{
    struct mo_jregex *r = in->r;
    size_t n = r->nops - from;
    struct mo_jregex_op *piece = r->ops + from;
    int extra;

    if (max == 0) {
        r->nops = from;
        return;
    }
    for (int i = 1; i < min && !in->bad; i++)
        append_copy(in, piece, n);
    extra = max == NO_END ? 1 : max - min;
    for (int i = 0; i < extra && !in->bad; i++) {
        size_t at = r->nops;

        if (min == 0 && i == 0) {
            at = from;
        } else {
            /* the first copy may now follow its own SPLIT */
            append_copy(in, piece + (min == 0 ? 1 : 0), n);
        }
        if (!in->bad)
            wrap(in, at, max == NO_END);
    }
}

static void read_sequence(struct reader *in)
{
    while (!in->bad && in->at < in->n) {
        size_t from = in->r->nops;
        int min, max;

        if (peek(in, 0) == '|' || peek(in, 0) == ')')
            return;
        read_atom(in);
        if (in->bad || !read_count(in, &min, &max))
            continue;
        take_char(in, '?'); /* lazy or greedy: the answer is the same */
        if (!in->bad)
            repeat(in, from, min, max);
    }
}

/* a|b|c: SPLIT a JUMP(end) SPLIT b JUMP(end) c, built from the right: each new
 * branch first jumps over the code that follows it. */
static void read_alternatives(struct reader *in)
{
    size_t from = in->r->nops;

    read_sequence(in);
    while (!in->bad && take_char(in, '|')) {
        size_t left = in->r->nops - from, jump;
        struct mo_jregex_op split = {.what = SPLIT, .x = 1};

        split.y = (int16_t)(left + 2);
        push_front(in, from, split);
        jump = in->r->nops;
        emit_op(in, JUMP);
        read_sequence(in);
        if (!in->bad)
            in->r->ops[jump].x = (int16_t)(in->r->nops - jump);
    }
}

int mo_jregex_compile(struct mo_jregex *r, struct mo_json pattern)
{
    struct reader in = {.r = r};
    struct mo_jchars c;
    uint32_t cp;

    r->nops = 0;
    r->nranges = 0;
    mo_jchars(&c, pattern);
    while (mo_jchars_next(&c, &cp)) {
        if (in.n == MO_JREGEX_CHARS_MAX)
            return MO_EINVAL;
        r->text[in.n++] = cp;
    }
    read_alternatives(&in);
    if (in.at < in.n)
        refuse(&in); /* an unmatched ')' */
    emit_op(&in, MATCH);
    return in.bad ? MO_EINVAL : 0;
}
