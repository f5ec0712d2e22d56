#include "route/synonyms.h"

#include <stdlib.h>

#include "base/mem.h"

#define PHRASE_MAX 32

/* Sorted. */
static const struct synonym {
    const char *phrase, *related;
} synonyms[] = {
    {"accommodation", "listing rental stay booking"},
    {"alarm", "reminder"},
    {"apartment", "listing rental stay"},
    {"appointment", "event calendar"},
    {"bug", "issue"},
    {"bugs", "issues"},
    {"by car", "directions route"},
    {"by train", "directions route"},
    {"clock", "current time"},
    {"date today", "current date time"},
    {"deployment", "kubernetes kubectl resources"},
    {"deployments", "kubernetes kubectl resources"},
    {"diary", "calendar events"},
    {"download", "fetch url"},
    {"drive", "directions route"},
    {"explain", "describe documentation"},
    {"flat", "listing rental stay"},
    {"flats", "listings rental stay"},
    {"folder", "directory"},
    {"folders", "directories"},
    {"forget", "delete memory knowledge observations"},
    {"get from", "directions route"},
    {"holiday home", "listing rental stay"},
    {"keep in mind", "=remember memory knowledge observations entities"},
    {"lodging", "listing rental stay accommodation"},
    {"log in", "sign in authenticate"},
    {"login", "sign in"},
    {"meeting", "event calendar"},
    {"meetings", "events calendar"},
    {"memorize", "memory knowledge observations entities"},
    {"merge request", "pull request"},
    {"namespace", "kubernetes kubectl resources"},
    {"place to live", "=listing rental accommodation search"},
    {"place to sleep", "=listing rental accommodation search"},
    {"place to stay", "=listing rental accommodation search"},
    {"pod", "kubernetes kubectl resources"},
    {"pods", "kubernetes kubectl resources"},
    {"pull request", "merge request"},
    {"rain", "weather forecast"},
    {"remember", "memory knowledge observations entities"},
    {"rename", "move"},
    {"repo", "repository"},
    {"repos", "repositories"},
    {"room", "listing rental"},
    {"save", "write"},
    {"shell", "command terminal"},
    {"site", "website page"},
    {"snippet", "code"},
    {"snow", "weather forecast"},
    {"sunny", "weather forecast"},
    {"ticket", "issue"},
    {"tickets", "issues"},
    {"to do", "task"},
    {"todo", "task"},
    {"todos", "tasks"},
    {"what date", "current date time"},
    {"what day", "current date time"},
    {"what time", "current time timezone"},
};

static int compare(const void *key, const void *item)
{
    return strcmp(key, ((const struct synonym *)item)->phrase);
}

const char *mo_synonyms(struct mo_span phrase)
{
    char key[PHRASE_MAX];
    const struct synonym *s;

    if (phrase.n >= sizeof(key))
        return NULL;
    memcpy(key, phrase.p, phrase.n);
    key[phrase.n] = '\0';
    s = bsearch(key, synonyms, MO_COUNT(synonyms), sizeof(synonyms[0]),
                compare);
    return s ? s->related : NULL;
}
