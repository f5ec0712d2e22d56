#include "route/verbs.h"

#include <stdlib.h>

#include "base/mem.h"
#include "route/words.h"

enum {
    CREATE = 1 << 0,
    READ = 1 << 1,
    UPDATE = 1 << 2,
    DELETE = 1 << 3,
    SEARCH = 1 << 4,
    SEND = 1 << 5,
    COUNT = 1 << 6,
    CHANGE = 1 << 7, /* convert one form to another */
};

/* Sorted. */
static const struct verb {
    const char *word;
    unsigned kind;
} verbs[] = {
    {"add", CREATE},      {"append", UPDATE},    {"book", CREATE},
    {"build", CREATE},    {"calculate", COUNT},  {"cancel", DELETE},
    {"change", UPDATE},   {"check", READ},       {"clear", DELETE},
    {"compose", CREATE},  {"compute", COUNT},    {"convert", CHANGE},
    {"count", COUNT},     {"create", CREATE},    {"delete", DELETE},
    {"describe", READ},   {"discover", SEARCH},  {"download", READ},
    {"draft", CREATE},    {"draw", CREATE},      {"edit", UPDATE},
    {"email", SEND},      {"erase", DELETE},     {"explore", SEARCH},
    {"fetch", READ},      {"find", SEARCH},      {"forward", SEND},
    {"generate", CREATE}, {"get", READ},         {"insert", CREATE},
    {"invite", SEND},     {"list", READ},        {"load", READ},
    {"locate", SEARCH},   {"lookup", SEARCH},    {"make", CREATE},
    {"modify", UPDATE},   {"move", UPDATE},      {"new", CREATE},
    {"notify", SEND},     {"open", READ},        {"post", SEND},
    {"publish", SEND},    {"query", SEARCH},     {"read", READ},
    {"remove", DELETE},   {"rename", UPDATE},    {"reply", SEND},
    {"retrieve", READ},   {"save", CREATE},      {"schedule", CREATE},
    {"search", SEARCH},   {"send", SEND},        {"set", UPDATE},
    {"share", SEND},      {"show", READ},        {"solve", COUNT},
    {"submit", SEND},     {"transform", CHANGE}, {"translate", CHANGE},
    {"update", UPDATE},   {"upload", CREATE},    {"view", READ},
    {"write", CREATE},
};

static int compare(const void *key, const void *item)
{
    return strcmp(key, ((const struct verb *)item)->word);
}

struct looking {
    unsigned left; /* words left to look at */
    unsigned kinds;
};

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
    v = bsearch(word, verbs, MO_COUNT(verbs), sizeof(verbs[0]), compare);
    k->kinds |= v ? v->kind : 0;
}

unsigned mo_verbs(struct mo_span text, unsigned words)
{
    struct looking k = {.left = words};

    mo_words_each(NULL, text, on_word, &k);
    return k.kinds;
}
