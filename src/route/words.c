#include "route/words.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec/utf8.h"
#include "route/fold.h"
#include "route/stem.h"

#define RUN_MAX 128 /* characters of one word; the rest is another one */

struct mo_words {
    struct mo_stem *stem;
};

/* Words that say nothing about which tool is meant: those without meaning of
 * their own, and those of asking for something. Sorted. */
static const char *const idle[] = {
    "a",       "able",   "about",   "after",   "again",      "all",
    "also",    "am",     "an",      "and",     "any",        "anything",
    "are",     "as",     "ask",     "assist",  "at",         "be",
    "because", "been",   "before",  "being",   "best",       "but",
    "by",      "can",    "cannot",  "could",   "d",          "did",
    "display", "do",     "does",    "doing",   "don",        "done",
    "each",    "either", "etc",     "every",   "everything", "few",
    "fetch",   "find",   "for",     "from",    "get",        "getting",
    "give",    "go",     "going",   "got",     "had",        "has",
    "have",    "having", "he",      "hello",   "help",       "her",
    "here",    "hey",    "hi",      "him",     "his",        "how",
    "i",       "if",     "in",      "inside",  "into",       "is",
    "it",      "its",    "just",    "kindly",  "know",       "let",
    "like",    "ll",     "look",    "looking", "m",          "make",
    "may",     "maybe",  "me",      "might",   "mine",       "more",
    "most",    "much",   "must",    "my",      "myself",     "need",
    "needed",  "needs",  "no",      "nor",     "not",        "now",
    "obtain",  "of",     "off",     "ok",      "on",         "one",
    "only",    "onto",   "or",      "other",   "our",        "out",
    "over",    "own",    "please",  "provide", "re",         "retrieve",
    "return",  "s",      "same",    "see",     "shall",      "she",
    "should",  "show",   "so",      "some",    "something",  "such",
    "t",       "tell",   "than",    "thank",   "thanks",     "that",
    "the",     "their",  "them",    "then",    "there",      "these",
    "they",    "thing",  "things",  "this",    "those",      "through",
    "to",      "too",    "tool",    "tools",   "try",        "under",
    "until",   "up",     "upon",    "us",      "use",        "used",
    "using",   "ve",     "very",    "via",     "want",       "wanted",
    "wants",   "was",    "we",      "well",    "were",       "what",
    "when",    "where",  "whether", "which",   "while",      "who",
    "whose",   "why",    "will",    "wish",    "with",       "within",
    "without", "would",  "you",     "your",    "yours",
};

struct mo_words *mo_words_new(void)
{
    struct mo_words *w = mo_new(struct mo_words);

    if (!w)
        return NULL;
    w->stem = mo_stem_new();
    if (!w->stem) {
        mo_free(w);
        return NULL;
    }
    return w;
}

void mo_words_free(struct mo_words *w)
{
    if (!w)
        return;
    mo_stem_free(w->stem);
    mo_free(w);
}

/* --- terms --------------------------------------------------------------- */

static int compare_idle(const void *key, const void *item)
{
    return strcmp(key, *(const char *const *)item);
}

static bool is_idle(const char *word)
{
    return bsearch(word, idle, MO_COUNT(idle), sizeof(idle[0]), compare_idle);
}

struct run { /* one word, as it is written */
    struct mo_fold_char c[RUN_MAX];
    size_t n;
};

struct sink {
    struct mo_words *w; /* NULL: no stems, nothing left out */
    mo_words_fn *on;
    void *ctx;
};

/* Characters [from, to) of the run as one term. */
static void emit(const struct sink *k, const struct run *r, size_t from,
                 size_t to, bool extra)
{
    char text[MO_WORDS_TERM_MAX + 1];
    struct mo_span term = {text, 0};

    for (size_t i = from; i < to && term.n + 4 <= MO_WORDS_TERM_MAX; i++)
        if (r->c[i].cp)
            term.n += mo_utf8_put(text + term.n, r->c[i].cp);
    text[term.n] = '\0';
    if (term.n == 0)
        return;
    if (k->w) {
        if (is_idle(text) || (term.n == 1 && r->c[from].what != MO_FOLD_DIGIT))
            return;
        term = mo_stem(k->w->stem, term);
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

/* Before the capital of aB, and before the last capital of ABc. */
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
        emit(k, r, from, i, false);
        from = i;
    }
    emit(k, r, from, r->n, false);
    if (from && k->w)
        emit(k, r, 0, r->n, true);
    r->n = 0;
}

/* Pairs of neighbours; one alone is a term by itself. */
static void end_cjk(const struct sink *k, struct run *r)
{
    if (!k->w || r->n == 1)
        emit(k, r, 0, r->n, false);
    else
        for (size_t i = 0; i + 1 < r->n; i++)
            emit(k, r, i, i + 2, false);
    r->n = 0;
}

static void end_run(const struct sink *k, struct run *r)
{
    if (r->n && r->c[0].what == MO_FOLD_CJK)
        end_cjk(k, r);
    else if (r->n)
        end_word(k, r);
}

static void each(const struct sink *k, struct mo_span text)
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
        r.c[r.n++] = c;
    }
    end_run(k, &r);
}

void mo_words_each(struct mo_words *w, struct mo_span text, mo_words_fn *on,
                   void *ctx)
{
    struct sink k = {w, on, ctx};

    each(&k, text);
}

static void put_word(void *ctx, struct mo_span term, bool extra)
{
    struct mo_buf *b = ctx;

    (void)extra;
    if (b->len)
        (void)mo_buf_putc(b, ' ');
    (void)mo_buf_span(b, term);
}

void mo_words_split(struct mo_span name, struct mo_buf *out)
{
    struct sink k = {NULL, put_word, out};

    each(&k, name);
}
