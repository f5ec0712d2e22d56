#include "route/request.h"

#include "base/mem.h"
#include "route/synonyms.h"

#define VERB_WORDS    6 /* of a request, searched for a verb */
#define WORD_MAX      24
/* Words: a longer request says more about an address than that it is one; and
 * in a longer one related words would be lost. */
#define SHORT_WORDS   12
#define RELATED_WORDS 24
#define EXT_MAX       5 /* letters behind the dot of a file name */

/* The last words read, for phrases and for the word before a noun. */
struct window {
    char v[MO_SYNONYM_WORDS][WORD_MAX];
    size_t at[MO_SYNONYM_WORDS]; /* where they begin in the text */
    size_t n;                    /* words in all */
};

/* --- addresses and file names -------------------------------------------- */

static bool has_prefix(struct mo_span s, const char *prefix)
{
    size_t n = strlen(prefix);

    return s.n > n && mo_span_ieq(mo_span_head(s, n), mo_span(prefix, n));
}

/* The part behind the last dot; empty if there is none, or nothing before. */
static struct mo_span ending_of(struct mo_span s)
{
    size_t i = s.n;

    while (i > 0 && s.p[i - 1] != '.')
        i--;
    return i > 1 ? mo_span_skip(s, i) : mo_span(NULL, 0);
}

static bool is_host_ending(struct mo_span s)
{
    static const char *const known[] = {"com", "org", "net", "io",
                                        "dev", "edu", "gov", "app"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_span_ieq(s, mo_span_cstr(known[i])))
            return true;
    return false;
}

static bool is_address(struct mo_span w)
{
    return has_prefix(w, "http://") || has_prefix(w, "https://") ||
           has_prefix(w, "www.") ||
           (is_host_ending(ending_of(w)) && !memchr(w.p, '@', w.n));
}

/* notes.txt, main.c, /etc/hosts.conf; not 3.5, e.g or Node.js at the end of
 * a sentence alone: the ending has letters, and what is before it too. */
static bool is_file_name(struct mo_span w)
{
    struct mo_span ending = ending_of(w);
    bool letter = false;

    if (ending.n == 0 || ending.n > EXT_MAX || memchr(w.p, '@', w.n))
        return false;
    for (size_t i = 0; i < ending.n; i++) {
        if (!mo_is_alpha(ending.p[i]) && !mo_is_digit(ending.p[i]))
            return false;
        if (ending.p[i] >= 'A' && ending.p[i] <= 'Z')
            return false;
        letter = letter || mo_is_alpha(ending.p[i]);
    }
    return letter && w.n > ending.n + 1 && !(w.p[0] >= 'A' && w.p[0] <= 'Z');
}

bool mo_request_is_address_param(struct mo_span name)
{
    static const char *const known[] = {"url", "urls", "uri", "link",
                                        "website"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_span_ieq(name, mo_span_cstr(known[i])))
            return true;
    return false;
}

bool mo_request_is_file_param(struct mo_span name)
{
    static const char *const known[] = {
        "path", "paths", "file", "files", "filename", "filepath", "source"};

    for (size_t i = 0; i < MO_COUNT(known); i++)
        if (mo_span_ieq(name, mo_span_cstr(known[i])))
            return true;
    return false;
}

/* --- words --------------------------------------------------------------- */

static void put_text(struct mo_request *q, struct mo_span s)
{
    if (q->n + s.n + 1 >= sizeof(q->text))
        return;
    if (q->n)
        q->text[q->n++] = ' ';
    memcpy(q->text + q->n, s.p, s.n);
    q->n += s.n;
}

static void put_more(struct mo_request *q, const char *words)
{
    size_t n = strlen(words);

    if (q->nmore + n + 1 >= sizeof(q->more))
        return;
    if (q->nmore)
        q->more[q->nmore++] = ' ';
    memcpy(q->more + q->nmore, words, n);
    q->nmore += n;
}

/* The word without punctuation around it. */
static struct mo_span bare_word(struct mo_span w)
{
    static const char around[] = "\"'()[]{}<>,;:!?.`*";

    while (w.n && strchr(around, w.p[w.n - 1]))
        w.n--;
    while (w.n && strchr(around, w.p[0]) && w.p[0] != '.')
        w = mo_span_skip(w, 1);
    return w;
}

static void remember_word(struct window *k, struct mo_span w, size_t at)
{
    char *to = k->v[k->n % MO_SYNONYM_WORDS];
    size_t n = w.n < WORD_MAX - 1 ? w.n : 0; /* a long word is in no phrase */

    for (size_t i = 0; i < n; i++)
        to[i] = mo_lower(w.p[i]);
    to[n] = '\0';
    k->at[k->n++ % MO_SYNONYM_WORDS] = at;
}

/* The last `n` words as a phrase. */
static struct mo_span phrase_of(const struct window *k, size_t n, char *out)
{
    size_t at = 0;

    for (size_t i = k->n - n; i < k->n; i++) {
        const char *w = k->v[i % MO_SYNONYM_WORDS];
        size_t len = strlen(w);

        if (at)
            out[at++] = ' ';
        memcpy(out + at, w, len);
        at += len;
    }
    return mo_span(out, at);
}

static void add_related(struct mo_request *q, const struct window *k)
{
    char phrase[MO_SYNONYM_WORDS * WORD_MAX];

    for (size_t n = 1; n <= MO_SYNONYM_WORDS && n <= k->n; n++) {
        const char *related = mo_synonyms(phrase_of(k, n, phrase));

        if (related && related[0] == '=') {
            q->n = k->at[(k->n - n) % MO_SYNONYM_WORDS];
            related++;
            put_text(q, mo_span(related, strcspn(related, " ")));
        }
        if (related)
            put_more(q, related);
    }
}

static void read_word(struct mo_request *q, struct window *k, struct mo_span w,
                      bool is_short)
{
    struct mo_span bare = bare_word(w);

    if (is_address(bare) && is_short) {
        q->address = true;
    } else if (is_file_name(bare) && is_short) {
        q->file = true;
    } else {
        size_t at = q->n;

        put_text(q, w);
        if (bare.n && q->words <= RELATED_WORDS) {
            remember_word(k, bare, at);
            add_related(q, k);
        }
    }
}

static bool is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static struct mo_span next_word(struct mo_span *rest)
{
    size_t n = 0;

    while (rest->n && is_blank(rest->p[0]))
        *rest = mo_span_skip(*rest, 1);
    while (n < rest->n && !is_blank(rest->p[n]))
        n++;
    return mo_span_take(rest, n);
}

void mo_request_read(struct mo_span request, struct mo_request *out)
{
    struct window k = {.n = 0};
    struct mo_span rest = request;

    *out = (struct mo_request){.n = 0};
    while (next_word(&rest).n)
        out->words++;
    while (request.n) {
        struct mo_span w = next_word(&request);

        if (w.n)
            read_word(out, &k, w, out->words <= SHORT_WORDS);
    }
    out->verbs =
        mo_verbs_asked(mo_span(out->text, out->n), VERB_WORDS, out->address);
    if (out->address)
        put_more(out, out->verbs.kinds & MO_VERB_VISIT ? "url page navigate"
                                                       : "url page");
    if (out->file)
        put_more(out, "file");
}
