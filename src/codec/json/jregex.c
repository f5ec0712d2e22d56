#include "codec/json/jregex_priv.h"

/* Every op is in a state set at most once (mark[] holds the round in which it
 * was added): a round costs at most nops, and an empty loop ends. */

#define NOTHING UINT32_MAX /* before the first or after the last character */

struct run {
    struct mo_jregex *r;
    uint32_t before, after; /* the characters around this position */
    uint32_t round;
    uint16_t *set;
    size_t n;
    bool found;
};

static bool holds(const struct run *m, const struct mo_jregex_op *op)
{
    if (op->what == BEGIN)
        return m->before == NOTHING;
    if (op->what == END)
        return m->after == NOTHING;
    return (mo_jregex_is_word(m->before) != mo_jregex_is_word(m->after)) !=
           op->opposite;
}

static void visit(struct run *m, size_t *depth, size_t op)
{
    if (m->r->mark[op] == m->round)
        return;
    m->r->mark[op] = m->round;
    m->r->stack[(*depth)++] = (uint16_t)op;
}

/* Add the op and all ops reachable from it without a character. */
static void add_state(struct run *m, size_t from)
{
    size_t depth = 0;

    visit(m, &depth, from);
    while (depth > 0) {
        size_t at = m->r->stack[--depth];
        const struct mo_jregex_op *op = &m->r->ops[at];

        switch (op->what) {
        case MATCH:
            m->found = true;
            break;
        case SPLIT:
            visit(m, &depth, at + (size_t)op->y);
            visit(m, &depth, at + (size_t)op->x);
            break;
        case JUMP:
            visit(m, &depth, (size_t)((ptrdiff_t)at + op->x));
            break;
        case BEGIN:
        case END:
        case WORD_EDGE:
            if (holds(m, op))
                visit(m, &depth, at + 1);
            break;
        default:
            m->set[m->n++] = (uint16_t)at;
        }
    }
}

static bool in_class(const struct mo_jregex *r, const struct mo_jregex_op *op,
                     uint32_t c)
{
    for (size_t i = op->arg; i < op->arg + (size_t)op->y; i++) {
        if (c >= r->ranges[i].lo && c <= r->ranges[i].hi)
            return !op->opposite;
    }
    return op->opposite;
}

static bool eats(const struct mo_jregex *r, const struct mo_jregex_op *op,
                 uint32_t c)
{
    if (op->what == CHAR)
        return c == op->arg;
    if (op->what == CLASS)
        return in_class(r, op, c);
    return c != '\n' && c != '\r' && c != 0x2028 && c != 0x2029;
}

/* Advance over the current character; the next one is known. */
static void advance(struct run *m, uint32_t next)
{
    const uint16_t *old = m->set;
    uint32_t c = m->after;
    size_t n = m->n;

    m->set = m->set == m->r->set[0] ? m->r->set[1] : m->r->set[0];
    m->n = 0;
    m->round++;
    m->before = c;
    m->after = next;
    for (size_t i = 0; i < n && !m->found; i++) {
        if (eats(m->r, &m->r->ops[old[i]], c))
            add_state(m, old[i] + (size_t)1);
    }
}

int mo_jregex_search(struct mo_jregex *r, struct mo_json text, uint64_t *steps)
{
    struct run m = {.r = r, .before = NOTHING, .round = 1, .set = r->set[0]};
    bool anchored = r->ops[0].what == BEGIN;
    struct mo_jchars c;
    uint32_t next;

    memset(r->mark, 0, sizeof(r->mark));
    mo_jchars(&c, text);
    if (!mo_jchars_next(&c, &m.after))
        m.after = NOTHING;
    for (;;) {
        if (!anchored || m.before == NOTHING)
            add_state(&m, 0);
        if (m.found)
            return 1;
        if (m.after == NOTHING || (anchored && m.n == 0))
            return 0;
        if (*steps <= m.n)
            return MO_ETOOBIG;
        *steps -= m.n + 1;
        if (!mo_jchars_next(&c, &next))
            next = NOTHING;
        advance(&m, next);
        if (m.found)
            return 1;
    }
}
