#include "base/log_line.h"

#include <stdio.h>

void mo_log_line_tail(struct mo_log_line *l, const char *s)
{
    size_t n = strlen(s);

    MO_BUG_ON(n > sizeof(l->p) - l->n);
    memcpy(l->p + l->n, s, n);
    l->n += n;
}

void mo_log_line_u64(struct mo_log_line *l, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    mo_log_line_put(l, digits + at, sizeof(digits) - at);
}

static void line_hex(struct mo_log_line *l, uint32_t cp)
{
    char esc[8];

    (void)snprintf(esc, sizeof(esc), "\\u%04x", (unsigned)cp & 0xffff);
    mo_log_line_puts(l, esc);
}

/* Length of the UTF-8 character at s (n > 0 bytes left), 0 if invalid. */
static size_t utf8_at(const char *s, size_t n, uint32_t *cp)
{
    static const struct {
        unsigned char mask, lead;
        uint32_t least;
    } kinds[] = {{0x80, 0x00, 0},
                 {0xe0, 0xc0, 0x80},
                 {0xf0, 0xe0, 0x800},
                 {0xf8, 0xf0, 0x10000}};
    unsigned char c = (unsigned char)s[0];

    for (size_t k = 0; k < MO_COUNT(kinds) && k < n; k++) {
        if ((c & kinds[k].mask) != kinds[k].lead)
            continue;
        *cp = c & (unsigned char)~kinds[k].mask;
        for (size_t i = 1; i <= k; i++) {
            if ((s[i] & 0xc0) != 0x80)
                return 0;
            *cp = *cp << 6 | (s[i] & 0x3f);
        }
        if (*cp < kinds[k].least || *cp > 0x10ffff || *cp >> 11 == 0x1b)
            return 0;
        return k + 1;
    }
    return 0;
}

/* Characters that move the cursor, end a line or change the writing direction.
 * Peer text must not send them to a terminal. */
static bool commands_terminal(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) ||
           (cp >= 0x2028 && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Length of the beginning of s that is written as it is. */
static size_t plain_run(const char *s, size_t n)
{
    size_t i = 0;

    while (i < n && s[i] >= 0x20 && s[i] < 0x7f && s[i] != '"' && s[i] != '\\')
        i++;
    return i;
}

/* Write one character of text, escaped as \uXXXX if it is a control character
 * or invalid UTF-8; in JSON also escape quote and backslash. Returns the number
 * of bytes consumed. */
static size_t line_char(struct mo_log_line *l, const char *s, size_t n,
                        bool json)
{
    uint32_t cp = 0;
    size_t len = utf8_at(s, n, &cp);

    if (!len) {
        line_hex(l, 0xfffd);
        return 1;
    }
    if (commands_terminal(cp)) {
        line_hex(l, cp);
        return len;
    }
    if (json && (cp == '"' || cp == '\\')) {
        const char esc[2] = {'\\', (char)cp};

        mo_log_line_put(l, esc, 2);
        return 1;
    }
    mo_log_line_put(l, s, len);
    return len;
}

/* --- texts and the secrets in them --------------------------------------- */

/* Mark the beginning of a secret at the end of a text that was cut there. */
static bool hide_cut_secret(struct mo_span t, struct mo_span secret,
                            bool *hidden)
{
    for (size_t k = secret.n < t.n ? secret.n : t.n; k; k--) {
        if (memcmp(t.p + t.n - k, secret.p, k) == 0) {
            memset(hidden + t.n - k, true, k);
            return true;
        }
    }
    return false;
}

/* A secret anywhere in t covers a multiple of the step with one of its first
 * grams, so looking there is enough, however many secrets there are. */
bool mo_log_may_hold_secret(const struct mo_log *l, struct mo_span t)
{
    const size_t step = MO_LOG_SECRET_MIN - MO_LOG_GRAM + 1;

    for (size_t i = 0; i + MO_LOG_GRAM <= t.n; i += step) {
        unsigned bit = mo_log_gram_bit(t.p + i);

        if (__atomic_load_n(&l->secret_grams[bit / 8], __ATOMIC_RELAXED) >>
                bit % 8 &
            1)
            return true;
    }
    return false;
}

static bool mark_secrets(const struct mo_log *l, struct mo_span t, bool cut,
                         bool hidden[MO_LOG_TEXT_MAX])
{
    size_t count = __atomic_load_n(&l->nsecrets, __ATOMIC_ACQUIRE);
    bool any = false;

    for (size_t i = 0; i < count; i++) {
        struct mo_span secret =
            mo_span_cstr(__atomic_load_n(&l->secrets[i], __ATOMIC_SEQ_CST));
        const char *at = memmem(t.p, t.n, secret.p, secret.n);

        while (at) {
            size_t from = (size_t)(at - t.p) + 1;

            any = true;
            memset(hidden + from - 1, true, secret.n);
            at = memmem(t.p + from, t.n - from, secret.p, secret.n);
        }
        if (cut && hide_cut_secret(t, secret, hidden))
            any = true;
    }
    return any;
}

/* Set hidden[i] for every byte of t that belongs to a secret; cut: also to the
 * beginning of one at its end. Secrets may overlap: marking their bytes hides
 * all of them, which replacing one secret after the other would not. If no byte
 * is hidden, returns false. The count of readers keeps secrets that are
 * replaced meanwhile. */
static bool hide_secrets(const struct mo_log *l, struct mo_span t, bool cut,
                         bool hidden[MO_LOG_TEXT_MAX])
{
    unsigned *readers = (unsigned *)(uintptr_t)&l->readers;
    bool any;

    if (__atomic_load_n(&l->nsecrets, __ATOMIC_ACQUIRE) == 0 ||
        (!cut && !mo_log_may_hold_secret(l, t)))
        return false;
    memset(hidden, false, t.n);
    (void)__atomic_add_fetch(readers, 1, __ATOMIC_SEQ_CST);
    any = mark_secrets(l, t, cut, hidden);
    (void)__atomic_sub_fetch(readers, 1, __ATOMIC_SEQ_CST);
    return any;
}

void mo_log_line_text(struct mo_log_line *out, const struct mo_log *l,
                      struct mo_span t, bool cut)
{
    bool hidden[MO_LOG_TEXT_MAX] MO_UNINITIALIZED;
    bool any = hide_secrets(l, t, cut, hidden);
    size_t i = 0;

    while (i < t.n) {
        size_t run = any ? 0 : plain_run(t.p + i, t.n - i);

        if (run > 0) {
            mo_log_line_put(out, t.p + i, run);
            i += run;
        } else if (!any || !hidden[i]) {
            i += line_char(out, t.p + i, t.n - i, out->json);
        } else {
            mo_log_line_puts(out, "[secret]");
            while (i < t.n && hidden[i])
                i++;
        }
    }
}

void mo_log_line_message(struct mo_log_line *out, const struct mo_log *l,
                         const struct mo_log_message *m)
{
    mo_log_line_text(out, l, m->text, m->may_split);
    if (m->cut || out->full)
        mo_log_line_tail(out, "[cut]");
}

/* --- the subject --------------------------------------------------------- */

#define FACT_MAX ((size_t)200)

void mo_log_line_fact(struct mo_log_line *out, const struct mo_log *l,
                      struct mo_span key, struct mo_span v)
{
    size_t before = out->n;
    bool quoted = l->json || mo_span_find(v, ' ') >= 0;

    if (v.n == 0 || out->full)
        return;
    mo_log_line_put(out, key.p, key.n);
    if (quoted)
        mo_log_line_puts(out, "\"");
    mo_log_line_text(out, l, mo_span_head(v, FACT_MAX), v.n > FACT_MAX);
    if (quoted)
        mo_log_line_puts(out, "\"");
    if (out->full) { /* not half of it */
        out->n = before;
        out->full = false;
    }
}

static void line_number(struct mo_log_line *out, struct mo_span key, uint64_t v)
{
    if (v == 0)
        return;
    mo_log_line_put(out, key.p, key.n);
    mo_log_line_u64(out, v);
}

/* Milliseconds with three decimals. */
static void line_ms(struct mo_log_line *out, struct mo_span key, uint64_t ns)
{
    uint64_t us = ns / 1000;
    const char part[] = {'.', (char)('0' + us / 100 % 10),
                         (char)('0' + us / 10 % 10), (char)('0' + us % 10)};

    if (ns == 0)
        return;
    mo_log_line_put(out, key.p, key.n);
    mo_log_line_u64(out, us / 1000);
    mo_log_line_put(out, part, sizeof(part));
}

void mo_log_line_facts(struct mo_log_line *out, const struct mo_log *l,
                       const struct mo_log_facts *f)
{
    line_number(out, MO_LOG_KEY(l, "worker"), l->worker);
    line_number(out, MO_LOG_KEY(l, "request"), f->request);
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "session"),
                     mo_span_cstr(f->session));
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "turn"), mo_span_cstr(f->turn));
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "call"), f->call);
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "server"), f->server);
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "tool"), f->tool);
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "who"), mo_span_cstr(f->who));
    mo_log_line_fact(out, l, MO_LOG_KEY(l, "from"), mo_span_cstr(f->from));
    line_number(out, MO_LOG_KEY(l, "status"), f->status);
    line_ms(out, MO_LOG_KEY(l, "ms"), f->ns);
}
