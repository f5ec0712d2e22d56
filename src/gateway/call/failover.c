/* failover.c - retries a failed call, or moves it to a fallback server.
 *
 * A call is sent again only if nothing can have been done yet (there was no
 * child, or nothing was written), or if repeating it does no harm: a tool that
 * its server or the configuration declares read-only or idempotent, or a
 * method that only reads (resources, prompts, completions). Otherwise the
 * outcome is "unknown".
 *
 * First the same server is tried, up to the configured retries
 * (server_overrides.h) and within the time for the call. Then its fallback
 * servers, in order, each once, and only for tools. A server that cannot be
 * reached is not retried. A call stays with its server once that server has
 * asked a question or given it a task. */
#include "gateway/call/forwarded_call.h"
#include "gateway/upstream/server_overrides.h"

void mo_failover_fini(struct failover *d)
{
    mo_free(d->why);
    mo_free(d->first_server);
    d->why = d->first_server = NULL;
}

/* --- whether a call may be repeated -------------------------------------- */

static bool is_tool(const struct mo_ep_call *c)
{
    return mo_span_is(c->method, "tools/call");
}

static bool is_harmless(const struct mo_ep_call *c, const struct call_target *t)
{
    static const char *const reads[] = {"resources/read", "prompts/get",
                                        "completion/complete"};
    struct mo_json hints = mo_json_get(t->item, "annotations");

    for (size_t i = 0; i < MO_COUNT(reads); i++)
        if (mo_span_is(c->method, reads[i]))
            return true;
    return is_tool(c) &&
           (mo_json_flag(hints, "readOnlyHint") ||
            mo_json_flag(hints, "idempotentHint") ||
            mo_overrides_tool(t->slot->overrides, t->own)->idempotent);
}

static uint64_t now_ms(void)
{
    return mo_now_ns() / MO_MS;
}

static uint64_t call_time_ms(const struct call_target *t)
{
    const struct mo_config_tool *m =
        mo_overrides_tool(t->slot->overrides, t->own);
    uint64_t ms = m->timeout_ms ? (uint64_t)m->timeout_ms
                                : mo_upstream_server(t->slot->up)->call_ms;

    return ms ? ms : MO_CONN_IDLE_MS;
}

uint64_t mo_failover_time_left(struct forwarded_call *f,
                               const struct call_target *t)
{
    uint64_t all = call_time_ms(t), used;

    if (!f->failover.begun_ms) {
        f->failover.begun_ms = now_ms();
        return all;
    }
    used = now_ms() - f->failover.begun_ms;
    return used < all ? all - used : 1;
}

static bool has_time(const struct forwarded_call *f,
                     const struct call_target *t)
{
    return !f->failover.begun_ms ||
           now_ms() - f->failover.begun_ms < call_time_ms(t);
}

/* True if the request can still be sent elsewhere: its client waits, and the
 * server has neither asked a question nor given it a task. */
static bool may_move(const struct forwarded_call *f)
{
    return f->client == CLIENT_WAITING && f->down && !f->nquestions &&
           !f->failover.pinned && !f->g->closing;
}

/* The connection was never made. */
bool mo_failover_is_unsent(const struct mo_reply *r)
{
    return r->err && r->status == 0 &&
           (r->err->code == MO_EUNAVAIL || r->err->code == MO_ETLS);
}

/* --- targets ------------------------------------------------------------- */

/* The i-th fallback. A server whose lists are unknown may have the tool; one
 * without it is skipped (MO_ENOTFOUND), and so is what the client's view does
 * not show. MO_EINVAL: no more fallbacks. */
static int find_fallback(const struct forwarded_call *f,
                         const struct call_target *home, unsigned i,
                         struct call_target *t)
{
    const struct mo_catalog *cat = mo_gw_cat_of(f->g, f->down);
    const struct mo_cat_item *it;
    struct mo_span server, own;

    if (!mo_overrides_fallback(home->slot->overrides, home->own, i, &server,
                               &own))
        return MO_EINVAL;
    *t = *home;
    t->own = t->given = own;
    t->item = (struct mo_json){NULL, 0};
    t->execution = t->item;
    t->has_output_schema = false;
    t->slot = mo_gw_find_slot(f->g, server);
    if (!t->slot || t->slot == home->slot)
        return MO_ENOTFOUND;
    it = mo_catalog_tool(cat, t->slot->no, own);
    if (it)
        mo_rewrite_use_item(t, it);
    return it || mo_catalog_may_have(cat, t->slot->no, own) ? 0 : MO_ENOTFOUND;
}

/* The current target, from the original one. MO_EBUSY: the server was
 * replaced. */
static int current_target(const struct forwarded_call *f,
                          const struct call_target *home, struct call_target *t)
{
    *t = *home;
    if (!f->failover.on_fallback)
        return home->slot == f->slot ? 0 : MO_EBUSY;
    if (find_fallback(f, home, f->failover.next_fallback - 1, t) < 0 ||
        t->slot != f->slot)
        return MO_ENOTFOUND;
    return 0;
}

int mo_failover_target(struct forwarded_call *f, struct call_target *t)
{
    struct call_target home;
    int rc = mo_rewrite_target(f->g, f->down, &home);

    if (rc == 0)
        rc = current_target(f, &home, t);
    t->edited = (struct mo_json){f->edited.p, f->edited.len};
    if (rc != MO_EBUSY)
        return rc < 0 ? MO_ENOTFOUND : 0;
    /* The server was replaced by another one of that name. */
    if (f->failover.moves++ >= FAILOVER_MOVES_MAX)
        return MO_ENOTFOUND;
    mo_forward_move(f, home.slot);
    return MO_EBUSY;
}

static bool move_to_fallback(struct forwarded_call *f,
                             const struct call_target *home)
{
    struct call_target t;

    for (;;) {
        int rc = find_fallback(f, home, f->failover.next_fallback, &t);

        if (rc == MO_EINVAL)
            return false;
        f->failover.next_fallback++;
        if (rc == 0)
            break;
    }
    f->failover.on_fallback = true;
    f->failover.tries = 0;
    mo_forward_move(f, t.slot);
    return true;
}

static void note_first_failure(struct failover *d,
                               const struct call_target *home,
                               const struct mo_err *why)
{
    const char *name = mo_upstream_server(home->slot->up)->name;

    if (d->why)
        return;
    d->why = mo_strndup(why->msg, strlen(why->msg));
    d->first_server = mo_strndup(name, strlen(name));
}

/* --- retry --------------------------------------------------------------- */

/* A call that may have been run is repeated only if that does no harm. */
static bool may_repeat(const struct forwarded_call *f,
                       const struct call_target *home,
                       const struct call_target *t)
{
    if (!f->failover.sent)
        return true;
    return is_harmless(f->down, home) &&
           (t->slot == home->slot || !t->item.p || is_harmless(f->down, t)) &&
           has_time(f, home);
}

static bool retry_same_server(struct forwarded_call *f, enum failover_how how,
                              const struct call_target *t)
{
    unsigned most = mo_overrides_retries(t->slot->overrides, t->own);

    if (how == FAILOVER_NO_CHILD)
        return false;
    /* Nothing was sent to a connection that is lost: that is no try. */
    if (how == FAILOVER_UNSENT && f->failover.moves++ >= FAILOVER_MOVES_MAX)
        return false;
    if (how != FAILOVER_UNSENT && f->failover.tries++ >= most)
        return false;
    mo_forward_move(f, t->slot);
    return true;
}

bool mo_failover_retry(struct forwarded_call *f, enum failover_how how,
                       const struct mo_err *why)
{
    struct call_target home, t;

    f->failover.sent = f->failover.sent || how == FAILOVER_SENT;
    if (!may_move(f) || mo_rewrite_target(f->g, f->down, &home) < 0)
        return false;
    if (current_target(f, &home, &t) < 0)
        t = home; /* replaced meanwhile: use the new one */
    if (!may_repeat(f, &home, &t))
        return false;
    if (retry_same_server(f, how, &t))
        return true;
    if (!is_tool(f->down))
        return false;
    note_first_failure(&f->failover, &home, why);
    return move_to_fallback(f, &home);
}

/* --- _meta of the result ------------------------------------------------- */

static void put_route(struct mo_jw *w, const struct call_target *t)
{
    mo_jw_member_cstr(w, "server", mo_upstream_server(t->slot->up)->name);
    mo_jw_member(w, "tool", t->given);
    if (!t->arguments.p)
        return;
    mo_jw_member_f64(w, "confidence",
                     (double)(int)(t->sure * 100 + 0.5f) / 100);
}

int mo_failover_route(struct forwarded_call *f, const struct call_target *t)
{
    const struct failover *d = &f->failover;
    bool left = d->on_fallback && d->first_server && d->why;
    struct mo_jw w;

    mo_buf_reset(&f->route);
    if (!t->arguments.p && !left && !t->edited.p)
        return 0;
    w = mo_jw_object(&f->route);
    put_route(&w, t);
    if (left) {
        mo_jw_member_cstr(&w, "insteadOf", d->first_server);
        mo_jw_member_cstr(&w, "why", d->why);
    }
    if (t->edited.p)
        mo_jw_member_raw(&w, "editedArguments", mo_json_text(t->edited));
    mo_jw_end(&w);
    return mo_buf_err(&f->route);
}
