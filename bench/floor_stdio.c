/* floor_stdio.c - the least an answer on a line can cost a program that waits
 * for more than one thing: epoll, and what came is written back. No framing,
 * no JSON, no care for slow readers. With the argument `read` it waits in
 * read() and could hear of nothing else. */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "meter.h"

#define READ_BUF 65536

static int wait_for(int fd)
{
    struct epoll_event ev = {.events = EPOLLIN};
    int ep = epoll_create1(EPOLL_CLOEXEC);

    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    if (ep < 0 || epoll_ctl(ep, EPOLL_CTL_ADD, fd, &ev) < 0)
        meter_die("epoll");
    return ep;
}

int main(int argc, char **argv)
{
    static char buf[READ_BUF];
    struct epoll_event ev;
    int ep = argc > 1 ? -1 : wait_for(STDIN_FILENO);

    (void)argv;
    for (;;) {
        ssize_t n;

        if (ep >= 0)
            (void)epoll_wait(ep, &ev, 1, -1);
        n = read(STDIN_FILENO, buf, sizeof(buf));
        if (n <= 0 || write(STDOUT_FILENO, buf, (size_t)n) != n)
            return n != 0;
    }
}
