#include "gateway/call/call_approval_priv.h"

#include <stdio.h>

#define BEAT_MS    10000 /* between two signs of life of a held call */
#define BEAT_STEP  1e-6  /* below whatever its server will say */
#define WORDS_MAX  ((size_t)4096)
#define CLIENT_MAX ((size_t)2048)
#define ASK_MAX    ((size_t)256 * 1024) /* of a question */
#define GUESSES    3                    /* of a routing that are told */

static const char *const outcomes[] = {
    [MO_GW_OK] = "call ended",
    [MO_GW_TOOL_ERROR] = "call ended with an error of the tool",
    [MO_GW_ERROR] = "call failed",
    [MO_GW_LOST] = "call lost: the tool may have run",
    [MO_GW_CANCELED] = "call canceled",
    [MO_GW_DENIED] = "call refused",
};

/* Steps of every call are at level debug; what a person decides, and calls that
 * did not run, at info. */
static enum mo_level step_level(const struct call_approval *j)
{
    const struct mo_gw_case *k = &j->pub;

    return k->inside.n > 0 || j->state == RUNS ||
                   (j->state == OVER && k->outcome <= MO_GW_TOOL_ERROR)
               ? MO_DEBUG
               : MO_INFO;
}

/* Logs the last step of a call. A call of a conversation has lines of its own
 * there (agent/chat/chat_write.h). */
static void log_step(const struct call_approval *j, enum mo_level level)
{
    const struct mo_gw_case *k = &j->pub;
    struct mo_log_facts about = {
        .request = j->request,
        .call = mo_span_cstr(k->id),
        .server = k->server,
        .tool = k->tool,
        .who = j->f->who,
        .trace = j->trace,
    };
    const char *what = j->state == RUNS    ? "call runs, allowed by"
                       : j->state == WAITS ? "call waits for a person"
                       : j->state == SAID
                           ? j->yes ? "call approved by" : "call rejected by"
                           : outcomes[k->outcome];
    const char *by = k->by ? k->by : "default";
    bool decided = j->state == RUNS || j->state == SAID;

    if (j->state == OVER)
        about.ns = mo_now_ns() - j->began;
    mo_log_about(mo_loop_log(j->f->g->loop), level, "gateway", &about, "%s%s%s",
                 what, decided ? " " : "", decided ? by : "");
}

static void call_approval_move(struct call_approval *j, enum state to)
{
    static const unsigned char legal[] = {
        [NEW] = MO_TO(RUNS) | MO_TO(WAITS) | MO_TO(OVER),
        [WAITS] = MO_TO(SAID) | MO_TO(OVER),
        [SAID] = MO_TO(WRITING) | MO_TO(OVER),
        [WRITING] = MO_TO(RUNS) | MO_TO(OVER),
        [RUNS] = MO_TO(OVER),
        [OVER] = 0,
    };

    enum mo_level level;

    MO_MOVE(j->state, to, legal);
    level = step_level(j);
    if (to != WRITING &&
        mo_log_on(mo_loop_log(j->f->g->loop), level, "gateway"))
        log_step(j, level);
}

static const struct mo_approval_hooks *judge_of(const struct forwarded_call *f)
{
    return &f->g->o.judge;
}

/* --- the case ------------------------------------------------------------ */

/* Texts follow each other in one buffer, whose room is made once: it does not
 * move. */
static struct mo_span keep(struct call_approval *j, struct mo_span text,
                           size_t max)
{
    size_t at = j->texts.len;

    text = mo_span_head(text, max);
    (void)mo_buf_span(&j->texts, text);
    return mo_span(j->texts.p + at, text.n);
}

static struct mo_span keep_string(struct call_approval *j, struct mo_json v,
                                  size_t max)
{
    mo_autobuf struct mo_buf b = {.max = v.n};

    if (!mo_json_is(v, MO_JSON_STRING) || mo_json_str_buf(v, &b) < 0)
        return mo_span(NULL, 0);
    return keep(j, mo_buf_view(&b), max);
}

/* Unsent words are none: the tool was named. */
static struct mo_json words_of(const struct mo_ep_call *c)
{
    struct mo_json tool = mo_json_get(c->arguments, "tool");
    bool named = mo_json_is(tool, MO_JSON_STRING) && tool.n > 2;

    return named ? (struct mo_json){NULL, 0}
                 : mo_json_get(c->arguments, "request");
}

static void take_texts(struct call_approval *j, const struct call_target *t)
{
    const struct mo_ep_call *c = j->f->down;
    struct mo_trace trace = c->trace;
    struct mo_gw_case *k = &j->pub;

    k->server =
        keep(j, mo_span_cstr(mo_upstream_server(t->slot->up)->name), SIZE_MAX);
    k->tool = keep(j, t->own, SIZE_MAX);
    k->view = keep(j, mo_span_cstr(mo_gw_view_of(j->f->g, c)->name), SIZE_MAX);
    k->who = keep(j, mo_span_cstr(j->f->who), SIZE_MAX);
    k->owner = keep(j, c->caller, SIZE_MAX);
    if (c->client.n <= CLIENT_MAX)
        k->client = keep(j, mo_json_text(c->client), SIZE_MAX);
    mo_trace_meta(mo_json_get(c->params, "_meta"), &trace);
    k->trace = keep(j, trace.v[MO_TRACE_PARENT], MO_TRACE_PARENT_LEN);
    k->inside = keep(j, c->inside, SIZE_MAX);
    if (c->within) {
        k->script = keep(j, c->within->script, SIZE_MAX);
        k->line = c->within->line;
    }
    k->is_own = t->slot->no == SLOT_SCRIPTS;
    k->routed = t->arguments.p != NULL;
    k->sure = t->sure;
    if (k->routed)
        k->words = keep_string(j, words_of(c), WORDS_MAX);
}

static void run_agreed(struct mo_gw_case *k, const struct mo_err *why);
static bool decide(struct mo_gw_case *k, bool yes, const char *by);
static void on_later(struct mo_later *d);
static void on_deadline(struct mo_timer *t);
static void on_beat(struct mo_timer *t);

static const struct mo_gw_case_ops ops = {
    .decide = decide,
    .edit = mo_call_approval_edit,
    .run = run_agreed,
};

static struct call_approval *call_approval_new(struct forwarded_call *f,
                                               const struct call_target *t)
{
    struct call_approval *j = mo_pool_take(&f->g->spare_cases, sizeof(*j));
    size_t room =
        t->own.n + MO_GW_WHO_MAX + WORDS_MAX + CLIENT_MAX + MO_TRACE_PARENT_LEN;

    if (!j)
        return NULL;
    f->judged = j;
    j->f = f;
    j->pub.ops = &ops;
    j->began = mo_now_ns();
    j->request = f->down->request;
    j->trace = mo_trace_mark(f->down->span, &j->mark);
    mo_later_init(&j->later, on_later);
    mo_timer_init(&j->deadline, on_deadline);
    mo_timer_init(&j->beat, on_beat);
    room += strlen(mo_upstream_server(t->slot->up)->name) + f->down->inside.n +
            f->down->caller.n + strlen(mo_gw_view_of(f->g, f->down)->name);
    if (!t->arguments.p)
        room -= WORDS_MAX;
    if (f->down->client.n < CLIENT_MAX)
        room -= CLIENT_MAX - f->down->client.n;
    if (f->down->within)
        room += f->down->within->script.n;
    mo_buf_init(&j->texts, room);
    if (!mo_buf_room(&j->texts, room)) {
        mo_buf_fini(&j->texts);
        f->judged = NULL;
        mo_pool_give(&f->g->spare_cases, j);
        return NULL;
    }
    take_texts(j, t);
    return j;
}

void mo_call_approval_free(struct forwarded_call *f)
{
    struct call_approval *j = f->judged;

    if (!j)
        return;
    mo_call_approval_done(f, MO_GW_CANCELED, 0);
    mo_later_cancel(&j->later);
    mo_timer_stop(f->g->loop, &j->deadline);
    mo_timer_stop(f->g->loop, &j->beat);
    mo_buf_fini(&j->texts);
    f->judged = NULL;
    mo_pool_give(&f->g->spare_cases, j);
}

/* --- the outcome --------------------------------------------------------- */

static uint64_t since(uint64_t ns)
{
    return (mo_now_ns() - ns) / MO_MS;
}

void mo_call_approval_done(struct forwarded_call *f, enum mo_gw_outcome what,
                           size_t bytes)
{
    const struct mo_approval_hooks *o = judge_of(f);
    struct call_approval *j = f->judged;

    if (!j || j->state == OVER)
        return;
    mo_timer_stop(f->g->loop, &j->deadline);
    mo_timer_stop(f->g->loop, &j->beat);
    if (j->held && !j->pub.waited_ms)
        j->pub.waited_ms = since(j->held);
    j->pub.outcome = f->client == CLIENT_GONE ? MO_GW_CANCELED : what;
    call_approval_move(j, OVER);
    j->pub.bytes = bytes;
    j->pub.ms = since(j->began);
    if (o->done)
        o->done(o->ctx, &j->pub);
}

void mo_call_approval_reply(struct forwarded_call *f, const struct mo_reply *r)
{
    if (!f->judged)
        return;
    if (r->error.p) {
        mo_call_approval_done(f, MO_GW_ERROR, r->error.n);
        return;
    }
    mo_call_approval_done(
        f, mo_json_flag(r->result, "isError") ? MO_GW_TOOL_ERROR : MO_GW_OK,
        r->result.n);
}

static void refuse(struct call_approval *j)
{
    static const struct {
        const char *by, *text;
    } rows[] = {
        {"rule", "This call is not allowed here"},
        {"person", "A person did not allow this call"},
        {"client", "The person did not allow this call"},
        {"time", "Nobody allowed this call in time, so it was not run. A "
                 "person decides on the approvals page or with "
                 "`mcp-orchestrator approvals`"},
    };
    const char *text = rows[0].text;
    struct forwarded_call *f = j->f;
    mo_autobuf struct mo_buf b = {.max = 2 * MO_GW_REASON_MAX};

    for (size_t i = 0; j->pub.by && i < MO_COUNT(rows); i++)
        if (strcmp(rows[i].by, j->pub.by) == 0)
            text = rows[i].text;
    (void)mo_buf_printf(&b, "%s%s%s.", text, j->pub.reason[0] ? ": " : "",
                        j->pub.reason);
    if (f->down && f->down->within) {
        f->down->within->refused = text == rows[0].text ? "denied" : "rejected";
        f->down->within->reason = mo_span_cstr(j->pub.reason);
    }
    mo_call_approval_done(f, MO_GW_DENIED, 0);
    mo_forward_refuse(f, mo_buf_view(&b));
}

/* --- waiting for a person ------------------------------------------------ */

static void say(struct call_approval *j, bool yes, const char *by)
{
    j->yes = yes;
    j->pub.by = by;
    j->pub.decided = true;
    call_approval_move(j, SAID);
    j->pub.waited_ms = since(j->held);
    mo_call_trace_approval(j->f, j->held, yes, by);
    mo_timer_stop(j->f->g->loop, &j->deadline);
    mo_timer_stop(j->f->g->loop, &j->beat);
    mo_loop_defer(j->f->g->loop, &j->later);
}

static bool decide(struct mo_gw_case *k, bool yes, const char *by)
{
    struct call_approval *j = call_approval_of(k);

    if (j->state != WAITS || k->by_client)
        return false;
    say(j, yes, by);
    return true;
}

static void on_deadline(struct mo_timer *t)
{
    struct call_approval *j =
        mo_container_of(t, struct call_approval, deadline);

    j->pub.reason[0] = '\0';
    say(j, false, "time");
}

static void on_beat(struct mo_timer *t)
{
    struct call_approval *j = mo_container_of(t, struct call_approval, beat);
    struct forwarded_call *f = j->f;

    if (f->down)
        mo_ep_call_progress(f->down, BEAT_STEP * ++j->beats, -1,
                            "waiting for a person to allow this call, on the "
                            "approvals page or with `mcp-orchestrator "
                            "approvals`");
    mo_timer_start(f->g->loop, t, BEAT_MS);
}

/* It has been written down, or could not be. */
static void go_on(struct call_approval *j)
{
    struct forwarded_call *f = j->f;

    if (!j->yes) {
        refuse(j);
        return;
    }
    call_approval_move(j, RUNS);
    mo_forward_go(f);
}

static void on_later(struct mo_later *d)
{
    struct call_approval *j = mo_container_of(d, struct call_approval, later);
    const struct mo_approval_hooks *o = judge_of(j->f);

    if (j->state == WRITING) {
        go_on(j);
    } else if (j->state == SAID && !j->yes) {
        refuse(j);
    } else if (j->state == SAID) {
        call_approval_move(j, WRITING);
        if (o->agreed)
            o->agreed(o->ctx, &j->pub);
        else
            run_agreed(&j->pub, NULL);
    }
}

static void run_agreed(struct mo_gw_case *k, const struct mo_err *why)
{
    struct call_approval *j = call_approval_of(k);

    MO_BUG_ON(j->state != WRITING);
    if (why) {
        j->yes = false;
        k->by = "rule";
        (void)snprintf(k->reason, sizeof(k->reason),
                       "it could not be written down (%s)", why->msg);
    }
    mo_loop_defer(j->f->g->loop, &j->later);
}

/* --- asking the client --------------------------------------------------- */

static const char form[] =
    "{\"type\":\"object\",\"properties\":{\"decision\":{\"type\":\"string\","
    "\"title\":\"Run this call?\",\"enum\":[\"approve\",\"reject\"]},"
    "\"reason\":{\"type\":\"string\",\"title\":\"Reason, if you like\"}},"
    "\"required\":[\"decision\"]}";

static int put_question(struct mo_buf *b, struct mo_span message)
{
    struct mo_jw w = mo_jw_object(b);

    mo_jw_member(&w, "message", message);
    mo_jw_member_raw(&w, "requestedSchema", mo_span(form, sizeof(form) - 1));
    mo_jw_end(&w);
    return mo_buf_err(b);
}

/* true: the client has the question. */
static bool ask_client(struct call_approval *j, struct mo_span message)
{
    static const char method[] = "elicitation/create";
    const struct mo_ep_call *c = j->f->down;
    mo_autobuf struct mo_buf b = {.max = ASK_MAX};
    bool asked = false;

    if (message.n && mo_ep_call_may_ask(c) && put_question(&b, message) == 0 &&
        mo_ep_call_takes(c, method, (struct mo_json){b.p, b.len}))
        asked = mo_forward_question(j->f, method, mo_buf_view(&b)) == 0;
    return asked;
}

void mo_call_approval_answer(struct forwarded_call *f, struct mo_json answer)
{
    struct call_approval *j = f->judged;
    struct mo_json content = mo_json_get(answer, "content");
    bool yes;

    if (!j || j->state != WAITS)
        return;
    yes = mo_json_str_eq(mo_json_get(answer, "action"), MO_SPAN("accept")) &&
          mo_json_str_eq(mo_json_get(content, "decision"), MO_SPAN("approve"));
    (void)mo_json_str_copy(mo_json_get(content, "reason"), j->pub.reason,
                           sizeof(j->pub.reason));
    j->pub.answered = yes ? MO_ANSWERED_CLIENT : MO_ANSWERED_NOT;
    j->pub.door = (struct mo_door){"client", true};
    say(j, yes, "client");
}

/* --- the beginning ------------------------------------------------------- */

static void hold(struct call_approval *j, const struct call_target *t,
                 struct mo_span question)
{
    const struct mo_approval_hooks *o = judge_of(j->f);
    struct mo_loop *l = j->f->g->loop;

    if (mo_call_approval_shown(j->f, t, j->shown) < 0) {
        j->pub.by = "rule";
        (void)snprintf(j->pub.reason, sizeof(j->pub.reason),
                       "its arguments can be read in two ways");
        refuse(j);
        return;
    }
    mo_random_token(j->pub.id, MO_GW_CASE_ID);
    call_approval_move(j, WAITS);
    j->held = mo_now_ns();
    j->pub.by_client = ask_client(j, question);
    mo_timer_start(l, &j->deadline,
                   j->pub.wait_ms ? j->pub.wait_ms : MO_GW_WAIT_MS);
    if (!j->pub.by_client)
        mo_timer_start(l, &j->beat, 0);
    if (o->held)
        o->held(o->ctx, &j->pub);
}

static enum mo_gw_ruling rule(struct call_approval *j,
                              const struct call_target *t,
                              struct mo_buf *question)
{
    const struct mo_approval_hooks *o = judge_of(j->f);
    struct mo_json args = mo_rewrite_args(j->f->down, t);
    enum mo_gw_ruling what = MO_GW_LET;

    j->pub.item = t->item;
    j->pub.arguments = args;
    j->pub.args_bytes = args.n;
    j->pub.by = "rule";
    mo_call_approval_digest(args, j->pub.digest);
    if (o->rule)
        what = o->rule(o->ctx, &j->pub, question);
    j->pub.item = (struct mo_json){NULL, 0};
    j->pub.arguments = (struct mo_json){NULL, 0};
    return what;
}

/* Opens a case and rules on it; *j NULL: without memory the call was refused.
 */
static enum mo_gw_ruling open_case(struct forwarded_call *f,
                                   const struct call_target *t, bool stand_in,
                                   struct mo_buf *question,
                                   struct call_approval **j)
{
    *j = call_approval_new(f, t);
    if (!*j) {
        mo_forward_refuse(f, MO_SPAN("out of memory; the call was not run"));
        return MO_GW_REFUSE;
    }
    (*j)->pub.stand_in = stand_in;
    return rule(*j, t, question);
}

/* The list of a server that does not run may be older than the definition that
 * a person has accepted elsewhere: it is read again. */
static void reread_kept_list(const struct call_approval *j,
                             const struct call_target *t)
{
    const struct mo_approval_hooks *o = judge_of(j->f);

    if (mo_list_empty(&t->slot->children) && t->item.p && o->changed &&
        o->changed(o->ctx, j->pub.server, j->pub.tool, t->item))
        j->f->g->refresh_slot(t->slot, mo_span_cstr(j->f->who),
                              mo_span(NULL, 0), MO_SPAN("{}"));
}

bool mo_call_approval_begin(struct forwarded_call *f,
                            const struct call_target *t)
{
    const struct mo_approval_hooks *o = judge_of(f);
    enum mo_gw_ruling what;
    mo_autobuf struct mo_buf question = {.max = ASK_MAX / 2};
    struct call_approval *j;

    if ((!o->rule && !o->done) || !mo_span_is(f->down->method, "tools/call"))
        return true;
    what = open_case(f, t, false, &question, &j);
    if (what == MO_GW_LET)
        call_approval_move(j, RUNS);
    else if (what == MO_GW_ASK)
        hold(j, t, mo_buf_view(&question));
    if (what == MO_GW_REFUSE && j) {
        reread_kept_list(j, t);
        refuse(j);
    }
    return what == MO_GW_LET;
}

/* Asks the judge once more about the bytes that are about to be sent. */
static bool judge_last(struct call_approval *j, const struct call_target *t)
{
    const struct mo_approval_hooks *o = judge_of(j->f);
    bool may = true;

    j->pub.item = t->item;
    j->pub.arguments = mo_rewrite_args(j->f->down, t);
    if (o->again)
        may = o->again(o->ctx, &j->pub);
    j->pub.item = (struct mo_json){NULL, 0};
    j->pub.arguments = (struct mo_json){NULL, 0};
    if (!may)
        refuse(j);
    return may;
}

/* The first server's case is over; whoever stands in must be let by itself. A
 * person's yes was for the first one. */
static bool elsewhere(struct forwarded_call *f, const struct call_target *t)
{
    mo_autobuf struct mo_buf question = {.max = ASK_MAX / 2};
    struct call_approval *j;
    enum mo_gw_ruling what;

    mo_call_approval_done(f, f->failover.sent ? MO_GW_LOST : MO_GW_ERROR, 0);
    mo_call_approval_free(f);
    what = open_case(f, t, true, &question, &j);
    if (!j)
        return false;
    if (what == MO_GW_LET && mo_call_approval_fits(j, t)) {
        call_approval_move(j, RUNS);
        return true;
    }
    if (what == MO_GW_ASK)
        (void)snprintf(j->pub.reason, sizeof(j->pub.reason),
                       "%.*s stands in for its server, and nobody was asked "
                       "about that one",
                       (int)j->pub.server.n, j->pub.server.p);
    j->pub.by = "rule";
    refuse(j);
    return false;
}

/* The call is about to be sent: it is on record first. */
static bool record(struct call_approval *j)
{
    const struct mo_approval_hooks *o = judge_of(j->f);
    mo_autobuf struct mo_buf b = {.max = MO_GW_REASON_MAX};
    struct forwarded_call *f = j->f;
    struct mo_err e;

    if (!o->leaves || j->pub.left || o->leaves(o->ctx, &j->pub, &e) == 0)
        return true;
    (void)mo_buf_printf(&b,
                        "The audit log cannot be written, so the call was not "
                        "run: %s.",
                        e.msg);
    mo_call_approval_done(f, MO_GW_ERROR, 0);
    mo_forward_refuse(f, mo_buf_view(&b));
    return false;
}

bool mo_call_approval_again(struct forwarded_call *f,
                            const struct call_target *t)
{
    struct call_approval *j = f->judged;

    if (!j)
        return true;
    if (!mo_span_is(j->pub.server, mo_upstream_server(t->slot->up)->name))
        return elsewhere(f, t) && record(f->judged);
    if (mo_call_approval_is_same(j, t))
        return judge_last(j, t) && record(j);
    mo_call_approval_done(f, MO_GW_ERROR, 0);
    mo_forward_refuse(f,
                      MO_SPAN("The tool or the call is not what was looked at; "
                              "it was not run. Begin again."));
    return false;
}

/* --- a changed view ------------------------------------------------------ */

/* The call waits for a person, and nobody but its client waits for it. */
static bool is_undecided(const struct forwarded_call *f)
{
    const struct call_approval *j = f->judged;

    return j && f->client == CLIENT_WAITING &&
           (j->state == WAITS || j->state == SAID || j->state == WRITING);
}

void mo_call_approval_look_again(struct mo_gw_view *v)
{
    mo_list_each_entry_safe (f, &v->g->calls, struct forwarded_call, node) {
        struct call_target t;

        if (!is_undecided(f) || f->down->scope != v ||
            mo_rewrite_target(v->g, f->down, &t) == 0)
            continue;
        f->judged->pub.by = "rule";
        (void)snprintf(f->judged->pub.reason, sizeof(f->judged->pub.reason),
                       "its view does not show the tool any more");
        mo_call_approval_done(f, MO_GW_DENIED, 0);
        mo_forward_restart(f);
    }
}

/* --- words that were taken for tools ------------------------------------- */

void mo_call_approval_routed(struct mo_gateway *g, const struct mo_ep_call *c,
                             const char *by, struct mo_span words,
                             const struct mo_route_answer *found, bool acted)
{
    const struct mo_approval_hooks *o = &g->o.judge;
    struct mo_gw_guess v[GUESSES];
    char who[MO_GW_WHO_MAX];
    struct mo_gw_routing r = {.by = by,
                              .who = who,
                              .view = mo_gw_view_of(g, c)->name,
                              .words = mo_span_head(words, WORDS_MAX),
                              .v = v,
                              .acted = acted};

    if (!o->routed || !words.n)
        return;
    mo_rewrite_client(c, who);
    for (; r.n < found->n && r.n < GUESSES; r.n++)
        v[r.n] =
            (struct mo_gw_guess){found->hits[r.n].server, found->hits[r.n].tool,
                                 found->hits[r.n].confidence};
    o->routed(o->ctx, &r);
}

/* --- the end of a server ------------------------------------------------- */

void mo_call_approval_leave(struct server_slot *s)
{
    mo_list_each_entry_safe (f, &s->calls, struct forwarded_call, slot_node) {
        struct call_approval *j = f->judged;

        if (!j ||
            (j->state != WAITS && j->state != SAID && j->state != WRITING))
            continue;
        mo_call_approval_done(f, MO_GW_ERROR, 0);
        mo_forward_refuse(f,
                          MO_SPAN("Its server has been removed or changed; the "
                                  "call was not run."));
    }
}
