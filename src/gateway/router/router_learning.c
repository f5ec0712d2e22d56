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
    struct mo_map rows;    /* struct pair -> count + COUNT_MAX + 1 */
    struct mo_map unsaved; /* the same, of what the file does not have yet */
    struct shown_answer shown[LEARNING_SHOWN_MAX];
    size_t next;
    struct mo_timer save;
    bool on_disk;        /* the file existed at the last check */
    atomic_uint *shared; /* NULL: there are no other workers */
    unsigned seen;       /* of it */
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

static int compare_hashes(const void *pa, const void *pb)
{
    const uint64_t *a = pa, *b = pb;

    return *a < *b ? -1 : *a > *b;
}

/* The whole request: its words in any order. */
static uint64_t hash_request(const uint64_t *words, size_t n)
{
    uint64_t v[LEARNING_WORDS_MAX];

    memcpy(v, words, n * sizeof(*v));
    qsort(v, n, sizeof(*v), compare_hashes);
    return hash_text(mo_span((const char *)v, n * sizeof(*v)));
}

/* --- counts -------------------------------------------------------------- */

static struct mo_span key_of(const struct pair *p)
{
    return mo_span((const char *)p, sizeof(*p));
}

static int count_of(const struct mo_map_entry *en)
{
    return (int)(intptr_t)en->value - COUNT_MAX - 1;
}

static int get_count(const struct mo_map *rows, struct pair p)
{
    void *v = mo_map_get(rows, key_of(&p));

    return v ? (int)(intptr_t)v - COUNT_MAX - 1 : 0;
}

static void set_count(struct mo_map *rows, struct pair p, int n)
{
    n = n > COUNT_MAX ? COUNT_MAX : n < -COUNT_MAX ? -COUNT_MAX : n;
    if (n == 0)
        (void)mo_map_del(rows, key_of(&p));
    else
        (void)mo_map_put(rows, key_of(&p),
                         (void *)(intptr_t)(n + COUNT_MAX + 1), NULL);
}

static void add_count(struct mo_map *rows, struct pair p, int more)
{
    set_count(rows, p, get_count(rows, p) + more);
}

/* A pair with a count of 1 or -1. */
static bool find_weak_pair(const struct router_learning *h, struct pair *out)
{
    mo_map_each (en, &h->rows) {
        int n = count_of(en);

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
        en->value = (void *)(intptr_t)(count_of(en) / 2 + COUNT_MAX + 1);
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
        set_count(&h->rows, pair, (int)n);
        p = end + 1;
    }
}

/* The rows of the file, and what we have learnt since. text: ends with NUL; or
 * NULL, there is no file. */
static void take_file(struct router_learning *h, const char *text)
{
    mo_map_clear(&h->rows);
    if (text && mo_span_starts(mo_span_cstr(text), MO_SPAN(HEAD)))
        read_rows(h, text);
    mo_map_each (en, &h->unsaved) {
        struct pair p;

        memcpy(&p, en->key, sizeof(p));
        make_room(h);
        add_count(&h->rows, p, count_of(en));
    }
}

static void load_file(struct router_learning *h)
{
    mo_autobuf struct mo_buf text = {.max = FILE_MAX};

    h->on_disk = mo_file_read_own(h->path, &text) == 0;
    take_file(h, h->on_disk ? mo_buf_cstr(&text) : NULL);
}

/* The file may have rows of other processes. */
static int merge_file(void *ctx, struct mo_span text, struct mo_buf *out,
                      struct mo_err *e)
{
    struct router_learning *h = ctx;
    mo_autobuf struct mo_buf now = {.max = FILE_MAX};

    (void)e;
    if (mo_buf_span(&now, text) < 0)
        return MO_ENOMEM;
    take_file(h, text.p ? mo_buf_cstr(&now) : NULL);
    (void)mo_buf_puts(out, HEAD);
    mo_map_each (en, &h->rows) {
        struct pair p;

        memcpy(&p, en->key, sizeof(p));
        (void)mo_buf_printf(out, "%llx %llx %d\n", (unsigned long long)p.word,
                            (unsigned long long)p.tool, count_of(en));
    }
    return mo_buf_err(out);
}

/* The others read the file again before they use it. */
static void tell_others(struct router_learning *h)
{
    if (h->shared && atomic_fetch_add(h->shared, 1) == h->seen)
        h->seen++; /* else another one has written since we read */
}

static void save_file(struct router_learning *h)
{
    const struct mo_file_change c = {
        .path = h->path, .max = FILE_MAX, .edit = merge_file, .ctx = h};

    mo_timer_stop(h->loop, &h->save);
    if (mo_file_change(&c, NULL) < 0)
        return; /* only what was learnt is lost, at the end */
    h->on_disk = true;
    mo_map_clear(&h->unsaved);
    tell_others(h);
}

static void on_save(struct mo_timer *t)
{
    save_file(mo_container_of(t, struct router_learning, save));
}

/* Reads the file if another worker has written it. Forgets everything if it was
 * deleted. */
static void check_file(struct router_learning *h)
{
    unsigned seen = h->shared ? atomic_load(h->shared) : h->seen;

    if (h->on_disk && access(h->path, F_OK) < 0) {
        h->on_disk = false;
        mo_timer_stop(h->loop, &h->save);
        mo_map_clear(&h->rows);
        mo_map_clear(&h->unsaved);
    }
    if (seen == h->seen)
        return;
    h->seen = seen;
    load_file(h);
    if (!h->on_disk) { /* another one was told to forget */
        mo_map_clear(&h->rows);
        mo_map_clear(&h->unsaved);
    }
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
    mo_map_init(&h->unsaved, LEARNING_ROWS_MAX);
    mo_timer_init(&h->save, on_save);
    h->path = path ? mo_strndup(path, strlen(path)) : NULL;
    if (h->path)
        load_file(h);
    return h;
}

void mo_router_learning_share(struct router_learning *h, atomic_uint *changes)
{
    if (!h->path)
        return;
    h->shared = changes;
    h->seen = atomic_load(changes) - 1; /* it was read before */
}

void mo_router_learning_free(struct router_learning *h)
{
    if (!h)
        return;
    if (mo_timer_on(&h->save))
        save_file(h);
    mo_timer_stop(h->loop, &h->save);
    mo_map_fini(&h->rows);
    mo_map_fini(&h->unsaved);
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
        struct pair p = {words[i], tool};
        float c = (float)get_count(&h->rows, p) / LEARNING_FULL;

        sum += c > 1 ? 1 : c < -1 ? -1 : c;
    }
    return n ? sum / (float)n : 0;
}

/* How often a person has said that exactly this request means the tool. */
static int taught_count(const struct router_learning *h, const uint64_t *words,
                        size_t n, uint64_t tool)
{
    struct pair p = {hash_request(words, n), tool};

    return n ? get_count(&h->rows, p) : 0;
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

/* A lesson decides for its own request, however the scores of other tools
 * change: new servers change all of them. */
static void put_taught_first(const struct router_learning *h,
                             const uint64_t *words, size_t n,
                             struct mo_route_answer *a)
{
    struct mo_route_hit x;
    size_t at = 0;
    int most = 0;

    for (size_t i = 0; i < a->n; i++) {
        int c = taught_count(h, words, n,
                             hash_tool(a->hits[i].server, a->hits[i].tool));

        at = c > most ? i : at;
        most = c > most ? c : most;
    }
    if (at == 0)
        return;
    x = a->hits[at];
    x.score = a->hits[0].score;
    memmove(&a->hits[1], &a->hits[0], at * sizeof(x));
    a->hits[0] = x;
}

void mo_router_learning_apply(struct router_learning *h, struct mo_span words,
                              struct mo_route_answer *a)
{
    uint64_t v[LEARNING_WORDS_MAX];
    size_t n = 0;
    bool any = false;

    check_file(h);
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
    put_taught_first(h, v, n, a);
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

static void learn(struct router_learning *h, uint64_t word, uint64_t tool,
                  int more)
{
    struct pair p = {word, tool};

    add_count(&h->rows, p, more);
    if (h->path)
        add_count(&h->unsaved, p, more);
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
            learn(h, s->words[i], s->tools[k], k == chosen ? 1 : -1);
    }
    save_soon(h);
}

void mo_router_learning_chose(struct router_learning *h, const char *who,
                              struct mo_span server, struct mo_span tool)
{
    uint64_t t = hash_tool(server, tool);
    struct shown_answer *s = last_shown(h, hash_text(mo_span_cstr(who)) | 1);

    check_file(h);
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
    uint64_t t = hash_tool(server, tool);

    check_file(h);
    make_room(h);
    for (size_t i = 0; i < n; i++)
        learn(h, v[i], t, right ? 1 : -1);
    if (n)
        learn(h, hash_request(v, n), t, right ? 1 : -1);
    if (h->shared)
        save_file(h); /* the person's next request may come to another worker */
    else
        save_soon(h);
}

void mo_router_learning_forget(struct router_learning *h)
{
    mo_timer_stop(h->loop, &h->save);
    mo_map_clear(&h->rows);
    mo_map_clear(&h->unsaved);
    memset(h->shown, 0, sizeof(h->shown));
    if (h->path)
        (void)unlink(h->path);
    h->on_disk = false;
    tell_others(h);
}

size_t mo_router_learning_count(struct router_learning *h)
{
    check_file(h);
    return h->rows.len;
}

float mo_router_learning_lean(struct router_learning *h, struct mo_span words,
                              struct mo_span server, struct mo_span tool)
{
    uint64_t v[LEARNING_WORDS_MAX];
    size_t n = read_words(words, v);

    check_file(h);
    if (h->rows.len == 0)
        return 0;
    return compute_lean(h, v, n, hash_tool(server, tool));
}
