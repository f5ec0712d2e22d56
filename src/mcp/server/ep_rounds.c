/* ep_rounds.c - questions to a modern client: input_required and the retry.
 *
 * The endpoint keeps nothing between the rounds. The answers so far, the
 * handler's state and the number of rounds go to the client as a sealed
 * requestState that is bound to the caller and the call (seal.h). On the retry
 * the seal is opened, the new answers are added to the old ones, and the
 * handler is called from the top, in the process that has asked (ep_away.c). */
#include "codec/sha256.h"
#include "mcp/server/ep_priv.h"

/* Digest of the call: the caller, the method and the parameters that make it
 * the same call. Numbers and order count as written. */
static void digest_call(const struct call *c, unsigned char out[MO_SHA256_LEN])
{
    static const char *const parts[] = {"name", "uri", "arguments"};
    mo_autobuf struct mo_buf b = {.max = c->pub.params.n + 64};
    struct mo_sha256 h;

    mo_sha256_init(&h);
    mo_sha256_put(&h, c->pub.caller.p, c->pub.caller.n);
    mo_sha256_put(&h, "\0", 1);
    mo_sha256_put(&h, c->pub.method.p, c->pub.method.n);
    for (size_t i = 0; i < MO_COUNT(parts); i++) {
        struct mo_json v = mo_json_get(c->pub.params, parts[i]);

        mo_sha256_put(&h, "\0", 1);
        mo_buf_reset(&b);
        if (v.p && mo_json_compact(v, &b) == 0)
            mo_sha256_put(&h, b.p, b.len);
    }
    mo_sha256_end(&h, out);
}

static struct mo_span digest_span(const unsigned char *d)
{
    return mo_span((const char *)d, MO_SHA256_LEN);
}

/* {"r":rounds,"s":"state","i":{key:answer}} */
static void put_state(const struct call *c, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_u64(&w, "r", c->rounds);
    mo_jw_member(&w, "s", c->state_bytes);
    mo_jw_member_obj(&w, "i");
    mo_list_each_entry (in, &c->inputs, struct ep_input, node) {
        mo_jw_key_span(&w, in->key);
        mo_jw_raw(&w, mo_json_text(in->value));
    }
    mo_jw_end_all(&w);
}

static int put_sealed_state(const struct call *c, struct mo_buf *out)
{
    uint64_t until = mo_now_ns() + c->ep->o.limits.state_ms * (uint64_t)MO_MS;
    unsigned char d[MO_SHA256_LEN];
    mo_autobuf struct mo_buf plain = {.max = MO_SEAL_MAX};

    int rc;

    put_state(c, &plain);
    digest_call(c, d);
    rc = mo_buf_err(&plain);
    if (rc == 0)
        rc = mo_ep_put_state_home(c, out);
    if (rc == 0)
        rc = mo_seal_put(&c->ep->seal, digest_span(d), until,
                         mo_buf_view(&plain), out);
    return rc;
}

static int read_inputs(struct call *c, struct mo_json obj)
{
    mo_json_each (m, obj) {
        struct mo_span name;
        int rc = mo_json_str(m.key, &c->arena, &name);

        if (rc == 0)
            rc = mo_ep_call_add_input(c, name, m.val, false);
        if (rc < 0)
            return rc;
    }
    return 0;
}

static int read_state(struct call *c, struct mo_span plain)
{
    struct mo_json_doc doc;
    uint64_t rounds = 0;
    int rc = mo_json_parse(plain, 0, &doc, NULL);

    if (rc == 0)
        rc = mo_json_u64(mo_json_get(doc.root, "r"), &rounds);
    if (rc < 0)
        return rc;
    c->rounds = (unsigned)rounds;
    rc = mo_json_str(mo_json_get(doc.root, "s"), &c->arena, &c->state_bytes);
    if (rc == 0)
        mo_ep_call_set_state(&c->pub, c->state_bytes);
    if (rc == 0)
        rc = read_inputs(c, mo_json_get(doc.root, "i"));
    return rc;
}

/* Returns NULL if the state is ours, else the fault. */
static const char *open_state(struct call *c, struct mo_span text)
{
    unsigned char d[MO_SHA256_LEN];
    mo_autobuf struct mo_buf plain = {.max = MO_SEAL_MAX};
    int rc;

    digest_call(c, d);
    rc = mo_seal_open(&c->ep->seal, digest_span(d), mo_now_ns(), text, &plain);
    if (rc == 0)
        rc = read_state(c, mo_buf_view(&plain));
    if (rc == MO_ETIMEOUT)
        return "params.requestState has expired; begin again";
    return rc < 0 ? "params.requestState is not one we gave for this call"
                  : NULL;
}

bool mo_ep_take_answers(struct call *c, const char **bad)
{
    struct mo_json st = mo_json_get(c->pub.params, "requestState");
    struct mo_json in = mo_json_get(c->pub.params, "inputResponses");
    struct mo_span text;

    if (st.p && (!mo_json_is(st, MO_JSON_STRING) ||
                 mo_json_str(st, &c->arena, &text) < 0)) {
        *bad = "params.requestState must be the string we gave";
    } else if (st.p) {
        if (mo_ep_state_is_away(c, &text))
            return false;
        *bad = open_state(c, text);
    }
    if (*bad || !in.p)
        return true;
    if (!mo_json_is(in, MO_JSON_OBJECT))
        *bad = "params.inputResponses must be an object";
    else if (read_inputs(c, in) < 0)
        *bad = "params.inputResponses is too big";
    return true;
}

static void put_questions(struct call *c, struct mo_span sealed)
{
    struct mo_jw w = mo_ep_begin_result(c->ep, c->id);

    mo_jw_member_cstr(&w, "resultType", "input_required");
    mo_jw_member_obj(&w, "inputRequests");
    mo_list_each_entry (q, &c->needs, struct ep_need, node) {
        mo_jw_key_span(&w, q->key);
        mo_jw_obj(&w);
        mo_jw_member(&w, "method", q->method);
        mo_jw_member_raw(&w, "params", q->params);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
    mo_jw_member(&w, "requestState", sealed);
    mo_ep_end_result(c->ep, &w, (struct mo_json){NULL, 0});
}

enum mo_ep_waiting mo_ep_modern_wait(struct call *c)
{
    unsigned missing = mo_ep_missing(c);
    mo_autobuf struct mo_buf b = {.max = 2 * MO_SEAL_MAX};

    MO_BUG_ON(!(c->m->flags & M_MRTR));
    if (missing) {
        mo_ep_put_missing(c, missing, &b);
        mo_ep_call_refuse_data(
            c, 400, MO_MCP_MISSING_CAPABILITY,
            "the client lacks a capability that this call needs",
            mo_buf_view(&b));
        return MO_EP_ENDED;
    }
    if (put_sealed_state(c, &b) < 0) {
        mo_ep_call_refuse(c, 200, MO_RPC_INTERNAL, "the state is too big");
        return MO_EP_ENDED;
    }
    put_questions(c, mo_buf_view(&b));
    mo_ep_call_answer(c, 200);
    return MO_EP_AWAY;
}
