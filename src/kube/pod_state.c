/* pod_state.c - the state of a pod, and the policy of all; see pod.h. */
#include <stdio.h>

#include "kube/pod.h"

/* --- network policy ------------------------------------------------------ */

static const char policy_spec[] =
    "{\"podSelector\":{\"matchLabels\":{\"mo.role\":\"box\"}},"
    "\"policyTypes\":[\"Ingress\",\"Egress\"]}";

int mo_pod_policy_write(struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member_cstr(&w, "apiVersion", "networking.k8s.io/v1");
    mo_jw_member_cstr(&w, "kind", "NetworkPolicy");
    mo_jw_member_obj(&w, "metadata");
    mo_jw_member_cstr(&w, "name", MO_POD_POLICY);
    mo_jw_end(&w);
    mo_jw_member_raw(&w, "spec", mo_span_cstr(policy_spec));
    mo_jw_end_all(&w);
    return mo_buf_err(b);
}

/* Both directions, no exception, and no condition beyond our label. */
int mo_pod_policy_compare(struct mo_json policy, struct mo_err *e)
{
    struct mo_json spec = mo_json_get(policy, "spec");
    struct mo_json sel = mo_json_get(spec, "podSelector");
    struct mo_json types = mo_json_get(spec, "policyTypes");
    bool in = false, out = false;

    mo_json_each (at, types) {
        in |= mo_json_str_eq(at.val, MO_SPAN("Ingress"));
        out |= mo_json_str_eq(at.val, MO_SPAN("Egress"));
    }
    if (in && out && mo_json_len(mo_json_get(spec, "ingress")) == 0 &&
        mo_json_len(mo_json_get(spec, "egress")) == 0 &&
        mo_json_len(mo_json_get(sel, "matchExpressions")) == 0 &&
        mo_json_len(mo_json_get(sel, "matchLabels")) == 1 &&
        mo_json_str_eq(mo_json_get(mo_json_get(sel, "matchLabels"), "mo.role"),
                       MO_SPAN("box")))
        return 0;
    return mo_fail(e, MO_EPOLICY,
                   "NetworkPolicy " MO_POD_POLICY
                   " is not ours: remove it, or use another namespace");
}

/* --- state --------------------------------------------------------------- */

#define SHOWN_MAX  130
#define SHOWN_HEAD 40

/* A runtime's message names the step first and the cause last. */
static void shorten(struct mo_buf *m)
{
    char text[SHOWN_MAX + 1];

    if (m->len <= SHOWN_MAX)
        return;
    (void)snprintf(text, sizeof(text), "%.*s ... %.*s", SHOWN_HEAD, m->p,
                   SHOWN_MAX - SHOWN_HEAD - 5,
                   m->p + m->len - (SHOWN_MAX - SHOWN_HEAD - 5));
    (void)mo_buf_set(m, mo_span_cstr(text));
}

/* A scheduler also says of each node that preempting others would not help. */
static void cut_preemption(struct mo_buf *m)
{
    ptrdiff_t at = mo_span_search(mo_buf_view(m), MO_SPAN(" preemption: "));

    if (at >= 0)
        m->len = (size_t)at;
}

static void set_why(struct mo_pod_state *s, struct mo_json reason,
                    struct mo_json message)
{
    char r[64];
    mo_autobuf struct mo_buf m = {.max = 4096};

    (void)mo_json_str_copy(reason, r, sizeof(r));
    if (mo_json_str_buf(message, &m) < 0)
        mo_buf_reset(&m);
    cut_preemption(&m);
    shorten(&m);
    (void)snprintf(s->why, sizeof(s->why), "%s%s%.130s", r,
                   r[0] && m.len ? ": " : "", mo_buf_cstr(&m));
}

static struct mo_json condition(struct mo_json status, const char *type)
{
    mo_json_each (at, mo_json_get(status, "conditions"))
        if (mo_json_str_eq(mo_json_get(at.val, "type"), mo_span_cstr(type)))
            return at.val;
    return (struct mo_json){NULL, 0};
}

static bool is_false(struct mo_json cond)
{
    return mo_json_str_eq(mo_json_get(cond, "status"), MO_SPAN("False"));
}

/* Reasons that only a person can change. ErrImagePull is followed by
 * ImagePullBackOff if it was no accident. */
static void read_waiting(struct mo_pod_state *s, struct mo_json status,
                         struct mo_json waiting)
{
    static const char *const hopeless[] = {"ErrImageNeverPull",
                                           "InvalidImageName",
                                           "ImagePullBackOff",
                                           "CreateContainerError",
                                           "RunContainerError",
                                           "ImageInspectError",
                                           "RegistryUnavailable",
                                           "CreateContainerConfigError",
                                           NULL};
    struct mo_json reason = mo_json_get(waiting, "reason");
    struct mo_json placed = condition(status, "PodScheduled");

    if (mo_json_is(reason, MO_JSON_STRING)) {
        s->hopeless = mo_json_str_in(reason, hopeless);
        set_why(s, reason, mo_json_get(waiting, "message"));
    } else if (is_false(placed)) {
        s->unplaced = true;
        set_why(s, mo_json_get(placed, "reason"),
                mo_json_get(placed, "message"));
    }
}

static void read_ended(struct mo_pod_state *s, struct mo_json status,
                       struct mo_json ended)
{
    static const char *const unstarted[] = {"StartError", "ContainerCannotRun",
                                            "ContainerStatusUnknown", NULL};
    struct mo_json reason = mo_json_get(ended, "reason");
    int64_t code;

    s->phase = MO_POD_ENDED;
    s->evicted = mo_json_is(mo_json_get(status, "reason"), MO_JSON_STRING);
    if (s->evicted)
        set_why(s, mo_json_get(status, "reason"),
                mo_json_get(status, "message"));
    s->oom = mo_json_str_eq(reason, MO_SPAN("OOMKilled"));
    s->never_ran = mo_json_str_in(reason, unstarted);
    if (s->never_ran)
        set_why(s, reason, mo_json_get(ended, "message"));
    if (mo_json_i64(mo_json_get(ended, "exitCode"), &code) == 0)
        s->code = (int)code;
}

static struct mo_json state_of(struct mo_json status, const char *container)
{
    mo_json_each (at, mo_json_get(status, "containerStatuses"))
        if (mo_json_str_eq(mo_json_get(at.val, "name"),
                           mo_span_cstr(container)))
            return mo_json_get(at.val, "state");
    return (struct mo_json){NULL, 0};
}

/* A pod has no container for a network, or it runs, waits or has ended. */
static void read_running(struct mo_pod_state *s, struct mo_json status,
                         struct mo_json net)
{
    s->phase = MO_POD_RUNNING;
    s->net_ended = mo_json_is(mo_json_get(net, "terminated"), MO_JSON_OBJECT);
    s->lost = !s->net_ended && is_false(condition(status, "Ready"));
    if (!mo_json_is(mo_json_get(net, "waiting"), MO_JSON_OBJECT))
        return;
    s->phase = MO_POD_WAITING;
    s->lost = false;
    read_waiting(s, status, mo_json_get(net, "waiting"));
}

int mo_pod_read(struct mo_json pod, struct mo_pod_state *s, struct mo_err *e)
{
    struct mo_json meta = mo_json_get(pod, "metadata");
    struct mo_json status = mo_json_get(pod, "status");
    struct mo_json phase = mo_json_get(status, "phase");
    struct mo_json state = state_of(status, MO_POD_CONTAINER);
    struct mo_json ended = mo_json_get(state, "terminated");

    *s = (struct mo_pod_state){.code = -1};
    if (mo_json_str_copy(mo_json_get(meta, "name"), s->name, sizeof(s->name)) <
            0 ||
        mo_json_str_copy(mo_json_get(meta, "uid"), s->uid, sizeof(s->uid)) < 0)
        return mo_fail(e, MO_EPROTO, "the cluster's account of a pod");
    (void)mo_json_str_copy(mo_json_get(mo_json_get(pod, "spec"), "nodeName"),
                           s->node, sizeof(s->node));
    s->deleting =
        mo_json_is(mo_json_get(meta, "deletionTimestamp"), MO_JSON_STRING);
    if (mo_json_is(ended, MO_JSON_OBJECT) ||
        mo_json_str_eq(phase, MO_SPAN("Failed")) ||
        mo_json_str_eq(phase, MO_SPAN("Succeeded"))) {
        read_ended(s, status, ended);
    } else if (mo_json_is(mo_json_get(state, "running"), MO_JSON_OBJECT)) {
        read_running(s, status, state_of(status, MO_POD_NET));
    } else {
        read_waiting(s, status, mo_json_get(state, "waiting"));
    }
    return 0;
}
