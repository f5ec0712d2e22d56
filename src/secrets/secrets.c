/* secrets.c - reads, writes and encrypts the file of secrets; see secrets.h. */
#include "secrets/secrets.h"

#include <sodium.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/rand.h"
#include "config/reference.h"
#include "loop/dso.h"

#define NONCE_BYTES crypto_aead_xchacha20poly1305_ietf_NPUBBYTES
#define TAG_BYTES   crypto_aead_xchacha20poly1305_ietf_ABYTES
#define MAC_BYTES   crypto_generichash_BYTES
#define MAGIC       "MOSECRET"
#define VERSION     1
#define ID_BYTES    8
#define HEAD_BYTES  ((size_t)24)
#define FIXED_BYTES ((size_t)(8 + 4 + NONCE_BYTES + TAG_BYTES))
#define NAME_AD_MAX (MO_SECRET_NAME_MAX + 8)

/* The library is loaded on the first use of a secret (loop/dso.h): linking it
 * would slow down every start, and most runs use no secret. */
/* clang-format off */
#define SODIUM_FUNCTIONS(X)                                                    \
    X(sodium_init) X(crypto_generichash)                                       \
    X(crypto_aead_xchacha20poly1305_ietf_encrypt)                              \
    X(crypto_aead_xchacha20poly1305_ietf_decrypt)
/* clang-format on */

struct sodium {
    SODIUM_FUNCTIONS(MO_DSO_MEMBER)
};

struct keys {
    unsigned char value[MAC_BYTES];
    unsigned char mac[MAC_BYTES];
    unsigned char id[MAC_BYTES];
    unsigned char seal[MAC_BYTES];
};

struct entry {
    struct mo_span record; /* the whole entry, in the image */
    struct mo_span name, sealed;
    const unsigned char *nonce;
    uint64_t set_ms;
};

struct mo_secrets {
    struct sodium lib;
    char *path;
    struct keys *keys;   /* a page of its own */
    struct mo_buf image; /* content of the file; empty: no file */
    struct entry *v;
    size_t n;
};

bool mo_secret_name_ok(struct mo_span name)
{
    return mo_reference_is_name(name, MO_SECRET_NAME_MAX);
}

const char *mo_secret_value_wrong(struct mo_span value)
{
    if (value.n == 0)
        return "is empty";
    if (value.n > MO_SECRET_MAX)
        return "is longer than 64 KiB";
    if (memchr(value.p, '\0', value.n))
        return "has a NUL character in it, which no variable can hold";
    return NULL;
}

/* --- libsodium ------------------------------------------------------------ */

_Static_assert(NONCE_BYTES == 24 && TAG_BYTES == 16 && MAC_BYTES == 32,
               "sizes in the file");
_Static_assert(MAC_BYTES == crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
               "a MAC is the key of the values");

static const unsigned char *span_bytes(struct mo_span s)
{
    return (const unsigned char *)(s.p ? s.p : "");
}

/* MO_EUNAVAIL: the library is not installed; the message names the package. */
static int load_sodium(struct sodium *f, struct mo_err *e)
{
#define ROW(fn) MO_DSO_SYM(struct sodium, fn),
    static const struct mo_dso_sym syms[] = {SODIUM_FUNCTIONS(ROW)};
#undef ROW
    int rc = mo_dso_load("libsodium.so.23", "libsodium23", syms, MO_COUNT(syms),
                         f, e);

    if (rc == 0 && f->sodium_init() < 0)
        rc = mo_fail(e, MO_EUNAVAIL, "libsodium cannot be initialised");
    return rc;
}

/* Keyed BLAKE2b. */
static void put_mac(const struct mo_secrets *s,
                    const unsigned char key[MAC_BYTES], struct mo_span text,
                    unsigned char out[MAC_BYTES])
{
    int rc = s->lib.crypto_generichash(out, MAC_BYTES, span_bytes(text), text.n,
                                       key, MAC_BYTES);

    MO_BUG_ON(rc != 0); /* it fails only on bad lengths */
}

/* --- numbers ------------------------------------------------------------- */

static void put_le(struct mo_buf *b, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        mo_buf_putc(b, (char)(v >> (8 * i) & 0xff));
}

/* Cuts a number off the front of *s; the caller has checked the length. */
static uint64_t take_le(struct mo_span *s, size_t bytes)
{
    uint64_t v = 0;

    for (size_t i = 0; i < bytes; i++)
        v |= (uint64_t)(unsigned char)s->p[i] << (8 * i);
    *s = mo_span_skip(*s, bytes);
    return v;
}

/* --- keys ---------------------------------------------------------------- */

static int make_keys(struct mo_secrets *s, const unsigned char *key,
                     struct mo_err *e)
{
    void *page = mmap(NULL, sizeof(struct keys), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        return mo_fail(e, MO_ENOMEM, "secrets");
    (void)mlock(page, sizeof(struct keys)); /* if the limits permit it */
    (void)madvise(page, sizeof(struct keys), MADV_DONTDUMP);
    s->keys = page;
    put_mac(s, key, MO_SPAN("mo secrets: values"), s->keys->value);
    put_mac(s, key, MO_SPAN("mo secrets: file"), s->keys->mac);
    put_mac(s, key, MO_SPAN("mo secrets: id"), s->keys->id);
    put_mac(s, key, MO_SPAN("mo secrets: sealed files"), s->keys->seal);
    return 0;
}

static void drop_keys(struct mo_secrets *s)
{
    if (!s->keys)
        return;
    explicit_bzero(s->keys, sizeof(struct keys));
    (void)munmap(s->keys, sizeof(struct keys));
    s->keys = NULL;
}

/* The associated data of a value: its name and date. */
static struct mo_span associated_data(struct mo_span name, uint64_t set_ms,
                                      char out[NAME_AD_MAX])
{
    memcpy(out, name.p, name.n);
    for (size_t i = 0; i < 8; i++)
        out[name.n + i] = (char)(set_ms >> (8 * i) & 0xff);
    return mo_span(out, name.n + 8);
}

/* --- reading ------------------------------------------------------------- */

static int fail_damaged(const struct mo_secrets *s, const char *how,
                        struct mo_err *e)
{
    return mo_fail(e, MO_EPROTO,
                   "the secrets are damaged (%s): restore %s from a backup, or "
                   "remove it and set them again",
                   how, s->path);
}

/* Cuts one entry off the front of *rest. */
static bool read_entry(struct mo_span *rest, struct entry *en)
{
    struct mo_span from = *rest;
    size_t name, value;

    if (rest->n < 1)
        return false;
    name = (size_t)take_le(rest, 1);
    if (name == 0 || name > MO_SECRET_NAME_MAX || rest->n < name + FIXED_BYTES)
        return false;
    en->name = mo_span_take(rest, name);
    en->set_ms = take_le(rest, 8);
    value = (size_t)take_le(rest, 4);
    en->nonce = (const unsigned char *)mo_span_take(rest, NONCE_BYTES).p;
    if (value > MO_SECRET_MAX || rest->n < value + TAG_BYTES)
        return false;
    en->sealed = mo_span_take(rest, value + TAG_BYTES);
    en->record = mo_span(from.p, from.n - rest->n);
    return true;
}

static int read_entries(struct mo_secrets *s, struct mo_span rest, size_t n,
                        struct mo_err *e)
{
    struct entry *v = n ? mo_zalloc(n * sizeof(*v)) : NULL;

    if (n && !v)
        return mo_fail(e, MO_ENOMEM, "secrets");
    s->v = v;
    for (s->n = 0; s->n < n; s->n++) {
        if (!read_entry(&rest, &v[s->n]))
            return fail_damaged(s, "an entry is incomplete", e);
    }
    return rest.n ? fail_damaged(s, "there are bytes after the last entry", e)
                  : 0;
}

/* Whose file it is, by its first bytes. */
static int read_head(const struct mo_secrets *s, struct mo_span text,
                     size_t *entries, struct mo_err *e)
{
    struct mo_span at = text;
    uint64_t version;

    if (!mo_span_starts(text, mo_span_head(MO_SPAN(MAGIC), text.n)) ||
        text.n == 0)
        return mo_fail(e, MO_EPROTO,
                       "%s is no file of secrets: move it away, and set the "
                       "secrets again",
                       s->path);
    if (text.n < HEAD_BYTES + MAC_BYTES)
        return fail_damaged(s, "it was cut off", e);
    (void)mo_span_take(&at, sizeof(MAGIC) - 1);
    version = take_le(&at, 4);
    *entries = (size_t)take_le(&at, 4);
    if (version != VERSION)
        return mo_fail(e, MO_EPROTO,
                       "%s has version %u, and this program knows %d: use the "
                       "program that wrote it, or restore a backup",
                       s->path, (unsigned)version, VERSION);
    if (!mo_span_eq_ct(mo_span_take(&at, ID_BYTES),
                       mo_span((const char *)s->keys->id, ID_BYTES)))
        return mo_fail(e, MO_EPOLICY,
                       "%s was written with another key: bring that key back "
                       "(secrets.key), or remove the file and set the secrets "
                       "again",
                       s->path);
    return *entries > MO_SECRETS_MAX ? fail_damaged(s, "it was changed", e) : 0;
}

static int read_image(struct mo_secrets *s, struct mo_err *e)
{
    struct mo_span text = mo_buf_view(&s->image);
    unsigned char mac[MAC_BYTES];
    struct mo_span body;
    size_t entries = 0;
    int rc = read_head(s, text, &entries, e);

    if (rc < 0)
        return rc;
    body = mo_span_head(text, text.n - MAC_BYTES);
    put_mac(s, s->keys->mac, body, mac);
    if (!mo_span_eq_ct(mo_span_skip(text, body.n),
                       mo_span((const char *)mac, sizeof(mac))))
        return fail_damaged(s, "it was cut off or changed", e);
    return read_entries(s, mo_span_skip(body, HEAD_BYTES), entries, e);
}

static void clear_entries(struct mo_secrets *s)
{
    mo_free(s->v);
    s->v = NULL;
    s->n = 0;
    mo_buf_reset(&s->image);
}

/* Reads the current file. */
static int load_file(struct mo_secrets *s, struct mo_err *e)
{
    struct mo_file_stamp stamp;
    int rc;

    clear_entries(s);
    rc = mo_file_read(s->path, MO_SECRETS_FILE_MAX, &s->image, &stamp, e);
    if (rc == MO_ENOTFOUND) {
        mo_err_clear(e);
        return 0;
    }
    if (rc == 0 && (stamp.mode & 0077))
        rc = mo_fail(e, MO_EPOLICY,
                     "%s must be readable by nobody else: chmod 600 it, and "
                     "replace the secrets in it, as others may know them",
                     s->path);
    if (rc == 0)
        rc = read_image(s, e);
    if (rc < 0)
        clear_entries(s);
    return rc;
}

/* --- writing ------------------------------------------------------------- */

static void put_entry(const struct mo_secrets *s, struct mo_span name,
                      struct mo_span value, struct mo_buf *b)
{
    unsigned char nonce[NONCE_BYTES];
    uint64_t now = mo_wall_ms();
    char ad[NAME_AD_MAX];
    struct mo_span bound = associated_data(name, now, ad);
    char *room;
    int rc;

    mo_random(nonce, sizeof(nonce));
    put_le(b, name.n, 1);
    mo_buf_span(b, name);
    put_le(b, now, 8);
    put_le(b, value.n, 4);
    mo_buf_put(b, nonce, sizeof(nonce));
    room = mo_buf_room(b, value.n + TAG_BYTES);
    if (!room)
        return;
    rc = s->lib.crypto_aead_xchacha20poly1305_ietf_encrypt(
        (unsigned char *)room, NULL, span_bytes(value), value.n,
        span_bytes(bound), bound.n, NULL, nonce, s->keys->value);
    MO_BUG_ON(rc != 0);
    mo_buf_add(b, value.n + TAG_BYTES);
}

static int compare_names(struct mo_span a, struct mo_span b)
{
    int d = memcmp(a.p, b.p, a.n < b.n ? a.n : b.n);

    return d ? d : (a.n > b.n) - (a.n < b.n);
}

/* Writes the file with `name` set to value, or without it (value.p NULL). */
static int compose_file(const struct mo_secrets *s, struct mo_span name,
                        struct mo_span value, struct mo_buf *b)
{
    bool had = mo_secrets_has(s, name), done = !value.p;
    unsigned char mac[MAC_BYTES];

    mo_buf_puts(b, MAGIC);
    put_le(b, VERSION, 4);
    put_le(b, s->n - had + (value.p ? 1 : 0), 4);
    mo_buf_put(b, s->keys->id, ID_BYTES);
    for (size_t i = 0; i < s->n; i++) {
        int order = compare_names(s->v[i].name, name);

        if (!done && order >= 0) {
            put_entry(s, name, value, b);
            done = true;
        }
        if (order != 0)
            mo_buf_span(b, s->v[i].record);
    }
    if (!done)
        put_entry(s, name, value, b);
    put_mac(s, s->keys->mac, mo_buf_view(b), mac);
    return mo_buf_put(b, mac, sizeof(mac));
}

static int save_file(struct mo_secrets *s, struct mo_span name,
                     struct mo_span value, struct mo_err *e)
{
    mo_autobuf struct mo_buf b = {.max = MO_SECRETS_FILE_MAX};
    int rc = compose_file(s, name, value, &b);

    if (rc < 0)
        return mo_fail(e, rc, "secrets: out of memory");
    rc = mo_file_save(s->path, mo_buf_view(&b), 0600, e);
    return rc < 0 ? rc : load_file(s, e);
}

/* --- the store ----------------------------------------------------------- */

int mo_secrets_open(const char *path, const unsigned char key[MO_SECRETS_KEY],
                    struct mo_secrets **out, struct mo_err *e)
{
    struct mo_secrets *s = mo_new(struct mo_secrets);
    int rc;

    if (!s)
        return mo_fail(e, MO_ENOMEM, "secrets");
    mo_buf_init(&s->image, MO_SECRETS_FILE_MAX);
    s->path = mo_strndup(path, strlen(path));
    rc = s->path ? load_sodium(&s->lib, e) : mo_fail(e, MO_ENOMEM, "secrets");
    if (rc == 0)
        rc = make_keys(s, key, e);
    if (rc == 0)
        rc = load_file(s, e);
    if (rc < 0) {
        mo_secrets_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void mo_secrets_close(struct mo_secrets *s)
{
    if (!s)
        return;
    drop_keys(s);
    mo_free(s->v);
    mo_buf_fini(&s->image);
    mo_free(s->path);
    mo_free(s);
}

size_t mo_secrets_count(const struct mo_secrets *s)
{
    return s ? s->n : 0;
}

struct mo_secret_info mo_secrets_at(const struct mo_secrets *s, size_t i)
{
    return (struct mo_secret_info){s->v[i].name, s->v[i].set_ms};
}

static const struct entry *find_entry(const struct mo_secrets *s,
                                      struct mo_span name)
{
    for (size_t i = 0; s && i < s->n; i++) {
        if (mo_span_eq(s->v[i].name, name))
            return &s->v[i];
    }
    return NULL;
}

bool mo_secrets_has(const struct mo_secrets *s, struct mo_span name)
{
    return find_entry(s, name) != NULL;
}

int mo_secrets_get(const struct mo_secrets *s, struct mo_span name,
                   struct mo_buf *out, struct mo_err *e)
{
    const struct entry *en = find_entry(s, name);
    char ad[NAME_AD_MAX];
    struct mo_span bound;
    char *room;

    if (!en)
        return mo_fail(e, MO_ENOTFOUND,
                       "${secret:%.*s} has no value; set it: mcp-orchestrator "
                       "secrets set %.*s",
                       (int)name.n, name.p, (int)name.n, name.p);
    room = mo_buf_room(out, en->sealed.n);
    if (!room)
        return mo_fail(e, mo_buf_err(out),
                       "the value of ${secret:%.*s} is too long", (int)name.n,
                       name.p);
    bound = associated_data(en->name, en->set_ms, ad);
    if (s->lib.crypto_aead_xchacha20poly1305_ietf_decrypt(
            (unsigned char *)room, NULL, NULL, span_bytes(en->sealed),
            en->sealed.n, span_bytes(bound), bound.n, en->nonce,
            s->keys->value) != 0)
        return fail_damaged(s, "a value was changed", e);
    mo_buf_add(out, en->sealed.n - TAG_BYTES);
    return 0;
}

int mo_secrets_put(struct mo_secrets *s, struct mo_span name,
                   struct mo_span value, struct mo_err *e)
{
    const char *wrong = mo_secret_value_wrong(value);
    mo_autofd int lock = -1;
    int rc;

    if (!mo_secret_name_ok(name))
        return mo_fail(e, MO_EINVAL,
                       "a secret's name has 1 to %zu letters, digits, '_', "
                       "'-' and '.'",
                       MO_SECRET_NAME_MAX);
    if (wrong)
        return mo_fail(e, MO_EINVAL, "the value %s", wrong);
    lock = mo_file_lock(s->path, MO_SECRETS_LOCK_MS, e);
    if (lock < 0)
        return lock;
    rc = load_file(s, e);
    if (rc == 0 && s->n >= MO_SECRETS_MAX && !mo_secrets_has(s, name))
        rc = mo_fail(e, MO_ETOOBIG,
                     "there are already %d secrets; remove one first",
                     MO_SECRETS_MAX);
    return rc < 0 ? rc : save_file(s, name, value, e);
}

int mo_secrets_drop(struct mo_secrets *s, struct mo_span name, struct mo_err *e)
{
    mo_autofd int lock = mo_file_lock(s->path, MO_SECRETS_LOCK_MS, e);
    int rc;

    if (lock < 0)
        return lock;
    rc = load_file(s, e);
    if (rc == 0 && !mo_secrets_has(s, name))
        rc = mo_fail(e, MO_ENOTFOUND, "there is no secret '%.*s'",
                     (int)mo_span_head(name, 80).n, name.p);
    return rc < 0 ? rc : save_file(s, name, mo_span(NULL, 0), e);
}

/* --- sealed bytes of other files ------------------------------------------ */

#define SEAL_MAGIC "MOSEAL1\n"
#define SEAL_HEAD  (sizeof(SEAL_MAGIC) - 1 + ID_BYTES + NONCE_BYTES)

int mo_secrets_seal(const struct mo_secrets *s, struct mo_span bound,
                    struct mo_span plain, struct mo_buf *out)
{
    unsigned char nonce[NONCE_BYTES];
    char *room;
    int rc;

    mo_random(nonce, sizeof(nonce));
    mo_buf_puts(out, SEAL_MAGIC);
    mo_buf_put(out, s->keys->id, ID_BYTES);
    mo_buf_put(out, nonce, sizeof(nonce));
    room = mo_buf_room(out, plain.n + TAG_BYTES);
    if (!room)
        return mo_buf_err(out);
    rc = s->lib.crypto_aead_xchacha20poly1305_ietf_encrypt(
        (unsigned char *)room, NULL, span_bytes(plain), plain.n,
        span_bytes(bound), bound.n, NULL, nonce, s->keys->seal);
    MO_BUG_ON(rc != 0);
    mo_buf_add(out, plain.n + TAG_BYTES);
    return mo_buf_err(out);
}

int mo_secrets_unseal(const struct mo_secrets *s, struct mo_span bound,
                      struct mo_span sealed, struct mo_buf *out,
                      struct mo_err *e)
{
    struct mo_span at = sealed, id, nonce;
    char *room;

    if (sealed.n < SEAL_HEAD + TAG_BYTES ||
        !mo_span_starts(sealed, MO_SPAN(SEAL_MAGIC)))
        return mo_fail(e, MO_EPROTO, "not a sealed file");
    (void)mo_span_take(&at, sizeof(SEAL_MAGIC) - 1);
    id = mo_span_take(&at, ID_BYTES);
    nonce = mo_span_take(&at, NONCE_BYTES);
    if (!mo_span_eq_ct(id, mo_span((const char *)s->keys->id, ID_BYTES)))
        return mo_fail(e, MO_EPOLICY, "sealed with another key (secrets.key)");
    room = mo_buf_room(out, at.n);
    if (!room)
        return mo_fail(e, mo_buf_err(out), "sealed file");
    if (s->lib.crypto_aead_xchacha20poly1305_ietf_decrypt(
            (unsigned char *)room, NULL, NULL, span_bytes(at), at.n,
            span_bytes(bound), bound.n, span_bytes(nonce), s->keys->seal) != 0)
        return mo_fail(e, MO_EPROTO, "the sealed bytes were changed");
    mo_buf_add(out, at.n - TAG_BYTES);
    return 0;
}
