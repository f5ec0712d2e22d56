/* wall_clock.c - preloaded into a server under test: its wall clock is off by
 * the seconds in the file WALL_CLOCK (8 bytes, in this machine's order), which
 * the test may change at any time. The monotonic clock stays. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
    const char *path = getenv("WALL_CLOCK");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *p = MAP_FAILED;

    if (fd >= 0) {
        p = mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, fd, 0);
        close(fd);
    }
    if (p == MAP_FAILED) {
        perror("WALL_CLOCK");
        abort();
    }
    offset = p;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);

    if (rc == 0 && offset &&
        (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
        t->tv_sec += __atomic_load_n(offset, __ATOMIC_RELAXED);
    return rc;
}
