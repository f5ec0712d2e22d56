#include "policy/approvals_priv.h"

#include <stdio.h>

#include "codec/sha256.h"

#define DEF_MAX ((size_t)4 * 1024 * 1024) /* of a tool */

/* --- pending calls ------------------------------------------------------- */

struct pending_call *mo_approvals_pending_new(struct mo_approvals *d,
                                              struct mo_gw_case *k)
{
    struct pending_call *p = mo_new(struct pending_call);

    if (!p)
        return NULL;
    p->d = d;
    p->k = k;
    p->from = MO_POLICY_CLIENT;
    mo_list_init(&p->node);
    mo_buf_init(&p->args, MO_EXACT_MAX);
    mo_buf_init(&p->def, MO_EXACT_MAX);
    mo_buf_init(&p->rule, MO_EXACT_MAX);
    k->data = p;
    return p;
}

void mo_approvals_unlist(struct pending_call *p)
{
    if (mo_list_empty(&p->node))
        return;
    mo_list_del(&p->node);
    p->d->npending--;
}

void mo_approvals_pending_free(struct pending_call *p)
{
    if (!p)
        return;
    mo_approvals_unlist(p);
    mo_buf_fini(&p->args);
    mo_buf_fini(&p->def);
    mo_buf_fini(&p->rule);
    mo_free(p);
}

/* --- judging ------------------------------------------------------------- */

static enum mo_gw_ruling refuse_call(struct mo_gw_case *k, const char *why)
{
    k->by = "rule";
    (void)snprintf(k->reason, sizeof(k->reason), "%s", why);
    return MO_GW_REFUSE;
}

/* def: an object with the tool's annotations and inputSchema. */
static struct mo_verdict judge_as(const struct mo_approvals *d,
                                  enum mo_policy_from from,
                                  const struct mo_rules *session,
                                  const struct mo_gw_case *k,
                                  struct mo_json def, struct mo_span args)
{
    return mo_policy_judge(
        d->policy, &(struct mo_policy_call){
                       .from = from,
                       .server = k->server,
                       .tool = k->tool,
                       .view = k->view,
                       .claims = mo_claims_of(mo_json_get(def, "annotations")),
                       .args_text = args,
                       .schema = mo_json_get(def, "inputSchema"),
                       .session = session,
                   });
}

static struct mo_verdict judge_call(const struct mo_approvals *d,
                                    const struct mo_gw_case *k,
                                    struct mo_json def, struct mo_span args)
{
    return judge_as(d, MO_POLICY_CLIENT, NULL, k, def, args);
}

static void put_def(struct mo_buf *b, struct mo_json item)
{
    static const char *const keys[] = {"title", "description", "annotations",
                                       "inputSchema"};
    struct mo_jw w = mo_jw_object(b);

    for (size_t i = 0; i < MO_COUNT(keys); i++)
        mo_jw_copy(&w, item, keys[i]);
    mo_jw_end(&w);
}

/* {"by":"operator","index":0,...}; the index is that of /api/rules. A rule of a
 * view has none. */
static void put_rule(const struct mo_approvals *d, const struct mo_verdict *v,
                     struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "by",
                      v->of_view ? "view"
                      : v->rule  ? "operator"
                                 : "default");
    if (v->rule && !v->of_view) {
        const struct mo_rule *first = mo_policy_operator_rules(d->policy)->v;

        mo_jw_member_u64(&w, "index", (uint64_t)(v->rule - first));
    }
    if (v->rule) {
        mo_jw_member(&w, "server", v->rule->server);
        mo_jw_member(&w, "tool", v->rule->tool);
        mo_jw_member_bool(&w, "remember", !v->rule->final);
    }
    mo_jw_end(&w);
}

/* The digest of the tool's definition, the same as in its pin. */
static int digest_tool(const struct mo_gw_case *k, char out[MO_EXACT_DIGEST])
{
    mo_autoarena struct mo_arena a = {.cap = DEF_MAX};
    struct mo_tool t = {.source = 0};
    int rc = mo_tool_read(&a, k->server, k->tool, k->item, &t);

    if (rc == 0)
        memcpy(out, t.digest, MO_EXACT_DIGEST);
    return rc;
}

static void set_times(struct pending_call *p)
{
    const struct mo_config *cfg = mo_policy_config(p->d->policy);

    p->at = mo_wall_ms();
    p->k->wait_ms = (uint64_t)cfg->approvals.timeout_seconds * 1000;
    p->expires = p->at + p->k->wait_ms;
}

/* Stores what the person is shown. */
static enum mo_gw_ruling ask_person(struct mo_approvals *d,
                                    struct pending_call *p,
                                    enum mo_approver approver,
                                    struct mo_buf *question)
{
    struct mo_gw_case *k = p->k;

    if (d->npending >= PENDING_MAX)
        return refuse_call(k, "too many calls are waiting for a person");
    put_def(&p->def, k->item);
    if (mo_buf_err(&p->def) || digest_tool(k, p->tool_digest) < 0)
        return refuse_call(k, "out of memory");
    (void)snprintf(p->why, sizeof(p->why), "%s", k->reason);
    set_times(p);
    p->approver = approver;
    if (approver != MO_APPROVER_CLIENT ||
        mo_approvals_question(p, question) < 0)
        mo_buf_reset(question); /* or too long for a form of the client */
    return MO_GW_ASK;
}

static enum mo_gw_ruling judge_by_rules(struct mo_approvals *d,
                                        struct pending_call *p,
                                        struct mo_buf *question)
{
    struct mo_gw_case *k = p->k;
    struct mo_verdict v;
    struct mo_err e;

    if (mo_exact_args(k->arguments, &p->args, &e) < 0) {
        mo_buf_reset(&p->args);
        return refuse_call(k, e.msg);
    }
    v = judge_call(d, k, k->item, mo_buf_view(&p->args));
    k->by = v.remembered ? "remembered" : v.rule ? "rule" : NULL;
    if (v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    if (v.action == MO_ACTION_DENY)
        return MO_GW_REFUSE;
    if (v.action == MO_ACTION_ASK) {
        put_rule(d, &v, &p->rule);
        return ask_person(d, p, v.approver, question);
    }
    k->reason[0] = '\0';
    if (!mo_policy_config(d->policy)->audit.arguments)
        mo_buf_fini(&p->args);
    return MO_GW_LET;
}

struct mo_verdict mo_approvals_verdict(const struct mo_approvals *d,
                                       const struct pending_call *p,
                                       struct mo_span args)
{
    return judge_as(d, p->from, p->session, p->k,
                    (struct mo_json){p->def.p, p->def.len}, args);
}

/* A call of a conversation was judged there, with the person's rules included.
 * Here operator denials are checked again, and a fallback server is judged for
 * the first time. */
static enum mo_gw_ruling judge_forwarded(const struct mo_approvals *d,
                                         struct mo_gw_case *k)
{
    static const enum mo_gw_ruling rulings[] = {
        [MO_ACTION_ASK] = MO_GW_ASK,
        [MO_ACTION_ALLOW] = MO_GW_LET,
        [MO_ACTION_DENY] = MO_GW_REFUSE,
    };
    struct mo_verdict v;

    if (k->routed)
        return refuse_call(
            k, "nobody was asked about this tool; name it and begin "
               "again");
    v = mo_policy_judge(
        d->policy,
        &(struct mo_policy_call){
            .from = k->stand_in ? MO_POLICY_STAND_IN : MO_POLICY_FORWARDED,
            .server = k->server,
            .tool = k->tool,
            .claims = mo_claims_of(mo_json_get(k->item, "annotations")),
            .args = k->arguments.p ? k->arguments : (struct mo_json){"{}", 2},
            .schema = mo_json_get(k->item, "inputSchema"),
        });
    k->by = "rule";
    if (v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    return rulings[v.action];
}

/* MO_GW_LET, or refuses a tool that its server changed. */
static enum mo_gw_ruling check_pin(const struct mo_approvals *d,
                                   struct mo_gw_case *k)
{
    struct mo_err e;

    if (k->is_own ||
        mo_policy_config(d->policy)->gateway.approvals == MO_GW_NO_RULES)
        return MO_GW_LET;
    if (mo_policy_load_pins(d->policy, &e) < 0)
        return refuse_call(k, e.msg);
    if (!k->item.p) /* a stand-in whose list was not read yet */
        return refuse_call(k, "nobody knows this tool of its server yet");
    if (!mo_policy_item_is_pinned(d->policy, k->server, k->tool, k->item))
        return refuse_call(k, "its server changed this tool since it was first "
                              "seen; a person must review and accept it "
                              "(`mcp-orchestrator approvals list`)");
    return MO_GW_LET;
}

/* The rules are not those by which the call was judged. */
static bool judge_changed_rules(const struct mo_approvals *d,
                                struct mo_gw_case *k)
{
    mo_autobuf struct mo_buf args = {.max = MO_EXACT_MAX};
    struct mo_verdict v;
    struct mo_err e;

    if (mo_exact_args(k->arguments, &args, &e) < 0)
        return refuse_call(k, e.msg) == MO_GW_LET;
    v = judge_call(d, k, k->item, mo_buf_view(&args));
    if (mo_verdict_may_run(&v, k->answered, k->panel))
        return true;
    (void)refuse_call(k, "the rules changed while it waited; begin again");
    if (v.action == MO_ACTION_DENY && v.rule)
        (void)snprintf(k->reason, sizeof(k->reason), "%.*s",
                       (int)v.rule->reason.n, v.rule->reason.p);
    return false;
}

/* The same for a call of a conversation. Its approval is not known here, so a
 * rule that asks since the conversation judged it refuses it. */
static bool judge_forwarded_again(const struct mo_approvals *d,
                                  struct mo_gw_case *k)
{
    bool stand_in = k->stand_in;
    enum mo_gw_ruling what;

    if (k->rules >> 32 == mo_policy_version(d->policy) >> 32)
        return true;
    k->stand_in = true; /* judged for the first time */
    what = judge_forwarded(d, k);
    k->stand_in = stand_in;
    if (what == MO_GW_ASK)
        (void)refuse_call(k, "the rules changed while it waited; begin again");
    return what == MO_GW_LET;
}

static bool judge_again(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;

    if (check_pin(d, k) != MO_GW_LET)
        return false;
    if (k->rules == mo_policy_version(d->policy))
        return true;
    if (k->inside.n)
        return judge_forwarded_again(d, k);
    return !mo_policy_has_rules(d->policy, k->view) ||
           judge_changed_rules(d, k);
}

static enum mo_gw_ruling judge_gateway_call(void *ctx, struct mo_gw_case *k,
                                            struct mo_buf *question)
{
    struct mo_approvals *d = ctx;
    const struct mo_config *cfg = mo_policy_config(d->policy);
    bool rules = mo_policy_has_rules(d->policy, k->view);
    struct pending_call *p;

    k->by = NULL;
    k->rules = mo_policy_version(d->policy);
    if (check_pin(d, k) != MO_GW_LET)
        return MO_GW_REFUSE;
    if (k->inside.n)
        return judge_forwarded(d, k);
    if (!rules && !cfg->audit.arguments)
        return MO_GW_LET;
    p = mo_approvals_pending_new(d, k);
    if (!p)
        return refuse_call(k, "out of memory");
    if (rules)
        return judge_by_rules(d, p, question);
    if (k->arguments.p)
        (void)mo_buf_span(&p->args, mo_json_text(k->arguments));
    return MO_GW_LET;
}

/* --- decisions and outcomes ---------------------------------------------- */

static void tell(struct pending_call *p, const char *kind, bool approved)
{
    const struct mo_gw_case *k = p->k;
    struct mo_verdict v = mo_approvals_verdict(p->d, p, mo_buf_view(&p->args));
    mo_autobuf struct mo_buf owner = {.max = MO_PERSON_MAX};
    struct mo_webhook_event ev = {
        .kind = kind,
        .call = k->id,
        .server = k->server,
        .tool = k->tool,
        .args = mo_buf_view(&p->args),
        .reason = mo_span_cstr(p->told ? k->reason : p->why),
        .panel = &v.panel,
        .said = &p->said,
        .expires = p->expires,
        .approved = approved,
        .by = k->by ? k->by : "gone",
        .who = p->who,
    };

    (void)mo_buf_span(&owner, k->owner);
    ev.asked_by = owner.len ? mo_buf_cstr(&owner) : "";
    mo_webhooks_tell(p->d->webhooks, &ev);
}

static void tell_waiting(struct pending_call *p)
{
    tell(p, "approval.waiting", false);
    p->told = true;
}

void mo_approvals_tell_decided(struct pending_call *p, bool approved)
{
    if (!p->told)
        return;
    tell(p, "approval.decided", approved);
    p->told = false;
}

static void on_pending(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *p = k->data;
    const struct mo_exact_call what = {
        .session = k->who,
        .call = mo_span_cstr(k->id),
        .server = k->server,
        .tool = k->tool,
        .args = mo_buf_view(&p->args),
        .tool_digest = p->tool_digest,
    };

    mo_exact_call(&what, p->digest);
    mo_list_push(&d->pending, &p->node);
    d->npending++;
    if (!k->by_client)
        tell_waiting(p);
}

void mo_approvals_list_connection(struct pending_call *p,
                                  const struct mo_verdict *v)
{
    put_rule(p->d, v, &p->rule);
    if (v->rule)
        (void)snprintf(p->why, sizeof(p->why), "%.*s", (int)v->rule->reason.n,
                       v->rule->reason.n ? v->rule->reason.p : "");
    set_times(p);
    p->approver = v->approver;
    mo_sha256_hex(mo_buf_view(&p->def), p->tool_digest);
    on_pending(p->d, p->k);
}

static void on_synced(void *ctx, const struct mo_err *why)
{
    struct pending_call *p = ctx;

    p->writing = false;
    if (p->k)
        mo_gw_run(p->k, why);
    else
        mo_approvals_pending_free(p);
}

static void on_agreed(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *p = k->data;
    struct mo_err e;

    mo_approvals_unlist(p);
    mo_approvals_tell_decided(p, true);
    mo_audit_call(d->audit, MO_AUDIT_AGREED, k, mo_buf_view(&p->args), p->who);
    if (mo_audit_sure(d->audit, on_synced, p, &e) == 0)
        p->writing = true;
    else
        mo_gw_run(k, &e);
}

/* A call of a conversation is recorded there. */
static int on_leaving(void *ctx, struct mo_gw_case *k, struct mo_err *e)
{
    struct mo_approvals *d = ctx;
    struct pending_call *p = k->data;

    if (k->inside.n)
        return 0;
    return mo_audit_begin(d->audit, k, p ? p->who : NULL, &k->left, e);
}

static void on_done(void *ctx, struct mo_gw_case *k)
{
    struct mo_approvals *d = ctx;
    struct pending_call *p = k->data;

    if (!k->inside.n) /* else the conversation writes the row */
        mo_audit_call(d->audit, MO_AUDIT_DONE, k,
                      p ? mo_buf_view(&p->args) : mo_span(NULL, 0),
                      p ? p->who : NULL);
    mo_audit_end(d->audit, k->left);
    k->left = NULL;
    if (d->watch.done)
        d->watch.done(d->watch.ctx, k);
    k->data = NULL;
    if (!p)
        return;
    mo_approvals_tell_decided(p, false);
    p->k = NULL;
    mo_approvals_unlist(p);
    if (!p->writing)
        mo_approvals_pending_free(p);
}

static bool is_changed(void *ctx, struct mo_span server, struct mo_span tool,
                       struct mo_json item)
{
    return mo_policy_item_changed(((struct mo_approvals *)ctx)->policy, server,
                                  tool, item);
}

static void on_routed(void *ctx, const struct mo_gw_routing *r)
{
    mo_audit_routing(((struct mo_approvals *)ctx)->audit, r);
}

struct mo_approval_hooks mo_approvals_hooks(struct mo_approvals *d)
{
    return (struct mo_approval_hooks){
        .rule = judge_gateway_call,
        .again = judge_again,
        .held = on_pending,
        .agreed = on_agreed,
        .leaves = on_leaving,
        .done = on_done,
        .routed = on_routed,
        .changed = is_changed,
        .ctx = d,
    };
}

/* --- from open to close -------------------------------------------------- */

int mo_approvals_reload(struct mo_approvals *d, const struct mo_config *cfg,
                        struct mo_err *e)
{
    int rc = mo_policy_reload(d->policy, cfg, e);

    if (rc < 0)
        return rc;
    mo_audit_config(d->audit, cfg);
    mo_approvals_drop_denied(d);
    return mo_webhooks_reload(d->webhooks, cfg, e);
}

static void on_audit_gone(void *ctx)
{
    struct mo_approvals *d = ctx;
    struct mo_gone gone = d->gone;

    MO_BUG_ON(d->npending);
    mo_connections_free(d);
    mo_policy_close(d->policy);
    mo_free(d);
    mo_gone_fire(gone);
}

static void on_ending(struct mo_later *d)
{
    on_audit_gone(mo_container_of(d, struct mo_approvals, ending));
}

static void close_audit(void *ctx)
{
    struct mo_approvals *d = ctx;

    if (d->audit)
        mo_audit_close(mo_take_ptr(&d->audit), on_audit_gone, d);
    else if (d->gone.fire)
        mo_loop_defer(d->loop, &d->ending);
    else
        on_audit_gone(d);
}

void mo_approvals_close(struct mo_approvals *d, void (*gone)(void *ctx),
                        void *ctx)
{
    d->gone = (struct mo_gone){gone, ctx};
    mo_connections_fini(d);
    if (d->webhooks)
        mo_webhooks_close(mo_take_ptr(&d->webhooks), close_audit, d);
    else
        close_audit(d);
}

int mo_approvals_open(struct mo_loop *l, const struct mo_config *cfg,
                      struct mo_approvals **out, struct mo_err *e)
{
    struct mo_approvals *d = mo_new(struct mo_approvals);
    int rc;

    if (!d)
        return mo_fail(e, MO_ENOMEM, "approvals");
    d->loop = l;
    mo_list_init(&d->pending);
    mo_connections_init(d);
    mo_later_init(&d->ending, on_ending);
    rc = mo_policy_open(l, cfg, &d->policy, e);
    if (rc == 0)
        rc = mo_audit_open(l, cfg, &d->audit, e);
    if (rc == 0)
        rc = mo_webhooks_new(l, cfg, &d->webhooks, e);
    if (rc < 0) {
        mo_approvals_close(d, NULL, NULL);
        return rc;
    }
    *out = d;
    return 0;
}

struct mo_policy *mo_approvals_policy(const struct mo_approvals *d)
{
    return d->policy;
}

struct mo_audit *mo_approvals_audit(const struct mo_approvals *d)
{
    return d ? d->audit : NULL; /* a command has no approvals */
}

struct mo_webhooks *mo_approvals_webhooks(const struct mo_approvals *d)
{
    return d ? d->webhooks : NULL;
}

void mo_approvals_watch(struct mo_approvals *d,
                        const struct mo_approvals_watch *w)
{
    d->watch = *w;
}

unsigned mo_approvals_waiting(const struct mo_approvals *d)
{
    return d->npending;
}
