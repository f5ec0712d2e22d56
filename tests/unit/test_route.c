/* route: folding, words, vectors, the index and searches. */
#include "mo_test.h"

#include <math.h>

#include "codec/text/utf8.h"
#include "route/fold.h"
#include "route/index.h"
#include "route/request.h"
#include "route/route.h"
#include "route/verbs.h"

/* --- letters and words --------------------------------------------------- */

static void fold_text(struct mo_span s, struct mo_buf *out)
{
    while (s.n) {
        struct mo_fold_char c;
        char utf8[4];

        s = mo_span_skip(s, mo_fold_next(s, &c));
        if (c.what == MO_FOLD_SPACE)
            mo_buf_putc(out, ' ');
        else if (c.cp)
            mo_buf_put(out, utf8, mo_utf8_put(utf8, c.cp));
    }
}

static void test_fold(void **state)
{
    static const struct {
        const char *from, *to;
    } rows[] = {
        {"Hello, World", "hello, world"},
        {"\xC3\x80\xC3\x89\xC3\xAE\xC3\xB6\xC3\x9C", "aeiou"}, /* AEiou */
        {"\xC3\x86\xC3\xA6", "\xC3\xA6\xC3\xA6"},              /* AE ae */
        {"\xC3\x9F\xC3\x98", "\xC3\x9F\xC3\xB8"},              /* ss O/ */
        {"\xC5\x81\xC5\x82\xC5\xBB\xC5\xBC", "\xC5\x82\xC5\x82zz"},
        {"\xC4\xB0\xC4\x9F\xC5\x9E", "igs"},
        {"\xCE\xA3\xCE\xBF\xCF\x82", "\xCF\x83\xCE\xBF\xCF\x83"}, /* Sos */
        {"\xD0\x99\xD0\xBE\xD0\x81", "\xD0\xB8\xD0\xBE\xD0\xB5"}, /* Jo Yo */
        {"e\xCC\x81", "e"},                 /* a combining accent */
        {"\xE3\x81\x8C", "\xE3\x81\x8B"},   /* ga: ka */
        {"\xE3\x83\x91", "\xE3\x83\x8F"},   /* PA: HA */
        {"\xE3\x81\xA5", "\xE3\x81\xA4"},   /* du: tu */
        {"\xE3\x81\xA3", "\xE3\x81\xA3"},   /* small tu stays */
        {"\xEF\xBC\xA1\xEF\xBC\x91", "a1"}, /* full width */
        {"a\xC2\xA0"
         "b\xE3\x80\x80"
         "c",
         "a b c"},
        {"\xFF\xC3", "  "}, /* no UTF-8 */
    };
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 256);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        fold_text(mo_span_cstr(rows[i].from), &b);
        if (strcmp(mo_buf_cstr(&b), rows[i].to) != 0)
            fail_msg("'%s' is '%s'", rows[i].from, mo_buf_cstr(&b));
    }
    mo_buf_fini(&b);
}

static void put_term(void *ctx, struct mo_span term, bool extra)
{
    struct mo_buf *b = ctx;

    if (b->len)
        mo_buf_putc(b, extra ? '+' : ' ');
    mo_buf_span(b, term);
}

static void test_words(void **state)
{
    static const struct {
        const char *text, *terms;
    } rows[] = {
        {"", ""},
        {"please show me the files", "file"},
        {"getRandomImage", "random imag+getrandomimag"},
        {"HTTPServer", "http server+httpserver"},
        {"GitHub", "git hub+github"},
        {"create_issue-now/then.done", "creat issu"},
        {"S3 md5 x 7", "s3 md5 7"},
        {"Caf\xC3\xA9s", "cafe"},
        {"running runner runs", "run runner run"},
        /* Japanese for "make a logo": pairs of neighbours */
        {"\xE3\x83\xAD\xE3\x82\xB4\xE3\x82\x92",
         "\xE3\x83\xAD\xE3\x82\xB3 \xE3\x82\xB3\xE3\x82\x92"},
        {"\xE7\x94\xBB", "\xE7\x94\xBB"},
    };
    struct mo_words *w = mo_words_new();
    struct mo_buf b;

    (void)state;
    assert_non_null(w);
    mo_buf_init(&b, 256);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_buf_reset(&b);
        mo_words_each(w, mo_span_cstr(rows[i].text), put_term, &b);
        if (strcmp(mo_buf_cstr(&b), rows[i].terms) != 0)
            fail_msg("'%s' is '%s'", rows[i].text, mo_buf_cstr(&b));
    }
    for (size_t i = 0; i < MO_COUNT(rows); i++) { /* first, then cached */
        mo_buf_reset(&b);
        mo_words_each(w, mo_span_cstr(rows[i].text), put_term, &b);
        check_row(rows[i].text, strcmp(mo_buf_cstr(&b), rows[i].terms) == 0);
    }
    mo_buf_reset(&b);
    mo_words_split(MO_SPAN("listAll_open-PRs"), &b);
    assert_string_equal(mo_buf_cstr(&b), "list all open p rs");
    mo_buf_fini(&b);
    mo_words_free(w);
}

struct gathered {
    char text[8][MO_WORDS_TERM_MAX + 1];
    size_t n[8], count;
};

static void gather(void *ctx, struct mo_span term, bool extra)
{
    struct gathered *g = ctx;
    size_t i = g->count++;

    (void)extra;
    assert_true(i < MO_COUNT(g->n) && term.n <= MO_WORDS_TERM_MAX);
    memcpy(g->text[i], term.p, term.n);
    g->n[i] = term.n;
}

/* A term is truncated to whole characters; a word that is too long for one run
 * becomes two. */
static void test_long_words(void **state)
{
    struct mo_words *w = mo_words_new();
    struct gathered g = {.count = 0};
    char text[400];

    (void)state;
    memset(text, 'k', sizeof(text));
    mo_words_each(w, mo_span(text, 300), gather, &g);
    assert_int_equal(g.count, 3); /* 128, 128 and 44 characters */
    assert_int_equal(g.n[0], MO_WORDS_TERM_MAX - 3);
    assert_int_equal(g.n[2], 44);
    g.count = 0;
    for (size_t i = 0; i < 100; i++) /* "ae" has no plain form: two bytes */
        memcpy(text + 2 * i, "\xC3\x86", 2);
    mo_words_each(w, mo_span(text, 200), gather, &g);
    assert_int_equal(g.count, 1);
    assert_int_equal(g.n[0], MO_WORDS_TERM_MAX - 2);
    assert_true(mo_utf8_valid(mo_span(g.text[0], g.n[0])));
    mo_words_free(w);
}

/* More words than the cache holds, twice: the stems must be the same. */
static void test_many_words(void **state)
{
    struct mo_words *kept = mo_words_new();

    (void)state;
    for (unsigned i = 0; i < 6000; i++) {
        struct mo_words *w = i % 97 ? NULL : mo_words_new();
        struct gathered a = {.count = 0}, b = {.count = 0};
        char text[32];
        int n = snprintf(text, sizeof(text), "runn%xings", (i % 3000) * 7919);

        mo_words_each(kept, mo_span(text, (size_t)n), gather, &a);
        assert_int_equal(a.count, 1);
        if (!w)
            continue;
        mo_words_each(w, mo_span(text, (size_t)n), gather, &b);
        assert_int_equal(a.n[0], b.n[0]);
        assert_memory_equal(a.text[0], b.text[0], a.n[0]);
        mo_words_free(w);
    }
    mo_words_free(kept);
}

static void test_verbs(void **state)
{
    (void)state;
    assert_int_equal(mo_verbs(MO_SPAN("createIssue"), 1),
                     mo_verbs(MO_SPAN("please generate it"), 6));
    assert_int_not_equal(mo_verbs(MO_SPAN("delete_all"), 1),
                         mo_verbs(MO_SPAN("create_all"), 1));
    assert_int_equal(mo_verbs(MO_SPAN("the quick fox"), 6), 0);
    assert_int_equal(mo_verbs(MO_SPAN("the quick delete"), 2), 0);
}

/* --- requests ------------------------------------------------------------- */

static struct mo_verbs_asked verbs_of(const char *request)
{
    return mo_verbs_asked(mo_span_cstr(request), 6, false);
}

/* An article decides whether something is opened or made. */
static void test_verbs_of_request(void **state)
{
    (void)state;
    assert_int_equal(verbs_of("open a bug report").kinds, MO_VERB_CREATE);
    assert_int_equal(verbs_of("open the bug report").kinds, MO_VERB_READ);
    assert_int_equal(verbs_of("file a complaint").kinds, MO_VERB_CREATE);
    assert_int_equal(verbs_of("the file of complaints").kinds, 0);
    assert_true(verbs_of("open an issue").against & MO_VERB_READ);
    assert_true(verbs_of("what did I create").against & MO_VERB_CREATE);
    assert_true(verbs_of("what did I create").question);
    assert_true(verbs_of("delete it").against & MO_VERB_CREATE);
    assert_int_equal(verbs_of("read it and send it").against, 0);
    assert_int_equal(verbs_of("go to sleep").kinds, 0);
    assert_true(mo_verbs_asked(MO_SPAN("open in a browser"), 6, true).kinds &
                MO_VERB_VISIT);
}

static const struct {
    const char *request, *text, *more;
    bool address, file;
} requests[] = {
    {"", "", "", false, false},
    {"open https://example.com/x?y", "open", "url page navigate", true, false},
    {"download www.example.net.", "download", "fetch url url page navigate",
     true, false},
    {"read \"notes.txt\"", "read", "file", false, true},
    {"write to ann@example.com", "write to ann@example.com", "", false, false},
    {"version 3.5 of Node.js", "version 3.5 of Node.js", "", false, false},
    {"a place to stay, cheap", "a listing cheap",
     "listing rental accommodation search", false, false},
    {"make\ta  folder", "make a folder", "directory", false, false},
};

static void test_read_request(void **state)
{
    struct mo_request q;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(requests); i++) {
        mo_request_read(mo_span_cstr(requests[i].request), &q);
        assert_int_equal(q.n, strlen(requests[i].text));
        assert_memory_equal(q.text, requests[i].text, q.n);
        assert_int_equal(q.nmore, strlen(requests[i].more));
        assert_memory_equal(q.more, requests[i].more, q.nmore);
        assert_int_equal(q.address, requests[i].address);
        assert_int_equal(q.file, requests[i].file);
    }
}

/* The longest request of the shortest words, and one long word. */
static void test_long_request(void **state)
{
    static char text[MO_ROUTE_TEXT_MAX];
    struct mo_request q;

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = i % 2 ? ' ' : 'a';
    mo_request_read(mo_span(text, sizeof(text)), &q);
    assert_int_equal(q.words, MO_ROUTE_TEXT_MAX / 2);
    assert_int_equal(q.n, MO_ROUTE_TEXT_MAX - 1);
    memset(text, 'x', sizeof(text));
    mo_request_read(mo_span(text, sizeof(text)), &q);
    assert_int_equal(q.n, MO_ROUTE_TEXT_MAX);
    for (size_t i = 0; i + 5 <= sizeof(text); i += 5)
        memcpy(text + i, "pods ", 5);
    mo_request_read(mo_span(text, sizeof(text)), &q);
    assert_true(q.nmore <= MO_REQUEST_MORE_MAX);
}

/* --- vectors ------------------------------------------------------------- */

#define ROWS 6

/* Each piece points along an axis of its own. */
static struct mo_span small_table(char *room)
{
    uint32_t head[2] = {ROWS, MO_VECTOR_DIM};
    char *p = room;

    memcpy(p, "MSV1", 4);
    memcpy(p + 4, head, sizeof(head));
    p += 12;
    for (unsigned i = 0; i < ROWS; i++, p += sizeof(float)) {
        float scale = 0.5f;

        memcpy(p, &scale, sizeof(scale));
    }
    memset(p, 0, (size_t)ROWS * MO_VECTOR_DIM);
    for (unsigned i = 0; i < ROWS; i++)
        p[(size_t)i * MO_VECTOR_DIM + i] = 100;
    return mo_span(room, (size_t)(p + ROWS * MO_VECTOR_DIM - room));
}

static const char small_pieces[] = "[UNK]\nfile\n##s\nimage\n!\nlogo\n";
#define PIECES MO_SPAN("[UNK]\nfile\n##s\nimage\n!\nlogo\n")
#define TABLE  (12 + ROWS * (sizeof(float) + MO_VECTOR_DIM))

static void test_vector(void **state)
{
    char room[TABLE];
    struct mo_vectors *v = mo_vectors_new(small_table(room), PIECES, NULL);
    struct mo_vector_sum sum = {.n = 0};
    struct mo_vector8 a, b;

    (void)state;
    assert_non_null(v);
    mo_vector_add(v, MO_SPAN("Files! [UNK] strange"), &sum);
    assert_int_equal(sum.n, 3); /* file, ##s, !  - brackets are no pieces */
    mo_vector_norm(&sum);
    assert_true(fabsf(sum.v[1] - sum.v[2]) < 1e-6f);
    assert_true(fabsf(sum.v[1] - 1 / sqrtf(3)) < 1e-5f);
    mo_vector_pack(sum.v, &a);
    assert_true(fabsf(mo_vector_dot(&a, &a) - 1) < 0.02f);
    sum = (struct mo_vector_sum){.n = 0};
    mo_vector_add(v, MO_SPAN("logo"), &sum);
    mo_vector_norm(&sum);
    mo_vector_pack(sum.v, &b);
    assert_true(fabsf(mo_vector_dot(&a, &b)) < 1e-6f);
    sum = (struct mo_vector_sum){.n = 0};
    mo_vector_norm(&sum); /* nothing at all */
    mo_vector_pack(sum.v, &b);
    assert_true(mo_vector_dot(&b, &b) == 0);
    mo_vectors_free(v);
}

/* However many pieces wait, each counts once, in its order. */
static void test_many_pieces(void **state)
{
    char room[TABLE], text[4096];
    struct mo_vectors *v = mo_vectors_new(small_table(room), PIECES, NULL);
    struct mo_vector_sum all = {.n = 0}, one = {.n = 0};
    size_t n = 0;

    (void)state;
    assert_non_null(v);
    for (unsigned i = 0; i < 600; i++) {
        struct mo_span word = i % 5 ? MO_SPAN("files ") : MO_SPAN("logo!");

        memcpy(text + n, word.p, word.n);
        n += word.n;
        mo_vector_add(v, word, &one);
    }
    mo_vector_add(v, mo_span(text, n), &all);
    assert_int_equal(all.n, 1200);
    assert_int_equal(one.n, 1200);
    assert_memory_equal(all.v, one.v, sizeof(all.v));
    /* a word of which a part is no piece, between others */
    mo_vector_add(v, MO_SPAN("file filesx logo"), &all);
    assert_int_equal(all.n, 1202);
    mo_vectors_free(v);
}

/* Every implementation gives bit-identical results. */
static void test_many_vectors(void **state)
{
    struct mo_vector8 many[11], a = {.scale = 0.5f};
    float out[MO_COUNT(many) + 1];

    (void)state;
    for (int i = 0; i < MO_VECTOR_DIM; i++)
        a.q[i] = (int8_t)(i % 3 == 0 ? -127 : 127 - i);
    for (size_t k = 0; k < MO_COUNT(many); k++) {
        many[k].scale = 0.01f * (float)k;
        for (size_t i = 0; i < MO_VECTOR_DIM; i++)
            many[k].q[i] = (int8_t)(k == 1 ? -127 : (int)(i * k * 37) % 127);
    }
    for (size_t n = 0; n <= MO_COUNT(many); n++) {
        out[n] = -7;
        mo_vector_dots(&a, many, n, out);
        assert_true(out[n] == -7);
        for (size_t k = 0; k < n; k++)
            assert_true(out[k] == mo_vector_dot(&a, &many[k]));
    }
}

static void test_bad_table(void **state)
{
    char room[TABLE + 1];
    struct mo_span t = small_table(room);
    struct mo_err e;

    (void)state;
    for (size_t n = 0; n < t.n; n += 7)
        assert_null(mo_vectors_new(mo_span_head(t, n), PIECES, &e));
    assert_null(mo_vectors_new(mo_span(room, t.n + 1), PIECES, &e));
    assert_null(mo_vectors_new(t, MO_SPAN("a\nb\n"), &e));
    assert_null(
        mo_vectors_new(t, mo_span(small_pieces, sizeof(small_pieces) - 2), &e));
    room[0] = 'X';
    assert_null(mo_vectors_new(t, PIECES, &e));
    assert_int_equal(e.code, MO_EPROTO);
}

/* --- servers and requests ------------------------------------------------ */

static const struct mo_span path_param[] = {{"path", 4}};
static const struct mo_route_tool file_tools[] = {
    {MO_SPAN("read_file"), MO_SPAN("Read the contents of a file"), path_param,
     1},
    {MO_SPAN("list_directory"), MO_SPAN("List what is in a folder"), path_param,
     1},
};
static const struct mo_route_tool image_tools[] = {
    {MO_SPAN("generate_image"), MO_SPAN("Make a picture or a logo from words"),
     NULL, 0},
};
static const struct mo_route_tool other_tools[] = {
    {MO_SPAN("read_file"), MO_SPAN("Read a file of a repository"), path_param,
     1},
    {MO_SPAN("createIssue"), MO_SPAN("Report a bug"), NULL, 0},
};
static const struct mo_route_server servers[] = {
    {MO_SPAN("files"),
     MO_SPAN("Files and folders here"),
     {NULL, 0},
     file_tools,
     MO_COUNT(file_tools)},
    {MO_SPAN("pictures"), MO_SPAN("Images"), MO_SPAN("drawing art"),
     image_tools, MO_COUNT(image_tools)},
    {MO_SPAN("hub"),
     MO_SPAN("Repositories"),
     {NULL, 0},
     other_tools,
     MO_COUNT(other_tools)},
};

static struct mo_route *all_servers(const struct mo_vectors *v)
{
    struct mo_route *r = mo_route_new(v);

    for (size_t i = 0; r && i < MO_COUNT(servers); i++)
        if (mo_route_put(r, &servers[i]) < 0) {
            mo_route_free(r);
            return NULL;
        }
    return r;
}

static const char *best(struct mo_route *r, const char *request,
                        struct mo_route_answer *a)
{
    static char text[128];

    assert_int_equal(mo_route_find(r, mo_span_cstr(request), 5, a), 0);
    if (a->n == 0)
        return "";
    (void)snprintf(text, sizeof(text), "%.*s/%.*s", (int)a->hits[0].server.n,
                   a->hits[0].server.p, (int)a->hits[0].tool.n,
                   a->hits[0].tool.p);
    return text;
}

static void test_find(void **state)
{
    static const struct {
        const char *request, *tool;
        bool named;
    } rows[] = {
        {"generate a logo", "pictures/generate_image", false},
        {"some drawing, please", "pictures/generate_image", false},
        {"what is in that folder?", "files/list_directory", false},
        {"report a bug", "hub/createIssue", false},
        {"call createIssue.", "hub/createIssue", true},
        {"use hub/read_file now", "hub/read_file", true},
        {"files__list_directory", "files/list_directory", true},
        {"hub:read_file", "hub/read_file", true},
        {"HUB_Read_File", "hub/read_file", true},
        {"a_hub/read_file list_directory", "files/list_directory", true},
        {"(use hub.CREATEISSUE)", "hub/createIssue", true},
        {"hub___createIssue", "hub/createIssue", false},
        {"hubcreateIssue", "hub/createIssue", false},
    };
    struct mo_route *r = all_servers(NULL);
    struct mo_route_answer a;

    (void)state;
    assert_non_null(r);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        const char *is = best(r, rows[i].request, &a);

        if (strcmp(is, rows[i].tool) != 0)
            fail_msg("'%s' found '%s'", rows[i].request, is);
        check_row(rows[i].request, a.named == rows[i].named);
        check_row(rows[i].request,
                  a.hits[0].confidence > 0 && a.hits[0].confidence <= 1);
        for (size_t k = 1; k < a.n; k++)
            check_row(rows[i].request, a.hits[k - 1].score >= a.hits[k].score);
    }
    (void)best(r, "qwxzy plugh", &a);
    assert_true(a.hits[0].confidence < MO_ROUTE_MAYBE);
    mo_route_free(r);
}

/* One name on two servers: both are meant. */
static void test_named_twice(void **state)
{
    struct mo_route *r = all_servers(NULL);
    struct mo_route_answer a;

    (void)state;
    assert_int_equal(mo_route_find(r, MO_SPAN("Read_File"), 5, &a), 0);
    assert_true(a.named);
    assert_true(mo_span_is(a.hits[0].tool, "read_file"));
    assert_true(mo_span_is(a.hits[1].tool, "read_file"));
    assert_false(mo_span_eq(a.hits[0].server, a.hits[1].server));
    assert_true(a.hits[1].score > a.hits[2].score + 5);
    mo_route_free(r);
}

/* Requests that are not sentences. Only the first bytes of a long one count,
 * and a repeated word counts once. */
static void test_odd_requests(void **state)
{
    static char text[64 * 1024];
    struct mo_route *r = all_servers(NULL);
    struct mo_route_answer a, b;

    (void)state;
    assert_int_equal(mo_route_find(r, mo_span(NULL, 0), 5, &a), 0);
    assert_int_equal(a.n, 5);
    assert_true(a.hits[0].words == 0 && !a.named);
    assert_int_equal(mo_route_find(r, MO_SPAN("logo"), 0, &a), 0);
    assert_int_equal(a.n, 0);
    assert_int_equal(a.nservers, 3);
    assert_int_equal(mo_route_find(r, MO_SPAN("logo"), 5, &a), 0);
    for (size_t i = 0; i + 5 <= sizeof(text); i += 5)
        memcpy(text + i, "logo ", 5);
    assert_int_equal(mo_route_find(r, mo_span(text, sizeof(text)), 5, &b), 0);
    for (size_t i = 0; i < 5; i++) {
        assert_true(mo_span_eq(a.hits[i].tool, b.hits[i].tool));
        assert_true(a.hits[i].score == b.hits[i].score);
    }
    memset(text, '_', sizeof(text)); /* ends of a name, all of them */
    assert_int_equal(mo_route_find(r, mo_span(text, sizeof(text)), 5, &b), 0);
    assert_false(b.named);
    memset(text, 'x', MO_ROUTE_TEXT_MAX);
    memcpy(text + MO_ROUTE_TEXT_MAX, " folder", 7);
    assert_int_equal(mo_route_find(r, mo_span(text, sizeof(text)), 5, &b), 0);
    assert_true(b.hits[0].words == 0);
    mo_route_free(r);
}

#define CROWD 60

/* Servers with 0 to 6 tools, many of them equal. */
static struct mo_route *crowd(const struct mo_vectors *v)
{
    static const char *const words[] = {"file",  "image", "logo",
                                        "files", "bug",   "folder"};
    struct mo_route *r = mo_route_new(v);

    for (unsigned s = 0; s < CROWD; s++) {
        char names[8][24], name[24];
        struct mo_route_tool tools[8];
        struct mo_route_server it = {.tools = tools, .ntools = s * 5 % 7};

        for (unsigned t = 0; t < it.ntools; t++) {
            int n = snprintf(names[t], sizeof(names[t]), "%s_%u_%s",
                             words[(s + t) % 6], t, words[s * t % 6]);

            tools[t] = (struct mo_route_tool){
                .name = mo_span(names[t], (size_t)n),
                .description = mo_span_cstr(words[(s * 3 + t) % 6])};
        }
        it.name = mo_span(name, (size_t)snprintf(name, sizeof(name), "s%u", s));
        it.description = mo_span_cstr(words[s % 6]);
        assert_int_equal(mo_route_put(r, &it), 0);
    }
    return r;
}

static bool is_same_hit(const struct mo_route_hit *a,
                        const struct mo_route_hit *b)
{
    return mo_span_eq(a->server, b->server) && mo_span_eq(a->tool, b->tool) &&
           a->score == b->score && a->confidence == b->confidence &&
           a->words == b->words && a->meaning == b->meaning;
}

/* The first few of many results: skipping low scores must not change them. */
static void test_few_of_many(void **state)
{
    static const char *const asked[] = {"file",       "a logo of files",
                                        "folder bug", "image_1_logo",
                                        "",           "nothing known"};
    char room[TABLE];
    struct mo_vectors *v = mo_vectors_new(small_table(room), PIECES, NULL);
    struct mo_route *r = crowd(v);
    struct mo_route_answer all, few;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(asked); i++) {
        struct mo_span q = mo_span_cstr(asked[i]);

        assert_int_equal(mo_route_find(r, q, 50, &all), 0);
        assert_int_equal(all.n, 50);
        for (size_t limit = 1; limit <= 50; limit++) {
            assert_int_equal(mo_route_find(r, q, limit, &few), 0);
            assert_int_equal(few.n, limit);
            assert_int_equal(few.nservers, MO_ROUTE_TOP_MAX);
            for (size_t k = 0; k < limit; k++)
                check_row(asked[i], is_same_hit(&all.hits[k], &few.hits[k]));
            for (size_t k = 0; k < MO_ROUTE_TOP_MAX; k++)
                check_row(asked[i],
                          is_same_hit(&all.servers[k], &few.servers[k]));
        }
        for (size_t k = 1; k < all.n; k++)
            check_row(asked[i], all.hits[k].score <= all.hits[k - 1].score);
        check_row(asked[i], all.hits[0].score >= all.servers[1].score);
    }
    mo_route_free(r);
    mo_vectors_free(v);
}

static void test_change(void **state)
{
    struct mo_route *r = all_servers(NULL);
    struct mo_route_server other = servers[1];
    struct mo_route_answer a;

    (void)state;
    assert_string_equal(best(r, "make a logo", &a), "pictures/generate_image");
    mo_route_drop(r, MO_SPAN("pictures"));
    mo_route_drop(r, MO_SPAN("nobody"));
    assert_int_equal(mo_route_find(r, MO_SPAN("logo"), 50, &a), 0);
    assert_int_equal(a.n, 4);
    for (size_t i = 0; i < a.n; i++)
        assert_false(mo_span_is(a.hits[i].server, "pictures"));
    assert_int_equal(mo_route_put(r, &other), 0);
    assert_string_equal(best(r, "make a logo", &a), "pictures/generate_image");
    other.tools = other_tools; /* the same server with other tools */
    other.ntools = 1;
    assert_int_equal(mo_route_put(r, &other), 0);
    assert_int_equal(mo_route_find(r, MO_SPAN("logo"), 50, &a), 0);
    assert_int_equal(a.n, 5);
    assert_int_equal(mo_route_stats(r).servers, 3);
    assert_string_equal(best(r, "call pictures.read_file", &a),
                        "pictures/read_file");
    for (size_t i = 0; i < MO_COUNT(servers); i++)
        mo_route_drop(r, servers[i].name);
    assert_string_equal(best(r, "make a logo", &a), "");
    assert_int_equal(a.nservers, 0);
    mo_route_free(r);
}

/* Built in any order, with other servers in between, the answers are the
 * same. */
static void test_same_index(void **state)
{
    static const char *const asked[] = {"make a logo", "read a file", "bug",
                                        "folder path contents"};
    struct mo_route *a = all_servers(NULL), *b = mo_route_new(NULL);
    struct mo_route_answer x, y;

    (void)state;
    for (size_t i = 0; i < MO_COUNT(servers); i++) {
        struct mo_route_server s = servers[i];

        s.ntools = 0;
        assert_int_equal(mo_route_put(b, &s), 0);
        assert_int_equal(mo_route_find(b, MO_SPAN("x"), 1, &y), 0);
    }
    for (size_t i = MO_COUNT(servers); i-- > 0;)
        assert_int_equal(mo_route_put(b, &servers[i]), 0);
    for (size_t i = 0; i < MO_COUNT(asked); i++) {
        assert_int_equal(mo_route_find(a, mo_span_cstr(asked[i]), 1, &x), 0);
        assert_int_equal(mo_route_find(b, mo_span_cstr(asked[i]), 1, &y), 0);
        assert_true(fabsf(x.hits[0].score - y.hits[0].score) < 1e-5f);
        assert_true(mo_span_eq(x.hits[0].tool, y.hits[0].tool));
    }
    mo_route_free(a);
    mo_route_free(b);
}

static void live_and_change(void *ctx)
{
    struct mo_vectors *v = mo_vectors_new(*(struct mo_span *)ctx, PIECES, NULL);
    struct mo_route *r = all_servers(v);
    struct mo_route_answer a;

    if (r) {
        (void)mo_route_find(r, MO_SPAN("make a logo"), 3, &a);
        (void)mo_route_put(r, &servers[0]);
        mo_route_drop(r, servers[1].name);
        if (mo_route_find(r, MO_SPAN("read_file"), 3, &a) == 0)
            for (size_t i = 0; i < a.n; i++)
                assert_false(mo_span_is(a.hits[i].server, "pictures"));
    }
    mo_route_free(r);
    mo_vectors_free(v);
}

static void test_torture(void **state)
{
    char room[TABLE];
    struct mo_span t = small_table(room);

    (void)state;
    torture(live_and_change, &t);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fold),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_many_words),
        cmocka_unit_test(test_many_pieces),
        cmocka_unit_test(test_named_twice),
        cmocka_unit_test(test_odd_requests),
        cmocka_unit_test(test_few_of_many),
        cmocka_unit_test(test_verbs),
        cmocka_unit_test(test_verbs_of_request),
        cmocka_unit_test(test_read_request),
        cmocka_unit_test(test_long_request),
        cmocka_unit_test(test_vector),
        cmocka_unit_test(test_many_vectors),
        cmocka_unit_test(test_bad_table),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_change),
        cmocka_unit_test(test_same_index),
        cmocka_unit_test(test_torture),
    };

    return cmocka_run_group_tests_name("route", tests, NULL, NULL);
}
