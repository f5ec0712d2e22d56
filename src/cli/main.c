/* main.c - main(). Commands are in cli.h; the guardian of child processes is
 * this program under another name (guard.h). */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/build.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "loop/guard.h"
#include "loop/standalone.h"

#define LEAKED 23 /* exit status of LeakSanitizer */

/* The parent may have closed some of these descriptors. The next opened file
 * would get the number and receive our messages. The replacement for standard
 * output is not writable: a command whose output goes nowhere must fail. */
static void fill_std_fds(void)
{
    static const int how[] = {O_RDONLY, O_RDONLY, O_RDWR};

    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", how[fd]) != fd)
            _exit(MO_EXIT_FAIL);
    }
}

/* A core file would contain every secret in memory, ours and (the limit is
 * inherited) those of our children. The limit is 1, not 0: only 1 also prevents
 * the kernel from piping a core to a program (core(5)). Other programs of our
 * user cannot trace us or read our memory and environment in /proc. */
static void keep_memory_private(void)
{
    struct rlimit r;

    if (getenv("MCP_ORCHESTRATOR_CORE") || getrlimit(RLIMIT_CORE, &r) < 0)
        return;
    r.rlim_cur = r.rlim_max ? 1 : 0;
    (void)setrlimit(RLIMIT_CORE, &r);
    (void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* Only the test build counts allocations (mem.h). There, a leak is an error
 * whatever the command returned. */
static int check_all_freed(int status)
{
    int64_t live = mo_mem_live();

    if (live <= 0)
        return status;
    (void)fprintf(stderr, "%lld allocations were not freed\n", (long long)live);
    return LEAKED;
}

int main(int argc, char **argv)
{
    int status;

    mo_standalone_init();
    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    fill_std_fds();
    keep_memory_private();
    status = check_all_freed(mo_cli_main(argc, argv, environ));
#ifdef MO_BUILD_SANITIZED /* LeakSanitizer traces us */
    (void)prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
#endif
    return status;
}
