#include "mo_test.h"

#include "codec/http/ws.h"
#include "codec/text/utf8.h"

#define SMALL_MAX ((size_t)300)

static const unsigned char KEY[4] = {0x37, 0xfa, 0x21, 0x3d};

/* --- rows ---------------------------------------------------------------- */

/* Input as a server sends it; a client's masked version is made from it. The
 * trace: T/B/i/o + [data] for text, binary, ping, pong; C<code>[reason];
 * E<close code>. */
#define ROW(name, in, trace)                                                   \
    {                                                                          \
        name, {"" in, sizeof(in) - 1}, trace                                   \
    }

static const struct row {
    const char *name;
    struct mo_span in;
    const char *trace;
} rows[] = {
    ROW("nothing", "", ""),
    ROW("half a header", "\x81", ""),
    ROW("empty text", "\x81\x00", "T[]"),
    ROW("empty binary", "\x82\x00", "B[]"),
    ROW("text", "\x81\x05hello", "T[hello]"),
    ROW("binary", "\x82\x03\x00\xff\x80", "B[00ff80]"),
    ROW("two texts", "\x81\x02hi\x81\x03you", "T[hi]T[you]"),
    ROW("text not all there", "\x81\x05hell", ""),
    /* control */
    ROW("empty ping", "\x89\x00", "i[]"),
    ROW("ping",
        "\x89\x03"
        "abc",
        "i[abc]"),
    ROW("pong", "\x8a\x01x", "o[x]"),
    ROW("ping of 126", "\x89\x7e\x00\x7e", "E1002"),
    ROW("ping of 127", "\x89\x7f\x00\x00\x00\x00\x00\x01\x00\x00", "E1002"),
    ROW("fragmented ping", "\x09\x00", "E1002"),
    ROW("fragmented close", "\x08\x00", "E1002"),
    /* fragments */
    ROW("two fragments",
        "\x01\x03"
        "abc\x80\x02"
        "de",
        "T[abcde]"),
    ROW("binary fragments", "\x02\x01\x01\x00\x01\x02\x80\x01\x03",
        "B[010203]"),
    ROW("all fragments empty", "\x01\x00\x00\x00\x80\x00", "T[]"),
    ROW("empty first, full last", "\x01\x00\x80\x02ok", "T[ok]"),
    ROW("full first, empty last", "\x01\x02ok\x80\x00", "T[ok]"),
    ROW("controls in between",
        "\x01\x01"
        "a\x89\x02pi\x00\x01"
        "b\x8a\x01p\x80\x01"
        "c",
        "i[pi]o[p]T[abc]"),
    ROW("close in between",
        "\x01\x01"
        "a\x88\x02\x03\xe8",
        "C1000[]"),
    ROW("continuation of nothing",
        "\x80\x01"
        "a",
        "E1002"),
    ROW("continuation of a finished one",
        "\x81\x01"
        "a\x80\x01"
        "b",
        "T[a]E1002"),
    ROW("text in a text",
        "\x01\x01"
        "a\x81\x01"
        "b",
        "E1002"),
    ROW("binary in a text",
        "\x01\x01"
        "a\x02\x01"
        "b",
        "E1002"),
    ROW("a text after a gathered one",
        "\x01\x01"
        "a\x80\x01"
        "b\x81\x01"
        "c",
        "T[ab]T[c]"),
    /* reserved */
    ROW("rsv1", "\xc1\x00", "E1002"),
    ROW("rsv2", "\xa1\x00", "E1002"),
    ROW("rsv3", "\x91\x00", "E1002"),
    ROW("rsv1 on a ping", "\xc9\x00", "E1002"),
    ROW("rsv1 on a continuation", "\x01\x00\xc0\x00", "E1002"),
    ROW("opcode 3", "\x83\x00", "E1002"),
    ROW("opcode 4", "\x84\x00", "E1002"),
    ROW("opcode 5", "\x85\x00", "E1002"),
    ROW("opcode 6", "\x86\x00", "E1002"),
    ROW("opcode 7", "\x87\x00", "E1002"),
    ROW("opcode 11", "\x8b\x00", "E1002"),
    ROW("opcode 12", "\x8c\x00", "E1002"),
    ROW("opcode 13", "\x8d\x00", "E1002"),
    ROW("opcode 14", "\x8e\x00", "E1002"),
    ROW("opcode 15", "\x8f\x00", "E1002"),
    /* lengths */
    ROW("125 in 16 bits", "\x82\x7e\x00\x7d", "E1002"),
    ROW("0 in 16 bits", "\x82\x7e\x00\x00", "E1002"),
    ROW("65535 in 64 bits", "\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff",
        "E1002"),
    ROW("2^63", "\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", "E1002"),
    ROW("2^64 - 1", "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff", "E1002"),
    ROW("2^63 - 1", "\x82\x7f\x7f\xff\xff\xff\xff\xff\xff\xff", "E1009"),
    ROW("2^31", "\x82\x7f\x00\x00\x00\x00\x80\x00\x00\x00", "E1009"),
    ROW("65536", "\x81\x7f\x00\x00\x00\x00\x00\x01\x00\x00", "E1009"),
    ROW("one over the cap", "\x82\x7e\x01\x2d", "E1009"),
    ROW("two fragments over the cap",
        "\x02\x01"
        "a\x80\x7e\x01\x2c",
        "E1009"),
    /* close */
    ROW("empty close", "\x88\x00", "C1005[]"),
    ROW("close of one byte", "\x88\x01\x03", "E1002"),
    ROW("close 1000", "\x88\x02\x03\xe8", "C1000[]"),
    ROW("close with reason",
        "\x88\x05\x03\xe9"
        "bye",
        "C1001[bye]"),
    ROW("close with utf-8", "\x88\x04\x0f\xa0\xc3\xa9", "C4000[\xc3\xa9]"),
    ROW("close with bad utf-8", "\x88\x03\x03\xe8\xff", "E1007"),
    ROW("close with half a character", "\x88\x03\x03\xe8\xc3", "E1007"),
    ROW("close 1005 and bad utf-8", "\x88\x03\x03\xed\xff", "E1002"),
    ROW("nothing after a close", "\x88\x00\x81\x02hi\x88\x00", "C1005[]"),
    ROW("nonsense after a close", "\x88\x00\xff\xff\xff", "C1005[]"),
    ROW("nothing after an error", "\xff\x00\x81\x02hi", "E1002"),
    /* text */
    ROW("utf-8", "\x81\x09\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
        "T[\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80]"),
    ROW("character cut by fragments", "\x01\x01\xe2\x00\x01\x82\x80\x01\xac",
        "T[\xe2\x82\xac]"),
    ROW("cut character, a ping inside it",
        "\x01\x02\xf0\x9f\x89\x01\xff\x80\x02\x98\x80",
        "i[ff]T[\xf0\x9f\x98\x80]"),
    ROW("half a character", "\x81\x02\xe2\x82", "E1007"),
    ROW("half a character, then an empty last", "\x01\x02\xe2\x82\x80\x00",
        "E1007"),
    ROW("bad in the first fragment",
        "\x01\x02"
        "a\xff",
        "E1007"),
    ROW("bad in the last fragment",
        "\x01\x01"
        "a\x80\x01\x80",
        "E1007"),
    ROW("overlong", "\x81\x02\xc0\xaf", "E1007"),
    ROW("surrogate", "\x81\x03\xed\xa0\x80", "E1007"),
    ROW("above U+10FFFF", "\x81\x04\xf4\x90\x80\x80", "E1007"),
    ROW("bad bytes are fine in binary", "\x82\x02\xc0\xaf", "B[c0af]"),
    ROW("bad text after a good one",
        "\x81\x01"
        "a\x81\x01\xff",
        "T[a]E1007"),
    ROW("a half-way state does not leak",
        "\x02\x01\xe2\x80\x00\x81\x01"
        "a",
        "B[e2]T[a]"),
};

/* --- running ------------------------------------------------------------- */

static void note(struct mo_buf *t, const struct mo_ws *w, enum mo_ws_event ev,
                 struct mo_span d)
{
    static const char letters[] = {
        [MO_WS_TEXT] = 'T',
        [MO_WS_BINARY] = 'B',
        [MO_WS_PING] = 'i',
        [MO_WS_PONG] = 'o',
    };

    if (ev == MO_WS_ERROR)
        mo_buf_printf(t, "E%u", w->close_code);
    else if (ev == MO_WS_CLOSE)
        mo_buf_printf(t, "C%u", w->peer_code);
    else
        mo_buf_putc(t, letters[ev]);
    if (ev == MO_WS_ERROR)
        return;
    mo_buf_putc(t, '[');
    if (ev != MO_WS_BINARY && mo_utf8_valid(d)) {
        mo_buf_span(t, d);
    } else {
        for (size_t i = 0; i < d.n; i++)
            mo_buf_printf(t, "%02x", (unsigned char)d.p[i]);
    }
    mo_buf_putc(t, ']');
}

/* Feed one piece from a heap block of its exact size, so that a byte too far
 * is seen, and note what comes out. */
static void feed(struct mo_ws *w, struct mo_span piece, struct mo_buf *t)
{
    char *copy = test_malloc(piece.n ? piece.n : 1);
    struct mo_ws_in in = {copy, piece.n};
    enum mo_ws_event ev;
    struct mo_span data;
    struct mo_err e;

    if (piece.n)
        memcpy(copy, piece.p, piece.n);
    do {
        mo_err_clear(&e);
        ev = mo_ws_next(w, &in, &data, &e);
        if (ev != MO_WS_MORE)
            note(t, w, ev, data);
        assert_true((ev == MO_WS_ERROR) == (e.code != 0));
        assert_true(ev != MO_WS_ERROR || data.n == 0);
    } while (ev != MO_WS_MORE);
    assert_int_equal(in.n, 0);
    test_free(copy);
}

/* The same frames as a client would send them. Bytes that are cut off stay
 * cut off. */
static void mask_stream(struct mo_span s, const unsigned char key[4],
                        struct mo_buf *out)
{
    while (s.n >= 2) {
        unsigned len7 = (unsigned char)s.p[1] & 0x7f;
        size_t ext = len7 == 127 ? 8 : len7 == 126 ? 2 : 0;
        uint64_t len = ext ? 0 : len7;
        struct mo_span head = mo_span_head(s, 2 + ext);
        struct mo_span body = mo_span_skip(s, 2 + ext);

        for (size_t i = 2; i < head.n; i++)
            len = len << 8 | (unsigned char)head.p[i];
        mo_buf_span(out, head);
        out->p[out->len - head.n + 1] |= (char)0x80;
        if (head.n < 2 + ext)
            return;
        mo_buf_put(out, key, 4);
        body = mo_span_head(body, len < body.n ? (size_t)len : body.n);
        for (size_t i = 0; i < body.n; i++)
            mo_buf_putc(out, (char)(body.p[i] ^ key[i & 3]));
        s = mo_span_skip(s, head.n + body.n);
    }
    mo_buf_span(out, s);
}

static void run_cut(const char *name, enum mo_ws_role role, struct mo_span in,
                    size_t cut, const char *want)
{
    struct mo_ws w;
    struct mo_buf t;

    mo_ws_init(&w, role, SMALL_MAX);
    mo_buf_init(&t, 4096);
    feed(&w, mo_span_head(in, cut), &t);
    feed(&w, mo_span_skip(in, cut), &t);
    if (strcmp(mo_buf_cstr(&t), want) != 0)
        fail_msg("row '%s' (%s) cut at %zu: '%s', not '%s'", name,
                 role == MO_WS_SERVER ? "server" : "client", cut,
                 mo_buf_cstr(&t), want);
    mo_buf_fini(&t);
    mo_ws_fini(&w);
}

static void run_bytes(const char *name, enum mo_ws_role role, struct mo_span in,
                      const char *want)
{
    struct mo_ws w;
    struct mo_buf t;

    mo_ws_init(&w, role, SMALL_MAX);
    mo_buf_init(&t, 4096);
    for (size_t i = 0; i < in.n; i++)
        feed(&w, mo_span(in.p + i, 1), &t);
    check_row(name, strcmp(mo_buf_cstr(&t), want) == 0);
    mo_buf_fini(&t);
    mo_ws_fini(&w);
}

static void run_row(const struct row *r, enum mo_ws_role role,
                    struct mo_span in)
{
    for (size_t cut = 0; cut <= in.n; cut++)
        run_cut(r->name, role, in, cut, r->trace);
    run_bytes(r->name, role, in, r->trace);
}

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_buf masked;

        run_row(&rows[i], MO_WS_CLIENT, rows[i].in);
        mo_buf_init(&masked, 4096);
        mask_stream(rows[i].in, KEY, &masked);
        run_row(&rows[i], MO_WS_SERVER, mo_buf_view(&masked));
        mo_buf_reset(&masked);
        mask_stream(rows[i].in, (const unsigned char[4]){0}, &masked);
        run_row(&rows[i], MO_WS_SERVER, mo_buf_view(&masked));
        mo_buf_fini(&masked);
    }
}

static void test_masking_is_a_duty(void **state)
{
    static const struct mo_span bare = {"\x81\x02hi", 4};
    static const struct mo_span masked = {"\x81\x82\x01\x02\x03\x04hi", 8};

    (void)state;
    for (size_t cut = 0; cut <= bare.n; cut++)
        run_cut("unmasked to a server", MO_WS_SERVER, bare, cut, "E1002");
    for (size_t cut = 0; cut <= masked.n; cut++)
        run_cut("masked to a client", MO_WS_CLIENT, masked, cut, "E1002");
}

/* --- close codes --------------------------------------------------------- */

static bool sendable(unsigned code)
{
    static const struct {
        unsigned from, to;
    } ok[] = {{1000, 1003}, {1007, 1014}, {3000, 4999}};

    for (size_t i = 0; i < MO_COUNT(ok); i++) {
        if (code >= ok[i].from && code <= ok[i].to)
            return true;
    }
    return false;
}

static void test_every_close_code(void **state)
{
    (void)state;
    for (unsigned code = 0; code <= UINT16_MAX; code++) {
        char raw[4] = {(char)0x88, 2, (char)(code >> 8), (char)code};
        struct mo_ws_in in = {raw, sizeof(raw)};
        enum mo_ws_event ev;
        struct mo_span data;
        struct mo_ws w;

        mo_ws_init(&w, MO_WS_CLIENT, SMALL_MAX);
        ev = mo_ws_next(&w, &in, &data, NULL);
        assert_int_equal(ev, sendable(code) ? MO_WS_CLOSE : MO_WS_ERROR);
        assert_int_equal(w.close_code, sendable(code) ? code : 1002);
        if (sendable(code))
            assert_int_equal(w.peer_code, code);
        mo_ws_fini(&w);
    }
}

/* --- lengths and masks --------------------------------------------------- */

static void fill(char *p, size_t n)
{
    uint32_t x = (uint32_t)n + 1;

    for (size_t i = 0; i < n; i++) {
        x = x * 1664525 + 1013904223;
        p[i] = (char)(x >> 24);
    }
}

/* Every length that changes the header's form, through our own writer, in
 * both directions, cut at each byte of the header and in the middle. */
static void round_trip(enum mo_ws_role from, size_t n, size_t cut)
{
    struct mo_ws w;
    struct mo_buf b;
    char *payload = test_malloc(n + 1);
    struct mo_span data = {0};
    struct mo_ws_in in;
    enum mo_ws_event ev;

    fill(payload, n);
    mo_buf_init(&b, n + MO_WS_HEAD_MAX);
    mo_ws_init(&w, from == MO_WS_CLIENT ? MO_WS_SERVER : MO_WS_CLIENT, n);
    assert_int_equal(
        mo_ws_put(&b, from, MO_WS_OP_BINARY, true, mo_span(payload, n)), 0);
    if (cut < b.len) {
        in = (struct mo_ws_in){b.p, cut};
        assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_MORE);
        assert_int_equal(in.n, 0);
        in = (struct mo_ws_in){b.p + cut, b.len - cut};
        ev = mo_ws_next(&w, &in, &data, NULL);
        assert_int_equal(ev, MO_WS_BINARY);
        assert_int_equal(in.n, 0);
        assert_true(mo_span_eq(data, mo_span(payload, n)));
    }
    mo_ws_fini(&w);
    mo_buf_fini(&b);
    test_free(payload);
}

static void test_lengths(void **state)
{
    static const size_t lens[] = {0,   1,   2,     7,     8,     31,    32,
                                  33,  63,  124,   125,   126,   127,   255,
                                  256, 300, 65534, 65535, 65536, 65537, 200000};

    (void)state;
    for (size_t i = 0; i < MO_COUNT(lens); i++) {
        for (size_t cut = 0; cut < MO_WS_HEAD_MAX + 40; cut++) {
            round_trip(MO_WS_CLIENT, lens[i], cut);
            round_trip(MO_WS_SERVER, lens[i], cut);
        }
        round_trip(MO_WS_CLIENT, lens[i], lens[i] / 2 + 14);
        round_trip(MO_WS_SERVER, lens[i], lens[i] / 2 + 10);
    }
}

/* --- memory -------------------------------------------------------------- */

static void test_whole_frame_is_not_copied(void **state)
{
    char raw[] = "\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58"
                 "\x89\x80\x00\x00\x00\x00";
    struct mo_ws_in in = {raw, sizeof(raw) - 1};
    struct mo_span data;
    struct mo_ws w;

    (void)state;
    mo_ws_init(&w, MO_WS_SERVER, SMALL_MAX);
    mo_mem_fail_at(0, false);
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_TEXT);
    assert_ptr_equal(data.p, raw + 6);
    assert_true(mo_span_is(data, "Hello"));
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_PING);
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_MORE);
    assert_int_equal(mo_mem_count(), 0);
    mo_ws_fini(&w);
}

static void test_claims_are_not_believed(void **state)
{
    char big[] = "\x82\x7f\x00\x00\x00\x00\x40\x00\x00\x00x"; /* 1 GiB */
    struct mo_ws_in in = {big, sizeof(big) - 1};
    struct mo_span data;
    struct mo_ws w;

    (void)state;
    mo_ws_init(&w, MO_WS_CLIENT, (size_t)1 << 30);
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_MORE);
    assert_true(w.msg.cap <= 64);
    mo_ws_fini(&w);

    mo_ws_init(&w, MO_WS_CLIENT, ((size_t)1 << 30) - 1);
    in = (struct mo_ws_in){big, sizeof(big) - 1};
    mo_mem_fail_at(0, false);
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_ERROR);
    assert_int_equal(w.close_code, 1009);
    assert_int_equal(mo_mem_count(), 0);
    mo_ws_fini(&w);
}

static void test_idle_holds_nothing(void **state)
{
    static const struct mo_span in = {"\x01\x01"
                                      "a\x80\x01"
                                      "b\x89\x04pi",
                                      10};
    struct mo_buf t;
    struct mo_ws w;

    (void)state;
    assert_true(sizeof(struct mo_ws) <= 128);
    mo_buf_init(&t, 100);
    mo_ws_init(&w, MO_WS_CLIENT, SMALL_MAX);
    feed(&w, mo_span_head(in, 6), &t);
    assert_int_equal(w.msg.cap, 0);
    feed(&w, mo_span_skip(in, 6), &t);
    assert_true(w.msg.cap > 0); /* half a ping */
    feed(&w, mo_span("ng", 2), &t);
    assert_int_equal(w.msg.cap, 0);
    assert_string_equal(mo_buf_cstr(&t), "T[ab]i[ping]");
    mo_ws_fini(&w);
    mo_buf_fini(&t);
}

/* A million one-byte fragments: one message, a buffer that doubles, and no
 * more work than a million header reads. */
static void test_a_million_fragments(void **state)
{
    enum { COUNT = 1000000 };
    struct mo_span data;
    struct mo_ws w;

    (void)state;
    mo_ws_init(&w, MO_WS_CLIENT, COUNT);
    mo_mem_fail_at(0, false);
    for (int i = 0; i < COUNT; i++) {
        char raw[3] = {i == 0 ? 1 : 0, 1, 'x'};
        struct mo_ws_in in = {raw, 3};

        assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_MORE);
    }
    for (int i = 0; i < COUNT; i++) { /* empty ones add nothing */
        char raw[2] = {0, 0};
        struct mo_ws_in in = {raw, 2};

        assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_MORE);
    }
    assert_int_equal(w.msg.len, COUNT);
    assert_true(w.msg.cap <= 2 * COUNT);
    assert_true(mo_mem_count() <= 20);
    {
        char raw[3] = {0, 1, 'x'}; /* one too many */
        struct mo_ws_in in = {raw, 3};

        assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_ERROR);
        assert_int_equal(w.close_code, 1009);
    }
    mo_ws_fini(&w);
}

/* A wrong byte is refused when it comes, not when its frame is complete. */
static void test_text_fails_fast(void **state)
{
    char raw[] = "\x81\x7e\x01\x00"
                 "abc\xff";
    struct mo_ws_in in = {raw, sizeof(raw) - 1};
    struct mo_span data;
    struct mo_ws w;

    (void)state;
    mo_ws_init(&w, MO_WS_CLIENT, SMALL_MAX);
    assert_int_equal(mo_ws_next(&w, &in, &data, NULL), MO_WS_ERROR);
    assert_int_equal(w.close_code, 1007);
    mo_ws_fini(&w);
}

/* Everything that gathers, with memory running out: the connection ends with
 * 1011 or the message is right. */
static void starve(void *ctx)
{
    static const struct mo_span pieces[] = {
        {"\x01\x02he\x89\x04pi", 8},
        {"ng\x00\x02ll", 6},
        {"\x80\x01o\x82\x7e\x00\x80", 7},
    };
    struct mo_buf t, out;
    struct mo_ws w;

    (void)ctx;
    mo_buf_init(&t, 1000);
    mo_buf_init(&out, 1000);
    mo_ws_init(&w, MO_WS_CLIENT, SMALL_MAX);
    for (size_t i = 0; i < MO_COUNT(pieces); i++)
        feed(&w, pieces[i], &t);
    for (int i = 0; i < 4; i++)
        feed(&w, MO_SPAN("0123456789abcdef0123456789abcdef"), &t);
    if (!mo_buf_err(&t)) {
        if (w.close_code)
            assert_int_equal(w.close_code, 1011);
        else
            assert_true(
                mo_span_starts(mo_buf_view(&t), MO_SPAN("i[ping]T[hello]B[")));
    }
    if (mo_ws_put(&out, MO_WS_CLIENT, MO_WS_OP_TEXT, true, MO_SPAN("hi")) == 0)
        assert_int_equal(out.len, 8);
    else
        assert_int_equal(mo_buf_err(&out), MO_ENOMEM);
    mo_ws_fini(&w);
    mo_buf_fini(&out);
    mo_buf_fini(&t);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    torture(starve, NULL);
}

/* --- sending ------------------------------------------------------------- */

static void test_put(void **state)
{
    static const struct {
        const char *name;
        size_t n;
        struct mo_span head;
    } cases[] = {
        {"short", 125, {"\x82\x7d", 2}},
        {"16 bits", 126, {"\x82\x7e\x00\x7e", 4}},
        {"most of 16 bits", 65535, {"\x82\x7e\xff\xff", 4}},
        {"64 bits", 65536, {"\x82\x7f\x00\x00\x00\x00\x00\x01\x00\x00", 10}},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        char *payload = test_calloc(1, cases[i].n);
        unsigned char head[10];
        struct mo_buf b;

        mo_buf_init(&b, 100000);
        check_row(cases[i].name,
                  mo_ws_put(&b, MO_WS_SERVER, MO_WS_OP_BINARY, true,
                            mo_span(payload, cases[i].n)) == 0);
        check_row(cases[i].name, b.len == cases[i].head.n + cases[i].n);
        check_row(cases[i].name,
                  mo_span_starts(mo_buf_view(&b), cases[i].head));
        check_row(cases[i].name,
                  mo_ws_server_head(head, MO_WS_OP_BINARY, cases[i].n) ==
                      cases[i].head.n);
        check_row(cases[i].name,
                  memcmp(head, cases[i].head.p, cases[i].head.n) == 0);
        mo_buf_fini(&b);
        test_free(payload);
    }
}

static void test_put_masks_anew(void **state)
{
    struct mo_buf b;
    bool differ = false;

    (void)state;
    mo_buf_init(&b, 1000);
    for (int i = 0; i < 10; i++)
        mo_ws_put(&b, MO_WS_CLIENT, MO_WS_OP_TEXT, false, MO_SPAN("same"));
    assert_int_equal(b.len, 100);
    for (size_t i = 0; i < b.len; i += 10) {
        assert_memory_equal(b.p + i, "\x01\x84", 2);
        for (size_t k = 0; k < 4; k++)
            assert_int_equal((char)(b.p[i + 6 + k] ^ b.p[i + 2 + k]),
                             "same"[k]);
        differ = differ || memcmp(b.p + 2, b.p + i + 2, 4) != 0;
    }
    assert_true(differ);
    mo_buf_fini(&b);
}

static void test_put_respects_the_cap(void **state)
{
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 5);
    assert_int_equal(
        mo_ws_put(&b, MO_WS_SERVER, MO_WS_OP_TEXT, true, MO_SPAN("1234")),
        MO_ETOOBIG);
    mo_buf_fini(&b);
}

static void test_put_close(void **state)
{
    static const char e_acute[] = "\xc3\xa9";
    char reason[130];
    struct mo_buf b;

    (void)state;
    mo_buf_init(&b, 1000);
    mo_ws_put_close(&b, MO_WS_SERVER, 0, MO_SPAN("ignored"));
    mo_ws_put_close(&b, MO_WS_SERVER, 1005, MO_SPAN("ignored"));
    mo_ws_put_close(&b, MO_WS_SERVER, 1001, MO_SPAN("bye"));
    assert_true(mo_span_eq(mo_buf_view(&b), MO_SPAN("\x88\x00\x88\x00\x88\x05"
                                                    "\x03\xe9"
                                                    "bye")));
    for (size_t i = 0; i < sizeof(reason); i++)
        reason[i] = e_acute[i & 1];
    mo_buf_reset(&b);
    mo_ws_put_close(&b, MO_WS_SERVER, 1000, mo_span(reason, sizeof(reason)));
    assert_int_equal(b.len, 2 + 2 + 122); /* 123 would cut a character */
    assert_true(mo_utf8_valid(mo_span(b.p + 4, b.len - 4)));
    mo_buf_fini(&b);
}

/* --- handshake ----------------------------------------------------------- */

static void test_accept(void **state)
{
    static const struct {
        struct mo_span key;
        const char *accept;
    } cases[] = {
        {MO_SPAN("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="},
        {MO_SPAN("x3JJHMbDL1EzLkh9GBhXDw=="), "HSmrc0sMlYUkAGmm5OPpG2HaGWk="},
        {MO_SPAN("AAAAAAAAAAAAAAAAAAAAAA=="), "ICX+Yqv66kxgM0FcWaLWlFLwTAI="},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(cases); i++) {
        char out[MO_WS_ACCEPT_LEN + 1];

        assert_true(mo_ws_key_ok(cases[i].key));
        mo_ws_accept(cases[i].key, out);
        assert_string_equal(out, cases[i].accept);
    }
}

static void test_bad_keys(void **state)
{
    static const char *const bad[] = {
        "",
        "dGhlIHNhbXBsZSBub25jZQ=",
        "dGhlIHNhbXBsZSBub25jZQ===",
        "dGhlIHNhbXBsZSBub25jZQ=a",
        "dGhlIHNhbXBsZSBub25jZQa=",
        "dGhlIHNhbXBsZSBub25j Q==",
        "dGhlIHNhbXBsZSBub25j_Q==",
        "dGhlIHNhbXBsZSBub25jZWFh",
        "========================",
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(bad); i++)
        check_row(bad[i], !mo_ws_key_ok(mo_span_cstr(bad[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_masking_is_a_duty),
        cmocka_unit_test(test_every_close_code),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_whole_frame_is_not_copied),
        cmocka_unit_test(test_claims_are_not_believed),
        cmocka_unit_test(test_idle_holds_nothing),
        cmocka_unit_test(test_a_million_fragments),
        cmocka_unit_test(test_text_fails_fast),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_put),
        cmocka_unit_test(test_put_masks_anew),
        cmocka_unit_test(test_put_respects_the_cap),
        cmocka_unit_test(test_put_close),
        cmocka_unit_test(test_accept),
        cmocka_unit_test(test_bad_keys),
    };

    return cmocka_run_group_tests_name("ws", tests, NULL, NULL);
}
