/* mo_test.h - cmocka, and checks that name the failing row. */
#ifndef MO_TEST_H
#define MO_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "base/str.h"

/* Like assert_true, but says which row of a table failed. */
#define check_row(name, cond)                                                  \
    do {                                                                       \
        if (!(cond))                                                           \
            fail_msg("row '%s': %s", (name), #cond);                           \
    } while (0)

/* Run body once to count its allocations, then once for each of them with that
 * one failing, then once more with it and all later ones failing. The body must
 * leave nothing behind (ASan's leak check verifies it) and must cope with any
 * failure. */
static inline void torture(void (*body)(void *ctx), void *ctx)
{
    uint64_t n;

    mo_mem_fail_at(0, false);
    body(ctx);
    n = mo_mem_count();
    for (uint64_t i = 1; i <= n; i++) {
        mo_mem_fail_at(i, false);
        body(ctx);
        mo_mem_fail_at(i, true);
        body(ctx);
    }
    mo_mem_fail_at(0, false);
}

/* Skips a test that would not end under an emulator of programs (qemu-user),
 * which is known by a system call that it lacks. */
static inline void skip_if_emulated(const char *why)
{
    void *head;
    size_t size;

    if (syscall(SYS_get_robust_list, 0, &head, &size) == 0)
        return;
    print_message("an emulator: %s\n", why);
    skip();
}

#endif
