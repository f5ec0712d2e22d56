/* branch.c - see branch.h. */
#include "agent/chat/branch.h"

#include "agent/chat/chat_priv.h"
#include "agent/chat/entries.h"

void mo_branches_fini(struct branches *b)
{
    mo_free(b->v);
    *b = (struct branches){.n = 0};
}

void mo_branches_reset(struct branches *b, uint64_t tip)
{
    b->n = 0;
    b->marks = 0;
    b->tip = tip;
}

/* Makes room for one more. */
static bool grow(struct branches *b)
{
    size_t cap = b->cap ? 2 * b->cap : 64;
    struct branch_node *v = NULL;

    if (b->n < b->cap)
        return true;
    if (b->cap >= BRANCH_NODES) {
        b->n /= 2;
        memmove(b->v, b->v + b->n, b->n * sizeof(*b->v));
        return true;
    }
    v = mo_realloc(b->v, cap * sizeof(*v));
    if (v == NULL)
        return false;
    b->v = v;
    b->cap = cap;
    return true;
}

void mo_branches_add(struct branches *b, uint64_t seq, bool mark, uint64_t to)
{
    if (mark) {
        b->tip = to;
        b->marks++;
        return;
    }
    if (grow(b))
        b->v[b->n++] = (struct branch_node){.seq = seq, .parent = b->tip};
    b->tip = seq;
}

struct branch_node *mo_branches_find(const struct branches *b, uint64_t seq)
{
    size_t low = 0, high = b->n;

    while (low < high) {
        size_t mid = low + (high - low) / 2;

        if (b->v[mid].seq < seq)
            low = mid + 1;
        else
            high = mid;
    }
    return low < b->n && b->v[low].seq == seq ? &b->v[low] : NULL;
}

void mo_branches_walk(struct branches *b, uint64_t tip)
{
    for (size_t i = b->n; i-- > 0;) {
        b->v[i].is_on = b->v[i].seq == tip;
        if (b->v[i].is_on)
            tip = b->v[i].parent;
    }
}

uint64_t mo_branches_newest(struct branches *b, uint64_t seq)
{
    uint64_t newest = seq;

    for (size_t i = 0; i < b->n; i++) {
        const struct branch_node *before = NULL;

        if (b->v[i].parent > 0)
            before = mo_branches_find(b, b->v[i].parent);
        b->v[i].is_on = b->v[i].seq == seq || (before && before->is_on);
        if (b->v[i].is_on)
            newest = b->v[i].seq;
    }
    return newest;
}

/* --- alternatives -------------------------------------------------------- */

static size_t count_children(const struct branches *b, uint64_t parent)
{
    size_t n = 0;

    for (size_t i = 0; i < b->n; i++)
        n += b->v[i].parent == parent;
    return n;
}

static void put_alternatives(const struct branches *b,
                             const struct branch_node *of, struct mo_jw *w)
{
    mo_jw_obj(w);
    mo_jw_member_u64(w, "seq", of->seq);
    mo_jw_member_arr(w, "of");
    for (size_t i = 0; i < b->n; i++)
        if (b->v[i].parent == of->parent)
            mo_jw_u64(w, b->v[i].seq);
    mo_jw_end(w);
    mo_jw_end(w);
}

void mo_branches_put(struct branches *b, struct mo_jw *w)
{
    mo_jw_arr(w);
    mo_branches_walk(b, b->tip);
    for (size_t i = 0; b->marks > 0 && i < b->n; i++)
        if (b->v[i].is_on && count_children(b, b->v[i].parent) > 1)
            put_alternatives(b, &b->v[i], w);
    mo_jw_end(w);
}

/* --- marks --------------------------------------------------------------- */

void mo_branch_mark(struct mo_buf *b, uint64_t to)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "role", MO_SPAN("branch"));
    mo_jw_member_u64(&w, "to", to);
    mo_jw_end(&w);
}

void mo_branch_cut(struct chat *c, uint64_t to)
{
    struct transcript *t = &c->transcript;

    mo_list_each_entry_safe (en, &t->list, struct entry, node)
        if (en->seq > to)
            mo_chat_entries_lost(c, en);
    mo_chat_entries_find_summary(c);
    mo_branches_add(&t->branches, 0, true, to);
}
