/* floor_stdio.c - the least an answer on a line can cost: what came is written
 * back. No framing, no JSON, no care for slow readers. */
#include <unistd.h>

#define READ_BUF 65536

int main(void)
{
    static char buf[READ_BUF];

    for (;;) {
        ssize_t n = read(STDIN_FILENO, buf, sizeof(buf));

        if (n <= 0 || write(STDOUT_FILENO, buf, (size_t)n) != n)
            return n != 0;
    }
}
