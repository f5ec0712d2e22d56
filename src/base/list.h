/* list.h - intrusive doubly linked list; no allocation, O(1) removal.
 *
 * The head is a node; an empty list's head points at itself. A node that is in
 * no list also points at itself (mo_list_init), so mo_list_del() may be called
 * twice. */
#ifndef MO_BASE_LIST_H
#define MO_BASE_LIST_H

#include <stdbool.h>

#include "base/mem.h"

struct mo_list {
    struct mo_list *next, *prev;
};

static inline void mo_list_init(struct mo_list *l)
{
    l->next = l;
    l->prev = l;
}

static inline bool mo_list_empty(const struct mo_list *l)
{
    return l->next == l;
}

static inline void mo_list_push(struct mo_list *head, struct mo_list *n)
{
    n->prev = head->prev;
    n->next = head;
    head->prev->next = n;
    head->prev = n;
}

static inline void mo_list_del(struct mo_list *n)
{
    n->prev->next = n->next;
    n->next->prev = n->prev;
    mo_list_init(n);
}

static inline struct mo_list *mo_list_shift(struct mo_list *head)
{
    struct mo_list *n = head->next;

    mo_list_del(n);
    return n;
}

/* Move everything from src (left empty) to the end of dst. */
static inline void mo_list_splice(struct mo_list *dst, struct mo_list *src)
{
    if (mo_list_empty(src))
        return;
    src->next->prev = dst->prev;
    dst->prev->next = src->next;
    src->prev->next = dst;
    dst->prev = src->prev;
    mo_list_init(src);
}

#define mo_list_first(head, T, member)                                         \
    (mo_list_empty(head) ? NULL : mo_container_of((head)->next, T, member))

/* Remove the first element and return it; NULL: the list is empty. */
#define mo_list_pop(head, T, member)                                           \
    (mo_list_empty(head) ? NULL                                                \
                         : mo_container_of(mo_list_shift(head), T, member))

/* Remove the elements one by one, until the list is empty:
 * mo_list_drain (x, &list, struct item, node) { free_item(x); } */
#define mo_list_drain(it, head, T, member)                                     \
    for (T *it = mo_list_pop(head, T, member); it;                             \
         it = mo_list_pop(head, T, member))

#define mo_list_each(it, head)                                                 \
    for (struct mo_list *it = (head)->next; it != (head); it = it->next)

/* The body may remove (and free) the current node, but no other. */
#define mo_list_each_safe(it, head)                                            \
    for (struct mo_list *it = (head)->next, *it##_next = it->next;             \
         it != (head); it = it##_next, it##_next = it->next)

/* The same over the structs that hold the nodes: x is a T *. */
#define mo_list_each_entry(x, head, T, member)                                 \
    for (T *x = mo_list_entry((head)->next, head, T, member); x;               \
         x = mo_list_entry(x->member.next, head, T, member))

#define mo_list_each_entry_safe(x, head, T, member)                            \
    for (T *x = mo_list_entry((head)->next, head, T, member),                  \
           *x##_next = mo_list_after(x, head, T, member);                      \
         x; x = x##_next, x##_next = mo_list_after(x, head, T, member))

/* The struct of a node, and the one behind it; NULL at the end. */
#define mo_list_entry(at, head, T, member)                                     \
    ((at) != (head) ? mo_container_of(at, T, member) : NULL)
#define mo_list_after(x, head, T, member)                                      \
    (x ? mo_list_entry(x->member.next, head, T, member) : NULL)

#endif
