/* script_grant.c - see script_grant.h. */
#include "agent/chat/script_grant.h"

#include "agent/chat/calls.h"
#include "agent/chat/chat_write.h"
#include "agent/chat/event.h"
#include "agent/chat/script_calls.h"

#define GRANTS_MAX  8
#define COUNT_MAX   MO_SCRIPT_CALLS_MAX
#define SECONDS_MAX 3600
#define SECONDS     600
#define SAME_MAX    16
#define SAME_BYTES  ((size_t)64 * 1024)

struct grant {
    char id[GRANT_ID_MAX]; /* "": it was revoked */
    char tool[MO_EXACT_DIGEST];
    char who[WHO_MAX];
    struct mo_span server, name;
    struct mo_buf same; /* an object: names and values that must be equal */
    uint64_t count, left;
    uint64_t until; /* mo_now_ns() */
};

struct script_grants {
    struct mo_arena arena;
    struct grant v[GRANTS_MAX];
    size_t n;
};

/* A person's yes may stand for calls that they have not seen. */
static bool may_grant(const struct call *k, const struct mo_verdict *v)
{
    struct mo_policy_call as_judged = mo_chat_call_for_policy(k);

    return v->action == MO_ACTION_ASK && !v->panel.need &&
           v->approver != MO_APPROVER_OPERATOR &&
           mo_policy_may_remember(k->chat->agent->o.policy, &as_judged);
}

static bool fits(const struct grant *g, const struct call *k)
{
    struct mo_json args = {k->args.p, k->args.len};
    struct mo_json same = {g->same.p, g->same.len};
    mo_autobuf struct mo_buf name = {.max = 1024};

    if (strcmp(g->tool, k->tool->digest) != 0)
        return false;
    mo_json_each (at, same) {
        struct mo_json v = {NULL, 0};

        mo_buf_reset(&name);
        if (mo_json_str_buf(at.key, &name) == 0)
            v = mo_json_get(args, mo_buf_cstr(&name));
        if (!v.p || !mo_span_eq(mo_json_text(v), mo_json_text(at.val)))
            return false;
    }
    return true;
}

bool mo_script_take_grant(struct call *k, const struct mo_verdict *v)
{
    struct script_grants *all = k->parent ? k->parent->grants : NULL;

    if (all == NULL || !may_grant(k, v))
        return false;
    for (size_t i = 0; i < all->n; i++) {
        struct grant *g = &all->v[i];

        if (!g->id[0] || g->left == 0 || mo_now_ns() >= g->until || !fits(g, k))
            continue;
        g->left--;
        k->grant = i + 1;
        return true;
    }
    return false;
}

static const struct grant *grant_of(const struct call *k)
{
    return k->grant && k->parent && k->parent->grants
               ? &k->parent->grants->v[k->grant - 1]
               : NULL;
}

bool mo_script_is_granted(const struct call *k, const struct mo_verdict *v)
{
    const struct grant *g = grant_of(k);

    return g && g->id[0] && may_grant(k, v) && fits(g, k);
}

const char *mo_script_granter(const struct call *k)
{
    const struct grant *g = grant_of(k);

    return g ? g->who : "";
}

/* --- giving and revoking ---------------------------------------------------
 */

/* Copies the named members of the call's arguments. */
static int take_same(struct grant *g, const struct call *k,
                     struct mo_json names, struct mo_err *e)
{
    struct mo_json args = {k->args.p, k->args.len};
    mo_autobuf struct mo_buf name = {.max = 1024};
    struct mo_jw w = mo_jw_object(&g->same);

    if (names.p &&
        (!mo_json_is(names, MO_JSON_ARRAY) || mo_json_len(names) > SAME_MAX))
        return mo_fail(e, MO_EINVAL, "same is a list of at most %d names",
                       SAME_MAX);
    mo_json_each (at, names) {
        struct mo_json v = {NULL, 0};

        mo_buf_reset(&name);
        if (mo_json_str_buf(at.val, &name) == 0)
            v = mo_json_get(args, mo_buf_cstr(&name));
        if (!v.p)
            return mo_fail(e, MO_EINVAL,
                           "same names an argument that the call does not "
                           "have");
        mo_jw_member_raw(&w, mo_buf_cstr(&name), mo_json_text(v));
    }
    mo_jw_end(&w);
    return mo_buf_err(&g->same) ? mo_fail(e, MO_ETOOBIG,
                                          "the arguments are too large for a "
                                          "grant")
                                : 0;
}

static int read_grant(struct grant *g, const struct call *k,
                      struct mo_span conditions, struct mo_err *e)
{
    struct mo_json_doc doc;
    struct mo_json seconds;
    uint64_t s = SECONDS;
    int rc = mo_json_parse(conditions, 0, &doc, e);

    if (rc < 0)
        return rc;
    seconds = mo_json_get(doc.root, "seconds");
    if (mo_json_u64(mo_json_get(doc.root, "count"), &g->count) < 0 ||
        g->count == 0 || g->count > COUNT_MAX ||
        (seconds.p && (mo_json_u64(seconds, &s) < 0 || s == 0)) ||
        s > SECONDS_MAX)
        return mo_fail(e, MO_EINVAL,
                       "a grant is {count: 1 to %d, seconds?: 1 to %d, same?: "
                       "names of arguments}",
                       COUNT_MAX, SECONDS_MAX);
    g->left = g->count;
    g->until = mo_now_ns() + s * 1000 * MO_MS;
    return take_same(g, k, mo_json_get(doc.root, "same"), e);
}

static void audit_grant(const struct call *k, const struct grant *g,
                        struct mo_span conditions)
{
    const struct mo_audit_row row = {
        .event = "granted",
        .subject = MO_SPAN("script"),
        .name = mo_span_cstr(g->id),
        .server = g->server,
        .tool = g->name,
        .call = mo_span_cstr(k->parent->key),
        .plan = conditions,
        .entry = mo_buf_view(&g->same),
        .count = g->count,
        .who = mo_span_cstr(g->who),
        .script = mo_script_digest(k->parent),
        .line = k->line,
    };

    mo_chat_audit(k->chat, &row);
}

/* Calls of the script that wait already take places, too. */
static void release_waiting(const struct call *k)
{
    mo_list_each_entry_safe (x, &k->chat->calls.list, struct call, node) {
        struct mo_verdict v;

        if (x == k || x->parent != k->parent || x->writing || x->is_over ||
            x->state != MO_CALL_PENDING)
            continue;
        v = mo_chat_call_verdict(x);
        if (!mo_script_take_grant(x, &v))
            continue;
        v = mo_chat_call_verdict(x);
        mo_chat_call_allowed(x, &v);
        mo_chat_call_settle(x, MO_CALL_RUNNING);
    }
}

static struct script_grants *grants_of(struct call *script)
{
    if (script->grants == NULL) {
        script->grants = mo_new(struct script_grants);
        if (script->grants)
            mo_arena_init(&script->grants->arena, SAME_BYTES);
    }
    return script->grants;
}

int mo_script_grant(struct call *k, struct mo_span conditions, struct mo_err *e)
{
    struct mo_verdict v = mo_chat_call_verdict(k);
    struct script_grants *all = NULL;
    struct grant *g = NULL;
    int rc = 0;

    if (k->parent == NULL || !may_grant(k, &v))
        return mo_fail(e, MO_EPOLICY,
                       "Nothing was granted ahead: each of these calls needs "
                       "its own decision.");
    all = grants_of(k->parent);
    if (all == NULL || all->n == GRANTS_MAX)
        return mo_fail(e, MO_EBUSY,
                       "Nothing was granted ahead: a script has at most %d "
                       "grants.",
                       GRANTS_MAX);
    g = &all->v[all->n];
    mo_buf_init(&g->same, SAME_BYTES);
    rc = read_grant(g, k, conditions, e);
    g->server = mo_span_dup(&all->arena, k->tool->def.server);
    g->name = mo_span_dup(&all->arena, k->tool->def.name);
    if (rc == 0 && (!g->server.p || !g->name.p))
        rc = mo_fail(e, MO_ENOMEM, "out of memory");
    if (rc < 0) {
        mo_buf_fini(&g->same);
        *g = (struct grant){.count = 0};
        return rc;
    }
    mo_random_token(g->id, GRANT_BYTES);
    memcpy(g->tool, k->tool->digest, sizeof(g->tool));
    memcpy(g->who, k->who, sizeof(g->who));
    all->n++;
    audit_grant(k, g, conditions);
    release_waiting(k);
    mo_chat_event_grants(k->parent);
    return 0;
}

static struct grant *find_grant(const struct chat *c, struct mo_span id,
                                struct call **script)
{
    mo_list_each_entry (k, &c->calls.list, struct call, node)
        for (size_t i = 0; k->grants && i < k->grants->n; i++)
            if (id.n > 0 && mo_span_is(id, k->grants->v[i].id)) {
                *script = k;
                return &k->grants->v[i];
            }
    return NULL;
}

bool mo_script_has_grant(const struct chat *c, struct mo_span id)
{
    struct call *script = NULL;

    return find_grant(c, id, &script) != NULL;
}

bool mo_script_revoke(struct chat *c, struct mo_span id)
{
    struct call *script = NULL;
    struct grant *g = find_grant(c, id, &script);

    if (g == NULL)
        return false;
    g->id[0] = '\0';
    g->left = 0;
    mo_chat_event_grants(script);
    return true;
}

void mo_script_grants_free(struct call *k)
{
    struct script_grants *all = mo_take_ptr(&k->grants);

    if (all == NULL)
        return;
    for (size_t i = 0; i < all->n; i++)
        mo_buf_fini(&all->v[i].same);
    mo_arena_fini(&all->arena);
    mo_free(all);
}

void mo_script_put_grants(struct mo_jw *w, const struct call *k)
{
    uint64_t now = mo_now_ns();

    if (k->grants == NULL)
        return;
    mo_jw_member_arr(w, "grants");
    for (size_t i = 0; i < k->grants->n; i++) {
        const struct grant *g = &k->grants->v[i];

        mo_jw_obj(w);
        mo_jw_member_opt(w, "id", mo_span_cstr(g->id));
        mo_jw_member_bool(w, "revoked", !g->id[0]);
        mo_jw_member(w, "server", g->server);
        mo_jw_member(w, "tool", g->name);
        mo_jw_member_raw(w, "same", mo_buf_view(&g->same));
        mo_jw_member_u64(w, "count", g->count);
        mo_jw_member_u64(w, "left", g->left);
        mo_jw_member_u64(w, "secondsLeft",
                         g->until > now ? (g->until - now) / (1000 * MO_MS)
                                        : 0);
        mo_jw_member_cstr(w, "who", g->who);
        mo_jw_end(w);
    }
    mo_jw_end(w);
}
