#include "launcher/kernel_file.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"

int mo_kernel_file_write(int dir, const char *name, const char *text)
{
    mo_autofd int fd = openat(dir, name, O_WRONLY | O_CLOEXEC);
    size_t n = strlen(text);

    if (fd < 0)
        return -1;
    return write(fd, text, n) == (ssize_t)n ? 0 : -1;
}

int mo_kernel_file_read(int dir, const char *name, char *out, size_t size)
{
    mo_autofd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
    size_t n = 0;
    ssize_t got = fd < 0 ? -1 : 1;

    while (got > 0 && n + 1 < size) {
        got = read(fd, out + n, size - 1 - n);
        n += got > 0 ? (size_t)got : 0;
    }
    out[n] = '\0';
    return got < 0 ? -1 : 0;
}

void mo_sleep_ms(unsigned ms)
{
    struct timespec t = {.tv_sec = ms / 1000,
                         .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

uint64_t mo_kernel_file_key(struct mo_span text, const char *key)
{
    struct mo_span want = mo_span_cstr(key), line;
    uint64_t v = 0;

    while (text.p) {
        line = mo_span_cut(&text, '\n');
        if (!mo_span_starts(line, want))
            continue;
        line = mo_span_skip(line, want.n);
        if (want.n && (line.n == 0 || line.p[0] != ' '))
            continue;
        if (mo_span_u64(mo_span_trim(line), &v) == 0)
            return v;
    }
    return 0;
}
