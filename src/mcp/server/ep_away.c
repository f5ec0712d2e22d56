/* ep_away.c - tasks and waiting calls of modern clients that another process of
 * the store has.
 *
 * If the transport has a home (ep_http.h), the ids of tasks and requestState
 * say which process has the task, or the call that waits for answers
 * (ep_ref.h). A request that names one of another process is passed there
 * whole, before the handler has seen it. A name that is none of ours, or not
 * for this caller, stays as it is: nobody knows it, and the client is told so.
 *
 *   taskId         REF of the handler's id
 *   requestState   REF of nothing, ".", the seal of ep_rounds.c */
#include "mcp/server/ep_priv.h"
#include "mcp/server/ep_ref.h"

#define TASK_GONE                                                              \
    "no such task: the server that ran it has ended; it may have had an "      \
    "effect"
#define STATE_GONE                                                             \
    "the server that has the call of this requestState has ended; the call "   \
    "may have had an effect. Send the request again without it to begin anew"

static struct mo_ep_ref task_ref(const struct call *c)
{
    return (struct mo_ep_ref){"task", c->view, c->pub.caller};
}

static struct mo_ep_ref state_ref(const struct call *c)
{
    return (struct mo_ep_ref){"state", c->view, c->pub.caller};
}

static bool is_ours(const struct call *c, const char *instance)
{
    return strcmp(instance, c->home->instance) == 0;
}

/* --- tasks ---------------------------------------------------------------- */

void mo_ep_put_task_id(const struct call *c, struct mo_jw *w, struct mo_json id)
{
    const struct mo_ep_ref r = task_ref(c);
    mo_autobuf struct mo_buf own = {.max = MO_SEAL_MAX};
    mo_autobuf struct mo_buf name = {.max = 2 * MO_SEAL_MAX};

    if (!id.p)
        return;
    if (c->home && mo_json_is(id, MO_JSON_STRING) &&
        mo_json_str_buf(id, &own) == 0 &&
        mo_ep_ref_put(c->home, &r, mo_buf_view(&own), &name) == 0)
        mo_jw_member(w, "taskId", mo_buf_view(&name));
    else
        mo_jw_member_raw(w, "taskId", mo_json_text(id));
}

bool mo_ep_task_is_here(const struct call *c, struct mo_span *id,
                        struct mo_buf *plain)
{
    const struct mo_ep_ref r = task_ref(c);
    const char *instance = NULL;
    struct mo_span own;

    if (!c->home ||
        mo_ep_ref_open(c->home, &r, *id, plain, &instance, &own) < 0)
        return true;
    if (!is_ours(c, instance))
        return false;
    *id = own;
    return true;
}

bool mo_ep_task_is_away(struct call *c)
{
    const struct mo_ep_ref r = task_ref(c);
    mo_autobuf struct mo_buf plain = {.max = MO_SEAL_MAX};
    const char *instance = NULL;
    struct mo_span own;

    if (!c->home ||
        mo_ep_ref_open(c->home, &r, c->pub.name, &plain, &instance, &own) < 0)
        return false;
    if (!is_ours(c, instance))
        return mo_ep_call_pass(c, instance, TASK_GONE);
    own = mo_span_dup(&c->arena, own);
    if (own.p)
        c->pub.name = own;
    return false;
}

/* Copy the instance that has the task. False: it is this one, or unknown. */
static bool read_instance(const struct call *c, struct mo_json id,
                          char out[MO_EP_INSTANCE_MAX])
{
    const struct mo_ep_ref r = task_ref(c);
    mo_autobuf struct mo_buf text = {.max = 2 * MO_SEAL_MAX};
    mo_autobuf struct mo_buf plain = {.max = MO_SEAL_MAX};
    const char *instance = NULL;
    struct mo_span own;

    if (!mo_json_is(id, MO_JSON_STRING) || mo_json_str_buf(id, &text) < 0 ||
        mo_ep_ref_open(c->home, &r, mo_buf_view(&text), &plain, &instance,
                       &own) < 0 ||
        is_ours(c, instance) || strlen(instance) >= MO_EP_INSTANCE_MAX)
        return false;
    memcpy(out, instance, strlen(instance) + 1);
    return true;
}

bool mo_ep_tasks_are_away(struct call *c, struct mo_json ids)
{
    char all[MO_EP_INSTANCE_MAX] = "", one[MO_EP_INSTANCE_MAX] = "";

    if (!c->home || !mo_json_is(ids, MO_JSON_ARRAY))
        return false;
    mo_json_each (m, ids) {
        if (!read_instance(c, m.val, one) || (all[0] && strcmp(one, all) != 0))
            return false;
        memcpy(all, one, sizeof(all));
    }
    return all[0] && mo_ep_call_pass(c, all, TASK_GONE);
}

/* --- requestState --------------------------------------------------------- */

int mo_ep_put_state_home(const struct call *c, struct mo_buf *out)
{
    const struct mo_ep_ref r = state_ref(c);
    int rc = 0;

    if (!c->home)
        return 0;
    rc = mo_ep_ref_put(c->home, &r, mo_span(NULL, 0), out);
    return rc < 0 ? rc : mo_buf_putc(out, '.');
}

bool mo_ep_state_is_away(struct call *c, struct mo_span *text)
{
    const struct mo_ep_ref r = state_ref(c);
    mo_autobuf struct mo_buf plain = {.max = MO_EP_ID_MAX};
    struct mo_span rest = *text, own;
    struct mo_span name = mo_span_cut(&rest, '.');
    const char *instance = NULL;

    if (!c->home || !rest.p ||
        mo_ep_ref_open(c->home, &r, name, &plain, &instance, &own) < 0)
        return false;
    if (!is_ours(c, instance))
        return mo_ep_call_pass(c, instance, STATE_GONE);
    *text = rest;
    return false;
}
