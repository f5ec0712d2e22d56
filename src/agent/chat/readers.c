#include "agent/chat/readers.h"

#include "people/share.h"

/* --- joining and leaving lists ------------------------------------------- */

static bool is_of(const struct mo_member *m, struct mo_span session)
{
    return m->reads && mo_span_is(session, m->session);
}

static void close_reader(struct mo_member *m, const char *reason,
                         const struct mo_err *why)
{
    const struct mo_member_cb *cb = m->cb;
    void *ctx = m->ctx;

    mo_list_del(&m->node);
    m->agent->nreaders--;
    mo_free(m);
    cb->on_closed(ctx, reason, why);
}

/* The chat is not open here. */
static void tell_waiting(struct mo_member *m)
{
    mo_autobuf struct mo_buf b = {.max = 256};
    struct mo_jw w = mo_jw_object(&b);

    mo_jw_member_cstr(&w, "sessionId", m->session);
    mo_jw_member_bool(&w, "open", false);
    mo_jw_member_cstr(&w, "may", m->may_decide ? "approve" : "read");
    mo_jw_end(&w);
    if (mo_buf_err(&b) == 0)
        m->cb->on_event(m->ctx, "session:shared", mo_buf_view(&b));
}

static void enter_chat(struct mo_member *m, struct chat *c)
{
    mo_list_del(&m->node);
    m->chat = c;
    m->greeted = false;
    mo_list_push(&c->members, &m->node);
    mo_chat_settle(c);
}

void mo_readers_chat_gone(struct chat *c)
{
    mo_list_each_entry_safe (m, &c->members, struct mo_member, node) {
        MO_BUG_ON(!m->reads);
        mo_list_del(&m->node);
        m->chat = NULL;
        m->greeted = false;
        mo_list_push(&c->agent->readers, &m->node);
        tell_waiting(m);
    }
}

void mo_readers_close_all(struct mo_agent *a)
{
    struct mo_member *m = mo_list_first(&a->readers, struct mo_member, node);

    for (; m; m = mo_list_first(&a->readers, struct mo_member, node))
        close_reader(m, "shutdown", NULL);
}

/* --- judging ------------------------------------------------------------- */

struct facts { /* of a session's row */
    struct mo_span session, shares;
    const char *owner;
    bool exists;
};

static enum mo_share judge(const struct mo_member *m, const struct facts *f)
{
    const struct mo_identity who = {
        .name = m->name, .role = m->role, .people = m->people};

    if (!f->exists)
        return MO_SHARE_NONE;
    if (m->role >= MO_ROLE_OPERATOR ||
        (*m->name && strcmp(m->name, f->owner) == 0))
        return MO_SHARE_APPROVE;
    return mo_share_of(f->shares, &who);
}

/* A reader of the session who may not read it; NULL: none. */
static struct mo_member *find_lost(struct mo_list *list, const struct facts *f)
{
    mo_list_each_entry (m, list, struct mo_member, node)
        if (is_of(m, f->session) && judge(m, f) == MO_SHARE_NONE)
            return m;
    return NULL;
}

static void close_lost(struct mo_list *list, const struct facts *f)
{
    struct mo_member *m = find_lost(list, f);
    struct mo_err gone;

    mo_fail(&gone, MO_ENOTFOUND, "there is no such session");
    for (; m; m = find_lost(list, f))
        close_reader(m, "withdrawn", &gone);
}

static void judge_all(struct mo_agent *a, const struct facts *f)
{
    struct chat *c = mo_map_get(&a->chats, f->session);
    bool open = c && c->ready && c->state != CHAT_ENDING &&
                strcmp(c->owner, f->owner) == 0;

    close_lost(&a->readers, f);
    if (c)
        close_lost(&c->members, f);
    mo_list_each_entry_safe (m, &a->readers, struct mo_member, node) {
        bool was = m->judged;

        if (!is_of(m, f->session))
            continue;
        m->judged = true;
        m->may_decide = judge(m, f) == MO_SHARE_APPROVE;
        if (open)
            enter_chat(m, c);
        else if (!was)
            tell_waiting(m); /* m may be gone */
    }
    if (!c)
        return;
    mo_list_each_entry (m, &c->members, struct mo_member, node)
        if (m->reads)
            m->may_decide = judge(m, f) == MO_SHARE_APPROVE;
}

void mo_agent_shared(struct mo_agent *a, struct mo_span session,
                     const char *owner, struct mo_span shares)
{
    const struct facts f = {session, shares, owner, true};

    judge_all(a, &f);
}

/* --- looking at the row -------------------------------------------------- */

struct look {
    struct mo_agent *agent;
    char session[MO_SESSION_ID_MAX + 1];
};

/* The row cannot be read: who was not judged yet is told. */
static void close_unjudged(struct mo_agent *a, struct mo_span session,
                           const struct mo_err *why)
{
    mo_list_each_entry_safe (m, &a->readers, struct mo_member, node)
        if (is_of(m, session) && !m->judged)
            close_reader(m, "failed", why);
}

static void on_row(void *ctx, const struct mo_rows *rows,
                   const struct mo_err *why)
{
    struct look *l = ctx;
    struct mo_agent *a = l->agent;
    struct mo_session_row row = {.created = 0};
    struct facts f = {.session = mo_span_cstr(l->session), .owner = ""};

    a->nlooks--;
    if (why) {
        close_unjudged(a, f.session, why);
    } else if (!a->closing) {
        f.exists =
            rows->n == 1 && mo_session_row(rows->v[0].doc, &row, NULL) == 0;
        f.owner = row.owner;
        f.shares = f.exists ? rows->v[0].shares : mo_span(NULL, 0);
        judge_all(a, &f);
    }
    mo_free(l);
    mo_agent_check(a);
}

static int look_at_row(struct mo_agent *a, const char *session,
                       struct mo_err *e)
{
    struct look *l = mo_new(struct look);
    struct mo_read r = {.kind = MO_READ_SESSION};
    int rc;

    if (!l)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    l->agent = a;
    snprintf(l->session, sizeof(l->session), "%s", session);
    r.session = mo_span_cstr(l->session);
    rc = mo_store_read(a->o.store, &r, on_row, l, e);
    if (rc < 0)
        mo_free(l);
    else
        a->nlooks++;
    return rc;
}

void mo_readers_chat_ready(struct chat *c)
{
    struct mo_err e;

    mo_list_each_entry (m, &c->agent->readers, struct mo_member, node)
        if (is_of(m, mo_span_cstr(c->id))) {
            (void)look_at_row(c->agent, c->id, &e); /* else they wait on */
            return;
        }
}

/* --- from outside -------------------------------------------------------- */

static unsigned count_of(const struct mo_agent *a, struct mo_span session)
{
    const struct chat *c = mo_map_get(&a->chats, session);
    unsigned n = 0;

    mo_list_each_entry (m, &a->readers, const struct mo_member, node)
        n += is_of(m, session);
    if (!c)
        return n;
    mo_list_each_entry (m, &c->members, const struct mo_member, node)
        n += m->reads;
    return n;
}

int mo_chat_follow(struct mo_agent *a, const struct mo_join *j,
                   const struct mo_member_cb *cb, void *ctx,
                   struct mo_member **out, struct mo_err *e)
{
    struct mo_member *m;
    int rc;

    if (a->closing)
        return mo_fail(e, MO_ECLOSED, "the program is shutting down");
    if (!mo_session_id_ok(j->session))
        return mo_fail(e, MO_ENOTFOUND, "there is no such session");
    if (a->nreaders >= MO_AGENT_READERS ||
        count_of(a, j->session) >= MO_CHAT_READERS)
        return mo_fail(e, MO_EBUSY, "too many people read it already");
    m = mo_new(struct mo_member);
    if (m == NULL)
        return mo_fail(e, MO_ENOMEM, "out of memory");
    *m = (struct mo_member){.agent = a,
                            .cb = cb,
                            .ctx = ctx,
                            .door = j->door,
                            .role = j->person.role,
                            .people = j->person.people,
                            .is_operator = j->person.role >= MO_ROLE_OPERATOR,
                            .reads = true};
    memcpy(m->session, j->session.p, j->session.n);
    snprintf(m->name, sizeof(m->name), "%s", j->person.name);
    snprintf(m->who, sizeof(m->who), "%.*s", (int)j->who.n, j->who.p);
    rc = look_at_row(a, m->session, e);
    if (rc < 0) {
        mo_free(m);
        return rc;
    }
    mo_list_push(&a->readers, &m->node);
    a->nreaders++;
    *out = m;
    return 0;
}

bool mo_member_may_decide(const struct mo_member *m)
{
    return m->chat && (!m->reads || m->may_decide);
}

bool mo_member_reads(const struct mo_member *m)
{
    return m->reads;
}
