/* swap - let two names change places in one step, again and again, until
 * stdin ends; then print how often.
 *
 *   swap A B */
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXCHANGE  2u /* RENAME_EXCHANGE */
#define AT_A_TIME 256

int main(int argc, char **argv)
{
    struct pollfd end = {.fd = 0, .events = POLLIN};
    unsigned long count = 0;

    if (argc != 3)
        return 2;
    while (poll(&end, 1, 0) == 0) {
        for (int i = 0; i < AT_A_TIME; i++, count++) {
            if (syscall(SYS_renameat2, AT_FDCWD, argv[1], AT_FDCWD, argv[2],
                        EXCHANGE) < 0) {
                perror("renameat2");
                return 1;
            }
        }
    }
    return printf("%lu\n", count) < 0;
}
