/* approvals_list.c - lists pending calls and takes people's decisions; see
 * approvals.h. */
#include "policy/approvals_priv.h"

#include <stdio.h>

#define SHOWN_MAX ((size_t)16 * 1024) /* arguments in a client's form */

/* --- text without invisible characters ----------------------------------- */

/* True for characters that are invisible or change the text direction. */
static bool is_invisible(uint32_t c)
{
    static const struct {
        uint32_t from, to;
    } rows[] = {
        {0x00, 0x09},     {0x0b, 0x1f},     {0x7f, 0x9f},
        {0xad, 0xad},     {0x34f, 0x34f},   {0x61c, 0x61c},
        {0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f},
        {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff},
        {0xffa0, 0xffa0}, {0xfff0, 0xfffb}, {0xe0000, 0xe0fff},
    };

    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (c >= rows[i].from && c <= rows[i].to)
            return true;
    return false;
}

static void put_escaped(struct mo_buf *b, uint32_t c)
{
    if (c < 0x10000)
        (void)mo_buf_printf(b, "\\u%04x", (unsigned)c);
    else
        (void)mo_buf_printf(b, "\\u%04x\\u%04x", (unsigned)(0xd7c0 + (c >> 10)),
                            (unsigned)(0xdc00 + (c & 0x3ff)));
}

/* The parser has checked that the text is valid UTF-8. */
static void put_visible(struct mo_buf *b, struct mo_span s)
{
    size_t i = 0;

    while (i < s.n) {
        unsigned char lead = (unsigned char)s.p[i];
        size_t n = lead < 0x80 ? 1 : lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
        uint32_t c = n == 1 ? lead : lead & (0xffu >> (n + 1));

        n = n < s.n - i ? n : s.n - i;
        for (size_t k = 1; k < n; k++)
            c = c << 6 | ((unsigned char)s.p[i + k] & 0x3f);
        if (is_invisible(c))
            put_escaped(b, c);
        else
            (void)mo_buf_put(b, s.p + i, n);
        i += n;
    }
}

int mo_approvals_question(const struct pending_call *p, struct mo_buf *out)
{
    const struct mo_gw_case *k = p->k;

    if (p->args.len > SHOWN_MAX)
        return MO_ETOOBIG;
    (void)mo_buf_puts(out, "May this tool be run?\n\nserver: ");
    put_visible(out, k->server);
    (void)mo_buf_puts(out, "\ntool: ");
    put_visible(out, k->tool);
    (void)mo_buf_puts(out, "\narguments: ");
    put_visible(out, mo_buf_view(&p->args));
    if (k->words.n) {
        (void)mo_buf_puts(out, "\nfound for: ");
        put_visible(out, k->words);
    }
    if (p->why[0]) {
        (void)mo_buf_puts(out, "\nwhy you are asked: ");
        put_visible(out, mo_span_cstr(p->why));
    }
    return mo_buf_err(out);
}

/* --- the list ------------------------------------------------------------ */

static void put_panel(struct mo_jw *w, const struct pending_call *p)
{
    struct mo_verdict v = mo_approvals_verdict(p->d, p, mo_buf_view(&p->args));

    mo_panel_put(w, &v.panel, &p->said);
}

void mo_approvals_put_pending(struct mo_jw *w, const struct pending_call *p)
{
    const struct mo_gw_case *k = p->k;

    mo_jw_obj(w);
    mo_jw_member_opt(w, "id", mo_span_cstr(k->id));
    mo_jw_member_opt(w, "server", k->server);
    mo_jw_member_opt(w, "tool", k->tool);
    mo_jw_member_opt(w, "view", k->view);
    mo_jw_member_raw(w, "definition", mo_buf_view(&p->def));
    mo_jw_member_raw(w, "args", mo_buf_view(&p->args));
    mo_jw_member_opt(w, "digest", mo_span_cstr(p->digest));
    mo_jw_member_opt(w, "script", k->script);
    if (k->line)
        mo_jw_member_u64(w, "line", k->line);
    mo_jw_member_opt(w, "who", k->who);
    mo_jw_member_opt(w, "owner", k->owner);
    mo_jw_member_cstr(w, "approver", mo_approver_name(p->approver));
    put_panel(w, p);
    mo_jw_member_raw(w, "client", k->client);
    mo_jw_member_opt(w, "reason", mo_span_cstr(p->why));
    if (mo_buf_err(&p->rule) == 0)
        mo_jw_member_raw(w, "rule", mo_buf_view(&p->rule));
    if (k->routed) {
        mo_jw_member_opt(w, "words", k->words);
        mo_jw_member_f64(w, "confidence",
                         (double)(int)(k->sure * 1000 + 0.5f) / 1000);
    }
    mo_jw_member_u64(w, "at", p->at);
    mo_jw_member_u64(w, "expiresAt", p->expires);
    mo_jw_member_bool(w, "byClient", k->by_client);
    if (mo_pending_is_connection(p)) {
        if (p->from == MO_POLICY_SESSION_NET)
            mo_jw_member(w, "session", k->who);
        mo_jw_member_bool(w, "tls", p->tls);
        mo_jw_member_opt(w, "request", mo_span_cstr(p->request));
        mo_jw_member_opt(w, "program", mo_span_cstr(p->program));
    }
    mo_jw_end(w);
}

static struct mo_panel panel_of(const struct pending_call *p)
{
    return mo_approvals_verdict(p->d, p, mo_buf_view(&p->args)).panel;
}

/* True if that person may see the call. Operator and approvers see every
 * call. */
static bool is_visible(const struct pending_call *p,
                       const struct mo_identity *who)
{
    struct mo_panel panel;

    if (who->role >= MO_ROLE_APPROVER)
        return true;
    panel = panel_of(p);
    if (mo_span_is(p->k->owner, who->name))
        return panel.need || p->approver != MO_APPROVER_OPERATOR;
    return panel.need && mo_panel_has(&panel, who);
}

void mo_approvals_put_list(struct mo_approvals *d,
                           const struct mo_identity *who, struct mo_jw *w)
{
    mo_list_each_entry (p, &d->pending, const struct pending_call, node)
        if (is_visible(p, who))
            mo_approvals_put_pending(w, p);
}

void mo_approvals_put_changed(struct mo_approvals *d,
                              const struct mo_identity *who, struct mo_jw *w)
{
    mo_jw_key(w, "changed");
    if (who->role < MO_ROLE_OPERATOR) {
        mo_jw_arr(w);
        mo_jw_end(w);
    } else {
        mo_policy_put_changed(d->policy, w);
    }
}

int mo_approvals_list(struct mo_approvals *d, const struct mo_identity *who,
                      struct mo_buf *out)
{
    struct mo_jw w = mo_jw_object(out);

    mo_jw_member_arr(&w, "approvals");
    mo_approvals_put_list(d, who, &w);
    mo_jw_end(&w);
    mo_approvals_put_changed(d, who, &w);
    mo_jw_end(&w);
    return mo_buf_err(out);
}

/* --- decisions ----------------------------------------------------------- */

static struct mo_identity identity_of(const struct mo_approval_decision *x)
{
    return (struct mo_identity){
        .name = x->name ? x->name : x->caller,
        .role = !*x->caller      ? MO_ROLE_OPERATOR
                : x->is_approver ? MO_ROLE_APPROVER
                                 : MO_ROLE_USER,
        .people = x->people,
        .groups = x->groups,
    };
}

static struct pending_call *find_pending(const struct mo_approvals *d,
                                         const struct mo_approval_decision *x)
{
    struct mo_identity who = identity_of(x);

    mo_list_each_entry (p, &d->pending, struct pending_call, node)
        if (mo_span_eq_ct(mo_span_cstr(p->k->id), x->id))
            return is_visible(p, &who) && !p->k->decided ? p : NULL;
    return NULL;
}

/* True if the decision comes with the credential of the client that made the
 * call: its token, or none at all where none is needed. */
static bool is_requester(const struct pending_call *p,
                         const struct mo_approval_decision *x)
{
    if (p->from == MO_POLICY_SESSION_NET) /* the model's program made it */
        return false;
    return (strcmp(x->door, "token") == 0 || strcmp(x->door, "open") == 0) &&
           mo_span_is(p->k->owner, x->name);
}

/* An approver stands for the operator, but not in their own matters. */
static enum mo_answered answered_by(const struct pending_call *p,
                                    const struct mo_approval_decision *x)
{
    bool is_own = *x->caller && mo_span_is(p->k->owner, x->caller);

    return *x->caller && (is_own || !x->is_approver) ? MO_ANSWERED_OWNER
                                                     : MO_ANSWERED_OPERATOR;
}

/* Why the person is none of the rule's panel; NULL: they are. Whose program a
 * box of an operator runs is not known: operators share such sessions. */
static const char *panel_refuses(const struct pending_call *p,
                                 const struct mo_panel *panel,
                                 const struct mo_identity *who)
{
    if (panel->four_eyes && p->from == MO_POLICY_SESSION_NET &&
        !p->k->owner.n && who->role >= MO_ROLE_OPERATOR)
        return "another person than an operator must approve this connection";
    return mo_panel_refuses(panel, &p->said, who, &p->k->owner, 1);
}

/* args: exact. */
static const char *why_forbidden(const struct mo_approvals *d,
                                 const struct pending_call *p,
                                 const struct mo_approval_decision *x,
                                 struct mo_span args)
{
    struct mo_verdict v = mo_approvals_verdict(d, p, args);
    struct mo_identity who = identity_of(x);
    const char *refused = NULL;

    if (v.action != MO_ACTION_ASK)
        return NULL;
    if (!v.panel.need && !mo_verdict_may_run(&v, answered_by(p, x), 0))
        return "only the operator may approve this call";
    if (v.panel.need)
        refused = panel_refuses(p, &v.panel, &who);
    if (refused)
        return refused;
    if (v.panel.need > 1 && x->args.p)
        return "the arguments cannot be changed where several persons must "
               "approve";
    if (v.approver != MO_APPROVER_CLIENT && strcmp(x->door, "token") == 0 &&
        is_requester(p, x))
        return "the token that made the call cannot approve it; decide on the "
               "page or with `mcp-orchestrator approvals`";
    return NULL;
}

const char *mo_approvals_forbidden(struct mo_approvals *d,
                                   const struct mo_approval_decision *x)
{
    const struct pending_call *p = find_pending(d, x);
    mo_autobuf struct mo_buf exact = {.max = MO_EXACT_MAX};

    if (!p)
        return NULL;
    if (x->remember == MO_REMEMBER_ALWAYS && *x->caller)
        return "only the operator can say always; say it for this session";
    if (!x->approved)
        return NULL;
    if (x->args.p && mo_exact_args(x->args, &exact, NULL) < 0)
        return NULL; /* refused for that */
    return why_forbidden(d, p, x, mo_buf_view(x->args.p ? &exact : &p->args));
}

static int check_denied(const struct mo_approvals *d,
                        const struct pending_call *p, struct mo_span args,
                        struct mo_err *e)
{
    struct mo_verdict v = mo_approvals_verdict(d, p, args);
    struct mo_span why = v.rule ? v.rule->reason : MO_SPAN("");

    if (v.action != MO_ACTION_DENY)
        return 0;
    return mo_fail(e, MO_EINVAL, "a rule denies these arguments%s%.*s",
                   why.n ? ": " : "", (int)why.n, why.p ? why.p : "");
}

/* Replaces the arguments of a pending call. The rules and the tool's schema
 * must allow the new ones; the person who wrote them has approved them. */
static int edit_args(struct mo_approvals *d, struct pending_call *p,
                     struct mo_json args, struct mo_err *e)
{
    struct mo_buf exact;
    int rc;

    mo_buf_init(&exact, MO_EXACT_MAX);
    rc = mo_exact_args(args, &exact, e);
    if (rc < 0)
        e->code = rc = MO_EINVAL;
    if (rc == 0 && !mo_span_eq(mo_buf_view(&exact), mo_buf_view(&p->args))) {
        rc = check_denied(d, p, mo_buf_view(&exact), e);
        if (rc == 0)
            rc = mo_gw_edit(p->k, mo_buf_view(&exact), e);
        if (rc == 0) {
            mo_buf_fini(&p->args);
            p->args = exact;
            return 0;
        }
    }
    mo_buf_fini(&exact);
    return rc;
}

static int check_remember(const struct pending_call *p,
                          const struct mo_approval_decision *x,
                          struct mo_err *e)
{
    if (x->remember == MO_REMEMBER_NO || mo_pending_is_connection(p))
        return 0;
    return mo_fail(e, MO_EINVAL,
                   "only a decision about a connection can be remembered here");
}

/* MO_EPOLICY: the decision is about something else than the pending call. */
static int check_shown(const struct pending_call *p,
                       const struct mo_approval_decision *x, struct mo_err *e)
{
    if (p->k->by_client)
        return mo_fail(e, MO_EPOLICY, "its client asks the person itself");
    if (x->digest && x->digest->n == 0)
        return mo_fail(e, MO_EINVAL,
                       "the digest is empty; send the one that was shown");
    if (x->digest && !mo_span_eq_ct(*x->digest, mo_span_cstr(p->digest)))
        return mo_fail(e, MO_EPOLICY,
                       "the call is not what was shown; review it again");
    if (x->args.p && !x->digest)
        return mo_fail(e, MO_EINVAL,
                       "other arguments need the digest of what was shown");
    return 0;
}

/* One row for each person of a panel. */
static void audit_yes(const struct pending_call *p,
                      const struct mo_approval_decision *x)
{
    const struct mo_door door = {x->door, is_requester(p, x)};
    const struct mo_audit_row row = {
        .event = "kind",
        .subject = MO_SPAN("approval"),
        .server = p->k->server,
        .tool = p->k->tool,
        .call = mo_span_cstr(p->k->id),
        .digest = p->digest,
        .approved = &x->approved,
        .by = "person",
        .who = p->k->who,
        .decided_by = x->who,
        .door = &door,
        .count = p->said.n,
    };

    mo_audit_note(p->d->audit, &row);
}

/* Counts a yes. True: no further person is needed. */
static bool count_yes(struct pending_call *p,
                      const struct mo_approval_decision *x)
{
    struct mo_panel panel = panel_of(p);
    struct mo_identity who = identity_of(x);
    bool enough;

    if (!panel.need) {
        p->said = (struct mo_said){.n = 0};
        return true;
    }
    enough = mo_said_add(&p->said, &panel, who.name);
    audit_yes(p, x);
    if (x->missing)
        *x->missing = mo_said_missing(&p->said, &panel);
    return enough;
}

int mo_approvals_decide(struct mo_approvals *d,
                        const struct mo_approval_decision *x, struct mo_err *e)
{
    struct pending_call *p = find_pending(d, x);
    const char *why = NULL;
    int rc;

    if (!p)
        return mo_fail(e, MO_ENOTFOUND,
                       "no such call is waiting for a decision");
    rc = check_shown(p, x, e);
    if (rc == 0)
        rc = check_remember(p, x, e);
    if (rc == 0)
        why = mo_approvals_forbidden(d, x);
    if (why)
        rc = mo_fail(e, MO_EPOLICY, "%s", why);
    if (rc == 0 && x->args.p)
        rc = edit_args(d, p, x->args, e);
    else if (rc == 0 && x->approved)
        rc = check_denied(d, p, mo_buf_view(&p->args), e);
    if (rc == 0 && x->remember != MO_REMEMBER_NO)
        rc = mo_connections_remember(p, x, e);
    if (rc < 0)
        return rc;
    if (x->approved && !count_yes(p, x))
        return 0; /* it waits for others */
    (void)snprintf(p->who, sizeof(p->who), "%s", x->who);
    (void)snprintf(p->k->reason, sizeof(p->k->reason), "%.*s", (int)x->reason.n,
                   x->reason.p ? x->reason.p : "");
    p->k->panel = x->approved ? p->said.panel : 0;
    p->k->answered = !x->approved  ? MO_ANSWERED_NOT
                     : p->k->panel ? MO_ANSWERED_PANEL
                                   : answered_by(p, x);
    p->k->door = (struct mo_door){x->door, is_requester(p, x)};
    if (!mo_gw_decide(p->k, x->approved, "person"))
        return mo_fail(e, MO_ENOTFOUND, "the call was already decided");
    return 0;
}

void mo_approvals_drop_denied(struct mo_approvals *d)
{
    mo_list_each_entry_safe (p, &d->pending, struct pending_call, node) {
        struct mo_verdict v = mo_approvals_verdict(d, p, mo_buf_view(&p->args));
        struct mo_span why = v.rule ? v.rule->reason : MO_SPAN("");

        if (v.action == MO_ACTION_ASK)
            p->approver = v.approver;
        if (v.action != MO_ACTION_DENY || p->k->by_client)
            continue;
        (void)snprintf(p->k->reason, sizeof(p->k->reason), "%.*s", (int)why.n,
                       why.n ? why.p : "");
        (void)mo_gw_decide(p->k, false, "rule");
    }
}

static void audit_accepted(struct mo_approvals *d, const struct mo_tool *t,
                           const char *who)
{
    mo_audit_note(d->audit,
                  &(struct mo_audit_row){.event = "kind",
                                         .subject = MO_SPAN("accepted"),
                                         .server = t->def.server,
                                         .tool = t->def.name,
                                         .digest = t->digest,
                                         .decided_by = who});
}

int mo_approvals_accept(struct mo_approvals *d,
                        const struct mo_approval_accept *x, struct mo_err *e)
{
    const struct mo_tool *t =
        mo_policy_find_changed(d->policy, x->server, x->tool);

    if (!t)
        return mo_fail(e, MO_ENOTFOUND,
                       "no such tool is waiting to be accepted");
    if (!mo_span_eq_ct(x->digest, mo_span_cstr(t->digest)))
        return mo_fail(e, MO_EPOLICY,
                       "the tool is not what was shown; review it again");
    audit_accepted(d, t, x->who);
    if (mo_policy_accept_tool(d->policy, t) < 0)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    return 0;
}
