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
    CHANGE = 1 << 7, /* one form into another */
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

unsigned mo_verbs(struct mo_span text, unsigned words)
{
    unsigned kinds = 0;
    struct mo_buf b;
    struct mo_span rest;

    mo_buf_init(&b, 4096);
    mo_words_split(text, &b);
    rest = mo_span_cstr(mo_buf_cstr(&b));
    for (unsigned i = 0; i < words && rest.n; i++) {
        struct mo_span w = mo_span_cut(&rest, ' ');
        const struct verb *v;
        char word[16];

        if (w.n >= sizeof(word))
            continue;
        memcpy(word, w.p, w.n);
        word[w.n] = '\0';
        v = bsearch(word, verbs, MO_COUNT(verbs), sizeof(verbs[0]), compare);
        kinds |= v ? v->kind : 0;
    }
    mo_buf_fini(&b);
    return kinds;
}
