/* system.c - systemd credentials and the kernel keyring; see system.h. */
#include "secrets/system.h"

#include <linux/keyctl.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "secrets/secrets.h"

/* --- systemd ------------------------------------------------------------- */

/* False: there is no credentials directory, or the name is not allowed. */
static bool credential_path(const struct mo_config *c, struct mo_span name,
                            char out[PATH_MAX])
{
    const char *dir = mo_config_getenv(c, "CREDENTIALS_DIRECTORY");
    int n;

    if (!dir || dir[0] != '/' || !mo_secret_name_ok(name) || name.p[0] == '.')
        return false;
    n = snprintf(out, PATH_MAX, "%s/%.*s", dir, (int)name.n, name.p);
    return n > 0 && n < PATH_MAX;
}

static int read_credential(const struct mo_config *c, struct mo_span name,
                           struct mo_buf *out, struct mo_err *e)
{
    char path[PATH_MAX];
    mo_autowipe struct mo_buf text = {.max = MO_SECRET_MAX + 1};
    struct mo_span v;
    int rc;

    if (!credential_path(c, name, path) || access(path, F_OK) < 0)
        return MO_ENOTFOUND;
    (void)mo_buf_room(&text, MO_SECRET_MAX + 1); /* no growth: no copy */
    rc = mo_file_read(path, MO_SECRET_MAX + 1, &text, NULL, e);
    v = mo_buf_view(&text);
    if (mo_span_ends(v, MO_SPAN("\n")))
        v.n--;
    return rc < 0 ? rc : mo_buf_span(out, v);
}

/* --- the kernel's keyring ------------------------------------------------ */

/* Searches the session's keyring, then the user's. */
static long find_key(const char *name)
{
    long id = syscall(SYS_request_key, "user", name, NULL, 0);

    if (id < 0)
        id = syscall(SYS_keyctl, KEYCTL_SEARCH, KEY_SPEC_USER_KEYRING, "user",
                     name, 0);
    return id;
}

long mo_keyring_read(const char *name, char *out, size_t n)
{
    long id = find_key(name);

    return id < 0 ? -1 : syscall(SYS_keyctl, KEYCTL_READ, id, out, n, 0);
}

static bool key_name(struct mo_span name, char out[MO_SECRET_NAME_MAX + 32])
{
    if (!mo_secret_name_ok(name))
        return false;
    (void)snprintf(out, MO_SECRET_NAME_MAX + 32, MO_KEYRING_PREFIX "%.*s",
                   (int)name.n, name.p);
    return true;
}

static int read_keyring(struct mo_span name, struct mo_buf *out,
                        struct mo_err *e)
{
    char key[MO_SECRET_NAME_MAX + 32];
    long n = key_name(name, key) ? mo_keyring_read(key, NULL, 0) : -1;
    char *room;

    if (n < 0)
        return MO_ENOTFOUND;
    if ((size_t)n > MO_SECRET_MAX)
        return mo_fail(e, MO_ETOOBIG, "%s in the keyring is too long", key);
    room = mo_buf_room(out, (size_t)n + 1);
    if (!room)
        return mo_buf_err(out);
    if (mo_keyring_read(key, room, (size_t)n + 1) != n)
        return mo_fail(e, MO_EBUSY, "%s in the keyring is being changed", key);
    mo_buf_add(out, (size_t)n);
    return 0;
}

/* --- both stores --------------------------------------------------------- */

int mo_secret_system_get(const struct mo_config *c, struct mo_span name,
                         struct mo_buf *out, struct mo_err *e)
{
    size_t from = out->len;
    int rc = read_credential(c, name, out, e);
    const char *wrong;

    if (rc == MO_ENOTFOUND)
        rc = read_keyring(name, out, e);
    if (rc < 0)
        return rc;
    wrong = mo_secret_value_wrong(mo_span(out->p + from, out->len - from));
    if (wrong)
        return mo_fail(e, MO_EINVAL, "${secret:%.*s} of the system's store %s",
                       (int)name.n, name.p, wrong);
    return 0;
}

const char *mo_secret_system_has(const struct mo_config *c, struct mo_span name)
{
    char key[MO_SECRET_NAME_MAX + 32], path[PATH_MAX];

    if (credential_path(c, name, path) && access(path, R_OK) == 0)
        return "systemd";
    if (key_name(name, key) && mo_keyring_read(key, NULL, 0) >= 0)
        return "keyring";
    return NULL;
}
