#include "gateway/router/router_learning.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

#define HEAD       "mo-habit 1\n"
#define LINE       40 /* bytes of a row, about */
#define FILE_MAX   ((size_t)LEARNING_ROWS_MAX * LINE + sizeof(HEAD))
#define WORD_LEAST 3
#define WORD_MAX   32 /* bytes of a word that are used */
#define COUNT_MAX  100
#define CANDIDATES 5

struct pair {
    uint64_t word, tool;
};

struct shown_answer {
    uint64_t who; /* 0: none */
    uint64_t at_ms;
    uint64_t words[LEARNING_WORDS_MAX], tools[CANDIDATES];
    size_t nwords, ntools;
};

struct router_learning {
    struct mo_loop *loop;
    char *path;
    struct mo_map rows; /* struct pair -> count + COUNT_MAX + 1 */
    struct shown_answer shown[LEARNING_SHOWN_MAX];
    size_t next;
    struct mo_timer save;
    bool on_disk; /* the file existed at the last check */
};

/* --- hashes of words and tools ------------------------------------------- */

/* The keys are no secret: the hash only keeps requests out of the file. */
static uint64_t hash_text(struct mo_span s)
{
    return mo_siphash(0x6d6f2d6861626974, 0x776f7264732d2d31, s);
}

static uint64_t hash_tool(struct mo_span server, struct mo_span tool)
{
    return hash_text(server) * 31 + hash_text(tool);
}

static bool is_letter(char c)
{
    return (unsigned char)c >= 0x80 || mo_is_alpha(c) || mo_is_digit(c);
}

/* The distinct words of a request, as hashes. */
static size_t read_words(struct mo_span s, uint64_t out[LEARNING_WORDS_MAX])
{
    size_t n = 0, i = 0;

    while (i < s.n && n < LEARNING_WORDS_MAX) {
        char word[WORD_MAX];
        size_t len = 0;
        bool known = false;
        uint64_t v = 0;

        while (i < s.n && !is_letter(s.p[i]))
            i++;
        for (; i < s.n && is_letter(s.p[i]); i++)
            if (len < sizeof(word))
                word[len++] = mo_lower(s.p[i]);
        if (len < WORD_LEAST)
            continue;
        v = hash_text(mo_span(word, len));
        for (size_t k = 0; k < n; k++)
            known = known || out[k] == v;
        if (!known)
            out[n++] = v;
    }
    return n;
}

/* --- counts -------------------------------------------------------------- */

static struct mo_span key_of(const struct pair *p)
{
    return mo_span((const char *)p, sizeof(*p));
}

static int get_count(const struct router_learning *h, uint64_t word,
                     uint64_t tool)
{
    struct pair p = {word, tool};
    void *v = mo_map_get(&h->rows, key_of(&p));

    return v ? (int)(intptr_t)v - COUNT_MAX - 1 : 0;
}

static void set_count(struct router_learning *h, struct pair p, int n)
{
    n = n > COUNT_MAX ? COUNT_MAX : n < -COUNT_MAX ? -COUNT_MAX : n;
    if (n == 0)
        (void)mo_map_del(&h->rows, key_of(&p));
    else
        (void)mo_map_put(&h->rows, key_of(&p),
                         (void *)(intptr_t)(n + COUNT_MAX + 1), NULL);
}

/* A pair with a count of 1 or -1. */
static bool find_weak_pair(const struct router_learning *h, struct pair *out)
{
    mo_map_each (en, &h->rows) {
        int n = (int)(intptr_t)en->value - COUNT_MAX - 1;

        if (n != 1 && n != -1)
            continue;
        memcpy(out, en->key, sizeof(*out));
        return true;
    }
    return false;
}

static void make_room(struct router_learning *h)
{
    struct pair p;

    if (h->rows.len < LEARNING_ROWS_MAX)
        return;
    while (find_weak_pair(h, &p))
        (void)mo_map_del(&h->rows, key_of(&p));
    mo_map_each (en, &h->rows) {
        int n = (int)(intptr_t)en->value - COUNT_MAX - 1;

        en->value = (void *)(intptr_t)(n / 2 + COUNT_MAX + 1);
    }
}

/* --- the file ------------------------------------------------------------ */

static void read_rows(struct router_learning *h, const char *text)
{
    const char *p = text + sizeof(HEAD) - 1;

    while (*p && h->rows.len < LEARNING_ROWS_MAX) {
        char *end = NULL;
        struct pair pair;
        long n;

        pair.word = strtoull(p, &end, 16);
        pair.tool = strtoull(end, &end, 16);
        n = strtol(end, &end, 10);
        if (*end != '\n')
            return;
        set_count(h, pair, (int)n);
        p = end + 1;
    }
}

static void load_file(struct router_learning *h)
{
    mo_autobuf struct mo_buf text = {.max = FILE_MAX};

    h->on_disk = mo_file_read_own(h->path, &text) == 0;
    if (mo_span_starts(mo_buf_view(&text), MO_SPAN(HEAD)))
        read_rows(h, mo_buf_cstr(&text));
}

static void save_file(struct router_learning *h)
{
    mo_autobuf struct mo_buf b = {.max = FILE_MAX};

    (void)mo_buf_puts(&b, HEAD);
    mo_map_each (en, &h->rows) {
        struct pair p;

        memcpy(&p, en->key, sizeof(p));
        (void)mo_buf_printf(&b, "%llx %llx %d\n", (unsigned long long)p.word,
                            (unsigned long long)p.tool,
                            (int)(intptr_t)en->value - COUNT_MAX - 1);
    }
    if (!mo_buf_err(&b) && mo_file_replace(h->path, mo_buf_view(&b), NULL) == 0)
        h->on_disk = true; /* a failed write only loses what was learnt */
}

static void on_save(struct mo_timer *t)
{
    save_file(mo_container_of(t, struct router_learning, save));
}

/* Forgets everything if the file was deleted. */
static void check_file_removed(struct router_learning *h)
{
    if (!h->on_disk || access(h->path, F_OK) == 0)
        return;
    h->on_disk = false;
    mo_timer_stop(h->loop, &h->save);
    mo_map_clear(&h->rows);
}

/* --- life ---------------------------------------------------------------- */

struct router_learning *mo_router_learning_new(struct mo_loop *l,
                                               const char *path)
{
    struct router_learning *h = mo_new(struct router_learning);

    if (!h)
        return NULL;
    h->loop = l;
    mo_map_init(&h->rows, LEARNING_ROWS_MAX + LEARNING_WORDS_MAX * CANDIDATES);
    mo_timer_init(&h->save, on_save);
    h->path = path ? mo_strndup(path, strlen(path)) : NULL;
    if (h->path)
        load_file(h);
    return h;
}

void mo_router_learning_free(struct router_learning *h)
{
    if (!h)
        return;
    if (mo_timer_on(&h->save))
        save_file(h);
    mo_timer_stop(h->loop, &h->save);
    mo_map_fini(&h->rows);
    mo_free(h->path);
    mo_free(h);
}

/* --- applying ------------------------------------------------------------ */

/* The mean effect of the words on a tool, -1 to 1. */
static float compute_lean(const struct router_learning *h,
                          const uint64_t *words, size_t n, uint64_t tool)
{
    float sum = 0;

    for (size_t i = 0; i < n; i++) {
        float c = (float)get_count(h, words[i], tool) / LEARNING_FULL;

        sum += c > 1 ? 1 : c < -1 ? -1 : c;
    }
    return n ? sum / (float)n : 0;
}

static float adjust_confidence(float now, float lean)
{
    float most = now > LEARNING_CONFIDENCE_MAX ? now : LEARNING_CONFIDENCE_MAX;
    float v = now + LEARNING_CONFIDENCE * lean;

    return v < 0 ? 0 : v > most ? most : v;
}

/* Insertion sort: few hits, almost in order; stable. */
static void sort_hits(struct mo_route_hit *v, size_t n)
{
    for (size_t i = 1; i < n; i++) {
        struct mo_route_hit x = v[i];
        size_t k = i;

        for (; k > 0 && v[k - 1].score < x.score; k--)
            v[k] = v[k - 1];
        v[k] = x;
    }
}

void mo_router_learning_apply(struct router_learning *h, struct mo_span words,
                              struct mo_route_answer *a)
{
    uint64_t v[LEARNING_WORDS_MAX];
    size_t n = 0;
    bool any = false;

    check_file_removed(h);
    if (h->rows.len == 0 || a->named)
        return;
    n = read_words(words, v);
    for (size_t i = 0; i < a->n; i++) {
        struct mo_route_hit *x = &a->hits[i];
        float lean = compute_lean(h, v, n, hash_tool(x->server, x->tool));

        x->score += LEARNING_SCORE * lean;
        x->confidence = adjust_confidence(x->confidence, lean);
        any = any || lean > 0 || lean < 0;
    }
    if (any)
        sort_hits(a->hits, a->n);
}

/* --- learning ------------------------------------------------------------ */

void mo_router_learning_shown(struct router_learning *h, const char *who,
                              struct mo_span words,
                              const struct mo_route_answer *a)
{
    struct shown_answer *s = &h->shown[h->next++ % LEARNING_SHOWN_MAX];

    *s = (struct shown_answer){.who = hash_text(mo_span_cstr(who)) | 1,
                               .at_ms = mo_now_ns() / MO_MS};
    s->nwords = read_words(words, s->words);
    s->ntools = a->n < CANDIDATES ? a->n : CANDIDATES;
    for (size_t i = 0; i < s->ntools; i++)
        s->tools[i] = hash_tool(a->hits[i].server, a->hits[i].tool);
}

/* The newest answer shown to this client; each is used once. */
static struct shown_answer *last_shown(struct router_learning *h, uint64_t who)
{
    uint64_t now = mo_now_ns() / MO_MS;
    struct shown_answer *best = NULL;

    for (size_t i = 0; i < LEARNING_SHOWN_MAX; i++) {
        struct shown_answer *s = &h->shown[i];

        if (s->who == who && now - s->at_ms < LEARNING_SHOWN_MS &&
            (!best || s->at_ms >= best->at_ms))
            best = s;
    }
    return best;
}

static void add_count(struct router_learning *h, uint64_t word, uint64_t tool,
                      int more)
{
    struct pair p = {word, tool};

    set_count(h, p, get_count(h, word, tool) + more);
}

static void save_soon(struct router_learning *h)
{
    if (h->path && !mo_timer_on(&h->save))
        mo_timer_start(h->loop, &h->save, LEARNING_SAVE_MS);
}

static void learn_choice(struct router_learning *h,
                         const struct shown_answer *s, size_t chosen)
{
    make_room(h);
    for (size_t i = 0; i < s->nwords; i++) {
        for (size_t k = 0; k <= chosen; k++)
            add_count(h, s->words[i], s->tools[k], k == chosen ? 1 : -1);
    }
    save_soon(h);
}

void mo_router_learning_chose(struct router_learning *h, const char *who,
                              struct mo_span server, struct mo_span tool)
{
    uint64_t t = hash_tool(server, tool);
    struct shown_answer *s = last_shown(h, hash_text(mo_span_cstr(who)) | 1);

    check_file_removed(h);
    if (!s)
        return;
    for (size_t i = 0; i < s->ntools; i++)
        if (s->tools[i] == t)
            learn_choice(h, s, i);
    s->who = 0;
}

/* --- teaching ------------------------------------------------------------ */

void mo_router_learning_teach(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool,
                              bool right)
{
    uint64_t v[LEARNING_WORDS_MAX];
    size_t n = read_words(words, v);

    check_file_removed(h);
    make_room(h);
    for (size_t i = 0; i < n; i++)
        add_count(h, v[i], hash_tool(server, tool), right ? 1 : -1);
    save_soon(h);
}

void mo_router_learning_forget(struct router_learning *h)
{
    mo_timer_stop(h->loop, &h->save);
    mo_map_clear(&h->rows);
    memset(h->shown, 0, sizeof(h->shown));
    if (h->path)
        (void)unlink(h->path);
    h->on_disk = false;
}

size_t mo_router_learning_count(struct router_learning *h)
{
    check_file_removed(h);
    return h->rows.len;
}

float mo_router_learning_lean(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool)
{
    uint64_t v[LEARNING_WORDS_MAX];

    if (h->rows.len == 0)
        return 0;
    return compute_lean(h, v, read_words(words, v), hash_tool(server, tool));
}
