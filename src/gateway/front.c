/* front.c - handles requests of clients: answers lists from the catalogue
 * and forwards calls.
 *
 * A list request while some servers have never been read starts all of them
 * and waits for those that are not late (refresh.c). Its client gets progress,
 * if it asked for that. Then it is answered with what is known; _meta says what
 * is missing, and list_changed follows. A call of an unknown name waits for all
 * of them, at most GW_FIND_MS. */
#include "gateway/call/forwarded_call.h"
#include "gateway/gw_priv.h"
#include "gateway/router/meta_tools.h"
#include "gateway/script/script.h"
#include "mcp/app.h"

static const struct mo_span nothing = {NULL, 0};

struct list_wait { /* a call that waits for lists */
    struct mo_list node;
    struct mo_gateway *g;
    struct mo_gw_view *view;
    struct mo_ep_call *c;
    struct mo_timer timer;
    uint64_t since_ms;
    bool patient; /* also for servers that are late */
};

static void handle_call(struct mo_gateway *g, struct mo_ep_call *c,
                        bool may_wait);

/* --- waiting for lists --------------------------------------------------- */

static struct mo_ep_call *end_wait(struct list_wait *w)
{
    struct mo_ep_call *c = w->c;

    mo_timer_stop(w->g->loop, &w->timer);
    mo_list_del(&w->node);
    mo_free(w);
    c->data = NULL;
    c->canceled = NULL;
    return c;
}

static void on_wait_canceled(struct mo_ep_call *c)
{
    mo_ep_call_error(end_wait(c->data), MO_RPC_INTERNAL, "cancelled", nothing);
}

static uint64_t waited_ms(const struct list_wait *w)
{
    return mo_now_ns() / MO_MS - w->since_ms;
}

/* Time in ms that it still waits; 0: no longer. */
static uint64_t wait_left(const struct list_wait *w)
{
    uint64_t ms = waited_ms(w);

    if (!w->patient)
        return mo_catalog_refresh_wait(w->view);
    return ms < GW_FIND_MS && mo_catalog_refresh_pending(w->view)
               ? GW_FIND_MS - ms
               : 0;
}

static void report_wait(struct list_wait *w)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};

    mo_buf_puts(&b, "");
    mo_catalog_refresh_put_awaited(w->view, &b);
    if (b.len) {
        mo_autobuf struct mo_buf text = {.max = GW_TEXT_MAX};

        mo_buf_printf(&text, "waiting for %s", mo_buf_cstr(&b));
        mo_ep_call_progress(w->c, (double)waited_ms(w) / 1000, -1,
                            mo_buf_cstr(&text));
    }
}

static void start_wait_timer(struct list_wait *w, uint64_t ms)
{
    if (ms > GW_PROGRESS_MS && mo_ep_call_wants_progress(w->c))
        ms = GW_PROGRESS_MS;
    mo_timer_start(w->g->loop, &w->timer, ms);
}

static void on_wait_timeout(struct mo_timer *t)
{
    struct list_wait *w = mo_container_of(t, struct list_wait, timer);
    struct mo_gateway *g = w->g;
    uint64_t ms = wait_left(w);

    mo_catalog_refresh_note_late(g);
    if (!ms) {
        handle_call(g, end_wait(w), false);
        return;
    }
    report_wait(w);
    start_wait_timer(w, ms);
}

/* False: there is nothing to wait for. */
static bool wait_for_lists(struct mo_gateway *g, struct mo_ep_call *c,
                           bool patient)
{
    struct mo_gw_view *v = mo_gw_view_of(g, c);
    char who[MO_GW_WHO_MAX];
    struct list_wait *w;

    mo_rewrite_client(c, who);
    if (!mo_catalog_refresh_wanted(v, mo_span_cstr(who), c->person,
                                   mo_rewrite_caps(g, c)))
        return false;
    w = mo_new(struct list_wait);
    if (!w)
        return false;
    *w = (struct list_wait){.g = g,
                            .view = v,
                            .c = c,
                            .since_ms = mo_now_ns() / MO_MS,
                            .patient = patient};
    if (!wait_left(w)) {
        mo_free(w);
        return false;
    }
    mo_timer_init(&w->timer, on_wait_timeout);
    start_wait_timer(w, wait_left(w));
    mo_list_push(&g->list_waits, &w->node);
    c->data = w;
    c->canceled = on_wait_canceled;
    return true;
}

void mo_gw_front_end(const struct mo_gw_view *v, const char *why)
{
    mo_list_each_entry_safe (w, &v->g->list_waits, struct list_wait, node) {
        if (w->view == v)
            mo_ep_call_error(end_wait(w), MO_RPC_INTERNAL, why, nothing);
    }
}

/* Continues the calls that need not wait any longer; all: every call, which
 * may wait again. */
static void continue_waits(struct mo_gateway *g, bool all)
{
    struct mo_list now;

    mo_list_init(&now);
    mo_list_each_entry_safe (w, &g->list_waits, struct list_wait, node) {
        if (!all && wait_left(w))
            continue;
        mo_list_del(&w->node);
        mo_list_push(&now, &w->node);
    }
    while (!mo_list_empty(&now))
        handle_call(g, end_wait(mo_list_first(&now, struct list_wait, node)),
                    all);
}

void mo_gw_front_settled(struct mo_gateway *g)
{
    mo_gw_inside_settled(g);
    if (!mo_list_empty(&g->list_waits))
        continue_waits(g, false);
}

void mo_gw_front_reloaded(struct mo_gateway *g)
{
    mo_gw_inside_settled(g);
    continue_waits(g, true);
}

/* --- lists --------------------------------------------------------------- */

enum mo_ep_what mo_gw_change_of(enum mo_cat_kind kind)
{
    return kind == MO_CAT_TOOLS     ? MO_EP_CH_TOOLS
           : kind == MO_CAT_PROMPTS ? MO_EP_CH_PROMPTS
                                    : MO_EP_CH_RESOURCES;
}

static int put_page(const struct mo_gw_view *v, struct mo_ep_call *c,
                    enum mo_cat_kind kind, struct mo_buf *out)
{
    struct mo_json from = mo_json_get(c->params, "cursor");
    mo_autobuf struct mo_buf cursor = {.max = GW_TEXT_MAX};
    int rc = 0;

    if (from.p && !mo_json_is(from, MO_JSON_STRING))
        return MO_EINVAL;
    if (from.p)
        rc = mo_json_str_buf(from, &cursor);
    if (rc < 0)
        return rc;
    return mo_app_can_show(c->caps)
               ? mo_catalog_page(mo_gw_cat(v), kind, mo_buf_view(&cursor), 0,
                                 out)
               : mo_catalog_page_for_model(mo_gw_cat(v), kind,
                                           mo_buf_view(&cursor), 0, out);
}

static bool is_first_page(const struct mo_ep_call *c)
{
    struct mo_json v = mo_json_get(c->params, "cursor");

    return !v.p || mo_json_str_eq(v, MO_SPAN(""));
}

/* Inserts read_result before the servers' tools. */
static int prepend_read_result(struct mo_buf *page)
{
    struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc = mo_result_limit_list(mo_buf_view(page), &b);

    mo_buf_fini(page);
    *page = b;
    return rc;
}

static int prepend_run_script(const struct mo_gw_view *v, struct mo_buf *page)
{
    struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc = mo_gw_script_list(v, mo_buf_view(page), &b);

    mo_buf_fini(page);
    *page = b;
    return rc;
}

/* The four, and run_script if clients have it. */
static void answer_meta_tools(const struct mo_gw_view *v, struct mo_ep_call *c)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};

    if (!mo_gw_script_is_on(v)) {
        mo_ep_call_result(c, mo_meta_tools_definitions());
        return;
    }
    (void)mo_gw_script_list(v, mo_meta_tools_definitions(), &b);
    mo_rewrite_answer(c, &b);
}

static void answer_list(const struct mo_gw_view *v, struct mo_ep_call *c,
                        enum mo_cat_kind kind)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc;

    if (kind == MO_CAT_TOOLS && mo_meta_tools_is_on(v)) {
        answer_meta_tools(v, c);
        return;
    }
    rc = put_page(v, c, kind, &b);
    if (rc == 0 && kind == MO_CAT_TOOLS && is_first_page(c) &&
        mo_result_limit_is_on(v))
        rc = prepend_read_result(&b);
    if (rc == 0 && kind == MO_CAT_TOOLS && is_first_page(c) &&
        mo_gw_script_is_on(v))
        rc = prepend_run_script(v, &b);
    if (rc == 0)
        mo_ep_call_result(c, mo_buf_view(&b));
    else if (rc == MO_EINVAL)
        mo_ep_call_error(
            c, MO_RPC_INVALID_PARAMS,
            "params.cursor is not valid; omit it for the first page", nothing);
    else
        mo_ep_call_error(c, MO_RPC_INTERNAL, "out of memory", nothing);
}

/* --- calls --------------------------------------------------------------- */

/* Lists a directory of a skill for a server that cannot. False: it can, or the
 * call is another one. */
static bool answer_directory(struct mo_gateway *g, struct mo_ep_call *c,
                             const struct call_target *t)
{
    mo_autobuf struct mo_buf b = {.max = GW_TEXT_MAX};
    int rc;

    if (!mo_span_is(c->method, "resources/directory/read") ||
        mo_catalog_extension(g->cat, t->slot->no, MO_MCP_EXT_SKILLS,
                             "directoryRead"))
        return false;
    rc = mo_catalog_skill_directory(mo_gw_cat_of(g, c), c->name, &b);
    if (rc == MO_ENOTFOUND)
        mo_rewrite_refuse(c);
    else
        mo_rewrite_answer(c, &b);
    return true;
}

static void forward_call(struct mo_gateway *g, struct mo_ep_call *c,
                         bool may_wait)
{
    uint64_t since = c->span ? mo_now_ns() : 0;
    struct call_target t;
    int rc = 0;

    if (mo_forward_task_method(g, c))
        return;
    rc = mo_rewrite_target(g, c, &t);
    if (c->span && (rc == 0 || !may_wait)) /* else it is tried again */
        mo_call_trace_route(c, since, &t, rc);
    if (rc == 0 && answer_directory(g, c, &t))
        return;
    if (rc == 0)
        mo_forward_start(g, c, &t);
    else if (mo_result_limit_is_call(g, c))
        mo_result_limit_call(g, c, c->arguments);
    else if (rc != MO_ENOTFOUND || !may_wait || !wait_for_lists(g, c, true))
        mo_rewrite_refuse(c);
}

static void handle_call(struct mo_gateway *g, struct mo_ep_call *c,
                        bool may_wait)
{
    struct mo_gw_view *v = mo_gw_view_of(g, c);

    if (mo_meta_tools_is_call(g, c)) {
        if (!may_wait || !wait_for_lists(g, c, false))
            mo_meta_tools_call(g, c);
        return;
    }
    if (mo_gw_script_is_call(g, c) &&
        ((may_wait && wait_for_lists(g, c, false)) ||
         !mo_gw_script_check(g, c)))
        return;
    for (enum mo_cat_kind k = 0; k < MO_CAT_KINDS; k++) {
        if (!mo_span_is(c->method, mo_catalog_kinds[k].method))
            continue;
        if (k == MO_CAT_TOOLS && (mo_gw_view_expose(v) == MO_GW_SEARCH ||
                                  mo_gw_view_expose(v) == MO_GW_CODE)) {
            answer_meta_tools(v, c);
            return;
        }
        if (may_wait && wait_for_lists(g, c, false))
            return;
        mo_gw_view_listed(v, mo_gw_change_of(k));
        answer_list(v, c, k);
        return;
    }
    forward_call(g, c, may_wait);
}

void mo_gw_front_handle(void *ctx, struct mo_ep_call *c)
{
    struct mo_gateway *g = ((struct mo_gw_view *)ctx)->g;

    if (mo_ep_call_state(c).n)
        mo_forward_resume(g, c);
    else
        handle_call(g, c, true);
}

void mo_gw_front_restart(struct mo_gateway *g, struct mo_ep_call *c)
{
    handle_call(g, c, true);
}

/* --- properties of tools ------------------------------------------------- */

struct mo_json mo_gw_front_schema(void *ctx, struct mo_span name)
{
    const struct mo_cat_item *it =
        mo_catalog_find(mo_gw_cat(ctx), MO_CAT_TOOLS, name);

    return mo_json_get(it ? it->item : (struct mo_json){NULL, 0},
                       "inputSchema");
}

/* Any call may be a task, kept by the endpoint, unless the tool forbids it. */
enum mo_ep_task_support mo_gw_front_task(void *ctx, struct mo_span name)
{
    const struct mo_cat_item *it =
        mo_catalog_find(mo_gw_cat(ctx), MO_CAT_TOOLS, name);
    struct mo_json how = {NULL, 0};

    if (it)
        how = mo_json_get(it->execution, "taskSupport");
    return mo_json_str_eq(how, MO_SPAN("forbidden")) ? MO_EP_TASK_FORBIDDEN
                                                     : MO_EP_TASK_OPTIONAL;
}
