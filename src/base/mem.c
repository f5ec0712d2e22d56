#include "base/mem.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/build.h"

#define CHUNK_MAX ((size_t)64 * 1024)
/* glibc caches freed blocks of up to about a kilobyte per thread and returns
 * them from malloc() without a lock, but not from calloc(). */
#define QUICK_MAX ((size_t)1024)
#define ALIGN     ((size_t)16)

/* Under AddressSanitizer the unused part of an arena is poisoned and a gap
 * follows every block, so an overrun is detected. */
#ifdef MO_BUILD_SANITIZED
#    include <sanitizer/asan_interface.h>
#    include <stdatomic.h>
#    define GAP ALIGN
#else
#    define GAP                               ((size_t)0)
#    define ASAN_POISON_MEMORY_REGION(p, n)   ((void)(p), (void)(n))
#    define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

static _Thread_local struct {
    uint64_t count, fail_at;
    bool sticky;
} inject;

static bool must_fail(void)
{
    inject.count++;
    if (!inject.fail_at)
        return false;
    return inject.count == inject.fail_at ||
           (inject.sticky && inject.count > inject.fail_at);
}

void mo_mem_fail_at(uint64_t i, bool sticky)
{
    inject.count = 0;
    inject.fail_at = i;
    inject.sticky = sticky;
}

uint64_t mo_mem_count(void)
{
    return inject.count;
}

/* Only test builds count: the counter is shared by all threads. */
#ifdef MO_BUILD_SANITIZED
static atomic_llong live;

static void count_live(int by)
{
    atomic_fetch_add_explicit(&live, by, memory_order_relaxed);
}

int64_t mo_mem_live(void)
{
    return atomic_load_explicit(&live, memory_order_relaxed);
}
#else
#    define count_live(by) ((void)(by))

int64_t mo_mem_live(void)
{
    return -1;
}
#endif

void *mo_alloc(size_t n)
{
    void *p = must_fail() ? NULL : malloc(n ? n : 1);

    count_live(p != NULL);
    return p;
}

/* Keeps gcc from merging malloc and memset into calloc(). The analyser would
 * lose track of the pointer. */
#ifdef __clang_analyzer__
#    define HIDE(p) ((void)(p))
#else
#    define HIDE(p) __asm__("" : "+r"(p))
#endif

void *mo_zalloc(size_t n)
{
    bool quick = n && n <= QUICK_MAX;
    void *p = NULL;

    if (!must_fail())
        p = quick ? malloc(n) : calloc(1, n ? n : 1);
    HIDE(p);
    if (p && quick)
        memset(p, 0, n);
    count_live(p != NULL);
    return p;
}

void *mo_realloc(void *p, size_t n)
{
    void *q = must_fail() ? NULL : realloc(p, n ? n : 1);

    count_live(!p && q);
    return q;
}

void mo_free(void *p)
{
    count_live(-(p != NULL));
    free(p);
}

/* Copy n bytes and a NUL to s, which may be NULL; returns s. */
static char *copy_text(char *s, const char *p, size_t n)
{
    if (!s)
        return NULL;
    if (n)
        memcpy(s, p, n);
    s[n] = '\0';
    return s;
}

char *mo_strndup(const char *p, size_t n)
{
    return copy_text(n < SIZE_MAX ? mo_alloc(n + 1) : NULL, p, n);
}

struct mo_arena_chunk {
    struct mo_arena_chunk *next;
    size_t size, used; /* of data[] */
    _Alignas(16) char data[];
};

#define CHUNK_MIN (QUICK_MAX - sizeof(struct mo_arena_chunk))

void mo_arena_init(struct mo_arena *a, size_t cap)
{
    a->head = NULL;
    a->held = 0;
    a->cap = cap;
}

static void free_chunks(struct mo_arena *a, struct mo_arena_chunk *c)
{
    while (c) {
        struct mo_arena_chunk *next = c->next;

        a->held -= sizeof(*c) + c->size;
        ASAN_UNPOISON_MEMORY_REGION(c->data, c->size);
        mo_free(c);
        c = next;
    }
}

void mo_arena_fini(struct mo_arena *a)
{
    free_chunks(a, a->head);
    a->head = NULL;
}

void mo_arena_reset(struct mo_arena *a)
{
    if (!a->head)
        return;
    free_chunks(a, a->head->next);
    a->head->next = NULL;
    a->head->used = 0;
    ASAN_POISON_MEMORY_REGION(a->head->data, a->head->size);
}

static struct mo_arena_chunk *add_chunk(struct mo_arena *a, size_t n)
{
    size_t want = a->head ? a->head->size * 2 : CHUNK_MIN;
    struct mo_arena_chunk *c;
    size_t room;

    if (want > CHUNK_MAX)
        want = CHUNK_MAX;
    if (want < n)
        want = n;
    room = a->cap > a->held + sizeof(*c) ? a->cap - a->held - sizeof(*c) : 0;
    if (n > room)
        return NULL;
    if (want > room)
        want = room & ~(ALIGN - 1);
    c = mo_alloc(sizeof(*c) + want);
    if (!c)
        return NULL;
    c->size = want;
    c->used = 0;
    c->next = a->head;
    a->head = c;
    a->held += sizeof(*c) + want;
    ASAN_POISON_MEMORY_REGION(c->data, c->size);
    return c;
}

void *mo_arena_alloc(struct mo_arena *a, size_t n)
{
    struct mo_arena_chunk *c = a->head;
    size_t take;
    void *p;

    if (n > SIZE_MAX / 2)
        return NULL;
    take = n ? (n + ALIGN - 1) & ~(ALIGN - 1) : ALIGN;
    take += GAP;
    if (!c || c->size - c->used < take)
        c = add_chunk(a, take);
    if (!c)
        return NULL;
    p = c->data + c->used;
    c->used += take;
    ASAN_UNPOISON_MEMORY_REGION(p, n);
    return p;
}

void *mo_arena_zalloc(struct mo_arena *a, size_t n)
{
    void *p = mo_arena_alloc(a, n);

    if (p)
        memset(p, 0, n);
    return p;
}

char *mo_arena_strndup(struct mo_arena *a, const char *p, size_t n)
{
    return copy_text(n < SIZE_MAX ? mo_arena_alloc(a, n + 1) : NULL, p, n);
}

void mo_close_fd(int *fd)
{
    int keep = errno;

    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
    errno = keep;
}

void mo_free_ptr(void *pp)
{
    void *p;

    memcpy(&p, pp, sizeof(p));
    mo_free(p);
}
