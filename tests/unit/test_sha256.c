/* SHA-256 against the vectors of NIST (FIPS 180-4 examples, CAVP) and HMAC
 * against those of RFC 4231; each message also cut in two at every byte. */
#include "codec/sha256_mix.h"
#include "mo_test.h"

static void hex(const unsigned char *p, char out[2 * MO_SHA256_LEN + 1])
{
    for (unsigned i = 0; i < MO_SHA256_LEN; i++)
        (void)snprintf(out + 2 * (size_t)i, 3, "%02x", p[i]);
}

static const struct {
    const char *name, *in, *sum;
} sums[] = {
    {"empty", "",
     "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "abc",
     "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"two blocks", "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"896 bits",
     "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnop"
     "jklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

static void test_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(sums); i++) {
        size_t n = strlen(sums[i].in);
        char whole[MO_SHA256_HEX + 1];

        mo_sha256_hex(mo_span_cstr(sums[i].in), whole);
        check_row(sums[i].name, strcmp(whole, sums[i].sum) == 0);
        for (size_t cut = 0; cut <= n; cut++) {
            unsigned char out[MO_SHA256_LEN];
            char text[2 * MO_SHA256_LEN + 1];
            struct mo_sha256 s;

            mo_sha256_init(&s);
            mo_sha256_put(&s, sums[i].in, cut);
            mo_sha256_put(&s, sums[i].in + cut, n - cut);
            mo_sha256_end(&s, out);
            hex(out, text);
            check_row(sums[i].name, strcmp(text, sums[i].sum) == 0);
        }
    }
}

static void test_million(void **state)
{
    unsigned char out[MO_SHA256_LEN];
    char text[2 * MO_SHA256_LEN + 1];
    struct mo_sha256 s;
    char piece[1000];

    (void)state;
    memset(piece, 'a', sizeof(piece));
    mo_sha256_init(&s);
    for (unsigned i = 0; i < 1000; i++)
        mo_sha256_put(&s, piece, sizeof(piece));
    mo_sha256_end(&s, out);
    hex(out, text);
    assert_string_equal(
        text,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Whoever does it: the same sums, from blocks that begin anywhere. */
static void test_cpu(void **state)
{
    unsigned char text[5 * MO_SHA256_BLOCK + 16];

    (void)state;
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (unsigned char)(i * 151 + i / 7);
    for (size_t n = 0; n <= 5; n++)
        for (size_t at = 0; at < 16; at++) {
            uint32_t plain[8] = {1, 2, 3, 0xffffffff, 5, 6, 7, (uint32_t)n};
            uint32_t cpu[8] = {1, 2, 3, 0xffffffff, 5, 6, 7, (uint32_t)n};

            mo_sha256_mix_plain(plain, text + at, n);
            if (mo_sha256_can())
                mo_sha256_mix_cpu(cpu, text + at, n);
            else
                mo_sha256_mix_plain(cpu, text + at, n);
            assert_memory_equal(plain, cpu, sizeof(plain));
        }
}

/* fill: the key or text is that many times the one byte. */
static const struct {
    const char *name, *key, *text, *sum;
    size_t key_fill, text_fill;
} macs[] = {
    {"case 1", "\x0b", "Hi There",
     "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7", 20, 0},
    {"case 2", "Jefe", "what do ya want for nothing?",
     "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843", 0, 0},
    {"case 3", "\xaa", "\xdd",
     "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe", 20,
     50},
    {"case 6: a key longer than a block", "\xaa",
     "Test Using Larger Than Block-Size Key - Hash Key First",
     "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54", 131,
     0},
};

static struct mo_span filled(const char *s, size_t fill, char room[256])
{
    if (!fill)
        return mo_span_cstr(s);
    memset(room, s[0], fill);
    return mo_span(room, fill);
}

static void test_hmac(void **state)
{
    (void)state;
    for (size_t i = 0; i < MO_COUNT(macs); i++) {
        char kroom[256], troom[256], text[2 * MO_SHA256_LEN + 1];
        struct mo_span t = filled(macs[i].text, macs[i].text_fill, troom);
        unsigned char out[MO_SHA256_LEN];
        struct mo_hmac m;

        mo_hmac_init(&m, filled(macs[i].key, macs[i].key_fill, kroom));
        mo_hmac_put(&m, t.p, t.n);
        mo_hmac_end(&m, out);
        hex(out, text);
        check_row(macs[i].name, strcmp(text, macs[i].sum) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_million),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_hmac),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
