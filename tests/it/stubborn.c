/* stubborn.c - a program that does not want to go.
 *
 *   stubborn [depth]
 *
 * It ignores EOF and every signal that can be ignored, and so do the `depth`
 * generations below it, all in one process group. Each prints its pid as a
 * line, when it is as stubborn as it will be. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void ignore_all(void)
{
    for (int sig = 1; sig < 32; sig++)
        (void)signal(sig, SIG_IGN);
}

/* One write() per line: generations share the pipe. */
static void tell_pid(void)
{
    char line[32];
    int n = snprintf(line, sizeof(line), "%d\n", (int)getpid());

    if (write(1, line, (size_t)n) != n)
        _exit(1);
}

int main(int argc, char **argv)
{
    long depth = argc > 1 ? strtol(argv[1], NULL, 10) : 0;

    ignore_all();
    while (depth-- > 0) {
        if (fork() > 0)
            break;
    }
    tell_pid();
    while (pause() < 0)
        ;
    return 0;
}
