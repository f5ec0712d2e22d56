#include "route/verbs.h"

#include <stdlib.h>

#include "base/mem.h"
#include "route/words.h"

#define WORD_BYTES 20 /* about, of a word of a request */

/* Sorted. */
static const struct verb {
    const char *word;
    unsigned kind;
} verbs[] = {
    {"add", MO_VERB_CREATE},       {"append", MO_VERB_UPDATE},
    {"apply", MO_VERB_UPDATE},     {"book", MO_VERB_CREATE},
    {"browse", MO_VERB_VISIT},     {"build", MO_VERB_CREATE},
    {"calculate", MO_VERB_COUNT},  {"cancel", MO_VERB_DELETE},
    {"change", MO_VERB_UPDATE},    {"check", MO_VERB_READ},
    {"clear", MO_VERB_DELETE},     {"compose", MO_VERB_CREATE},
    {"compute", MO_VERB_COUNT},    {"convert", MO_VERB_CHANGE},
    {"count", MO_VERB_COUNT},      {"create", MO_VERB_CREATE},
    {"delete", MO_VERB_DELETE},    {"describe", MO_VERB_READ},
    {"destroy", MO_VERB_DELETE},   {"discover", MO_VERB_SEARCH},
    {"download", MO_VERB_READ},    {"draft", MO_VERB_CREATE},
    {"draw", MO_VERB_CREATE},      {"drop", MO_VERB_DELETE},
    {"edit", MO_VERB_UPDATE},      {"email", MO_VERB_SEND},
    {"erase", MO_VERB_DELETE},     {"exec", MO_VERB_RUN},
    {"execute", MO_VERB_RUN},      {"explain", MO_VERB_READ},
    {"explore", MO_VERB_SEARCH},   {"fetch", MO_VERB_READ},
    {"find", MO_VERB_SEARCH},      {"forget", MO_VERB_DELETE},
    {"fork", MO_VERB_CREATE},      {"forward", MO_VERB_SEND},
    {"generate", MO_VERB_CREATE},  {"get", MO_VERB_READ},
    {"go", MO_VERB_VISIT},         {"goto", MO_VERB_VISIT},
    {"insert", MO_VERB_CREATE},    {"install", MO_VERB_CREATE},
    {"invite", MO_VERB_SEND},      {"invoke", MO_VERB_RUN},
    {"launch", MO_VERB_RUN},       {"list", MO_VERB_READ},
    {"load", MO_VERB_READ},        {"locate", MO_VERB_SEARCH},
    {"lookup", MO_VERB_SEARCH},    {"make", MO_VERB_CREATE},
    {"memorize", MO_VERB_CREATE},  {"merge", MO_VERB_UPDATE},
    {"modify", MO_VERB_UPDATE},    {"move", MO_VERB_UPDATE},
    {"navigate", MO_VERB_VISIT},   {"new", MO_VERB_CREATE},
    {"notify", MO_VERB_SEND},      {"open", MO_VERB_READ},
    {"paint", MO_VERB_CREATE},     {"patch", MO_VERB_UPDATE},
    {"plot", MO_VERB_CREATE},      {"post", MO_VERB_SEND},
    {"publish", MO_VERB_SEND},     {"put", MO_VERB_UPDATE},
    {"query", MO_VERB_SEARCH},     {"read", MO_VERB_READ},
    {"record", MO_VERB_CREATE},    {"register", MO_VERB_CREATE},
    {"remember", MO_VERB_CREATE},  {"remove", MO_VERB_DELETE},
    {"rename", MO_VERB_UPDATE},    {"replace", MO_VERB_UPDATE},
    {"reply", MO_VERB_SEND},       {"restart", MO_VERB_RUN},
    {"retrieve", MO_VERB_READ},    {"run", MO_VERB_RUN},
    {"save", MO_VERB_CREATE},      {"schedule", MO_VERB_CREATE},
    {"scrape", MO_VERB_READ},      {"search", MO_VERB_SEARCH},
    {"send", MO_VERB_SEND},        {"set", MO_VERB_UPDATE},
    {"share", MO_VERB_SEND},       {"show", MO_VERB_READ},
    {"solve", MO_VERB_COUNT},      {"store", MO_VERB_CREATE},
    {"submit", MO_VERB_SEND},      {"summarize", MO_VERB_READ},
    {"tell", MO_VERB_READ},        {"transform", MO_VERB_CHANGE},
    {"translate", MO_VERB_CHANGE}, {"update", MO_VERB_UPDATE},
    {"upload", MO_VERB_CREATE},    {"view", MO_VERB_READ},
    {"visit", MO_VERB_VISIT},      {"write", MO_VERB_CREATE},
};

static int compare(const void *key, const void *item)
{
    return strcmp(key, ((const struct verb *)item)->word);
}

static const struct verb *find_verb(const char *word)
{
    return bsearch(word, verbs, MO_COUNT(verbs), sizeof(verbs[0]), compare);
}

struct looking {
    unsigned left; /* words left to look at */
    unsigned kinds;
    bool asked, address;
    bool first; /* no word was read yet */
    bool question;
    unsigned opens; /* kinds if an indefinite article follows, or 0 */
};

static bool is_among(const char *word, const char *const *v, size_t n)
{
    size_t i = 0;

    while (i < n && strcmp(word, v[i]) != 0)
        i++;
    return i < n;
}

/* Verbs that make something only in front of "a", "an" or "new"; without it
 * "file" and "report" are nouns, and "open" reads. */
static bool may_make(const char *word)
{
    static const char *const v[] = {"file",  "log",    "open",
                                    "raise", "report", "start"};

    return is_among(word, v, MO_COUNT(v));
}

static bool is_indefinite(const char *word)
{
    static const char *const v[] = {"a", "an", "another", "new"};

    return is_among(word, v, MO_COUNT(v));
}

/* A question asks for knowledge, whatever its verbs: "what did I delete". So
 * does the wish for a list. */
static bool is_question(const char *word)
{
    static const char *const v[] = {"list",  "what", "when", "where",
                                    "which", "who",  "why"};

    return is_among(word, v, MO_COUNT(v));
}

static unsigned kinds_asked(struct looking *k, const char *word)
{
    const struct verb *v = find_verb(word);
    unsigned kinds = v ? v->kind : 0;

    if (k->first && is_question(word)) {
        k->question = true;
        k->left = 0;
    }
    k->first = false;
    if (k->opens && is_indefinite(word))
        kinds |= MO_VERB_CREATE;
    else if (k->opens)
        kinds |= k->opens & MO_VERB_READ;
    k->opens = 0;
    if (may_make(word)) {
        k->opens = MO_VERB_CREATE | kinds;
        kinds = 0;
    }
    if (!k->address)
        return kinds & ~(unsigned)MO_VERB_VISIT;
    if ((kinds | k->opens) & MO_VERB_READ)
        kinds |= MO_VERB_VISIT;
    return kinds;
}

static void on_word(void *ctx, struct mo_span w, bool extra)
{
    struct looking *k = ctx;
    const struct verb *v;
    char word[16];

    (void)extra;
    if (k->left == 0)
        return;
    k->left--;
    if (w.n >= sizeof(word))
        return;
    memcpy(word, w.p, w.n);
    word[w.n] = '\0';
    if (k->asked) {
        k->kinds |= kinds_asked(k, word);
        return;
    }
    v = find_verb(word);
    k->kinds |= v ? v->kind : 0;
}

unsigned mo_verbs(struct mo_span text, unsigned words)
{
    struct looking k = {.left = words};

    mo_words_each(NULL, text, on_word, &k);
    return k.kinds;
}

#define READS   (MO_VERB_READ | MO_VERB_SEARCH | MO_VERB_COUNT)
#define CHANGES (MO_VERB_CREATE | MO_VERB_UPDATE | MO_VERB_SEND | MO_VERB_RUN)

static unsigned kinds_against(unsigned asked)
{
    if (asked == MO_VERB_DELETE)
        return READS | CHANGES;
    if (asked && !(asked & ~(unsigned)READS))
        return CHANGES | MO_VERB_DELETE;
    if (asked && !(asked & ~(unsigned)CHANGES))
        return READS | MO_VERB_DELETE;
    return 0;
}

struct mo_verbs_asked mo_verbs_asked(struct mo_span text, unsigned words,
                                     bool address)
{
    struct looking k = {
        .left = words, .asked = true, .address = address, .first = true};

    mo_words_each(NULL, mo_span_head(text, (size_t)words * WORD_BYTES), on_word,
                  &k);
    return (struct mo_verbs_asked){
        .kinds = k.kinds,
        .question = k.question,
        .against = kinds_against(k.question ? MO_VERB_READ : k.kinds),
    };
}
