/* chat_mode.c - the mode of a conversation; and changes of what runs in it
 * without asking: the mode is set, a grant is revoked.
 *
 * A change is three steps: its audit row is on disk, the chat has it in memory,
 * the session's row has it. A call that is judged after the second step is
 * judged by the change; it is acknowledged after the third. "ask" holds at
 * once, before its row: a person who switches a mode off waits for nothing. Of
 * several wishes the last one counts, in whatever order the rows are written.
 */
#include "agent/chat/chat_mode.h"

#include "agent/chat/calls.h"
#include "agent/chat/event.h"
#include "agent/chat/load_tools.h"
#include "agent/chat/script_grant.h"
#include "policy/connections.h"

static const struct {
    const char *name, *by;
    unsigned bit; /* of enum mo_modes */
} modes[MO_CHAT_MODES] = {
    [MO_CHAT_ASK] = {"ask", "mode:ask", 0},
    [MO_CHAT_READS] = {"reads", "mode:reads", MO_MODES_READS},
    [MO_CHAT_BOX] = {"box", "mode:box", MO_MODES_BOX},
};

const char *mo_chat_mode_name(enum mo_chat_mode m)
{
    return modes[m].name;
}

int mo_chat_mode_named(struct mo_json name)
{
    for (int i = 0; i < MO_CHAT_MODES; i++)
        if (mo_json_str_eq(name, mo_span_cstr(modes[i].name)))
            return i;
    return -1;
}

/* --- what it lets through ------------------------------------------------ */

static const struct mo_config *config_of(const struct chat *c)
{
    return mo_policy_config(c->agent->o.policy);
}

/* True if a rule allows a connection of the box to some host. */
static bool allows_hosts(const struct mo_rules *rules)
{
    const struct mo_subject s = {.server = MO_SPAN(MO_CONNECTIONS_BOX),
                                 .tool = MO_SPAN(MO_RULE_CONNECT)};

    for (size_t i = 0; i < rules->n; i++) {
        enum mo_rule_part miss = mo_rule_misses(&rules->v[i], &s, NULL);

        if (rules->v[i].action == MO_ACTION_ALLOW &&
            (miss == MO_RULE_ARG || miss == MO_RULE_FITS))
            return true;
    }
    return false;
}

const char *mo_chat_box_network(const struct chat *c)
{
    const struct mo_config_network *n = &config_of(c)->sandbox.network;
    const struct mo_policy *p = c->agent->o.policy;

    if (n->json == NULL)
        return "none";
    if (!n->ask || n->allow.n || n->inject.n ||
        allows_hosts(mo_policy_operator_rules(p)) ||
        allows_hosts(mo_remembered_rules_all(mo_policy_remembered(p))))
        return "some";
    return "ask";
}

static bool can_write_to_host(const struct chat *c)
{
    for (size_t i = 0; c->info.mounts && c->info.mounts[i]; i++) {
        const char *mode = strrchr(c->info.mounts[i], ':');

        if (mode == NULL || strcmp(mode, ":ro") != 0)
            return true;
    }
    return false;
}

const char *mo_chat_mode_refuses(const struct chat *c, enum mo_chat_mode m)
{
    if (m == MO_CHAT_ASK)
        return NULL;
    if (!((unsigned)config_of(c)->approvals.modes & modes[m].bit))
        return "the operator does not permit this mode";
    if (m != MO_CHAT_BOX)
        return NULL;
    if (strcmp(mo_chat_box_network(c), "some") == 0)
        return "the box can reach hosts without asking";
    return can_write_to_host(c) ? "the box can write to a folder of the host"
                                : NULL;
}

enum mo_chat_mode mo_chat_mode_now(const struct chat *c)
{
    return mo_chat_mode_refuses(c, c->mode.set) ? MO_CHAT_ASK : c->mode.set;
}

const char *mo_chat_mode_by(const struct chat *c)
{
    return modes[c->mode.set].by;
}

static bool is_known(const struct chat *c, const struct mo_tool *t)
{
    const struct mo_buf *b = &c->mode.known;

    for (size_t i = 0; i + KNOWN_DIGEST <= b->len; i += KNOWN_DIGEST)
        if (memcmp(b->p + i, t->digest, KNOWN_DIGEST) == 0)
            return true;
    return false;
}

static bool only_reads(const struct mo_tool *t)
{
    return t->source != SOURCE_ROUTER && (t->claims & MO_CLAIM_READ_ONLY) != 0;
}

bool mo_chat_mode_allows(const struct call *k, const struct mo_verdict *v)
{
    if (v->action != MO_ACTION_ASK || v->rule || v->panel.need ||
        v->approver == MO_APPROVER_OPERATOR)
        return false;
    switch (mo_chat_mode_now(k->chat)) {
    case MO_CHAT_READS:
        return only_reads(k->tool) && is_known(k->chat, k->tool);
    case MO_CHAT_BOX:
        return k->tool->source == SOURCE_BOX && !k->routed;
    default:
        return false;
    }
}

static bool is_named(struct mo_json names, struct mo_span name)
{
    if (!names.p)
        return true;
    mo_json_each (at, names)
        if (mo_json_str_eq(at.val, name))
            return true;
    return false;
}

/* Notes the tools of now that say they only read, of those that are named. */
static void note_tools(const struct chat *c, struct mo_json names,
                       struct mo_buf *known)
{
    for (size_t i = 0; i < mo_tools_count(c->tools); i++) {
        const struct mo_tool *t = mo_tools_at(c->tools, i);

        if (only_reads(t) && !mo_changed_tools_is_blocked(c, t) &&
            is_named(names, t->name) &&
            known->len + KNOWN_DIGEST <= KNOWN_BYTES)
            mo_buf_put(known, t->digest, KNOWN_DIGEST);
    }
}

/* --- as documents -------------------------------------------------------- */

void mo_chat_mode_read(struct chat *c, struct mo_json v)
{
    int m = mo_chat_mode_named(mo_json_get(v, "name"));
    struct chat_mode *mode = &c->mode;

    mode->set = MO_CHAT_ASK;
    mo_buf_reset(&mode->known);
    if (m <= 0 || mo_json_str_copy(mo_json_get(v, "who"), mode->who,
                                   sizeof(mode->who)) < 0)
        return;
    (void)mo_json_u64(mo_json_get(v, "at"), &mode->at);
    if (mo_json_get(v, "tools").p &&
        mo_json_str_buf(mo_json_get(v, "tools"), &mode->known) < 0)
        mo_buf_reset(&mode->known);
    mode->set = (enum mo_chat_mode)m;
}

void mo_chat_mode_put(struct mo_jw *w, const struct chat *c)
{
    const struct chat_mode *mode = &c->mode;

    if (mode->set == MO_CHAT_ASK)
        return;
    mo_jw_member_obj(w, "mode");
    mo_jw_member_cstr(w, "name", modes[mode->set].name);
    mo_jw_member_cstr(w, "who", mode->who);
    mo_jw_member_u64(w, "at", mode->at);
    mo_jw_member_opt(w, "tools", mo_buf_view(&mode->known));
    mo_jw_end(w);
}

void mo_chat_mode_tell(struct mo_jw *w, const struct chat *c)
{
    enum mo_chat_mode now = mo_chat_mode_now(c);

    mo_jw_member_cstr(w, "mode", modes[now].name);
    if (now != MO_CHAT_ASK) {
        mo_jw_member_cstr(w, "by", c->mode.who);
        mo_jw_member_u64(w, "at", c->mode.at);
    }
    if (now == MO_CHAT_READS)
        mo_jw_member_u64(w, "tools", c->mode.known.len / KNOWN_DIGEST);
    mo_jw_member_arr(w, "modes");
    for (int i = 0; i < MO_CHAT_MODES; i++) {
        const char *why = mo_chat_mode_refuses(c, (enum mo_chat_mode)i);

        mo_jw_obj(w);
        mo_jw_member_cstr(w, "mode", modes[i].name);
        mo_jw_member_opt(w, "why", mo_span_cstr(why));
        mo_jw_end(w);
    }
    mo_jw_end(w);
    mo_jw_member_u64(w, "grants", c->remembered.rules.n);
}

/* --- changes ------------------------------------------------------------- */

struct change {
    struct mo_agent *agent;
    char session[MO_SESSION_ID_MAX + 1];
    char grant[GRANT_ID_MAX]; /* to revoke; "": the mode is set */
    enum mo_chat_mode mode;
    unsigned wish;       /* number of the wish */
    struct mo_buf known; /* reads: as in struct chat_mode */
    char who[MO_PERSON_MAX];
    mo_done_fn *done;
    void *ctx;
};

static void finish_change(struct change *x, const struct mo_err *why)
{
    struct change was = *x;

    mo_buf_fini(&x->known);
    mo_free(x);
    was.done(was.ctx, why);
}

static struct chat *find_open(struct mo_agent *a, struct mo_span session,
                              struct mo_err *e)
{
    struct chat *c = mo_map_get(&a->chats, session);

    if (c && c->hold && c->ready && c->state != CHAT_OPENING &&
        c->state != CHAT_ENDING)
        return c;
    mo_fail(e, MO_EPOLICY, "the conversation is not open; open it first");
    return NULL;
}

/* ctx: the change; its chat cannot end before. */
static void on_change_stored(void *ctx, const struct mo_err *why)
{
    struct change *x = ctx;
    struct chat *c = mo_map_get(&x->agent->chats, mo_span_cstr(x->session));

    if (c) {
        if (why && !x->grant[0] && x->wish == c->mode.wishes)
            c->mode.set = MO_CHAT_ASK; /* what is on is also stored */
        c->writes--;
        mo_chat_event_approvals(c);
        mo_chat_settle(c);
    }
    finish_change(x, why);
}

static void set_mode(struct chat *c, struct change *x)
{
    struct mo_buf old = c->mode.known;

    c->mode.set = x->mode;
    c->mode.at = mo_wall_ms();
    memcpy(c->mode.who, x->who, sizeof(c->mode.who));
    c->mode.known = x->known;
    x->known = old; /* freed with the change */
}

static int make_change(struct chat *c, struct change *x, struct mo_err *e)
{
    const char *no = mo_chat_mode_refuses(c, x->mode);
    size_t i;

    if (!x->grant[0]) {
        if (no || x->wish != c->mode.wishes)
            return mo_fail(e, MO_EPOLICY, "%s",
                           no ? no : "the mode was set again meanwhile");
        set_mode(c, x);
        return 0;
    }
    if (mo_script_revoke(c, mo_span_cstr(x->grant)))
        return 0;
    i = mo_session_memory_find(c, mo_span_cstr(x->grant));
    if (i == REMEMBERED_MAX)
        return mo_fail(e, MO_ENOTFOUND, "there is no such grant");
    return mo_session_memory_drop(c, i) < 0
               ? mo_fail(e, MO_ENOMEM, "out of memory")
               : 0;
}

static void on_change_audited(void *ctx, const struct mo_err *why)
{
    struct change *x = ctx;
    struct mo_err e;
    struct chat *c =
        why ? NULL : find_open(x->agent, mo_span_cstr(x->session), &e);
    int rc = c ? make_change(c, x, &e) : -1;

    if (rc == 0)
        rc = mo_session_memory_store(c, on_change_stored, x, &e);
    if (rc == 0)
        c->writes++;
    else
        finish_change(x, why ? why : &e);
}

static int audit_change(struct change *x, const struct chat *c,
                        const struct mo_approval_change *by, struct mo_err *e)
{
    size_t i = mo_session_memory_find(c, mo_span_cstr(x->grant));
    struct mo_audit_row row = {
        .event = "kind",
        .subject = x->grant[0] ? MO_SPAN("grant") : MO_SPAN("mode"),
        .name = mo_span_cstr(x->grant),
        .action = x->grant[0] ? "revoked" : modes[x->mode].name,
        .session = mo_span_cstr(x->session),
        .decided_by = x->who,
        .via = by->door,
    };

    if (i < REMEMBERED_MAX) {
        row.server = c->remembered.v[i].server;
        row.tool = c->remembered.v[i].tool;
    }
    if (c->agent->o.audit == NULL)
        return mo_fail(e, MO_EUNAVAIL, "there is no audit log");
    return mo_audit_first(c->agent->o.audit, &row, on_change_audited, x, e);
}

int mo_agent_change_approvals(struct mo_agent *a,
                              const struct mo_approval_change *by,
                              mo_done_fn *done, void *ctx, struct mo_err *e)
{
    struct chat *c = find_open(a, by->session, e);
    const char *no = c ? mo_chat_mode_refuses(c, by->mode) : NULL;
    struct change *x = NULL;
    int rc;

    if (c == NULL)
        return e->code;
    if (by->grant.n && !mo_script_has_grant(c, by->grant) &&
        mo_session_memory_find(c, by->grant) == REMEMBERED_MAX)
        return mo_fail(e, MO_ENOTFOUND, "there is no such grant");
    if (!by->grant.n && no)
        return mo_fail(e, MO_EPOLICY, "%s", no);
    x = mo_new(struct change);
    if (x == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *x =
        (struct change){.agent = a, .mode = by->mode, .done = done, .ctx = ctx};
    memcpy(x->session, c->id, sizeof(x->session));
    memcpy(x->grant, by->grant.n ? by->grant.p : "", by->grant.n);
    snprintf(x->who, sizeof(x->who), "%s", by->who);
    mo_buf_init(&x->known, KNOWN_BYTES);
    if (by->mode == MO_CHAT_READS)
        note_tools(c, by->tools, &x->known);
    if (!by->grant.n) {
        x->wish = ++c->mode.wishes;
        if (by->mode == MO_CHAT_ASK)
            c->mode.set = MO_CHAT_ASK;
    }
    rc = audit_change(x, c, by, e);
    if (rc < 0) {
        mo_buf_fini(&x->known);
        mo_free(x);
    }
    return rc;
}
