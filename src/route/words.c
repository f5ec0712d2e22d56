#include "route/words.h"

#include <limits.h>

#include "base/mem.h"
#include "codec/text/utf8.h"
#include "route/fold.h"

#define RUN_MAX    128 /* characters of one word; longer ones are split */
#define IDLE_SLOTS 1024
#define STEMS      2048
#define STEM_MAX   23 /* bytes; stems of longer words are not cached */

/* English word stems, from the system's libstemmer. Its sb_stemmer_new()
 * selects a language by name and so links the tables of all languages: 12,000
 * pointers to relocate and 75 pages of memory at every start. So the English
 * stemmer is called directly, by the interface of all code that Snowball
 * generates (its manual, "Using Snowball"): an environment starts with the word
 * and its limits. Debian's package has the functions but no header for them.
 * The library is linked statically, so the tests check these declarations
 * against the very library that is shipped. */
struct stemmer {
    unsigned char *p; /* the word, not NUL-terminated */
    int c, l;         /* cursor; length of the word */
};

struct stemmer *english_UTF_8_create_env(void);
void english_UTF_8_close_env(struct stemmer *z);
int english_UTF_8_stem(struct stemmer *z);
int SN_set_current(struct stemmer *z, int n, const unsigned char *word);

/* Cache of stems: the same words come again and again. */
struct stem {
    char word[STEM_MAX], stem[STEM_MAX];
    uint8_t nword, nstem; /* nword 0: empty */
};

struct mo_words {
    struct stemmer *stemmer;
    uint8_t idle[IDLE_SLOTS]; /* hash -> index in idle[] + 1; 0: free */
    struct stem stems[STEMS]; /* by hash; newer entries replace older ones */
};

/* Stop words: words without a meaning of their own, and words of asking for
 * something. "fetch" is not among them: many tools have that name. */
static const char *const idle[] = {
    "a",       "able",    "about",   "after",     "again",      "all",
    "also",    "am",      "an",      "and",       "any",        "anything",
    "are",     "as",      "ask",     "assist",    "at",         "be",
    "because", "been",    "before",  "being",     "best",       "but",
    "by",      "can",     "cannot",  "could",     "d",          "did",
    "display", "do",      "does",    "doing",     "don",        "done",
    "each",    "either",  "etc",     "every",     "everything", "few",
    "find",    "for",     "from",    "get",       "getting",    "give",
    "go",      "going",   "got",     "had",       "has",        "have",
    "having",  "he",      "hello",   "help",      "her",        "here",
    "hey",     "hi",      "him",     "his",       "how",        "i",
    "if",      "in",      "inside",  "into",      "is",         "it",
    "its",     "just",    "kindly",  "know",      "let",        "like",
    "ll",      "look",    "looking", "m",         "make",       "may",
    "maybe",   "me",      "might",   "mine",      "more",       "most",
    "much",    "must",    "my",      "myself",    "need",       "needed",
    "needs",   "no",      "nor",     "not",       "now",        "obtain",
    "of",      "off",     "ok",      "on",        "one",        "only",
    "onto",    "or",      "other",   "our",       "out",        "over",
    "own",     "please",  "provide", "re",        "retrieve",   "return",
    "s",       "same",    "see",     "shall",     "she",        "should",
    "show",    "so",      "some",    "something", "such",       "t",
    "tell",    "than",    "thank",   "thanks",    "that",       "the",
    "their",   "them",    "then",    "there",     "these",      "they",
    "thing",   "things",  "this",    "those",     "through",    "to",
    "too",     "tool",    "tools",   "try",       "under",      "until",
    "up",      "upon",    "us",      "use",       "used",       "using",
    "ve",      "very",    "via",     "want",      "wanted",     "wants",
    "was",     "we",      "well",    "were",      "what",       "when",
    "where",   "whether", "which",   "while",     "who",        "whose",
    "why",     "will",    "wish",    "with",      "within",     "without",
    "would",   "you",     "your",    "yours",
};

_Static_assert(MO_COUNT(idle) <= UINT8_MAX, "numbers are of one byte");

uint32_t mo_words_hash(struct mo_span s)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < s.n; i++)
        h = (h ^ (unsigned char)s.p[i]) * 16777619u;
    return h ^ (h >> 15);
}

/* The slot of a stop word, or the free slot where it belongs. */
static uint8_t *idle_slot(struct mo_words *w, struct mo_span s, uint32_t h)
{
    uint32_t i = h % IDLE_SLOTS;

    while (w->idle[i] && !mo_span_is(s, idle[w->idle[i] - 1]))
        i = (i + 1) % IDLE_SLOTS;
    return &w->idle[i];
}

struct mo_words *mo_words_new(void)
{
    struct mo_words *w = mo_new(struct mo_words);

    if (!w)
        return NULL;
    w->stemmer = english_UTF_8_create_env();
    if (!w->stemmer) {
        mo_free(w);
        return NULL;
    }
    for (size_t i = 0; i < MO_COUNT(idle); i++) {
        struct mo_span s = mo_span_cstr(idle[i]);

        *idle_slot(w, s, mo_words_hash(s)) = (uint8_t)(i + 1);
    }
    return w;
}

void mo_words_free(struct mo_words *w)
{
    if (!w)
        return;
    english_UTF_8_close_env(w->stemmer);
    mo_free(w);
}

/* --- stems --------------------------------------------------------------- */

/* word: UTF-8, lower case. The stem is borrowed until the next call; the word
 * itself when out of memory. */
static struct mo_span make_stem(struct stemmer *z, struct mo_span word)
{
    if (word.n > INT_MAX ||
        SN_set_current(z, (int)word.n, (const unsigned char *)word.p) < 0 ||
        english_UTF_8_stem(z) < 0)
        return word;
    return mo_span((const char *)z->p, (size_t)z->l);
}

static struct mo_span stem_of(struct mo_words *w, struct mo_span word,
                              uint32_t h)
{
    struct stem *kept = &w->stems[h % STEMS];
    struct mo_span stem;

    if (mo_span_eq(mo_span(kept->word, kept->nword), word))
        return mo_span(kept->stem, kept->nstem);
    stem = make_stem(w->stemmer, word);
    if (word.n <= STEM_MAX && stem.n <= STEM_MAX) {
        memcpy(kept->word, word.p, word.n);
        memcpy(kept->stem, stem.p, stem.n);
        kept->nword = (uint8_t)word.n;
        kept->nstem = (uint8_t)stem.n;
    }
    return stem;
}

/* --- terms --------------------------------------------------------------- */

struct run { /* one word, folded */
    char text[RUN_MAX * 4];
    uint16_t at[RUN_MAX + 1]; /* start of each character, and the end */
    struct {
        uint8_t what;
        bool upper;
    } c[RUN_MAX];
    size_t n;
};

struct sink {
    struct mo_words *w; /* NULL: no stemming, no stop words */
    mo_words_fn *on;
    void *ctx;
};

/* Characters [from, to) of the run, at most as many as fit into a term. */
static struct mo_span part_of_run(const struct run *r, size_t from, size_t to)
{
    while (r->at[to - 1] - r->at[from] > MO_WORDS_TERM_MAX - 4)
        to--;
    return mo_span(r->text + r->at[from], (size_t)(r->at[to] - r->at[from]));
}

/* Report characters [from, to) of the run as one term. */
static void emit_term(const struct sink *k, const struct run *r, size_t from,
                      size_t to, bool extra)
{
    struct mo_span term = part_of_run(r, from, to);
    uint32_t h;

    if (term.n == 0)
        return;
    if (k->w) {
        h = mo_words_hash(term);
        if (*idle_slot(k->w, term, h) ||
            (term.n == 1 && r->c[from].what != MO_FOLD_DIGIT))
            return;
        term = stem_of(k->w, term, h);
    }
    k->on(k->ctx, term, extra);
}

static bool is_upper_at(const struct run *r, size_t i)
{
    return i < r->n && r->c[i].upper;
}

static bool is_small_at(const struct run *r, size_t i)
{
    return i < r->n && r->c[i].what == MO_FOLD_LETTER && !r->c[i].upper;
}

/* True before the capital of aB and before the last capital of ABc. */
static bool is_cut(const struct run *r, size_t i)
{
    return is_upper_at(r, i) &&
           (is_small_at(r, i - 1) ||
            (is_upper_at(r, i - 1) && is_small_at(r, i + 1)));
}

static void end_word(const struct sink *k, struct run *r)
{
    size_t from = 0;

    for (size_t i = 1; i < r->n; i++) {
        if (!is_cut(r, i))
            continue;
        emit_term(k, r, from, i, false);
        from = i;
    }
    emit_term(k, r, from, r->n, false);
    if (from && k->w)
        emit_term(k, r, 0, r->n, true);
    r->n = 0;
}

/* Report pairs of neighbours; a single character is a term by itself. */
static void end_cjk(const struct sink *k, struct run *r)
{
    if (!k->w || r->n == 1)
        emit_term(k, r, 0, r->n, false);
    else
        for (size_t i = 0; i + 1 < r->n; i++)
            emit_term(k, r, i, i + 2, false);
    r->n = 0;
}

static void end_run(const struct sink *k, struct run *r)
{
    if (r->n && r->c[0].what == MO_FOLD_CJK)
        end_cjk(k, r);
    else if (r->n)
        end_word(k, r);
}

static void add_char(struct run *r, const struct mo_fold_char *c)
{
    size_t at = r->at[r->n];

    if (c->cp)
        at += mo_utf8_put(r->text + at, c->cp);
    r->c[r->n].what = (uint8_t)c->what;
    r->c[r->n].upper = c->upper;
    r->at[++r->n] = (uint16_t)at;
}

static void split_words(const struct sink *k, struct mo_span text)
{
    struct run r = {.n = 0};

    while (text.n) {
        struct mo_fold_char c;
        bool cjk;

        text = mo_span_skip(text, mo_fold_next(text, &c));
        cjk = c.what == MO_FOLD_CJK;
        if (c.what == MO_FOLD_SPACE || c.what == MO_FOLD_PUNCT) {
            end_run(k, &r);
            continue;
        }
        if (r.n == RUN_MAX || (r.n && cjk != (r.c[0].what == MO_FOLD_CJK)))
            end_run(k, &r);
        add_char(&r, &c);
    }
    end_run(k, &r);
}

void mo_words_each(struct mo_words *w, struct mo_span text, mo_words_fn *on,
                   void *ctx)
{
    struct sink k = {w, on, ctx};

    split_words(&k, text);
}

static void put_word(void *ctx, struct mo_span term, bool extra)
{
    struct mo_buf *b = ctx;

    (void)extra;
    if (b->len)
        mo_buf_putc(b, ' ');
    mo_buf_span(b, term);
}

void mo_words_split(struct mo_span name, struct mo_buf *out)
{
    mo_words_each(NULL, name, put_word, out);
}
