/* leaks.c - the end of every unit test: what was allocated has been freed.
 *
 * LeakSanitizer says more, but takes seconds a program on some machines:
 * scripts/test asks it there only when this has found something. A program
 * without our allocator (the toolbox) has nothing to count. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

extern int64_t mo_mem_live(void) __attribute__((weak));

__attribute__((destructor)) static void at_end(void)
{
    int64_t live = mo_mem_live ? mo_mem_live() : 0;

    if (live <= 0)
        return;
    (void)fprintf(stderr, "%lld pieces of memory were not freed\n",
                  (long long)live);
    _exit(1);
}
