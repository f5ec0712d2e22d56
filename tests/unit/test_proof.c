/* Proofs of a bound token, as our own client makes them and as thieves do. */
#include "people/proof.h"

#include "base/clock.h"
#include "mcp/oauth/dpop.h"
#include "mo_test.h"

#define URL   "https://mo.example"
#define TOKEN "eyJ.token.x"

struct peer {
    struct mo_dpop d;
    struct mo_proofs seen;
    char jkt[MO_PROOF_JKT + 1];
};

static void peer_init(struct peer *p)
{
    *p = (struct peer){.jkt = ""};
    assert_int_equal(mo_dpop_make(&p->d, NULL), 0);
    mo_dpop_thumbprint(&p->d, p->jkt);
    mo_proofs_init(&p->seen);
}

static void peer_fini(struct peer *p)
{
    mo_dpop_fini(&p->d);
    mo_proofs_fini(&p->seen);
}

static struct mo_proof request(const struct mo_buf *proof)
{
    return (struct mo_proof){
        .sent = true,
        .text = mo_buf_view(proof),
        .method = MO_SPAN("POST"),
        .path = MO_SPAN("/mcp"),
        .token = MO_SPAN(TOKEN),
        .url = URL,
        .now_s = mo_wall_ms() / 1000,
    };
}

static void make(struct peer *p, const char *method, const char *url,
                 const char *token, struct mo_buf *out)
{
    const struct mo_dpop_request r = {method, url, mo_span_cstr(token)};

    mo_buf_reset(out);
    assert_int_equal(mo_dpop_proof(&p->d, &r, out, NULL), 0);
}

static void test_once(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MO_DPOP_PROOF_MAX};
    struct mo_proof in;
    struct peer p;

    (void)state;
    peer_init(&p);
    make(&p, "POST", URL "/mcp?x=1", TOKEN, &b);
    in = request(&b);
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), 0);
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), MO_EPOLICY);
    in.now_s += MO_PROOF_WINDOW_S / 2; /* also among the older ones */
    p.seen.since_s = in.now_s - 2 * MO_PROOF_WINDOW_S;
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), MO_EPOLICY);
    assert_int_equal(p.seen.now.len, 0);
    assert_int_equal(p.seen.before.len, 1);
    make(&p, "POST", URL "/mcp", TOKEN, &b);
    in = request(&b);
    p.seen.since_s = in.now_s - 2 * MO_PROOF_WINDOW_S;
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), 0);
    assert_int_equal(p.seen.now.len, 1); /* the oldest are forgotten */
    assert_int_equal(p.seen.before.len, 0);
    peer_fini(&p);
}

static void test_refused(void **state)
{
    static const struct {
        const char *name, *method, *url, *token;
        int late_s;
        bool good;
    } rows[] = {
        {"good", "POST", URL "/mcp", TOKEN, 0, true},
        {"port written", "POST", "https://MO.example:443/mcp", TOKEN, 0, true},
        {"a bit late", "POST", URL "/mcp", TOKEN, MO_PROOF_WINDOW_S - 2, true},
        {"a bit early", "POST", URL "/mcp", TOKEN, 2 - MO_PROOF_WINDOW_S, true},
        {"method", "GET", URL "/mcp", TOKEN, 0, false},
        {"path", "POST", URL "/mcp/", TOKEN, 0, false},
        {"path above", "POST", URL "/", TOKEN, 0, false},
        {"host", "POST", "https://evil.example/mcp", TOKEN, 0, false},
        {"scheme", "POST", "http://mo.example/mcp", TOKEN, 0, false},
        {"port", "POST", URL ":8443/mcp", TOKEN, 0, false},
        {"token", "POST", URL "/mcp", "eyJ.token.y", 0, false},
        {"without a token", "POST", URL "/mcp", "", 0, false},
        {"late", "POST", URL "/mcp", TOKEN, MO_PROOF_WINDOW_S + 2, false},
        {"early", "POST", URL "/mcp", TOKEN, -2 - MO_PROOF_WINDOW_S, false},
    };
    mo_autobuf struct mo_buf b = {.max = MO_DPOP_PROOF_MAX};
    struct peer p;

    (void)state;
    peer_init(&p);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        struct mo_proof in;

        make(&p, rows[i].method, rows[i].url, rows[i].token, &b);
        in = request(&b);
        in.now_s = (uint64_t)((int64_t)in.now_s + rows[i].late_s);
        check_row(rows[i].name, mo_proof_check(&p.seen, &in, p.jkt, NULL) ==
                                    (rows[i].good ? 0 : MO_EPOLICY));
    }
    peer_fini(&p);
}

/* Behind a proxy that serves us below a path. */
static void test_prefix(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MO_DPOP_PROOF_MAX};
    struct mo_proof in;
    struct peer p;

    (void)state;
    peer_init(&p);
    make(&p, "POST", URL "/tools/mcp", TOKEN, &b);
    in = request(&b);
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), MO_EPOLICY);
    in.url = URL "/tools";
    assert_int_equal(mo_proof_check(&p.seen, &in, p.jkt, NULL), 0);
    peer_fini(&p);
}

/* The thief has the token, and perhaps an old proof, but not the key. */
static void test_thief(void **state)
{
    mo_autobuf struct mo_buf b = {.max = MO_DPOP_PROOF_MAX};
    struct peer owner, thief;
    struct mo_proof in;

    (void)state;
    peer_init(&owner);
    peer_init(&thief);
    make(&thief, "POST", URL "/mcp", TOKEN, &b);
    in = request(&b);
    assert_int_equal(mo_proof_check(&owner.seen, &in, owner.jkt, NULL),
                     MO_EPOLICY);
    make(&owner, "POST", URL "/mcp", TOKEN, &b);
    b.p[b.len - 2] = b.p[b.len - 2] == 'A' ? 'B' : 'A'; /* of the signature */
    in = request(&b);
    assert_int_equal(mo_proof_check(&owner.seen, &in, owner.jkt, NULL),
                     MO_EPOLICY);
    in.text = mo_span(NULL, 0);
    assert_int_equal(mo_proof_check(&owner.seen, &in, owner.jkt, NULL),
                     MO_EPOLICY);
    in.sent = false;
    assert_int_equal(mo_proof_check(&owner.seen, &in, owner.jkt, NULL),
                     MO_EPOLICY);
    assert_int_equal(mo_proof_check(&owner.seen, &in, "", NULL), 0);
    in.sent = true; /* nor a bound token that is none */
    assert_int_equal(mo_proof_check(&owner.seen, &in, "", NULL), MO_EPOLICY);
    peer_fini(&owner);
    peer_fini(&thief);
}

/* What another token of the same key says is no proof. */
static void test_other_texts(void **state)
{
    static const struct {
        const char *type, *claims;
    } rows[] = {
        {"JWT", "{}"},
        {"dpop+jwt", "{}"},
        {"dpop+jwt", "{\"htm\":\"POST\",\"htm\":\"POST\"}"},
        {"dpop+jwt", "{\"htm\":\"POST\",\"htu\":7,\"iat\":\"now\"}"},
        {"dpop+jwt", "{\"htm\":\"POST\",\"htu\":\"" URL "/mcp\",\"iat\":-1}"},
        {"dpop+jwt", "[]"},
    };
    struct peer p;

    (void)state;
    peer_init(&p);
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        mo_autobuf struct mo_buf b = {.max = MO_DPOP_PROOF_MAX};
        struct mo_proof in;

        assert_int_equal(mo_jws_key_sign(p.d.key, rows[i].type,
                                         mo_span_cstr(rows[i].claims), &b,
                                         NULL),
                         0);
        in = request(&b);
        check_row(rows[i].claims,
                  mo_proof_check(&p.seen, &in, p.jkt, NULL) == MO_EPOLICY);
    }
    peer_fini(&p);
}

static void test_binding(void **state)
{
#define JKT "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    static const struct {
        const char *claims;
        int rc;
        const char *jkt;
    } rows[] = {
        {"{}", 0, ""},
        {"{\"cnf\":{\"jkt\":\"" JKT "\"}}", 0, JKT},
        {"{\"cnf\":{\"x5t#S256\":\"" JKT "\"}}", MO_EPOLICY, NULL},
        {"{\"cnf\":{\"jkt\":\"" JKT "\",\"x5t#S256\":\"a\"}}", MO_EPOLICY,
         NULL},
        {"{\"cnf\":{\"jkt\":\"" JKT "\",\"jkt\":\"" JKT "\"}}", MO_EPOLICY,
         NULL},
        {"{\"cnf\":{\"jkt\":\"short\"}}", MO_EPOLICY, NULL},
        {"{\"cnf\":{\"jkt\":\"" JKT "x\"}}", MO_EPOLICY, NULL},
        {"{\"cnf\":{\"jkt\":7}}", MO_EPOLICY, NULL},
        {"{\"cnf\":{\"jkt\":\"\"}}", MO_EPOLICY, NULL},
        {"{\"cnf\":{}}", MO_EPOLICY, NULL},
        {"{\"cnf\":\"" JKT "\"}", MO_EPOLICY, NULL},
        {"{\"cnf\":null}", MO_EPOLICY, NULL},
    };

    (void)state;
    for (size_t i = 0; i < MO_COUNT(rows); i++) {
        char jkt[MO_PROOF_JKT + 1];
        struct mo_json_doc doc;

        assert_int_equal(
            mo_json_parse(mo_span_cstr(rows[i].claims), 0, &doc, NULL), 0);
        check_row(rows[i].claims,
                  mo_proof_binding(doc.root, jkt, NULL) == rows[i].rc);
        if (rows[i].jkt)
            check_row(rows[i].claims, strcmp(jkt, rows[i].jkt) == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_prefix),      cmocka_unit_test(test_thief),
        cmocka_unit_test(test_other_texts), cmocka_unit_test(test_binding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
