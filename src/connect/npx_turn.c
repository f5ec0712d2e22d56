#include "connect/npx_turn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "codec/sha256.h"

/* --- the command ---------------------------------------------------------- */

/* Number of words before the options; 0: it is no npx. */
static size_t command_words(const char *command, const char *const *args,
                            size_t n)
{
    const char *slash = strrchr(command, '/');
    const char *name = slash ? slash + 1 : command;

    if (strcmp(name, "npx") == 0)
        return 1;
    return strcmp(name, "npm") == 0 && n &&
                   (strcmp(args[0], "exec") == 0 || strcmp(args[0], "x") == 0)
               ? 2
               : 0;
}

static void put_package(struct mo_span package, struct mo_buf *out)
{
    mo_buf_span(out, package);
    mo_buf_putc(out, '\n');
}

bool mo_npx_turn_packages(const char *command, const char *const *args,
                          size_t n, struct mo_buf *out)
{
    size_t words = command_words(command, args, n);

    for (size_t i = words ? words - 1 : n; i < n; i++) {
        struct mo_span word = mo_span_cstr(args[i]);

        if (mo_span_strip(&word, MO_SPAN("--package="))) {
            put_package(word, out);
        } else if (mo_span_is(word, "-p") || mo_span_is(word, "--package")) {
            if (++i < n)
                put_package(mo_span_cstr(args[i]), out);
        } else if (!mo_span_starts(word, MO_SPAN("-"))) {
            if (out->len == 0) /* else it is a command of a package */
                put_package(word, out);
            break;
        }
    }
    return out->len > 0 && mo_buf_err(out) == 0;
}

/* --- the file ------------------------------------------------------------- */

static int open_lock(const char *state_dir, struct mo_span packages)
{
    char sum[MO_SHA256_HEX + 1], path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/" MO_NPX_TURN_DIR, state_dir);

    if (n < 0 || (size_t)n + MO_SHA256_HEX + 2 > sizeof(path) ||
        mo_file_mkdir(path, NULL) < 0)
        return -1;
    mo_sha256_hex(packages, sum);
    (void)snprintf(path + n, sizeof(path) - (size_t)n, "/%s", sum);
    return open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
}

int mo_npx_turn_take(const char *state_dir, struct mo_span packages, int *fd)
{
    mo_autofd int own = open_lock(state_dir, packages);

    *fd = 0;
    if (own > 0 && flock(own, LOCK_EX | LOCK_NB) == 0) {
        *fd = mo_take_fd(&own);
        return 0;
    }
    return own > 0 && errno == EWOULDBLOCK ? MO_EBUSY : 0;
}
