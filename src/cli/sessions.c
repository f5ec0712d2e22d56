/* sessions list, show, kill - lists and ends the sessions in the store. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/runtime_wait.h"
#include "codec/json/json.h"

#define LIST_MAX ((size_t)64 * 1024)

/* One session to print. */
struct one {
    char id[MO_SESSION_ID_MAX + 1];
    bool has_row;
    struct mo_session_row row;
    uint64_t at;
    char holder[MO_STORE_ID_MAX + 1]; /* "": not held */
    uint64_t conversation, entries, pending, running;
};

struct listing {
    struct mo_cmd_runtime m;
    struct one *v;
    size_t n;
    bool more;
    size_t at; /* the session being read */
};

/* --- reading ------------------------------------------------------------- */

static void finish(void *ctx, const struct mo_err *why)
{
    struct listing *l = ctx;

    l->m.done = true;
    if (why)
        l->m.why = *why;
}

static int wait_for(struct listing *l, int rc)
{
    if (rc == 0)
        mo_cmd_runtime_wait(&l->m);
    l->m.done = false;
    return l->m.why.code;
}

static void take_row(struct one *o, const struct mo_row *r)
{
    *o = (struct one){.has_row = true, .at = r->at};
    (void)snprintf(o->id, sizeof(o->id), "%.*s", (int)r->session.n,
                   r->session.p);
    (void)mo_session_row(r->doc, &o->row, NULL);
}

static void on_rows(void *ctx, const struct mo_rows *rows,
                    const struct mo_err *why)
{
    struct listing *l = ctx;
    size_t n = why ? 0 : rows->n;
    struct one *v = NULL;

    if (n)
        v = mo_realloc(l->v, (l->n + n) * sizeof(*v));
    if (n && !v)
        (void)mo_fail(&l->m.why, MO_ENOMEM, "too many sessions");
    if (v) {
        l->v = v;
        for (size_t i = 0; i < n; i++)
            take_row(&l->v[l->n++], &rows->v[i]);
    }
    l->more = v && rows->more && l->n < LIST_MAX;
    finish(l, why);
}

static int read_rows(struct listing *l, struct mo_span session)
{
    struct mo_read r = {
        .kind = session.n ? MO_READ_SESSION : MO_READ_SESSIONS,
        .session = session,
        .limit = MO_STORE_ROWS_MAX,
    };

    do {
        if (l->n) {
            r.after = l->v[l->n - 1].at;
            r.id = mo_span_cstr(l->v[l->n - 1].id);
        }
        if (wait_for(l, mo_store_read(mo_runtime_store(l->m.runtime), &r,
                                      on_rows, l, &l->m.why)))
            return l->m.why.code;
    } while (l->more);
    return 0;
}

static void on_holder(void *ctx, struct mo_span owner, uint64_t fence,
                      const struct mo_err *why)
{
    struct listing *l = ctx;

    (void)fence;
    if (!why)
        (void)snprintf(l->v[l->at].holder, sizeof(l->v[l->at].holder), "%.*s",
                       (int)owner.n, owner.p);
    finish(l, why);
}

static int read_holders(struct listing *l)
{
    struct mo_store *s = mo_runtime_store(l->m.runtime);

    for (l->at = 0; l->at < l->n; l->at++) {
        struct mo_span id = mo_span_cstr(l->v[l->at].id);

        if (wait_for(l, mo_lease_holder(s, id, on_holder, l, &l->m.why)))
            return l->m.why.code;
    }
    return 0;
}

/* --- printing ------------------------------------------------------------ */

static void put_time(struct mo_jw *w, const char *key, uint64_t ms)
{
    char text[MO_ISO8601_MAX];

    mo_wall_format(ms, text);
    mo_jw_member_cstr(w, key, ms ? text : NULL);
}

static void put_one(struct mo_jw *w, const struct one *o)
{
    mo_jw_member_cstr(w, "id", o->id);
    put_time(w, "lastActive", o->at);
    put_time(w, "created", o->row.created);
    mo_jw_member_cstr(w, "box", o->row.box[0] ? o->row.box : NULL);
    mo_jw_member_cstr(w, "driver", o->row.driver[0] ? o->row.driver : NULL);
    if (o->row.owner[0])
        mo_jw_member_cstr(w, "owner", o->row.owner);
    mo_jw_member_bool(w, "asleep", o->row.asleep);
    mo_jw_member_cstr(w, "heldBy", o->holder[0] ? o->holder : NULL);
}

static void list_json(const struct listing *l, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_array(b);

    for (size_t i = 0; i < l->n; i++) {
        mo_jw_obj(&w);
        put_one(&w, &l->v[i]);
        mo_jw_end(&w);
    }
    mo_jw_end(&w);
}

static const char *box_of(const struct one *o)
{
    if (o->row.asleep)
        return "asleep";
    return o->row.box[0] ? o->row.box : "-";
}

static void list_text(const struct listing *l, struct mo_buf *b)
{
    char at[MO_ISO8601_MAX];

    if (l->n == 0)
        mo_buf_puts(b, "there are no sessions\n");
    else
        mo_buf_printf(b, "%-24s %-24s %-7s %-16s %s\n", "SESSION",
                      "LAST ACTIVE", "DRIVER", "HELD BY", "BOX");
    for (size_t i = 0; i < l->n; i++) {
        const struct one *o = &l->v[i];

        mo_wall_format(o->at, at);
        mo_buf_printf(b, "%-24s %-24s %-7s %-16s %.20s\n", o->id, at,
                      o->row.driver[0] ? o->row.driver : "-",
                      o->holder[0] ? o->holder : "-", box_of(o));
    }
}

static void fini(struct listing *l)
{
    mo_free(l->v);
    mo_cmd_runtime_close(&l->m);
}

#define autolisting MO_CLEANUP(fini)

static int unavailable(const struct listing *l)
{
    return mo_cli_error(l->m.c, MO_EXIT_UNAVAIL, "%s", l->m.why.msg);
}

int mo_run_sessions_list(struct mo_cli *c)
{
    autolisting struct listing l = {.n = 0};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = mo_cmd_runtime_open(c, &l.m, MO_RUNTIME_STORE);

    if (rc)
        return rc;
    if (read_rows(&l, mo_span(NULL, 0)) || read_holders(&l))
        return unavailable(&l);
    if (mo_cli_has(c, "json"))
        list_json(&l, &b);
    else
        list_text(&l, &b);
    return mo_cmd_print(c, &b);
}

int mo_cmd_complete_sessions(struct mo_cli *c)
{
    autolisting struct listing l = {.n = 0};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = mo_cmd_runtime_open(c, &l.m, MO_RUNTIME_STORE);

    if (rc)
        return rc;
    if (read_rows(&l, mo_span(NULL, 0)))
        return unavailable(&l);
    for (size_t i = 0; i < l.n; i++)
        mo_cmd_put_completion(&b, mo_span_cstr(l.v[i].id));
    return mo_cli_print(c, &b);
}

/* --- show ---------------------------------------------------------------- */

static void on_history(void *ctx, const struct mo_rows *rows,
                       const struct mo_err *why)
{
    struct listing *l = ctx;

    if (!why && rows->n) {
        l->v[0].conversation = rows->v[0].conversation;
        l->v[0].entries = rows->v[0].seq;
        if (!l->v[0].at)
            l->v[0].at = rows->v[0].at;
    }
    finish(l, why);
}

static void on_calls(void *ctx, const struct mo_rows *rows,
                     const struct mo_err *why)
{
    struct listing *l = ctx;

    for (size_t i = 0; !why && i < rows->n; i++) {
        l->v[0].pending += rows->v[i].state == MO_CALL_PENDING;
        l->v[0].running += rows->v[i].state == MO_CALL_RUNNING;
    }
    finish(l, why);
}

/* A session without a row may still have a conversation. */
static int read_one(struct listing *l, const char *id)
{
    struct mo_store *s = mo_runtime_store(l->m.runtime);
    struct mo_span span = mo_span_cstr(id);
    struct mo_read r = {
        .kind = MO_READ_HISTORY, .session = span, .limit = 1, .newest = true};

    if (read_rows(l, span))
        return l->m.why.code;
    if (l->n == 0) {
        l->v = mo_new(struct one);
        if (!l->v)
            return mo_fail(&l->m.why, MO_ENOMEM, "session");
        l->n = 1;
        (void)snprintf(l->v[0].id, sizeof(l->v[0].id), "%s", id);
    }
    if (wait_for(l, mo_store_read(s, &r, on_history, l, &l->m.why)))
        return l->m.why.code;
    r = (struct mo_read){.kind = MO_READ_CALLS,
                         .session = span,
                         .from = MO_CALL_BIT(MO_CALL_PENDING) |
                                 MO_CALL_BIT(MO_CALL_RUNNING),
                         .limit = MO_STORE_ROWS_MAX};
    if (wait_for(l, mo_store_read(s, &r, on_calls, l, &l->m.why)))
        return l->m.why.code;
    return read_holders(l);
}

static void show_json(const struct one *o, struct mo_buf *b)
{
    struct mo_jw w = mo_jw_object(b);

    put_one(&w, o);
    mo_jw_member_u64(&w, "conversation", o->conversation);
    mo_jw_member_u64(&w, "entries", o->entries);
    mo_jw_member_u64(&w, "pendingCalls", o->pending);
    mo_jw_member_u64(&w, "runningCalls", o->running);
    mo_jw_end(&w);
}

static void show_text(const struct one *o, struct mo_buf *b)
{
    char at[MO_ISO8601_MAX], created[MO_ISO8601_MAX];

    mo_wall_format(o->at, at);
    mo_wall_format(o->row.created, created);
    mo_buf_printf(b, "session       %s\n", o->id);
    mo_buf_printf(b, "last active   %s\n", at);
    if (o->row.created)
        mo_buf_printf(b, "created       %s\n", created);
    if (o->row.box[0])
        mo_buf_printf(b, "box           %s (%s)\n", o->row.box, o->row.driver);
    else
        mo_buf_printf(b, "box           none%s\n",
                      o->row.asleep ? " (asleep)" : "");
    mo_buf_printf(b, "held by       %s\n", o->holder[0] ? o->holder : "nobody");
    mo_buf_printf(b, "conversation  number %llu, %llu entries\n",
                  (unsigned long long)o->conversation,
                  (unsigned long long)o->entries);
    mo_buf_printf(b, "calls         %llu wait for a person, %llu running\n",
                  (unsigned long long)o->pending,
                  (unsigned long long)o->running);
}

int mo_run_sessions_show(struct mo_cli *c)
{
    autolisting struct listing l = {.n = 0};
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    int rc = mo_cmd_runtime_open(c, &l.m, MO_RUNTIME_STORE);

    if (rc)
        return rc;
    if (read_one(&l, c->args[0]))
        return unavailable(&l);
    if (!l.v[0].has_row && !l.v[0].entries)
        return mo_cli_error(c, MO_EXIT_FAIL, "there is no session '%.64s'",
                            c->args[0]);
    if (mo_cli_has(c, "json"))
        show_json(&l.v[0], &b);
    else
        show_text(&l.v[0], &b);
    return mo_cmd_print(c, &b);
}

/* --- kill ---------------------------------------------------------------- */

static int print_killed(struct mo_cli *c, const struct mo_err *why)
{
    mo_autobuf struct mo_buf b = {.max = MO_CMD_TEXT_MAX};
    struct mo_jw w;

    if (why->code && !mo_cli_has(c, "json"))
        return mo_cli_error(c, MO_EXIT_FAIL, "%s", why->msg);
    if (!mo_cli_has(c, "json")) {
        mo_buf_printf(&b, "session %s has ended%s\n", c->args[0],
                      mo_cli_has(c, "forget") ? " and is forgotten" : "");
        return mo_cli_print(c, &b);
    }
    w = mo_jw_object(&b);
    mo_jw_member_bool(&w, "ok", !why->code);
    if (why->code) {
        mo_jw_member_cstr(&w, "code", mo_err_name(why->code));
        mo_jw_member_cstr(&w, "message", why->msg);
    }
    mo_jw_end(&w);
    mo_cmd_print_json(c, &b);
    return why->code ? MO_EXIT_FAIL : MO_EXIT_OK;
}

int mo_run_sessions_kill(struct mo_cli *c)
{
    autolisting struct listing l = {.n = 0};
    int rc = mo_cmd_runtime_open(c, &l.m, MO_RUNTIME_COMMAND);

    if (rc)
        return rc;
    (void)wait_for(&l, mo_runtime_end(l.m.runtime, mo_span_cstr(c->args[0]),
                                      mo_cli_has(c, "forget"), finish, &l,
                                      &l.m.why));
    return print_killed(c, &l.m.why);
}
