/* main.c - the door. Everything behind it is in cli.h; the guardian of child
 * processes is this same program under another name (guard.h). */
#include <fcntl.h>
#include <unistd.h>

#include "app/cli.h"
#include "loop/guard.h"

/* Whoever started us may have closed some of these. The next file we open
 * would then get the number and have our messages written into it. */
static void fill_std_fds(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
            _exit(MO_EXIT_FAIL);
    }
}

int main(int argc, char **argv)
{
    if (mo_guard_wanted(argc, argv))
        mo_guard_main();
    fill_std_fds();
    return mo_cli_main(argc, argv, environ);
}
