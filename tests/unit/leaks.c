/* leaks.c - the end of every unit test, and of the programs the other tests
 * drive: what was allocated has been freed.
 *
 * LeakSanitizer says more, but takes seconds a program on some machines:
 * scripts/test asks it there only when this has found something. A program
 * without our allocator (the toolbox) has nothing to count. */
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

extern int64_t mo_mem_live(void) __attribute__((weak));
extern int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

__attribute__((destructor)) static void at_end(void)
{
    int64_t live = mo_mem_live ? mo_mem_live() : 0;

    if (live <= 0)
        return;
    (void)fprintf(stderr, "%lld pieces of memory were not freed\n",
                  (long long)live);
    if (__lsan_do_recoverable_leak_check) /* says where, if it is on */
        (void)__lsan_do_recoverable_leak_check();
    _exit(1);
}
