/* key.c - reads or creates the key of the secret store; see key.h. */
#include "secrets/key.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/rand.h"
#include "secrets/system.h"

#define KEY_TEXT_MAX ((size_t)256)
#define KEY_DIGITS   ((size_t)2 * MO_SECRETS_KEY)

struct key {
    unsigned char b[MO_SECRETS_KEY];
};

/* --- hex text ------------------------------------------------------------ */

static int parse_key(struct mo_span s, const char *where, struct key *k,
                     struct mo_err *e)
{
    if (mo_span_ends(s, MO_SPAN("\n")))
        s.n--;
    for (size_t i = 0; s.n == KEY_DIGITS && i < MO_SECRETS_KEY; i++) {
        int hi = mo_hex_digit(s.p[2 * i]), lo = mo_hex_digit(s.p[2 * i + 1]);

        if (hi < 0 || lo < 0)
            s.n = 0;
        else
            k->b[i] = (unsigned char)(hi << 4 | lo);
    }
    if (s.n == KEY_DIGITS)
        return 0;
    return mo_fail(e, MO_EINVAL,
                   "the key of the secrets in %s must be 64 hex digits "
                   "(`openssl rand -hex 32` makes one)",
                   where);
}

/* --- configured places --------------------------------------------------- */

static int read_env(const struct mo_config *c, const char *name, struct key *k,
                    struct mo_err *e)
{
    const char *v = mo_config_getenv(c, name);

    if (!v)
        return mo_fail(e, MO_EPOLICY,
                       "the key of the secrets is to be in the variable %s, "
                       "which is not set",
                       name);
    return parse_key(mo_span_cstr(v), name, k, e);
}

static int read_key_file(const char *path, struct key *k, struct mo_err *e)
{
    mo_autowipe struct mo_buf b = {.max = KEY_TEXT_MAX};
    struct mo_file_stamp stamp;
    int rc;

    /* no growth, which would leave a copy */
    (void)mo_buf_room(&b, KEY_TEXT_MAX);
    rc = mo_file_read(path, KEY_TEXT_MAX, &b, &stamp, e);
    if (rc == 0)
        rc = mo_file_trust(path, &stamp, true, e);
    return rc < 0 ? rc : parse_key(mo_buf_view(&b), path, k, e);
}

static int read_keyring(const char *name, struct key *k, struct mo_err *e)
{
    char text[KEY_TEXT_MAX];
    long n = mo_keyring_read(name, text, sizeof(text));
    int rc;

    if (n < 0 || (size_t)n > sizeof(text))
        return mo_fail(e, MO_EPOLICY,
                       "the kernel's keyring has no user key '%s' for us (%s): "
                       "keyctl add user %s \"$(openssl rand -hex 32)\" @u",
                       name, n < 0 ? strerror(errno) : "too long", name);
    rc = parse_key(mo_span(text, (size_t)n), name, k, e);
    explicit_bzero(text, sizeof(text));
    return rc;
}

static int read_place(const struct mo_config *c, const char *where,
                      struct key *k, struct mo_err *e)
{
    const char *what = strchr(where, ':') + 1; /* checked by the loader */
    int rc;

    if (where[0] == 'e')
        return read_env(c, what, k, e);
    if (where[0] == 'k')
        return read_keyring(what, k, e);
    rc = read_key_file(what, k, e);
    return rc == MO_ENOTFOUND ? mo_fail(e, MO_EPOLICY,
                                        "the key of the secrets is to be in "
                                        "%s, which is not there: `openssl rand "
                                        "-hex 32` makes one",
                                        what)
                              : rc;
}

/* --- the default file ---------------------------------------------------- */

static int create_key_file(const char *path, struct mo_err *e)
{
    char text[KEY_DIGITS + 1];
    struct key k;
    int rc;

    mo_random(&k, sizeof(k));
    mo_hex(k.b, MO_SECRETS_KEY, text);
    text[KEY_DIGITS] = '\n'; /* in place of the NUL */
    rc = mo_file_create(path, mo_span(text, sizeof(text)), e);
    explicit_bzero(text, sizeof(text));
    explicit_bzero(&k, sizeof(k));
    return rc;
}

static int join_path(char out[PATH_MAX], const char *dir, const char *name,
                     struct mo_err *e)
{
    int n = snprintf(out, PATH_MAX, "%s/%s", dir, name);

    return n > 0 && n < PATH_MAX
               ? 0
               : mo_fail(e, MO_ETOOBIG, "%s: path too long", dir);
}

static int read_default_file(const char *dir, bool make, struct key *k,
                             struct mo_err *e)
{
    char path[PATH_MAX];
    int rc = join_path(path, dir, MO_SECRET_KEY_FILE, e);

    if (rc == 0)
        rc = read_key_file(path, k, e);
    if (rc != MO_ENOTFOUND)
        return rc;
    if (!make)
        return mo_fail(e, MO_EPOLICY,
                       "the key of the secrets is gone (%s): bring it back, or "
                       "remove " MO_SECRETS_FILE
                       " beside it and set the secrets again",
                       path);
    rc = create_key_file(path, e);
    return rc < 0 ? rc : read_key_file(path, k, e);
}

static int find_key(const struct mo_config *c, bool make, struct key *k,
                    struct mo_err *e)
{
    if (c->secrets.key)
        return read_place(c, c->secrets.key, k, e);
    if (mo_config_getenv(c, MO_SECRET_KEY_ENV))
        return read_env(c, MO_SECRET_KEY_ENV, k, e);
    return read_default_file(c->store.dir, make, k, e);
}

int mo_secrets_for(const struct mo_config *c, bool make,
                   struct mo_secrets **out, struct mo_err *e)
{
    struct mo_file_stamp there;
    char path[PATH_MAX];
    struct key k;
    int rc = join_path(path, c->store.dir, MO_SECRETS_FILE, e);

    *out = NULL;
    if (rc < 0)
        return rc;
    mo_file_stamp(path, &there);
    if (!there.there && !make)
        return 0;
    if (make)
        rc = mo_file_mkdir(c->store.dir, e);
    if (rc == 0)
        rc = find_key(c, make && !there.there, &k, e);
    if (rc == 0)
        rc = mo_secrets_open(path, k.b, out, e);
    explicit_bzero(&k, sizeof(k));
    return rc;
}
