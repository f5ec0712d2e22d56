/* mem.h - memory allocation; the only file that calls malloc.
 *
 * Most code takes memory from an arena (one per request, turn or session) and
 * frees it all at once. Objects with a lifetime of their own use mo_new() and
 * mo_free(). mo_auto* variables release their resource at the end of their
 * scope, unless mo_take_*() hands it on.
 *
 * Allocation failures are tested: mo_mem_fail_at(i) makes the i-th allocation
 * of this thread fail. Its counter is the only hidden state in base; it is
 * thread-local and does nothing unless armed. */
#ifndef MO_BASE_MEM_H
#define MO_BASE_MEM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

void *mo_alloc(size_t n);            /* uninitialised, NULL on failure */
void *mo_zalloc(size_t n);           /* zeroed */
void *mo_realloc(void *p, size_t n); /* p stays valid on failure */
void mo_free(void *p);
char *mo_strndup(const char *p, size_t n); /* NUL-terminated copy */

#define mo_new(T) ((T *)mo_zalloc(sizeof(T)))

/* Test hook: the i-th allocation from now (1-based) and, if sticky, every
 * later one fails; 0 disarms. mo_mem_count() counts since the last arming. */
void mo_mem_fail_at(uint64_t i, bool sticky);
uint64_t mo_mem_count(void);
/* Test hook: allocations not freed yet; -1 if this build does not count
 * them. */
int64_t mo_mem_live(void);

/* --- arena --------------------------------------------------------------- */

struct mo_arena_chunk;

struct mo_arena {
    struct mo_arena_chunk *head;
    size_t held; /* bytes taken from malloc */
    size_t cap;  /* held never goes above this */
};

void mo_arena_init(struct mo_arena *a, size_t cap);
void mo_arena_fini(struct mo_arena *a);
void mo_arena_reset(struct mo_arena *a); /* keeps the newest chunk */

/* NULL when the cap is reached or memory is exhausted. 16-byte aligned. */
void *mo_arena_alloc(struct mo_arena *a, size_t n);
void *mo_arena_zalloc(struct mo_arena *a, size_t n);
char *mo_arena_strndup(struct mo_arena *a, const char *p, size_t n);

#define mo_arena_new(a, T) ((T *)mo_arena_zalloc((a), sizeof(T)))

/* --- scope-bound ownership ----------------------------------------------- */

#define MO_CLEANUP(fn) __attribute__((cleanup(fn)))

void mo_close_fd(int *fd);  /* closes if >= 0, sets -1, keeps errno */
void mo_free_ptr(void *pp); /* pp is a T **; frees *pp */

#define mo_autofd    MO_CLEANUP(mo_close_fd)
#define mo_autofree  MO_CLEANUP(mo_free_ptr)
/* mo_autoarena struct mo_arena a = {.cap = 4096}; mo_autobuf is in str.h. */
#define mo_autoarena MO_CLEANUP(mo_arena_fini)

static inline int mo_take_fd(int *fd)
{
    int v = *fd;

    *fd = -1;
    return v;
}

#define mo_take_ptr(pp)                                                        \
    __extension__({                                                            \
        __typeof__(*(pp)) taken_ = *(pp);                                      \
        *(pp) = NULL;                                                          \
        taken_;                                                                \
    })

#define MO_COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* For a large local on a hot path: the compiler does not zero it first. */
#define MO_UNINITIALIZED __attribute__((uninitialized))

/* Casts through an integer so that a const pointer is accepted too. */
#define mo_container_of(ptr, T, member)                                        \
    ((T *)((uintptr_t)(ptr)-offsetof(T, member)))

#endif
