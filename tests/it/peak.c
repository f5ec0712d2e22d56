/*
 * peak - run a program and write down the most memory it ever had resident.
 *
 *   peak FILE PROGRAM ARG...
 *
 * The kernel says so when the program is waited for, so that even one that
 * ends at once is measured, which looking into /proc from outside misses.
 * FILE gets KiB in decimal. Our exit status is the program's own.
 */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int note(const char *file, long kib)
{
    FILE *f = fopen(file, "w");

    if (f == NULL)
        return -1;
    fprintf(f, "%ld\n", kib);
    return fclose(f);
}

int main(int argc, char **argv)
{
    struct rusage used;
    int status = 0;
    pid_t child;

    if (argc < 3)
        return 125;
    child = fork();
    if (child == 0) {
        execv(argv[2], argv + 2);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child)
        return 125;
    if (note(argv[1], used.ru_maxrss) != 0)
        return 125;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
