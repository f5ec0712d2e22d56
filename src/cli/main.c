/* main.c - the door. Everything behind it is in cli.h; the guardian of child
 * processes is this same program under another name (guard.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/cli.h"
#include "loop/guard.h"

#define LEAKED 23 /* the status LeakSanitizer ends with */

/* Whoever started us may have closed some of these. The next file we open
 * would then get the number and have our messages written into it. What
 * stands in for standard output cannot be written to: a command whose answer
 * goes nowhere must still fail. */
static void fill_std_fds(void)
{
    static const int how[] = {O_RDONLY, O_RDONLY, O_RDWR};

    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how[fd]) != fd)
            _exit(MO_EXIT_FAIL);
    }
}

/* A core would have every secret that is in memory, ours and (the limit is
 * inherited) our children's. 1 instead of 0: only that also keeps the kernel
 * from feeding one to a program (core(5)). */
static void leave_no_core(void)
{
    struct rlimit r;

    if (getenv("MCP_ORCHESTRATOR_CORE") || getrlimit(RLIMIT_CORE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max ? 1 : 0;
    (void)setrlimit(RLIMIT_CORE, &r);
}

/* Only the tests' build counts (mem.h): there, what was not freed is an error
 * whatever the command itself came to. */
static int all_freed(int status)
{
    int64_t live = mo_mem_live();

    if (live <= 0)
        return status;
    (void)fprintf(stderr, "%lld pieces of memory were not freed\n",
                  (long long)live);
    return LEAKED;
}

int main(int argc, char **argv)
{
    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    fill_std_fds();
    leave_no_core();
    return all_freed(mo_cli_main(argc, argv, environ));
}
