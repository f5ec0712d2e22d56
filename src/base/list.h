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

/* mo_list_each (it, head) visits the nodes; mo_list_each (x, head, T, member)
 * visits the T that contain them, by the member that is their node. */
#define mo_list_each(it, ...)                                                  \
    MO_LIST_BY_ARGS(__VA_ARGS__, each_of, 0, each_node, 0)(it, __VA_ARGS__)

/* The same; the body may remove (and free) the current node, but no other. */
#define mo_list_each_safe(it, ...)                                             \
    MO_LIST_BY_ARGS(__VA_ARGS__, safe_of, 0, safe_node, 0)(it, __VA_ARGS__)

#define MO_LIST_BY_ARGS(a, b, c, name, ...) mo_list_##name

#define mo_list_each_node(it, head)                                            \
    for (struct mo_list *it = (head)->next; it != (head); it = it->next)

#define mo_list_safe_node(it, head)                                            \
    for (struct mo_list *it = (head)->next, *it##_next = it->next;             \
         it != (head); it = it##_next, it##_next = it->next)

#define mo_list_each_of(x, head, T, member)                                    \
    for (T *x = mo_container_of((head)->next, T, member);                      \
         &x->member != (head); x = mo_container_of(x->member.next, T, member))

#define mo_list_safe_of(x, head, T, member)                                    \
    for (T *x = mo_container_of((head)->next, T, member),                      \
           *x##_next = mo_container_of(x->member.next, T, member);             \
         &x->member != (head);                                                 \
         x = x##_next, x##_next = mo_container_of(x->member.next, T, member))

/* The same over the structs that hold the nodes:
 *     for (mo_list_of(struct post, p, &s->posts, node))
 *         use(p); */
#define mo_list_of(T, x, head, member)                                         \
    T *x = mo_container_of((head)->next, T, member);                           \
    mo_list_node(x, T, member) != (head);                                      \
    x = mo_container_of(mo_list_node(x, T, member)->next, T, member)

#define mo_list_of_safe(T, x, head, member)                                    \
    T *x = mo_container_of((head)->next, T, member),                           \
      *x##_next = mo_container_of((head)->next->next, T, member);              \
    mo_list_node(x, T, member) != (head);                                      \
    x = x##_next,                                                              \
    x##_next = mo_container_of(mo_list_node(x, T, member)->next, T, member)

/* Not &x->member: at the end of a loop x is no struct. */
#define mo_list_node(x, T, member)                                             \
    ((struct mo_list *)((uintptr_t)(x) + offsetof(T, member)))

#endif
