/* mux_driver - takes apart an attach stream as a box's reader does.
 *
 * Reads the stream from the file argv[1], argv[2] bytes at a time, and hands
 * every piece on (to nobody). One JSON object on stdout: the bytes of each
 * stream, those that were read, and the refusal. As a box's reader it lets go
 * of the stream at the first refusal. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "codec/mux.h"

struct tally {
    uint64_t of[3]; /* by stream */
    uint64_t read;
};

static int take(struct mo_mux *m, struct mo_span in, struct tally *t,
                struct mo_err *e)
{
    enum mo_mux_stream stream;
    struct mo_span piece;
    int rc = mo_mux_next(m, &in, &stream, &piece, e);

    for (; rc == 1; rc = mo_mux_next(m, &in, &stream, &piece, e))
        t->of[stream] += piece.n;
    return rc;
}

int main(int argc, char **argv)
{
    static char bytes[65536];
    size_t step = argc > 2 ? strtoul(argv[2], NULL, 10) : sizeof(bytes);
    mo_autofd int fd = argc > 1 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
    struct tally t = {.read = 0};
    struct mo_err e = {0};
    struct mo_mux m;
    ssize_t n = 1;
    int rc = 0;

    if (fd < 0 || step == 0 || step > sizeof(bytes))
        return 2;
    mo_mux_init(&m);
    while (rc == 0 && n > 0) {
        n = read(fd, bytes, step);
        if (n <= 0)
            break;
        t.read += (uint64_t)n;
        rc = take(&m, mo_span(bytes, (size_t)n), &t, &e);
    }
    (void)printf("{\"stdout\":%llu,\"stderr\":%llu,\"read\":%llu,"
                 "\"edge\":%s,\"error\":\"%s\"}\n",
                 (unsigned long long)t.of[MO_MUX_STDOUT],
                 (unsigned long long)t.of[MO_MUX_STDERR],
                 (unsigned long long)t.read,
                 mo_mux_at_edge(&m) ? "true" : "false", e.msg);
    return rc < 0;
}
