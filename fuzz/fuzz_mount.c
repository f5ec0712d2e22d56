/* A mount that was read is plain, and its text is read as the same. */
#include <stdlib.h>

#include "codec/mount.h"

static void expect(bool ok)
{
    if (!ok)
        abort();
}

static void check_plain(const char *path)
{
    size_t n = strlen(path);

    expect(path[0] == '/' && n > 1 && n <= MO_MOUNT_PATH_MAX);
    expect(path[n - 1] != '/' && !strchr(path, ':') && !strchr(path, '\n'));
    expect(!strstr(path, "//") && !strstr(path, "/./") &&
           !strstr(path, "/../"));
}

int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n)
{
    char text[MO_MOUNT_TEXT_MAX];
    struct mo_mount m, again;

    if (mo_mount_parse(mo_span((const char *)p, n), "/home/me", &m, NULL) < 0)
        return 0;
    check_plain(m.host);
    check_plain(m.box);
    expect(!mo_path_is_in(m.box, "/proc") && !mo_path_is_in(m.box, "/etc"));
    mo_mount_put(&m, text);
    expect(mo_mount_parse(mo_span_cstr(text), NULL, &again, NULL) == 0);
    expect(strcmp(m.host, again.host) == 0 && strcmp(m.box, again.box) == 0 &&
           m.rw == again.rw);
    return 0;
}
