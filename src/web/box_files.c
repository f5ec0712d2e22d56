#include "web/box_files.h"

#include <stdio.h>

#include "base/mem.h"
#include "peer/others.h"
#include "web/api_job.h"

#define ASK_MAX    ((size_t)1024 * 1024) /* bytes of one request */
#define FACTS_MAX  ((size_t)16 * 1024)
#define METHOD_MAX 48
#define CALL_MS    60000    /* for the box to answer */
#define THERE_MS   120000   /* for the other process, which may start a box */
#define MOVES_MAX  5        /* times that the session moved meanwhile */
#define ASLEEP     "asleep" /* the code of a visit without a box */
#define MOVED      421      /* status: the session is not here any more */

struct mo_box_files {
    struct mo_api *api;
    char id[MO_SESSION_ID_MAX + 1];
    char owner[MO_SESSION_OWNER_MAX];
    struct mo_buf facts;
    bool here_only;       /* a request of another process */
    bool visits;          /* no box is started */
    struct mo_hold *hold; /* NULL: none yet, or it is elsewhere */
    bool ready;
    char there[sizeof(((struct mo_other *)NULL)->path)]; /* "": here */
    unsigned moves;
    unsigned pending; /* callbacks that cannot be cancelled */
    bool freed;
    struct mo_later later; /* a failure that is known at once */
    struct mo_box_files_no no;

    /* the request under way */
    char method[METHOD_MAX];
    struct mo_buf args;
    struct mo_call *call;
    mo_box_files_fn *done; /* NULL: there is none */
    void *ctx;
};

static void really_free(struct mo_box_files *f)
{
    if (f->pending)
        return;
    mo_later_cancel(&f->later);
    mo_buf_fini(&f->facts);
    mo_buf_fini(&f->args);
    mo_free(f);
}

/* --- the end of a request ------------------------------------------------- */

static void finish(struct mo_box_files *f, struct mo_json result,
                   const struct mo_box_files_no *no)
{
    mo_box_files_fn *done = f->done;

    f->done = NULL;
    if (done)
        done(f->ctx, result, no);
}

static void fail(struct mo_box_files *f, int status, const char *code,
                 const char *text)
{
    struct mo_box_files_no no = {.status = status};

    (void)snprintf(no.code, sizeof(no.code), "%s", code);
    (void)snprintf(no.text, sizeof(no.text), "%s", text);
    finish(f, (struct mo_json){NULL, 0}, &no);
}

static void fail_err(struct mo_box_files *f, const struct mo_err *why)
{
    static const struct mo_api_status rows[] = {
        {MO_ENOTFOUND, 404, "not_found"},  {MO_EINVAL, 400, "bad_request"},
        {MO_EBUSY, 409, "busy"},           {MO_ETIMEOUT, 504, "timeout"},
        {MO_EPOLICY, 409, "conflict"},     {MO_ETOOBIG, 413, "too_big"},
        {0, 503, "workspace_unavailable"},
    };
    const struct mo_api_status *s = mo_api_status(rows, why->code);

    if (f->visits && why->code == MO_EPOLICY)
        fail(f, 409, ASLEEP, why->msg);
    else
        fail(f, s->status, s->name, why->msg);
}

/* The box's own error; its word decides. */
static void fail_box(struct mo_box_files *f, const struct mo_reply *r)
{
    static const struct {
        const char *word, *code;
        int status;
    } rows[] = {
        {"not_found", "no_such_file", 404},
        {"is_directory", "is_directory", 409},
        {"not_directory", "not_directory", 409},
        {"name_too_long", "name_too_long", 400},
        {"path", "bad_path", 400},
        {"invalid", "bad_request", 400},
        {"exists", "exists", 409},
        {"full", "workspace_full", 507},
        {"too_big", "file_too_big", 413},
        {"policy", "not_permitted", 403},
    };
    mo_autoarena struct mo_arena a = {.cap = 4096};
    struct mo_json word =
        mo_json_get(mo_json_get(r->error, "data"), "mo.error");
    struct mo_span text = MO_SPAN("the box could not do it");
    char shown[240];

    (void)mo_json_str(mo_json_get(r->error, "message"), &a, &text);
    (void)snprintf(shown, sizeof(shown), "%.*s", (int)text.n, text.p);
    for (size_t i = 0; i < MO_COUNT(rows); i++)
        if (mo_json_str_eq(word, mo_span_cstr(rows[i].word))) {
            fail(f, rows[i].status, rows[i].code, shown);
            return;
        }
    if (r->code == MO_RPC_METHOD_NOT_FOUND)
        fail(f, 501, "not_supported",
             "the program in this box is too old to serve files; it ends with "
             "the box");
    else
        fail(f, 502, "failed", shown);
}

static void on_failed(struct mo_later *d)
{
    struct mo_box_files *f = mo_container_of(d, struct mo_box_files, later);

    finish(f, (struct mo_json){NULL, 0}, &f->no);
}

/* Fails the request, but not from inside the call that asked. */
static void fail_later(struct mo_box_files *f, const struct mo_err *why)
{
    const char *code = "workspace_unavailable";

    f->no = (struct mo_box_files_no){.status = 503};
    if (why->code == MO_ENOTFOUND) {
        f->no.status = 404;
        code = "not_found";
    } else if (f->visits && why->code == MO_EPOLICY) {
        f->no.status = 409;
        code = ASLEEP;
    }
    (void)snprintf(f->no.code, sizeof(f->no.code), "%s", code);
    (void)snprintf(f->no.text, sizeof(f->no.text), "%s", why->msg);
    mo_loop_defer(f->api->loop, &f->later);
}

/* --- here ----------------------------------------------------------------- */

static void on_answer(void *ctx, const struct mo_reply *r)
{
    struct mo_box_files *f = ctx;

    if (f->freed) {
        f->pending--;
        really_free(f);
        return;
    }
    f->call = NULL;
    if (r->result.p)
        finish(f, r->result, NULL);
    else if (r->error.p)
        fail_box(f, r);
    else
        fail_err(f, r->err ? r->err : mo_error(MO_ECLOSED, "no answer"));
}

static void on_used(void *ctx, const struct mo_session_info *info,
                    const struct mo_err *why)
{
    struct mo_box_files *f = ctx;
    const struct mo_call_opts o = {
        .idle_ms = CALL_MS, .hard_ms = CALL_MS, .done = on_answer, .ctx = f};
    mo_autobuf struct mo_buf params = {.max = ASK_MAX};
    char method[METHOD_MAX + 16];
    struct mo_err e;

    if (why) {
        fail_err(f, why);
        return;
    }
    (void)snprintf(method, sizeof(method), "mo/files/%s", f->method);
    (void)mo_buf_puts(&params, "{\"arguments\":");
    (void)mo_buf_span(&params, mo_buf_view(&f->args));
    (void)mo_buf_putc(&params, '}');
    if (mo_buf_err(&params) || !info->conn) {
        fail_err(f, mo_error(MO_EUNAVAIL, "the box is not there"));
        return;
    }
    if (!f->visits)
        mo_session_touch(f->hold);
    f->call = mo_conn_request(info->conn, method, mo_buf_view(&params), &o, &e);
    if (!f->call)
        fail_err(f, &e);
}

static void use_box(struct mo_box_files *f)
{
    struct mo_err e;

    if (mo_session_use(f->hold, on_used, f, &e) < 0)
        fail_later(f, &e);
}

static void on_ready(void *ctx, struct mo_hold *h,
                     const struct mo_session_info *info)
{
    struct mo_box_files *f = ctx;

    (void)info;
    f->ready = true;
    mo_session_busy(h, true);
    if (f->done)
        use_box(f);
}

static void on_box(void *ctx, struct mo_hold *h, const struct mo_box_end *end,
                   const struct mo_session_info *info)
{
    (void)ctx;
    (void)h;
    (void)end;
    (void)info;
}

static void on_idle(void *ctx, struct mo_hold *h, unsigned left)
{
    (void)ctx;
    (void)h;
    (void)left;
}

static void find_holder(struct mo_box_files *f);

/* A call under way ends by itself, as its connection does. */
static void on_closed(void *ctx, const char *reason, const struct mo_err *why)
{
    struct mo_box_files *f = ctx;
    bool was_ready = f->ready;

    f->hold = NULL;
    f->ready = false;
    if (!f->done || f->call || was_ready)
        return;
    if (strcmp(reason, "elsewhere") == 0 && f->here_only)
        fail(f, MOVED, "moved", "another server has the session now");
    else if (strcmp(reason, "elsewhere") == 0)
        find_holder(f);
    else
        fail_err(
            f, why ? why
                   : mo_error(MO_EBUSY, "the session has ended (%s)", reason));
}

static const struct mo_hold_cb hold_cb = {on_ready, on_box, on_idle,
                                          NULL,     NULL,   on_closed};

static void take_hold(struct mo_box_files *f)
{
    struct mo_err e;

    if (mo_session_hold(f->api->sessions, mo_span_cstr(f->id),
                        mo_span_cstr(f->owner), &hold_cb, f, &f->hold,
                        &e) < 0) {
        fail_later(f, &e);
        return;
    }
    if (f->visits)
        mo_session_visits(f->hold);
    if (f->api->relay && f->api->peers)
        mo_session_may_move(f->hold, 0);
}

/* --- there ---------------------------------------------------------------- */

static bool back(struct mo_box_files *f)
{
    bool freed = f->freed;

    f->pending--;
    if (freed)
        really_free(f);
    return !freed;
}

/* It let it go: perhaps it is free, or another process has it now. */
static void try_again(struct mo_box_files *f)
{
    f->there[0] = '\0';
    if (++f->moves > MOVES_MAX)
        fail(f, 409, "busy",
             "the session is moving between servers; try again");
    else
        take_hold(f);
}

static void take_answer(struct mo_box_files *f, int status, struct mo_span body)
{
    mo_autoarena struct mo_arena a = {.cap = 4096};
    struct mo_span code = MO_SPAN("failed"), text = MO_SPAN("no reason given");
    struct mo_box_files_no no = {.status = status};
    struct mo_json_doc doc;

    if (mo_json_parse(body, 0, &doc, NULL) < 0) {
        fail(f, 502, "failed", "another server gave a bad answer");
        return;
    }
    if (status == 200) {
        finish(f, doc.root, NULL);
        return;
    }
    (void)mo_json_str(mo_json_get(doc.root, "code"), &a, &code);
    (void)mo_json_str(mo_json_get(doc.root, "detail"), &a, &text);
    (void)snprintf(no.code, sizeof(no.code), "%.*s", (int)code.n, code.p);
    (void)snprintf(no.text, sizeof(no.text), "%.*s", (int)text.n, text.p);
    finish(f, (struct mo_json){NULL, 0}, &no);
}

static void on_asked(void *ctx, int status, struct mo_span body)
{
    struct mo_box_files *f = ctx;

    if (!back(f) || !f->done)
        return;
    if (status == MOVED)
        try_again(f);
    else if (status == 0)
        fail(f, 503, "workspace_unavailable",
             "the server that has this session open did not answer");
    else
        take_answer(f, status, body);
}

static void ask_there(struct mo_box_files *f)
{
    mo_autobuf struct mo_buf body = {.max = ASK_MAX},
                             url = {.max = MO_SESSION_ID_MAX + 64};
    struct mo_relay_ask q = {.path = f->there,
                             .method = "POST",
                             .facts = mo_buf_view(&f->facts),
                             .ms = THERE_MS};
    struct mo_jw w = mo_jw_object(&body);
    struct mo_err e;

    mo_jw_member_cstr(&w, "method", f->method);
    mo_jw_member_cstr(&w, "owner", f->owner);
    if (f->visits)
        mo_jw_member_bool(&w, "visits", true);
    mo_jw_member_raw(&w, "arguments", mo_buf_view(&f->args));
    mo_jw_end(&w);
    (void)mo_buf_printf(&url, "/api/sessions/%s/files/ask", f->id);
    q.url = mo_buf_cstr(&url);
    q.body = mo_buf_view(&body);
    f->pending++;
    if (mo_buf_err(&body) ||
        mo_relay_ask(f->api->relay, &q, on_asked, f, &e) < 0) {
        f->pending--;
        fail_later(f, mo_error(MO_EUNAVAIL, "another server has this session "
                                            "open and cannot be asked"));
    }
}

static void on_others(void *ctx, const struct mo_other *v, size_t n,
                      const struct mo_err *why)
{
    struct mo_box_files *f = ctx;
    char path[sizeof(v->path)] = "";

    if (!why && n)
        memcpy(path, v->path, sizeof(path));
    if (!back(f) || !f->done)
        return;
    memcpy(f->there, path, sizeof(path));
    if (why)
        fail_err(f, why);
    else if (f->there[0])
        ask_there(f);
    else
        try_again(f);
}

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct mo_box_files *f = ctx;
    char name[MO_INSTANCE_MAX];
    struct mo_err e;

    (void)fence;
    (void)snprintf(name, sizeof(name), "%.*s", (int)owner.n,
                   owner.n ? owner.p : "");
    if (!back(f) || !f->done)
        return;
    if (why) {
        fail_err(f, why);
    } else if (!name[0]) {
        try_again(f);
    } else if (mo_others_find(f->api->peers, name, on_others, f, &e) < 0) {
        fail_err(f, &e);
    } else {
        f->pending++;
    }
}

static void find_holder(struct mo_box_files *f)
{
    struct mo_err e;

    if (mo_lease_holder(f->api->store, mo_span_cstr(f->id), on_holder, f, &e) <
        0)
        fail_err(f, &e);
    else
        f->pending++;
}

/* --- requests ------------------------------------------------------------- */

struct mo_box_files *mo_box_files_new(struct mo_api *api,
                                      const struct mo_req *rq, const char *id,
                                      const char *owner)
{
    struct mo_box_files *f = mo_new(struct mo_box_files);

    if (!f)
        return NULL;
    f->api = api;
    mo_buf_init(&f->facts, FACTS_MAX);
    mo_buf_init(&f->args, ASK_MAX);
    mo_later_init(&f->later, on_failed);
    (void)snprintf(f->id, sizeof(f->id), "%s", id);
    (void)snprintf(f->owner, sizeof(f->owner), "%s", owner);
    if (api->relay && mo_relay_facts(api->relay, rq, &f->facts) < 0) {
        really_free(f);
        return NULL;
    }
    return f;
}

void mo_box_files_visit(struct mo_box_files *f)
{
    f->visits = true;
}

void mo_box_files_free(struct mo_box_files *f)
{
    struct mo_call *call = mo_take_ptr(&f->call);

    f->done = NULL;
    f->freed = true;
    if (call) {
        f->pending++; /* on_answer() still comes */
        mo_call_cancel(call, NULL);
    }
    if (f->hold)
        mo_session_release(mo_take_ptr(&f->hold));
    really_free(f);
}

void mo_box_files_ask(struct mo_box_files *f, const char *method,
                      struct mo_span args, mo_box_files_fn *done, void *ctx)
{
    MO_BUG_ON(f->done);
    f->done = done;
    f->ctx = ctx;
    f->moves = 0;
    (void)snprintf(f->method, sizeof(f->method), "%s", method);
    if (mo_buf_set(&f->args, args) < 0)
        fail_later(f, mo_error(MO_ENOMEM, "out of memory"));
    else if (f->there[0])
        ask_there(f);
    else if (f->hold && f->ready)
        use_box(f);
    else if (!f->hold)
        take_hold(f);
}

/* --- requests of other processes ------------------------------------------ */

struct relayed {
    struct mo_box_files *f;
    struct mo_req *rq;
};

static void relayed_end(struct relayed *r)
{
    mo_box_files_free(r->f);
    mo_free(r);
}

static void on_relayed_gone(struct mo_req *rq)
{
    relayed_end(rq->data);
}

static void on_relayed_done(void *ctx, struct mo_json result,
                            const struct mo_box_files_no *no)
{
    struct relayed *r = ctx;
    struct mo_req *rq = r->rq;

    rq->gone = NULL;
    if (no)
        mo_req_problem(rq, no->status, no->code, no->text);
    else
        mo_req_reply(rq, 200, "application/json", mo_json_text(result));
    relayed_end(r);
}

/* True: it says what is asked. */
static bool read_ask(struct mo_req *rq, struct mo_span body, char *method,
                     char *owner, struct mo_json *args, bool *visits)
{
    mo_autoarena struct mo_arena a = {.cap = 4096};
    struct mo_span name = {NULL, 0}, who = {NULL, 0};
    struct mo_json_doc doc;

    if (mo_json_parse(body, 0, &doc, NULL) < 0 ||
        mo_api_text(doc.root, "method", &a, &name) < 0 ||
        mo_api_text(doc.root, "owner", &a, &who) < 0)
        return false;
    *args = mo_json_get(doc.root, "arguments");
    *visits = mo_json_flag(doc.root, "visits");
    (void)snprintf(method, METHOD_MAX, "%.*s", (int)name.n,
                   name.n ? name.p : "");
    (void)snprintf(owner, MO_SESSION_OWNER_MAX, "%.*s", (int)who.n,
                   who.n ? who.p : "");
    return name.n && mo_json_is(*args, MO_JSON_OBJECT) &&
           mo_req_segment(rq, 2).n <= MO_SESSION_ID_MAX;
}

static void on_relayed_body(struct mo_req *rq, struct mo_span body)
{
    struct mo_api *api = rq->data;
    char method[METHOD_MAX], owner[MO_SESSION_OWNER_MAX],
        id[MO_SESSION_ID_MAX + 1];
    struct mo_span name = mo_req_segment(rq, 2);
    struct relayed *r = NULL;
    struct mo_json args;
    bool visits = false;

    if (!read_ask(rq, body, method, owner, &args, &visits)) {
        mo_req_problem(rq, 400, "bad_request", "it is no request about files");
        return;
    }
    (void)snprintf(id, sizeof(id), "%.*s", (int)name.n, name.p);
    r = mo_new(struct relayed);
    if (r)
        r->f = mo_box_files_new(api, rq, id, owner);
    if (!r || !r->f) {
        mo_free(r);
        mo_req_problem(rq, 503, "no_memory", "out of memory");
        return;
    }
    r->f->here_only = true;
    r->f->visits = visits;
    r->rq = rq;
    rq->data = r;
    rq->gone = on_relayed_gone;
    mo_box_files_ask(r->f, method, mo_json_text(args), on_relayed_done, r);
}

bool mo_box_files_relayed(struct mo_api *api, struct mo_req *rq)
{
    if (rq->head->method != MO_HTTP_POST ||
        !mo_span_starts(rq->path, MO_SPAN("/api/sessions/")) ||
        !mo_span_ends(rq->path, MO_SPAN("/files/ask")))
        return false;
    if (!mo_api_has(rq, api->sessions, "sessions are not there yet"))
        return true;
    rq->data = api;
    mo_req_body(rq, ASK_MAX, on_relayed_body);
    return true;
}
